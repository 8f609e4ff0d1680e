//! What is kept as files: of which action or task each is, whether it may go, and how it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{ActionId, Event, KeptClass, RemovedOf, TaskId, Timestamp};

use super::{Collection, covers, cutoff};
use crate::Engine;
use crate::error::EngineError;
use crate::fail_point::reached;
use crate::lock::Lock;
use crate::recover::entries;
use crate::store::{ActionState, LegalHolds, RetainedTask};
use crate::tasks::about;

/// Something of a task that goes or stays as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    class: KeptClass,
    task: TaskId,
    /// The action that left it; nothing when it is of the task as a whole.
    action: Option<ActionId>,
    place: PathBuf,
}

/// What is said of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Somebody needs it.
    Needed,
    /// A legal hold covers it, and nobody else needs it.
    Held,
    /// It may go once it is old enough.
    Free { since: Timestamp, is_incident: bool },
}

impl Engine {
    /// Removes files whose retention is over, and of what is more than may be kept the oldest.
    pub(super) fn collect_files(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        let mut going = self.going(collection)?;
        let total = going.len() as u64;
        while let Some((task, units)) = going.pop_first() {
            if collection.dry_run {
                count(collection, &units);
            } else {
                self.remove_units(collection, &task, units)?;
            }
            (collection.progress)(total - going.len() as u64, total);
        }
        Ok(())
    }

    /// Returns what is to go, by the tasks that it is of.
    fn going(&self, collection: &mut Collection<'_>) -> Result<BTreeMap<TaskId, Vec<Unit>>, EngineError> {
        let mut going: BTreeMap<TaskId, Vec<Unit>> = BTreeMap::new();
        let mut younger: BTreeMap<KeptClass, Vec<(Timestamp, Unit)>> = BTreeMap::new();
        let mut total: BTreeMap<KeptClass, u64> = BTreeMap::new();
        let directories = entries(&self.places().tasks())?;
        for (number, directory) in directories.iter().enumerate() {
            (collection.progress)(number as u64, directories.len() as u64);
            let Some(task) = name_of::<TaskId>(directory) else { continue };
            let read =
                |reader: &crate::store::Reader<'_>| Ok((reader.legal_holds()?, reader.retained(&task)?));
            let (holds, Some(retained)) = self.store().read(read)? else { continue };
            for unit in units(&task, directory)? {
                let bounded = collection.retention.most(unit.class).is_some();
                if bounded {
                    *total.entry(unit.class).or_default() += disk_use(&unit.place);
                }
                match verdict(&holds, &retained, &unit) {
                    Verdict::Needed => {}
                    Verdict::Held => collection.garbage.held += 1,
                    Verdict::Free { since, is_incident } => {
                        let age = collection.retention.age(unit.class);
                        let least =
                            if is_incident { collection.retention.incidents() } else { Duration::ZERO };
                        if since < cutoff(age.max(least)) {
                            going.entry(task.clone()).or_default().push(unit);
                        } else if since < cutoff(age) {
                            collection.garbage.incidents += 1;
                        } else if bounded && since < cutoff(least) {
                            younger.entry(unit.class).or_default().push((since, unit));
                        }
                    }
                }
            }
        }
        for (class, units) in younger {
            let most = collection.retention.most(class).unwrap_or(u64::MAX);
            let goes = going.values().flatten().filter(|unit| unit.class == class);
            let goes: u64 = goes.map(|unit| disk_use(&unit.place)).sum();
            let left = total.get(&class).copied().unwrap_or_default().saturating_sub(goes);
            for unit in beyond(most, left, units) {
                going.entry(unit.task.clone()).or_default().push(unit);
            }
        }
        Ok(going)
    }

    /// Removes units of one task, unless an action of it runs; those that somebody came to need meanwhile stay.
    fn remove_units(
        &self,
        collection: &mut Collection<'_>,
        task: &TaskId,
        mut units: Vec<Unit>,
    ) -> Result<(), EngineError> {
        let layers = |units: &[Unit]| -> Vec<ActionId> {
            let of = units.iter().filter(|unit| unit.class == KeptClass::Layers);
            of.filter_map(|unit| unit.action.clone()).collect()
        };
        // The files of a layer come free only when no checkpoint shares them.
        let going = layers(&units);
        for task in self.tasks_with(task, &going)? {
            self.remove_checkpoints(&task, &going)?;
        }
        let Some(_idle) = Lock::try_take(&self.places().task(task).join("lock"))? else { return Ok(()) };
        let sizes: Vec<u64> = units.iter().map(|unit| disk_use(&unit.place)).collect();
        let event = Event::Removed { layers: going, bases: Vec::new(), classes: classes(&units, &sizes) };
        reached("gc: it is known what goes");
        let recorded = self.record(&about(task), &event, |writer, _| {
            let retained = writer.retained(task)?;
            let holds = writer.legal_holds()?;
            let stays = |unit: &Unit| {
                retained
                    .as_ref()
                    .is_none_or(|retained| !matches!(verdict(&holds, retained, unit), Verdict::Free { .. }))
            };
            if let Some(unit) = units.iter().find(|unit| stays(unit)) {
                return Err(crate::store::StoreError::Needed { place: unit.place.clone() });
            }
            layers(&units).iter().try_for_each(|action| writer.set_layer_removed(action))
        });
        match recorded {
            Err(error) if is_needed(&error) => return Ok(()),
            other => other?,
        }
        reached("gc: the record says what goes");
        for unit in units.drain(..).zip(sizes) {
            let (unit, bytes) = unit;
            remove(&unit.place)?;
            reached("gc: a part of it is gone");
            note(collection, &unit, bytes);
        }
        Ok(())
    }

