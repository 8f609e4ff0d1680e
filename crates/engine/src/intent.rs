//! What is about to be written to the host, said durably before it begins: so that a crash in the middle is found, brought
//! to its end and recorded by whoever comes next.
//!
//! An intent is a file in the state directory. It is there from before the first change of the host until the end is on
//! the record. Its owner holds the lock of the task all that time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use audit::Entry;
use model::event::{Event, HeldBack};
use model::task::{Task, TaskState};
use model::{ActionId, OsText, TaskId};
use sandbox::fail_point;
use serde::{Deserialize, Serialize};

use crate::apply::{self, Applied, Target, Work};
use crate::clock::now;
use crate::error::EngineError;
use crate::handle::new_action_id;
use crate::layers::APPLIED;
use crate::lock::Lock;
use crate::store::LayerState;
use crate::tasks::about;
use crate::{AppliedTask, Engine};

/// Something that is about to be written to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// Its name.
    id: ActionId,
    /// The task.
    task: TaskId,
    /// The directory of the journal and of what is overwritten, below that of the task.
    place: PathBuf,
    /// What it is for.
    purpose: Purpose,
}

/// What something is written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// Changes of a task are applied.
    Apply {
        /// The layers that are written.
        layers: Vec<ActionId>,
        /// What is not written, with the reason.
        held: Vec<HeldBack>,
        /// Whether the task stays open in any case.
        stays_open: bool,
    },
    /// What was applied is taken back.
    TakeBack {
        /// The layers that were written.
        layers: Vec<ActionId>,
    },
    /// Commits come to the host's repository.
    Import {
        /// The branch.
        branch: String,
        /// The commit that it names.
        commit: String,
        /// The commits that are new with it.
        number: u64,
        /// The helper that fetched them.
        by: ActionId,
        /// The repository, where it lies elsewhere than in the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository: Option<OsText>,
    },
}

impl Purpose {
    fn work(&self) -> Work {
        match self {
            Self::Apply { .. } | Self::Import { .. } => Work::Apply,
            Self::TakeBack { .. } => Work::Undo,
        }
    }

    /// Returns the directory that is written to, when that is not the workspace.
    fn elsewhere(&self) -> Option<&Path> {
        match self {
            Self::Import { repository, .. } => repository.as_ref().map(OsText::as_path),
            Self::Apply { .. } | Self::TakeBack { .. } => None,
        }
    }

    fn doing(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "applying",
            Self::TakeBack { .. } => "taking back",
            Self::Import { .. } => "importing commits",
        }
    }
}

impl Intent {
    /// Makes an intent, with a new place for what is overwritten. What is taken back has its place already.
    pub(crate) fn new(task: &Task, purpose: Purpose) -> Result<Self, EngineError> {
        let id = new_action_id()?;
        // Beside what was applied, which can be taken back.
        let kept = if matches!(purpose, Purpose::Import { .. }) { "imported" } else { APPLIED };
        Ok(Self { place: Path::new(kept).join(id.as_str()), id, task: task.id.clone(), purpose })
    }

    /// Makes the intent to take back what is kept in a directory.
    pub(crate) fn to_take_back(
        task: &Task,
        captured: &Path,
        layers: Vec<ActionId>,
    ) -> Result<Self, EngineError> {
        let name = captured.file_name().unwrap_or_default();
        let place = Path::new(APPLIED).join(name);
        Ok(Self { place, ..Self::new(task, Purpose::TakeBack { layers })? })
    }

    fn named(&self, task: &Task) -> String {
        format!("{} ({}, `{}`)", self.purpose.doing(), task.id, task.workspace.path)
    }

    /// Returns what goes on record at its end.
    fn event(&self, applied: &Applied, held_back: &[HeldBack]) -> Option<Event> {
        let (changes, held_back) = (applied.changes.clone(), held_back.to_vec());
        let intent = Some(self.id.clone());
        match &self.purpose {
            Purpose::Apply { .. } => Some(Event::Applied { changes, held_back, intent }),
            Purpose::TakeBack { .. } => Some(Event::AppliedUndone { changes, held_back, intent }),
            // Without one of its packs, or without the branch, it did not come.
            Purpose::Import { .. } if !held_back.is_empty() => None,
            Purpose::Import { branch, commit, number, by, .. } => Some(Event::CommitsImported {
                branch: branch.clone(),
                commit: commit.clone(),
                number: *number,
                by: by.clone(),
            }),
        }
    }

