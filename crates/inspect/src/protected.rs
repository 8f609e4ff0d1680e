//! Paths whose change must wait for a person.
//!
//! Guarantees: names are compared the way file systems that fold them would, so that `.GIT`, `.git ` and names with
//! invisible characters count as what they would become. The list is `data/protected-paths.txt`, with a reason on
//! each line. Leaves to others: asking the person.

use std::fmt;
use std::sync::LazyLock;

use model::intake::Accepts;
use model::{ChangeKind, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::name::{Pattern, Patterns, folded_names};

static BUILT_IN: LazyLock<Rules> = LazyLock::new(|| parse(include_str!("../data/protected-paths.txt")));

/// A kind of protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// What git keeps for itself. Nothing of it is ever applied.
    GitInternals,
    /// Files of the work tree that change what git does.
    GitSettings,
    /// Programs that git starts by itself.
    Hooks,
    /// What runs on a server with its credentials, or decides who must agree.
    CiFiles,
    /// Tests. A new one is ordinary work; changing or deleting one that exists is not.
    Tests,
    /// What decides which tests run and how.
    TestRunner,
    /// What an editor or a debugger obeys or runs as soon as the directory is opened.
    EditorSettings,
    /// What tells an agent what it may do, or starts programs for it.
    AgentSettings,
    /// What a shell or an interpreter runs when somebody comes into the directory or starts it.
    StartupFiles,
    /// What makes a tool use other programs, code or servers than it would.
    ToolSettings,
    /// Exact versions of dependencies. Listed apart, and not held.
    Lockfiles,
}

const CLASSES: [(Class, &str, &str); 11] = [
    (Class::GitInternals, "git-internals", "git keeps this for itself"),
    (Class::GitSettings, "git-settings", "this changes what git does"),
    (Class::Hooks, "hooks", "git starts this by itself"),
    (Class::CiFiles, "ci-files", "this decides what a server runs or who must agree"),
    (Class::Tests, "tests", "this is a test that exists"),
    (Class::TestRunner, "test-runner", "this decides which tests run and how"),
    (Class::EditorSettings, "editor-settings", "an editor or a debugger obeys this"),
    (Class::AgentSettings, "agent-settings", "agents obey this"),
    (Class::StartupFiles, "startup-files", "a shell or an interpreter runs this by itself"),
    (Class::ToolSettings, "tool-settings", "this changes which programs or servers a tool uses"),
    (Class::Lockfiles, "lockfiles", "this fixes the versions of dependencies"),
];

impl Class {
    /// Returns the code by which programs know the class.
    pub fn code(self) -> &'static str {
        self.row().1
    }

    /// Says in a few words why the class is protected.
    pub fn meaning(self) -> &'static str {
        self.row().2
    }

    /// Tells whether a change of this kind to such a path must wait for a person.
    pub fn holds(self, kind: ChangeKind) -> bool {
        match self {
            // A new test cannot weaken the ones that are there. Code that runs before other tests can, and is in
            // the class `test-runner`.
            Self::Tests => kind != ChangeKind::Created,
            Self::Lockfiles => false,
            _ => true,
        }
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        CLASSES.iter().find(|row| row.0 == self).unwrap_or(&CLASSES[0])
    }

    fn from_code(code: &str) -> Option<Self> {
        CLASSES.iter().find(|row| row.1 == code).map(|row| row.0)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The class of what matches.
    pub class: Class,
    /// Why such a path is protected.
    pub reason: String,
}

/// All lines of the list, and what a workspace adds to them.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    patterns: Patterns,
    accepts: Option<Accepts>,
}

impl Rules {
    /// Returns the list that comes with the product.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Adds a directory of this workspace from which git takes its hooks (`core.hooksPath`).
    #[must_use]
    pub fn with_hooks_in(mut self, directory: &WorkspacePath) -> Self {
        let reason = "git takes its hooks from here (core.hooksPath)".to_owned();
        self.push(Rule { class: Class::Hooks, reason }, Pattern::of_path(directory));
        self
    }

    /// Lets everything else than this wait for a person too.
    #[must_use]
    pub fn accepting(self, accepts: Accepts) -> Self {
        Self { accepts: Some(accepts), ..self }
    }

    /// Returns what does not have to wait, where only some of it need not.
    pub fn accepts(&self) -> Option<&Accepts> {
        self.accepts.as_ref()
    }

    /// Returns the lines that a path matches, in the order of the list.
    pub fn matching(&self, path: &WorkspacePath) -> Vec<&Rule> {
        InTurn::new(self).matching(path)
    }

    /// Returns all lines, each with its pattern as it is written.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Rule)> {
        self.rules.iter().enumerate().map(|(index, rule)| (self.patterns.get(index).as_str(), rule))
    }

    fn push(&mut self, rule: Rule, pattern: Pattern) {
        self.rules.push(rule);
        self.patterns.push(pattern);
    }
}

