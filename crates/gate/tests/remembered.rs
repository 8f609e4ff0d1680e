//! What was denied before is denied again, whatever the rules say of the words that it is asked for in now.

mod common;

use common::*;
use gate::{Approval, Facts, Gate, Policy, Remembered};
use model::action::Principal;
use model::event::Verdict;
use model::{Effect, Place, Timestamp};

fn gate() -> Gate {
    Gate::new(Policy::default_bundle().expect("can be used"))
}

fn remembered(effect: Effect) -> Remembered {
    Remembered {
        effect,
        reason: "not-that".to_owned(),
        rules: vec!["no-docs".to_owned()],
        advice: "leave it".to_owned(),
        person_may_allow: true,
    }
}

fn deletes(name: &str) -> Effect {
    Effect::Delete { place: Place::Path(path(name)) }
}

fn knowing(effect: Effect) -> Facts {
    Facts { declared: Some([effect].into()), ..facts() }
}

#[test]
fn another_way_to_what_was_denied_gets_the_same_answer_and_a_neighbour_does_not() {
    let before = vec![remembered(deletes("docs"))];
    let decide = |effect: Effect| {
        let facts = Facts { remembered: before.clone(), ..knowing(effect) };
        gate().decide(action(agent(), run(&["tidy"])), &facts).record().clone()
    };
    let record = decide(deletes("docs/page"));
    assert_eq!((record.verdict, record.reason.as_str()), (Verdict::Deny, "not-that"));
    assert_eq!(
        (record.rules, record.advice, record.person_may_allow),
        (vec!["no-docs".into()], "leave it".into(), true)
    );
    assert_eq!(decide(deletes("src/page")).verdict, Verdict::Allow);
    assert_eq!(decide(Effect::Read { place: Place::Path(path("docs/page")) }).verdict, Verdict::Allow);
}

#[test]
fn a_program_that_was_denied_is_known_by_any_of_its_names() {
    let before = vec![remembered(Effect::Run { program: "curl".to_owned() })];
    for (argv, verdict) in [(&["/usr/bin/curl", "x"], Verdict::Deny), (&["curly", "x"], Verdict::Allow)] {
        let facts = Facts { declared: Some([].into()), remembered: before.clone(), ..facts() };
        assert_eq!(gate().decide(action(agent(), run(argv)), &facts).record().verdict, verdict, "{argv:?}");
    }
}

#[test]
fn a_persons_yes_to_this_very_action_goes_before_the_memory() {
    let action = action(agent(), run(&["tidy"]));
    let yes = Approval {
        subject: action.digest(),
        approver: user(),
        account: ADA,
        role: "person".to_owned(),
        expires: Timestamp::from_nanos(NOW.as_nanos() + 1),
    };
    let before = vec![remembered(deletes("docs"))];
    let facts = Facts { remembered: before, approvals: vec![yes], ..knowing(deletes("docs")) };
    assert_eq!(gate().decide(action, &facts).record().verdict, Verdict::Allow);
}

#[test]
fn nothing_runs_in_a_frozen_task_but_our_own_helpers() {
    let facts = Facts {
        frozen: Some(remembered(deletes("docs"))),
        ..knowing(Effect::Read { place: Place::Workspace })
    };
    for tool in [run(&["true"]), write("a"), model::Tool::Read { path: path("a") }] {
        let record = gate().decide(action(user(), tool), &facts).record().clone();
        assert_eq!((record.verdict, record.reason.as_str()), (Verdict::Deny, "not-that"));
        assert!(record.advice.contains("task resume"), "{}", record.advice);
    }
    let helper = action(Principal::Engine, run(&["git", "status"]));
    assert_eq!(gate().decide_internal(helper, "git", &facts).record().verdict, Verdict::Allow);
}

#[test]
fn what_was_seen_is_refused_as_what_is_said() {
    let forbid = |id: &str, lifts: &str, rule: &str| {
        format!(
            r#"@id("{id}") @reason("{id}") @advice("no") @person_may_allow("true") {lifts} forbid (principal, {rule};"#
        )
    };
    let docs = forbid(
        "docs-stay",
        "",
        r#"action == Action::"delete-path", resource) when { resource in Path::"docs" }"#,
    );
    let asks = forbid(
        "hooks-ask",
        r#"@approval("person")"#,
        r#"action == Action::"change-control", resource) unless { context.approvals.contains("person") }"#,
    );
    let rules = format!("{}\n{docs}\n{asks}", gate::DEFAULT_BUNDLE);
    let gate = Gate::new(Policy::parse(&rules).expect("can be used"));
    let act = action(agent(), run(&["make"]));
    let refused = |effect: Effect| {
        let refused = gate.refused_of(&act, act.grant(), &facts(), [&effect]);
        refused.into_iter().map(|refused| refused.reason).collect::<Vec<_>>()
    };
    assert_eq!(refused(deletes("docs/page")), ["docs-stay"]);
    assert_eq!(refused(deletes("src/page")), [""; 0]);
    // What somebody could have said yes to is asked about when it is applied.
    assert_eq!(refused(Effect::ChangeControl { control: "hooks".to_owned() }), [""; 0]);
    assert_eq!(
        Gate::closed(&gate::GateError::Missing)
            .refused_of(&act, act.grant(), &facts(), [&deletes("x")])
            .len(),
        1
    );
}
