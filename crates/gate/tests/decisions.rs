//! What the shipped bundle decides, row by row, and that no row depends on anything but what it should.

mod common;

use common::*;
use gate::{ApplyMode, Approval, Decision, Facts, Gate, OtherAction, Policy, Progress, Subject as _};
use model::action::Principal;
use model::event::Verdict::{self, Allow, Deny, Narrow, RequireApproval};
use model::grant::{GrantedProgram, Input, Network, Programs, WorkspaceAccess};
use model::{ActionId, Bytes, FileKind, Grant, Level, Profile, Timestamp, Tool};

fn gate() -> Gate {
    Gate::new(Policy::default_bundle().expect("the shipped bundle can be used"))
}

struct Row {
    name: &'static str,
    principal: Principal,
    tool: Tool,
    grant: Grant,
    facts: Facts,
    expected: (Verdict, &'static str, &'static str),
}

fn row(
    name: &'static str,
    who: Principal,
    tool: Tool,
    expected: (Verdict, &'static str, &'static str),
) -> Row {
    let facts = facts_with(&tool, &[]);
    Row { name, principal: who, tool, grant: grant(), facts, expected }
}

impl Row {
    fn asking(mut self, change: impl FnOnce(&mut Grant)) -> Self {
        change(&mut self.grant);
        self
    }

    fn knowing(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }

    fn of(mut self, names: &[&str]) -> Self {
        self.facts = facts_with(&self.tool, names);
        self
    }

    fn check(self) {
        let action = parse(request(self.principal, self.tool), self.grant);
        let decision = gate().decide(action, &self.facts);
        let record = decision.record();
        let found = (record.verdict, record.reason.as_str(), record.rules.first().map_or("", String::as_str));
        assert_eq!(found, self.expected, "{}", self.name);
    }
}

const INSIDE: &str = "inside-the-sandbox";

fn input() -> Input {
    Input { name: "data".to_owned(), source: text("/srv/data") }
}

fn rows_inside() -> Vec<Row> {
    let run_it = (Allow, INSIDE, "run-anything");
    let look = (Allow, INSIDE, "look-around");
    let change = (Allow, INSIDE, "write-workspace");
    let protected = (Deny, "protected-path", "protected-paths");
    vec![
        row("a user runs the tests", user(), run(&["cargo", "test"]), run_it),
        row("an agent runs the tests", agent(), run(&["cargo", "test"]), run_it),
        row("a shell is a program like others", agent(), run(&["sh", "-c", "rm -rf /"]), run_it),
        row("a program of the workspace", agent(), run(&["./build.sh"]), run_it),
        row("a push meets the network's wall, not a rule", agent(), run(&["git", "push"]), run_it),
        row("a list of programs only takes away", agent(), run(&["make"]), run_it).asking(|grant| {
            grant.programs = Programs::Only(vec![GrantedProgram::whatever_it_holds(text("/usr/bin/make"))])
        }),
        row("a workspace to read only", agent(), run(&["ls"]), run_it)
            .asking(|grant| grant.workspace = WorkspaceAccess::ReadOnly),
        row("an agent reads", agent(), Tool::Read { path: path("src/main.rs") }, look),
        row("a user reads", user(), Tool::Read { path: path(".git/config") }, look),
        row("an agent lists", agent(), Tool::List { path: None }, look),
        row("an agent lists a directory", agent(), Tool::List { path: Some(path("src")) }, look),
        row("an agent searches", agent(), Tool::Search { pattern: "fn".to_owned(), path: None }, look),
        row("an agent writes", agent(), write("src/main.rs"), change),
        row("a user writes", user(), write("src/main.rs"), change),
        row("an agent patches", agent(), patch(&["a.rs", "b.rs"]), change),
        row("a test may be written inside", agent(), write("tests/a.rs"), change).of(&["tests"]),
        row("a runner's settings too", agent(), write("pytest.ini"), change).of(&["tests", "test-runner"]),
        row("a hook", agent(), write(".git/hooks/pre-commit"), protected).of(&["git-internals"]),
        row("a hook by a user", user(), write(".husky/pre-commit"), protected).of(&["hooks"]),
        row("git configuration", agent(), write(".git/config"), protected).of(&["git-internals"]),
        row("git settings", agent(), write(".gitattributes"), protected).of(&["git-settings"]),
        row("a startup file", agent(), write(".envrc"), protected).of(&["startup-files"]),
        row("a lockfile may be written", agent(), write("Cargo.lock"), change).of(&["lockfiles"]),
        row("settings of a build tool too", agent(), write(".npmrc"), change).of(&["tool-settings"]),
        row("a CI file by a patch", agent(), patch(&["a.rs", ".github/workflows/ci.yml"]), protected)
            .of(&["ci-files"]),
        row("editor settings", agent(), write(".vscode/settings.json"), protected).of(&["editor-settings"]),
        row("agent settings", agent(), write(".cursor/mcp.json"), protected).of(&["agent-settings"]),
        row("a test that is a hook, too", agent(), write("x"), protected).of(&["tests", "hooks"]),
        row("a class that nobody knows", agent(), write("x"), protected).of(&["made-up-later"]),
        row("a path that nobody looked at", agent(), write("x"), protected)
            .knowing(|facts| facts.classes.clear()),
    ]
}

