//! One run: its name and its place, known before it is decided.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{ActionId, ApprovalId, TaskId, Timestamp};

use crate::Engine;
use crate::clock::now;
use crate::credentials::Lease;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::facts::PendingAction;
use crate::handle::new_action_id;
use crate::lock::Lock;
use crate::start::Start;
use crate::store::Starter;

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The name of the action and of its layer.
    pub(crate) action: ActionId,
    /// Its task.
    pub(crate) task: TaskId,
    /// What it starts from.
    pub(crate) start: Start,
    /// The call of an agent that it carries out.
    pub(crate) call: Option<String>,
    /// Who wants it to start; nothing for helpers of our own, which no hold keeps back.
    pub(crate) starter: Option<Starter>,
    /// The request for a person's yes that it is a trial for: what it writes is not the task's until that is said.
    pub(crate) trial: Option<ApprovalId>,
    /// Its action with what decided about it: what it is seen to do is decided too.
    pub(crate) pending: Option<Arc<PendingAction>>,
    /// The credentials that it has.
    pub(crate) leases: Vec<Lease>,
    /// When it was ordered.
    pub(crate) began: Timestamp,
    /// What belongs to it alone and goes with it.
    pub(crate) directory: PathBuf,
    _alive: Lock,
}

impl Run {
    /// Names a run and takes its place. The lock says to others that its owner lives.
    pub(crate) fn begin(engine: &Engine, start: Start) -> Result<Self, EngineError> {
        let began = now();
        let action = new_action_id()?;
        let directory = engine.places().runs().join(action.as_str());
        let alive = take_place(&directory)?;
        let task = start.task.clone();
        Ok(Self {
            action,
            task,
            start,
            call: None,
            starter: None,
            trial: None,
            pending: None,
            leases: Vec::new(),
            began,
            directory,
            _alive: alive,
        })
    }

    /// Returns who wants it to start, as of now.
    pub(crate) fn starter_now(&self) -> Result<Option<Starter>, EngineError> {
        let Some(starter) = self.starter.clone() else { return Ok(None) };
        Ok(Some(Starter { now: Moment::now()?, ..starter }))
    }

    /// Removes what a sandbox left in its place, which stays taken: another one can be built there.
    pub(crate) fn clear(&self) -> Result<(), EngineError> {
        sandbox::clear_directory(&self.directory).map_err(EngineError::file("empty", &self.directory))
    }
}

/// Makes the directory of a run and locks it. Whoever recovers at this very moment may take it for one of the dead and
/// remove it before the lock is ours; then it is made again. The lock is on the directory itself, so nobody can have
/// another lock of the same place.
pub(crate) fn take_place(directory: &Path) -> Result<Lock, EngineError> {
    loop {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(EngineError::file("make", directory))?;
        match Lock::take_directory(directory) {
            Ok(taken) if taken.is_at(directory) => return Ok(taken),
            Err(EngineError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Empty when the sandbox was torn down; otherwise what never came that far. Leftovers are found at the next start.
        let _ = sandbox::remove_tree(&self.directory);
    }
}
