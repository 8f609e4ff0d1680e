//! A yes becomes a permit by the receipt of exactly its own record, and by no other.

mod common;

use common::*;
use gate::{ApplyMode, Authorization, Decision, Gate, Policy, ReceiptMismatch};
use model::grant::Network;
use model::{Action, Event, FileKind, Grant};

fn gate() -> Gate {
    Gate::new(Policy::default_bundle().expect("the shipped bundle can be used"))
}

fn allowed(action: Action) -> (Event, Authorization) {
    let decision = gate().decide(action, &facts());
    let event = decision.event();
    match decision {
        Decision::Allow(authorization) | Decision::Narrow(authorization) => (event, authorization),
        other => panic!("not allowed: {other:?}"),
    }
}

fn refused(authorization: Authorization, event: &Event) {
    assert_eq!(authorization.recorded(&record(event)).err(), Some(ReceiptMismatch));
}

#[test]
fn the_receipt_of_its_own_record_makes_a_permit_for_action_and_grant() {
    let asked = Grant { network: Network::Host, ..grant() };
    let action = parse(request(agent(), run(&["make"])), asked);
    let (event, authorization) = allowed(action.clone());
    let permit = authorization.recorded(&record(&event)).expect("the receipt is its own");
    assert_eq!(permit.action(), &action);
    assert_eq!(permit.grant(), &grant(), "the narrowed grant, not the one that was asked for");
    assert_eq!(permit.spend().into_parts(), (action, grant()));
}

#[test]
fn the_receipt_of_another_action_is_refused() {
    let (_, authorization) = allowed(action(user(), run(&["make"])));
    let (other, _) = allowed(action(user(), run(&["make", "install"])));
    refused(authorization, &other);
}

#[test]
fn the_receipt_of_the_same_request_made_another_time_is_refused() {
    let (event, authorization) = allowed(action(user(), run(&["make"])));
    let mut about = gate::Subject::about(authorization.subject());
    about.action = Some(model::ActionId::from_random([9; 10]));
    assert_eq!(authorization.recorded(&record_about(&about, &event)).err(), Some(ReceiptMismatch));
}

#[test]
fn the_receipt_of_another_decision_about_the_same_action_is_refused() {
    let (event, authorization) = allowed(action(user(), run(&["make"])));
    let Event::Decided { digest, mut decision } = event else { panic!("not a decision") };
    decision.grant = Some(Grant { network: Network::Host, ..grant() });
    refused(authorization, &Event::Decided { digest, decision });
}

#[test]
fn the_receipt_of_a_denial_or_of_another_step_is_refused() {
    let tool = write(".git/hooks/pre-push");
    let denied = gate().decide(action(agent(), tool.clone()), &facts_with(&tool, &["hooks"]));
    let (_, authorization) = allowed(action(user(), run(&["make"])));
    refused(authorization, &denied.event());
    let (_, authorization) = allowed(action(user(), run(&["make"])));
    refused(authorization, &Event::Removed { layers: Vec::new(), bases: Vec::new(), classes: Vec::new() });
}

#[test]
fn applying_takes_the_same_way() {
    let changes = [change("a.rs", FileKind::File)];
    let decision = gate().decide_apply(apply(user(), ApplyMode::Clean, &changes, &[]), &[], &owners(), NOW);
    let event = decision.event();
    let Decision::Allow(authorization) = decision else { panic!("not allowed") };
    let about = gate::Subject::about(authorization.subject());
    let permit = authorization.recorded(&record_about(&about, &event)).expect("the receipt is its own");
    assert_eq!(permit.subject().principal(), &user());
    assert_eq!(
        gate::Subject::digest(&permit.spend()),
        gate::Subject::digest(&apply(user(), ApplyMode::Ask, &changes, &[]))
    );
}

#[test]
fn what_an_action_holds_is_not_shown_by_debugging() {
    let mut request = request(user(), run(&["make"]));
    request.environment.insert("TOKEN".to_owned(), text("s3cret-value"));
    let decision = gate().decide(parse(request, grant()), &facts());
    assert!(!format!("{decision:?}").contains("s3cret"));
    let event = decision.event();
    let Decision::Allow(authorization) = decision else { panic!("not allowed") };
    let permit = authorization.recorded(&record(&event)).expect("the receipt is its own");
    assert!(!format!("{permit:?}{:?}", permit.subject()).contains("s3cret"));
}
