//! The sparse protocol of cargo (the cargo book, "Registry index").

use std::collections::BTreeSet;

use model::egress::{Place, RegistryKind};
use serde::Deserialize;

use super::protocol::Asks;
use super::release::{Release, moment};
use super::template::{Template, prefix};

/// What a registry says of itself.
pub(crate) const SETTINGS: &str = "config.json";

/// One line of an index.
#[derive(Deserialize)]
struct Line {
    name: String,
    vers: String,
    cksum: String,
    pubtime: Option<String>,
}

#[derive(Deserialize)]
struct Settings {
    dl: String,
}

/// Reads what a path below the index asks for.
pub(crate) fn lists(below: &str) -> Option<Asks> {
    if below == SETTINGS {
        return Some(Asks::Settings);
    }
    let (directories, name) = below.rsplit_once('/')?;
    let own = RegistryKind::Cargo.name(name)?;
    (prefix(name) == directories).then_some(Asks::List(own))
}

/// Returns where a crate is listed: with small letters, and `_` or `-` as it was published.
pub(crate) fn list(spelled: &str) -> String {
    let small = spelled.to_ascii_lowercase();
    format!("{}/{small}", prefix(&small))
}

/// Reads an index file: a line for each version.
pub(crate) fn releases(name: &str, body: &[u8]) -> Result<Vec<Release>, String> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| release(name, line)).collect()
}

fn release(name: &str, line: &[u8]) -> Result<Release, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if RegistryKind::Cargo.name(&line.name).as_deref() != Some(name) {
        return Err("it lists another crate".to_owned());
    }
    let checksum = format!("sha256:{}", line.cksum).parse().map_err(|_| "it has no SHA-256".to_owned())?;
    Ok(Release {
        version: line.vers,
        file: None,
        at: None,
        checksums: BTreeSet::from([checksum]),
        beside: BTreeSet::new(),
        published: line.pubtime.as_deref().and_then(moment),
        runs: None,
    })
}

/// Reads where a registry gives its files, which must be at one of its own places.
pub(crate) fn downloads<'p>(
    body: &[u8],
    mut places: impl Iterator<Item = &'p Place>,
) -> Result<Template, String> {
    let settings: Settings = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let template = Template::parse(&settings.dl).ok_or("its `dl` is no address")?;
    match places.any(|place| place.is_beside(&template.place)) {
        true => Ok(template),
        false => Err(format!(
            "it gives its files at `{}`, which is none of its `downloads` in the settings",
            template.place
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_an_index_are_read_and_others_are_not() {
        let list = |name: &str| Some(Asks::List(name.to_owned()));
        assert_eq!(lists("config.json"), Some(Asks::Settings));
        assert_eq!((lists("1/a"), lists("2/ab"), lists("3/a/abc")), (list("a"), list("ab"), list("abc")));
        assert_eq!(
            (lists("se/rd/serde_json"), lists("in/fl/inflector")),
            (list("serde-json"), list("inflector"))
        );
        for other in
            ["serde", "se/rd/tokio", "x/config.json", "3/abc", "se/rd/se.rde", "se/rd/", "api/v1/crates/new"]
        {
            assert_eq!(lists(other), None, "{other}");
        }
    }

    #[test]
    fn an_index_file_is_read_line_by_line() {
        let sum = "ab".repeat(32);
        let old = format!(r#"{{"name":"Serde","vers":"1.0.0","cksum":"{sum}","deps":[]}}"#);
        let new =
            format!(r#"{{"name":"serde","vers":"1.0.1","cksum":"{sum}","pubtime":"2026-01-02T03:04:05Z"}}"#);
        let read = releases("serde", format!("{old}\n{new}\n\n").as_bytes()).expect("is one");
        let shown: Vec<_> = read.iter().map(|one| (one.version.as_str(), one.published.is_some())).collect();
        assert_eq!(shown, [("1.0.0", false), ("1.0.1", true)]);
        assert!(releases("tokio", new.as_bytes()).is_err());
        for wrong in ["{}", "nonsense", r#"{"name":"serde","vers":"1","cksum":"ab"}"#] {
            assert!(releases("serde", wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_come_from_places_of_the_registry_alone() {
        let own: Place = "https://a.test".parse().expect("a place");
        let says =
            |dl: &str| downloads(format!(r#"{{"dl":"{dl}"}}"#).as_bytes(), [&own].into_iter()).map(drop);
        assert_eq!(says("https://a.test:443/x"), Ok(()));
        assert!(
            says("https://b.test").is_err_and(|why| why.contains("https://b.test")) && says("x").is_err()
        );
    }
}
