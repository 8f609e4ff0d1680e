//! Changes, for people.

use inspect::Reason;
use model::Bytes;
use model::change::{ChangeKind, FileKind};
use model::event::HeldBack;
use model::text::{escape, escape_lines};

use super::super::shape::{ApplyDocument, ChangePart, DiffDocument};
use super::super::style::Paint;
use super::counted;

/// Writes one line for each change: what happened, its name, and what is worth knowing of it.
pub(super) fn change_lines(changes: &[ChangePart], paint: Paint) -> Vec<String> {
    changes.iter().map(|change| change_line(change, paint)).collect()
}

fn change_line(change: &ChangePart, paint: Paint) -> String {
    let (mark, path) = (mark(change), change.path.to_string());
    let painted = match change.kind {
        ChangeKind::Created => paint.good(format!("{mark} {path}")),
        ChangeKind::Modified => paint.caution(format!("{mark} {path}")),
        ChangeKind::Deleted => paint.bad(format!("{mark} {path}")),
    };
    let executable =
        change.mode.as_deref().is_some_and(|mode| mode.bytes().rev().take(3).any(|b| b & 1 == 1));
    let note = match (change.kind, change.file) {
        (ChangeKind::Deleted, _) => String::new(),
        (_, FileKind::File) if executable => format!("{}, can be executed", Bytes::new(change.size)),
        (_, FileKind::File) => Bytes::new(change.size).to_string(),
        (_, FileKind::Directory) => "directory".to_owned(),
        (_, FileKind::Symlink) => "link".to_owned(),
        (_, FileKind::Fifo) => "named pipe".to_owned(),
        (_, FileKind::Socket) => "socket".to_owned(),
        (_, FileKind::Device) => "device".to_owned(),
    };
    let ignored = if change.ignored { " (ignored by git)" } else { "" };
    format!("{painted}  {}{ignored}", paint.dim(note)).trim_end().to_owned()
}

fn mark(change: &ChangePart) -> char {
    match change.kind {
        ChangeKind::Created => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
    }
}

/// Lists changes, one a line.
pub fn change_list(changes: &[ChangePart], paint: Paint) -> String {
    change_lines(changes, paint).into_iter().map(|line| line + "\n").collect()
}

/// Says what was written to the host's directory, what was brought together, and what was held back.
pub fn applied(document: &ApplyDocument, paint: Paint) -> String {
    let mut text = change_list(&document.changes, paint);
    for path in &document.merged {
        text.push_str(&format!(
            "{} {path}: your edit and the task's were brought together\n",
            paint.caution("merged")
        ));
    }
    text.push_str(&held_back(&document.held_back, paint));
    if let Some(commits) = &document.commits {
        let number = counted(commits.number, "commit");
        text.push_str(&format!("{number} imported as the branch `{}`\n", escape(&commits.branch)));
    }
    let (number, done) =
        (document.changes.len() as u64, if document.dry_run { "would be applied" } else { "applied" });
    let left = match document.held_back.len() as u64 {
        0 => String::new(),
        held => format!(", {held} held back"),
    };
    let step = match document.held_back.iter().any(|held| Reason::person_may_lift_code(&held.reason)) {
        true => {
            "look at what is held back with `fumehood diff`; `fumehood apply --protected PATH` takes one path over\n"
        }
        false => "",
    };
    text + &format!("{} {done}{left}\n{step}", counted(number, "change"))
}

/// Says what was taken back from the host's directory, and what was held back because it was changed since.
pub fn taken_back(document: &ApplyDocument, paint: Paint) -> String {
    let text = change_list(&document.changes, paint) + &held_back(&document.held_back, paint);
    text + &format!("{} taken back\n", counted(document.changes.len() as u64, "change"))
}

/// Shows the changes as a list, with the sum and what is held back.
pub fn changes(document: &DiffDocument, paint: Paint) -> String {
    if document.changes.is_empty() {
        return "no changes\n".to_owned();
    }
    let mut text = String::new();
    for line in change_lines(&document.changes, paint) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(&held_back(&document.held_back, paint));
    text.push_str(&format!("{}\n", counted(document.changes.len() as u64, "change")));
    text
}

/// Shows differences that are written for people, painted, with what is held back at the end.
pub fn diff(differences: &str, held_back: &[HeldBack], paint: Paint) -> String {
    if differences.is_empty() {
        return "no changes\n".to_owned();
    }
    patch(differences, paint) + &self::held_back(held_back, paint)
}

/// Paths that are named for one reason; a commit made inside changes many of git's own files.
const NAMED: usize = 5;

/// Says what is held back: for each reason some paths, and how many there are besides.
pub(super) fn held_back(held_back: &[HeldBack], paint: Paint) -> String {
    let mut reasons: Vec<(&str, Vec<&HeldBack>)> = Vec::new();
    for held in held_back {
        match reasons.iter_mut().find(|(why, _)| *why == held.why) {
            Some((_, same)) => same.push(held),
            None => reasons.push((&held.why, vec![held])),
        }
    }
    let mut text = String::new();
    for (why, held) in reasons {
        let names = held.iter().take(NAMED).map(|held| held.path.to_string()).collect::<Vec<_>>().join(", ");
        let more = match held.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text.push_str(&format!("{} {names}{more}: {}\n", paint.caution("held back"), escape(why)));
    }
    text
}

/// Paints a unified diff line by line; control characters in it are written out.
pub fn patch(patch: &str, paint: Paint) -> String {
    let lines = patch.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let shown = escape_lines(line);
        let painted = match line.as_bytes() {
            [b'+', b'+', b'+', b' ', ..]
            | [b'-', b'-', b'-', b' ', ..]
            | [b'd', b'i', b'f', b'f', b' ', ..] => paint.bold(shown),
            [b'c', b'r' | b'h', ..] | [b'd', b'e', b'l', ..] => paint.bold(shown),
            [b'@', b'@', ..] => paint.name(shown),
            [b'+', ..] => paint.good(shown),
            [b'-', ..] => paint.bad(shown),
            _ => shown.into_owned(),
        };
        painted + end
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::WorkspacePath;

    fn change(path: &str, kind: ChangeKind, file: FileKind, mode: &str) -> ChangePart {
        let path = WorkspacePath::parse(path).expect("inside");
        ChangePart { path, kind, file, mode: Some(mode.to_owned()), size: 1536, ignored: false }
    }

    #[test]
    fn a_change_is_one_line_and_its_name_cannot_break_out() {
        let created = change("a\n\u{202e}b", ChangeKind::Created, FileKind::File, "0755");
        assert_eq!(change_line(&created, Paint::PLAIN), "A a\\n\\u{202e}b  1.5 KiB, can be executed");
        let link = change("l", ChangeKind::Modified, FileKind::Symlink, "0777");
        assert_eq!(change_line(&link, Paint::PLAIN), "M l  link");
        let gone = change("g", ChangeKind::Deleted, FileKind::File, "0644");
        assert_eq!(change_line(&gone, Paint::PLAIN), "D g");
    }

    #[test]
    fn a_diff_is_painted_and_cannot_drive_the_terminal() {
        let shown =
            patch("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\r\n+new\u{1b}]0;x\u{7}\n same\n", Paint::PLAIN);
        assert_eq!(shown, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\\u{d}\n+new\\u{1b}]0;x\\u{7}\n same\n");
        assert!(patch("+a\n", Paint::COLOURED).starts_with("\x1b[32m+a\x1b[0m\n"));
    }
}
