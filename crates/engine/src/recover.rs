//! Finds what dead owners left behind, and removes it.

use std::fs;
use std::path::Path;

use model::event::Event;
use model::{ActionId, Subject};

use crate::Engine;
use crate::error::EngineError;
use crate::lock::Lock;

/// The file in a run's directory that its owner has locked.
pub(crate) const RUN_LOCK: &str = "lock";

impl Engine {
    /// Removes the directories of runs whose owner is gone, and says of their actions that nobody saw the end.
    pub(crate) fn recover(&self) -> Result<(), EngineError> {
        let mut removed = Vec::new();
        for directory in entries(&self.places().runs())? {
            // A run makes its lock before anything else; a directory without one is older than its owner's crash.
            let Some(_lock) = Lock::try_take(&directory.join(RUN_LOCK))? else { continue };
            sandbox::remove_tree(&directory).map_err(EngineError::file("remove", &directory))?;
            removed
                .push(format!("directory {}", directory.file_name().unwrap_or_default().to_string_lossy()));
        }
        let groups = sandbox::remove_leftover_groups();
        removed.extend(
            groups.map_err(|error| {
                EngineError::file("remove", "control groups")(std::io::Error::other(error))
            })?,
        );
        let unknown = self.unfinished()?;
        if removed.is_empty() && unknown.is_empty() {
            return Ok(());
        }
        let event = Event::Recovered { removed, unknown: unknown.clone() };
        self.record(&Subject::default(), &event, |writer, time| {
            unknown.iter().try_for_each(|action| writer.set_unknown(action, time))
        })
    }

    /// Returns the actions that did not come to an end and whose run is not going on.
    fn unfinished(&self) -> Result<Vec<ActionId>, EngineError> {
        let open = self.store().read(|reader| reader.unfinished_actions())?;
        let runs = self.places().runs();
        Ok(open.into_iter().map(|action| action.id).filter(|id| !runs.join(id.as_str()).exists()).collect())
    }
}

fn entries(directory: &Path) -> Result<Vec<std::path::PathBuf>, EngineError> {
    match fs::read_dir(directory) {
        Ok(entries) => Ok(entries.flatten().map(|entry| entry.path()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(EngineError::file("read", directory)(error)),
    }
}
