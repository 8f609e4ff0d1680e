//! What is known of the action whose network another one is to join.

use gate::{OtherAction, Progress};
use model::{Event, Grant, TaskId};

use crate::Engine;
use crate::error::EngineError;
use crate::store::{ActionState, StoreError};

/// How far back forks of forks are followed.
const FORKS_MAX: usize = 100;

impl Engine {
    /// Returns what is known of the action whose network is asked for in a task.
    pub(crate) fn joined_action(
        &self,
        task: &TaskId,
        grant: &Grant,
    ) -> Result<Option<OtherAction>, EngineError> {
        let Some(id) = grant.network.joined() else { return Ok(None) };
        let Some(other) = self.store().read(|reader| reader.action(id))? else { return Ok(None) };
        let progress = match other.state {
            ActionState::Requested | ActionState::Decided => Progress::NotStarted,
            ActionState::Started => Progress::Running,
            ActionState::Denied
            | ActionState::NotStarted
            | ActionState::Ended
            | ActionState::Tried
            | ActionState::Unknown => Progress::Ended,
        };
        let given = other.decision.and_then(|decision| decision.grant);
        if let Some(first) = given.as_ref().and_then(|grant| grant.network.joined()) {
            return Err(EngineError::Nothing(format!(
                "{id} has no network of its own: it uses that of {first}, which can be joined as long as it runs"
            )));
        }
        if given.as_ref().is_some_and(|grant| grant.network.egress().is_some()) {
            return Err(EngineError::Nothing(format!(
                "{id} reaches something over the network, and what another action reached through its gateway could not be \
                 told apart from that: run both in one action, or let {id} reach nothing"
            )));
        }
        let same_task = self.is_task_or_fork_of(task, &other.task)?;
        Ok(Some(OtherAction { same_task, progress }))
    }

    /// Tells whether a task is this other one, or was forked from it, at once or through others.
    fn is_task_or_fork_of(&self, task: &TaskId, other: &TaskId) -> Result<bool, EngineError> {
        let mut at = Some(task.clone());
        for _ in 0..FORKS_MAX {
            match at {
                Some(known) if known == *other => return Ok(true),
                Some(fork) => at = self.forked_from(&fork)?,
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Returns the task that a fork was made from, as the record has it.
    fn forked_from(&self, task: &TaskId) -> Result<Option<TaskId>, EngineError> {
        let records = self.store().read(|reader| reader.records_of_task_itself(task))?;
        for record in records {
            let event = record
                .parse_event()
                .map_err(|source| StoreError::Value { what: "a record", source: source.into() })?;
            if let Event::Forked { from, .. } = event {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }
}