fn rows_across() -> Vec<Row> {
    let limits = (Deny, "limits-wider-than-profile", "limits-of-the-profile");
    let tighter = (Narrow, "limits-wider-than-profile", "limits-of-the-profile-for-agents");
    let host = |grant: &mut Grant| grant.network = Network::Host;
    let join = |grant: &mut Grant| grant.network = Network::Joined(ActionId::from_random([9; 10]));
    let not_running = (Deny, "joined-action-not-running", "join-only-running");
    let foreign = (Deny, "network-of-another-task", "join-only-own-task");
    let other = |same_task, progress| Some(OtherAction { same_task, progress });
    let memory = |grant: &mut Grant| grant.profile.limits.memory = Bytes::gib(64);
    let terminal = |grant: &mut Grant| grant.terminal = true;
    let with_input = |grant: &mut Grant| grant.inputs.push(input());
    let credential = |grant: &mut Grant| grant.shown_credentials.push(path(".env"));
    vec![
        row("a user asks for the network", user(), run(&["curl"]), (Deny, "network-denied", "no-network"))
            .asking(host),
        row("an agent does", agent(), run(&["curl"]), (Narrow, "network-denied", "no-network-for-agents"))
            .asking(host),
        row(
            "a running action of the task is joined",
            user(),
            run(&["curl"]),
            (Allow, INSIDE, "run-anything"),
        )
        .asking(join)
        .knowing(|facts| facts.joined = other(true, Progress::Running)),
        row("by an agent, too", agent(), run(&["curl"]), (Allow, INSIDE, "run-anything"))
            .asking(join)
            .knowing(|facts| facts.joined = other(true, Progress::Running)),
        row("one that ended", user(), run(&["curl"]), not_running)
            .asking(join)
            .knowing(|facts| facts.joined = other(true, Progress::Ended)),
        row("one that has not started", user(), run(&["curl"]), not_running)
            .asking(join)
            .knowing(|facts| facts.joined = other(true, Progress::NotStarted)),
        row("one of another task", user(), run(&["curl"]), foreign)
            .asking(join)
            .knowing(|facts| facts.joined = other(false, Progress::Running)),
        row("one that nobody knows", agent(), run(&["curl"]), not_running).asking(join),
        row("a user asks for memory", user(), run(&["make"]), limits).asking(memory),
        row("an agent does", agent(), run(&["make"]), tighter).asking(memory),
        row("a user lets go of the kernel's hold", user(), run(&["make"]), limits)
            .asking(|grant| grant.profile.disk_limits = Level::Absent),
        row("a tighter limit is nobody's business", user(), run(&["make"]), (Allow, INSIDE, "run-anything"))
            .asking(|grant| grant.profile.limits.memory = Bytes::mib(1)),
        row("a user asks for a terminal", user(), run(&["bash"]), (Allow, INSIDE, "run-anything"))
            .asking(terminal),
        row(
            "an agent asks for one",
            agent(),
            run(&["bash"]),
            (Narrow, "terminal-not-for-agents", "no-terminal-for-agents"),
        )
        .asking(terminal),
        row("a credential", user(), run(&["env"]), (Deny, "credential-hidden", "credentials-stay-hidden"))
            .asking(credential),
        row("by an agent", agent(), run(&["env"]), (Deny, "credential-hidden", "credentials-stay-hidden"))
            .asking(credential),
        row("an input that a person named", agent(), run(&["ls"]), (Allow, INSIDE, "run-anything"))
            .asking(with_input)
            .knowing(|facts| facts.inputs.push(input())),
        row("one that nobody named", agent(), run(&["ls"]), (Deny, "input-not-named", "inputs-of-nobody"))
            .asking(with_input),
        row(
            "another directory under the name",
            agent(),
            run(&["ls"]),
            (Deny, "input-not-named", "inputs-of-nobody"),
        )
        .asking(with_input)
        .knowing(|facts| facts.inputs.push(Input { source: text("/srv/other"), ..input() })),
        row(
            "what is refused outweighs what is narrowed",
            agent(),
            run(&["x"]),
            (Deny, "credential-hidden", "credentials-stay-hidden"),
        )
        .asking(host)
        .asking(credential),
        row("the engine is no user", Principal::Engine, run(&["git"]), (Deny, "wrong-principal", "")),
        row("facts of another profile", user(), run(&["ls"]), (Deny, "facts-do-not-fit", ""))
            .knowing(|facts| facts.profile = Profile::strict()),
    ]
}

