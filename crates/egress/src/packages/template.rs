//! Where a registry of cargo gives its files: the `dl` of its `config.json` (the cargo book, "Index format").

use model::egress::Place;
use regex::Regex;

/// What is put behind a `dl` that has no marker in it.
const USUAL: &str = "/{crate}/{version}/download";

/// A `dl`, read for what it gives.
#[derive(Debug)]
pub(crate) struct Template {
    /// The host.
    pub(crate) place: Place,
    text: String,
    pattern: Regex,
}

impl Template {
    /// Reads one; nothing when it is none.
    pub(crate) fn parse(dl: &str) -> Option<Self> {
        let authority = dl.find("://")? + 3;
        let path = dl[authority..].find('/').map_or(dl.len(), |at| authority + at);
        let place: Place = dl[..path].parse().ok()?;
        let text = dl[path..].trim_end_matches('/');
        let text = if text.contains('{') { text.to_owned() } else { format!("{text}{USUAL}") };
        Some(Self { place, pattern: pattern(&text)?, text })
    }

    /// Returns which crate and version a path is the file of.
    pub(crate) fn reads(&self, at: &Place, path: &str) -> Option<(String, String)> {
        let found = self.pattern.captures(path).filter(|_| self.place.is_beside(at))?;
        let one = |group: &str| found.name(group).map_or("", |group| group.as_str());
        let (name, version, sum) = (one("crate"), one("version"), one("sum"));
        let whole = self.text.replace("{crate}", name).replace("{version}", version);
        let whole = whole.replace("{prefix}", &prefix(name)).replace("{sha256-checksum}", sum);
        let whole = whole.replace("{lowerprefix}", &prefix(&name.to_lowercase()));
        (whole == path && !name.is_empty() && !version.is_empty())
            .then(|| (name.to_owned(), version.to_owned()))
    }
}

/// Returns the directories that the name of a crate is in, in an index and where `dl` says `{prefix}`.
pub(crate) fn prefix(name: &str) -> String {
    match name.len() {
        0 => String::new(),
        1 => "1".to_owned(),
        2 => "2".to_owned(),
        3 => format!("3/{}", &name[..1]),
        _ => format!("{}/{}", &name[..2], &name[2..4]),
    }
}

fn pattern(text: &str) -> Option<Regex> {
    let mut pattern = String::from("^");
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let end = at + rest[at..].find('}')?;
        pattern.push_str(&regex::escape(&rest[..at]));
        let (group, fits) = match &rest[at + 1..end] {
            "crate" => ("crate", "[A-Za-z0-9_-]+"),
            "version" => ("version", "[0-9][^/]*"),
            "sha256-checksum" => ("sum", "[0-9a-f]{64}"),
            "prefix" | "lowerprefix" => ("", "[A-Za-z0-9_/-]+"),
            _ => return None,
        };
        let named = !group.is_empty() && !pattern.contains(&format!("<{group}>"));
        pattern.push_str(&if named { format!("(?<{group}>{fits})") } else { format!("(?:{fits})") });
        rest = &rest[end + 1..];
    }
    pattern.push_str(&regex::escape(rest));
    Regex::new(&format!("{pattern}$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(dl: &str, at: &str, path: &str) -> Option<(String, String)> {
        Template::parse(dl)?.reads(&at.parse().expect("a place"), path)
    }

    #[test]
    fn files_are_read_from_every_form_of_dl() {
        let both = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        let at = "https://a.test";
        assert_eq!(
            reads("https://a.test:443/api/v1/crates", at, "/api/v1/crates/serde/1.0.0/download"),
            both("serde", "1.0.0")
        );
        assert_eq!(reads("https://a.test", at, "/serde/1.0.0/download"), both("serde", "1.0.0"));
        assert_eq!(
            reads("https://a.test/{crate}/{crate}-{version}.crate", at, "/a-2/a-2-1.0.0-rc-1.crate"),
            both("a-2", "1.0.0-rc-1")
        );
        assert_eq!(
            reads("https://a.test/{prefix}/{crate}/{version}", at, "/se/rd/serde/1.0.0"),
            both("serde", "1.0.0")
        );
        assert_eq!(
            reads("https://a.test/{lowerprefix}/{crate}/{version}", at, "/in/fl/Inflector/1.0.0"),
            both("Inflector", "1.0.0")
        );
        for (dl, at, path) in [
            ("https://a.test", "https://b.test", "/serde/1.0.0/download"),
            ("https://a.test", "http://a.test", "/serde/1.0.0/download"),
            ("https://a.test", at, "/serde/1.0.0/download/more"),
            ("https://a.test", at, "/x/serde/1.0.0/download"),
            ("https://a.test/{crate}/{crate}-{version}.crate", at, "/serde/other-1.0.0.crate"),
            ("https://a.test/{prefix}/{crate}/{version}", at, "/xx/xx/serde/1.0.0"),
            ("https://a.test/{else}", at, "/x"),
            ("a.test", at, "/x"),
        ] {
            assert_eq!(reads(dl, at, path), None, "{dl} {path}");
        }
    }
}
