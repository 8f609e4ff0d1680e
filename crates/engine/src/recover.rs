//! Finds what dead owners left behind, removes it, and brings to its end what they were writing to the host.

use std::fs;
use std::path::Path;

use model::event::Event;
use model::{ActionId, Subject};

use crate::Engine;
use crate::error::EngineError;
use crate::lock::Lock;
use crate::store::StoredAction;

impl Engine {
    /// Removes the directories of runs whose owner is gone, and says of their actions that nobody saw the end. Returns
    /// what a person should hear.
    pub(crate) fn recover(&self) -> Result<Vec<String>, EngineError> {
        let settled = self.settle_intents()?;
        let mut removed = Vec::new();
        for directory in entries(&self.places().runs())? {
            let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Whatever else lies there is not ours.
            let Ok(action) = name.parse::<ActionId>() else { continue };
            let Some(_lock) = of_the_dead(&directory)? else { continue };
            self.remove_what_never_ran(&action)?;
            remove(&directory)?;
            removed.push(format!("directory {name}"));
        }
        let groups = sandbox::remove_leftover_groups();
        removed.extend(
            groups.map_err(|error| {
                EngineError::file("remove", "control groups")(std::io::Error::other(error))
            })?,
        );
        let unfinished = self.unfinished()?;
        for action in &unfinished {
            // What it had written stays for a person to look at; what the kernel worked with is of no use.
            remove(&self.places().layer(&action.task, &action.id).join("work"))?;
        }
        let unknown: Vec<ActionId> = unfinished.into_iter().map(|action| action.id).collect();
        if !removed.is_empty() || !unknown.is_empty() {
            let event = Event::Recovered { removed, unknown: unknown.clone() };
            self.record(&Subject::default(), &event, |writer, time| {
                unknown.iter().try_for_each(|action| writer.set_unknown(action, time))
            })?;
        }
        self.end_cut_off_trials()?;
        self.reap_leases()?;
        Ok(settled)
    }

    /// Removes what was made for a run that died before its action was on the record: nothing ran in it.
    fn remove_what_never_ran(&self, action: &ActionId) -> Result<(), EngineError> {
        if self.store().read(|reader| reader.action(action))?.is_some() {
            return Ok(());
        }
        for task in entries(&self.places().tasks())? {
            ["layers", "artifacts"]
                .iter()
                .try_for_each(|kind| remove(&task.join(kind).join(action.as_str())))?;
        }
        Ok(())
    }

    /// Returns the actions that did not come to an end and whose run is not going on.
    ///
    /// A run that lives keeps its directory until its end is recorded. One that ends while we look had its directory at
    /// the first reading, or is not open any longer at the second.
    fn unfinished(&self) -> Result<Vec<StoredAction>, EngineError> {
        let read = || self.store().read(|reader| reader.unfinished_actions());
        let runs = self.places().runs();
        let mut open = read()?;
        open.retain(|action| !runs.join(action.id.as_str()).exists());
        if open.is_empty() {
            return Ok(open);
        }
        let still = read()?;
        open.retain(|action| still.iter().any(|other| other.id == action.id));
        Ok(open)
    }
}

/// Takes the lock of a run whose owner is gone. A directory that nobody has locked is older than its owner's crash, or so
/// new that its owner looks again ([`crate::run::Run::begin`]).
fn of_the_dead(directory: &Path) -> Result<Option<Lock>, EngineError> {
    match Lock::try_take_directory(directory) {
        // Somebody removed it, and another one has the name now.
        Ok(Some(lock)) if !lock.is_at(directory) => Ok(None),
        // It ended while we looked.
        Err(EngineError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        taken => taken,
    }
}

fn remove(directory: &Path) -> Result<(), EngineError> {
    sandbox::remove_tree(directory).map_err(EngineError::file("remove", directory))
}

pub(crate) fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>, EngineError> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(EngineError::file("read", directory)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::run::take_place;

    /// Does what others do when they start: removes what seems to be of the dead.
    fn recover(runs: &Path) {
        for directory in entries(runs).unwrap_or_default() {
            if let Ok(Some(_lock)) = of_the_dead(&directory) {
                let _ = remove(&directory);
            }
        }
    }

    #[test]
    fn a_place_that_was_taken_stays_whoever_recovers_meanwhile() {
        let top = tempfile::tempdir().expect("a directory");
        let directory = top.path().join("run").join(ActionId::from_random([7; 10]).as_str());
        let over = AtomicBool::new(false);
        let recovering = || {
            while !over.load(Ordering::Relaxed) {
                recover(&top.path().join("run"));
                thread::yield_now();
            }
        };
        let lost = thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(recovering)));
            let lost = (0..500).find(|_| {
                let lock = take_place(&directory).expect("a place");
                let stays = (0..5).all(|_| {
                    thread::yield_now();
                    lock.is_at(&directory)
                });
                let _ = remove(&directory);
                !stays
            });
            over.store(true, Ordering::Relaxed);
            lost
        });
        assert_eq!(lost, None, "a place was taken from its owner");
    }
}
