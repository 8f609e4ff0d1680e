//! Differences between files before and after, for people and for programs.
//!
//! Guarantees: nothing is followed and nothing is run; what is too large is left out and said to be; the form for people
//! cannot drive a terminal, and a credential is in no form. The form for programs is what `git apply` takes. Leaves to others: colours, and which
//! changes to show.

mod hunks;
mod merge;
mod patch;
mod people;
mod side;

use model::{Change, ChangeKind, OsText, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::error::InspectError;
use crate::tree::Stack;

pub use hunks::{Hunk, Line, Sign};
pub use merge::merge_texts;
pub use patch::{Patch, patch};
pub use people::for_people;
pub use side::Side;

/// How much is read and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffBounds {
    /// Bytes of one file, before or after; larger ones are only said to be different.
    pub file: u64,
    /// Lines that are shown of one file.
    pub lines_of_file: usize,
    /// Lines that are shown in all.
    pub lines: usize,
}

impl Default for DiffBounds {
    fn default() -> Self {
        Self { file: 2 << 20, lines_of_file: 3_000, lines: 50_000 }
    }
}

/// What is different about one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The path.
    pub path: WorkspacePath,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it was.
    pub before: Option<Side>,
    /// What it is.
    pub after: Option<Side>,
    /// How what it holds is different.
    pub body: Body,
}

/// How what a file holds is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "body", rename_all = "kebab-case")]
pub enum Body {
    /// It holds nothing, or the same.
    None,
    /// It is text.
    Text {
        /// Runs of changed lines with what is around them.
        hunks: Vec<Hunk>,
        /// Lines that were left out for length.
        lines_left_out: u64,
    },
    /// It is no text.
    Binary,
    /// It is a link.
    Link {
        /// Where it pointed, when it was a link.
        before: Option<OsText>,
        /// Where it points, when it is a link.
        after: Option<OsText>,
    },
    /// It holds a credential, before or after.
    Credential,
    /// It is too large to be compared here.
    TooLarge,
    /// We may not read it.
    Unreadable,
}

/// Compares each changed path before and after.
///
/// # Errors
/// When the kernel refuses a step for another reason than permission.
pub fn differences(
    stack: &Stack,
    changes: &[Change],
    bounds: &DiffBounds,
) -> Result<Vec<Difference>, InspectError> {
    let (mut before, mut after) = (stack.before(), stack.after());
    let mut lines_left = bounds.lines;
    let mut all = Vec::with_capacity(changes.len());
    for change in changes {
        let old = side::Content::read(&mut before, &change.path, bounds.file)?;
        let new = side::Content::read(&mut after, &change.path, bounds.file)?;
        let mut body = body(old.as_ref(), new.as_ref());
        if let Body::Text { hunks, lines_left_out } = &mut body {
            *lines_left_out = hunks::shorten(hunks, bounds.lines_of_file.min(lines_left));
            lines_left -= hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
        }
        all.push(Difference {
            path: change.path.clone(),
            kind: change.kind,
            before: old.map(|content| content.side),
            after: new.map(|content| content.side),
            body,
        });
    }
    Ok(all)
}

fn body(old: Option<&side::Content>, new: Option<&side::Content>) -> Body {
    use side::Held;
    let held = |side: Option<&side::Content>| side.map_or(Held::Nothing, |side| side.held.clone());
    match (held(old), held(new)) {
        (Held::Unreadable, _) | (_, Held::Unreadable) => Body::Unreadable,
        (Held::Credential, _) | (_, Held::Credential) => Body::Credential,
        (Held::TooLarge, _) | (_, Held::TooLarge) => Body::TooLarge,
        (Held::Target(before), Held::Target(after)) => {
            Body::Link { before: Some(before), after: Some(after) }
        }
        (Held::Target(before), _) => Body::Link { before: Some(before), after: None },
        (_, Held::Target(after)) => Body::Link { before: None, after: Some(after) },
        (old, new) => text_or_binary(&old.bytes(), &new.bytes()),
    }
}

fn text_or_binary(old: &[u8], new: &[u8]) -> Body {
    match () {
        () if old == new => Body::None,
        () if hunks::is_binary(old) || hunks::is_binary(new) => Body::Binary,
        () => Body::Text { hunks: hunks::hunks(old, new), lines_left_out: 0 },
    }
}
