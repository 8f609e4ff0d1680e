//! Git directories that a workspace needs: the repository behind a linked worktree, and configuration without the
//! credentials in it.

use std::fs;
use std::path::{Path, PathBuf};

use inspect::credentials::{Found, FoundKind, without_credentials};
use inspect::{Stack, Tree};
use model::WorkspacePath;

/// The largest of git's small pointer files that is read.
const POINTER_MAX: u64 = 64 << 10;
/// The most that is shown of git's configuration.
const CONFIG_MAX: u64 = 16 << 20;

/// Returns the repository of a linked worktree: the workspace's `.git` is a file that names it.
///
/// The file is part of the workspace, so anybody can have written it. It is believed only when the repository names
/// this very workspace in return (`worktrees/NAME/gitdir`), which nobody can make a directory do that is not one.
pub(crate) fn repository_of_worktree(workspace: &Path) -> Option<PathBuf> {
    let link = workspace.join(".git");
    let directory = pointer(&link, workspace)?;
    let back = read_small(&directory.join("gitdir"))?;
    let names_us = fs::canonicalize(Path::new(back.trim())).ok()? == fs::canonicalize(&link).ok()?;
    let common = directory.join(read_small(&directory.join("commondir"))?.trim());
    let common = fs::canonicalize(common).ok()?;
    let is_repository = common.join("objects").is_dir() && common.join("refs").is_dir();
    let holds_us = directory.starts_with(common.join("worktrees"));
    (names_us && is_repository && holds_us).then_some(common)
}

/// Returns the git directory of a workspace itself: `.git`, or what that file of a linked worktree names.
pub(crate) fn git_directory(workspace: &Path) -> PathBuf {
    let git = workspace.join(".git");
    pointer(&git, workspace).unwrap_or(git)
}

/// Reads `gitdir: PATH` and resolves it.
fn pointer(file: &Path, from: &Path) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let text = read_small(file)?;
    let path = text.strip_prefix("gitdir:")?.trim();
    fs::canonicalize(from.join(path)).ok()
}

fn read_small(file: &Path) -> Option<String> {
    let small = fs::metadata(file).ok()?.len() <= POINTER_MAX;
    if small { fs::read_to_string(file).ok() } else { None }
}

/// Returns git configuration of the workspace that is shown without the credentials that were found in it.
pub(crate) fn covers(found: &[Found], now: &Stack, workspace: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut finder = now.after();
    let in_config = found.iter().filter(|found| found.kind == FoundKind::InGitConfig);
    in_config
        .map(|found| {
            let entry = finder.find(&found.path).ok().flatten();
            // What cannot be read is covered by nothing at all: git then says so, and no secret is seen.
            let config = entry.and_then(|entry| entry.read(CONFIG_MAX).ok()).unwrap_or_default();
            (workspace.join(found.path.as_path()), without_credentials(&config))
        })
        .collect()
}

/// Returns the configuration of the repository behind a linked worktree without the credentials in it, when it has some.
/// `now` is the repository with what a task wrote to it, newest first.
pub(crate) fn repository_cover(now: &[Tree], repository: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let name = WorkspacePath::parse("config").ok()?;
    let entry = Stack::new(Vec::new(), now.to_vec()).after().find(&name).ok().flatten()?;
    // As in a workspace: what cannot be read is covered by nothing at all.
    let config = entry.read(CONFIG_MAX).unwrap_or_default();
    let shown = without_credentials(&config);
    (shown != config || config.is_empty()).then(|| (repository.join("config"), shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a repository with a linked worktree, and returns both.
    fn worktree(directory: &Path) -> (PathBuf, PathBuf) {
        let common = directory.join("main/.git");
        let own = common.join("worktrees/w");
        let workspace = directory.join("w");
        for made in [&common.join("objects"), &common.join("refs"), &own, &workspace] {
            fs::create_dir_all(made).expect("a directory");
        }
        fs::write(workspace.join(".git"), format!("gitdir: {}\n", own.display())).expect("a pointer");
        fs::write(own.join("gitdir"), format!("{}\n", workspace.join(".git").display())).expect("a way back");
        fs::write(own.join("commondir"), "../..\n").expect("a pointer");
        (workspace, common)
    }

    #[test]
    fn the_repository_of_a_linked_worktree_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let (workspace, common) = worktree(directory.path());
        assert_eq!(repository_of_worktree(&workspace), fs::canonicalize(common).ok());
    }

    #[test]
    fn a_pointer_to_what_does_not_point_back_is_not_believed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (workspace, _) = worktree(directory.path());
        let hostile = directory.path().join("hostile");
        fs::create_dir(&hostile).expect("a directory");
        fs::copy(workspace.join(".git"), hostile.join(".git")).expect("a copy");
        assert_eq!(repository_of_worktree(&hostile), None);
    }

    #[test]
    fn an_ordinary_repository_has_none() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join(".git")).expect("a repository");
        assert_eq!(repository_of_worktree(directory.path()), None);
    }
}
