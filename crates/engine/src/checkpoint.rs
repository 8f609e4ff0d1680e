//! Checkpoints: the older layers of a task as one directory, so that few are mounted however many there are.
//!
//! Guarantees: a checkpoint that is handed out holds exactly the oldest of the layers that were asked for, by their names;
//! what cuts its making off is gone on with or made anew; a layer is never written to, as the files of both are the same
//! ones; nothing is changed or removed that somebody opened here to read. It costs by the changed paths of the layers that
//! come to it. Leaves to others: that nobody else makes one in the same place (the lock of the task, or of the place), and
//! that it is not mounted meanwhile.

mod manifest;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use inspect::Tree;
use inspect::checkpoint::merge;
use model::task::TaskState;
use model::{ActionId, TaskId};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use crate::Engine;
use crate::clock::random;
use crate::error::EngineError;
use crate::fail_point::reached;
use crate::layers::{GIT_UPPER, Places};
use crate::lock::Lock;
use crate::store::StoredLayer;
use manifest::Holds;

/// Directories that are mounted below a new layer and above the base: a checkpoint, and the newest layers. With the base
/// that makes four lowers at most. Lookups cost by their number, and the kernel takes 256 bytes for all their names.
const MOUNTED_MAX: usize = 3;
/// Layers beyond a checkpoint that are read one by one, each with a descriptor for every level of a path.
const READ_MAX: usize = 16;

const UPPER: &str = "upper";
const GIT: &str = "git";
/// What is merged: where it is in a layer, and in a checkpoint.
const PARTS: [(&str, &str); 2] = [(UPPER, UPPER), (GIT_UPPER, GIT)];
const SCRATCH: &str = "scratch";
/// Whose holder makes the checkpoint of the readers.
const READERS_LOCK: &str = "view.lock";

impl Engine {
    /// Returns what is mounted above the base for a task that stands on these layers, newest first. The caller holds the
    /// lock of the task.
    pub(crate) fn lowers(&self, task: &TaskId, layers: &[StoredLayer]) -> Result<Lowers, EngineError> {
        let places = self.places();
        if layers.len() <= MOUNTED_MAX {
            return Ok(Lowers { workspace: places.uppers(layers), git: places.git_uppers(layers) });
        }
        let (held, checkpoint) = Slot::of_runs(&places, task).make(layers, MOUNTED_MAX - 1)?;
        let mut workspace = places.uppers(&layers[held..]);
        let mut git = places.git_uppers(&layers[held..]);
        workspace.push(checkpoint.join(UPPER));
        git.extend(Some(checkpoint.join(GIT)).filter(|git| holds_something(git)));
        Ok(Lowers { workspace, git })
    }

    /// Opens the layers that a task stands or stood on for reading, newest first.
    pub(crate) fn open_layers(
        &self,
        task: &TaskId,
        layers: &[StoredLayer],
    ) -> Result<Vec<Tree>, EngineError> {
        let places = self.places();
        if layers.len() <= READ_MAX {
            return open(&places.uppers(layers));
        }
        // That of the runs is never made here: a run that is going on has it mounted.
        for slot in [Slot::of_runs(&places, task), Slot::of_readers(&places, task)] {
            if let Some(trees) = slot.open(layers)? {
                return Ok(trees);
            }
        }
        self.make_task_directory(task)?;
        let slot = Slot::of_readers(&places, task);
        let _one_at_a_time = Lock::take(&places.task(task).join(READERS_LOCK), || {})?;
        slot.make(layers, 0)?;
        let gone = || EngineError::Nothing(format!("the layers of task {task} cannot be read together"));
        slot.open(layers)?.ok_or_else(gone)
    }

