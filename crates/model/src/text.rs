//! Showing text that we did not write, without letting it drive the terminal or mislead the reader.

use std::borrow::Cow;

/// Returns the text with control characters, line breaks, bidi marks and invisible characters written out.
///
/// What is shown can be told apart from the same characters typed on purpose: a backslash is doubled.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c == '\\' || is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_hidden(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Like [`escape`], for text of several lines: line feeds and tabs stay, and backslashes are not doubled.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    let keeps = |c: char| c == '\n' || c == '\t' || !is_hidden(c);
    if text.chars().all(keeps) {
        return Cow::Borrowed(text);
    }
    let written = |c: char| if keeps(c) { c.to_string() } else { format!("\\u{{{:x}}}", u32::from(c)) };
    Cow::Owned(text.chars().map(written).collect())
}

/// Tells whether a character changes what is around it, or is not seen at all.
///
/// Ranges: control (Cc), line and paragraph separators, bidirectional controls (UAX #9), zero-width and other
/// default-ignorable format characters, variation selectors, tags, and the byte order mark.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_drive_a_terminal_is_written_out() {
        assert_eq!(escape("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(escape("\u{202e}gnp.exe\u{200b}"), "\\u{202e}gnp.exe\\u{200b}");
        assert_eq!(escape("C:\\dir"), "C:\\\\dir");
        assert_eq!(escape("naïve 日本語"), "naïve 日本語");
    }

    #[test]
    fn line_breaks_stay_in_text_of_several_lines() {
        assert_eq!(escape_lines("a\n\tb\r\n"), "a\n\tb\\u{d}\n");
    }
}
