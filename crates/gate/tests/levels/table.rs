//! The table of levels: what each of them answers to each class of effect, asked of the gate itself.

use std::collections::BTreeSet;

use gate::{ApplyMode, Decision, Facts, Gate, OtherAction, Policy, Progress};
use model::grant::Network;
use model::{ActionId, DatabaseAccess, Effect, FileKind, Grant, Place, Tool};

use crate::common::{
    action, agent, apply, change, facts, facts_with, grant, owners, parse, path, request, run, user, write,
};

/// What each level is for, from the first.
pub(crate) const LEVELS: [&str; 6] = [
    "read-only analysis",
    "restricted test repositories",
    "controlled builds and tests",
    "writes with a yes",
    "selected dependencies and network",
    "bounded automation",
];

/// One class, as a row of the table.
pub(crate) struct Row {
    /// What is asked for.
    pub(crate) class: &'static str,
    case: Case,
}

enum Case {
    /// An agent uses a tool that names its files, of these classes.
    Tool(Tool, &'static [&'static str]),
    /// An agent runs a command that declares this effect.
    Effect(Effect),
    /// An agent's command asks for this as well.
    Grant(fn(&mut Grant)),
    /// A person applies changes of these classes, with this said beforehand.
    Apply(ApplyMode, &'static [&'static str]),
}

/// Returns all rows.
pub(crate) fn rows() -> Vec<Row> {
    let row = |class, case| Row { class, case };
    let effect = |class, effect| Row { class, case: Case::Effect(effect) };
    let name = str::to_owned;
    let inside = || Place::Path(path("src/main.rs"));
    let change_ref = |repository: &str, forced| Effect::ChangeRef {
        repository: repository.to_owned(),
        reference: "main".to_owned(),
        forced,
    };
    let install = |package: &str| Effect::Install { manager: "npm".to_owned(), package: package.to_owned() };
    let query = |access| Effect::QueryDatabase { access, database: "x.db".to_owned() };
    let control = |control: &str| Effect::ChangeControl { control: control.to_owned() };
    vec![
        row("read, list and search with the tools for that", Case::Tool(Tool::Read { path: path("a") }, &[])),
        row("write a file with the tool for that", Case::Tool(write("src/main.rs"), &[])),
        row("write a protected file with the tool for that", Case::Tool(write(".envrc"), &["startup-files"])),
        effect("run a program", Effect::Run { program: name("make") }),
        effect("read a path", Effect::Read { place: inside() }),
        effect("write a path", Effect::Write { place: inside() }),
        effect("delete a path", Effect::Delete { place: inside() }),
        effect("something that the request does not tell", Effect::Unknown { why: name("x") }),
        effect("install what the manifests name", install("*")),
        effect("install a package by its name", install("left-pad")),
        effect("change a lock file", control("lockfiles")),
        effect("change another control: a hook, a check, a setting of a tool", control("hooks")),
        effect("change what is in `.git`", control("git-internals")),
        effect("commit, or move a branch inside", change_ref(".", false)),
        effect("push", change_ref("origin", false)),
        effect("push with force", change_ref("origin", true)),
        effect("connect to another machine", Effect::Connect { host: name("example.com:443") }),
        effect("use a credential", Effect::UseCredential { credential: name("npm") }),
        effect("publish", Effect::Publish { what: name("pkg") }),
        effect("deploy", Effect::Deploy { target: name("prod") }),
        effect("migrate", Effect::Migrate { target: name("prod") }),
        effect("send a message", Effect::Message { to: name("all") }),
        effect("show a dataset", Effect::ShowDataset { dataset: name("customers") }),
        effect("read a database", query(DatabaseAccess::Read)),
        effect("change rows of a database", query(DatabaseAccess::Write)),
        effect("change the form of a database", query(DatabaseAccess::Schema)),
        effect("destroy what is in a database", query(DatabaseAccess::Destroy)),
        row("the host's network", Case::Grant(|grant| grant.network = Network::Host)),
        row("the loopback of an action of its own task", Case::Grant(|grant| grant.network = joined())),
        row("wider limits than the profile's", Case::Grant(|grant| grant.profile.limits.processes *= 2)),
        row(
            "a credential of the workspace",
            Case::Grant(|grant| grant.shown_credentials = vec![path(".env")]),
        ),
        row("a terminal", Case::Grant(|grant| grant.terminal = true)),
        row("apply ordinary files when nothing was said beforehand", Case::Apply(ApplyMode::Ask, &[])),
        row("apply ordinary files, as was said beforehand", Case::Apply(ApplyMode::Clean, &[])),
        row("apply protected files", Case::Apply(ApplyMode::Always, &["hooks"])),
        row("apply git's own files", Case::Apply(ApplyMode::Always, &["git-internals"])),
    ]
}

fn joined() -> Network {
    Network::Joined(ActionId::from_random([9; 10]))
}

/// Returns the gate of a level.
pub(crate) fn gate(level: usize) -> Gate {
    let policy = Policy::bundle(&format!("level-{level}")).expect("it ships").expect("it can be used");
    Gate::new(policy)
}

impl Row {
    /// Returns what a gate answers, in the words of the table.
    pub(crate) fn ask(&self, gate: &Gate) -> String {
        match &self.case {
            Case::Tool(tool, classes) => {
                said(&gate.decide(action(agent(), tool.clone()), &facts_with(tool, classes)))
            }
            Case::Effect(effect) => {
                let declared = Some(BTreeSet::from([effect.clone()]));
                let classes = [(path("src/main.rs"), [].into())].into();
                let facts = Facts { declared, classes, ..facts() };
                said(&gate.decide(action(agent(), run(&["x"])), &facts))
            }
            Case::Grant(ask_for) => {
                let mut asked = grant();
                ask_for(&mut asked);
                let joined = Some(OtherAction { same_task: true, progress: Progress::Running });
                let declared = Some([Effect::Run { program: "x".to_owned() }].into());
                said(&gate.decide(
                    parse(request(agent(), run(&["x"])), asked),
                    &Facts { joined, declared, ..facts() },
                ))
            }
            Case::Apply(mode, classes) => {
                let apply = apply(user(), *mode, &[change("a", FileKind::File)], classes);
                said(&gate.decide_apply(apply, &[], &owners(), facts().now))
            }
        }
    }
}

fn said<S: gate::Subject>(decision: &Decision<S>) -> String {
    match decision {
        Decision::Allow(_) => "yes".to_owned(),
        Decision::Narrow(_) => "without it".to_owned(),
        Decision::RequireApproval(request) => {
            let roles: Vec<String> = request.quorums().iter().map(ToString::to_string).collect();
            format!("asks `{}`", roles.join("`, `"))
        }
        Decision::Deny(_) => "no".to_owned(),
    }
}

/// Returns the table for people.
pub(crate) fn document() -> String {
    let gates: Vec<Gate> = (1..=LEVELS.len()).map(gate).collect();
    let mut text = String::from(
        "| An agent's task may | 1 | 2 | 3 | 4 | 5 | 6 |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows() {
        let cells: Vec<String> = gates.iter().map(|gate| row.ask(gate)).collect();
        text += &format!("| {} | {} |\n", row.class, cells.join(" | "));
    }
    text
}
