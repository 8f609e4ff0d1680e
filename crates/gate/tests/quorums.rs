//! Quorums: how many people must say yes, who of them counts, and that nothing else makes up for one who did not.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use common::*;
use gate::{Approval, Decision, Facts, Gate, Policy};
use model::action::Principal;
use model::event::Verdict::{Allow, Deny, RequireApproval};
use model::{Action, Digest, Profile, Quorum, Timestamp};
use proptest::prelude::*;

const GRACE: u32 = 1001;
const LIN: u32 = 1002;

/// Rules under which everything may run when these quorums say yes.
fn gate(wanted: &[&str]) -> Gate {
    let mut text = r#"@id("all") @reason("all") permit (principal, action, resource);"#.to_owned();
    for (number, quorum) in wanted.iter().enumerate() {
        text.push_str(&format!(
            r#"@id("ask-{number}") @reason("asks") @advice("ask") @person_may_allow("true") @approval("{quorum}")
               forbid (principal, action == Action::"run", resource) unless {{ context.approvals.contains("{quorum}") }};"#
        ));
    }
    Gate::new(Policy::parse(&text).expect("fits the schema"))
}

fn asked() -> Action {
    action(agent(), run(&["make"]))
}

fn yes(account: u32, role: &str) -> Approval {
    Approval {
        subject: asked().digest(),
        approver: Principal::User(format!("user-{account}")),
        account,
        role: role.to_owned(),
        expires: Timestamp::from_nanos(NOW.as_nanos() + 1),
    }
}

fn decide(gate: &Gate, approvals: &[Approval]) -> Decision {
    gate.decide(asked(), &Facts { approvals: approvals.to_vec(), ..facts() })
}

/// Returns whose yes is missing.
fn missing(decision: &Decision) -> BTreeSet<Quorum> {
    match decision {
        Decision::RequireApproval(request) => request.quorums().clone(),
        other => panic!("{:?}", other.record()),
    }
}

#[test]
fn two_different_people_are_two_accounts() {
    let gate = gate(&["release-manager:2"]);
    let (ada, grace) = (yes(ADA, "release-manager"), yes(GRACE, "release-manager"));
    assert_eq!(missing(&decide(&gate, &[])), quorums(&["release-manager:2"]));
    for one in [&[ada.clone()][..], &[ada.clone(), ada.clone()]] {
        assert_eq!(missing(&decide(&gate, one)), quorums(&["release-manager:2"]));
    }
    let renamed = Approval { approver: Principal::User("someone-else".to_owned()), ..ada.clone() };
    assert!(matches!(decide(&gate, &[ada.clone(), renamed]), Decision::RequireApproval(_)), "one account");
    let elsewhere = yes(GRACE, "operator");
    assert!(matches!(decide(&gate, &[ada.clone(), elsewhere]), Decision::RequireApproval(_)), "another role");
    assert_eq!(decide(&gate, &[ada.clone(), grace]).record().verdict, Allow);
    // The same name twice in the user database is two accounts, and one number is one person.
    let namesake = Approval { account: LIN, ..ada.clone() };
    assert_eq!(decide(&gate, &[ada, namesake]).record().verdict, Allow);
}

#[test]
fn the_owner_counts_where_policy_does_not_keep_them_apart() {
    let (ada, grace) = (yes(ADA, "person"), yes(GRACE, "person"));
    assert_eq!(decide(&gate(&["person"]), std::slice::from_ref(&ada)).record().verdict, Allow);
    let apart = gate(&["person:not-owner"]);
    assert_eq!(missing(&decide(&apart, std::slice::from_ref(&ada))), quorums(&["person:not-owner"]));
    assert_eq!(decide(&apart, std::slice::from_ref(&grace)).record().verdict, Allow);
    let two = gate(&["person:2:not-owner"]);
    assert!(matches!(decide(&two, &[ada, grace.clone()]), Decision::RequireApproval(_)));
    assert_eq!(decide(&two, &[grace, yes(LIN, "person")]).record().verdict, Allow);
}

#[test]
fn where_nobody_says_who_the_owner_is_nobody_counts_as_another() {
    let apart = gate(&["person:not-owner"]);
    let facts =
        Facts { approvals: vec![yes(GRACE, "person")], ..Facts::new(Profile::default_profile(), NOW) };
    assert!(facts.owners.is_empty());
    assert_eq!(apart.decide(asked(), &facts).record().verdict, RequireApproval);
}

#[test]
fn of_two_quorums_where_one_covers_the_other_the_larger_is_asked_for() {
    let both = gate(&["operator", "operator:2:not-owner", "security"]);
    let request = decide(&both, &[]);
    assert_eq!(missing(&request), quorums(&["operator:2:not-owner", "security"]));
    let operators = [yes(GRACE, "operator"), yes(LIN, "operator")];
    assert_eq!(missing(&decide(&both, &operators)), quorums(&["security"]));
    let all = [&operators[..], &[yes(LIN, "security")]].concat();
    assert_eq!(decide(&both, &all).record().verdict, Allow);
    // Neither of these covers the other.
    let apart = gate(&["operator:3", "operator:not-owner"]);
    assert_eq!(missing(&decide(&apart, &[])), quorums(&["operator:3", "operator:not-owner"]));
}

