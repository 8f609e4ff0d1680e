//! Whether a file of settings gives something a value.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::expression::compile;
use super::judge::is_placeholder;

/// `"name": "value"`, wherever it stands in a line.
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"["']([^"'\n]{1,200})["']\s*(?:[:=]>?|,)\s*["']([^"'\n]*)["']"#));
/// `<name>value</name>`, and `<add key="name" value="value" />` of .NET.
static TAGGED: LazyLock<Regex> = LazyLock::new(|| compile(r"<([A-Za-z][\w.-]*)>([^<\n]{1,4000})</"));
static KEYED: LazyLock<Regex> = LazyLock::new(|| compile(r#"key="([^"\n]*)"\s+value="([^"\n]*)""#));
/// `name = value`, `name: value`, `export name=value`, `//host/:name=value`.
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?m)^[ \t-]*(?:export[ \t]+|set[ \t]+)?([^\s=#;][^=\n]{0,200}?)[ \t]*(?:=|:[ \t])[ \t]*([^\n]*)$",
    )
});
/// A password in an address.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/@"'<>]+)@"#));
/// Names of what must not be known.
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)pass(?:word|wd|phrase|wort)?$|pwd$|secret|token|api[_.-]?key|access[_.-]?key|account[_.-]?key|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|master[_.-]?key|client-key-data|auth$|credential|connection[_.-]?string|dsn$|_key$|^key$|pass(?:word|wd|phrase)?[_.-]|random_password",
    )
});

/// Tells whether something that must not be known is given a value that is no placeholder.
pub(super) fn gives_a_secret(text: &[u8]) -> bool {
    has_password_in_address(text) || pairs(text).any(|(name, value)| is_secret_name(&name) && is_real(&value))
}

/// Tells whether anything is given a value that is no placeholder and not obviously harmless.
pub(super) fn gives_a_value(text: &[u8]) -> bool {
    has_password_in_address(text)
        || pairs(text).any(|(name, value)| {
            let harmless = !is_secret_name(&name) && is_harmless(&value);
            is_real(&value) && !harmless
        })
}

/// Tells whether a variable of this name and value is given what must not be known, as on a line of a `.env` file.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    is_real(value) && (is_secret_name(name) || !is_harmless(value))
}

/// Returns what a file of settings gives a value that must not be known: names and values.
pub(super) fn secrets_in(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    pairs(text).filter(|(name, value)| is_secret_variable(name, value))
}

/// Returns where passwords in addresses are, as [`has_password_in_address`] tells them.
pub(super) fn passwords_in_addresses(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let passwords = ADDRESS.captures_iter(text).filter_map(|captures| captures.get(1));
    passwords.filter(|password| is_password(password.as_bytes())).map(|password| password.range())
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (String, String)> {
    [&*QUOTED, &*TAGGED, &*KEYED, &*LINE].into_iter().flat_map(move |expression| {
        expression.captures_iter(text).filter_map(|captures| {
            let group =
                |at| captures.get(at).map(|group| String::from_utf8_lossy(group.as_bytes()).into_owned());
            Some((trimmed(&group(1)?), trimmed(&group(2)?)))
        })
    })
}

/// Takes off blanks, quotes, what ends a line in a program, and a comment after a blank.
fn trimmed(text: &str) -> String {
    let marks = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '{' | '}' | '[' | ']' | '(' | ')')
    };
    let text = text.trim();
    let quoted = text.starts_with(['"', '\'']);
    let text = if quoted { text } else { text.split(" #").next().unwrap_or_default() };
    text.trim_matches(marks).to_owned()
}

fn is_secret_name(name: &str) -> bool {
    SECRET.is_match(name.as_bytes())
}

/// Tells whether a value is one: not empty, no placeholder and no reference.
fn is_real(value: &str) -> bool {
    let value = value.to_lowercase();
    let empty =
        ["", "null", "none", "nil", "true", "false", "yes", "no", "undefined", "|", ">", "|-", ">-", "~"];
    !empty.contains(&value.as_str()) && value.len() >= 3 && !is_placeholder(&value)
}

/// Tells whether a value is a number, a plain word, a place or an address, as settings without secrets have them.
fn is_harmless(value: &str) -> bool {
    let is_number = value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ':' | ',' | '-' | '_'));
    let is_word = |word: &str| {
        word.len() <= 24
            && !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_' | '.'))
    };
    let is_unit = value.len() <= 8 && value.starts_with(|c: char| c.is_ascii_digit());
    let is_place = ["/", "./", "../", "~/", "http://", "https://", "localhost", "ws://", "wss://"]
        .iter()
        .any(|start| value.starts_with(start));
    // An address without a question mark carries no token that we know of.
    let is_place = is_place && !value.contains(['?', '&', '@']);
    is_number || is_unit || is_place || value.split([' ', ',']).all(is_word)
}

fn has_password_in_address(text: &[u8]) -> bool {
    passwords_in_addresses(text).next().is_some()
}

fn is_password(password: &[u8]) -> bool {
    let password = String::from_utf8_lossy(password).to_lowercase();
    is_real(&password)
        && !matches!(password.as_str(), "password" | "pass" | "postgres" | "root" | "secret" | "user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_with_a_value_is_seen_in_each_form() {
        for text in [
            "API_KEY=q8Zr2LxP0vN5",
            "export DB_PASSWORD='hunter22'",
            "password: hunter22",
            "  token = \"abcd1234zz\"",
            "{\"auths\":{\"r\":{\"auth\":\"dXNlcjpwYXNz\"}}}",
            "<password>hunter22</password>",
            "//registry.test/:_authToken=q8Zr2LxP0vN5",
            "index-url = https://ada:hunter22@index.test/simple",
            "<add key=\"ClearTextPassword\" value=\"hunter22\" />",
            "define( 'DB_PASSWORD', 'hunter22' );",
            "    client-key-data: LS0tLS1CRUdJTiBS",
        ] {
            assert!(gives_a_secret(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn settings_without_a_secret_are_none() {
        for text in [
            "registry=https://registry.test/",
            "//registry.test/:_authToken=${NPM_TOKEN}",
            "password=",
            "token: <token>",
            "API_KEY=your_api_key",
            "{\"auths\":{}}",
            "# password=hunter22",
            "author = ada lovelace",
            "<password>${env.PASSWORD}</password>",
            "url = https://ada@host.test/",
            "max_tokens_hint: no",
        ] {
            assert!(!gives_a_secret(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn variables_with_harmless_values_are_none() {
        assert!(!gives_a_value(
            b"PORT=3000\nNODE_ENV=development\nURL=http://localhost:3000\nTITLE=My App\nEMPTY=\nDEBUG=true\n"
        ));
        assert!(gives_a_value(b"PORT=3000\nX9=q8Zr2LxP0vN5tYc7\n"));
        assert!(gives_a_value(b"PASSWORD=swordfish\n"));
        assert!(!gives_a_value(b"PASSWORD=changeme\nTOKEN=<your token>\n"));
    }
}