#[test]
fn the_shipped_bundle_decides_as_the_table_says() {
    let rows: Vec<Row> = rows_inside().into_iter().chain(rows_across()).collect();
    assert!(rows.len() >= 40);
    rows.into_iter().for_each(Row::check);
}

#[test]
fn an_agent_that_asks_for_everything_gets_what_is_left() {
    let asked = Grant { network: Network::Host, terminal: true, ..grant() };
    let mut asked = asked;
    asked.profile.limits.memory = Bytes::gib(64);
    asked.profile.limits.processes = 7;
    asked.profile.disk_limits = Level::Absent;
    asked.profile.cgroup_limits = Level::Hard;
    let decision = gate().decide(parse(request(agent(), run(&["make"])), asked), &facts());
    let Decision::Narrow(authorization) = &decision else { panic!("not narrowed: {decision:?}") };
    let mut left = grant();
    left.profile.limits.processes = 7;
    left.profile.cgroup_limits = Level::Hard;
    assert_eq!(authorization.grant(), &left);
    let record = decision.record();
    assert_eq!(record.grant.as_ref(), Some(&left));
    let narrowed = ["no-network-for-agents", "limits-of-the-profile-for-agents", "no-terminal-for-agents"];
    assert_eq!(record.rules, [narrowed.as_slice(), &["run-anything", "any-effect"]].concat());
}

#[test]
fn every_decision_names_its_policy_and_its_rules() {
    let decision = gate().decide(action(user(), run(&["make"])), &facts());
    assert_eq!(decision.record().policy, gate().policy());
    assert_eq!(decision.record().rules, ["run-anything", "any-effect"]);
    assert!(matches!(decision, Decision::Allow(_)));
}

#[test]
fn the_engines_helpers_are_internal_and_nothing_else_is() {
    let facts = facts();
    let helper = || action(Principal::Engine, run(&["git", "fetch"]));
    let decision = gate().decide_internal(helper(), "git", &facts);
    assert_eq!(decision.record().rules, ["own-helpers"]);
    let refused = gate().decide_internal(action(agent(), run(&["git"])), "git", &facts);
    assert_eq!(refused.record().reason, "wrong-principal");
    let mut asked = grant();
    asked.network = Network::Host;
    let outside = parse(request(Principal::Engine, run(&["git", "fetch"])), asked);
    assert_eq!(gate().decide_internal(outside, "git", &facts).record().reason, "network-denied");
}

