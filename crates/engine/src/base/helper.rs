//! Helpers of the engine's own: programs that we run for ourselves, on the same path as everything else.

use model::action::Principal;
use model::grant::{Input, WorkspaceAccess};
use model::task::Task;
use model::{ActionRequest, Grant, OsText, Profile, Tool};
use sandbox::{Io, Silent};

use crate::error::EngineError;
use crate::handle::Manner;
use crate::outcome::Outcome;
use crate::{Engine, Order, Workspace};

/// A program that we run for ourselves. It leaves artifacts.
#[derive(Debug, Clone)]
pub struct Helper {
    /// The name by which policy knows it.
    pub service: &'static str,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its variables.
    pub environment: Vec<(String, String)>,
    /// What it may use.
    pub profile: Profile,
    /// What it reads.
    pub workspace: Workspace,
    /// How it sees that.
    pub sees: Sees,
    /// What else it reads.
    pub inputs: Vec<Input>,
}

/// How a helper sees the workspace. Nothing that it writes is part of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// The host's directory as it stands, read-only.
    Host,
    /// The host's directory as it stands, with a layer of its own over it.
    HostWritable,
    /// What the task made of it, read-only.
    Task,
}

impl Engine {
    /// Runs a helper of ours: decided as class `internal`, recorded, in a proved sandbox.
    ///
    /// # Errors
    /// When the engine itself fails.
    pub fn help(&self, task: &Task, helper: Helper) -> Result<Outcome, EngineError> {
        let text = |text: String| {
            OsText::new(text.into_bytes()).map_err(|error| EngineError::Nothing(error.to_string()))
        };
        let environment = helper.environment.into_iter().map(|(name, value)| Ok((name, text(value)?)));
        let request = ActionRequest {
            principal: Principal::Engine,
            tool: Tool::Run { argv: helper.argv.into_iter().map(text).collect::<Result<_, _>>()? },
            directory: None,
            environment: environment.collect::<Result<_, EngineError>>()?,
            purpose: None,
        };
        let mut grant = Grant { inputs: helper.inputs, ..Grant::under(helper.profile.clone()) };
        if helper.sees != Sees::HostWritable {
            grant.workspace = WorkspaceAccess::ReadOnly;
        }
        let order =
            Order { request, grant, profile: helper.profile, workspace: helper.workspace, mutant: None };
        let io = Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None };
        let manner =
            Manner { service: Some(helper.service), on_layers: helper.sees == Sees::Task, call: None };
        self.take(task, order, manner, io, || {})
    }
}
