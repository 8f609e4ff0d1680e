//! Differences as people read them on a terminal.

use model::text::escape_lines;
use model::{ChangeKind, FileKind};

use super::hunks::{Hunk, Line};
use super::{Body, Difference, Side};

/// Writes differences for people: a head for each path, then its lines. Nothing in it can drive a terminal or pretend to
/// be another line.
pub fn for_people(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences {
        text.push_str(&head(difference));
        text.push('\n');
        write_body(&difference.body, &mut text);
    }
    text
}

fn head(difference: &Difference) -> String {
    let what = match difference.kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "changed",
        ChangeKind::Deleted => "deleted",
    };
    let notes = notes(difference.before.as_ref(), difference.after.as_ref());
    let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
    format!("{what} {}{notes}", difference.path)
}

fn notes(before: Option<&Side>, after: Option<&Side>) -> String {
    let mut notes = Vec::new();
    match (before, after) {
        (Some(before), Some(after)) => {
            if before.file != after.file {
                notes.push(format!("{}, was {}", name(after.file), name(before.file)));
            }
            if before.mode != after.mode && after.file != FileKind::Symlink {
                notes.push(format!("mode {:04o}, was {:04o}", after.mode, before.mode));
            }
        }
        (None, Some(side)) if side.file == FileKind::File => notes.push(format!("mode {:04o}", side.mode)),
        (None, Some(side)) | (Some(side), None) if side.file != FileKind::File => {
            notes.push(name(side.file).to_owned());
        }
        _ => {}
    }
    notes.join(", ")
}

fn name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "link",
        FileKind::Fifo => "named pipe",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }
}

fn write_body(body: &Body, text: &mut String) {
    match body {
        Body::None => {}
        Body::Text { hunks, lines_left_out } => {
            write_hunks(hunks, text);
            if *lines_left_out > 0 {
                text.push_str(&format!("  {lines_left_out} more lines are not shown\n"));
            }
        }
        Body::Binary => text.push_str("  it is no text\n"),
        Body::Link { before, after } => {
            for (mark, target) in [('-', before), ('+', after)] {
                if let Some(target) = target {
                    text.push_str(&format!("{mark}-> {target}\n"));
                }
            }
        }
        Body::Credential => text.push_str("  it holds a credential, which is not shown\n"),
        Body::TooLarge => text.push_str("  it is too large to be compared here\n"),
        Body::Unreadable => text.push_str("  it cannot be read\n"),
    }
}

fn write_hunks(hunks: &[Hunk], text: &mut String) {
    // Where every line ends in a carriage return they would only be in the way.
    let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let has_return = |line: &Line| line.text.as_bytes().ends_with(b"\r");
    let returns = lines().any(has_return) && lines().all(|line| line.no_newline || has_return(line));
    if returns {
        text.push_str("  each line ends in a carriage return\n");
    }
    for hunk in hunks {
        text.push_str(&hunk.head());
        text.push('\n');
        hunk.lines.iter().for_each(|line| write_line(line, returns, text));
    }
}

fn write_line(line: &Line, without_return: bool, text: &mut String) {
    let bytes = line.text.as_bytes();
    let bytes = if without_return { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
    text.push(line.sign.mark());
    text.push_str(&escape_lines(&String::from_utf8_lossy(bytes)));
    text.push('\n');
    if line.no_newline {
        text.push_str("\\ no line feed at the end\n");
    }
}
