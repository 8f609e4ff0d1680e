//! Git's configuration: what it says about hooks, and the credentials that people leave in it.

use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use super::expression::compile;

/// `scheme://user:password@` or `scheme://token@`, also in the head of a section. A password may hold `@` itself: git
/// takes the last one for the end.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?i)\b([a-z][a-z0-9+.-]*://)([^\s/"'<>\\]+)@"#));
/// Headers and passwords that git sends.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?im)^([ \t]*(?:extraheader|smtppass|pass|password|token|oauth_?token|sslkeypassword)[ \t]*=[ \t]*)([^\n]*?)[ \t]*$",
    )
});
static HOOKS: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?im)^[ \t]*hookspath[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t]*$"#));

/// Tells whether a configuration holds a credential.
pub(super) fn has_credentials(config: &[u8]) -> bool {
    let addresses = ADDRESS.captures_iter(config).any(|captures| is_credential(&captures));
    addresses || SECRET.captures_iter(config).any(|captures| !captures[2].is_empty())
}

/// Returns a configuration without the credentials in it. Everything else stays as it is, so that git works.
pub fn without_credentials(config: &[u8]) -> Vec<u8> {
    let masked = ADDRESS.replace_all(config, |captures: &Captures<'_>| {
        if is_credential(captures) { captures[1].to_vec() } else { captures[0].to_vec() }
    });
    SECRET.replace_all(&masked, b"${1}".as_slice()).into_owned()
}

/// Returns the directory from which git takes its hooks, when a configuration names one.
pub fn hooks_path(config: &[u8]) -> Option<Vec<u8>> {
    HOOKS.captures_iter(config).last().map(|captures| captures[1].to_vec()).filter(|path| !path.is_empty())
}

/// A name alone is none; a password is, and so is a long name that can only be a token.
fn is_credential(captures: &Captures<'_>) -> bool {
    let user = &captures[2];
    match user.iter().position(|byte| *byte == b':') {
        Some(colon) => colon + 1 < user.len(),
        None => user.len() >= 20 && user.iter().any(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[core]\n\tbare = false\n\thooksPath = tools/hooks\n[remote \"origin\"]\n\turl = https://ada:hunter22@git.test/a.git\n\
        [remote \"ssh\"]\n\turl = ssh://git@git.test/a.git\n[url \"https://q8Zr2LxP0vN5tYc7Wd1K@git.test/\"]\n\tinsteadOf = x:\n\
        [http]\n\textraheader = AUTHORIZATION: basic YWRhOmh1bnRlcg==\n";

    #[test]
    fn credentials_are_found_and_taken_out_and_the_rest_stays() {
        assert!(has_credentials(CONFIG.as_bytes()));
        let clean = without_credentials(CONFIG.as_bytes());
        assert!(!has_credentials(&clean));
        let clean = String::from_utf8(clean).expect("text");
        assert!(
            clean.contains("url = https://git.test/a.git\n") && clean.contains("ssh://git@git.test/a.git")
        );
        assert!(
            clean.contains("[url \"https://git.test/\"]\n\tinsteadOf = x:")
                && clean.contains("extraheader = \n")
        );
    }

    #[test]
    fn a_password_with_an_at_sign_leaves_no_piece_of_itself() {
        let clean = without_credentials(b"[remote \"o\"]\n\turl = https://ada:hunt@er@22@git.test/a.git\n");
        assert_eq!(clean, b"[remote \"o\"]\n\turl = https://git.test/a.git\n");
    }

    #[test]
    fn a_plain_configuration_is_left_alone() {
        let plain = "[remote \"origin\"]\n\turl = https://ada@git.test/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
        assert!(!has_credentials(plain.as_bytes()));
        assert_eq!(without_credentials(plain.as_bytes()), plain.as_bytes());
    }

    #[test]
    fn the_directory_of_hooks_is_read() {
        assert_eq!(hooks_path(CONFIG.as_bytes()).as_deref(), Some(b"tools/hooks".as_slice()));
        assert_eq!(hooks_path(b"[core]\n"), None);
    }
}
