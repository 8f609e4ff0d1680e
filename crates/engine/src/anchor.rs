//! Where signed heads are kept beside the state directory: a file that others hold, to which each is appended.
//!
//! Guarantees: a head that is said to be kept is on the disk, whole; one that could not be is told at once and goes on the
//! record. Nothing but appending is done to the file, so it may be one that allows nothing else (`chattr +a`).
//!
//! Leaves to others: that whoever can write the state directory cannot change the file. An append-only file of another user,
//! or a share of another machine, does that; another directory of the same user does not.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use audit::Checkpoint;
use model::OsText;
use model::text::escape;
use rustix::fs::{FlockOperation, OFlags, flock};

/// Where signed heads are kept beside the state directory, and who is told when that fails.
#[derive(Clone)]
pub struct Anchor {
    file: PathBuf,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    failure: Arc<Mutex<Option<Unanchored>>>,
}

/// A signed head that could not be kept elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Unanchored {
    pub(crate) records: u64,
    pub(crate) file: OsText,
    pub(crate) why: String,
}

impl Anchor {
    /// Keeps heads in this file. `tell` is called at once with a sentence for people when one cannot be kept.
    pub fn new(file: PathBuf, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { file, tell: Arc::new(tell), failure: Arc::default() }
    }

    /// Returns the file when it is in this directory, which is resolved.
    pub(crate) fn inside(&self, directory: &Path) -> Option<PathBuf> {
        let resolved = self.file.canonicalize().ok().or_else(|| self.file.parent()?.canonicalize().ok());
        resolved.is_some_and(|resolved| resolved.starts_with(directory)).then(|| self.file.clone())
    }

    /// Appends a head, and returns when it is on the disk.
    pub(crate) fn keep(&self, signed: &Checkpoint) -> Result<(), String> {
        append(&self.file, &signed.to_string()).map_err(|error| self.missed(signed.head().seq, &error))
    }

    fn missed(&self, records: u64, error: &io::Error) -> String {
        let why = error.to_string();
        (self.tell)(&format!(
            "fumehood: the signed head of the record over its {records} events is NOT kept in {}: {why}. Until a later one \
             gets there, nothing outside of the state directory vouches for the newest events",
            escape(&self.file.to_string_lossy())
        ));
        let file =
            OsText::try_from(self.file.as_path()).unwrap_or_else(|_| OsText::literal("a path with a NUL"));
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Unanchored { records, file, why: why.clone() });
        why
    }

    pub(crate) fn take_failure(&self) -> Option<Unanchored> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anchor").field("file", &self.file).finish_non_exhaustive()
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    // Without waiting: a pipe that nobody reads must not hold a run up before it is seen to be none of ours.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not an ordinary file"));
    }
    // Where the file system knows no locks, an append of this size is still one write.
    let _ = rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
    let before = file.metadata()?.len();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a head would make the whole file unreadable. A file that can only be appended to keeps it.
        let _ = file.set_len(before);
    } else if before == 0 {
        sync_name(path)?;
    }
    written
}

/// Makes the name of a new file durable, as its content is.
fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(directory) {
        // A directory that may be written and not read: the file itself is synced, and more cannot be asked of it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}
