//! What the gateway of an action is told of packages: the registries that its rules name, what the lockfiles of the workspace
//! say, and which names were used here before.
//!
//! Guarantees: a lockfile counts as the task began from it, not as a command wrote it since; one that cannot be read ends the
//! start. A name was used before when one of its files came whole and was what it must be.
//! Leaves to others: what of it decides about which package (`egress`).

mod locks;

use std::collections::BTreeSet;
use std::path::{Component, Path};

use inspect::{Stack, Tree};
use model::egress::{Attempt, Locked, RegistryKind, ToGateway};
use model::{Grant, Timestamp, WorkspacePath};

pub use self::locks::{LockFile, read};
use crate::Engine;
use crate::error::EngineError;
use crate::run::Run;
use crate::store::{StoreError, StoredPackage, Writer};

/// The largest lockfile that is read.
const LOCK_MAX: u64 = 32 << 20;
/// How many bytes of text one message to a gateway has, of the 64 KiB that it may have as JSON.
const MESSAGE_BYTES: usize = 32 << 10;

impl Engine {
    /// Returns what the gateway of a run is told of packages.
    pub(crate) fn about_packages(&self, run: &Run, grant: &Grant) -> Result<Vec<ToGateway>, EngineError> {
        let registries = self.reached(grant);
        let kinds: BTreeSet<RegistryKind> = registries.iter().map(|registry| registry.kind).collect();
        let mut told: Vec<ToGateway> =
            registries.into_iter().map(|registry| ToGateway::Registry(Box::new(registry))).collect();
        let locked = if kinds.is_empty() { Vec::new() } else { self.locked(run)? };
        let locked = locked.into_iter().filter(|locked| kinds.contains(&locked.kind));
        told.extend(in_messages(locked, weight).map(ToGateway::Locked));
        for kind in kinds {
            let names = self.store().read(|reader| reader.package_names(kind))?;
            told.extend(
                in_messages(names.into_iter(), String::len).map(|names| ToGateway::Used { kind, names }),
            );
        }
        Ok(told)
    }

    /// Reads the lockfiles of the directory in which a run starts and of those above it, as its task began from them.
    fn locked(&self, run: &Run) -> Result<Vec<Locked>, EngineError> {
        let base = Tree::open(&run.start.base)?;
        let mut finder = Stack::new(Vec::new(), vec![base]).before();
        let directory = run.pending.as_ref().and_then(|pending| pending.action.request().directory.clone());
        let mut locked = Vec::new();
        for directory in above(directory.as_ref()) {
            for file in LockFile::ALL {
                let path = if directory.is_empty() {
                    file.name().to_owned()
                } else {
                    format!("{directory}/{}", file.name())
                };
                let Ok(at) = WorkspacePath::parse(&path) else { continue };
                let Some(found) = finder.find(&at)? else { continue };
                let text = found.read(LOCK_MAX)?;
                let said = read(file, &String::from_utf8_lossy(&text)).map_err(|why| {
                    let path = model::text::escape(&path).into_owned();
                    EngineError::Nothing(format!(
                        "the lockfile `{path}` cannot be read, so nothing holds what it names: {why}"
                    ))
                })?;
                locked.extend(said);
            }
        }
        Ok(locked)
    }
}

/// Keeps which packages came, beside the events that tell of them.
pub(crate) fn keep(
    writer: &Writer<'_>,
    run: &Run,
    attempts: &[Attempt],
    at: Timestamp,
) -> Result<(), StoreError> {
    let came = attempts.iter().filter_map(|attempt| attempt.package.as_deref());
    came.filter_map(|package| {
        let (version, digest) = (package.version.clone()?, package.digest.clone()?);
        let package = package.clone();
        Some(StoredPackage {
            kind: package.kind,
            name: package.name,
            version,
            registry: package.registry,
            digest,
            locked: package.locked,
            task: run.task.clone(),
            action: run.action.clone(),
            at,
        })
    })
    .try_for_each(|package| writer.keep_package(&package))
}

/// Returns a directory of the workspace and those above it, the top as an empty text.
fn above(directory: Option<&WorkspacePath>) -> Vec<String> {
    let mut all = vec![String::new()];
    let parts = directory
        .map(|directory| String::from_utf8_lossy(directory.as_bytes()).into_owned())
        .unwrap_or_default();
    for part in Path::new(&parts).components() {
        let Component::Normal(part) = part else { continue };
        let last = all.last().map(String::as_str).unwrap_or_default();
        let below = if last.is_empty() { String::new() } else { format!("{last}/") };
        all.push(format!("{below}{}", part.to_string_lossy()));
    }
    all
}

fn weight(locked: &Locked) -> usize {
    let checksums: usize = locked.checksums.iter().map(|checksum| checksum.hex().len() + 16).sum();
    locked.name.len() + locked.version.len() + checksums + 64
}

/// Puts as many of them together as one message can have.
fn in_messages<T>(
    all: impl Iterator<Item = T>,
    weight: impl Fn(&T) -> usize,
) -> impl Iterator<Item = Vec<T>> {
    let (mut messages, mut room) = (Vec::<Vec<T>>::new(), 0);
    for one in all {
        let needs = weight(&one) + 8;
        match messages.last_mut().filter(|_| needs <= room) {
            Some(message) => {
                message.push(one);
                room -= needs;
            }
            None => {
                messages.push(vec![one]);
                room = MESSAGE_BYTES.saturating_sub(needs);
            }
        }
    }
    messages.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_looked_at_from_the_top_down() {
        let path = WorkspacePath::parse("a/b").expect("a path");
        assert_eq!(above(Some(&path)), ["", "a", "a/b"]);
        assert_eq!(above(None), [""]);
    }

    #[test]
    fn a_message_has_no_more_than_there_is_room_for() {
        let names = (0..3000).map(|number| format!("{number:060}"));
        let messages: Vec<Vec<String>> = in_messages(names, String::len).collect();
        assert_eq!(messages.iter().map(Vec::len).sum::<usize>(), 3000);
        let longest = messages.iter().map(|names| {
            serde_json::to_vec(&ToGateway::Used { kind: RegistryKind::Npm, names: names.clone() })
        });
        assert!(longest.map(|json| json.expect("JSON").len()).all(|length| length < 40 << 10));
    }
}
