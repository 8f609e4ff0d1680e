//! Reading layers back: what an action did to the files of its workspace.
//!
//! Guarantees: the list is what a comparison of the whole tree before and after would give, at the cost of the
//! changed paths only; what could not be read is in the findings. Leaves to others: whether git ignores a path,
//! and whether a change may leave.

mod compare;
mod finding;
mod strip;
mod walk;

use model::{Change, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::error::InspectError;
use crate::tree::Stack;

pub use finding::Finding;
pub use strip::strip_foreign_attributes;

pub(crate) use strip::foreign_names;

/// The most that one report lists. A hostile tree can hold far more names than anybody could look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one path. What is deeper is counted and not listed.
    pub path: usize,
    /// Bytes of all paths together.
    pub all_paths: usize,
    /// Findings, beyond which they are only counted.
    pub findings: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        // 256 MiB of paths is about two million files of a large `node_modules`.
        Self { path: 64 << 10, all_paths: 256 << 20, findings: 10_000 }
    }
}

/// What layers did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// What is different, sorted by path.
    pub changes: Vec<Change>,
    /// What a reader should know about the layers beside the changes.
    pub findings: Vec<Finding>,
    /// How many more findings there were than are listed.
    pub findings_dropped: u64,
    /// Names of one and the same file in the layers, each group sorted.
    pub link_groups: Vec<Vec<WorkspacePath>>,
    /// How many names were beyond the bounds and are not listed. When it is not zero, the list must not be applied.
    pub unlisted: u64,
}

/// Reads the uppers of a stack back against its lowers.
///
/// # Errors
/// When the kernel refuses a step for another reason than permission, or a directory moves while it is read.
pub fn read(stack: &Stack, bounds: Bounds) -> Result<Report, InspectError> {
    walk::Walk::new(stack, bounds).run()
}
