//! Variables of the caller's environment that are secrets by their names. Their values are compared with what `--env` would
//! pass on, and are written nowhere.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::settings::Environment;

/// Parts of a variable's name that say that its value is a secret.
const MARKS: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTH_KEY",
    "SIGNING_KEY",
];

/// Shorter values are words and switches, and would be found everywhere.
const SHORTEST: usize = 8;

/// Returns the variables that are secrets by their names, with their values.
pub(super) fn secrets(environment: &Environment) -> Vec<(String, OsString)> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        MARKS.iter().any(|mark| name.contains(mark)) || name.ends_with("_KEY") || name.ends_with("_PAT")
    };
    let named = environment
        .iter()
        .filter(|(name, value)| is_secret(&name.to_string_lossy()) && value.len() >= SHORTEST)
        .filter(|(_, value)| !is_place(value));
    named.map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_owned())).collect()
}

/// Tells whether a value only says where a secret is: the place itself is none.
fn is_place(value: &OsStr) -> bool {
    let place = Path::new(value);
    place.is_absolute() && place.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_the_name_of_their_variable() {
        let environment = Environment::from([
            ("GITHUB_TOKEN", "ghp_0123456789"),
            ("aws_secret_access_key", "abcdefghijkl"),
            ("DEEPSEEK_API_KEY", "sk-012345678"),
            ("PATH", "/usr/bin:/bin"),
            ("KEYBOARD", "a long layout name"),
            ("SOME_TOKEN", "short"),
            ("TOKEN_FILE", "/etc/passwd"),
            ("SLASH_TOKEN", "/not/a/place/but/base64"),
        ]);
        let mut found = secrets(&environment);
        found.sort();
        let named = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
        let expected = [
            named("DEEPSEEK_API_KEY", "sk-012345678"),
            named("GITHUB_TOKEN", "ghp_0123456789"),
            named("SLASH_TOKEN", "/not/a/place/but/base64"),
            named("aws_secret_access_key", "abcdefghijkl"),
        ];
        assert_eq!(found, expected);
    }
}
