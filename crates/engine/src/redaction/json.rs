//! Walking the strings of JSON that we wrote ourselves, without taking it apart: what is not changed stays byte for byte.

use std::borrow::Cow;

/// Returns JSON with the strings that `change` returns something for replaced by that. Names of fields are left alone.
/// What stands below `hex` is bytes in hexadecimal digits, as [`model::OsText`] writes them.
pub(super) fn map_strings<'t>(text: &'t str, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Cow<'t, str> {
    let mut written = String::new();
    let (mut kept, mut at, mut field) = (0, 0, "");
    while let Some((start, end)) = next_string(text.as_bytes(), at) {
        at = end;
        let quoted = &text[start..end];
        if text.as_bytes().get(end) == Some(&b':') {
            field = quoted;
            continue;
        }
        let changed = match (field, hex_bytes(&quoted[1..quoted.len() - 1])) {
            ("\"hex\"", Some(bytes)) => change(&bytes).map(|bytes| format!("\"{}\"", hex(&bytes))),
            _ => change(string(quoted).as_bytes()).map(|bytes| quote(&bytes)),
        };
        if let Some(changed) = changed {
            written.push_str(&text[kept..start]);
            written.push_str(&changed);
            kept = end;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    written.push_str(&text[kept..]);
    Cow::Owned(written)
}

/// Returns where the next string begins and ends, with its quotes.
fn next_string(text: &[u8], from: usize) -> Option<(usize, usize)> {
    let start = from + text.get(from..)?.iter().position(|byte| *byte == b'"')?;
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some((start, at + 1)),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn string(quoted: &str) -> Cow<'_, str> {
    let plain = &quoted[1..quoted.len() - 1];
    if !plain.contains('\\') {
        return Cow::Borrowed(plain);
    }
    // What we wrote can be read; what could not is looked at as it stands.
    serde_json::from_str(quoted).map_or(Cow::Borrowed(plain), Cow::Owned)
}

fn quote(bytes: &[u8]) -> String {
    serde_json::Value::from(String::from_utf8_lossy(bytes)).to_string()
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upper(text: &str) -> String {
        let change = |bytes: &[u8]| bytes.windows(3).any(|part| part == b"abc").then(|| b"\"X\"\n".to_vec());
        map_strings(text, change).into_owned()
    }

    #[test]
    fn strings_change_and_all_else_stays() {
        for (text, expected) in [
            (r#"{"abc":"abc","n":1.50}"#, r#"{"abc":"\"X\"\n","n":1.50}"#),
            (r#"["\u0061bc","a\"","abc"]"#, r#"["\"X\"\n","a\"","\"X\"\n"]"#),
            (r#"{"file":{"hex":"ff616263"}}"#, r#"{"file":{"hex":"2258220a"}}"#),
            (r#"{"hex":"abc"}"#, r#"{"hex":"\"X\"\n"}"#),
            (r#"{"a": [1, true, null], "b":"ab c"}"#, r#"{"a": [1, true, null], "b":"ab c"}"#),
        ] {
            assert_eq!(upper(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_walked_to_its_end() {
        for text in ["\"", "\"abc", "\"\\", "a\"\\\"", "é\"é\"é", "\"\\ud800\""] {
            assert_eq!(upper(text), text);
        }
    }
}
