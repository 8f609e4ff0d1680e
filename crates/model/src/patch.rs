//! Reads a unified diff as a model writes it: which files it names, and the same diff with counts that are right.
//!
//! Guarantees: every file that the diff can touch is named, because a line that is neither a header that we know
//! nor part of a hunk is refused; the counts of the diff that comes out are those of its lines.
//! Leaves to others: whether the hunks fit the files, and whether the files may be changed.

use std::collections::BTreeSet;

use crate::path::{PathError, WorkspacePath};
use crate::text::escape;

/// A diff that has been read.
#[derive(Debug, PartialEq, Eq)]
pub struct Patch {
    /// The files that it names, each once, in order of their names, as they are written there.
    pub paths: Vec<String>,
    /// The diff, with counts that are right.
    pub diff: String,
    /// The lines that it adds.
    pub added: Vec<String>,
}

/// Says why a text is not a unified diff, with its line and what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatchError(String);

impl Patch {
    /// Returns the files that it names as paths from the top of the workspace, each once, in order of their names.
    ///
    /// # Errors
    /// When one of them is absolute or climbs out.
    pub fn files(&self) -> Result<BTreeSet<WorkspacePath>, PathError> {
        self.paths.iter().map(WorkspacePath::parse).collect()
    }
}

const FORM: &str = "send a unified diff: `--- a/PATH`, `+++ b/PATH`, then `@@ -LINE,COUNT +LINE,COUNT @@` and lines \
                    that begin with a space, `-` or `+`";

/// Headers of git that say nothing beyond what `---`, `+++` and the hunks say. They are left out.
const HARMLESS: [&str; 3] = ["index ", "new file mode 100644", "deleted file mode "];

/// Reads a diff. What comes out of it, and only that, reads as itself again.
///
/// # Errors
/// When it is not a unified diff, or names a file in a way that we do not read.
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    read(text).map_err(PatchError)
}

fn read(text: &str) -> Result<Patch, String> {
    let mut reader = Reader { lines: text.lines().collect(), ..Reader::default() };
    while let Some(line) = reader.peek() {
        if line.starts_with("@@ ") {
            return Err(reader.wrong("is a hunk before any `---` and `+++`"));
        }
        if line.starts_with("--- ") {
            reader.file()?;
        } else if line.starts_with("diff --git ") {
            reader.git_headers()?;
        } else if line.trim().is_empty() {
            reader.at += 1;
        } else {
            return Err(reader.wrong("is not part of a unified diff"));
        }
    }
    if reader.paths.is_empty() {
        return Err(format!("the patch names no file: {FORM}"));
    }
    let diff = reader.out.iter().map(|line| format!("{line}\n")).collect();
    Ok(Patch { paths: reader.paths.into_iter().collect(), diff, added: reader.added })
}

