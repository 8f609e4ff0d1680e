//! Why no view can be made, and what to do about it.

use std::path::{Path, PathBuf};

use model::text::escape;

/// Says why a sandbox cannot be given a view of the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// A path that must be absolute is not.
    #[error("the {what} `{}` is not an absolute path: give it from `/`", shown(.path))]
    Relative {
        /// Which path it is.
        what: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// The workspace is a home or lies above one.
    #[error(
        "the workspace `{}` holds the home `{}` with all its credentials: choose a directory inside it, \
         or move the project to one",
        shown(.workspace),
        shown(.home)
    )]
    WorkspaceHoldsHome {
        /// The workspace.
        workspace: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// The workspace is a part of the system.
    #[error("the workspace `{}` is or holds the system's `{}`: choose a project directory", shown(.workspace), .system)]
    WorkspaceIsSystem {
        /// The workspace.
        workspace: PathBuf,
        /// The part of the system.
        system: &'static str,
    },
    /// The workspace and the state directory lie inside each other.
    #[error(
        "the state directory `{}` and the workspace `{}` lie inside each other, so the command would see the record: \
         choose another state directory with --state-dir",
        shown(.state),
        shown(.workspace)
    )]
    StateInWorkspace {
        /// The state directory.
        state: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The state directory lies inside something that is shown.
    #[error(
        "the state directory `{}` lies inside `{}`, which sandboxes see: choose another one with --state-dir",
        shown(.state),
        shown(.piece)
    )]
    StateIsShown {
        /// The state directory.
        state: PathBuf,
        /// What is shown.
        piece: PathBuf,
    },
    /// The host has no readable system directories.
    #[error("`/usr` cannot be read by everyone, so no program could run: repair its permissions (0755)")]
    NoSystem,
    /// A program of a list cannot be found.
    #[error("the program `{}` is not found: give its full path, or a name that stands on PATH", shown(.program))]
    ProgramMissing {
        /// The program, as it was listed.
        program: PathBuf,
    },
    /// A program of a list cannot be shown or executed.
    #[error("the program `{}` cannot be granted, because {}", shown(.program), .why)]
    ProgramRefused {
        /// The program, resolved.
        program: PathBuf,
        /// Why.
        why: String,
    },
    /// A library of a program cannot be found.
    #[error(
        "the program `{}` needs the library `{}`, which is not found: install it, or list the program's own directory \
         in /etc/ld.so.conf.d and run ldconfig",
        shown(.program),
        escape(.library)
    )]
    LibraryMissing {
        /// The program or library that needs it.
        program: PathBuf,
        /// The library's name.
        library: String,
    },
    /// A path cannot be written into the environment.
    #[error(transparent)]
    Text(#[from] model::os_text::OsTextError),
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}
