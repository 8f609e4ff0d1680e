//! What policy is told of an action beside what it asks for.
//!
//! Guarantees: there is one way to put that together, so whoever decides an action, now or ahead of it, decides on the
//! same facts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use gate::{Classes, Decision, Facts, Gate, Halted, Remembered};
use inspect::protected::classify;
use model::action::Principal;
use model::{Action, Effect, EgressRule, Profile, Tool, WorkspacePath};

use crate::Engine;
use crate::clock::now;
use crate::error::EngineError;
use crate::store::Halt;

/// An action with all that decides about it.
pub(crate) struct PendingAction {
    pub(crate) gate: Arc<Gate>,
    pub(crate) action: Action,
    pub(crate) facts: Facts,
    /// The name of the helper of ours that it is.
    pub(crate) service: Option<&'static str>,
    /// Whether it is given input, which is part of no request.
    pub(crate) with_input: bool,
}

impl PendingAction {
    pub(crate) fn decide(&self) -> Decision {
        match self.service {
            Some(service) => self.gate.decide_internal(self.action.clone(), service, &self.facts),
            None => self.gate.decide(self.action.clone(), &self.facts),
        }
    }
}

impl fmt::Debug for PendingAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingAction").field("action", self.action.id()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns everything that policy is told of an action. `profile` is the one that it names, as the operator defines it.
    pub(crate) fn facts(&self, profile: &Profile, action: &Action) -> Result<Facts, EngineError> {
        let Described { declared, classes } = describe(action);
        // Who asks for an input is who named it; what an agent asks for was named by nobody.
        let inputs = match action.request().principal {
            Principal::User(_) | Principal::Engine => action.grant().inputs.clone(),
            Principal::Agent(_) => Vec::new(),
        };
        let joined = self.joined_action(action.task(), action.grant())?;
        let (remembered, frozen) = match action.request().principal {
            Principal::User(_) | Principal::Agent(_) => self.remembered(action.task())?,
            Principal::Engine => (Vec::new(), None),
        };
        let remembered = self.as_declared(remembered, declared.iter().flatten())?;
        let halted = match action.request().principal {
            Principal::User(_) | Principal::Agent(_) => match self.halted(action)? {
                None => self.withheld(action)?,
                halted => halted,
            },
            Principal::Engine => None,
        };
        // Written out in full, so that no fact is forgotten.
        Ok(Facts {
            profile: profile.clone(),
            inputs,
            egress: self.reachable(action.start().workspace.as_path()),
            declared,
            classes,
            joined,
            remembered,
            frozen,
            halted,
            ceiling: self.ceiling_of(action)?,
            approvals: Vec::new(),
            owners: self.config().owners.clone(),
            now: now(),
        })
    }
}

impl Engine {
    /// Returns what the settings let actions of a workspace reach.
    fn reachable(&self, workspace: &Path) -> Vec<EgressRule> {
        let tables = self.config().egress.iter().filter(|table| table.is_for(workspace));
        tables.flat_map(|table| table.rules.iter().cloned()).collect()
    }

    /// Gives what was denied the words of a request that declares the same. What was remembered has tokens where secrets
    /// were, and a secret in it must not make it another effect.
    fn as_declared<'e>(
        &self,
        mut remembered: Vec<Remembered>,
        declared: impl Iterator<Item = &'e Effect>,
    ) -> Result<Vec<Remembered>, EngineError> {
        if remembered.is_empty() {
            return Ok(remembered);
        }
        for effect in declared {
            let Some(kept) = self.store().as_kept("an effect", effect)? else { continue };
            for denied in remembered.iter_mut().filter(|denied| kept.does(&denied.effect)) {
                denied.effect = effect.clone();
            }
        }
        Ok(remembered)
    }

    /// Says why an action may not start whatever policy says of it.
    fn halted(&self, action: &Action) -> Result<Option<Halted>, EngineError> {
        let task = self.store().read(|reader| reader.find_task(action.task().as_str()))?;
        Ok(self.halt(&task, &action.request().principal)?.as_ref().map(Halt::told))
    }
}

impl Halt {
    /// Returns it as policy and whoever asks are told.
    pub(crate) fn told(&self) -> Halted {
        Halted { reason: self.code().to_owned(), advice: self.why() }
    }
}

/// What an action says that it would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The effects of a command, as far as its words say; nothing for the other tools, which name their files.
    pub declared: Option<BTreeSet<Effect>>,
    /// The classes of protected paths for every path that it says it will write or remove.
    pub classes: BTreeMap<WorkspacePath, Classes>,
}

/// Reads from an action what it would do, without looking at any file.
pub fn describe(action: &Action) -> Described {
    let mut declared = declared(action);
    let changed = declared.iter().flatten().filter_map(Effect::changes);
    let codes = |path| classify(path).into_iter().map(|class| class.code().to_owned()).collect();
    let changed = action.request().tool.writes().iter().chain(changed);
    let classes: BTreeMap<_, Classes> = changed.map(|path| (path.clone(), codes(path))).collect();
    if let Some(declared) = &mut declared {
        declared.extend(gate::controls(&classes));
    }
    Described { declared, classes }
}

/// The engine's own helpers are known by their service, and by nothing else.
fn declared(action: &Action) -> Option<BTreeSet<Effect>> {
    let request = action.request();
    let (Tool::Run { argv }, Principal::User(_) | Principal::Agent(_)) = (&request.tool, &request.principal)
    else {
        return None;
    };
    let variables: Vec<&str> = request.environment.keys().map(String::as_str).collect();
    Some(effects::of_command(effects::Command {
        argv,
        directory: request.directory.as_ref(),
        workspace: action.start().workspace.as_path(),
        variables: &variables,
    }))
}