    fn is_about(&self, event: &Event) -> bool {
        match (event, &self.purpose) {
            (Event::Applied { intent, .. } | Event::AppliedUndone { intent, .. }, _) => {
                intent.as_ref() == Some(&self.id)
            }
            (Event::CommitsImported { by: recorded, .. }, Purpose::Import { by, .. }) => recorded == by,
            _ => false,
        }
    }

    /// Says in what state which layers, and the task, are when it is done; nothing when they stay as they are.
    fn becomes(&self, task: &Task, applied: &Applied, held: &[HeldBack]) -> Option<Becomes<'_>> {
        match &self.purpose {
            Purpose::Apply { layers, stays_open: false, .. } if held.is_empty() && applied.is_complete() => {
                Some(Becomes { layers, are: LayerState::Applied, task: TaskState::Applied })
            }
            Purpose::Apply { .. } | Purpose::Import { .. } => None,
            Purpose::TakeBack { layers } => {
                let closed = task.state == TaskState::Applied;
                let state = if closed { TaskState::Open } else { task.state };
                Some(Becomes { layers, are: LayerState::Kept, task: state })
            }
        }
    }
}

/// What comes to another state.
struct Becomes<'a> {
    layers: &'a [ActionId],
    are: LayerState,
    task: TaskState,
}

