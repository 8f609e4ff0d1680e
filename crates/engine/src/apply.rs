//! Writing what may leave to the host's directory, and taking it back.
//!
//! Guarantees: only [`inspect::Artifacts`] are written, as ordinary files, directories and links; every step goes from
//! an open directory beneath the workspace to one name in it and never through a link. Each file appears as a whole
//! or not at all; what it replaces is captured first. What the host changed since the run began is never overwritten:
//! it is merged where the common base is known, and kept beside otherwise. A journal lets [`complete`] bring to its end
//! what a crash cut off. Leaves to others: who may apply, the record, and keeping two applies of one workspace apart.

mod beneath;
mod commit;
mod drift;
mod error;
mod journal;
mod plan;
mod report;
mod settle;
mod stage;
mod undo;

use std::path::Path;

use inspect::Artifacts;
use model::TaskId;

use beneath::Workspace;
use journal::{Journal, Phase};

pub use drift::{Base, BaseStats, Below, PutBack};
pub use error::ApplyError;
pub use report::{Applied, Conflict};

/// Where to write, and where to keep what is overwritten.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The host's directory.
    pub workspace: &'a Path,
    /// A directory for this apply alone, in the state directory: the journal and what was overwritten.
    pub captured: &'a Path,
    /// The task, whose name marks what is kept beside a host file.
    pub task: &'a TaskId,
}

/// What is done to the host's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Changes are written.
    Apply,
    /// What was written is taken back.
    Undo,
}

/// What was found of an earlier call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Recovered {
    /// Nothing had been cut off.
    Nothing,
    /// It had been cut off before anything was written to the host; what it had prepared was removed.
    RolledBack,
    /// It had been cut off in the middle, and was completed.
    Completed(Applied),
}

/// The journal of an apply, and of taking it back.
const APPLY: &str = "apply.json";
const UNDO: &str = "undo.json";

/// Writes changes to the host's directory.
///
/// What cannot be written is in the answer, with the reason; the rest is written all the same.
///
/// # Errors
/// When nothing was written: the directory cannot be opened or written, the disk is full, or this was applied before.
pub fn apply(artifacts: Artifacts, base: &dyn Base, target: &Target<'_>) -> Result<Applied, ApplyError> {
    match recover_one(target, APPLY)? {
        Recovered::Completed(applied) => return Ok(applied),
        Recovered::Nothing | Recovered::RolledBack => {}
    }
    if Journal::load(target.captured, APPLY)?.is_some() {
        return Err(ApplyError::Repeated { what: "applied" });
    }
    let workspace = Workspace::open(target.workspace)?;
    let plan = plan::plan(&workspace, artifacts, base, target.task)?;
    carry_out(&workspace, target, APPLY, plan)
}

/// Takes back what an apply wrote, where the host has not changed it since.
///
/// # Errors
/// When nothing was taken back: nothing was applied here, it was taken back before, or the directory cannot be written.
pub fn undo(target: &Target<'_>) -> Result<Applied, ApplyError> {
    recover_one(target, APPLY)?;
    match recover_one(target, UNDO)? {
        Recovered::Completed(undone) => return Ok(undone),
        Recovered::Nothing | Recovered::RolledBack => {}
    }
    if Journal::load(target.captured, UNDO)?.is_some() {
        return Err(ApplyError::Repeated { what: "taken back" });
    }
    let applied = Journal::load(target.captured, APPLY)?.ok_or(ApplyError::NothingApplied)?;
    let workspace = Workspace::open(target.workspace)?;
    applied.check_workspace(&workspace)?;
    let plan = undo::plan(&workspace, &applied, target.captured)?;
    carry_out(&workspace, target, UNDO, plan)
}

/// Returns what was overwritten and put back; nothing unless it was applied and taken back.
///
/// # Errors
/// When a journal cannot be read.
pub fn put_back(captured: &Path) -> Result<Vec<PutBack>, ApplyError> {
    let closed = |journal: &Journal| journal.phase == Phase::Done;
    let load = |name| Journal::load(captured, name).map(|journal| journal.filter(closed));
    Ok(match (load(APPLY)?, load(UNDO)?) {
        (Some(applied), Some(undone)) => undo::put_back(&applied, &undone),
        _ => Vec::new(),
    })
}

/// Brings to its end what a crash cut off: completes it when it had begun to change the host, and removes what it had
/// only prepared. Returns what was written; nothing when the host is as it was before.
///
/// # Errors
/// When the journal is damaged, or the directory is not the one that it is about.
pub fn complete(target: &Target<'_>, work: Work) -> Result<Option<Applied>, ApplyError> {
    let name = match work {
        Work::Apply => APPLY,
        Work::Undo => UNDO,
    };
    match recover_one(target, name)? {
        Recovered::Completed(applied) => Ok(Some(applied)),
        Recovered::RolledBack => Ok(None),
        Recovered::Nothing => Ok(Journal::load(target.captured, name)?.as_ref().map(report::report)),
    }
}

fn carry_out(
    workspace: &Workspace,
    target: &Target<'_>,
    name: &'static str,
    plan: plan::Plan,
) -> Result<Applied, ApplyError> {
    let mut journal = stage::stage(workspace, target.captured, name, plan)?;
    commit::commit(workspace, &mut journal)?;
    Ok(report::report(&journal))
}

fn recover_one(target: &Target<'_>, name: &'static str) -> Result<Recovered, ApplyError> {
    let Some(mut journal) = Journal::load(target.captured, name)? else { return Ok(Recovered::Nothing) };
    match journal.phase {
        Phase::Done => Ok(Recovered::Nothing),
        Phase::Staging => {
            let workspace = Workspace::open(target.workspace)?;
            journal.check_workspace(&workspace)?;
            stage::roll_back(&workspace, &journal)?;
            Ok(Recovered::RolledBack)
        }
        Phase::Committing => {
            let workspace = Workspace::open(target.workspace)?;
            journal.check_workspace(&workspace)?;
            commit::commit(&workspace, &mut journal)?;
            Ok(Recovered::Completed(report::report(&journal)))
        }
    }
}

#[cfg(test)]
mod tests;
