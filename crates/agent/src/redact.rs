//! Takes secrets out of text before a model reads it.
//!
//! Guarantees: every known value is found as it stands, as it stands inside JSON, in hexadecimal digits, in percent signs
//! and in base64 (also in the middle of a longer encoding); text with the shape of a well-known kind of key is found
//! without knowing it; taking out is idempotent, and leaves the JSON around a value intact.
//! Leaves to others: values that were changed on purpose (reversed, split, compressed). What must not be read by a
//! model must not be readable in the sandbox; this is the second wall.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::secret::Secret;

/// Kinds of keys that have a shape of their own: the kind, and the shape. Where a group is named `v`, only it is
/// taken out. Shapes are as their makers document them.
const SHAPES: &[(&str, &str)] = &[
    // A private key in PEM; the line breaks may be written as `\n` inside JSON. It may be cut at its end.
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s:,-]|\\+[nrt])*",
    ),
    ("age-key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("model-key", r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("aws-key", r#"(?i)aws_secret_access_key["'\\\s:=]{1,8}(?P<v>[A-Za-z0-9/+]{40})"#),
    ("github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}"),
    ("github-token", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("google-key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("stripe-key", r"\b[rs]k_live_[0-9A-Za-z]{20,}"),
    ("huggingface-token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("json-web-token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("bearer-token", r"(?i)\bbearer\s+(?P<v>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("url-password", r#"\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@"'\\]{0,64}:(?P<v>[^/\s"'\\]{3,})@"#),
];

/// [`SHAPES`], made into searchers once.
static SEARCHERS: LazyLock<Result<Vec<(&'static str, Regex)>, regex::Error>> =
    LazyLock::new(|| SHAPES.iter().map(|(kind, shape)| Ok((*kind, Regex::new(shape)?))).collect());

/// The kind of a value that the caller named.
const NAMED: &str = "secret";
/// The kind of our own key.
const OWN: &str = "api-key";
/// A known value shorter than this would take ordinary words out of every text.
const SHORTEST: usize = 6;
/// An encoded form shorter than this says too little.
const SHORTEST_FORM: usize = 10;

/// What is taken out of every text that goes to a model.
#[derive(Clone)]
pub struct Secrets {
    known: Vec<(&'static str, Regex)>,
    shapes: &'static [(&'static str, Regex)],
}

/// Says that the shapes could not be made into a searcher. It is a fault of ours.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the patterns for secrets cannot be used: report this")]
pub struct PatternError(#[from] regex::Error);

impl Secrets {
    /// Knows our own key, what the caller named, and the shapes of well-known keys.
    ///
    /// # Errors
    /// Never for the shapes that are built in; a test holds that.
    pub fn new(key: &Secret, named: &[Secret]) -> Result<Self, PatternError> {
        let mut known = Vec::new();
        known.extend(searcher(OWN, std::slice::from_ref(key))?);
        known.extend(searcher(NAMED, named)?);
        let shapes = SEARCHERS.as_ref().map_err(Clone::clone)?;
        Ok(Self { known, shapes })
    }

    /// Returns the text with each secret replaced by `[redacted:KIND]`.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut redacted = Cow::Borrowed(text);
        for (kind, shape) in self.known.iter().chain(self.shapes) {
            if shape.is_match(&redacted) {
                redacted = Cow::Owned(take_out(kind, shape, &redacted));
            }
        }
        redacted
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} known)", self.known.len())
    }
}

/// Returns the mark in a text that stands where a secret was taken out, by us or before it was kept, if there is one.
pub(crate) fn mark_in(text: &str) -> Option<String> {
    let kinds = SHAPES.iter().map(|(kind, _)| *kind).chain([OWN, NAMED]);
    let ours = kinds.map(mark).find(|mark| text.contains(mark.as_str()));
    ours.or_else(|| model::redaction::token_in(text).map(str::to_owned))
}

fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

fn take_out(kind: &str, shape: &Regex, text: &str) -> String {
    let replace = |found: &Captures<'_>| match (found.get(0), found.name("v")) {
        (Some(whole), Some(value)) => {
            let from = value.start() - whole.start();
            let to = value.end() - whole.start();
            format!("{}{}{}", &whole.as_str()[..from], mark(kind), &whole.as_str()[to..])
        }
        _ => mark(kind),
    };
    shape.replace_all(text, replace).into_owned()
}

/// Makes one searcher out of all forms of these values; none when there is nothing to look for.
fn searcher(kind: &'static str, values: &[Secret]) -> Result<Option<(&'static str, Regex)>, PatternError> {
    let values = values.iter().map(Secret::expose).filter(|value| value.len() >= SHORTEST);
    let mut forms: Vec<String> = values.flat_map(forms_of).collect();
    // Longer forms first: the searcher takes the first alternative that fits.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    if forms.is_empty() {
        return Ok(None);
    }
    let pattern: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
    let searcher = regex::RegexBuilder::new(&pattern.join("|")).size_limit(64 << 20).build()?;
    Ok(Some((kind, searcher)))
}

/// Returns the forms in which a value is looked for. A short form of it would be found in ordinary words.
fn forms_of(value: &str) -> impl Iterator<Item = String> {
    let forms = model::redaction::forms_of(value.as_bytes()).into_iter();
    let forms = forms.filter_map(|form| String::from_utf8(form.bytes).ok());
    // What JSON has another form for is told by a backslash, which the encodings have not.
    forms.filter(move |form| form == value || form.contains('\\') || form.len() >= SHORTEST_FORM)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(key: &str, named: &[&str]) -> Secrets {
        let named: Vec<Secret> = named.iter().map(|text| Secret::new(*text)).collect();
        Secrets::new(&Secret::new(key), &named).expect("the shapes are well-formed")
    }

    #[test]
    fn a_known_value_is_found_in_each_of_its_forms() {
        let secrets = secrets("key-of-ours-1234", &["s3cr\"et\\value"]);
        let cases = [
            ("x key-of-ours-1234 y", "x [redacted:api-key] y"),
            ("6b65792d6f662d6f7572732d31323334", "[redacted:api-key]"),
            ("6B65792D6F662D6F7572732D31323334", "[redacted:api-key]"),
            (r#"{"a":"s3cr\"et\\value"}"#, r#"{"a":"[redacted:secret]"}"#),
            ("s3cr\"et\\value", "[redacted:secret]"),
        ];
        for (text, expected) in cases {
            assert_eq!(secrets.redact(text), expected);
        }
    }

    #[test]
    fn base64_is_found_wherever_the_value_begins() {
        let secrets = secrets("key-of-ours-1234", &[]);
        // base64 of `key-of-ours-1234\n`, of `k=key-of-ours-1234` and of `user:key-of-ours-1234`.
        for text in ["a2V5LW9mLW91cnMtMTIzNAo=", "az1rZXktb2Ytb3Vycy0xMjM0", "dXNlcjprZXktb2Ytb3Vycy0xMjM0"] {
            let redacted = secrets.redact(text);
            assert!(redacted.contains("[redacted:api-key]"), "{text} became {redacted}");
        }
    }

    #[test]
    fn shapes_are_found_without_knowing_the_value() {
        let secrets = secrets("", &[]);
        let long = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0";
        let cases = [
            (format!("sk-{long}"), "[redacted:model-key]".to_owned()),
            (format!("ghp_{long}"), "[redacted:github-token]".to_owned()),
            (
                format!("Authorization: Bearer {long}"),
                "Authorization: Bearer [redacted:bearer-token]".to_owned(),
            ),
            ("AKIAABCDEFGHIJKLMNOP".to_owned(), "[redacted:aws-key]".to_owned()),
            ("pg://ada:hunter2@db/x".to_owned(), "pg://ada:[redacted:url-password]@db/x".to_owned()),
            ("pg://ada:hu@nt@er2@db/x".to_owned(), "pg://ada:[redacted:url-password]@db/x".to_owned()),
        ];
        for (text, expected) in cases {
            assert_eq!(secrets.redact(&text), expected);
        }
    }

    #[test]
    fn a_private_key_goes_as_a_whole_in_a_file_and_inside_json() {
        let secrets = secrets("", &[]);
        let pem =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END OPENSSH PRIVATE KEY-----";
        assert_eq!(secrets.redact(&format!("a\n{pem}")), "a\n[redacted:private-key]");
        let json = serde_json::json!({ "key": format!("{pem}\n"), "next": 1 }).to_string();
        let redacted = secrets.redact(&json);
        let value: serde_json::Value = serde_json::from_str(&redacted).expect("is still JSON");
        assert_eq!(value["key"], "[redacted:private-key]");
        assert_eq!(value["next"], 1);
    }

    #[test]
    fn ordinary_text_stays() {
        let secrets = secrets("short", &["tiny"]);
        for text in
            ["sk-learn", "a short tiny word", "https://example.org:443/a@b", "eyJhbGciOi", "git@host:a/b"]
        {
            assert_eq!(secrets.redact(text), text);
        }
    }

    proptest! {
        #[test]
        fn a_known_value_never_stays_and_taking_out_is_idempotent(
            before in "\\PC{0,40}", value in "[a-zA-Z0-9/+_-]{6,40}", after in "\\PC{0,40}",
        ) {
            let secrets = secrets(&value, &[]);
            let once = secrets.redact(&format!("{before}{value}{after}")).into_owned();
            prop_assume!(!"[redacted:api-key]".contains(&value));
            prop_assert!(!once.contains(&value));
            let twice = secrets.redact(&once).into_owned();
            prop_assert_eq!(once, twice);
        }

        #[test]
        fn json_stays_json(text in "\\PC{0,60}", value in "\\PC{6,20}") {
            let secrets = secrets(&value, &[]);
            let json = serde_json::json!({ "a": format!("{text}{value}"), "b": "-----BEGIN PRIVATE KEY-----\n\\\"x" });
            let redacted = secrets.redact(&json.to_string()).into_owned();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "{}", redacted);
        }
    }
}
