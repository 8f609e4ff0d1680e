//! Registries as the caller's own clients are told of them: cargo, npm, pip and apt.
//!
//! Guarantees: only files of the caller and of the machine are read, never one of a repository; one that others could have
//! written says nothing, and neither does what is not understood. Keys and passwords are left where they are.
//! Leaves to others: whether anything of it is reached (a table of the settings, or a person's yes).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::egress::{NamePattern, Place, RegistryKind};

use super::environment::Environment;
use super::load::text_of;
use super::origin::{Origin, Sourced};

/// A registry as a client is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRegistry {
    /// What it speaks.
    pub kind: RegistryKind,
    /// Where it lists what it has, and who says so.
    pub index: Sourced<Place>,
    /// The names that the client asks for there and nowhere else; when there is none, it asks for all others.
    pub only: BTreeSet<NamePattern>,
    /// Of Debian: the suites with their components.
    pub suites: BTreeSet<String>,
}

/// The tables of cargo's settings that replace where crates come from (the cargo book, "Source replacement").
const CARGO_FILES: [&str; 2] = ["config.toml", "config"];
const CARGO_DEFAULT: &str = "crates-io";
/// More replacements in a row than anybody writes.
const REPLACED_MAX: usize = 8;

/// Returns what the clients of the caller are told.
pub(super) fn found(environment: &Environment) -> Vec<ClientRegistry> {
    let home = environment.directory("HOME");
    let below = |path: &str| home.map(|home| home.join(path));
    let cargo = environment.directory("CARGO_HOME").map(Path::to_owned).or_else(|| below(".cargo"));
    let cargo = CARGO_FILES.iter().filter_map(|file| Some(cargo.as_ref()?.join(file)));
    let npm = [below(".npmrc"), Some("/etc/npmrc".into()), Some("/usr/etc/npmrc".into())];
    let pip = [
        environment.directory("PIP_CONFIG_FILE").map(Path::to_owned),
        environment.xdg("XDG_CONFIG_HOME", ".config").map(|config| config.join("pip/pip.conf")),
        below(".pip/pip.conf"),
        Some("/etc/pip.conf".into()),
    ];
    let variable = |kind, names: [&'static str; 2]| {
        names.into_iter().find_map(|name| of_variable(environment, kind, name))
    };
    let first = |variable: Option<ClientRegistry>, files: Vec<ClientRegistry>| {
        // The first that says it goes before the others, as it does for the client.
        let all = variable.into_iter().chain(files);
        all.fold(Vec::<ClientRegistry>::new(), |mut kept, one| {
            if !kept.iter().any(|other| other.only == one.only) {
                kept.push(one);
            }
            kept
        })
    };
    let npm = read(npm.into_iter().flatten(), npm_registries);
    let pip = read(pip.into_iter().flatten(), pip_indexes);
    [
        first(None, read(cargo, cargo_source)),
        first(variable(RegistryKind::Npm, ["npm_config_registry", "NPM_CONFIG_REGISTRY"]), npm),
        first(variable(RegistryKind::Pypi, ["PIP_INDEX_URL", "UV_DEFAULT_INDEX"]), pip),
        apt(),
    ]
    .concat()
}

/// Reads the sources of apt of the machine, which are its own and no caller's.
fn apt() -> Vec<ClientRegistry> {
    let listed = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    files.push("/etc/apt/sources.list".into());
    files.sort();
    let mut found = Vec::<ClientRegistry>::new();
    for path in files {
        let is = |ending: &str| path.extension().is_some_and(|own| own == ending);
        let text = || text_of(&path).unwrap_or_default();
        let said = match (is("sources"), is("list")) {
            (true, _) => apt_paragraphs(&text()),
            (_, true) => apt_lines(&text()),
            _ => Vec::new(),
        };
        for (value, suite) in said {
            match found.iter_mut().find(|one| one.index.value == value) {
                Some(one) => drop(one.suites.insert(suite)),
                None => found.push(ClientRegistry {
                    kind: RegistryKind::Debian,
                    index: Sourced { value, origin: Origin::Client(path.clone()) },
                    only: BTreeSet::new(),
                    suites: [suite].into(),
                }),
            }
        }
    }
    found
}