#[derive(Default)]
struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    paths: BTreeSet<String>,
    out: Vec<String>,
    added: Vec<String>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> String {
        let line: String = self.peek().unwrap_or("the end").chars().take(80).collect();
        format!("line {} of the patch, `{}`, {what}: {FORM}", self.at + 1, escape(&line))
    }

    fn keep(&mut self, line: &str) {
        self.out.push(line.to_owned());
        self.at += 1;
    }

    /// Reads `diff --git` and the headers below it, up to the `---` that must follow: what git would do by headers
    /// alone (rename, copy, change modes, make an empty file) names files in ways that we do not read.
    fn git_headers(&mut self) -> Result<(), String> {
        self.at += 1;
        while self.peek().is_some_and(|line| HARMLESS.iter().any(|header| line.starts_with(header))) {
            self.at += 1;
        }
        match self.peek() {
            Some(line) if line.starts_with("--- ") => Ok(()),
            _ => Err(self.wrong(
                "stands where `--- a/PATH` must (rename, copy, change modes and write binary files by run_command)",
            )),
        }
    }

    /// Reads `---`, `+++` and the hunks below them.
    fn file(&mut self) -> Result<(), String> {
        let old = self.header("--- ", "a/")?;
        let new = match self.peek() {
            Some(line) if line.starts_with("+++ ") => self.header("+++ ", "b/")?,
            _ => return Err(self.wrong("stands where `+++ b/PATH` must")),
        };
        if old.is_none() && new.is_none() {
            return Err(format!("the patch makes `/dev/null` out of `/dev/null`: {FORM}"));
        }
        self.paths.extend(old.into_iter().chain(new));
        if !self.peek().is_some_and(|line| line.starts_with("@@ ")) {
            return Err(self.wrong("stands where a hunk must"));
        }
        while self.peek().is_some_and(|line| line.starts_with("@@ ")) {
            self.hunk()?;
        }
        Ok(())
    }

    fn header(&mut self, mark: &str, side: &str) -> Result<Option<String>, String> {
        let line = self.peek().unwrap_or_default();
        let name = line.strip_prefix(mark).unwrap_or_default();
        // A tab ends the name; what follows is a time.
        let name = name.split('\t').next().unwrap_or_default().trim_end();
        let path = self.name(name, side)?;
        match &path {
            // Always with its side, so that what applies the diff strips the same part as we did.
            Some(path) => self.keep(&format!("{mark}{side}{path}")),
            None => self.keep(&format!("{mark}/dev/null")),
        }
        Ok(path)
    }

    fn name(&self, name: &str, side: &str) -> Result<Option<String>, String> {
        if name == "/dev/null" {
            return Ok(None);
        }
        // git quotes names with unusual bytes; such a file can be changed by write_file or a command.
        if name.starts_with('"') || name.is_empty() {
            return Err(self.wrong("has a quoted or empty name, which cannot be used here"));
        }
        Ok(Some(name.strip_prefix(side).unwrap_or(name).to_owned()))
    }

    /// Reads a hunk. When its counts are not those of its lines (models miscount), its lines are counted.
    fn hunk(&mut self) -> Result<(), String> {
        let header = self.peek().unwrap_or_default();
        let Some(claimed) = Counts::read(header) else {
            return Err(self.wrong("is not the head of a hunk"));
        };
        let start = self.at + 1;
        let end = self.end_by_counts(start, claimed).unwrap_or_else(|| self.end_by_look(start));
        let mut body = Vec::new();
        for at in start..end {
            self.at = at;
            body.push(match self.lines[at] {
                // Models and editors drop the space of an empty line.
                "" => " ".to_owned(),
                line if line.starts_with([' ', '+', '-', '\\']) => line.to_owned(),
                _ => return Err(self.wrong("begins with neither a space, `-` nor `+`")),
            });
        }
        let counted = claimed.counted(&body);
        if counted.old == 0 && counted.new == 0 {
            self.at = start - 1;
            return Err(self.wrong("is a hunk without lines"));
        }
        self.out.push(counted.head(header));
        self.added.extend(body.iter().filter_map(|line| line.strip_prefix('+')).map(str::to_owned));
        self.out.extend(body);
        self.at = end;
        Ok(())
    }

    /// Returns where the hunk ends if its counts are right: they are used up there, and nothing of a hunk follows.
    fn end_by_counts(&self, start: usize, claimed: Counts) -> Option<usize> {
        let (mut old, mut new, mut at) = (claimed.old, claimed.new, start);
        while old > 0 || new > 0 {
            let line = *self.lines.get(at)?;
            let (takes_old, takes_new) = match line.chars().next() {
                None | Some(' ') => (1, 1),
                Some('-') => (1, 0),
                Some('+') => (0, 1),
                Some('\\') => (0, 0),
                Some(_) => return None,
            };
            (old, new) = (old.checked_sub(takes_old)?, new.checked_sub(takes_new)?);
            at += 1;
        }
        while self.lines.get(at).is_some_and(|line| line.starts_with('\\')) {
            at += 1;
        }
        self.begins_anew(at).then_some(at)
    }

    /// Returns where the hunk ends by the look of its lines.
    fn end_by_look(&self, start: usize) -> usize {
        let mut end = start;
        while end < self.lines.len() && !self.begins_anew(end) {
            end += 1;
        }
        // Empty lines before the next file are more likely between the files than in them.
        while end > start && self.lines[end - 1].is_empty() {
            end -= 1;
        }
        end
    }

    /// Tells whether another hunk, another file or nothing stands here.
    fn begins_anew(&self, at: usize) -> bool {
        match self.lines.get(at) {
            None => true,
            Some(line) if line.starts_with("@@ ") || line.starts_with("diff --git ") => true,
            Some(line) if line.starts_with("--- ") => {
                self.lines.get(at + 1).is_some_and(|next| next.starts_with("+++ "))
            }
            Some(line) => line.is_empty() && self.lines[at..].iter().all(|line| line.is_empty()),
        }
    }
}

/// The head of a hunk: `@@ -OLD_START,OLD +NEW_START,NEW @@`.
#[derive(Clone, Copy)]
struct Counts {
    old_start: u64,
    old: u64,
    new_start: u64,
    new: u64,
}

