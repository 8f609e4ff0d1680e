//! Where a symbolic link leads.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::{FileKind, OsText, WorkspacePath};

use crate::error::InspectError;
use crate::tree::{Finder, Stack};

/// Links that the kernel follows on one way before it gives up.
const MOST_LINKS: usize = 40;

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leads {
    /// To a path inside, which need not be there.
    Inside(WorkspacePath),
    /// To the top of the workspace.
    ToTop,
    /// Out, or nowhere for certain.
    Out,
}

/// Follows links by the names in the layers, without asking the kernel to follow any.
pub(super) struct Resolver {
    after: Finder,
}

impl Resolver {
    pub(super) fn new(stack: &Stack) -> Self {
        Self { after: stack.after() }
    }

    /// Finds out where a link at `path` with this target leads.
    ///
    /// A target must be relative and may climb only at its beginning: the directories that hold the link are real
    /// ones, so climbing from there is certain. Climbing later would depend on directories that somebody may replace
    /// by links tomorrow.
    pub(super) fn resolve(&mut self, path: &WorkspacePath, target: &OsText) -> Result<Leads, InspectError> {
        if climbs_late(target.as_bytes()) {
            return Ok(Leads::Out);
        }
        let mut here: Vec<Vec<u8>> = parts(path.as_bytes());
        here.pop();
        let mut rest = VecDeque::new();
        if !take(target.as_bytes(), &mut rest) {
            return Ok(Leads::Out);
        }
        let mut links = 0;
        while let Some(part) = rest.pop_front() {
            if part == b".." {
                if here.pop().is_none() {
                    return Ok(Leads::Out);
                }
                continue;
            }
            here.push(part);
            if let Some(next) = self.link_at(&here)? {
                here.pop();
                links += 1;
                if links > MOST_LINKS || !take(next.as_bytes(), &mut rest) {
                    return Ok(Leads::Out);
                }
            }
        }
        let joined = here.join(&b'/');
        Ok(WorkspacePath::parse(Path::new(OsStr::from_bytes(&joined))).map_or(Leads::ToTop, Leads::Inside))
    }

    /// Returns the target of a link, when there is one at this path.
    fn link_at(&mut self, here: &[Vec<u8>]) -> Result<Option<OsText>, InspectError> {
        let joined = here.join(&b'/');
        let Ok(path) = WorkspacePath::parse(Path::new(OsStr::from_bytes(&joined))) else { return Ok(None) };
        match self.after.find(&path)? {
            Some(entry) if entry.node.kind == FileKind::Symlink => entry.link_target().map(Some),
            _ => Ok(None),
        }
    }
}

/// Puts the parts of a target before what is left of the way; tells whether it is relative.
fn take(target: &[u8], rest: &mut VecDeque<Vec<u8>>) -> bool {
    for part in parts(target).into_iter().rev() {
        rest.push_front(part);
    }
    !target.starts_with(b"/") && !target.is_empty()
}

fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.map(<[u8]>::to_vec).collect()
}

/// Tells whether a target climbs after it has named something.
fn climbs_late(target: &[u8]) -> bool {
    let parts = parts(target);
    parts.iter().skip_while(|part| *part == b"..").any(|part| part == b"..")
}
