//! What was wanted of a task, and the document of `task new`.

use std::time::Duration;

use model::grant::WorkspaceAccess;
use model::intake::{Intake, Sensitivity};
use model::{OsText, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{LimitsPart, Moment, Name, TaskRow, moment_or_none, who};

/// `task new --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskNewDocument {
    /// The task; `null` when the request was refused.
    pub task: Option<TaskRow>,
    /// What is wanted of it.
    pub intake: IntakePart,
    /// What the request lacks for its level, one sentence for each.
    pub lacks: Vec<String>,
}

/// What was wanted of a task when it was opened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct IntakePart {
    /// Who wants it.
    pub user: String,
    /// The agent that is to do it.
    pub agent: Option<String>,
    /// The repository.
    #[schemars(with = "Name")]
    pub repository: OsText,
    /// The branch that was checked out there.
    pub branch: Option<String>,
    /// `public`, `internal`, `confidential` or `restricted`, as the operator says.
    #[schemars(with = "String")]
    pub sensitivity: Sensitivity,
    /// What is wanted, in the words of who wants it: a claim.
    pub claimed_outcome: Option<String>,
    /// How far it may go, from 1 to 6.
    pub level: u8,
    /// Whether its actions may write to the workspace.
    pub writes: bool,
    /// Whether policy may give it a network.
    pub network: bool,
    /// The most that one action may use.
    pub limits: LimitsPart,
    /// The most actions.
    pub max_actions: Option<u64>,
    /// The most processor time of all actions together.
    #[serde(serialize_with = "milliseconds_or_none")]
    #[schemars(with = "Option<f64>")]
    pub max_processor_time_ms: Option<Duration>,
    /// The most tokens.
    pub max_tokens: Option<u64>,
    /// When it ends.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub deadline: Option<Timestamp>,
    /// The paths that may change; none means all.
    pub paths: Vec<String>,
    /// The kinds of change that may be; none means all.
    pub kinds: Vec<String>,
    /// Commands that fail before and must succeed after.
    pub tests: Vec<Vec<String>>,
    /// Artifacts that must be there.
    pub artifacts: Vec<String>,
}

impl IntakePart {
    /// Makes the part of what was wanted.
    pub fn of(intake: &Intake) -> Self {
        let Intake {
            user,
            agent,
            repository,
            branch,
            sensitivity,
            outcome,
            ceiling,
            budget,
            deadline,
            acceptance,
        } = intake.clone();
        Self {
            user: who(&user),
            agent,
            repository,
            branch,
            sensitivity,
            claimed_outcome: outcome,
            level: ceiling.level.number(),
            writes: ceiling.workspace == WorkspaceAccess::ReadWrite,
            network: ceiling.network,
            limits: LimitsPart::from(&ceiling.limits),
            max_actions: budget.actions,
            max_processor_time_ms: budget.processor_time,
            max_tokens: budget.tokens,
            deadline,
            paths: acceptance.paths,
            kinds: acceptance.kinds.iter().map(ToString::to_string).collect(),
            tests: acceptance.tests,
            artifacts: acceptance.artifacts,
        }
    }
}

fn milliseconds_or_none<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => super::milliseconds(time, to),
        None => to.serialize_none(),
    }
}
