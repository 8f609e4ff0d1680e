//! Which changed paths git ignores: by the ignore files and the index of the base, read without starting git.

use std::path::Path;

use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use model::{Change, FileKind, WorkspacePath};

use crate::git_dirs::git_directory;
use crate::tracked::Tracked;

/// Marks the changes that git ignores: they stay in the layer, and are applied only when somebody asks for that.
pub(crate) fn mark(changes: &mut [Change], base: &Path) {
    if !base.join(".git").exists() {
        return;
    }
    let mut rules = Rules { base, known: Vec::new() };
    let mut tracked = None;
    for change in changes {
        change.ignored = rules.ignores(&change.path, change.file == FileKind::Directory)
            // Read only where it makes a difference.
            && !tracked.get_or_insert_with(|| Tracked::of(&git_directory(base))).has(change.path.as_bytes());
    }
}

/// The ignore files of the directories seen so far. A deeper file has the last word, as in git.
struct Rules<'a> {
    base: &'a Path,
    known: Vec<(std::path::PathBuf, Gitignore)>,
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
        let _ = builder.add(self.base.join(directory).join(".gitignore"));
        if directory == Path::new("") {
            let _ = builder.add(self.base.join(".git/info/exclude"));
        }
        let rules = builder.build().unwrap_or_else(|_| Gitignore::empty());
        self.known.push((directory.to_owned(), rules));
        let last = self.known.len() - 1;
        &self.known[last].1
    }
}