impl Counts {
    fn read(header: &str) -> Option<Self> {
        let (old, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let range = |text: &str| match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        };
        let ((old_start, old), (new_start, new)) = (range(old)?, range(new)?);
        Some(Self { old_start, old, new_start, new })
    }

    fn counted(self, body: &[String]) -> Self {
        let count =
            |without: char| body.iter().filter(|line| !line.starts_with([without, '\\'])).count() as u64;
        Self { old: count('+'), new: count('-'), ..self }
    }

    /// Returns the head as it was when its counts are right, and a right one otherwise.
    fn head(self, given: &str) -> String {
        match Self::read(given) {
            Some(claimed) if claimed.old == self.old && claimed.new == self.new => given.to_owned(),
            _ => format!("@@ -{},{} +{},{} @@", self.old_start, self.old, self.new_start, self.new),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIMPLE: &str = "--- a/src/x.sh\n+++ b/src/x.sh\n@@ -1,3 +1,3 @@ f()\n a\n-b\n+c\n d\n";

    #[test]
    fn a_right_diff_comes_out_as_it_went_in() {
        let patch = parse(SIMPLE).expect("is a diff");
        assert_eq!((patch.diff.as_str(), patch.paths), (SIMPLE, vec!["src/x.sh".to_owned()]));
        assert_eq!(patch.added, ["c"]);
    }

    #[test]
    fn counts_that_are_wrong_are_counted() {
        for head in ["@@ -1,9 +1,2 @@", "@@ -1 +1 @@", "@@ -1,3 +1,4 @@"] {
            let text = SIMPLE.replace("@@ -1,3 +1,3 @@ f()", head);
            let patch = parse(&text).expect("is a diff");
            assert!(patch.diff.contains("@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n"), "{head}: {}", patch.diff);
        }
    }

    #[test]
    fn a_changed_line_that_looks_like_a_header_stays_a_line() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/secret\n+++ b/secret\n c\n";
        let patch = parse(text).expect("is a diff");
        assert_eq!(patch.paths, ["x"]);
        assert_eq!(patch.diff, text);
    }

    #[test]
    fn every_file_that_is_touched_is_named() {
        let text = "diff --git a/old b/new\nindex 1..2\n--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\n\
                    --- /dev/null\t2026-01-01\n+++ b/made\n@@ -0,0 +1 @@\n+x\n\
                    --- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n";
        assert_eq!(parse(text).expect("is a diff").paths, ["gone", "made", "new", "old"]);
    }

    #[test]
    fn names_without_a_side_get_one() {
        let patch = parse("--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b").expect("is a diff");
        assert_eq!(patch.diff, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n");
    }

    #[test]
    fn what_is_not_a_unified_diff_is_refused_with_its_line() {
        let cases = [
            ("", "names no file"),
            ("*** Begin Patch\n*** Update File: x\n", "line 1 of the patch"),
            ("@@ -1 +1 @@\n-a\n+b\n", "before any `---`"),
            ("--- a/x\n@@ -1 +1 @@\n-a\n+b\n", "line 2 of the patch"),
            ("--- a/x\n+++ b/x\n", "stands where a hunk must"),
            ("--- a/x\n+++ b/x\n@@ what @@\n-a\n", "not the head of a hunk"),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "a hunk without lines"),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nand then\n", "line 6 of the patch"),
            ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "`/dev/null` out of"),
            ("--- \"a/\\303\"\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "quoted"),
            ("diff --git a/x b/x\nGIT binary patch\nliteral 0\n", "by run_command"),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "by run_command"),
            ("diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n", "by run_command"),
            ("diff --git a/x b/x\nnew file mode 100644\nindex 0..0\n", "by run_command"),
            ("diff --git a/x b/y\nrename from x\nrename to y\n", "by run_command"),
        ];
        for (text, expected) in cases {
            let refused = parse(text).expect_err("is refused").to_string();
            assert!(refused.contains(expected), "{text:?} gave: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_crash(text in "(?s)(--- |\\+\\+\\+ |@@ -1,2 \\+1 @@|[-+ a/\n]){0,60}") {
            if let Ok(patch) = parse(&text) {
                prop_assert!(!patch.paths.is_empty());
                // What comes out is a diff, and the same one.
                let again = parse(&patch.diff).expect("our own diff is one");
                prop_assert_eq!(again, patch);
            }
        }
    }
}
