//! Registries: where packages come from, and what may come.
//!
//! Guarantees: a name is compared in the one form that its registry takes for the same package; a place is one scheme, host,
//! port and path, without a pattern in it.
//! Leaves to others: what each protocol asks and answers (`egress`), and who names a registry (the settings).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::host::HostPattern;
use super::rule::{EgressRule, Protocol};
use crate::text::escape;
use crate::units::Timestamp;

/// The longest name of a package, in bytes: the bound of npm, which is the widest that is written down.
const NAME_MAX: usize = 214;
/// How long a release waits before it may come, where nothing else is said.
pub const COOLDOWN: Duration = Duration::from_secs(72 * 3600);

/// What a registry speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegistryKind {
    /// The sparse protocol of cargo.
    Cargo,
    /// The protocol of npm, which pnpm and yarn speak too.
    Npm,
    /// The simple repository API of Python.
    Pypi,
    /// A repository of Debian packages.
    Debian,
}

/// A registry, and what may come from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Its name, as rules have it.
    pub name: String,
    /// What it speaks.
    pub kind: RegistryKind,
    /// Where it lists what it has.
    pub index: Place,
    /// More places from which it gives files.
    pub downloads: BTreeSet<Place>,
    /// Of a repository of Debian packages: the suites with their components, as `bookworm/main`.
    #[serde(default)]
    pub suites: BTreeSet<String>,
    /// The names that may come; all when there is none.
    pub allow: BTreeSet<NamePattern>,
    /// Names that never come.
    pub deny: BTreeSet<NamePattern>,
    /// Names that a person looked at, beside those that are used already.
    pub known: BTreeSet<NamePattern>,
    /// Names whose releases may bring code that runs when they are installed.
    pub scripts: BTreeSet<NamePattern>,
    /// Names that only another registry may give, with that registry's name.
    pub elsewhere: BTreeMap<NamePattern, String>,
    /// How long a release waits after it was published, in seconds.
    pub cooldown_s: u64,
    /// What becomes of a release whose age the registry does not tell.
    pub unknown_age: Unlisted,
    /// What becomes of a name that nobody here has used.
    pub new_names: Unlisted,
    /// What a lockfile holds.
    pub lockfile: Lockfile,
}

/// What becomes of something that nothing is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unlisted {
    /// It does not come.
    Refuse,
    /// It comes.
    Allow,
}

/// What the lockfiles of a workspace hold, where it has some. A hash that differs from theirs never passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lockfile {
    /// What they do not name does not come.
    Enforce,
    /// What they do not name may come, and is recorded.
    Record,
}

/// A place of a registry: a scheme, a host, a port and the path that all of its paths begin with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Place {
    /// What is spoken.
    pub protocol: Protocol,
    /// The host; no pattern of several.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// The path, without a slash at its end.
    pub path: String,
}

/// Says why a text names no place of a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no address of a registry: write for example `https://registry.example.com/path`", escape(.0))]
pub struct PlaceError(String);

/// A name of packages, or the beginning of names: `serde`, `corp-*`, `@corp/*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern {
    text: String,
    any_after: bool,
}

/// Says why a text is no name of a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no name of a package: write for example `serde`, `corp-*` or `@corp/*`", escape(.0))]
pub struct NameError(String);

/// What a file of a package must be: the digest of an algorithm, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Checksum {
    /// The algorithm.
    pub algorithm: Algorithm,
    hex: String,
}

/// How a checksum is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// SHA-1, which only old releases of npm have.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// Says why a text is no checksum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no checksum", escape(.0))]
pub struct ChecksumError(String);

/// What a lockfile says of one release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// Which kind of lockfile names it.
    pub kind: RegistryKind,
    /// Its name, in the form that names are compared in.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What its files may be; nothing where the lockfile says nothing of them.
    pub checksums: BTreeSet<Checksum>,
}

