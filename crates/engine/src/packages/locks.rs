//! Lockfiles: which versions a project resolved to, and what their files are.
//!
//! Only what names a release of a registry counts: a path, a git repository or an address of its own comes from no registry.

use std::collections::{BTreeMap, BTreeSet};

use model::egress::{Checksum, Locked, RegistryKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A form of lockfiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFile {
    /// Of cargo.
    Cargo,
    /// Of npm, versions 1 to 3.
    Npm,
    /// The same, as it is published.
    NpmShrinkwrap,
    /// Of uv.
    Uv,
    /// Of poetry.
    Poetry,
    /// Of pdm.
    Pdm,
    /// Of pipenv.
    Pipenv,
    /// PEP 751.
    Pylock,
    /// Requirements of pip with hashes.
    Requirements,
    /// More of them.
    RequirementsForDevelopment,
}

impl LockFile {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Cargo,
        Self::Npm,
        Self::NpmShrinkwrap,
        Self::Uv,
        Self::Poetry,
        Self::Pdm,
        Self::Pipenv,
        Self::Pylock,
        Self::Requirements,
        Self::RequirementsForDevelopment,
    ];

    /// Returns the name of such a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cargo => "Cargo.lock",
            Self::Npm => "package-lock.json",
            Self::NpmShrinkwrap => "npm-shrinkwrap.json",
            Self::Uv => "uv.lock",
            Self::Poetry => "poetry.lock",
            Self::Pdm => "pdm.lock",
            Self::Pipenv => "Pipfile.lock",
            Self::Pylock => "pylock.toml",
            Self::Requirements => "requirements.txt",
            Self::RequirementsForDevelopment => "requirements-dev.txt",
        }
    }
}

/// Reads what a lockfile says.
///
/// # Errors
/// With why it is none.
pub fn read(file: LockFile, text: &str) -> Result<Vec<Locked>, String> {
    match file {
        LockFile::Cargo => cargo(text),
        LockFile::Npm | LockFile::NpmShrinkwrap => npm(text),
        LockFile::Uv | LockFile::Poetry | LockFile::Pdm | LockFile::Pylock => python(text),
        LockFile::Pipenv => pipenv(text),
        LockFile::Requirements | LockFile::RequirementsForDevelopment => Ok(requirements(text)),
    }
}

fn toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

#[derive(Deserialize)]
struct CargoLock {
    #[serde(default)]
    package: Vec<Crate>,
    /// Where old ones have their checksums.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Crate {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
}

fn cargo(text: &str) -> Result<Vec<Locked>, String> {
    let lock: CargoLock = toml(text)?;
    let of_registry = |of: &&Crate| {
        of.source.as_ref().is_some_and(|from| from.starts_with("registry+") || from.starts_with("sparse+"))
    };
    let one = |of: &Crate| {
        let old = || {
            let key =
                format!("checksum {} {} ({})", of.name, of.version, of.source.as_deref().unwrap_or_default());
            lock.metadata.get(&key).cloned()
        };
        let checksum = of.checksum.clone().or_else(old).map(|hex| format!("sha256:{hex}"));
        locked(RegistryKind::Cargo, &of.name, &of.version, checksums(checksum)?)
    };
    lock.package.iter().filter(of_registry).map(one).collect()
}

#[derive(Deserialize)]
struct NpmLock {
    packages: Option<BTreeMap<String, NpmPackage>>,
    #[serde(default)]
    dependencies: BTreeMap<String, NpmDependency>,
}

#[derive(Deserialize)]
struct NpmPackage {
    name: Option<String>,
    version: Option<String>,
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    link: bool,
}

/// As version 1 has it.
#[derive(Deserialize)]
struct NpmDependency {
    version: String,
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    dependencies: BTreeMap<String, NpmDependency>,
}

