//! Finding the values of credentials themselves, in any text and in a file that was found to be one.
//!
//! Guarantees: what looks made up is not named; the work grows with the text, whatever is in it.
//! Leaves to others: taking them out of what is kept (`engine`).

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::contents::{Shaped, shaped};
use super::expression::compile;
use super::judge::looks_made_up;
use super::values::{passwords_in_addresses, secrets_in};

/// The most values that are taken from one file.
const MOST: usize = 256;

/// A credential as programs send it: `Authorization: Bearer TOKEN`, and `Bearer TOKEN` elsewhere.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    compile(r#"(?i)(?:authorization["'\s:=]{1,8}(?:basic|token)|\bbearer)\s{1,4}([A-Za-z0-9._~+/-]{16,}=*)"#)
});

/// Returns the values in a text that show by themselves that they are credentials, in no order: by the shapes that services
/// give to their keys, as a password in an address, or behind `Bearer`.
pub fn values_in(text: &[u8]) -> Vec<Shaped> {
    let mut found = shaped(text);
    if memchr(text, b"://") {
        let range = |range| Shaped { name: "password-in-address", range };
        found.extend(passwords_in_addresses(text).map(range));
    }
    let headers = HEADER.captures_iter(text).filter_map(|captures| captures.get(1));
    let real = headers.filter(|value| {
        let is_word = value.as_bytes().iter().all(u8::is_ascii_alphabetic);
        !is_word && !looks_made_up(value.as_bytes())
    });
    found.extend(real.map(|value| Shaped { name: "authorization", range: value.range() }));
    found
}

/// Returns the values that must not be known in a file that was found to be a credential, each with a name.
pub fn values_of_file(text: &[u8]) -> Vec<(String, Vec<u8>)> {
    let shown = values_in(text).into_iter().map(|found| (found.name.to_owned(), text[found.range].to_vec()));
    let given = secrets_in(text).map(|(name, value)| (name, value.into_bytes()));
    shown.chain(given).take(MOST).collect()
}

fn memchr(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, &str)> {
        values_in(text.as_bytes()).into_iter().map(|found| (found.name, &text[found.range])).collect()
    }

    #[test]
    fn values_are_found_where_they_are_and_nothing_around_them() {
        let token = "ghp_q8Zr2LxP0vN5tYc7Wd1Kq8Zr2LxP0vN5tYc7";
        for (text, expected) in [
            (
                format!("push https://x:{token}@h/r"),
                vec![("github-token", token), ("password-in-address", token)],
            ),
            (format!("a {token} b"), vec![("github-token", token)]),
            ("pg://ada:hu22!x@db/x".to_owned(), vec![("password-in-address", "hu22!x")]),
            (
                "curl -H 'Authorization: Basic YWRhOmh1bnRlcjI3Nw=='".to_owned(),
                vec![("authorization", "YWRhOmh1bnRlcjI3Nw==")],
            ),
            (
                "authorization: bearer q8Zr2LxP0vN5tYc7Wd1K\n".to_owned(),
                vec![("authorization", "q8Zr2LxP0vN5tYc7Wd1K")],
            ),
        ] {
            assert_eq!(found(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_private_key_is_found_to_its_end() {
        let key = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAABG5vbmUAAAAAAAAAAQAAADMAAAALc3No\nLWVkMjU1MTk=";
        for body in [key.to_owned(), key.replace('\n', "\\n"), format!("{key}\n")] {
            let text = format!(
                "x\n-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\ny"
            );
            let [(name, value)] = found(&text)[..] else { panic!("{text}: {:?}", found(&text)) };
            assert_eq!((name, value), ("private-key", body.trim_end()));
        }
    }

    #[test]
    fn ordinary_text_has_none() {
        for text in [
            "the bearer of understanding is well known here",
            "https://example.org:443/a@b git@host:a/b https://ada@host.test/",
            "postgres://postgres:postgres@localhost/test",
            "sk-learn secret token github gl-matrix README",
            "AKIAIOSFODNN7EXAMPLE",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_file_of_settings_gives_its_values_with_their_names() {
        let text = b"PORT=3000\nDB_PASSWORD='hunter22'\nX9=q8Zr2LxP0vN5tYc7\nDEBUG=true\nURL=http://localhost:3000\n";
        let values = values_of_file(text);
        let named = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        assert_eq!(values, [named("DB_PASSWORD", "hunter22"), named("X9", "q8Zr2LxP0vN5tYc7")]);
    }
}
