//! Deciding which changes may leave the layers.
//!
//! Guarantees: only what `inspect` looked at becomes `Artifacts`, and nothing else does; a change leaves by itself
//! only when it is an ordinary file, a directory or a link that stays inside, outside the protected paths, without
//! set-id bits. Leaves to others: asking a person, and writing to the host.

mod artifacts;
mod fetched;
mod links;
mod nested;
mod reason;
mod sort;

use std::collections::BTreeSet;

use model::{Change, WorkspacePath};

use crate::error::{InspectError, shown};
use crate::layer::Report;
use crate::protected::{Class, Rules};
use crate::tree::Stack;

pub use artifacts::{Artifact, Artifacts, Reader};
pub use reason::{CREDENTIAL, Held, Reason};

/// What came of looking at layers.
#[derive(Debug)]
pub enum Inspection {
    /// Everything may leave.
    Clean(Artifacts),
    /// Something must stay, or wait for a person.
    Held(Quarantine),
}

/// Changes of which at least one must stay, or wait for a person.
#[derive(Debug)]
pub struct Quarantine {
    stack: Stack,
    intrinsic: Vec<(Change, Vec<Reason>)>,
    free: Artifacts,
    held: Vec<Held>,
}

/// One person's yes to changes of exactly these paths, after they were shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// Who said yes.
    pub person: String,
    /// To what.
    pub paths: BTreeSet<WorkspacePath>,
}

/// Looks at what layers did, and decides what of it may leave.
///
/// # Errors
/// When the kernel refuses to answer about a path.
pub fn inspect(stack: Stack, report: &Report, rules: &Rules) -> Result<Inspection, InspectError> {
    let intrinsic = reason::reasons(&stack, report, rules)?;
    let (free, held) = sort::sort(intrinsic.clone());
    let free = artifacts::collect(&stack, free)?;
    Ok(if held.is_empty() {
        Inspection::Clean(free)
    } else {
        Inspection::Held(Quarantine { stack, intrinsic, free, held })
    })
}

impl Inspection {
    /// Returns what must stay or wait.
    pub fn held(&self) -> &[Held] {
        match self {
            Self::Clean(_) => &[],
            Self::Held(quarantine) => quarantine.held(),
        }
    }

    /// Lets out what a fetch of ours wrote to a repository: packs of objects, and the branch that lies at `branch`. Git's
    /// own files lie below `git`: `.git/`, or nothing where the layers lie over the repository itself. No configuration,
    /// hook or other branch is ever among it, whatever the layers hold.
    ///
    /// # Errors
    /// When the kernel refuses to answer about a path.
    pub fn fetched(self, git: &str, branch: &WorkspacePath) -> Result<Artifacts, InspectError> {
        let top = shown(git.trim_end_matches('/').as_bytes());
        match self {
            Self::Clean(artifacts) => {
                Ok(artifacts.narrowed(|change| fetched::is_fetched(change, git, branch)))
            }
            Self::Held(quarantine) => {
                let only_git = |reason: &Reason| match reason {
                    Reason::Protected { class, .. } => *class == Class::GitInternals,
                    Reason::NestedRepository { directory } => *directory == top,
                    _ => false,
                };
                let wanted = quarantine.intrinsic.into_iter().filter(|(change, reasons)| {
                    fetched::is_fetched(change, git, branch) && reasons.iter().all(only_git)
                });
                artifacts::collect(&quarantine.stack, wanted.map(|(change, _)| change).collect())
            }
        }
    }

    /// Returns what may leave without a person, and what stays.
    pub fn without_what_is_held(self) -> (Artifacts, Vec<Held>) {
        match self {
            Self::Clean(artifacts) => (artifacts, Vec::new()),
            Self::Held(quarantine) => (quarantine.free, quarantine.held),
        }
    }
}

impl Quarantine {
    /// Returns what must stay or wait.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// Returns what may leave without a person.
    pub fn free(&self) -> &Artifacts {
        &self.free
    }

    /// Lets out what a person said yes to, as far as a person may. Returns what leaves, and what stays.
    ///
    /// # Errors
    /// When the kernel refuses to answer about a path.
    pub fn released_by(self, consent: &Consent) -> Result<(Artifacts, Vec<Held>), InspectError> {
        let lifted = self.intrinsic.into_iter().map(|(change, mut reasons)| {
            if consent.paths.contains(&change.path) {
                reasons.retain(|reason| !reason.person_may_lift());
            }
            (change, reasons)
        });
        let (free, held) = sort::sort(lifted.collect());
        Ok((artifacts::collect(&self.stack, free)?, held))
    }
}