/// Reads sources line by line: `deb [OPTIONS] ADDRESS SUITE COMPONENT…` (sources.list(5)).
fn apt_lines(text: &str) -> Vec<(Place, String)> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("deb "));
    let one = |line: &str| {
        let line = line.trim();
        let rest = if line.starts_with('[') { line.split_once(']')?.1 } else { line };
        let mut words = rest.split_ascii_whitespace();
        let (place, suite) = (place(words.next()?)?, words.next()?);
        Some(words.map(|component| (place.clone(), format!("{suite}/{component}"))).collect::<Vec<_>>())
    };
    lines.filter_map(one).flatten().collect()
}

/// Reads sources as paragraphs of `Key: words` (sources.list(5), "deb822-style format").
fn apt_paragraphs(text: &str) -> Vec<(Place, String)> {
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let paragraphs = plain.join("\n");
    let words = |paragraph: &str, key: &str| {
        let line =
            paragraph.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::to_owned));
        line.unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for paragraph in
        paragraphs.split("\n\n").filter(|one| words(one, "Types").iter().any(|kind| kind == "deb"))
    {
        for place in words(paragraph, "URIs").iter().filter_map(|address| place(address)) {
            for suite in words(paragraph, "Suites") {
                let of = |component: String| (place.clone(), format!("{suite}/{component}"));
                all.extend(words(paragraph, "Components").into_iter().map(of));
            }
        }
    }
    all
}

fn of_variable(environment: &Environment, kind: RegistryKind, name: &'static str) -> Option<ClientRegistry> {
    let value = place(environment.filled(name)?.to_str()?)?;
    Some(ClientRegistry {
        kind,
        index: Sourced { value, origin: Origin::Environment(name) },
        only: BTreeSet::new(),
        suites: BTreeSet::new(),
    })
}

/// What a file says of one registry.
struct Said {
    kind: RegistryKind,
    index: Place,
    only: BTreeSet<NamePattern>,
}

fn read(files: impl Iterator<Item = PathBuf>, says: fn(&str) -> Vec<Said>) -> Vec<ClientRegistry> {
    let one = |path: PathBuf| {
        let said = text_of(&path).map(|text| says(&text)).unwrap_or_default();
        let with = move |Said { kind, index, only }| {
            let index = Sourced { value: index, origin: Origin::Client(path.clone()) };
            ClientRegistry { kind, index, only, suites: BTreeSet::new() }
        };
        said.into_iter().map(with).collect::<Vec<_>>()
    };
    files.flat_map(one).collect()
}

/// Reads an address without who is to ask there.
fn place(text: &str) -> Option<Place> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let rest = authority.rfind('@').map_or(rest, |at| &rest[at + 1..]);
    format!("{scheme}://{rest}").parse().ok()
}

/// Reads by what the registry of cargo is replaced.
fn cargo_source(text: &str) -> Vec<Said> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    let text = |table: &str, name: &str, key: &str, all: &toml::Table| {
        Some(all.get(table)?.get(name)?.get(key)?.as_str()?.to_owned())
    };
    let mut name = CARGO_DEFAULT.to_owned();
    for _ in 0..REPLACED_MAX {
        let Some(next) = text("source", &name, "replace-with", &table) else { break };
        name = next;
    }
    let index =
        text("source", &name, "registry", &table).or_else(|| text("registries", &name, "index", &table));
    // An index that is no sparse one is a git repository, which is no registry of ours.
    let index = index.filter(|index| index.starts_with("sparse+")).and_then(|index| place(&index));
    let said = |index| Said { kind: RegistryKind::Cargo, index, only: BTreeSet::new() };
    index.map(said).into_iter().collect()
}

/// Reads the registry of npm, and those of scopes.
fn npm_registries(text: &str) -> Vec<Said> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with([';', '#']));
    let one = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let only = match key.strip_suffix(":registry") {
            Some(scope) if scope.starts_with('@') => Some(format!("{scope}/*").parse().ok()?),
            _ => None,
        };
        let index =
            (key == "registry" || only.is_some()).then(|| place(value.trim().trim_matches('"'))).flatten()?;
        Some(Said { kind: RegistryKind::Npm, index, only: only.into_iter().collect() })
    };
    lines.filter_map(one).collect()
}

