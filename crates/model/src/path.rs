//! Paths inside a workspace.

use std::fmt;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::os_text::{OsText, OsTextError};

/// A path inside the task's workspace: relative, not empty, without `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "OsText", into = "OsText")]
pub struct WorkspacePath(OsText);

/// Says why a path is not one inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing was given, or only `.`.
    #[error("an empty path names no file: give one inside the workspace, for example `src/main.rs`")]
    Empty,
    /// The path starts at the root and is not below the workspace.
    #[error("`{0}` is outside the workspace: give a path inside it")]
    Outside(OsText),
    /// The path climbs with `..`.
    #[error("`{0}` climbs with `..`: give the path from the top of the workspace")]
    Climbs(OsText),
    /// The path cannot be written down for the kernel.
    #[error(transparent)]
    Text(#[from] OsTextError),
}

impl WorkspacePath {
    /// Takes a path that is relative to the top of the workspace; `.` parts are dropped.
    ///
    /// # Errors
    /// When it is empty, absolute, climbs with `..` or holds a NUL byte.
    pub fn parse(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        let given = || OsText::try_from(path);
        let mut parts = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(part) => parts.push(part),
                Component::CurDir => {}
                Component::ParentDir => return Err(PathError::Climbs(given()?)),
                Component::RootDir | Component::Prefix(_) => return Err(PathError::Outside(given()?)),
            }
        }
        if parts.is_empty() {
            return Err(PathError::Empty);
        }
        let joined: std::path::PathBuf = parts.iter().collect();
        Ok(Self(OsText::try_from(joined.as_path())?))
    }

    /// Returns the path, relative to the top of the workspace.
    pub fn as_path(&self) -> &Path {
        self.0.as_path()
    }

    /// Returns the bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<OsText> for WorkspacePath {
    type Error = PathError;

    fn try_from(text: OsText) -> Result<Self, PathError> {
        Self::parse(text.as_path())
    }
}

impl From<WorkspacePath> for OsText {
    fn from(path: WorkspacePath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_is_taken() {
        let path = WorkspacePath::parse("./src//main.rs").expect("inside");
        assert_eq!(path.as_path(), Path::new("src/main.rs"));
    }

    #[test]
    fn a_path_that_leaves_is_refused() {
        assert_eq!(WorkspacePath::parse(""), Err(PathError::Empty));
        assert_eq!(WorkspacePath::parse("."), Err(PathError::Empty));
        assert!(matches!(WorkspacePath::parse("/etc/passwd"), Err(PathError::Outside(_))));
        assert!(matches!(WorkspacePath::parse("a/../../b"), Err(PathError::Climbs(_))));
    }
}