fn npm(text: &str) -> Result<Vec<Locked>, String> {
    let lock: NpmLock = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(packages) = lock.packages else {
        let mut all = Vec::new();
        npm_dependencies(&lock.dependencies, &mut all)?;
        return Ok(all);
    };
    let one = |(at, of): (&String, &NpmPackage)| {
        let name = of.name.as_deref().or_else(|| at.rsplit_once("node_modules/").map(|(_, name)| name));
        let (name, version) = name.zip(of.version.as_deref())?;
        let counts = at.contains("node_modules/") && !of.link && is_of_registry(of.resolved.as_deref());
        counts.then(|| locked(RegistryKind::Npm, name, version, integrity(of.integrity.as_deref())?))
    };
    packages.iter().filter_map(one).collect()
}

fn npm_dependencies(named: &BTreeMap<String, NpmDependency>, all: &mut Vec<Locked>) -> Result<(), String> {
    for (name, of) in named {
        // Another name for a package is written as `npm:NAME@VERSION`.
        let (name, version) = match of.version.strip_prefix("npm:").and_then(|other| other.rsplit_once('@')) {
            Some((name, version)) => (name, version),
            None => (name.as_str(), of.version.as_str()),
        };
        let plain = version.starts_with(|first: char| first.is_ascii_digit());
        if plain && is_of_registry(of.resolved.as_deref()) {
            all.push(locked(RegistryKind::Npm, name, version, integrity(of.integrity.as_deref())?)?);
        }
        npm_dependencies(&of.dependencies, all)?;
    }
    Ok(())
}

/// Tells whether what npm wrote as the source of a package can be a registry; it may have left that out.
fn is_of_registry(resolved: Option<&str>) -> bool {
    resolved.is_none_or(|from| from.starts_with("https://") || from.starts_with("http://"))
}

fn integrity(text: Option<&str>) -> Result<BTreeSet<Checksum>, String> {
    let Some(text) = text else { return Ok(BTreeSet::new()) };
    let all = Checksum::strongest_of_integrity(text);
    if all.is_empty() { Err(format!("`{}` is no integrity", model::text::escape(text))) } else { Ok(all) }
}

#[derive(Deserialize)]
struct PythonLock {
    #[serde(default, alias = "packages")]
    package: Vec<PythonPackage>,
    /// Where old ones of poetry have their files.
    #[serde(default)]
    metadata: PythonMetadata,
}

#[derive(Deserialize, Default)]
struct PythonMetadata {
    #[serde(default)]
    files: BTreeMap<String, Vec<PythonFile>>,
}

#[derive(Deserialize)]
struct PythonPackage {
    name: String,
    version: Option<String>,
    #[serde(default)]
    source: BTreeMap<String, toml::Value>,
    #[serde(default)]
    files: Vec<PythonFile>,
    #[serde(default)]
    wheels: Vec<PythonFile>,
    sdist: Option<PythonFile>,
    vcs: Option<toml::Value>,
    directory: Option<toml::Value>,
    archive: Option<toml::Value>,
}

