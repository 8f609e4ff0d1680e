//! What can go wrong while something is looked at.

use std::io;

use model::OsText;

/// Says that something could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The kernel refused a step on one path.
    #[error("cannot {step} `{path}`")]
    Path {
        /// What was to be done, as a verb.
        step: &'static str,
        /// The path, from the top of the tree.
        path: OsText,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
    /// A directory is not the one it was a moment ago.
    #[error("`{path}` was moved while it was read: stop what writes there and try again")]
    Moved {
        /// The directory, from the top of the tree.
        path: OsText,
    },
    /// A file is not the kind of thing that the step needs.
    #[error("`{path}` is not {wanted}")]
    Kind {
        /// The file.
        path: OsText,
        /// What it should be.
        wanted: &'static str,
    },
}

impl InspectError {
    /// Makes an error of one step on one path out of the kernel's answer.
    pub(crate) fn at(step: &'static str, path: &[u8], source: impl Into<io::Error>) -> Self {
        Self::Path { step, path: shown(path), source: source.into() }
    }

    /// Returns the kernel's reason, where there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Path { source, .. } => Some(source),
            Self::Moved { .. } | Self::Kind { .. } => None,
        }
    }
}

/// Returns a path as text; the top of the tree is written as `.`.
pub(crate) fn shown(path: &[u8]) -> OsText {
    let path = if path.is_empty() { b"." } else { path };
    let clean: Vec<u8> = path.iter().copied().filter(|byte| *byte != 0).collect();
    OsText::new(clean).unwrap_or_else(|_| unreachable!("NUL bytes were taken out"))
}