    /// Removes the checkpoints of a task, unless it can go on and none of them holds one of these layers. They are made
    /// anew when somebody wants them. Nothing happens while the task is busy.
    pub(crate) fn remove_checkpoints(&self, task: &TaskId, goes: &[ActionId]) -> Result<(), EngineError> {
        let places = self.places();
        let Some(_idle) = Lock::try_take(&places.task(task).join("lock"))? else { return Ok(()) };
        let _one_at_a_time = Lock::take(&places.task(task).join(READERS_LOCK), || {})?;
        let stored = self.store().read(|reader| reader.task(task))?;
        let goes_on = stored.is_some_and(|task| matches!(task.state, TaskState::Open | TaskState::Stopped));
        for slot in [Slot::of_runs(&places, task), Slot::of_readers(&places, task)] {
            let holds = Holds::read(&slot.place());
            let keeps = |holds: &Holds| !holds.named().any(|layer| goes.contains(layer));
            if !(goes_on && holds.as_ref().is_some_and(keeps)) {
                slot.put_aside()?;
            }
            slot.remove_leftovers()?;
        }
        Ok(())
    }
}

/// What is mounted above a base, newest first.
#[derive(Debug, Default)]
pub(crate) struct Lowers {
    /// Above the workspace.
    pub(crate) workspace: Vec<PathBuf>,
    /// Above the git repository of a linked worktree.
    pub(crate) git: Vec<PathBuf>,
}

/// Tells whether there is something in a directory.
pub(crate) fn holds_something(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

fn open(uppers: &[PathBuf]) -> Result<Vec<Tree>, EngineError> {
    Ok(uppers.iter().map(|path| Tree::open(path)).collect::<Result<_, _>>()?)
}

/// Where a checkpoint is, when there is one. Beside it lie, by names of their own, one that is being made and ones that
/// another has taken the place of while somebody read them.
struct Slot<'a> {
    places: &'a Places,
    directory: PathBuf,
    name: &'static str,
}

impl<'a> Slot<'a> {
    /// The one that runs mount; made under the lock of the task.
    fn of_runs(places: &'a Places, task: &TaskId) -> Self {
        Self { places, directory: places.task(task), name: "checkpoint" }
    }

    /// One for those who read what a task once stood on; made under a lock of its own.
    fn of_readers(places: &'a Places, task: &TaskId) -> Self {
        Self { name: "view", ..Self::of_runs(places, task) }
    }

    fn place(&self) -> PathBuf {
        self.directory.join(self.name)
    }

    /// Sees to it that there is a checkpoint of all these layers but for the newest, of which at most `apart` are left
    /// out. Returns how many it holds, and its directory.
    fn make(&self, layers: &[StoredLayer], apart: usize) -> Result<(usize, PathBuf), EngineError> {
        self.remove_leftovers()?;
        let place = self.place();
        let wanted = layers.len() - apart;
        if let Some(held) = self.go_on(&place, layers, wanted)? {
            return Ok((held, place));
        }
        self.make_anew(&layers[..wanted])?;
        Ok((wanted, place))
    }

    /// Goes on with the checkpoint that is there; nothing when it is of other layers, in doubt, or being read.
    fn go_on(
        &self,
        place: &Path,
        layers: &[StoredLayer],
        wanted: usize,
    ) -> Result<Option<usize>, EngineError> {
        let Some(holds) = Holds::read(place).filter(|holds| holds.begin(layers)) else { return Ok(None) };
        if holds.merging.is_none() && holds.layers.len() >= wanted {
            return Ok(Some(holds.layers.len()));
        }
        let Some(_nobody_reads) = alone(place)? else { return Ok(None) };
        let wanted = wanted.max(holds.named().count());
        // What cannot be gone on with is made anew, and says then what is wrong.
        Ok(self.fold(place, holds, &layers[..wanted]).ok().map(|()| wanted))
    }