/// Looks one path up after another. What a path has in common with the one before it is not looked at again, so paths in
/// their order cost about as much as the names that they add.
#[derive(Debug)]
pub(crate) struct InTurn<'r> {
    rules: &'r Rules,
    /// The path before.
    path: Vec<u8>,
    /// Its names, folded.
    names: Vec<String>,
    /// The lines that it matches, each where it was met first.
    found: Vec<usize>,
    /// Its parts, from the top.
    parts: Vec<Part>,
}

/// How much there was after one part of a path.
#[derive(Debug)]
struct Part {
    bytes: usize,
    names: usize,
    found: usize,
}

impl<'r> InTurn<'r> {
    /// Begins without a path.
    pub(crate) fn new(rules: &'r Rules) -> Self {
        Self { rules, path: Vec::new(), names: Vec::new(), found: Vec::new(), parts: Vec::new() }
    }

    /// Returns the lines that a path matches, in the order of the list.
    pub(crate) fn matching(&mut self, path: &WorkspacePath) -> Vec<&'r Rule> {
        let path = path.as_bytes();
        self.back_to_what_is_common(path);
        let known = self.parts.last().map_or(0, |part| part.bytes + 1);
        for part in path.get(known..).into_iter().flat_map(|rest| rest.split(|byte| *byte == b'/')) {
            for name in folded_names(part) {
                self.names.push(name);
                let new = self.rules.patterns.matching_end_of(&self.names);
                let new: Vec<usize> = new.into_iter().filter(|rule| !self.found.contains(rule)).collect();
                self.found.extend(new);
            }
            let bytes = self.parts.last().map_or(0, |part| part.bytes + 1) + part.len();
            self.parts.push(Part { bytes, names: self.names.len(), found: self.found.len() });
        }
        self.path = path.to_vec();
        let mut found = self.found.clone();
        found.sort_unstable();
        found.into_iter().map(|index| &self.rules.rules[index]).collect()
    }

    fn back_to_what_is_common(&mut self, path: &[u8]) {
        let same = self.path.iter().zip(path).take_while(|(old, new)| old == new).count();
        let ends = |part: &Part| part.bytes == path.len() || path.get(part.bytes) == Some(&b'/');
        let kept = self.parts.partition_point(|part| part.bytes <= same);
        // The last of them may be only the beginning of a name.
        let kept = if kept > 0 && !ends(&self.parts[kept - 1]) { kept - 1 } else { kept };
        self.parts.truncate(kept);
        let (names, found) = self.parts.last().map_or((0, 0), |part| (part.names, part.found));
        self.names.truncate(names);
        self.found.truncate(found);
    }
}

