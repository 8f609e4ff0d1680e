//! Tells whether a program that is being started is one that the grant lists.
//!
//! The path was read from memory that the command can change, so this is evidence. What holds is that nothing else is
//! in the root, that Landlock lets nothing else be executed, and that nothing can be mapped as code out of a place that
//! can be written.

use std::os::fd::OwnedFd;

use launcher::message::Unlisted;
use launcher::plan::ProgramList;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::root::path_of;

/// The device and the number of a file.
type FileId = (u64, u64);

/// What a grant lists.
pub(crate) struct Listed {
    files: Vec<FileId>,
    loaders: Vec<FileId>,
    names: Vec<Vec<u8>>,
    /// Whether everything inside ends when another program is tried.
    pub(crate) ends: bool,
}

impl Listed {
    /// Looks the files of a list up.
    pub(crate) fn new(list: &ProgramList) -> Self {
        let id = |path: &Vec<u8>| rustix::fs::stat(path_of(path)).ok().map(|stat| (stat.st_dev, stat.st_ino));
        Self {
            files: list.files.iter().filter_map(id).collect(),
            loaders: list.loaders.iter().filter_map(id).collect(),
            names: list.names.clone(),
            ends: list.ends,
        }
    }

    /// Says what is in the way of a program, or nothing when it is listed or cannot be told.
    pub(crate) fn judge(&self, pid: i32, start: i32, path: &[u8]) -> Option<Unlisted> {
        match open(pid, start, path) {
            Ok(file) => self.judge_file(&file),
            // Callers try one directory of PATH after the other: that is no try of another program.
            Err(Errno::NOENT | Errno::NOTDIR) if !self.knows(path) => Some(Unlisted::Absent),
            Err(_) => None,
        }
    }

    fn judge_file(&self, file: &OwnedFd) -> Option<Unlisted> {
        let stat = rustix::fs::fstat(file).ok()?;
        let id = (stat.st_dev, stat.st_ino);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || self.files.contains(&id) {
            return None;
        }
        Some(if self.loaders.contains(&id) { Unlisted::Loader } else { Unlisted::NotExecutable })
    }

    fn knows(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.names.iter().any(|known| known == name)
    }
}

/// Opens what a process means by a path, without reading it.
fn open(pid: i32, start: i32, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let from = if start == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{start}") };
    let from = format!("/proc/{pid}/{from}");
    if path.is_empty() {
        return rustix::fs::open(from, flags, Mode::empty());
    }
    // What a process calls itself is another one here.
    if let Some(rest) = path.strip_prefix(b"/proc/self/") {
        let own = [format!("/proc/{pid}/").as_bytes(), rest].concat();
        return rustix::fs::open(path_of(&own), flags, Mode::empty());
    }
    if path.starts_with(b"/") {
        return rustix::fs::open(path_of(path), flags, Mode::empty());
    }
    let directory = rustix::fs::openat(CWD, from, flags, Mode::empty())?;
    rustix::fs::openat(directory, path_of(path), flags, Mode::empty())
}