    /// Merges the layers that a checkpoint does not hold yet, one by one, and notes each before and after.
    fn fold(&self, place: &Path, mut holds: Holds, layers: &[StoredLayer]) -> Result<(), EngineError> {
        let scratch = Tree::open(&place.join(SCRATCH))?;
        for layer in &layers[holds.layers.len()..] {
            holds.merging = Some(layer.action.clone());
            holds.write(place)?;
            reached("checkpoint: a layer is to be merged");
            let directory = self.places.layer(&layer.home, &layer.action);
            for (from, to) in PARTS {
                if from == UPPER || directory.join(from).is_dir() {
                    merge(&Tree::open(&directory.join(from))?, &Tree::open(&place.join(to))?, &scratch)?;
                }
            }
            reached("checkpoint: a layer is merged and not noted");
            holds.layers.extend(holds.merging.take());
        }
        holds.write(place)?;
        reached("checkpoint: the layers are noted");
        Ok(())
    }

    /// Makes a checkpoint beside and puts it in its place.
    fn make_anew(&self, layers: &[StoredLayer]) -> Result<(), EngineError> {
        let new = self.beside("new");
        for part in [UPPER, GIT, SCRATCH] {
            let directory = new.join(part);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
            made.map_err(EngineError::file("make", &directory))?;
        }
        reached("checkpoint: the directories of a new one are made");
        self.fold(&new, Holds::nothing()?, layers)?;
        self.put_aside()?;
        reached("checkpoint: the old one is put aside");
        let place = self.place();
        fs::rename(&new, &place).map_err(EngineError::file("make", &place))?;
        reached("checkpoint: the new one is in its place");
        self.remove_leftovers()
    }

    fn beside(&self, what: &str) -> PathBuf {
        self.directory.join(format!("{}.{what}", self.name))
    }

    /// Gives the checkpoint that is there another name. Who reads it goes on reading.
    fn put_aside(&self) -> Result<(), EngineError> {
        let name: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
        match fs::rename(self.place(), self.beside(&format!("old-{name}"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(EngineError::file("put aside", &self.place())(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes what was not finished, and what has been put aside and nobody reads.
    fn remove_leftovers(&self) -> Result<(), EngineError> {
        let entries = fs::read_dir(&self.directory).map_err(EngineError::file("list", &self.directory))?;
        let (new, old) = (format!("{}.new", self.name), format!("{}.old-", self.name));
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_ours = name.to_str().is_some_and(|name| name == new || name.starts_with(&old));
            let path = entry.path();
            if !is_ours {
                continue;
            }
            let Some(_nobody_reads) = alone(&path)? else { continue };
            // Who waits to read it finds that it holds nothing.
            Holds::remove(&path)?;
            reached("checkpoint: what is left over holds nothing");
            sandbox::remove_tree(&path).map_err(EngineError::file("remove", &path))?;
        }
        Ok(())
    }

    /// Opens these layers, newest first, with a checkpoint for all but a few; nothing when there is none for them. It
    /// stays as it is as long as anything reads it.
    fn open(&self, layers: &[StoredLayer]) -> Result<Option<Vec<Tree>>, EngineError> {
        let place = self.place();
        let Some(directory) = open_directory(&place)? else { return Ok(None) };
        flock(&directory, FlockOperation::LockShared)
            .map_err(|errno| EngineError::file("lock", &place)(errno.into()))?;
        let holds = Holds::read_in(&directory);
        let usable = |holds: &Holds| {
            holds.merging.is_none() && holds.begin(layers) && layers.len() - holds.layers.len() <= READ_MAX
        };
        let Some(holds) = holds.filter(usable) else { return Ok(None) };
        let mut trees = open(&self.places.uppers(&layers[holds.layers.len()..]))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = openat(&directory, UPPER, flags, Mode::empty())
            .map_err(|errno| EngineError::file("open", &place)(errno.into()))?;
        trees.push(Tree::from(upper).keeping(directory));
        Ok(Some(trees))
    }
}

/// Takes a checkpoint for oneself; nothing when somebody reads it, or it is not there.
fn alone(place: &Path) -> Result<Option<OwnedFd>, EngineError> {
    let Some(directory) = open_directory(place)? else { return Ok(None) };
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(EngineError::file("lock", place)(errno.into())),
    }
}

fn open_directory(place: &Path) -> Result<Option<OwnedFd>, EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, place, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(EngineError::file("open", place)(errno.into())),
    }
}
