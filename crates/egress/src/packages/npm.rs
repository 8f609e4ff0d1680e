//! The protocol of npm: packuments and tarballs (the documents of npm's registry, "package metadata").

use std::collections::{BTreeMap, BTreeSet};

use model::egress::{Checksum, RegistryKind};
use serde::Deserialize;
use serde_json::Value;

use super::protocol::{Asks, FileAsked};
use super::release::{Release, moment};

/// What npm runs when a package is installed (the documents of npm, "scripts").
const SCRIPTS: [&str; 3] = ["preinstall", "install", "postinstall"];

/// What a registry has of a package.
#[derive(Deserialize)]
struct Packument {
    name: String,
    #[serde(default)]
    versions: BTreeMap<String, Version>,
    #[serde(default)]
    time: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Version {
    dist: Dist,
    #[serde(default)]
    scripts: Value,
    #[serde(default, rename = "hasInstallScript")]
    has_install_script: bool,
}

#[derive(Deserialize)]
struct Dist {
    integrity: Option<String>,
    shasum: Option<String>,
}

/// Reads what a path below the index asks for, when that is what the registry has of a package.
pub(crate) fn lists(below: &str) -> Option<Asks> {
    RegistryKind::Npm.name(below).map(Asks::List)
}

/// Reads which file a path is: `NAME/-/NAME-VERSION.tgz`, the second name without its scope.
pub(crate) fn file(below: &str) -> Option<Asks> {
    let (name, file) = below.split_once("/-/")?;
    let name = RegistryKind::Npm.name(name)?;
    let bare = name.rsplit('/').next()?;
    let version = file.strip_prefix(bare)?.strip_prefix('-')?.strip_suffix(".tgz")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-+_".contains(&byte);
    let whole = version.starts_with(|first: char| first.is_ascii_digit()) && version.bytes().all(fits);
    let (version, spelled) = (version.to_owned(), name.clone());
    whole.then_some(Asks::File(FileAsked {
        name,
        spelled,
        version,
        path: String::new(),
        file: None,
        beside: false,
    }))
}

/// Reads a packument.
pub(crate) fn releases(name: &str, body: &[u8]) -> Result<Vec<Release>, String> {
    let packument: Packument = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if packument.name != name {
        return Err("it lists another package".to_owned());
    }
    let Packument { versions, time, .. } = packument;
    let release = |(version, of): (String, Version)| {
        let published = time.get(&version).and_then(Value::as_str).and_then(moment);
        let runs = scripts(&of.scripts).or_else(|| of.has_install_script.then(|| "a script".to_owned()));
        Release {
            version,
            file: None,
            at: None,
            checksums: of.dist.checksums(),
            beside: BTreeSet::new(),
            published,
            runs,
        }
    };
    Ok(versions.into_iter().map(release).collect())
}

/// Names the scripts of a `package.json` that run when the package is installed.
pub(crate) fn scripts(scripts: &Value) -> Option<String> {
    let runs = |name: &&str| {
        scripts.get(name).and_then(Value::as_str).is_some_and(|script| !script.trim().is_empty())
    };
    let named: Vec<String> =
        SCRIPTS.into_iter().filter(|name| runs(name)).map(|name| format!("`{name}`")).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

impl Dist {
    fn checksums(&self) -> BTreeSet<Checksum> {
        let strong = self.integrity.as_deref().map(Checksum::strongest_of_integrity).unwrap_or_default();
        if !strong.is_empty() {
            return strong;
        }
        self.shasum.iter().filter_map(|sum| format!("sha1:{sum}").parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_packages_and_their_files() {
        let read = |below: &str| match file(below) {
            Some(Asks::File(asked)) => Some((asked.name, asked.version)),
            _ => None,
        };
        let both = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(read("left-pad/-/left-pad-1.3.0.tgz"), both("left-pad", "1.3.0"));
        assert_eq!(read("@types/node/-/node-22.0.0-rc.1.tgz"), both("@types/node", "22.0.0-rc.1"));
        for other in [
            "left-pad/-/other-1.0.0.tgz",
            "left-pad/-/left-pad-1.0.0.zip",
            "a/b/-/b-1.0.0.tgz",
            "left-pad/-/left-pad-x.tgz",
            "left-pad/-/left-pad-1/0.tgz",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(lists("@types/node"), Some(Asks::List("@types/node".to_owned())));
        for other in ["-/ping", "-/npm/v1/security/advisories/bulk", "left-pad/1.0.0", "-/v1/search"] {
            assert_eq!(lists(other), None, "{other}");
        }
    }

    #[test]
    fn a_packument_says_what_a_version_is_when_it_came_and_what_it_runs() {
        let sha1 = "01".repeat(20);
        let body = format!(
            r#"{{"name":"a","time":{{"created":"x","1.0.0":"2020-01-01T00:00:00.000Z"}},"versions":{{
            "1.0.0":{{"dist":{{"shasum":"{sha1}"}},"scripts":{{"test":"x","install":" "}}}},
            "2.0.0":{{"dist":{{"shasum":"{sha1}"}},"scripts":{{"postinstall":"node x","preinstall":"y"}}}},
            "3.0.0":{{"dist":{{}},"hasInstallScript":true}}}}}}"#
        );
        let read = releases("a", body.as_bytes()).expect("is one");
        let runs: Vec<_> = read.iter().map(|one| one.runs.as_deref()).collect();
        assert_eq!(runs, [None, Some("`preinstall`, `postinstall`"), Some("a script")]);
        assert!(read[0].published.is_some() && read[1].published.is_none());
        assert_eq!((read[0].checksums.len(), read[2].checksums.len()), (1, 0));
        assert!(releases("b", body.as_bytes()).is_err() && releases("a", b"[]").is_err());
    }
}
