//! Passes on what a command prints, while it prints it.
//!
//! Guarantees: into a file or a pipe, every byte goes through unchanged. On a terminal that is not the command's own,
//! nothing that could drive it gets through: only text, line feeds and tabs.

use std::sync::Arc;

use engine::{Sink, Stream};
use model::text::escape_lines;

use crate::output::{Lines, To};

/// Passes a command's output on to our own streams.
pub(super) struct Through {
    lines: Arc<Lines>,
    text: Option<Text>,
}

impl Through {
    /// Passes every byte: into a file, into a pipe, or to a terminal that the command has for its own.
    pub(super) fn bytes(lines: Arc<Lines>) -> Self {
        Self { lines, text: None }
    }

    /// Passes only what cannot drive a terminal.
    pub(super) fn text(lines: Arc<Lines>) -> Self {
        Self { lines, text: Some(Text::default()) }
    }
}

impl Sink for Through {
    fn print(&mut self, stream: Stream, bytes: &[u8]) {
        let to = match stream {
            Stream::Out | Stream::Terminal => To::Out,
            Stream::Err => To::Err,
        };
        // A reader that went away wants no more; the output is kept all the same.
        let _ = match &mut self.text {
            None => self.lines.pass(to, bytes),
            Some(text) => self.lines.pass(to, text.take(bytes).as_bytes()),
        };
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        // A character that was cut off at the very end is left out: nothing follows that could complete it.
        self.text = None;
    }
}

/// Turns bytes into text that cannot drive a terminal, character by character across the pieces.
#[derive(Default)]
struct Text {
    /// The start of a character whose rest has not come yet.
    started: Vec<u8>,
}

impl Text {
    fn take(&mut self, bytes: &[u8]) -> String {
        let all = [std::mem::take(&mut self.started).as_slice(), bytes].concat();
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let last = chunks.peek().is_none();
            if last && could_go_on(chunk.invalid()) {
                self.started = chunk.invalid().to_vec();
            } else {
                chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
            }
        }
        escape_lines(&text.replace("\r\n", "\n")).into_owned()
    }
}

/// Tells whether these bytes are the start of a character.
fn could_go_on(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return false,
    };
    bytes.len() < length && bytes[1..].iter().all(|byte| byte & 0xc0 == 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_drive_the_terminal_is_written_out() {
        let mut text = Text::default();
        assert_eq!(text.take(b"a\x1b[2J\tb\r\nc\rd\n"), "a\\u{1b}[2J\tb\nc\\u{d}d\n");
        assert_eq!(text.take("\u{202e}x".as_bytes()), "\\u{202e}x");
        assert_eq!(text.take(b"\xff\xfe ok"), "\\xff\\xfe ok");
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut text = Text::default();
        let bytes = "é日𝄞".as_bytes();
        let shown: String = bytes.iter().map(|byte| text.take(&[*byte])).collect();
        assert_eq!(shown, "é日𝄞");
        assert_eq!(text.take(b"\xe6"), "");
        assert_eq!(text.take(b"x"), "\\xe6x");
    }
}