/// A package that an attempt was about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageUse {
    /// The name of the registry.
    pub registry: String,
    /// What it speaks.
    pub kind: RegistryKind,
    /// The name of the package, in the form that names are compared in.
    pub name: String,
    /// The version, when one of its files was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What came, once all of it did and was what it must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Checksum>,
    /// When it was published, as the registry tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Whether a lockfile names this version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
}

impl RegistryKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cargo, Self::Npm, Self::Pypi, Self::Debian];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Debian => "debian",
        }
    }

    /// Returns a name of a package in the form that names are compared in: two names that the registry takes for the same
    /// package have the same. Nothing when it is no name at all.
    pub fn name(self, text: &str) -> Option<String> {
        let plain = |text: &str, more: &str| {
            !text.is_empty()
                && text.len() <= NAME_MAX
                && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
                && text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
        };
        match self {
            // Cargo's registries take `-` and `_`, and large and small letters, for the same (RFC 940 and its kin).
            Self::Cargo => plain(text, "-_").then(|| text.to_ascii_lowercase().replace('_', "-")),
            Self::Npm => {
                let (scope, name) = text.strip_prefix('@').map_or(Some((None, text)), |scoped| {
                    scoped.split_once('/').map(|(scope, name)| (Some(scope), name))
                })?;
                let fits = |part: &str| plain(part, "-_.~");
                (text.len() <= NAME_MAX && scope.is_none_or(fits) && fits(name)).then(|| text.to_owned())
            }
            // PEP 503: runs of `-`, `_` and `.` are one `-`.
            Self::Pypi => plain(text, "-_.").then(|| normal_python(text)),
            Self::Debian => {
                (plain(text, "+-.") && text == text.to_ascii_lowercase()).then(|| text.to_owned())
            }
        }
    }
}

fn normal_python(text: &str) -> String {
    let parts = text.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

impl fmt::Display for RegistryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Registry {
    /// Returns the registry of a kind at a place, with what holds where nothing else is said.
    pub fn at(name: &str, kind: RegistryKind, index: Place) -> Self {
        // Debian tells no ages, and what it has went through its own distribution first.
        let curated = if kind == RegistryKind::Debian { Unlisted::Allow } else { Unlisted::Refuse };
        Self {
            name: name.to_owned(),
            kind,
            index,
            downloads: BTreeSet::new(),
            suites: BTreeSet::new(),
            allow: BTreeSet::new(),
            deny: BTreeSet::new(),
            known: BTreeSet::new(),
            scripts: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
            cooldown_s: COOLDOWN.as_secs(),
            unknown_age: curated,
            new_names: curated,
            lockfile: Lockfile::Enforce,
        }
    }

    /// Returns all of its places.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.index).chain(&self.downloads)
    }

    /// Returns the rules by which it is reached.
    pub fn rules(&self) -> BTreeSet<EgressRule> {
        let rule = |place: &Place| EgressRule { registry: Some(self.name.clone()), ..place.rule() };
        self.places().map(rule).collect()
    }
}

impl Place {
    /// Returns the rule that reads what is there.
    fn rule(&self) -> EgressRule {
        let methods = ["GET", "HEAD"].into_iter().filter_map(|method| method.parse().ok()).collect();
        EgressRule {
            host: self.host.clone(),
            port: self.port,
            protocol: self.protocol,
            methods,
            path: Some(self.path.as_str())
                .filter(|path| !path.is_empty())
                .and_then(|path| format!("{path}/**").parse().ok()),
            credential: None,
            registry: None,
            inside: BTreeSet::new(),
        }
    }

