//! Reading and writing the small files of a group, beneath a directory that is held open.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};

use super::CgroupError;

/// The most that is read of one file: process lists of a fork bomb stay below it, and nothing else comes near.
const MOST: u64 = 4 << 20;

/// A directory of a hierarchy, held open so that no rename or mount can put another in its place.
#[derive(Debug)]
pub(super) struct Directory {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, CgroupError> {
        let fd = rustix::fs::open(path, DIRECTORY, Mode::empty());
        Ok(Self { fd: fd.map_err(|error| failed("open", path, error))?, path: path.to_owned() })
    }

    pub(super) fn child(&self, name: &str) -> Result<Self, CgroupError> {
        let path = self.path.join(name);
        let fd = openat(&self.fd, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        Ok(Self { fd: fd.map_err(|error| failed("open", &path, error))?, path })
    }

    pub(super) fn make(&self, name: &str) -> rustix::io::Result<()> {
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.fd, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns the text of a file; `None` where there is no such file.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, CgroupError> {
        let failed = |error: io::Error| failed("read", &self.path.join(name), error);
        match openat(&self.fd, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(failed(error.into())),
            Ok(fd) => read_text(File::from(fd)).map(Some).map_err(failed),
        }
    }

    pub(super) fn open_for_writing(&self, name: &str) -> Result<OwnedFd, CgroupError> {
        openat(&self.fd, name, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| failed("open", &self.path.join(name), error))
    }

    pub(super) fn write(&self, name: &str, value: &str) -> Result<(), CgroupError> {
        let mut file = File::from(self.open_for_writing(name)?);
        // One call: each write to such a file is a command of its own.
        file.write_all(value.as_bytes()).map_err(|error| failed("write", &self.path.join(name), error))
    }

    /// Returns the numbers of the processes in the group; those that this process cannot name are zero.
    pub(super) fn processes(&self) -> Result<Vec<i32>, CgroupError> {
        let text = self.read("cgroup.procs")?.unwrap_or_default();
        Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// Returns the names of the groups below.
    pub(super) fn children(&self) -> Result<Vec<String>, CgroupError> {
        let failed = |error: rustix::io::Errno| failed("list", &self.path, error);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.fd.as_fd()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy();
            if entry.file_type() == rustix::fs::FileType::Directory && name != "." && name != ".." {
                names.push(name.into_owned());
            }
        }
        Ok(names)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Reads a file of the kernel that can hold any bytes.
pub(super) fn read_text(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn failed(doing: &'static str, path: &Path, error: impl Into<io::Error>) -> CgroupError {
    CgroupError::File { doing, path: path.to_owned(), source: error.into() }
}

/// Returns the number beside a key in a file of `key number` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