#[test]
fn applying_is_decided_by_class_and_kind_and_mode() {
    let rows = [
        (user(), ApplyMode::Clean, FileKind::File, [].as_slice(), Allow, "asked-by-a-person"),
        (user(), ApplyMode::Always, FileKind::Symlink, &[], Allow, "asked-by-a-person"),
        (user(), ApplyMode::Ask, FileKind::File, &[], RequireApproval, "asked-to-ask"),
        (user(), ApplyMode::Clean, FileKind::File, &["tests"], RequireApproval, "protected-path"),
        (user(), ApplyMode::Always, FileKind::File, &["ci-files"], RequireApproval, "protected-path"),
        (user(), ApplyMode::Clean, FileKind::File, &["tool-settings"], RequireApproval, "protected-path"),
        (user(), ApplyMode::Clean, FileKind::File, &["lockfiles"], Allow, "asked-by-a-person"),
        (user(), ApplyMode::Always, FileKind::File, &["made-up-later"], RequireApproval, "protected-path"),
        (user(), ApplyMode::Ask, FileKind::File, &["git-internals"], Deny, "git-internals-stay"),
        (user(), ApplyMode::Clean, FileKind::Directory, &[], Allow, "asked-by-a-person"),
        (user(), ApplyMode::Clean, FileKind::Device, &[], Deny, "not-an-ordinary-file"),
        (user(), ApplyMode::Clean, FileKind::Fifo, &[], Deny, "not-an-ordinary-file"),
        (user(), ApplyMode::Ask, FileKind::Socket, &[], Deny, "not-an-ordinary-file"),
        (agent(), ApplyMode::Always, FileKind::File, &[], Deny, "apply-needs-a-person"),
        (Principal::Engine, ApplyMode::Always, FileKind::File, &[], Deny, "wrong-principal"),
    ];
    for (who, mode, kind, names, verdict, reason) in rows {
        let apply = apply(who, mode, &[change("a", kind)], names);
        let decision = gate().decide_apply(apply, &[], &owners(), NOW);
        let record = decision.record();
        assert_eq!(
            (record.verdict, record.reason.as_str()),
            (verdict, reason),
            "{mode:?} {kind:?} {names:?}"
        );
        assert_eq!(record.grant, None);
        let never = ["git-internals-stay", "not-an-ordinary-file", "wrong-principal"].contains(&reason);
        assert_eq!(record.person_may_allow, verdict != Allow && !never, "{reason}");
    }
}

fn yes(subject: model::Digest) -> Approval {
    let expires = Timestamp::from_nanos(NOW.as_nanos() + 1);
    Approval { subject, approver: user(), account: ADA, role: "person".to_owned(), expires }
}

#[test]
fn a_persons_yes_covers_exactly_these_changes_until_its_time() {
    let protected = |name| apply(user(), ApplyMode::Ask, &[change(name, FileKind::File)], &["ci-files"]);
    let asks = |approval: Approval| {
        gate().decide_apply(protected("a"), &[approval], &owners(), NOW).record().verdict
    };
    let good = yes(protected("a").digest());
    assert_eq!(asks(good.clone()), Allow);
    assert_eq!(asks(Approval { subject: protected("b").digest(), ..good.clone() }), RequireApproval);
    assert_eq!(asks(Approval { expires: NOW, ..good.clone() }), RequireApproval);
    assert_eq!(asks(Approval { approver: agent(), ..good.clone() }), RequireApproval);
    assert_eq!(asks(Approval { approver: Principal::Engine, ..good.clone() }), RequireApproval);
    assert_eq!(asks(Approval { role: "other".to_owned(), ..good }), RequireApproval);
}

#[test]
fn the_request_for_a_yes_says_who_must_give_it_and_to_what() {
    let protected =
        apply(user(), ApplyMode::Clean, &[change(".github/x.yml", FileKind::File)], &["ci-files"]);
    let digest = protected.digest();
    let Decision::RequireApproval(request) = gate().decide_apply(protected, &[], &owners(), NOW) else {
        panic!("not asked")
    };
    assert_eq!(request.subject(), digest);
    assert_eq!(request.quorums(), &quorums(&["person"]));
    assert_eq!(
        request.to_string(),
        "needs a yes (person) before this may apply 1 change to protected paths (ci-files) (protected-path, by rule \
         `apply-protected-paths`); look at these files one by one: what they hold is run or \
         trusted by tools on the host"
    );
}

#[test]
fn a_denial_tells_people_and_agents_what_to_do_instead() {
    let tool = write(".git/hooks/pre-\u{1b}[2Jcommit");
    let facts = facts_with(&tool, &["hooks"]);
    let Decision::Deny(denial) = gate().decide(action(agent(), tool), &facts) else { panic!("not denied") };
    assert_eq!(
        denial.to_string(),
        "denied: policy does not let this write `.git/hooks/pre-\\u{1b}[2Jcommit` (protected-path, by rule \
         `protected-paths`); leave this file as it is and say in your answer what should change; a person can \
         edit it on the host"
    );
    let answer = serde_json::to_value(denial.answer()).expect("has a JSON form");
    let expected = serde_json::json!({
        "decision": "deny",
        "reason_code": "protected-path",
        "matched_rules": ["protected-paths"],
        "advice": "leave this file as it is and say in your answer what should change; a person can edit it on the host",
        "person_may_allow": true,
        "retry_useless": true,
    });
    assert_eq!(answer, expected);
}
