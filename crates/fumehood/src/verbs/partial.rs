//! `--only` and `--hide`: which paths of a workspace a command does not see.
//!
//! Guarantees: what is hidden is named as few paths as possible, a directory for all that is in it. Git's own directory
//! stays, unless `--hide` names it: without it nothing that works with git could run.
//! Leaves to others: hiding it (`sandbox`). A file that the command makes itself is its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use engine::{Engine, Scope};
use model::task::Task;
use model::{ChangeKind, FileKind, Pathspecs, WorkspacePath};

use crate::error::CliError;

/// What is to be seen of a workspace.
pub(super) struct Partial {
    pub(super) only: Pathspecs,
    pub(super) hide: Pathspecs,
}

impl Partial {
    /// Tells whether everything is to be seen, so that nothing need be looked at.
    fn is_whole(&self) -> bool {
        self.only.is_empty() && self.hide.is_empty()
    }

    fn hides(&self, path: &WorkspacePath) -> bool {
        let is_git = path.as_bytes() == b".git" || path.as_bytes().starts_with(b".git/");
        let wanted = is_git || self.only.is_empty() || self.only.matches(path);
        !wanted || (!self.hide.is_empty() && self.hide.matches(path))
    }

    /// Returns the paths of a task's workspace that are to be hidden: of its base, and of what its layers made.
    pub(super) fn hidden(&self, engine: &Engine, task: &Task) -> Result<Vec<WorkspacePath>, CliError> {
        if self.is_whole() {
            return Ok(Vec::new());
        }
        let mut hidden = self.below(&engine.base_directory(task))?;
        let review = engine.review(task, Scope::All)?;
        let made = review.report.changes.into_iter().filter(|change| change.kind == ChangeKind::Created);
        hidden.extend(made.filter(|change| change.file != FileKind::Directory).map(|change| change.path));
        let mut finder = engine.stack(task, &review.layers)?.after();
        let mut there = Vec::new();
        for path in hidden.into_iter().filter(|path| self.hides(path)) {
            if finder.find(&path).map_err(engine::EngineError::from)?.is_some() {
                there.push(path);
            }
        }
        Ok(there)
    }

    /// Returns the paths below a directory that are to be hidden.
    fn below(&self, top: &Path) -> Result<Vec<WorkspacePath>, CliError> {
        let mut hidden = Vec::new();
        self.walk(top, Path::new(""), &mut hidden)?;
        Ok(hidden)
    }

    /// Adds what is to be hidden in a directory, and tells whether that is all of it.
    fn walk(&self, top: &Path, below: &Path, hidden: &mut Vec<WorkspacePath>) -> Result<bool, CliError> {
        let place = top.join(below);
        let mut all = true;
        for (path, is_directory) in entries(&place, below)? {
            let named = WorkspacePath::parse(&path).map_err(|error| CliError::Cannot(error.to_string()))?;
            let gone =
                if is_directory { self.directory(top, &path, &named, hidden)? } else { self.hides(&named) };
            if gone {
                hidden.push(named);
            }
            all &= gone;
        }
        Ok(all)
    }

    /// Looks into a directory, and tells whether it is to be hidden as a whole.
    fn directory(
        &self,
        top: &Path,
        path: &Path,
        named: &WorkspacePath,
        hidden: &mut Vec<WorkspacePath>,
    ) -> Result<bool, CliError> {
        if !self.hide.is_empty() && self.hide.matches(named) {
            return Ok(true);
        }
        let before = hidden.len();
        let all = self.walk(top, path, hidden)?;
        if all && self.hides(named) {
            hidden.truncate(before);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Returns what is in a directory, and whether each is a directory itself. A link is not.
fn entries(place: &Path, below: &Path) -> Result<Vec<(PathBuf, bool)>, CliError> {
    let list = || -> io::Result<Vec<(PathBuf, bool)>> {
        fs::read_dir(place)?
            .map(|entry| entry.and_then(|e| Ok((below.join(e.file_name()), e.file_type()?.is_dir()))))
            .collect()
    };
    let mut entries = list().map_err(CliError::file("list", place))?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(only: &[&str], hide: &[&str]) -> Vec<String> {
        let directory = tempfile::tempdir().expect("a directory");
        for file in
            [".git/config", "README", "src/a.rs", "src/b.txt", "docs/x/y.md", "docs/z.md", "target/debug/a"]
        {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().expect("is in one")).expect("makes directories");
            fs::write(path, "").expect("writes");
        }
        std::os::unix::fs::symlink("src", directory.path().join("link")).expect("links");
        fs::create_dir(directory.path().join("empty")).expect("makes a directory");
        let read = |given: &[&str]| Pathspecs::parse(given, None).expect("are pathspecs");
        let partial = Partial { only: read(only), hide: read(hide) };
        let mut hidden: Vec<String> =
            partial.below(directory.path()).expect("walks").iter().map(ToString::to_string).collect();
        hidden.sort();
        hidden
    }

    #[test]
    fn what_is_hidden_is_named_by_as_few_paths_as_possible() {
        assert_eq!(hidden(&[], &[]), [""; 0]);
        assert_eq!(hidden(&[], &["docs"]), ["docs"]);
        assert_eq!(hidden(&[], &["*.md"]), ["docs/x/y.md", "docs/z.md"]);
        assert_eq!(hidden(&["src"], &[]), ["README", "docs", "empty", "link", "target"]);
        assert_eq!(
            hidden(&["src", "docs/x"], &["*.txt"]),
            ["README", "docs/z.md", "empty", "link", "src/b.txt", "target"]
        );
        assert_eq!(hidden(&[":!target"], &[]), ["target"]);
    }

    #[test]
    fn git_s_own_directory_stays_unless_it_is_named() {
        assert!(!hidden(&["src"], &[]).contains(&".git".to_owned()));
        assert_eq!(hidden(&[], &[".git"]), [".git"]);
    }
}