    /// Returns what of a path lies below this place; nothing when it does not, or the path has no segment more.
    pub fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(self.path.as_str())?.strip_prefix('/').filter(|rest| !rest.is_empty())
    }

    /// Tells whether it is on the same host and port, spoken to in the same way.
    pub fn is_beside(&self, other: &Self) -> bool {
        (&self.host, self.port, self.protocol) == (&other.host, other.port, other.protocol)
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let wrong = || PlaceError(text.to_owned());
        let address = text.strip_prefix("sparse+").unwrap_or(text).trim_end_matches('/');
        let rule: EgressRule = address.parse().map_err(|_| wrong())?;
        let path = rule.path.as_ref().map(ToString::to_string).unwrap_or_default();
        let several = matches!(rule.host, HostPattern::Below(_)) || path.contains('*');
        if several || rule.protocol == Protocol::Tcp || !rule.methods.is_empty() {
            return Err(wrong());
        }
        Ok(Self { protocol: rule.protocol, host: rule.host, port: rule.port, path })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = EgressRule { methods: BTreeSet::new(), path: None, ..self.rule() };
        write!(f, "{bare}{}", self.path)
    }
}

impl TryFrom<String> for Place {
    type Error = PlaceError;

    fn try_from(text: String) -> Result<Self, PlaceError> {
        text.parse()
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl NamePattern {
    /// Tells whether it is about a name, which is in the form that names are compared in.
    pub fn matches(&self, name: &str) -> bool {
        if self.any_after { name.starts_with(&self.text) } else { name == self.text }
    }

    /// Returns the one name that it is about.
    pub fn only(&self) -> Option<&str> {
        (!self.any_after).then_some(self.text.as_str())
    }

    /// Returns it for names of a kind: in the form that they are compared in.
    pub fn of(&self, kind: RegistryKind) -> Option<Self> {
        if !self.any_after {
            return kind.name(&self.text).map(|text| Self { text, any_after: false });
        }
        // What ends in a separator stays with it: `corp-*` is not about `corporate`.
        let bare = self.text.trim_end_matches(['-', '_', '.', '/']);
        let text = match bare {
            "" => String::new(),
            scope if self.text.ends_with('/') => format!("{scope}/"),
            bare if bare.len() < self.text.len() => format!("{}-", kind.name(bare)?),
            bare => kind.name(bare)?,
        };
        Some(Self { text, any_after: true })
    }
}

impl FromStr for NamePattern {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (bare, any_after) = text.strip_suffix('*').map_or((text, false), |bare| (bare, true));
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "@/-_.+~".contains(letter);
        if text.is_empty() || text.len() > NAME_MAX || !bare.chars().all(fits) {
            return Err(NameError(text.to_owned()));
        }
        Ok(Self { text: bare.to_owned(), any_after })
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.any_after { "*" } else { "" })
    }
}

impl TryFrom<String> for NamePattern {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> Self {
        pattern.to_string()
    }
}

