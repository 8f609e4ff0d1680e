//! Runs of changed lines.

use std::time::{Duration, Instant};

use model::OsText;
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// Lines that are shown around a change.
const CONTEXT: usize = 3;
/// After this long a shorter difference is no longer looked for; what is found so far is correct all the same.
const PATIENCE: Duration = Duration::from_millis(500);
/// Git takes a file with a NUL byte among so many first ones for no text.
const LOOKED_AT: usize = 8000;

/// A run of changed lines with what is around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The first line before, counted from one; zero when there is none.
    pub old_start: usize,
    /// How many lines it has before.
    pub old_lines: usize,
    /// The first line after, counted from one; zero when there is none.
    pub new_start: usize,
    /// How many lines it has after.
    pub new_lines: usize,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What happened to it.
    pub sign: Sign,
    /// What it holds, without the line feed.
    pub text: OsText,
    /// Whether the file ends here without a line feed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// Nothing; it is shown for orientation.
    Context,
    /// It is gone.
    Removed,
    /// It is new.
    Added,
}

impl Sign {
    /// Returns the character that stands for it in a unified diff.
    pub fn mark(self) -> char {
        match self {
            Self::Context => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

impl Hunk {
    /// Returns the line that begins the hunk in a unified diff.
    pub fn head(&self) -> String {
        let range = |start: usize, lines: usize| match lines {
            1 => start.to_string(),
            lines => format!("{start},{lines}"),
        };
        format!("@@ -{} +{} @@", range(self.old_start, self.old_lines), range(self.new_start, self.new_lines))
    }
}

/// Tells whether git would take bytes for no text.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    // The lines are kept as text without NUL, so one further down counts too.
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0) || bytes.contains(&0)
}

/// Compares two texts line by line.
pub(super) fn hunks(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
    group_diff_ops(ops, CONTEXT).iter().map(|group| hunk(group, &old, &new)).collect()
}

/// Cuts hunks off after so many lines; returns how many lines were left out.
pub(super) fn shorten(hunks: &mut Vec<Hunk>, most: usize) -> u64 {
    let mut left = most;
    let mut left_out = 0;
    for hunk in hunks.iter_mut() {
        let kept = hunk.lines.len().min(left);
        left -= kept;
        left_out += (hunk.lines.len() - kept) as u64;
        hunk.lines.truncate(kept);
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    left_out
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn hunk(group: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) -> Hunk {
    let mut lines = Vec::new();
    for op in group {
        match op.tag() {
            DiffTag::Equal => lines.extend(op.old_range().map(|at| line(Sign::Context, old[at]))),
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                lines.extend(op.old_range().map(|at| line(Sign::Removed, old[at])));
                lines.extend(op.new_range().map(|at| line(Sign::Added, new[at])));
            }
        }
    }
    let (first, last) = (&group[0], &group[group.len() - 1]);
    let (old_range, new_range) =
        (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
    let start = |range: &std::ops::Range<usize>| if range.is_empty() { range.start } else { range.start + 1 };
    Hunk {
        old_start: start(&old_range),
        old_lines: old_range.len(),
        new_start: start(&new_range),
        new_lines: new_range.len(),
        lines,
    }
}

fn line(sign: Sign, bytes: &[u8]) -> Line {
    let (text, no_newline) = bytes.strip_suffix(b"\n").map_or((bytes, true), |text| (text, false));
    // INVARIANT: what holds a NUL byte is binary and has no lines.
    let text = OsText::new(text).unwrap_or_else(|_| unreachable!("a text holds no NUL byte"));
    Line { sign, text, no_newline }
}
