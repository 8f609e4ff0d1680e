//! Where a workspace keeps its git directory: inside, or for a linked worktree in the repository that it belongs to.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::OsText;
use model::grant::Input;

use crate::Workspace;

/// The longest content of the small files by which git links directories.
const LINK_MAX: u64 = 8 << 10;
/// The name under which the repository of a linked worktree is shown.
const INPUT: &str = "git";

/// Where git finds the repository of a workspace, inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GitPlace {
    /// In the workspace.
    Inside,
    /// Elsewhere on the host: it is shown read-only.
    Linked {
        /// The directory that all worktrees of the repository share.
        common: OsText,
        /// The worktree's own directory in it.
        own: PathBuf,
    },
}

impl GitPlace {
    /// Returns what has to be shown beside the workspace.
    pub(super) fn inputs(&self) -> Vec<Input> {
        match self {
            Self::Inside => Vec::new(),
            Self::Linked { common, .. } => vec![Input { name: INPUT.to_owned(), source: common.clone() }],
        }
    }

    /// Returns the git directory to name to git, when it cannot find it by itself.
    pub(super) fn git_dir(&self) -> Option<String> {
        match self {
            Self::Inside => None,
            Self::Linked { own, .. } => Some(format!("/inputs/{INPUT}/{}", own.to_string_lossy())),
        }
    }

    /// Returns what is cloned.
    pub(super) fn source(&self, workspace: &Path) -> String {
        match self {
            Self::Inside => workspace.to_string_lossy().into_owned(),
            Self::Linked { .. } => format!("/inputs/{INPUT}"),
        }
    }
}

/// Finds the git directory of a workspace.
///
/// A `.git` file can name any directory of the host, and whoever wrote it may want that one to be shown. So it is
/// followed only to a directory that belongs to the workspace's owner, looks like a repository, and names this very
/// worktree as its own.
pub(super) fn git_place(workspace: &Workspace) -> Result<GitPlace, String> {
    let dot_git = workspace.path.join(".git");
    match fs::symlink_metadata(&dot_git) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err("it is not a git repository".to_owned())
        }
        Err(error) => Err(format!("its `.git` cannot be looked at: {error}")),
        Ok(found) if !found.is_file() => Ok(GitPlace::Inside),
        Ok(_) => linked(workspace, &dot_git),
    }
}

fn linked(workspace: &Workspace, dot_git: &Path) -> Result<GitPlace, String> {
    let unusual = |what: &str| format!("its `.git` file {what}");
    let text = small_file(dot_git).ok_or_else(|| unusual("cannot be read"))?;
    let named = text.strip_prefix("gitdir: ").ok_or_else(|| unusual("does not name a git directory"))?;
    let own = fs::canonicalize(workspace.path.join(named.trim_end()))
        .map_err(|_| unusual("names a directory that is not there"))?;
    if own.starts_with(&workspace.path) {
        return Ok(GitPlace::Inside);
    }
    let common = small_file(&own.join("commondir")).map(|text| own.join(text.trim_end()));
    let common = common.and_then(|path| fs::canonicalize(path).ok());
    let common = common.ok_or_else(|| unusual("does not name a worktree of a repository"))?;
    let back = small_file(&own.join("gitdir")).map(|text| own.join(text.trim_end()));
    if back.and_then(|path| fs::canonicalize(path).ok()).as_deref() != Some(dot_git) {
        return Err(unusual("names a repository that does not know this worktree"));
    }
    let is_repository = common.join("HEAD").is_file() && common.join("objects").is_dir();
    let owner = fs::metadata(&common).map(|found| found.uid()).ok();
    match own.strip_prefix(&common) {
        Ok(own) if is_repository && owner == Some(workspace.owner.uid) => {
            let common = OsText::try_from(common.as_path()).map_err(|error| error.to_string())?;
            Ok(GitPlace::Linked { common, own: own.to_owned() })
        }
        _ => Err(unusual("names a directory that is no repository of the same owner")),
    }
}

fn small_file(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    let mut text = String::new();
    file.take(LINK_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(path: &Path) -> Workspace {
        Workspace::find(Some(path), Path::new("/"), Path::new("/nonexistent"), Path::new("/nonexistent"))
            .expect("a workspace")
    }

    /// A repository with a linked worktree beside it, as `git worktree add` leaves them.
    fn worktree(directory: &Path) -> (PathBuf, PathBuf) {
        let (repository, tree) = (directory.join("repository"), directory.join("tree"));
        let own = repository.join(".git/worktrees/tree");
        fs::create_dir_all(&own).expect("directories");
        fs::create_dir_all(repository.join(".git/objects")).expect("a directory");
        fs::create_dir(&tree).expect("a directory");
        fs::write(repository.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
        fs::write(own.join("commondir"), "../..\n").expect("a file");
        fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).expect("a file");
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).expect("a file");
        (repository, tree)
    }

    #[test]
    fn a_linked_worktree_is_followed_to_its_repository() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = fs::canonicalize(directory.path()).expect("resolves");
        let (repository, tree) = worktree(&directory);
        let place = git_place(&workspace(&tree)).expect("is found");
        assert_eq!(place.git_dir().as_deref(), Some("/inputs/git/worktrees/tree"));
        assert_eq!(place.inputs()[0].source.as_path(), repository.join(".git"));
        assert_eq!(git_place(&workspace(&repository)), Ok(GitPlace::Inside));
    }

    #[test]
    fn a_git_file_cannot_have_another_directory_shown() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = fs::canonicalize(directory.path()).expect("resolves");
        let (repository, tree) = worktree(&directory);
        let other = directory.join("other");
        fs::create_dir(&other).expect("a directory");
        for text in [
            format!("gitdir: {}\n", other.display()),
            format!("gitdir: {}\n", repository.join(".git").display()),
            "gitdir: /nonexistent\n".to_owned(),
            "something else".to_owned(),
        ] {
            fs::write(tree.join(".git"), &text).expect("a file");
            assert!(git_place(&workspace(&tree)).is_err(), "{text}");
        }
        // A stranger's copy of the file: the repository names another worktree.
        let copy = directory.join("copy");
        fs::create_dir(&copy).expect("a directory");
        let own = repository.join(".git/worktrees/tree");
        fs::write(copy.join(".git"), format!("gitdir: {}\n", own.display())).expect("a file");
        assert!(git_place(&workspace(&copy)).is_err());
    }

    #[test]
    fn a_directory_without_git_is_said_to_be_none() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(git_place(&workspace(directory.path())), Err("it is not a git repository".to_owned()));
    }
}
