//! The environment of the command: nothing is copied from the caller but what a table lists.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::OsText;
use model::egress::Registry;

use super::assembly::Assembly;
use super::credentials::looks_secret;
use super::data::{VARIABLES, rows};
use super::error::ViewError;
use super::etc::user_name;
use super::host::Host;
use super::tools::{self, Found};

/// The places of the XDG base directory specification, with their defaults below the home.
pub(crate) const XDG: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Returns the names of the variables that a view looks at. The caller hands over those that it has, and no others.
pub fn wanted_variables() -> BTreeSet<&'static str> {
    let listed = rows::<3>(VARIABLES).map(|[name, ..]| name);
    let places = XDG.iter().map(|(name, _)| *name);
    listed.chain(tools::variables()).chain(places).chain(["PATH"]).collect()
}

/// What the environment is made from.
pub(crate) struct Sources<'a> {
    pub(crate) home: &'a Path,
    pub(crate) path: &'a [PathBuf],
    pub(crate) found: &'a Found,
    pub(crate) runtime_dir: &'a Path,
    pub(crate) shell: &'a str,
}

/// Returns the environment of the command.
pub(crate) fn environment(
    assembly: &mut Assembly<'_>,
    sources: &Sources<'_>,
) -> Result<BTreeMap<String, OsText>, ViewError> {
    let host = assembly.host;
    let mut inside: BTreeMap<String, OsString> = BTreeMap::new();
    let mut set = |name: &str, value: &OsStr| inside.insert(name.to_owned(), value.to_owned());
    set("PATH", &join_paths(sources.path));
    set("HOME", sources.home.as_os_str());
    let user = user_name(host);
    set("USER", OsStr::new(&user));
    set("LOGNAME", OsStr::new(&user));
    set("SHELL", OsStr::new(sources.shell));
    set("XDG_RUNTIME_DIR", sources.runtime_dir.as_os_str());
    for (name, below) in XDG {
        let chosen = sources.found.variables.get(name).cloned();
        set(name, &chosen.unwrap_or_else(|| sources.home.join(below).into_os_string()));
    }
    for (name, value) in &sources.found.variables {
        set(name, value);
    }
    for [name, kind, _] in rows::<3>(VARIABLES) {
        if let Some(value) = listed_value(assembly, sources.found, name, kind) {
            inside.insert(name.to_owned(), value);
        }
    }
    let texts = inside.into_iter().map(|(name, value)| Ok((name, OsText::try_from(value)?)));
    texts.collect()
}

fn listed_value(assembly: &mut Assembly<'_>, found: &Found, name: &str, kind: &str) -> Option<OsString> {
    let host = assembly.host;
    let (kind, value) = kind.split_once(' ').unwrap_or((kind, ""));
    let ours = |holds: bool, value: &str| (holds && !value.is_empty()).then(|| OsString::from(value));
    match kind {
        "always" => ours(true, value),
        "offline" => ours(host.offline, value),
        "gateway" => ours(host.gateway, value),
        "trust" => ours(host.looked_into, value),
        "index" => only_registry(host, value).map(|registry| registry.index.to_string().into()),
        "no-scripts" => {
            let (kind, value) = value.split_once(' ')?;
            let mut of_kind =
                host.registries.iter().filter(|registry| registry.kind.as_str() == kind).peekable();
            ours(of_kind.peek().is_some() && of_kind.all(|registry| registry.scripts.is_empty()), value)
        }
        "with" => {
            let (tool, value) = value.split_once(' ')?;
            ours(found.tools.contains(&tool), value)
        }
        "terminal" if !host.terminal => None,
        _ => {
            let theirs = host.environment.get(OsStr::new(name)).filter(|value| !value.is_empty()).cloned();
            if theirs.as_ref().is_some_and(|value| looks_secret(&value.to_string_lossy())) {
                assembly.hide(Path::new(name), "the variable's value looks like a secret");
                return ours(true, value);
            }
            theirs.or_else(|| ours(true, value))
        }
    }
}