impl Engine {
    /// Carries an intent out: it is said, done and recorded.
    pub(crate) fn carry_out(
        &self,
        task: &Task,
        intent: &Intent,
        work: impl FnOnce(&Target<'_>) -> Result<Applied, apply::ApplyError>,
    ) -> Result<AppliedTask, EngineError> {
        self.announce(intent)?;
        fail_point::reached("the intent is there and nothing has begun");
        match self.with_target(task, intent, work) {
            Ok(applied) => {
                fail_point::reached("all is written and not on the record");
                self.conclude(task, intent, applied)
            }
            Err(error) => {
                // What it had begun is taken away or completed now, or at the next start.
                let _ = self.bring_to_its_end(task, intent);
                Err(error.into())
            }
        }
    }

    /// Brings to their end what dead owners had begun to write to the host, and says what that was.
    pub(crate) fn settle_intents(&self) -> Result<Vec<String>, EngineError> {
        let mut said = Vec::new();
        for path in crate::recover::entries(&self.places().intents())? {
            let intent = match read(&path) {
                Ok(Some(intent)) => intent,
                Ok(None) => continue,
                Err(error) => {
                    said.push(format!("what was to be written cannot be read: {}", with_causes(&error)));
                    continue;
                }
            };
            let Some(task) = self.store().read(|reader| reader.task(&intent.task))? else { continue };
            self.make_task_directory(&task.id)?;
            // Whoever writes holds this lock, from before there is an intent.
            let Some(_lock) = Lock::try_take(&self.places().task(&task.id).join("lock"))? else { continue };
            if !path.exists() {
                continue;
            }
            said.push(match self.bring_to_its_end(&task, &intent) {
                Ok(did) => format!("{} had been cut off: {did}", intent.named(&task)),
                Err(error) => format!(
                    "{} was cut off and cannot be brought to its end: {}; it is tried again at the next start",
                    intent.named(&task),
                    with_causes(&error)
                ),
            });
        }
        Ok(said)
    }

    /// Completes what an intent had begun and records it, or removes what was only prepared. Says which.
    fn bring_to_its_end(&self, task: &Task, intent: &Intent) -> Result<String, EngineError> {
        if self.is_recorded(intent)? {
            self.withdraw(intent)?;
            return Ok("all of it was written".to_owned());
        }
        match self.with_target(task, intent, |target| apply::complete(target, intent.purpose.work()))? {
            Some(applied) => {
                let done = self.conclude(task, intent, applied)?;
                Ok(format!(
                    "it was completed, with {} changes and {} held back",
                    done.applied.changes.len(),
                    done.held.len()
                ))
            }
            None => {
                self.withdraw(intent)?;
                Ok("nothing had been written, and nothing was".to_owned())
            }
        }
    }

    /// Records the end of an intent, and takes it away.
    fn conclude(&self, task: &Task, intent: &Intent, applied: Applied) -> Result<AppliedTask, EngineError> {
        let mut held = match &intent.purpose {
            Purpose::Apply { held, .. } => held.clone(),
            Purpose::TakeBack { .. } | Purpose::Import { .. } => Vec::new(),
        };
        held.extend(applied.held_back());
        let becomes = intent.becomes(task, &applied, &held);
        let state = becomes.as_ref().map_or(task.state, |becomes| becomes.task);
        let changed = (state != task.state).then_some(Event::TaskState { state, by: None });
        let events: Vec<Event> = intent.event(&applied, &held).into_iter().chain(changed).collect();
        let (subject, time) = (about(&task.id), now());
        let is_release = matches!(intent.purpose, Purpose::Apply { .. }) && !applied.changes.is_empty();
        let stage = if is_release { self.release(task, &applied.changes)? } else { None };
        let stage = stage.as_ref().map(|(subject, event)| Entry { subject, event, time });
        let entries: Vec<Entry<'_>> =
            events.iter().map(|event| Entry { subject: &subject, event, time }).chain(stage).collect();
        if entries.is_empty() {
            self.withdraw(intent)?;
            return Ok(AppliedTask { applied, held, state });
        }
        self.log.append_all(&entries, |writer| {
            if stage.is_some() {
                writer.check_stages(&task.id)?;
            }
            let Some(becomes) = becomes else { return Ok(()) };
            let set = |layer| writer.set_layer_state(&task.id, layer, becomes.are);
            becomes.layers.iter().try_for_each(set)?;
            if state == task.state { Ok(()) } else { writer.set_task_state(&task.id, state, time) }
        })?;
        fail_point::reached("it is on the record and the intent is there");
        self.withdraw(intent)?;
        Ok(AppliedTask { applied, held, state })
    }

    fn is_recorded(&self, intent: &Intent) -> Result<bool, EngineError> {
        Ok(self.events_of_task(&intent.task)?.iter().any(|event| intent.is_about(event)))
    }

    fn with_target<T>(
        &self,
        task: &Task,
        intent: &Intent,
        work: impl FnOnce(&Target<'_>) -> Result<T, apply::ApplyError>,
    ) -> Result<T, apply::ApplyError> {
        let workspace = intent.purpose.elsewhere().unwrap_or(task.workspace.path.as_path());
        let captured = self.places().task(&task.id).join(&intent.place);
        work(&Target { workspace, captured: &captured, task: &task.id })
    }

    fn place_of(&self, intent: &Intent) -> PathBuf {
        self.places().intents().join(intent.id.as_str())
    }

    /// Says durably what is about to be written.
    fn announce(&self, intent: &Intent) -> Result<(), EngineError> {
        let directory = self.places().intents();
        let (new, path) = (self.places().task(&intent.task).join("intent.new"), self.place_of(intent));
        let fail = || EngineError::file("write", &path);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(fail())?;
        let bytes = serde_json::to_vec(intent).map_err(std::io::Error::other).map_err(fail())?;
        let made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        let written = made.and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        let named = written.and_then(|()| fs::rename(&new, &path));
        named.and_then(|()| File::open(&directory)?.sync_all()).map_err(fail())
    }

    fn withdraw(&self, intent: &Intent) -> Result<(), EngineError> {
        let captured = self.places().task(&intent.task).join(&intent.place);
        // Only what is empty goes: nothing was overwritten then.
        let _ = fs::remove_dir(captured);
        let path = self.place_of(intent);
        fs::remove_file(&path).map_err(EngineError::file("remove", &path))
    }
}

/// Reads an intent; nothing when its owner has taken it away meanwhile.
fn read(path: &Path) -> Result<Option<Intent>, EngineError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::file("read", path)(error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| EngineError::file("read", path)(error.into()))
}

fn with_causes(error: &EngineError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