/// Reads the index of pip.
fn pip_indexes(text: &str) -> Vec<Said> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with([';', '#']));
    let one = |line: &str| {
        let (key, value) = line.split_once(['=', ':'])?;
        let index = (key.trim().replace('_', "-") == "index-url").then(|| place(value)).flatten()?;
        Some(Said { kind: RegistryKind::Pypi, index, only: BTreeSet::new() })
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shown(said: &[Said]) -> Vec<String> {
        said.iter()
            .map(|one| {
                format!(
                    "{} {} {:?}",
                    one.kind,
                    one.index,
                    one.only.iter().map(ToString::to_string).collect::<Vec<_>>()
                )
            })
            .collect()
    }

    #[test]
    fn cargo_follows_what_replaces_its_registry() {
        let text = "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nreplace-with = \"b\"\n[registries.b]\nindex = \"sparse+https://b.test/x/\"\n";
        assert_eq!(shown(&cargo_source(text)), ["cargo https://b.test/x []"]);
        for nothing in [
            "",
            "no toml",
            "[source.crates-io]\nreplace-with = \"crates-io\"\n",
            "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nregistry = \"https://a.test/git\"\n",
            "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\ndirectory = \"vendor\"\n",
        ] {
            assert!(cargo_source(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn npm_and_pip_are_read_line_by_line_and_no_password_is_kept() {
        let text = "; x\nregistry=https://user:secret@a.test/npm/\n@corp:registry = \"https://b.test\"\n//a.test/:_authToken=secret\n";
        assert_eq!(
            shown(&npm_registries(text)),
            ["npm https://a.test/npm []", "npm https://b.test [\"@corp/*\"]"]
        );
        assert_eq!(
            shown(&pip_indexes("[global]\nindex_url: https://a.test/simple/\n#index-url=https://b.test\n")),
            ["pypi https://a.test/simple []"]
        );
    }

    #[test]
    fn sources_of_apt_are_read_in_both_forms() {
        let shown = |said: Vec<(Place, String)>| {
            said.iter().map(|(place, suite)| format!("{place} {suite}")).collect::<Vec<_>>()
        };
        let lines = "# deb http://x.test/debian stable main\ndeb [arch=amd64] http://a.test/debian stable main contrib\ndeb-src http://a.test/debian stable main\ndeb http://a.test/flat ./\n";
        assert_eq!(
            shown(apt_lines(lines)),
            ["http://a.test/debian stable/main", "http://a.test/debian stable/contrib"]
        );
        let text = "Types: deb\n# x\nURIs: http://a.test/debian\nSuites: stable stable-updates\nComponents: main\n\nTypes: deb-src\nURIs: http://b.test\nSuites: s\nComponents: m\n";
        assert_eq!(
            shown(apt_paragraphs(text)),
            ["http://a.test/debian stable/main", "http://a.test/debian stable-updates/main"]
        );
    }

    #[test]
    fn the_first_that_says_something_goes_before_the_others() {
        let home = tempfile::tempdir().expect("a directory");
        fs::write(
            home.path().join(".npmrc"),
            "registry=https://home.test\n@corp:registry=https://corp.test\n",
        )
        .expect("writes");
        let at = home.path().to_str().expect("is text");
        let environment = Environment::from([("HOME", at), ("npm_config_registry", "https://variable.test")]);
        let npm: Vec<String> = found(&environment)
            .into_iter()
            .filter(|one| one.kind == RegistryKind::Npm)
            .map(|one| format!("{} {}", one.index.value, one.index.origin))
            .collect();
        assert_eq!(
            npm,
            [
                "https://variable.test $npm_config_registry".to_owned(),
                format!("https://corp.test {at}/.npmrc")
            ]
        );
        // What others could have written says nothing.
        std::os::unix::fs::PermissionsExt::set_mode(
            &mut fs::metadata(home.path().join(".npmrc")).expect("is there").permissions(),
            0o666,
        );
        let file = home.path().join(".npmrc");
        fs::set_permissions(&file, <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666))
            .expect("sets");
        assert!(found(&environment).iter().all(|one| one.index.value.to_string() != "https://corp.test"));
    }
}
