//! Which places and names hold credentials, and what looks like a secret.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::data::{CREDENTIALS, rows};
use super::files::is_like;

/// The table of credentials, for one home.
pub(crate) struct Credentials {
    home: PathBuf,
    places: Vec<Line>,
    names: Vec<Line>,
}

/// A line of the table: the place below the home or the name, and the reason.
struct Line {
    pattern: &'static str,
    has_star: bool,
    why: &'static str,
}

impl Credentials {
    /// Returns the table with its places below a home, which has no links.
    pub(crate) fn of(home: &Path) -> Self {
        let mut table = Self { home: home.to_owned(), places: Vec::new(), names: Vec::new() };
        for [pattern, why] in rows::<2>(CREDENTIALS) {
            let line = |pattern: &'static str| Line { pattern, has_star: pattern.contains('*'), why };
            match pattern.strip_prefix("~/") {
                Some(below) => table.places.push(line(below)),
                None => table.names.push(line(pattern)),
            }
        }
        table
    }

    /// Returns the reason when a path is a place of credentials or lies in one.
    pub(crate) fn place_of(&self, path: &Path) -> Option<&'static str> {
        let below = path.strip_prefix(&self.home).ok()?;
        self.places.iter().find(|place| place.holds(below)).map(|place| place.why)
    }

    /// Returns the places that lie inside a directory, as patterns, with their reasons.
    pub(crate) fn places_inside(&self, directory: &Path) -> Vec<(PathBuf, &'static str)> {
        let Ok(below) = directory.strip_prefix(&self.home) else { return Vec::new() };
        let below = below.as_os_str().as_encoded_bytes();
        let inside =
            |place: &str| place.as_bytes().strip_prefix(below).is_some_and(|rest| rest.starts_with(b"/"));
        let inside = self.places.iter().filter(|place| below.is_empty() || inside(place.pattern));
        inside.map(|place| (self.home.join(place.pattern), place.why)).collect()
    }

    /// Returns the reason when a name is one that holds credentials.
    pub(crate) fn name_of(&self, name: &OsStr, is_directory: bool) -> Option<&'static str> {
        self.names.iter().find(|line| line.names(name, is_directory)).map(|line| line.why)
    }
}

impl Line {
    /// Tells whether a path below the home is this place or lies in it.
    fn holds(&self, below: &Path) -> bool {
        if self.has_star {
            let mut parts = below.iter();
            return Path::new(self.pattern)
                .iter()
                .all(|wanted| parts.next().is_some_and(|part| is_like(part, wanted)));
        }
        let rest = below.as_os_str().as_encoded_bytes().strip_prefix(self.pattern.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Tells whether a name is of this kind.
    fn names(&self, name: &OsStr, is_directory: bool) -> bool {
        let (pattern, for_directories) = match self.pattern.strip_suffix('/') {
            Some(pattern) => (pattern, true),
            None => (self.pattern, false),
        };
        is_directory == for_directories
            && if self.has_star { is_like(name, pattern) } else { name == pattern }
    }
}

/// Tells whether the name of a setting says that its value is a secret.
pub(crate) fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 11] = [
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "apikey",
        "api_key",
        "api-key",
        "private_key",
        "private-key",
        "_auth",
    ];
    let name = name.to_ascii_lowercase();
    // `key` alone is too common a word, but at the end of a variable's name it is hardly anything else.
    WORDS.iter().any(|word| name.contains(word)) || name.ends_with("_key") || name.ends_with("accesskey")
}

/// Tells whether a text holds something that looks like a secret.
///
/// It errs on the side of yes: what it is asked about are settings and scripts, and a setting too few is noticed.
pub(crate) fn looks_secret(text: &str) -> bool {
    text.contains("-----BEGIN ")
        || has_user_in_address(text)
        || text.split(is_boundary).any(|word| has_known_shape(word) || is_random(word))
        || assigns_secret(text)
}

/// The beginnings of well-known tokens, with the least length of what follows.
const SHAPES: [(&str, usize); 41] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 18),
    ("gldt-", 18),
    ("glrt-", 18),
    ("npm_", 30),
    ("pypi-", 30),
    ("cio", 32),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xapp-", 10),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("SG.", 20),
    ("eyJ", 30),
    ("hf_", 20),
    ("dckr_pat_", 20),
    ("dop_v1_", 30),
    ("shpat_", 20),
    ("hvs.", 20),
    ("dapi", 32),
    ("rubygems_", 30),
    ("oy2", 40),
    ("tfp_", 20),
    ("AGE-SECRET-KEY-", 20),
    ("PMAK-", 20),
    ("lin_api_", 20),
    ("sntrys_", 20),
    ("doo_v1_", 30),
];

fn has_known_shape(word: &str) -> bool {
    SHAPES.iter().any(|(start, rest)| word.strip_prefix(start).is_some_and(|after| after.len() >= *rest))
}

fn is_boundary(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Tells whether a word mixes letters and digits as only a generated one does.
fn is_random(word: &str) -> bool {
    let runs = word.split(|c: char| !c.is_ascii_alphanumeric());
    runs.filter(|run| run.len() >= 20).any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        digits >= 3 && run.len() - digits >= 3
    })
}

