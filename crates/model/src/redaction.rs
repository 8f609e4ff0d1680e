//! Secrets in text: which values are looked for, in which forms, and what stands in their place.
//!
//! Guarantees: the forms of a value are the value itself and as JSON has it, hexadecimal digits, base64 (both alphabets,
//! also in the middle of a longer encoding) and percent signs; a token names no part of the value.
//! Leaves to others: searching, the key of the token, and values that were changed on purpose (reversed, split,
//! compressed): they cannot be told from anything else.

use std::fmt::Write as _;
use std::ops::Range;

use crate::digest::Digest;

/// A value of fewer bytes is not looked for: it would be found in ordinary words.
pub const SHORTEST: usize = 8;
/// A value of lower-case letters only is a word up to this length, and words are what text is made of.
const LONGEST_WORD: usize = 19;
/// A value of fewer different bytes fills lines and tables.
const FEWEST_DIFFERENT: usize = 4;
/// What a token begins with.
const TOKEN: &str = "[secret:";
/// The longest name that a token shows.
const LONGEST_NAME: usize = 40;
/// The longest that stands between the beginning of a token and its end, the end counted.
const LONGEST_INSIDE: usize = LONGEST_NAME + 1 + 8 + 1;

/// Tells whether a value can be looked for in any text without taking ordinary words out of it.
pub fn is_looked_for(value: &[u8]) -> bool {
    let mut different = value.to_vec();
    different.sort_unstable();
    different.dedup();
    value.len() >= SHORTEST && different.len() >= FEWEST_DIFFERENT && !is_word(value)
}

fn is_word(value: &[u8]) -> bool {
    value.len() <= LONGEST_WORD
        && value.iter().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'))
}

/// One form in which a value is looked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Form {
    /// What is looked for.
    pub bytes: Vec<u8>,
    /// Whether the base64 digits before it hold bits of the value too.
    pub begins_before: bool,
    /// Whether the base64 digits behind it hold bits of the value too.
    pub ends_behind: bool,
}

impl Form {
    fn whole(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), begins_before: false, ends_behind: false }
    }
}

/// Returns the forms in which a value is looked for, each once.
pub fn forms_of(value: &[u8]) -> Vec<Form> {
    let hex = |upper| hex(value, upper);
    let mut forms = vec![Form::whole(value), Form::whole(inside_json(value)), Form::whole(hex(false))];
    forms.extend([
        Form::whole(hex(true)),
        Form::whole(percent(value, false)),
        Form::whole(percent(value, true)),
    ]);
    forms.extend((0..3).flat_map(|skip| base64_forms(value, skip)));
    forms.retain(|form| !form.bytes.is_empty());
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// Returns the token that stands for a value: its name, and the beginning of a digest under a key. Equal values have equal
/// tokens, and without the key a token does not help to guess the value.
pub fn token(name: &str, keyed: &Digest) -> String {
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    let digest = keyed.to_string();
    format!("{TOKEN}{name}:{}]", &digest[..8])
}

/// Returns where tokens are in a text.
pub fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(TOKEN).filter_map(|(at, _)| {
        let inside = at + TOKEN.len();
        let end = inside + text[inside..].bytes().take(LONGEST_INSIDE).position(|byte| byte == b']')?;
        is_token(&text[inside..end]).then_some(at..end + 1)
    })
}

/// Returns the first token in a text, if there is one.
pub fn token_in(text: &str) -> Option<&str> {
    tokens(text).next().map(|token| &text[token])
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_token(inside: &str) -> bool {
    inside.rsplit_once(':').is_some_and(|(name, digest)| {
        (1..=LONGEST_NAME).contains(&name.len())
            && name.chars().all(is_plain)
            && digest.len() == 8
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn inside_json(value: &[u8]) -> String {
    let quoted = serde_json::Value::from(String::from_utf8_lossy(value)).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn hex(value: &[u8], upper: bool) -> String {
    value.iter().fold(String::new(), |mut text, byte| {
        let _ = if upper { write!(text, "{byte:02X}") } else { write!(text, "{byte:02x}") };
        text
    })
}

/// Writes each byte as a percent sign and two digits, as the strictest encoders do.
fn percent(value: &[u8], upper: bool) -> String {
    hex(value, upper).as_bytes().chunks(2).fold(String::new(), |mut text, pair| {
        text.push('%');
        text.push_str(&String::from_utf8_lossy(pair));
        text
    })
}

/// Returns what the base64 of any text that holds these bytes must hold when `skip` of them belong to an earlier group:
/// the groups that lie wholly inside, in both alphabets.
fn base64_forms(value: &[u8], skip: usize) -> [Form; 2] {
    let rest = value.get(skip..).unwrap_or_default();
    let text = base64(&rest[..rest.len() / 3 * 3]);
    let form = |text: String| Form {
        bytes: text.into_bytes(),
        begins_before: skip > 0,
        ends_behind: !rest.len().is_multiple_of(3),
    };
    [form(text.replace('+', "-").replace('/', "_")), form(text)]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32, place: u32| char::from(DIGITS[(bits >> (place * 6)) as usize & 63]);
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0u32, |bits, byte| (bits << 8) | u32::from(*byte));
        [3, 2, 1, 0].map(|place| digit(bits, place))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(value: &[u8], text: &str) -> bool {
        forms_of(value).iter().any(|form| text.contains(&*String::from_utf8_lossy(&form.bytes)))
    }

    #[test]
    fn each_form_is_the_one_that_others_write() {
        // From `base64`, `basenc --base64url`, `xxd -p` and a strict encoder of addresses.
        let value = b"key-of-ours-1234";
        for text in [
            "a2V5LW9mLW91cnMtMTIzNAo=",
            "az1rZXktb2Ytb3Vycy0xMjM0",
            "dXNlcjprZXktb2Ytb3Vycy0xMjM0",
            "6b65792d6f662d6f7572732d31323334",
            "6B65792D6F662D6F7572732D31323334",
            "%6b%65%79%2d%6f%66%2d%6f%75%72%73%2d%31%32%33%34",
        ] {
            assert!(holds(value, text), "{text}");
        }
        assert!(
            holds(b"\xfb\xff\xfe\xfb\xff\xfe\xfb\xff", "-__--__-")
                && holds(b"a\"b\\cdefg", "a\\\"b\\\\cdefg")
        );
        assert!(!holds(value, "key-of-ours-1235"));
    }

    #[test]
    fn words_and_what_is_short_or_poor_are_not_looked_for() {
        for value in ["hunter2", "production", "dry-run", "........", "0000000000", "abababab", ""] {
            assert!(!is_looked_for(value.as_bytes()), "{value}");
        }
        for value in ["hunter22", "Production1", "correct-horse-battery-staple", "12345678"] {
            assert!(is_looked_for(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_token_is_told_from_other_text() {
        let token = token("MY TOKEN:x]", &Digest::of(b"v"));
        assert!(token.starts_with("[secret:MY_TOKEN_x_:") && token.len() == 29, "{token}");
        assert_eq!(token_in(&format!("a[secret:b {token} c")), Some(token.as_str()));
        for text in [
            "[secret:a]",
            "[secret::12345678]",
            "[secret:a:1234567g]",
            "secret:a:12345678",
            "[secret:a:12345678",
        ] {
            assert_eq!(token_in(text), None, "{text}");
        }
    }
}
