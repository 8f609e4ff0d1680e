//! Telling whether two files are different.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use model::FileKind;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::tree::{Node, open_file};

/// Bytes that are compared at a time.
const BLOCK: usize = 128 << 10;

/// One of the two files: where it is and what it is.
pub(super) struct Side<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) node: &'a Node,
}

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    Different,
    /// One of them may not be read. It counts as different.
    Unreadable,
}

/// Compares two files of the same name: kind, permissions, and content or target. Times and owners do not count.
pub(super) fn compare(name: &CStr, before: &Side<'_>, after: &Side<'_>) -> Result<Comparison, Errno> {
    let (old, new) = (before.node, after.node);
    if old.is_same_file(new) {
        return Ok(Comparison::Same);
    }
    let format = |node: &Node| node.st_mode & !0o7777;
    if format(old) != format(new) || (old.kind != FileKind::Symlink && old.mode() != new.mode()) {
        return Ok(Comparison::Different);
    }
    let same = match old.kind {
        FileKind::File => return compare_contents(name, before, after),
        FileKind::Symlink => target(name, before)? == target(name, after)?,
        FileKind::Device => old.device_numbers == new.device_numbers,
        FileKind::Directory | FileKind::Fifo | FileKind::Socket => true,
    };
    Ok(if same { Comparison::Same } else { Comparison::Different })
}

fn target(name: &CStr, side: &Side<'_>) -> Result<std::ffi::CString, Errno> {
    rustix::fs::readlinkat(side.directory, name, Vec::new())
}

fn compare_contents(name: &CStr, before: &Side<'_>, after: &Side<'_>) -> Result<Comparison, Errno> {
    if before.node.size != after.node.size {
        return Ok(Comparison::Different);
    }
    if before.node.size == 0 {
        return Ok(Comparison::Same);
    }
    let opened = (open_file(before.directory, name), open_file(after.directory, name));
    let (old, new) = match opened {
        (Ok(old), Ok(new)) => (old, new),
        (Err(Errno::ACCESS | Errno::PERM), _) | (_, Err(Errno::ACCESS | Errno::PERM)) => {
            return Ok(Comparison::Unreadable);
        }
        // A live base may lose the file between two steps; then it is not what it was.
        (Err(Errno::NOENT | Errno::LOOP | Errno::NXIO), _) => return Ok(Comparison::Different),
        (Err(errno), _) | (_, Err(errno)) => return Err(errno),
    };
    let same = same_content(&old, &new, before.node.size)?;
    Ok(if same { Comparison::Same } else { Comparison::Different })
}

/// Compares two open files of one size. Where both have a hole nothing is read, so that a sparse file of any
/// size costs what it really holds.
fn same_content(old: &File, new: &File, size: u64) -> Result<bool, Errno> {
    let mut blocks = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut at = 0;
    while let Some(data) = next_data(old, at, size)?.into_iter().chain(next_data(new, at, size)?).min() {
        let length = BLOCK.min(usize::try_from(size - data).unwrap_or(BLOCK));
        let (left, right) = (&mut blocks.0[..length], &mut blocks.1[..length]);
        if !fill(old, left, data)? || !fill(new, right, data)? || left != right {
            return Ok(false);
        }
        at = data + length as u64;
    }
    Ok(true)
}

/// Returns where the next data begins; a file system that does not know its holes has data everywhere.
fn next_data(file: &File, at: u64, size: u64) -> Result<Option<u64>, Errno> {
    if at >= size {
        return Ok(None);
    }
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data).filter(|data| *data < size)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(errno) => Err(errno),
    }
}

/// Reads a whole block; tells whether the file was long enough.
fn fill(file: &File, block: &mut [u8], at: u64) -> Result<bool, Errno> {
    match file.read_exact_at(block, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}
