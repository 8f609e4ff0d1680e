//! Packages: what may come from a registry.
//!
//! Guarantees: of a registry only what its protocol needs is asked for, and only to read; nothing of a request reaches it but
//! which package and file is meant. A file comes only when its name, version and age may, the registry lists it, and its
//! content is what the registry and the lockfiles say: the last piece is held back until that is known, whoever asked for it.
//! What the registry says of a release is asked for by the gateway itself. Everything is decided by the settings and what was
//! used before; the same request gets the same answer.
//! Leaves to others: which registries an action reaches (`gate`), and reading lockfiles and the record (`engine`).

mod alike;
mod archive;
mod cargo;
mod debian;
mod file;
mod judge;
mod lists;
mod npm;
mod protocol;
mod pypi;
mod release;
mod request;
mod shelf;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::egress::{Checksum, Locked, Registry, RegistryKind};

use self::shelf::Shelf;
use crate::http::hook::Hook;

/// The registries of an action.
#[derive(Debug, Default)]
pub struct Packages(BTreeMap<String, Arc<Shelf>>);

/// What is known of packages before anything is asked for.
#[derive(Debug, Default)]
pub struct Known {
    /// What lockfiles say of releases: by kind, name and version.
    locked: BTreeMap<RegistryKind, BTreeMap<String, BTreeMap<String, BTreeSet<Checksum>>>>,
    /// Names that were used before.
    used: BTreeMap<RegistryKind, BTreeSet<String>>,
}

impl Known {
    /// Adds what lockfiles say. Where several name one release, a file may be what any of them says.
    pub fn lock(&mut self, all: impl IntoIterator<Item = Locked>) {
        for Locked { kind, name, version, checksums } in all {
            let versions = self.locked.entry(kind).or_default().entry(name).or_default();
            versions.entry(version).or_default().extend(checksums);
        }
    }

    /// Adds names that were used before.
    pub fn use_before(&mut self, kind: RegistryKind, names: impl IntoIterator<Item = String>) {
        self.used.entry(kind).or_default().extend(names);
    }

    /// Tells whether a lockfile of a kind holds at all.
    fn has_lock(&self, kind: RegistryKind) -> bool {
        self.locked.contains_key(&kind)
    }

    /// Returns what the files of a release may be, when a lockfile names it.
    fn locked(&self, kind: RegistryKind, name: &str, version: &str) -> Option<&BTreeSet<Checksum>> {
        self.locked.get(&kind)?.get(name)?.get(version)
    }

    /// Returns the names that are in use.
    fn names(&self, kind: RegistryKind) -> impl Iterator<Item = &str> {
        let locked = self.locked.get(&kind).into_iter().flat_map(BTreeMap::keys);
        locked.chain(self.used.get(&kind).into_iter().flatten()).map(String::as_str)
    }

    fn uses(&self, kind: RegistryKind, name: &str) -> bool {
        let in_lock = self.locked.get(&kind).is_some_and(|names| names.contains_key(name));
        in_lock || self.used.get(&kind).is_some_and(|names| names.contains(name))
    }
}

impl Packages {
    /// Puts the registries of an action together.
    pub fn new(registries: Vec<Registry>, known: Known) -> Self {
        let known = Arc::new(known);
        let shelf =
            |registry: Registry| (registry.name.clone(), Arc::new(Shelf::new(registry, known.clone())));
        Self(registries.into_iter().map(shelf).collect())
    }

    /// Returns what looks at the requests to a registry.
    pub fn hook(&self, registry: &str) -> Option<Arc<dyn Hook>> {
        self.0.get(registry).map(|shelf| shelf.clone() as Arc<dyn Hook>)
    }
}
