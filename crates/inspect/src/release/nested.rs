//! Directories that git would take for a repository although they have another name than `.git`.
//!
//! Whoever runs git in such a directory runs what its `config` names. Others hid such directories in ordinary trees.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::{OsText, WorkspacePath};

use crate::error::{InspectError, shown};
use crate::tree::{Finder, Stack};

/// The names that git looks for, and the ones that it obeys when it found them.
const LOOKED_FOR: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];
const OBEYED: [&[u8]; 5] = [b"config", b"config.worktree", b"hooks", b"info", b"commondir"];

pub(super) struct NestedRepositories {
    after: Finder,
    known: HashMap<Vec<u8>, bool>,
}

impl NestedRepositories {
    pub(super) fn new(stack: &Stack) -> Self {
        Self { after: stack.after(), known: HashMap::new() }
    }

    /// Returns the directory around a path that git would take for a repository because of such a path.
    pub(super) fn around(&mut self, path: &WorkspacePath) -> Result<Option<OsText>, InspectError> {
        let bytes = path.as_bytes();
        let mut start = 0_usize;
        for part in bytes.split(|byte| *byte == b'/') {
            let directory = &bytes[..start.saturating_sub(1)];
            let telling = LOOKED_FOR.iter().chain(&OBEYED).any(|name| name.eq_ignore_ascii_case(part));
            if telling && self.is_repository(directory)? {
                return Ok(Some(shown(directory)));
            }
            start += part.len() + 1;
        }
        Ok(None)
    }

    fn is_repository(&mut self, directory: &[u8]) -> Result<bool, InspectError> {
        if let Some(known) = self.known.get(directory) {
            return Ok(*known);
        }
        let mut found = true;
        for name in LOOKED_FOR {
            let path = if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() };
            let path = WorkspacePath::parse(Path::new(OsStr::from_bytes(&path)));
            found = found && matches!(path.map(|path| self.after.find(&path)), Ok(Ok(Some(_))));
        }
        self.known.insert(directory.to_vec(), found);
        Ok(found)
    }
}