#[derive(Deserialize, Clone)]
struct PythonFile {
    hash: Option<String>,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

fn python(text: &str) -> Result<Vec<Locked>, String> {
    let lock: PythonLock = toml(text)?;
    let one = |of: &PythonPackage| {
        let version = of.version.as_deref()?;
        let kind = of.source.get("type").and_then(toml::Value::as_str);
        // uv names a registry, poetry has nothing there or its kind of source, PEP 751 names what is none.
        let elsewhere = ["git", "directory", "path", "editable", "virtual", "url"]
            .iter()
            .any(|key| (*key != "url" || kind.is_none()) && of.source.contains_key(*key));
        let elsewhere = elsewhere
            || kind.is_some_and(|kind| kind != "legacy")
            || of.vcs.is_some()
            || of.directory.is_some()
            || of.archive.is_some();
        let old = lock.metadata.files.get(&of.name).into_iter().flatten();
        let files = of.files.iter().chain(&of.wheels).chain(&of.sdist).chain(old);
        let hashes = files.flat_map(|file| {
            let several = file.hashes.iter().map(|(algorithm, hex)| format!("{algorithm}:{hex}"));
            file.hash.clone().into_iter().chain(several)
        });
        (!elsewhere).then(|| locked(RegistryKind::Pypi, &of.name, version, checksums(hashes)?))
    };
    lock.package.iter().filter_map(one).collect()
}

#[derive(Deserialize)]
struct PipenvLock {
    #[serde(flatten)]
    groups: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct PipenvPackage {
    version: Option<String>,
    #[serde(default)]
    hashes: Vec<String>,
}

fn pipenv(text: &str) -> Result<Vec<Locked>, String> {
    let lock: PipenvLock = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for (_, group) in lock.groups.into_iter().filter(|(name, _)| name != "_meta") {
        let group: BTreeMap<String, PipenvPackage> =
            serde_json::from_value(group).map_err(|error| error.to_string())?;
        for (name, of) in group {
            let Some(version) = of.version.as_deref().and_then(|version| version.strip_prefix("==")) else {
                continue;
            };
            all.push(locked(RegistryKind::Pypi, &name, version, checksums(of.hashes)?)?);
        }
    }
    Ok(all)
}

/// Reads requirements that name one version and the hashes of its files. Others lock nothing.
fn requirements(text: &str) -> Vec<Locked> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    joined.lines().filter_map(requirement).collect()
}

fn requirement(line: &str) -> Option<Locked> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    let hashes: BTreeSet<Checksum> =
        line.split_ascii_whitespace().filter_map(|word| word.strip_prefix("--hash=")?.parse().ok()).collect();
    let (name, rest) = line.split_once("==")?;
    let name = name.split('[').next()?.trim();
    let version = rest.split([' ', ';', ',']).find(|part| !part.is_empty())?.trim();
    let whole = !hashes.is_empty() && !line.starts_with('#');
    whole.then(|| locked(RegistryKind::Pypi, name, version, hashes).ok()).flatten()
}

fn checksums(all: impl IntoIterator<Item = String>) -> Result<BTreeSet<Checksum>, String> {
    all.into_iter()
        .map(|text| text.parse().map_err(|error: model::egress::ChecksumError| error.to_string()))
        .collect()
}

