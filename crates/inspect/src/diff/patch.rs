//! Differences as `git apply` takes them.

use model::{Change, FileKind, WorkspacePath};
use serde::{Deserialize, Serialize};

use super::hunks::{Hunk, hunks, is_binary};
use super::side::{Content, Held};
use crate::error::InspectError;
use crate::tree::Stack;

/// Differences as `git apply` takes them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Patch {
    /// The patch. It may hold any bytes.
    pub bytes: Vec<u8>,
    /// Changes that it does not hold: what is no text, too large or a credential, and pipes, sockets and devices.
    pub left_out: Vec<WorkspacePath>,
}

/// Writes changes as a patch. Files larger than `file_max` bytes are left out.
///
/// # Errors
/// When the kernel refuses a step for another reason than permission.
pub fn patch(stack: &Stack, changes: &[Change], file_max: u64) -> Result<Patch, InspectError> {
    let (mut before, mut after) = (stack.before(), stack.after());
    let mut patch = Patch::default();
    for change in changes {
        let old = Content::read(&mut before, &change.path, file_max)?;
        let new = Content::read(&mut after, &change.path, file_max)?;
        match (Blob::of(old.as_ref()), Blob::of(new.as_ref())) {
            (Some(old), Some(new)) => write_change(&change.path, old, new, &mut patch.bytes),
            _ => patch.left_out.push(change.path.clone()),
        }
    }
    Ok(patch)
}

/// What git keeps of a path: nothing of a directory, the target of a link, and whether a file can be executed.
struct Blob<'a> {
    mode: Option<&'static str>,
    bytes: &'a [u8],
}

impl<'a> Blob<'a> {
    /// Returns what git keeps, unless a patch of text cannot hold it.
    fn of(content: Option<&'a Content>) -> Option<Self> {
        let Some(content) = content else { return Some(Self { mode: None, bytes: b"" }) };
        let executable = content.side.mode & 0o100 != 0;
        let (mode, bytes) = match (&content.held, content.side.file) {
            (Held::Bytes(bytes), _) => (if executable { "100755" } else { "100644" }, bytes.as_slice()),
            (Held::Target(target), _) => ("120000", target.as_bytes()),
            (Held::Nothing, FileKind::Directory) => return Some(Self { mode: None, bytes: b"" }),
            (Held::Nothing | Held::Credential | Held::TooLarge | Held::Unreadable, _) => return None,
        };
        (!is_binary(bytes)).then_some(Self { mode: Some(mode), bytes })
    }
}

fn write_change(path: &WorkspacePath, old: Blob<'_>, new: Blob<'_>, out: &mut Vec<u8>) {
    let is_link = |mode: &str| mode == "120000";
    match (old.mode, new.mode) {
        (None, None) => {}
        // A link that becomes a file, or the other way round, goes and comes anew.
        (Some(before), Some(after)) if is_link(before) != is_link(after) => {
            write_file(path, old, Blob { mode: None, bytes: b"" }, out);
            write_file(path, Blob { mode: None, bytes: b"" }, new, out);
        }
        (Some(before), Some(after)) if before == after && old.bytes == new.bytes => {}
        _ => write_file(path, old, new, out),
    }
}

fn write_file(path: &WorkspacePath, old: Blob<'_>, new: Blob<'_>, out: &mut Vec<u8>) {
    let (from, to) = (quoted("a/", path), quoted("b/", path));
    out.extend([b"diff --git ".as_slice(), &from, b" ", &to, b"\n"].concat());
    let modes = match (old.mode, new.mode) {
        (None, Some(mode)) => format!("new file mode {mode}\n"),
        (Some(mode), None) => format!("deleted file mode {mode}\n"),
        (Some(before), Some(after)) if before != after => format!("old mode {before}\nnew mode {after}\n"),
        _ => String::new(),
    };
    out.extend(modes.as_bytes());
    let hunks = hunks(old.bytes, new.bytes);
    if hunks.is_empty() {
        return;
    }
    let nothing = || b"/dev/null".to_vec();
    let name = |mode: Option<&str>, name: Vec<u8>| if mode.is_some() { ended(name) } else { nothing() };
    out.extend([b"--- ".as_slice(), &name(old.mode, from), b"\n+++ ", &name(new.mode, to), b"\n"].concat());
    hunks.iter().for_each(|hunk| write_hunk(hunk, out));
}

fn write_hunk(hunk: &Hunk, out: &mut Vec<u8>) {
    out.extend(hunk.head().as_bytes());
    out.push(b'\n');
    for line in &hunk.lines {
        out.push(line.sign.mark() as u8);
        out.extend(line.text.as_bytes());
        out.push(b'\n');
        if line.no_newline {
            out.extend(b"\\ No newline at end of file\n");
        }
    }
}

/// Ends a name with a tab when it has blanks, as git does, so that nothing after it is taken for a part of it.
fn ended(mut name: Vec<u8>) -> Vec<u8> {
    if name.contains(&b' ') && !name.starts_with(b"\"") {
        name.push(b'\t');
    }
    name
}

/// Writes a name as git does: in quotes with escapes when it holds anything but plain characters.
fn quoted(prefix: &str, path: &WorkspacePath) -> Vec<u8> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let bytes = path.as_bytes();
    if bytes.iter().all(|byte| plain(*byte)) {
        return [prefix.as_bytes(), bytes].concat();
    }
    let mut name = format!("\"{prefix}");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => name.extend(['\\', char::from(byte)]),
            b'\n' => name.push_str("\\n"),
            b'\t' => name.push_str("\\t"),
            b'\r' => name.push_str("\\r"),
            byte if plain(byte) => name.push(char::from(byte)),
            byte => name.push_str(&format!("\\{byte:03o}")),
        }
    }
    name.push('"');
    name.into_bytes()
}
