//! Trials: what an action gets before a person said yes to it, and that it is never more than a yes would give.

mod common;

use common::*;
use gate::{Approval, ApprovalRequest, Decision, Facts, Gate, Policy};
use model::event::{Event, Verdict};
use model::grant::{Network, WorkspaceAccess};
use model::id::LogId;
use model::{Action, Effect, Grant, Place, Quorum, Timestamp};

fn cautious() -> Gate {
    Gate::new(Policy::bundle("cautious").expect("is known").expect("can be used"))
}

fn with(rules: &str) -> Gate {
    let text = Policy::bundle("cautious").map(|_| gate::BUNDLES[1].1).expect("is known");
    Gate::new(Policy::parse(&format!("{text}\n{rules}")).expect("a policy"))
}

/// A command that writes, and what is known of it.
fn writes(change: impl FnOnce(&mut Grant)) -> (Action, Facts) {
    let tool = run(&["make"]);
    let mut grant = grant();
    change(&mut grant);
    let file = path("made");
    let declared = [Effect::Write { place: Place::Path(file.clone()) }].into();
    let mut facts = facts_with(&tool, &[]);
    facts.declared = Some(declared);
    facts.classes.insert(file, [].into());
    (parse(request(agent(), tool), grant), facts)
}

fn asks(gate: &Gate, action: &Action, facts: &Facts) -> ApprovalRequest {
    match gate.decide(action.clone(), facts) {
        Decision::RequireApproval(request) => request,
        other => panic!("{:?}", other.record()),
    }
}

#[test]
fn a_trial_gets_what_a_yes_would_give_and_nothing_that_reaches_out() {
    let gate = cautious();
    let (action, facts) = writes(|_| {});
    let request = asks(&gate, &action, &facts);
    let trial = gate.decide_trial(action.clone(), &facts, &request);
    let Decision::Narrow(yes) = &trial else { panic!("{:?}", trial.record()) };
    assert_eq!(yes.grant().workspace, WorkspaceAccess::ReadWrite, "a yes would let it write");
    assert_eq!((yes.grant().network.clone(), yes.grant().terminal), (Network::Loopback, false));
    assert_eq!(trial.record().rules, ["try-first"]);
    assert_eq!(trial.record().reason, "tried-before-a-yes");
    let yes = |quorum: &Quorum| Approval {
        subject: action.digest(),
        approver: user(),
        account: ADA,
        role: quorum.role().to_owned(),
        expires: Timestamp::from_nanos(NOW.as_nanos() + 1),
    };
    let approvals = request.quorums().iter().map(yes).collect();
    let approved = gate.decide(action, &Facts { approvals, ..facts });
    assert_eq!(approved.record().verdict, Verdict::Allow);
    assert_eq!(approved.record().grant, trial.record().grant, "what was tried is what a yes gives");
}

#[test]
fn a_trial_never_has_network_credentials_or_a_terminal() {
    // Rules under which a person may allow all of it.
    let gate = with(
        r#"@id("more") @reason("more") permit (principal, action in [Action::"use-network", Action::"show-credential", Action::"use-terminal"], resource);"#,
    );
    let (action, facts) = writes(|grant| grant.terminal = true);
    let request = asks(&gate, &action, &facts);
    let trial = gate.decide_trial(action, &facts, &request);
    let grant = trial.record().grant.clone().expect("is tried");
    assert!(!grant.terminal && grant.network == Network::Loopback && grant.shown_credentials.is_empty());
}

#[test]
fn a_yes_to_a_trial_is_recorded_as_one_and_is_no_yes_to_the_action() {
    let gate = cautious();
    let (action, facts) = writes(|_| {});
    let request = asks(&gate, &action, &facts);
    let trial = gate.decide_trial(action.clone(), &facts, &request);
    assert!(matches!(trial.event(), Event::TrialDecided { digest, .. } if digest == action.digest()));
    let Decision::Narrow(yes) = trial else { panic!("is tried") };
    let log = audit::Log::open(audit::MemoryStorage::new(LogId::from_random([3; 10]))).expect("a log");
    let about = model::Subject { task: Some(action.task().clone()), action: Some(action.id().clone()) };
    // The same words, recorded as if the action itself had been allowed.
    let Event::TrialDecided { digest, decision } = yes.event() else { panic!("is a trial") };
    let forged = log.append(&about, &Event::Decided { digest, decision }, facts.now).expect("is written");
    assert!(yes.recorded(&forged).is_err(), "a receipt for another event makes no permit");
}

#[test]
fn what_no_yes_could_allow_and_what_policy_does_not_want_tried_is_not_tried() {
    let gate = cautious();
    let (action, facts) = writes(|_| {});
    let request = asks(&gate, &action, &facts);
    let (other, _) = writes(|grant| grant.terminal = true);
    let trial = gate.decide_trial(other, &facts, &request);
    assert_eq!(trial.record().verdict, Verdict::Deny, "the request is about another action");
    let untried = with(
        r#"@id("no-trial") @reason("no-trial") @advice("ask") @person_may_allow("false") forbid (principal, action == Action::"try", resource);"#,
    );
    let request = asks(&untried, &action, &facts);
    let trial = untried.decide_trial(action, &facts, &request);
    assert_eq!((trial.record().verdict, trial.record().reason.as_str()), (Verdict::Deny, "no-trial"));
    assert_eq!(trial.record().grant, None);
}
