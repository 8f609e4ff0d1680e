//! Values of the caller's environment that are secrets by the name of their variable. They are compared with what
//! `--env` would pass on, and are written nowhere.

use std::ffi::OsString;

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

/// Returns the values that are secrets by the name of their variable.
pub(super) fn secrets(environment: &Environment) -> Vec<OsString> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        MARKS.iter().any(|mark| name.contains(mark)) || name.ends_with("_KEY") || name.ends_with("_PAT")
    };
    let named = environment
        .iter()
        .filter(|(name, value)| is_secret(&name.to_string_lossy()) && value.len() >= SHORTEST);
    named.map(|(_, value)| value.to_owned()).collect()
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
        ]);
        let mut found = secrets(&environment);
        found.sort();
        assert_eq!(found, ["abcdefghijkl", "ghp_0123456789", "sk-012345678"]);
    }
}
