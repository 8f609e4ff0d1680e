//! The ceiling of a task and what stops it: both come before policy, and neither ever widens anything.

mod common;

use common::*;
use gate::{Facts, Gate, Halted, Policy};
use model::event::Verdict;
use model::grant::{Network, WorkspaceAccess};
use model::intake::{Ceiling, WorkLevel};
use model::{Grant, Profile, Tool};

fn gate() -> Gate {
    Gate::new(Policy::default_bundle().expect("can be used"))
}

fn ceiling(level: u8, workspace: WorkspaceAccess) -> Ceiling {
    let level = WorkLevel::try_from(level).expect("a level");
    Ceiling { level, workspace, network: false, limits: Profile::strict().limits }
}

fn below(ceiling: Ceiling, tool: &Tool) -> Facts {
    let declared = matches!(tool, Tool::Run { .. }).then(|| [].into());
    Facts { ceiling: Some(ceiling), declared, ..facts_with(tool, &["src/a"]) }
}

#[test]
fn a_grant_is_no_wider_than_the_ceiling_of_its_task_and_the_record_says_so() {
    let tool = run(&["true"]);
    let facts = below(ceiling(3, WorkspaceAccess::ReadOnly), &tool);
    let asked = Grant { network: Network::Loopback, ..Grant::under(facts.profile.clone()) };
    let action = parse(request(agent(), tool), asked.clone());
    let record = gate().decide(action, &facts).record().clone();
    let granted = record.grant.expect("is allowed");
    assert_eq!((record.verdict, record.reason.as_str()), (Verdict::Narrow, "task-ceiling"));
    assert_eq!(granted.workspace, WorkspaceAccess::ReadOnly);
    assert!(granted.profile.limits.wider_than(&Profile::strict().limits).is_empty());
    assert!(granted.profile.limits.wider_than(&asked.profile.limits).is_empty());
}

#[test]
fn at_level_one_nothing_is_written_and_no_program_runs_and_reading_goes_on() {
    let facts = |tool: &Tool| below(ceiling(1, WorkspaceAccess::ReadOnly), tool);
    for tool in [write("src/a"), patch(&["src/a"]), run(&["true"])] {
        let record = gate().decide(action(agent(), tool.clone()), &facts(&tool)).record().clone();
        assert_eq!((record.verdict, record.reason.as_str()), (Verdict::Deny, "task-ceiling"), "{tool:?}");
    }
    let read = Tool::Read { path: path("src/a") };
    let verdict = gate().decide(action(agent(), read.clone()), &facts(&read)).record().verdict;
    assert!(matches!(verdict, Verdict::Allow | Verdict::Narrow), "{verdict:?}");
}

#[test]
fn what_a_person_stopped_is_denied_whatever_policy_says_and_our_helpers_are_not() {
    let halted = Halted { reason: "held".to_owned(), advice: "ada stopped everything".to_owned() };
    let facts = Facts { halted: Some(halted), declared: Some([].into()), ..facts() };
    for who in [user(), agent()] {
        let record = gate().decide(action(who, run(&["true"])), &facts).record().clone();
        assert_eq!((record.verdict, record.reason.as_str()), (Verdict::Deny, "held"));
        assert_eq!(record.advice, "ada stopped everything");
    }
    let helper = action(model::action::Principal::Engine, run(&["git", "status"]));
    assert_ne!(gate().decide_internal(helper, "git", &facts).record().reason, "held");
}