/// Tells whether an address in the text carries a user or password. `git` and `ssh` users are no secrets.
fn has_user_in_address(text: &str) -> bool {
    addresses(text).any(|authority| user_of(authority).is_some())
}

fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.split("://").skip(1).map(|rest| {
        rest.split(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | ','))
            .next()
            .unwrap_or("")
    })
}

fn user_of(authority: &str) -> Option<&str> {
    let (user, _) = authority.rsplit_once('@')?;
    let is_variable = user.starts_with("${") && user.ends_with('}') && !user.contains(':');
    (!matches!(user, "" | "git" | "ssh" | "hg") && !is_variable).then_some(user)
}

/// Tells whether a line of the text gives a value to a name that says it is a secret.
fn assigns_secret(text: &str) -> bool {
    text.lines().any(|line| ['=', ':'].into_iter().any(|separator| line_assigns_secret(line, separator)))
}

fn line_assigns_secret(line: &str, separator: char) -> bool {
    let Some((name, value)) = line.split_once(separator) else { return false };
    let name = name.trim().trim_start_matches("export ").trim_matches(['"', '\'', ' ']);
    let value = value.trim().trim_matches(['"', '\'', ' ', ',', ';']);
    let is_name =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:/@".contains(&b));
    // A value that is looked up elsewhere, or shorter than any password, is none.
    is_name && names_secret(name) && value.len() >= 6 && !value.starts_with(['$', '(', '{', '<', '`'])
}

/// Tells whether a script holds a secret: like [`looks_secret`], but checksums and names of parameters are common in
/// scripts and are none.
pub(crate) fn script_holds_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
        || addresses(text)
            .filter_map(user_of)
            .any(|user| user.contains(':') && !user.contains(['$', '{', '<']))
        || text.split(is_boundary).any(has_known_shape)
        || text.lines().any(|line| assigns_secret(line) && line.contains(['=']) && ends_in_literal(line))
}

fn ends_in_literal(line: &str) -> bool {
    let value = line.rsplit('=').next().unwrap_or("").trim().trim_matches(['"', '\'', ';']);
    let is_plain = value.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/_.-".contains(&b));
    is_plain && value.len() >= 8 && value.bytes().any(|b| b.is_ascii_digit())
}

/// Returns a setting's value without the user and password of the addresses in it; nothing when it still looks like a
/// secret.
pub(crate) fn without_secret(value: &str) -> Option<String> {
    let mut kept = value.to_owned();
    for authority in addresses(value) {
        if let Some(user) = user_of(authority) {
            kept = kept.replace(&format!("://{user}@"), "://");
        }
    }
    (!looks_secret(&kept)).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_credentials_is_known_with_all_that_is_below_it() {
        let table = Credentials::of(Path::new("/home/ada"));
        for path in [".ssh", ".ssh/keys/id", ".aws/credentials", ".config/google-chrome-beta/Default/Cookies"]
        {
            assert!(table.place_of(&Path::new("/home/ada").join(path)).is_some(), "{path}");
        }
        for path in ["/home/ada/.sshd", "/home/ada/.cargo/bin", "/home/bob/.ssh", "/home/ada"] {
            assert_eq!(table.place_of(Path::new(path)), None, "{path}");
        }
        assert_eq!(table.places_inside(Path::new("/home/ada/.docker")).len(), 3);
    }

    #[test]
    fn secrets_are_told_from_look_alikes() {
        let secrets = [
            "https://ada:hunter2@host.example/simple",
            "https://sometoken@host.example/",
            "export API_TOKEN=abcdef123",
            "//registry.example/:_authToken=abcdef0123",
            "aws_secret_access_key = wJalrXUtnFEMI",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "https://host.example/a8f3c01b2d4e5f60718293a4b5c6d7e8/simple",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
        ];
        for text in secrets {
            assert!(looks_secret(text), "{text}");
        }
        let others = [
            "https://host.example/simple",
            "ssh://git@host.example/repository",
            "x86_64-unknown-linux-gnu",
            "registry = \"sparse+https://mirror.example/index/\"",
            "token=$TOKEN",
            "export PASSWORD_STORE_DIR=~/x",
            "/usr/lib/python3.11/site-packages",
            "-Xmx2g -XX:MaxMetaspaceSize=512m",
        ];
        for text in others {
            assert!(!looks_secret(text), "{text}");
        }
    }

    #[test]
    fn a_script_may_hold_checksums_and_names_of_parameters() {
        let sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for text in [
            &format!("sha256={sum}"),
            "password: str = None",
            "TOKEN=\"$1\"",
            "user@host",
            "password=args.password",
        ] {
            assert!(!script_holds_secret(text), "{text}");
        }
        for text in [
            "API_TOKEN=abcdef0123",
            "curl https://ada:hunter2@host.example/",
            "x = 'glpat-abcdefghijklmnopqrst'",
        ] {
            assert!(script_holds_secret(text), "{text}");
        }
    }

    #[test]
    fn an_address_is_kept_without_its_password() {
        let kept =
            without_secret("https://ada:hunter2@host.example/simple https://b.example/").expect("kept");
        assert_eq!(kept, "https://host.example/simple https://b.example/");
        assert_eq!(without_secret("https://host.example/a8f3c01b2d4e5f60718293a4b5c6d7e8/"), None);
    }
}
