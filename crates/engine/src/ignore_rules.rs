//! Which changed paths git ignores: by the ignore files and the index of the base, read without starting git.
//!
//! What an action says about a directory of the base counts for nothing. In a directory that it made, it may say what
//! git ignores, as caches do that are made to be left out.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use inspect::{Finder, Stack};
use model::{Change, ChangeKind, FileKind, WorkspacePath};

use crate::git_dirs::git_directory;
use crate::tracked::Tracked;

/// Marks the changes that git ignores: they stay in the layer, and are applied only when somebody asks for that.
pub(crate) fn mark(changes: &mut [Change], base: &Path, stack: &Stack) {
    if !base.join(".git").exists() {
        return;
    }
    let mut rules = Rules { base, now: stack.after(), known: Vec::new() };
    let mut tracked = None;
    for change in changes.iter_mut() {
        change.ignored = rules.ignores(&change.path, change.file == FileKind::Directory)
            // Read only where it makes a difference.
            && !tracked.get_or_insert_with(|| Tracked::of(&git_directory(base))).has(change.path.as_bytes());
    }
    mark_directories(changes);
}

/// Tells whether a path lies in a directory that git ignores.
pub(crate) fn in_ignored_directory(path: &WorkspacePath, base: &Path, now: &Stack) -> bool {
    let directory = path.as_path().parent().and_then(|directory| WorkspacePath::parse(directory).ok());
    let Some(directory) = directory.filter(|_| base.join(".git").exists()) else { return false };
    Rules { base, now: now.after(), known: Vec::new() }.ignores(&directory, true)
}

/// Marks directories that were made and hold only what is ignored: git knows no directories.
fn mark_directories(changes: &mut [Change]) {
    let above = |change: &Change| -> Vec<PathBuf> {
        change.path.as_path().ancestors().skip(1).map(Path::to_owned).collect()
    };
    let full: HashSet<PathBuf> = changes.iter().flat_map(above).collect();
    let is_full = |change: &Change| full.contains(change.path.as_path());
    let needed: HashSet<PathBuf> =
        changes.iter().filter(|change| !change.ignored && !is_full(change)).flat_map(above).collect();
    for change in changes.iter_mut() {
        let made = change.file == FileKind::Directory && change.kind == ChangeKind::Created;
        change.ignored |= made && is_full(change) && !needed.contains(change.path.as_path());
    }
}

/// The ignore files of the directories seen so far. A deeper file has the last word, as in git.
struct Rules<'a> {
    base: &'a Path,
    /// The workspace as it is now.
    now: Finder,
    known: Vec<(PathBuf, Gitignore)>,
}

impl Rules<'_> {
    fn ignores(&mut self, path: &WorkspacePath, is_directory: bool) -> bool {
        let path = path.as_path();
        let parents: Vec<&Path> = path.ancestors().skip(1).collect();
        // From the top down: what an ignored directory holds is ignored, whatever is said further down.
        for directory in parents.iter().rev().skip(1) {
            if self.matches(directory, true) {
                return true;
            }
        }
        self.matches(path, is_directory)
    }

    fn matches(&mut self, path: &Path, is_directory: bool) -> bool {
        for directory in path.ancestors().skip(1) {
            let rules = self.of(directory);
            let below = path.strip_prefix(directory).unwrap_or(path);
            match rules.matched(below, is_directory) {
                ::ignore::Match::Ignore(_) => return true,
                ::ignore::Match::Whitelist(_) => return false,
                ::ignore::Match::None => {}
            }
        }
        false
    }

    fn of(&mut self, directory: &Path) -> &Gitignore {
        if let Some(at) = self.known.iter().position(|(known, _)| known == directory) {
            return &self.known[at].1;
        }
        let mut builder = GitignoreBuilder::new("");
        // A file that is missing or damaged ignores nothing.
        if self.base.join(directory).symlink_metadata().is_ok() {
            let _ = builder.add(self.base.join(directory).join(".gitignore"));
        } else {
            for line in self.lines_made_in(directory) {
                let _ = builder.add_line(None, &line);
            }
        }
        if directory == Path::new("") {
            let _ = builder.add(self.base.join(".git/info/exclude"));
        }
        let rules = builder.build().unwrap_or_else(|_| Gitignore::empty());
        self.known.push((directory.to_owned(), rules));
        let last = self.known.len() - 1;
        &self.known[last].1
    }

    /// Returns the lines of the ignore file of a directory that was made.
    fn lines_made_in(&mut self, directory: &Path) -> Vec<String> {
        const LARGEST: u64 = 64 << 10;
        let Ok(path) = WorkspacePath::parse(directory.join(".gitignore")) else { return Vec::new() };
        let found = self.now.find(&path).ok().flatten();
        let text = found.and_then(|file| file.read(LARGEST).ok()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}