impl Algorithm {
    const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl Checksum {
    /// Takes the digest that an algorithm made.
    pub fn new(algorithm: Algorithm, digest: &[u8]) -> Self {
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { algorithm, hex }
    }

    /// Reads the strongest of the digests that subresource integrity lists: `sha512-…`, as Base64.
    pub fn strongest_of_integrity(text: &str) -> BTreeSet<Self> {
        let one = |word: &str| {
            let (algorithm, rest) = word.split_once('-')?;
            let algorithm = Algorithm::ALL.into_iter().find(|own| own.as_str() == algorithm)?;
            let digest = STANDARD.decode(rest.split('?').next()?).ok()?;
            (digest.len() == algorithm.bytes()).then(|| Self::new(algorithm, &digest))
        };
        let all: BTreeSet<Self> = text.split_ascii_whitespace().filter_map(one).collect();
        let strongest = all.iter().map(|checksum| checksum.algorithm).max();
        all.into_iter().filter(|checksum| Some(checksum.algorithm) == strongest).collect()
    }

    /// Returns the digest as hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl FromStr for Checksum {
    type Err = ChecksumError;

    fn from_str(text: &str) -> Result<Self, ChecksumError> {
        let wrong = || ChecksumError(text.to_owned());
        let (algorithm, hex) = text.split_once(':').ok_or_else(wrong)?;
        let algorithm = Algorithm::ALL.into_iter().find(|own| own.as_str() == algorithm).ok_or_else(wrong)?;
        let fits = hex.len() == 2 * algorithm.bytes() && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        fits.then(|| Self { algorithm, hex: hex.to_ascii_lowercase() }).ok_or_else(wrong)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

impl TryFrom<String> for Checksum {
    type Error = ChecksumError;

    fn try_from(text: String) -> Result<Self, ChecksumError> {
        text.parse()
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> Self {
        checksum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_package_have_one_form_and_what_is_no_name_has_none() {
        let name = |kind: RegistryKind, text: &str| kind.name(text);
        assert_eq!(name(RegistryKind::Cargo, "Serde_JSON").as_deref(), Some("serde-json"));
        assert_eq!(name(RegistryKind::Pypi, "Zope.Interface__x").as_deref(), Some("zope-interface-x"));
        assert_eq!(name(RegistryKind::Npm, "@types/node").as_deref(), Some("@types/node"));
        for (kind, text) in [
            (RegistryKind::Cargo, "a.b"),
            (RegistryKind::Cargo, ""),
            (RegistryKind::Cargo, "../x"),
            (RegistryKind::Npm, "@types"),
            (RegistryKind::Npm, "@/x"),
            (RegistryKind::Npm, "-"),
            (RegistryKind::Npm, "@a/b/c"),
            (RegistryKind::Pypi, "sérde"),
            (RegistryKind::Debian, "Bash"),
        ] {
            assert_eq!(name(kind, text), None, "{text}");
        }
    }

    #[test]
    fn patterns_are_about_whole_names_or_what_begins_them() {
        let about = |pattern: &str, kind: RegistryKind, name: &str| {
            let pattern: NamePattern = pattern.parse().expect("a pattern");
            pattern.of(kind).is_some_and(|pattern| pattern.matches(name))
        };
        assert!(about("serde_json", RegistryKind::Cargo, "serde-json"));
        assert!(
            about("corp_*", RegistryKind::Cargo, "corp-x") && about("@corp/*", RegistryKind::Npm, "@corp/x")
        );
        assert!(about("Corp.*", RegistryKind::Pypi, "corp-x") && about("*", RegistryKind::Npm, "@a/b"));
        assert!(
            !about("corp-*", RegistryKind::Npm, "corporate")
                && !about("@corp/*", RegistryKind::Npm, "@corporate/x")
        );
        assert!(!about("serde", RegistryKind::Cargo, "serde-json"));
        assert!("a b".parse::<NamePattern>().is_err() && "".parse::<NamePattern>().is_err());
    }

    #[test]
    fn a_place_has_one_host_and_gives_rules_that_only_read_there() {
        let place: Place = "sparse+https://index.example.com/api/".parse().expect("a place");
        assert_eq!(place.to_string(), "https://index.example.com/api");
        assert_eq!(
            (place.below("/api/se/rd/serde"), place.below("/apix"), place.below("/api/")),
            (Some("se/rd/serde"), None, None)
        );
        let registry = Registry::at("crates", RegistryKind::Cargo, place);
        let rules: Vec<String> = registry.rules().iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["GET,HEAD https://index.example.com/api/** as crates"]);
        for wrong in [
            "https://*.example.com",
            "tcp://a.test:1",
            "https://a.test/*",
            "GET https://a.test",
            "https://u@a.test",
            "a.test",
        ] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_checksum_has_all_of_its_digits() {
        let text = format!("sha256:{}", "aB".repeat(32));
        assert_eq!(text.parse::<Checksum>().expect("one").to_string(), text.to_ascii_lowercase());
        let (sha1, sha256) = (STANDARD.encode([1; 20]), STANDARD.encode([2; 32]));
        let read =
            Checksum::strongest_of_integrity(&format!("sha1-{sha1} sha256-{sha256}?x md5-AAAA sha512-AAAA"));
        let read: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(read, [format!("sha256:{}", "02".repeat(32))]);
        for wrong in ["sha256:ab", "md5:00", "sha256", "sha1:zz"] {
            assert!(wrong.parse::<Checksum>().is_err(), "{wrong}");
        }
    }
}