fn locked(
    kind: RegistryKind,
    name: &str,
    version: &str,
    checksums: BTreeSet<Checksum>,
) -> Result<Locked, String> {
    let own =
        kind.name(name).ok_or_else(|| format!("`{}` is no name of a package", model::text::escape(name)))?;
    Ok(Locked { kind, name: own, version: version.to_owned(), checksums })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(file: LockFile, text: &str) -> Vec<String> {
        let one = |locked: Locked| {
            let sums: Vec<String> =
                locked.checksums.iter().map(|sum| sum.to_string()[..10].to_owned()).collect();
            format!("{} {} {}", locked.name, locked.version, sums.join(" "))
        };
        read(file, text).expect("is one").into_iter().map(one).collect()
    }

    fn hex() -> String {
        "ab".repeat(32)
    }

    #[test]
    fn a_lockfile_of_cargo_names_what_comes_from_registries() {
        let text = format!(
            "version = 4\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\
             [[package]]\nname = \"serde_json\"\nversion = \"1.0.0\"\nsource = \"registry+https://x.test/index\"\nchecksum = \"{0}\"\n\
             [[package]]\nname = \"git\"\nversion = \"1.0.0\"\nsource = \"git+https://x.test/git#1\"\n\
             [[package]]\nname = \"old\"\nversion = \"1.0.0\"\nsource = \"registry+r\"\n\
             [metadata]\n\"checksum old 1.0.0 (registry+r)\" = \"{0}\"\n",
            hex()
        );
        assert_eq!(shown(LockFile::Cargo, &text), ["serde-json 1.0.0 sha256:aba", "old 1.0.0 sha256:aba"]);
        for wrong in [
            "nonsense",
            "[[package]]\nname = \"a\"\n",
            "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = \"registry+r\"\nchecksum = \"x\"\n",
        ] {
            assert!(read(LockFile::Cargo, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lockfiles_of_npm_of_every_version_are_read() {
        let sum =
            "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==";
        let text = format!(
            r#"{{"lockfileVersion":3,"packages":{{"":{{"name":"own","version":"1.0.0"}},
            "node_modules/@a/b":{{"version":"1.0.0","resolved":"https://r.test/x.tgz","integrity":"{sum}"}},
            "node_modules/alias":{{"name":"c","version":"2.0.0","integrity":"{sum}"}},
            "node_modules/x/node_modules/d":{{"version":"3.0.0","integrity":"{sum}"}},
            "node_modules/own":{{"resolved":"pkg","link":true}},
            "node_modules/git":{{"version":"1.0.0","resolved":"git+ssh://x"}}}}}}"#
        );
        assert_eq!(
            shown(LockFile::Npm, &text),
            ["@a/b 1.0.0 sha512:cf8", "c 2.0.0 sha512:cf8", "d 3.0.0 sha512:cf8"]
        );
        let old = format!(
            r#"{{"lockfileVersion":1,"dependencies":{{"a":{{"version":"1.0.0","integrity":"{sum}","dependencies":{{"b":{{"version":"2.0.0"}}}}}},
            "c":{{"version":"npm:d@1.0.0","integrity":"{sum}"}},"e":{{"version":"git+https://x#1"}}}}}}"#
        );
        assert_eq!(shown(LockFile::Npm, &old), ["a 1.0.0 sha512:cf8", "b 2.0.0 ", "d 1.0.0 sha512:cf8"]);
        assert!(
            read(LockFile::Npm, "{").is_err()
                && read(LockFile::Npm, r#"{"packages":{"node_modules/a":{"version":"1","integrity":"x"}}}"#)
                    .is_err()
        );
    }

    #[test]
    fn lockfiles_of_python_are_read_in_every_form() {
        let hash = format!("sha256:{}", hex());
        let uv = format!(
            "[[package]]\nname = \"Six\"\nversion = \"1.0\"\nsource = {{ registry = \"https://r.test/simple\" }}\n\
             sdist = {{ url = \"u\", hash = \"{hash}\" }}\nwheels = [{{ url = \"u\", hash = \"{hash}\" }}]\n\
             [[package]]\nname = \"own\"\nversion = \"1.0\"\nsource = {{ virtual = \".\" }}\n"
        );
        assert_eq!(shown(LockFile::Uv, &uv), ["six 1.0 sha256:aba"]);
        let poetry = format!(
            "[[package]]\nname = \"six\"\nversion = \"1.0\"\nfiles = [{{ file = \"f\", hash = \"{hash}\" }}]\n\
             [[package]]\nname = \"g\"\nversion = \"1.0\"\nfiles = []\n[package.source]\ntype = \"git\"\nurl = \"u\"\n"
        );
        assert_eq!(shown(LockFile::Poetry, &poetry), ["six 1.0 sha256:aba"]);
        let pylock = format!(
            "[[packages]]\nname = \"six\"\nversion = \"1.0\"\nwheels = [{{ url = \"u\", hashes = {{ sha256 = \"{}\" }} }}]\n",
            hex()
        );
        assert_eq!(shown(LockFile::Pylock, &pylock), ["six 1.0 sha256:aba"]);
        let pipenv = format!(
            r#"{{"_meta":{{"hash":{{}}}},"default":{{"six":{{"version":"==1.0","hashes":["{hash}"]}},"g":{{"git":"u"}}}},"develop":{{}}}}"#
        );
        assert_eq!(shown(LockFile::Pipenv, &pipenv), ["six 1.0 sha256:aba"]);
        let requirements = format!(
            "# x\nsix==1.0 ; python_version > \"3\" \\\n    --hash={hash} \\\n    --hash={hash}\nzope.interface[test]==7.0 --hash={hash} # why\nplain==1.0\n"
        );
        assert_eq!(
            shown(LockFile::Requirements, &requirements),
            ["six 1.0 sha256:aba", "zope-interface 7.0 sha256:aba"]
        );
        assert_eq!(shown(LockFile::Requirements, "six>=1\n"), Vec::<String>::new());
    }
}
