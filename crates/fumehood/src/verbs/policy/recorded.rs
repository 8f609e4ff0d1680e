//! Requests of the record, put together again so that they can be decided again.
//!
//! Guarantees: what they are decided with is what was recorded: the request, the grant that it asked for, the effects that
//! were read from it. What cannot be had again is no case, and is said.
//! Values of variables are not on the record; no rule and no reading of effects looks at them.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Engine, describe, store::StoredAction};
use gate::Facts;
use model::action::Principal;
use model::event::{DecisionRecord, Event};
use model::grant::Network;
use model::{Action, ActionRequest, Effect, OsText, Timestamp, Tool};

use super::Context;
use super::asked::{ActionCase, Case};
use crate::error::CliError;

/// An action of the record.
pub(super) struct Recorded {
    pub(super) action: StoredAction,
    /// What was decided when it was first asked for.
    pub(super) decision: DecisionRecord,
    pub(super) case: Case,
}

/// Puts an action of the record together again, or says why that cannot be.
///
/// # Errors
/// When the record cannot be read.
pub(super) fn recorded(
    context: &Context<'_>,
    engine: &Engine,
    action: StoredAction,
) -> Result<Result<Recorded, &'static str>, CliError> {
    let records = engine.store().read(|reader| reader.records_of_action(&action.task, &action.id))?;
    let events: Vec<Event> = records.iter().filter_map(|record| record.parse_event().ok()).collect();
    let decision = events.iter().find_map(|event| match event {
        Event::Decided { decision, .. } => Some(decision.clone()),
        _ => None,
    });
    let Some(decision) = decision else { return Ok(Err("it was never decided")) };
    if action.request.is_pruned() {
        return Ok(Err("what was asked for was pruned from the record"));
    }
    if action.class != "action" {
        return Ok(Err("it is a helper of Fumehood's own"));
    }
    if events.iter().any(|event| matches!(event, Event::DenialMet { observed: false, .. })) {
        return Ok(Err("what was denied before in its task answered it"));
    }
    if matches!(action.grant.network, Network::Joined(_)) {
        return Ok(Err("whether the action that it joined ran then is not kept"));
    }
    Ok(again(context, &action, &events).map(|case| Recorded { action, decision, case }))
}

fn again(context: &Context<'_>, action: &StoredAction, events: &[Event]) -> Result<Case, &'static str> {
    let profile = context
        .settings
        .profile(Some(&action.grant.profile.name))
        .map_err(|_| "your settings do not have its profile any more")?
        .profile;
    let asked = action.request.clone();
    let environment: BTreeMap<String, OsText> =
        asked.environment.into_iter().map(|(name, _)| (name, OsText::literal(""))).collect();
    let request = ActionRequest {
        principal: asked.principal,
        tool: asked.tool,
        directory: asked.directory,
        environment,
        purpose: asked.purpose,
    };
    let (id, task) = (action.id.clone(), action.task.clone());
    let action = Action::parse(id, task, request, action.grant.clone(), action.start.clone())
        .map_err(|_| "its request is not one any more")?;
    let declared: BTreeSet<Effect> = events.iter().find_map(declared).unwrap_or_default();
    let effects = declared.iter().cloned().collect();
    let inputs = match action.request().principal {
        Principal::User(_) | Principal::Engine => action.grant().inputs.clone(),
        Principal::Agent(_) => Vec::new(),
    };
    let facts = Facts {
        inputs,
        declared: matches!(action.request().tool, Tool::Run { .. }).then_some(declared),
        classes: describe(&action).classes,
        ..Facts::new(profile, Timestamp::from_nanos(1))
    };
    Ok(Case::Action(Box::new(ActionCase { action, facts, effects })))
}

fn declared(event: &Event) -> Option<BTreeSet<Effect>> {
    match event {
        Event::Requested { declared, .. } => Some(declared.iter().cloned().collect()),
        _ => None,
    }
}
