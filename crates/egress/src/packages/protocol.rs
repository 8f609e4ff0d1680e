//! What the protocols have in common: requests ask what a registry says of itself, what it has of a package, or for a file.

use model::egress::{Place, Registry, RegistryKind};

use super::release::Release;
use super::{cargo, npm, pypi};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    /// What the registry says of itself.
    Settings,
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
    /// The name as the registry lists it.
    pub(crate) spelled: String,
    /// The version.
    pub(crate) version: String,
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
        RegistryKind::Cargo => lists.and_then(cargo::lists),
        RegistryKind::Npm => {
            lists.and_then(npm::lists).or_else(|| registry.places().filter_map(below).find_map(npm::file))
        }
        RegistryKind::Pypi => {
            lists.and_then(pypi::lists).or_else(|| registry.places().filter_map(below).find_map(pypi::file))
        }
    }
}

/// Returns where a registry lists what it has of a package, as it spells its name, below its index, and which form says most.
pub(crate) fn list(kind: RegistryKind, spelled: &str) -> (String, Option<&'static str>) {
    match kind {
        RegistryKind::Cargo => (cargo::list(spelled), None),
        RegistryKind::Npm => (spelled.to_owned(), Some("application/json")),
        RegistryKind::Pypi => (format!("{spelled}/"), Some(pypi::ACCEPT)),
    }
}

/// Reads what a registry lists of a package.
pub(crate) fn releases(
    kind: RegistryKind,
    name: &str,
    form: &str,
    body: &[u8],
) -> Result<Vec<Release>, String> {
    match kind {
        RegistryKind::Cargo => cargo::releases(name, body),
        RegistryKind::Npm => npm::releases(name, body),
        RegistryKind::Pypi => pypi::releases(name, form, body),
    }
}