    /// Returns the tasks that have one of these layers of a task; none when there are none.
    fn tasks_with(&self, task: &TaskId, layers: &[ActionId]) -> Result<BTreeSet<TaskId>, EngineError> {
        let retained = self.store().read(|reader| reader.retained(task))?;
        let actions = retained.map(|retained| retained.actions).unwrap_or_default();
        let of = layers.iter().filter_map(|layer| actions.get(layer));
        let mut tasks: BTreeSet<TaskId> = of.flat_map(|action| action.shared_with.clone()).collect();
        if !layers.is_empty() {
            tasks.insert(task.clone());
        }
        Ok(tasks)
    }
}

/// Tells whether somebody came to need something while we looked: it is for the next collection.
pub(crate) fn is_needed(error: &EngineError) -> bool {
    let EngineError::Audit(audit::AuditError::Storage(source)) = error else { return false };
    matches!(source.downcast_ref(), Some(crate::store::StoreError::Needed { .. }))
}

fn count(collection: &mut Collection<'_>, units: &[Unit]) {
    for unit in units {
        let bytes = disk_use(&unit.place);
        note(collection, unit, bytes);
    }
}

fn note(collection: &mut Collection<'_>, unit: &Unit, bytes: u64) {
    collection.garbage.add(unit.class, 1, bytes);
    if unit.class == KeptClass::Layers {
        collection.garbage.actions.extend(unit.action.clone());
    }
}

/// Returns the oldest of what is too much.
fn beyond(most: u64, mut left: u64, mut units: Vec<(Timestamp, Unit)>) -> Vec<Unit> {
    units.sort_by_key(|(since, _)| *since);
    let mut goes = Vec::new();
    for (_, unit) in units {
        if left <= most {
            break;
        }
        left = left.saturating_sub(disk_use(&unit.place));
        goes.push(unit);
    }
    goes
}

/// Says of a unit whether it may go.
fn verdict(holds: &LegalHolds, retained: &RetainedTask, unit: &Unit) -> Verdict {
    let Some(action) = &unit.action else {
        if retained.goes_on() {
            return Verdict::Needed;
        }
        if covers(holds, &retained.task, None) {
            return Verdict::Held;
        }
        let is_incident = unit.class != KeptClass::Caches && retained.has_incident();
        return Verdict::Free { since: retained.touched, is_incident };
    };
    let Some(spent) = retained.spent(action) else { return Verdict::Needed };
    // What was tried has no retention: it goes with its request.
    if unit.class == KeptClass::Layers && spent.state == ActionState::Tried {
        return Verdict::Needed;
    }
    let of_others =
        unit.class == KeptClass::Layers && spent.shared_with.iter().any(|task| holds.cover(task, &[], None));
    if of_others || covers(holds, &retained.task, Some(spent.ordinal)) {
        return Verdict::Held;
    }
    let since = spent.finished.unwrap_or(retained.touched);
    Verdict::Free { since, is_incident: spent.is_incident }
}

/// Returns what is kept of a task as files.
fn units(task: &TaskId, directory: &Path) -> Result<Vec<Unit>, EngineError> {
    let unit = |class, action, place| Unit { class, task: task.clone(), action, place };
    let mut found = Vec::new();
    for (class, kind) in [(KeptClass::Layers, "layers"), (KeptClass::Artifacts, "artifacts")] {
        for place in entries(&directory.join(kind))? {
            if let Some(action) = name_of::<ActionId>(&place) {
                found.push(unit(class, Some(action), place));
            }
        }
    }
    for place in entries(&directory.join("outputs"))? {
        // The stream comes after the action.
        let action = place.file_stem().and_then(|name| name.to_str()?.parse::<ActionId>().ok());
        if let Some(action) = action {
            found.push(unit(KeptClass::Outputs, Some(action), place));
        }
    }
    for (class, kind) in [(KeptClass::Overwritten, crate::layers::APPLIED), (KeptClass::Caches, "cache")] {
        let place = directory.join(kind);
        if !entries(&place)?.is_empty() {
            found.push(unit(class, None, place));
        }
    }
    Ok(found)
}

fn name_of<T: std::str::FromStr>(path: &Path) -> Option<T> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Returns what the record says of units that go.
fn classes(units: &[Unit], sizes: &[u64]) -> Vec<RemovedOf> {
    let mut classes: BTreeMap<KeptClass, (BTreeSet<String>, u64)> = BTreeMap::new();
    for (unit, bytes) in units.iter().zip(sizes) {
        let name = unit.action.as_ref().map_or_else(|| unit.task.to_string(), ToString::to_string);
        let of = classes.entry(unit.class).or_default();
        of.0.insert(name);
        of.1 += bytes;
    }
    let of = |(class, (names, bytes)): (_, (BTreeSet<String>, _))| RemovedOf {
        class,
        names: names.into_iter().collect(),
        bytes,
    };
    classes.into_iter().map(of).collect()
}

fn remove(place: &Path) -> Result<(), EngineError> {
    let is_directory = fs::symlink_metadata(place).is_ok_and(|found| found.is_dir());
    let removed = match if is_directory { sandbox::remove_tree(place) } else { fs::remove_file(place) } {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    removed.map_err(EngineError::file("remove", place))
}

/// Adds up the blocks of a file, or of all that is below a directory, each inode once; what cannot be read does not count.
pub(super) fn disk_use(place: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut seen) = (0, BTreeSet::new());
    let mut left = vec![place.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.nlink() == 1 || seen.insert((metadata.dev(), metadata.ino())) {
            bytes += metadata.blocks() * 512;
        }
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
