//! Which directory is a workspace, and which cannot be one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use model::OsText;
use model::task::WorkspaceKey;
use sandbox::Identity;

use crate::error::EngineError;

/// A directory that can be a workspace, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Where it is, without links.
    pub path: PathBuf,
    /// How the store knows it.
    pub key: WorkspaceKey,
    /// Who owns it.
    pub owner: Identity,
    /// Where below it the caller stands, when that is not its top.
    pub below: Option<PathBuf>,
}

/// Directories of the system that hold more than one person's work.
const NOT_WORKSPACES: [&str; 16] = [
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run",
    "/sbin", "/sys", "/usr", "/var",
];

impl Workspace {
    /// Finds the workspace: the directory that is named, else the top of the git repository around `here`, else `here`.
    ///
    /// # Errors
    /// When it is missing, no directory, a place that holds more than one project, or somebody else's.
    pub fn find(named: Option<&Path>, here: &Path, home: &Path, state: &Path) -> Result<Self, EngineError> {
        let asked = named.map_or_else(|| here.to_owned(), |named| here.join(named));
        let resolved = fs::canonicalize(&asked).map_err(|error| refuse(&asked, describe(&error)))?;
        let path =
            if named.is_some() { resolved.clone() } else { git_top(&resolved).unwrap_or(resolved.clone()) };
        let metadata = fs::metadata(&path).map_err(|error| refuse(&path, describe(&error)))?;
        if !metadata.is_dir() {
            return Err(refuse(&path, "it is not a directory; name the directory that it is in"));
        }
        refuse_shared_places(&path, home, state)?;
        let owner = Identity { uid: metadata.uid(), gid: metadata.gid() };
        refuse_other_owner(&path, owner)?;
        let text = OsText::try_from(path.as_path()).map_err(|error| refuse(&path, error.to_string()))?;
        let below = fs::canonicalize(here).ok().and_then(|here| below(&here, &path));
        let key = WorkspaceKey { path: text, device: metadata.dev(), inode: metadata.ino() };
        Ok(Self { path, key, owner, below })
    }
}

fn below(here: &Path, top: &Path) -> Option<PathBuf> {
    let rest = here.strip_prefix(top).ok()?;
    (rest != Path::new("")).then(|| rest.to_owned())
}

/// Returns the directory at or above this one that has a `.git`.
fn git_top(from: &Path) -> Option<PathBuf> {
    from.ancestors()
        .find(|directory| fs::symlink_metadata(directory.join(".git")).is_ok())
        .map(Path::to_owned)
}

fn refuse_shared_places(path: &Path, home: &Path, state: &Path) -> Result<(), EngineError> {
    if NOT_WORKSPACES.iter().any(|place| path == Path::new(place)) || path.starts_with("/proc") {
        return Err(refuse(path, "it belongs to the system; name a project's directory with `--workspace`"));
    }
    let home = fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
    if home.starts_with(path) {
        let why = "it is, or holds, your home with your credentials in it; name a project's directory with `--workspace`";
        return Err(refuse(path, why));
    }
    let state = fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
    if state.starts_with(path) || path.starts_with(&state) {
        let why = "it overlaps the state directory, which no sandbox may see; choose another `--state-dir`";
        return Err(refuse(path, why));
    }
    let odd = path.components().any(|part| !matches!(part, Component::RootDir | Component::Normal(_)));
    if odd { Err(refuse(path, "its path is not plain")) } else { Ok(()) }
}

/// An ordinary user may only lend out what is their own. Root runs the command as the owner.
fn refuse_other_owner(path: &Path, owner: Identity) -> Result<(), EngineError> {
    let us = rustix::process::geteuid();
    if us.is_root() || us.as_raw() == owner.uid {
        return Ok(());
    }
    Err(refuse(path, "it belongs to another user; use a copy or a clone of your own"))
}

fn refuse(path: &Path, why: impl Into<String>) -> EngineError {
    EngineError::Workspace { path: path.to_owned(), why: why.into() }
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "it does not exist; make it, or name another one with `--workspace`".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => "you may not enter it".to_owned(),
        std::io::ErrorKind::NotADirectory => "a part of its path is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &Path) -> Result<Workspace, EngineError> {
        Workspace::find(
            Some(path),
            Path::new("/"),
            Path::new("/nonexistent/home"),
            Path::new("/nonexistent/state"),
        )
    }

    #[test]
    fn places_that_are_no_project_are_refused() {
        for place in ["/", "/usr", "/etc", "/proc/self", "/dev/null", "/nonexistent"] {
            assert!(matches!(find(Path::new(place)), Err(EngineError::Workspace { .. })), "{place}");
        }
    }

    #[test]
    fn home_and_what_holds_it_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().join("home");
        fs::create_dir(&home).expect("a home");
        for place in [directory.path(), &home] {
            let found = Workspace::find(Some(place), Path::new("/"), &home, Path::new("/nonexistent"));
            assert!(matches!(found, Err(EngineError::Workspace { .. })), "{}", place.display());
        }
    }

    #[test]
    fn the_top_of_the_repository_is_found_from_below() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("a/b");
        fs::create_dir_all(&below).expect("directories");
        fs::create_dir(directory.path().join(".git")).expect("a repository");
        let nowhere = Path::new("/nonexistent");
        let found = Workspace::find(None, &below, nowhere, nowhere).expect("a workspace");
        assert_eq!(found.path, fs::canonicalize(directory.path()).expect("resolves"));
        assert_eq!(found.below.as_deref(), Some(Path::new("a/b")));
    }
}
