//! What a reader should know about a layer beside its changes.

use model::OsText;
use serde::{Deserialize, Serialize};

/// Something odd in a layer. A path of `.` is the top.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// An attribute that overlay would obey, in a place where only a program can have put it.
    ForeignAttribute {
        /// The file.
        path: OsText,
        /// The attribute.
        name: OsText,
    },
    /// A file or directory that we may not read: its content could not be compared.
    Unreadable {
        /// The file.
        path: OsText,
    },
    /// A path longer than we list; nothing below it is in the changes.
    PathTooLong {
        /// The directory that holds the first name that was left out.
        path: OsText,
    },
    /// A file that holds a credential, which came up during a run.
    Credential {
        /// The file.
        path: OsText,
        /// What it holds, and how that was seen.
        why: String,
    },
    /// A file with several names below, of which only this one was changed; they are no longer one file.
    LinkSplit {
        /// The name that was changed.
        path: OsText,
    },
}

impl Finding {
    /// Returns the path that it is about.
    pub fn path(&self) -> &OsText {
        match self {
            Self::ForeignAttribute { path, .. }
            | Self::Unreadable { path }
            | Self::PathTooLong { path }
            | Self::Credential { path, .. }
            | Self::LinkSplit { path } => path,
        }
    }
}
