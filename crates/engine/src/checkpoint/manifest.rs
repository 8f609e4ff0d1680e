//! What a checkpoint says of itself: the layers that it holds.
//!
//! Guarantees: the note is replaced as a whole; what cannot be read, or was written before the machine was last started,
//! is no note. Nothing here waits for the disk: after a loss of power a checkpoint is made anew.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use model::ActionId;
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::store::StoredLayer;

const NAME: &str = "holds.json";
/// Names the time since the machine was last started.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The layers that a checkpoint holds, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holds {
    boot: String,
    /// Layers that are in it as a whole.
    pub(super) layers: Vec<ActionId>,
    /// The layer that is being merged; when nobody is at it, it is in it in part.
    pub(super) merging: Option<ActionId>,
}

impl Holds {
    /// What an empty checkpoint holds.
    pub(super) fn nothing() -> Result<Self, EngineError> {
        let boot = fs::read_to_string(BOOT).map_err(EngineError::file("read", Path::new(BOOT)))?;
        Ok(Self { boot: boot.trim().to_owned(), layers: Vec::new(), merging: None })
    }

    /// Reads what the checkpoint in a place holds.
    pub(super) fn read(place: &Path) -> Option<Self> {
        Self::parse(&fs::read(place.join(NAME)).ok()?)
    }

    /// Reads what an open checkpoint holds.
    pub(super) fn read_in(place: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        File::from(openat(place, NAME, flags, Mode::empty()).ok()?).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let holds: Self = serde_json::from_slice(bytes).ok()?;
        (holds.boot == Self::nothing().ok()?.boot).then_some(holds)
    }

    /// Writes what the checkpoint in a place holds.
    pub(super) fn write(&self, place: &Path) -> Result<(), EngineError> {
        let (path, new) = (place.join(NAME), place.join("holds.json.new"));
        let written = serde_json::to_vec(self)
            .map_err(std::io::Error::other)
            .and_then(|bytes| fs::write(&new, bytes))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(EngineError::file("write", &path))
    }

    /// Takes the note away, so that nobody uses the checkpoint any longer.
    pub(super) fn remove(place: &Path) -> Result<(), EngineError> {
        let path = place.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(EngineError::file("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns every layer of which something is in it, oldest first.
    pub(super) fn named(&self) -> impl Iterator<Item = &ActionId> {
        self.layers.iter().chain(&self.merging)
    }

    /// Tells whether these layers, oldest first, begin with those that it holds.
    pub(super) fn begin(&self, layers: &[StoredLayer]) -> bool {
        let mut layers = layers.iter().map(|layer| &layer.action);
        self.named().all(|held| layers.next() == Some(held))
    }
}
