//! What a file's name says.

use std::sync::LazyLock;

use crate::name::{Pattern, Patterns, folded_names};

pub(super) const LIST: &str = include_str!("../../data/credential-names.txt");

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::parse(LIST));

/// When a file with such a name is a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Never, whatever it holds: everybody has it.
    Public,
    /// Not by its name.
    Never,
    Always,
    /// When it gives a variable a value.
    Values,
    /// When it gives a password, a token or a key a value.
    Token,
}

/// One line of the list.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) when: When,
    pub(super) reason: &'static str,
    /// Whether it is about a directory and what is in it.
    directory: bool,
}

#[derive(Default)]
struct Names {
    lines: Vec<Name>,
    patterns: Patterns,
}

/// A directory, as far as it decides about the names in it.
#[derive(Debug, Default)]
pub(super) struct Around {
    folded: Vec<String>,
    here: Here,
    /// What was so in the directories above, and how many names led to each.
    above: Vec<(usize, Here)>,
}

/// What a directory decides.
#[derive(Debug, Default, Clone, Copy)]
struct Here {
    /// The first line that is about this directory or one above it.
    line: Option<usize>,
    /// Whether it is in a `.git`.
    in_git: bool,
    /// Whether git keeps compressed files in it.
    in_objects: bool,
}

impl Around {
    /// Looks at the path of a directory; empty for the top.
    pub(super) fn of(directory: &[u8]) -> Self {
        let mut around = Self::default();
        around.enter(directory);
        around
    }

    /// Goes on to a directory in this one. What was found out of those above is not looked for again, so that a deep tree
    /// costs no more than a wide one.
    pub(super) fn enter(&mut self, name: &[u8]) {
        let depth = self.folded.len();
        self.above.push((depth, self.here));
        self.folded.extend(folded_names(name));
        for end in depth + 1..=self.folded.len() {
            let lines = NAMES.patterns.matching_end_of(&self.folded[..end]).into_iter();
            self.here.line = lines.filter(|index| NAMES.lines[*index].directory).chain(self.here.line).min();
            self.here.in_git |= self.folded[end - 1] == ".git";
            self.here.in_objects |= self.here.in_git && self.folded[end - 1] == "objects";
        }
    }

    /// Goes back to the directory around.
    pub(super) fn leave(&mut self) {
        if let Some((depth, here)) = self.above.pop() {
            self.folded.truncate(depth);
            self.here = here;
        }
    }

    /// Tells whether it is in a `.git`.
    pub(super) fn in_git(&self) -> bool {
        self.here.in_git
    }

    /// Tells whether git keeps compressed files in it, in which nothing could be seen.
    pub(super) fn in_objects(&self) -> bool {
        self.here.in_objects
    }

    /// Returns the first line that a file in the directory matches.
    pub(super) fn line_for(&mut self, name: &[u8]) -> Option<&'static Name> {
        let depth = self.folded.len();
        self.folded.extend(folded_names(name));
        let lines = NAMES.patterns.matching_end_of(&self.folded).into_iter();
        let line = lines.filter(|index| !NAMES.lines[*index].directory).chain(self.here.line).min();
        self.folded.truncate(depth);
        line.map(|index| &NAMES.lines[index])
    }
}

impl Names {
    /// Reads the list. It is part of the program: a line that cannot be read is a mistake of ours, which a test finds.
    fn parse(text: &'static str) -> Self {
        let mut names = Self::default();
        for line in crate::list::lines(text) {
            let [when, pattern] = line.fields.as_slice() else { continue };
            let when = match *when {
                "public" => When::Public,
                "never" => When::Never,
                "always" => When::Always,
                "values" => When::Values,
                "token" => When::Token,
                _ => continue,
            };
            names.lines.push(Name { when, reason: line.reason, directory: pattern.ends_with('/') });
            names.patterns.push(Pattern::parse(pattern));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_and_has_a_reason() {
        let written = LIST.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        assert_eq!(NAMES.lines.len(), written);
        assert!(NAMES.lines.iter().all(|line| !line.reason.is_empty()));
    }

    #[test]
    fn a_directory_that_was_entered_step_by_step_is_what_its_path_says() {
        for path in ["a/.ssh/b", ".git/objects/ab", "objects/.git/x", "x/y", ".aws", ""] {
            let whole = Around::of(path.as_bytes());
            let mut around = Around::of(b"");
            for name in path.split('/') {
                around.enter(b".git");
                around.enter(b"objects");
                around.leave();
                around.leave();
                around.enter(name.as_bytes());
            }
            let of = |around: &Around| (around.here.line, around.in_git(), around.in_objects());
            assert_eq!(of(&around), of(&whole), "{path}");
            path.split('/').for_each(|_| around.leave());
            assert_eq!((of(&around), around.folded.len()), ((None, false, false), 0), "{path}");
        }
    }

    #[test]
    fn a_name_is_judged_by_its_end_and_a_directory_by_what_is_in_it() {
        let when = |path: &str| {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            Around::of(directory.as_bytes()).line_for(name.as_bytes()).map(|line| line.when)
        };
        assert_eq!(when("deploy/.env"), Some(When::Values));
        assert_eq!(when(".env/lib/python/site.py"), None);
        assert_eq!(when(".env.example"), Some(When::Never));
        assert_eq!(when("app/.ENV.Production"), Some(When::Values));
        assert_eq!(when("web/node_modules/x/test/id_rsa"), Some(When::Public));
        assert_eq!(when("keys/id_rsa"), Some(When::Always));
        assert_eq!(when("keys/id_rsa.pub"), Some(When::Never));
        assert_eq!(when("home/.ssh/work"), Some(When::Always));
        assert_eq!(when(".ssh"), None);
        assert_eq!(when(".aws/credentials"), Some(When::Always));
        assert_eq!(when("src/credentials.rs"), None);
    }
}