#[test]
fn an_action_is_tried_before_several_people_are_asked() {
    let gate = gate(&["release-manager:2:not-owner"]);
    let Decision::RequireApproval(request) = decide(&gate, &[]) else { panic!("not asked") };
    let trial = gate.decide_trial(asked(), &facts(), &request);
    assert!(matches!(trial, Decision::Allow(_) | Decision::Narrow(_)), "{:?}", trial.record());
}

#[test]
fn a_rule_that_asks_for_nobody_anybody_could_be_is_refused_when_the_policy_loads() {
    for wrong in ["release-manager:1", "release-manager:10", "Release", "a:not-owner:2", "a:owner", ""] {
        let rule = format!(
            r#"@id("all") @reason("all") permit (principal, action, resource);
               @id("ask") @reason("asks") @advice("ask") @person_may_allow("true") @approval("{wrong}")
               forbid (principal, action == Action::"run", resource);"#
        );
        let error = Policy::parse(&rule).expect_err("is refused").to_string();
        assert!(error.contains("`@approval`"), "{wrong}: {error}");
    }
}

#[test]
fn a_quorum_that_policy_does_not_take_is_not_asked_for() {
    // It asks for one person, and its condition wants two.
    let text = r#"@id("all") @reason("all") permit (principal, action, resource);
        @id("ask") @reason("asks") @advice("ask") @person_may_allow("true") @approval("operator")
        forbid (principal, action == Action::"run", resource) unless { context.approvals.contains("operator:2") };"#;
    let gate = Gate::new(Policy::parse(text).expect("fits the schema"));
    assert_eq!(decide(&gate, &[]).record().verdict, Deny);
    assert_eq!(decide(&gate, &[yes(ADA, "operator")]).record().verdict, Deny);
}

fn wanted() -> impl Strategy<Value = Quorum> {
    let role = prop_oneof![Just("person"), Just("operator")];
    (role, 1..4usize, any::<bool>()).prop_map(|(role, people, apart)| {
        let one = Quorum::of(role).expect("a role");
        let one = if apart { one.without_owner() } else { one };
        one.made_by(people).expect("a quorum")
    })
}

fn given() -> impl Strategy<Value = Vec<Approval>> {
    let role = prop_oneof![Just("person"), Just("operator"), Just("operator:2"), Just("")];
    prop::collection::vec((ADA..ADA + 4, role).prop_map(|(account, role)| yes(account, role)), 0..6)
}

/// Gates by what they want: reading a policy takes far longer than asking it.
static GATES: LazyLock<Mutex<BTreeMap<Vec<String>, Gate>>> = LazyLock::new(Mutex::default);

fn allows(wanted: &[Quorum], approvals: &[Approval]) -> bool {
    let texts: Vec<String> = wanted.iter().map(Quorum::to_string).collect();
    let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    let gate = gates
        .entry(texts.clone())
        .or_insert_with(|| gate(&texts.iter().map(String::as_str).collect::<Vec<_>>()));
    decide(gate, approvals).record().verdict == Allow
}

/// Counts people one by one, as the documentation says it.
fn is_enough(wanted: &Quorum, approvals: &[Approval]) -> bool {
    let mut people: Vec<u32> = Vec::new();
    for approval in approvals.iter().filter(|approval| approval.role == wanted.role()) {
        let is_kept_apart = wanted.is_without_owner() && approval.account == ADA;
        if !is_kept_apart && !people.contains(&approval.account) {
            people.push(approval.account);
        }
    }
    people.len() >= usize::from(wanted.people())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn it_is_allowed_when_so_many_different_people_said_yes_and_never_else(wanted in wanted(), given in given()) {
        prop_assert_eq!(allows(std::slice::from_ref(&wanted), &given), is_enough(&wanted, &given));
    }

    #[test]
    fn the_same_person_never_counts_twice(wanted in wanted(), given in given(), which in any::<prop::sample::Index>()) {
        prop_assume!(!given.is_empty());
        let again = Approval { approver: Principal::User("other name".to_owned()), ..which.get(&given).clone() };
        let twice = [&given[..], &[again]].concat();
        prop_assert_eq!(allows(std::slice::from_ref(&wanted), &given), allows(&[wanted], &twice));
    }

    #[test]
    fn a_yes_to_something_else_that_has_expired_or_is_no_persons_never_counts(wanted in wanted(), more in given(), which in 0..4) {
        let subject = Digest::from_bytes([7; 32]);
        let none = more.into_iter().map(|approval| match which {
            0 => Approval { subject, ..approval },
            1 => Approval { expires: NOW, ..approval },
            2 => Approval { approver: agent(), ..approval },
            _ => Approval { approver: Principal::Engine, ..approval },
        });
        prop_assert!(!allows(&[wanted], &none.collect::<Vec<_>>()));
    }

    #[test]
    fn the_owner_never_counts_where_policy_keeps_them_apart(wanted in wanted(), given in given(), role in "person|operator") {
        prop_assume!(wanted.is_without_owner());
        let with_owner = [&given[..], &[yes(ADA, &role)]].concat();
        prop_assert_eq!(allows(std::slice::from_ref(&wanted), &given), allows(&[wanted], &with_owner));
    }

    #[test]
    fn one_more_rule_that_asks_never_widens(one in wanted(), other in wanted(), given in given()) {
        prop_assert!(!allows(&[one.clone(), other], &given) || allows(&[one], &given));
    }
}