/// Returns the registry of a kind, where there is one: which of several a client is to ask is its own to know.
fn only_registry<'h>(host: &'h Host, kind: &str) -> Option<&'h Registry> {
    let mut of_kind = host.registries.iter().filter(|registry| registry.kind.as_str() == kind);
    of_kind.next().filter(|_| of_kind.next().is_none())
}

fn join_paths(paths: &[PathBuf]) -> OsString {
    let mut joined = OsString::new();
    for (at, path) in paths.iter().enumerate() {
        if at > 0 {
            joined.push(":");
        }
        joined.push(path);
    }
    joined
}

#[cfg(test)]
mod tests {
    use model::egress::{NamePattern, RegistryKind};

    use super::*;

    #[test]
    fn every_listed_variable_has_a_kind_that_is_understood() {
        for [name, kind, _] in rows::<3>(VARIABLES) {
            let word = kind.split(' ').next();
            let known =
                ["text", "always", "terminal", "offline", "gateway", "trust", "index", "no-scripts", "with"];
            assert!(word.is_some_and(|word| known.contains(&word)), "{name} {kind}");
            assert!(!super::super::credentials::names_secret(name), "{name}");
        }
    }

    #[test]
    fn clients_are_told_of_a_registry_and_of_scripts_only_where_that_is_so() {
        let place = |text: &str| text.parse().expect("a place");
        let registry = |name: &str, kind| Registry::at(name, kind, place("https://r.test/x"));
        let named: NamePattern = "esbuild".parse().expect("a name");
        let with = Registry { scripts: [named].into(), ..registry("js", RegistryKind::Npm) };
        let says = |registries: Vec<Registry>, name: &str, kind: &str| {
            let root = tempfile::tempdir().expect("a directory");
            let host = Host { registries, ..Host::fixture(root.path()) };
            let mut assembly = Assembly::new(&host);
            listed_value(&mut assembly, &Found::default(), name, kind)
                .map(|value| value.to_string_lossy().into_owned())
        };
        let (index, scripts) = ("index npm", "no-scripts npm true");
        assert_eq!(
            says(vec![registry("js", RegistryKind::Npm)], "a", index).as_deref(),
            Some("https://r.test/x")
        );
        assert_eq!(says(vec![registry("js", RegistryKind::Npm)], "a", scripts).as_deref(), Some("true"));
        assert_eq!(says(vec![with], "a", scripts), None);
        assert_eq!(says(vec![registry("py", RegistryKind::Pypi)], "a", scripts), None);
        let two = || vec![registry("js", RegistryKind::Npm), registry("own", RegistryKind::Npm)];
        assert_eq!((says(two(), "a", index), says(two(), "a", scripts).as_deref()), (None, Some("true")));
    }

    #[test]
    fn clients_that_speak_to_a_proxy_find_that_of_the_gateway() {
        let proxy = format!("http://127.0.0.1:{}", launcher::plan::PROXY_PORT);
        let named = rows::<3>(VARIABLES).filter(|[name, ..]| name.to_ascii_lowercase().ends_with("_proxy"));
        let mut found = 0;
        for [name, kind, _] in named {
            let expected =
                if name.eq_ignore_ascii_case("no_proxy") { "localhost,127.0.0.1,::1" } else { &proxy };
            assert_eq!(kind, format!("gateway {expected}"), "{name}");
            found += 1;
        }
        assert_eq!(found, 7);
    }

    #[test]
    fn the_caller_is_asked_for_tool_variables_and_never_for_keys() {
        let wanted = wanted_variables();
        for name in ["PATH", "CARGO_HOME", "XDG_CACHE_HOME", "LANG", "JAVA_HOME"] {
            assert!(wanted.contains(name), "{name}");
        }
        for name in
            ["SSH_AUTH_SOCK", "DEEPSEEK_API_KEY", "AWS_PROFILE", "LD_PRELOAD", "HISTFILE", "GIT_ASKPASS"]
        {
            assert!(!wanted.contains(name), "{name}");
        }
    }
}
