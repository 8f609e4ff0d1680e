//! What a gate answers to an agent in a workspace that is only named: nothing runs, and no file is looked at.

use engine::describe;
use gate::{Decision, Facts, Gate, Remembered};
use model::action::{Base, Principal, StartingPoint};
use model::{Action, ActionId, ActionRequest, Grant, OsText, Profile, TaskId, Timestamp, Tool};

/// Decides about a tool with these variables, where this was denied before.
pub(crate) fn decide_tool(
    gate: &Gate,
    tool: Tool,
    variables: &[String],
    remembered: &[Remembered],
) -> Decision {
    let profile = Profile::default_profile();
    let request = ActionRequest {
        principal: Principal::Agent("an agent".to_owned()),
        tool,
        directory: None,
        environment: variables.iter().map(|name| (name.clone(), OsText::literal("x"))).collect(),
        purpose: None,
    };
    let start = StartingPoint {
        workspace: OsText::literal("/home/ada/project"),
        base: Base::Live,
        layers: Vec::new(),
    };
    let (id, task) = (ActionId::from_random([1; 10]), TaskId::from_random([2; 10]));
    let action = Action::parse(id, task, request, Grant::under(profile.clone()), start).expect("parses");
    let described = describe(&action);
    let facts = Facts {
        declared: described.declared,
        classes: described.classes,
        remembered: remembered.to_vec(),
        ..Facts::new(profile, Timestamp::from_nanos(1))
    };
    gate.decide(action, &facts)
}
