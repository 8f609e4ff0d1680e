//! What the protocols have in common: requests ask what a registry says of itself, what it has of a package, or for a file.

use std::collections::BTreeMap;

use model::egress::{Place, Registry, RegistryKind};

use super::release::Release;
use super::{cargo, debian, npm, pypi};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    /// What the registry says of itself.
    Settings,
    /// What it has of many packages, which its client reads.
    Index,
    /// What it has of a package; the name is as compared.
    List(String),
    /// A file.
    File(FileAsked),
}

/// A file that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAsked {
    /// The name of the package, as compared.
    pub(crate) name: String,
    /// What the registry lists it under: its name, and of Debian the architecture.
    pub(crate) spelled: String,
    /// The version.
    pub(crate) version: String,
    /// The whole path that is asked for.
    pub(crate) path: String,
    /// The name of the file, where a release has several.
    pub(crate) file: Option<String>,
    /// Whether it is the metadata beside that file.
    pub(crate) beside: bool,
}

/// Reads what a path at a place of a registry asks for, as far as the registry itself need not be asked for that.
pub(crate) fn asks(registry: &Registry, at: &Place, path: &str) -> Option<Asks> {
    let below =
        |place: &Place| Some(place).filter(|place| place.is_beside(at)).and_then(|place| place.below(path));
    let lists = below(&registry.index);
    match registry.kind {
        RegistryKind::Debian => lists.and_then(|below| debian::asks(registry, below)),
        RegistryKind::Cargo => lists.and_then(cargo::lists),
        RegistryKind::Npm => {
            lists.and_then(npm::lists).or_else(|| registry.places().filter_map(below).find_map(npm::file))
        }
        RegistryKind::Pypi => {
            lists.and_then(pypi::lists).or_else(|| registry.places().filter_map(below).find_map(pypi::file))
        }
    }
}

/// Returns where a registry lists what it has of a package, below its index, and which form says most. Of Debian that is an
/// index of many packages for each suite.
pub(crate) fn lists(registry: &Registry, spelled: &str) -> (Vec<String>, Option<&'static str>) {
    match registry.kind {
        RegistryKind::Cargo => (vec![cargo::list(spelled)], None),
        RegistryKind::Npm => (vec![spelled.to_owned()], Some("application/json")),
        RegistryKind::Pypi => (vec![format!("{spelled}/")], Some(pypi::ACCEPT)),
        RegistryKind::Debian => (debian::lists(registry, spelled), None),
    }
}

/// Reads what a registry lists, by the names of packages.
pub(crate) fn listed(
    kind: RegistryKind,
    name: &str,
    form: &str,
    body: &[u8],
) -> Result<BTreeMap<String, Vec<Release>>, String> {
    let one = |read: Vec<Release>| BTreeMap::from([(name.to_owned(), read)]);
    match kind {
        RegistryKind::Cargo => cargo::releases(name, body).map(one),
        RegistryKind::Npm => npm::releases(name, body).map(one),
        RegistryKind::Pypi => pypi::releases(name, form, body).map(one),
        RegistryKind::Debian => debian::releases(body),
    }
}
