//! What of the host a sandbox sees, as plain data: an ordered list of pieces, and an environment.
//!
//! Guarantees: everything in a [`View`] is named by a rule with a reason (the files in `data/`), is readable by its
//! owner or by everyone (never only through a supplementary group), and holds no known credential file that is not
//! masked. Of a home, only tools and their caches are in it. Nothing here starts a process, mounts or writes.
//!
//! Leaves to others: the launcher mounts the pieces in order, adds `/dev`, `/proc`, `/inputs`, `/artifacts`, `/cache`
//! and the workspace (after the pieces, over them), and then makes the root read-only. Credential files inside the
//! workspace are found by `inspect`.

mod host;
mod piece;

pub use host::{Host, Identity};
pub use piece::{Hidden, Kind, Piece};

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::OsText;

/// What of the host one sandbox sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The pieces of the root, parents before children.
    pub pieces: Vec<Piece>,
    /// The environment of the command: nothing is copied from the caller but what is listed in `data/`.
    pub environment: BTreeMap<String, OsText>,
    /// What was found and is not shown, for `doctor` and `why`.
    pub hidden: Vec<Hidden>,
    /// Which files may be executed.
    pub executables: Executables,
}

/// Which files of the view may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executables {
    /// All of them, and what the command builds itself.
    Any,
    /// These files and no others, by their resolved place inside: the listed programs, their interpreters and the
    /// dynamic loader. Every [`Piece::Private`], the workspace and all other writable places are to be mounted noexec.
    Only(Vec<PathBuf>),
}