/// Returns the classes of a path by the list that comes with the product, each once.
pub fn classify(path: &WorkspacePath) -> Vec<Class> {
    let mut classes: Vec<Class> = Rules::built_in().matching(path).iter().map(|rule| rule.class).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// Reads the list. It is part of the program: a line that cannot be read is a mistake of ours, which a test finds.
fn parse(text: &str) -> Rules {
    let mut rules = Rules::default();
    for line in crate::list::lines(text) {
        let [class, pattern] = line.fields.as_slice() else { continue };
        if let Some(class) = Class::from_code(class) {
            rules.push(Rule { class, reason: line.reason.to_owned() }, Pattern::parse(pattern));
        }
    }
    rules
}

/// What git writes by itself in ordinary work at the top of a repository: nobody decides anything by seeing it, and
/// like everything in `.git` it is never applied. Hooks, configuration and attributes are not among it.
const GIT_BOOKKEEPING: [&str; 12] = [
    "index",
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "COMMIT_EDITMSG",
    "AUTO_MERGE",
    "packed-refs",
    "gc.log",
    "objects",
    "refs",
    "logs",
];

/// Tells whether a path is one of the files in which the repository at the top keeps its own state: the index, objects,
/// branches and their logs.
pub fn is_git_bookkeeping(path: &WorkspacePath) -> bool {
    let Some(inside) = path.as_bytes().strip_prefix(b".git/") else { return false };
    let first = inside.split(|byte| *byte == b'/').next().unwrap_or_default();
    GIT_BOOKKEEPING.iter().any(|name| name.as_bytes() == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(path: &str) -> Vec<&'static str> {
        classify(&WorkspacePath::parse(path).expect("inside")).into_iter().map(Class::code).collect()
    }

    #[test]
    fn every_line_of_the_list_is_understood_and_has_a_reason() {
        let text = include_str!("../data/protected-paths.txt");
        let written = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        let rules: Vec<_> = Rules::built_in().all().map(|(_, rule)| rule).collect();
        assert_eq!(rules.len(), written);
        assert!(rules.iter().all(|rule| !rule.reason.is_empty()));
        for (class, code, _) in CLASSES {
            assert!(rules.iter().any(|rule| rule.class == class), "nothing is in {code}");
        }
    }

    #[test]
    fn each_class_finds_its_paths() {
        for (path, class) in [
            (".git/hooks/pre-commit", "git-internals"),
            ("vendor/lib/.git/config", "git-internals"),
            (".gitmodules", "git-settings"),
            (".husky/pre-push", "hooks"),
            (".pre-commit-config.yaml", "hooks"),
            (".github/workflows/ci.yml", "ci-files"),
            ("Jenkinsfile", "ci-files"),
            (".gitlab-ci.yml", "ci-files"),
            (".ci/run", "ci-files"),
            ("ci/build.sh", "ci-files"),
            ("tests/test_calc.py", "tests"),
            ("pkg/server/server_test.go", "tests"),
            ("src/app.test.tsx", "tests"),
            ("src/__tests__/a.js", "tests"),
            ("src/test/java/CalcTest.java", "tests"),
            ("tests/conftest.py", "test-runner"),
            ("jest.config.mjs", "test-runner"),
            ("run-tests.sh", "test-runner"),
            (".vscode/settings.json", "editor-settings"),
            (".devcontainer/devcontainer.json", "editor-settings"),
            ("AGENTS.md", "agent-settings"),
            ("sub/CLAUDE.md", "agent-settings"),
            (".mcp.json", "agent-settings"),
            (".envrc", "startup-files"),
            (".cargo/config.toml", "tool-settings"),
            ("Cargo.lock", "lockfiles"),
        ] {
            assert!(classes(path).contains(&class), "{path}: {:?}", classes(path));
        }
    }

    #[test]
    fn ordinary_work_is_in_no_class() {
        for path in [
            "src/main.rs",
            "README.md",
            "Makefile",
            "package.json",
            "Cargo.toml",
            "build.rs",
            "lib/ci/x.rb",
            "src/git/hooks.rs",
            "docs/testing.md",
            "src/contest/entry.py",
            ".gitignore",
            "src/attestation.go",
            "github/x",
            "src/protest.ts",
            "src/cargo/mod.rs",
            "latest.txt",
        ] {
            assert_eq!(classes(path), [""; 0], "{path}");
        }
    }

    #[test]
    fn other_spellings_of_a_name_are_the_same_name() {
        for path in [
            ".GIT/config",
            ".Git/config",
            ".git /config",
            ".git./config",
            ".git. . /config",
            "a/.giT/x",
            ".g\u{200c}it/config",
            "\u{feff}.git/config",
            ".gi\u{200d}t/config",
            ".g\u{131}t/../x",
            "GIT~1/config",
            "git~1/config",
            ".git::$INDEX_ALLOCATION/config",
            ".git\\config",
            "x\\.git\\config",
            ".ɡit/x",
        ] {
            let Ok(path) = WorkspacePath::parse(path) else { continue };
            let is_lookalike = path.to_string().contains(['ɡ', 'ı']);
            assert_eq!(classify(&path).contains(&Class::GitInternals), !is_lookalike, "{path:?}");
        }
        for (path, class) in [
            (".Cursor/mcp.json", Class::AgentSettings),
            (".hu\u{17f}ky/pre-commit", Class::Hooks),
            (".GITHUB/workflows/x.yml", Class::CiFiles),
            ("GITHUB~1/workflows/x.yml", Class::CiFiles),
            ("VSCODE~1/settings.json", Class::EditorSettings),
            (".\u{212a}iro/hooks", Class::AgentSettings),
            ("JENKINSFILE", Class::CiFiles),
        ] {
            let path = WorkspacePath::parse(path).expect("inside");
            assert!(classify(&path).contains(&class), "{path:?}");
        }
    }

    #[test]
    fn a_new_test_is_ordinary_work_and_a_changed_one_is_not() {
        assert!(!Class::Tests.holds(ChangeKind::Created));
        assert!(Class::Tests.holds(ChangeKind::Modified) && Class::Tests.holds(ChangeKind::Deleted));
        assert!(Class::TestRunner.holds(ChangeKind::Created));
        assert!(!Class::Lockfiles.holds(ChangeKind::Modified));
    }

    #[test]
    fn what_was_looked_up_before_changes_no_answer() {
        let parts =
            [".git", ".gitx", ".git\\config", "a", "ab", "tests", ".github", "workflows", "x.test.js"];
        let path = |names: &[&str]| WorkspacePath::parse(names.join("/")).expect("inside");
        let mut paths = Vec::new();
        for first in parts {
            paths.push(path(&[first]));
            for second in parts {
                paths.push(path(&[first, second]));
                paths.extend(parts.map(|third| path(&[first, second, third])));
            }
        }
        let rules = Rules::built_in();
        let alone: Vec<_> = paths.iter().map(|path| rules.matching(path)).collect();
        for step in [1, 7, 101, 400] {
            let mut in_turn = InTurn::new(rules);
            for at in (0..paths.len()).map(|number| number * step % paths.len()) {
                assert_eq!(in_turn.matching(&paths[at]), alone[at], "{}", paths[at]);
            }
        }
    }

    #[test]
    fn a_workspace_may_name_its_own_directory_of_hooks() {
        let directory = WorkspacePath::parse("tools/git").expect("inside");
        let rules = Rules::built_in().clone().with_hooks_in(&directory);
        let hook = WorkspacePath::parse("Tools/Git/post-merge").expect("inside");
        assert_eq!(rules.matching(&hook).first().map(|rule| rule.class), Some(Class::Hooks));
        assert!(rules.matching(&WorkspacePath::parse("x/tools/git/y").expect("inside")).is_empty());
    }
}
