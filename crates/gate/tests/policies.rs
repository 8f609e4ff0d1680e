//! What is taken as a policy, what several of them mean together, and that anything else denies everything.

mod common;

use std::sync::Arc;

use common::*;
use gate::{
    ApplyMode, Approval, DEFAULT_BUNDLE, Decision, Facts, Gate, GateError, LayerOf, OtherAction, Policy,
    Progress, Subject as _,
};
use model::event::Verdict::{Allow, Deny, Narrow, RequireApproval};
use model::grant::{Network, WorkspaceAccess};
use model::{ActionId, Bytes, EgressRule, FileKind, Grant, Timestamp};

const NEVER: &str = r#"forbid (principal, action == Action::"use-terminal", resource);"#;
const ALL: &str = r#"@id("all") @reason("all") permit (principal, action, resource);"#;

fn policy(rules: &[&str]) -> Policy {
    parse_policy(rules).expect("a policy")
}

fn of_repository(rules: &[&str]) -> Arc<Policy> {
    Arc::new(Policy::of_repository(&rules.join("\n")).expect("rules of a repository"))
}

fn parse_policy(rules: &[&str]) -> Result<Policy, GateError> {
    Policy::parse(&rules.join("\n"))
}

fn forbid(id: &str, annotations: &str, rule: &str) -> String {
    format!(r#"@id("{id}") @reason("{id}") @advice("ask") @person_may_allow("true") {annotations} {rule}"#)
}

fn default_bundle() -> Policy {
    Policy::default_bundle().expect("the shipped bundle can be used")
}

#[test]
fn the_shipped_bundle_passes_the_strict_check() {
    for (name, text) in gate::BUNDLES {
        Policy::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(Policy::bundle(name).is_some_and(|policy| policy.is_ok()), "{name}");
    }
    let checked = Policy::parse(DEFAULT_BUNDLE).expect("the shipped bundle fits the schema");
    assert_eq!(checked.digest(), default_bundle().digest());
    assert_eq!(checked.rule_ids()[..2], ["look-around", "run-anything"], "ids come in the order of the text");
    assert_eq!(checked.rule_ids().last(), Some(&"reach-only-what-is-named"));
}

#[test]
fn a_policy_that_cannot_be_used_says_what_is_wrong_with_it() {
    let permit = |annotations: &str| format!("{annotations} permit (principal, action, resource);");
    let rows = [
        (String::new(), "holds no rule"),
        (" \n\t".to_owned(), "holds no rule"),
        ("// nothing but a remark".to_owned(), "holds no rule"),
        ("permit (principal, action".to_owned(), "cannot be read"),
        (format!("{ALL}\n\npermit nonsense;"), "in line 3"),
        (permit(""), "rule 1 has no `@id`"),
        (permit(r#"@id("x")"#), "rule 1 (`x`) has no `@reason`"),
        (permit(r#"@id("") @reason("x")"#), "has no `@id`"),
        (permit(r#"@id("X y") @reason("x")"#), "has an `@id` that is no code"),
        (permit(r#"@id("x") @reason("a--b")"#), "has an `@reason` that is no code"),
        (permit(r#"@id("x") @reason("x") @reasn("y")"#), "annotation `@reasn` that is not known"),
        (permit(r#"@id("x") @reason("x") @approval("person")"#), "on a `forbid` only"),
        (format!("{ALL}\n{ALL}"), "has the id of rule 1"),
        (forbid("no", "", "forbid (principal, action, resource);"), "holds no `permit`"),
        (
            format!("{ALL}\n@id(\"no\") @reason(\"no\") forbid (principal, action, resource);"),
            "has no `@advice`",
        ),
        (
            format!(
                "{ALL}\n{}",
                forbid("no", r#"@obligation("be-nice")"#, "forbid (principal, action, resource);")
            ),
            "`@obligation` that is not known: use `narrow-limits`",
        ),
        (
            format!(
                "{ALL}\n{}",
                forbid(
                    "no",
                    r#"@obligation("read-only") @approval("person")"#,
                    "forbid (principal, action, resource);"
                )
            ),
            "split it into two rules",
        ),
        (
            r#"@id("x") @reason("x") permit (principal == ?principal, action, resource);"#.to_owned(),
            "template",
        ),
        (permit(r#"@id("x") @reason("x") @id("y")"#), "cannot be read"),
    ];
    for (text, wrong) in rows {
        let error = Policy::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(wrong), "`{text}`: {error}");
    }
}

#[test]
fn a_policy_that_does_not_fit_the_questions_is_refused() {
    let rows = [
        (
            r#"permit (principal, action == Action::"run", resource) when { context.aprovals.isEmpty() };"#,
            "aprovals",
        ),
        (r#"permit (principal, action == Action::"rum", resource);"#, "rum"),
        (r#"permit (principal is Robot, action, resource);"#, "Robot"),
        (
            r#"permit (principal, action == Action::"run", resource) when { context.program.name == 1 };"#,
            "type",
        ),
        (r#"permit (principal, action, resource) when { context.program.name == "ls" };"#, "program"),
        // A rule that can never matter is a mistake, too.
        (r#"permit (principal is Engine, action == Action::"run", resource);"#, ""),
    ];
    for (rule, word) in rows {
        let text = format!("{ALL}\n@id(\"x\") @reason(\"x\") {rule}");
        let error = Policy::parse(&text).expect_err(rule);
        assert!(matches!(error, GateError::Invalid { .. }), "`{rule}`: {error:?}");
        assert!(error.to_string().contains(word), "`{rule}`: {error}");
        assert!(error.to_string().starts_with("rule 2 (`x`) does not fit"), "the rule is named: {error}");
        assert!(!error.to_string().contains("policy1"), "{error}");
    }
}

#[test]
fn without_a_policy_that_can_be_used_everything_is_denied_and_recorded() {
    for error in [
        GateError::Missing,
        Policy::parse("").expect_err("empty"),
        Policy::parse("permit").expect_err("broken"),
    ] {
        let gate = Gate::closed(&error);
        let decision = gate.decide(action(user(), run(&["true"])), &facts());
        let record = decision.record().clone();
        assert_eq!((record.verdict, record.reason.as_str()), (Deny, "no-usable-policy"));
        assert_eq!(record.advice, error.to_string());
        assert_eq!(decision.event().name(), "decided");
        let helper = action(model::action::Principal::Engine, run(&["git"]));
        assert_eq!(gate.decide_internal(helper, "git", &facts()).record().verdict, Deny);
        let apply = apply(user(), ApplyMode::Always, &[change("a", FileKind::File)], &[]);
        assert_eq!(gate.decide_apply(apply, &[], &owners(), NOW).record().verdict, Deny);
    }
}

#[test]
fn what_no_rule_permits_is_denied() {
    let only_read = r#"@id("read") @reason("read") permit (principal, action == Action::"read", resource);"#;
    let gate = Gate::new(policy(&[only_read]));
    let decision = gate.decide(action(user(), run(&["true"])), &facts());
    assert_eq!(decision.record().reason, "no-rule-permits");
    assert!(decision.record().rules.is_empty());
    let Decision::Deny(denial) = decision else { panic!("not denied") };
    assert!(
        denial.to_string().starts_with("denied: policy does not let this run `true` (no-rule-permits); ")
    );
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies_whatever_the_others_say() {
    let overflow = r#"forbid (principal, action == Action::"widen-limit", resource)
        when { context.asked * 9223372036854775807 > 7 };"#;
    let gate = Gate::new(policy(&[ALL, &forbid("too-much", "", overflow)]));
    let mut asked = grant();
    asked.profile.limits.memory = Bytes::gib(64);
    let decision = gate.decide(parse(request(user(), run(&["make"])), asked), &facts());
    let record = decision.record();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "policy-error"));
    assert_eq!(record.rules, ["too-much"]);
}

#[test]
fn a_repository_takes_away_and_gives_nothing() {
    let no_make = forbid(
        "no-make",
        "",
        r#"forbid (principal, action == Action::"run", resource) when { context.program.name == "make" };"#,
    );
    let gate = Gate::new(default_bundle()).tightened_by(LayerOf::Repository, of_repository(&[&no_make]));
    let decide = |tool| gate.decide(action(agent(), tool), &facts()).record().clone();
    assert_eq!(decide(run(&["cargo"])).rules, ["run-anything", "any-effect"]);
    assert_eq!(decide(run(&["/usr/bin/make"])).rules, ["repository/no-make"]);
    // What the organisation forbids stays forbidden.
    let hook = write(".git/hooks/x");
    let denied = gate.decide(action(agent(), hook.clone()), &facts_with(&hook, &["hooks"]));
    assert_eq!(denied.record().rules, ["protected-paths"]);
}

#[test]
fn a_rule_of_a_repository_that_permits_is_refused_with_its_place() {
    let error = Policy::of_repository(&format!("{}\n{ALL}", forbid("a", "", NEVER))).expect_err("permits");
    assert_eq!(
        error.to_string(),
        "rule 2 (`all`) is a `permit`, and a repository's own rules can only forbid: remove it"
    );
    let many: String = (0..201).map(|n| forbid(&format!("r{n}"), "", NEVER)).collect();
    let error = Policy::of_repository(&many).expect_err("too many").to_string();
    assert_eq!(error, "there are 201 rules, and a repository may have 200: say the same with fewer");
    for nothing in ["", "// nothing"] {
        assert_eq!(Policy::of_repository(nothing).expect_err("says nothing"), GateError::Empty);
    }
    let unknown = r#"forbid (principal, action == Action::"fly", resource);"#;
    assert!(matches!(Policy::of_repository(&forbid("a", "", unknown)), Err(GateError::Invalid { .. })));
}

#[test]
fn a_layer_that_says_nothing_permits_nothing() {
    let only_read = r#"@id("read") @reason("read") permit (principal, action == Action::"read", resource);"#;
    let gate = Gate::new(default_bundle()).tightened_by(LayerOf::Task, Arc::new(policy(&[only_read])));
    let record = gate.decide(action(user(), run(&["true"])), &facts()).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "no-rule-permits"));
    assert!(record.advice.contains("nothing raises this one's"), "{}", record.advice);
    // Nor does a permit of the task stand in for one of the organisation.
    let gate = Gate::new(policy(&[only_read])).tightened_by(LayerOf::Task, Arc::new(default_bundle()));
    let record = gate.decide(action(user(), run(&["true"])), &facts()).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "no-rule-permits"));
}

#[test]
fn layers_in_another_order_are_another_policy() {
    let other = || policy(&[ALL]);
    let with = |whose, policy| Gate::new(default_bundle()).tightened_by(whose, Arc::new(policy));
    let digests = [
        Gate::new(default_bundle()).policy(),
        with(LayerOf::Task, other()).policy(),
        with(LayerOf::Repository, other()).policy(),
        Gate::new(other()).tightened_by(LayerOf::Task, Arc::new(default_bundle())).policy(),
        Gate::closed(&GateError::Missing).policy(),
    ];
    for (at, digest) in digests.iter().enumerate() {
        assert!(!digests[at + 1..].contains(digest));
    }
}

#[test]
fn a_rule_can_narrow_to_reading_but_not_what_must_write() {
    let read_only = forbid(
        "look-only",
        r#"@obligation("read-only")"#,
        r#"forbid (principal, action in [Action::"run", Action::"write"], resource)
           when { context.request.workspace == "read-write" };"#,
    );
    let gate = Gate::new(policy(&[ALL, &read_only]));
    let decision = gate.decide(action(agent(), run(&["ls"])), &facts());
    let Decision::Narrow(authorization) = decision else { panic!("not narrowed") };
    assert_eq!(authorization.grant().workspace, WorkspaceAccess::ReadOnly);
    let tool = write("a.rs");
    let record = gate.decide(action(agent(), tool.clone()), &facts_with(&tool, &[])).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "look-only"));
}

#[test]
fn a_rule_that_narrows_in_vain_denies() {
    let vain = forbid(
        "vain",
        r#"@obligation("narrow-network")"#,
        r#"forbid (principal, action == Action::"run", resource);"#,
    );
    let gate = Gate::new(policy(&[ALL, &vain]));
    let record = gate.decide(action(agent(), run(&["ls"])), &facts()).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "vain"));
}

/// Network needs the yes of an operator and of security; more memory cannot be had by any yes.
fn with_approvals() -> Gate {
    let by = |role: &str, id: &str| {
        let unless = format!(r#"unless {{ context.approvals.contains("{role}") }};"#);
        let rule = format!(r#"forbid (principal, action == Action::"use-network", resource) {unless}"#);
        forbid(id, &format!(r#"@approval("{role}")"#), &rule)
    };
    let never = forbid(
        "never",
        r#"@approval("operator")"#,
        r#"forbid (principal, action == Action::"widen-limit", resource);"#,
    );
    Gate::new(policy(&[ALL, &by("operator", "ask-operator"), &by("security", "ask-security"), &never]))
}

#[test]
fn the_roles_that_must_say_yes_come_out_of_the_policy() {
    let gate = with_approvals();
    let asked = || parse(request(agent(), run(&["curl"])), Grant { network: Network::Host, ..grant() });
    let Decision::RequireApproval(request) = gate.decide(asked(), &facts()) else { panic!("not asked") };
    assert_eq!(request.quorums(), &quorums(&["operator", "security"]));
    assert_eq!(request.subject(), asked().digest());

    let expires = Timestamp::from_nanos(NOW.as_nanos() + 1);
    let yes = |role: &str| Approval {
        subject: asked().digest(),
        approver: user(),
        account: ADA,
        role: role.to_owned(),
        expires,
    };
    let mut facts = facts();
    facts.approvals = vec![yes("operator")];
    let Decision::RequireApproval(request) = gate.decide(asked(), &facts) else { panic!("not asked") };
    assert_eq!(request.quorums(), &quorums(&["security"]));

    facts.approvals.push(yes("security"));
    assert_eq!(gate.decide(asked(), &facts).record().verdict, Allow);
}

#[test]
fn a_yes_that_would_not_help_is_not_asked_for() {
    let mut asked = grant();
    asked.profile.limits.memory = Bytes::gib(64);
    let record =
        with_approvals().decide(parse(request(user(), run(&["make"])), asked), &facts()).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "never"));
}

#[test]
fn what_a_smaller_grant_settles_needs_nobodys_yes() {
    let narrow = forbid(
        "smaller",
        r#"@obligation("narrow-network")"#,
        r#"forbid (principal, action == Action::"use-network", resource);"#,
    );
    let ask = forbid(
        "ask",
        r#"@approval("person")"#,
        r#"forbid (principal, action == Action::"use-network", resource) unless { context.approvals.contains("person") };"#,
    );
    let gate = Gate::new(policy(&[ALL, &ask, &narrow]));
    let asked = parse(request(agent(), run(&["curl"])), Grant { network: Network::Host, ..grant() });
    assert_eq!(gate.decide(asked, &facts()).record().verdict, Narrow);
}

#[test]
fn a_rule_can_name_a_directory_for_all_that_is_in_it() {
    let vendored = forbid(
        "vendored",
        "",
        r#"forbid (principal, action in [Action::"write", Action::"patch"], resource in Path::"third_party/lib");"#,
    );
    let keys = forbid(
        "keys",
        "",
        r#"forbid (principal, action == Action::"read", resource) when { resource.name like "*.pem" };"#,
    );
    let gate = Gate::new(policy(&[ALL, &vendored, &keys]));
    let decide = |tool: model::Tool| {
        let facts = facts_with(&tool, &[]);
        gate.decide(action(agent(), tool), &facts).record().rules.clone()
    };
    assert_eq!(decide(write("third_party/lib/deep/er/a.c")), ["vendored"]);
    assert_eq!(decide(patch(&["src/a.c", "third_party/lib/a.c"])), ["vendored"]);
    assert_eq!(decide(write("third_party/library/a.c")), ["all"]);
    assert_eq!(decide(write("src/third_party/lib/a.c")), ["all"]);
    assert_eq!(decide(model::Tool::Read { path: path("a/key.pem") }), ["keys"]);
}

#[test]
fn an_operator_can_widen_one_limit_up_to_a_number() {
    let memory = r#"@id("more-memory") @reason("more-memory")
        permit (principal is User, action == Action::"widen-limit", resource == Limit::"memory")
        when { context.asked <= 17179869184 && context.profile_allows == 4294967296 };"#;
    let run_it = r#"@id("run") @reason("run")
        permit (principal, action in [Action::"run", Action::"effect"], resource);"#;
    let gate = Gate::new(policy(&[run_it, memory]));
    let decide = |change: fn(&mut Grant)| {
        let mut asked = grant();
        change(&mut asked);
        gate.decide(parse(request(user(), run(&["make"])), asked), &facts()).record().clone()
    };
    assert_eq!(decide(|grant| grant.profile.limits.memory = Bytes::gib(16)).rules, ["run", "more-memory"]);
    assert_eq!(decide(|grant| grant.profile.limits.memory = Bytes::gib(17)).verdict, Deny);
    assert_eq!(decide(|grant| grant.profile.limits.disk = Bytes::gib(16)).verdict, Deny);
}

#[test]
fn rules_see_the_program_its_environment_and_its_profile() {
    let rows = [
        (r#"context.program.name == "build.sh""#, true),
        (r#"context.program.path == "./tools/build.sh""#, true),
        ("context.program.in_workspace", true),
        (r#"context.request.environment.contains("LD_PRELOAD")"#, true),
        (r#"context.request.profile == "default""#, true),
        (r#"context.request.workspace == "read-write""#, true),
        (r#"context.approvals.isEmpty()"#, true),
        (r#"resource == Workspace::"/home/ada/project""#, true),
        (r#"principal == Agent::"deepseek-flash""#, true),
        (r#"principal == User::"deepseek-flash""#, false),
        (r#"context.request.environment.contains("so.so")"#, false),
        (r#"context.program.name == "x""#, false),
    ];
    for (condition, holds) in rows {
        let rule =
            format!(r#"forbid (principal, action == Action::"run", resource) when {{ {condition} }};"#);
        let gate = Gate::new(policy(&[ALL, &forbid("seen", "", &rule)]));
        let mut request = request(agent(), run(&["./tools/build.sh", "x"]));
        request.environment.insert("LD_PRELOAD".to_owned(), text("so.so"));
        let verdict = gate.decide(parse(request, grant()), &facts()).record().verdict;
        assert_eq!(verdict, if holds { Deny } else { Allow }, "{condition}");
    }
}

#[test]
fn a_yes_is_asked_for_and_a_narrowing_told_in_one_answer() {
    let gate = Gate::new(default_bundle()).tightened_by(LayerOf::Repository, with_review());
    let asked = parse(request(agent(), run(&["make"])), Grant { network: Network::Host, ..grant() });
    let digest = asked.digest();
    let decision = gate.decide(asked, &facts());
    assert_eq!(decision.record().verdict, RequireApproval);
    assert_eq!(decision.record().rules, ["repository/review-runs", "no-network-for-agents"]);
    assert_eq!(decision.record().grant, None);
    assert_eq!(decision.subject(), digest);
    let apply = apply(user(), ApplyMode::Clean, &[change("a", FileKind::File)], &[]);
    assert_ne!(apply.digest(), digest);
}

fn with_review() -> Arc<Policy> {
    let review = forbid(
        "review-runs",
        r#"@approval("reviewer")"#,
        r#"forbid (principal, action == Action::"run", resource) unless { context.approvals.contains("reviewer") };"#,
    );
    of_repository(&[&review])
}

#[test]
fn a_closed_gate_is_not_opened_by_a_layer() {
    let gate = Gate::closed(&GateError::Missing).tightened_by(LayerOf::Task, Arc::new(default_bundle()));
    let record = gate.decide(action(user(), run(&["true"])), &facts()).record().clone();
    assert_eq!((record.verdict, record.reason.as_str()), (Deny, "no-usable-policy"));
}

#[test]
fn a_policy_can_deny_what_the_shipped_one_lets_join() {
    let joined = OtherAction { same_task: true, progress: Progress::Running };
    let facts = Facts { joined: Some(joined), ..facts() };
    let network = Network::Joined(ActionId::from_random([9; 10]));
    let asked = || parse(request(agent(), run(&["curl"])), Grant { network: network.clone(), ..grant() });
    assert!(matches!(Gate::new(default_bundle()).decide(asked(), &facts), Decision::Allow(_)));

    let no = r#"forbid (principal is Agent, action == Action::"join-network", resource);"#;
    let with = |annotations| {
        let rules = format!("{DEFAULT_BUNDLE}\n{}", forbid("alone", annotations, no));
        Gate::new(Policy::parse(&rules).expect("fits the schema")).decide(asked(), &facts)
    };
    let denied = with("");
    assert!(matches!(denied, Decision::Deny(_)));
    assert_eq!(denied.record().rules, ["alone"]);
    let Decision::Narrow(narrowed) = with(r#"@obligation("narrow-network")"#) else { panic!("not narrowed") };
    assert_eq!(narrowed.grant().network, Network::Loopback);
}

#[test]
fn a_rule_with_a_credential_asks_whether_that_may_be_used() {
    let plain: EgressRule = "https://a.test/api/**".parse().expect("a rule");
    let with = EgressRule { credential: Some("forge".to_owned()), ..plain.clone() };
    let facts = Facts { egress: vec![plain.clone(), with.clone()], ..facts() };
    let no = r#"forbid (principal, action == Action::"use-credential", resource) when { resource.name == "forge" };"#;
    let gate = Gate::new(policy(&[ALL, &forbid("no-forge", "", no)]));
    let decide = |rule: &EgressRule| {
        let network = Network::Egress([rule.clone()].into());
        gate.decide(parse(request(user(), run(&["make"])), Grant { network, ..grant() }), &facts)
    };
    let denied = decide(&with);
    assert!(matches!(denied, Decision::Deny(_)));
    assert_eq!(denied.record().rules, ["no-forge"]);
    assert!(matches!(decide(&plain), Decision::Allow(_)));
}
