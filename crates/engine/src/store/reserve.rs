//! Some space that is kept for the moment when the disk is full: what gives space back has to be on the record too.
//!
//! Guarantees: the reserve is a file of the state directory with nothing in it, made when there is space and missing
//! when there is none; neither is an error. Leaves to others: who may use it.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::state_directory::{check_file, create};

/// Enough for the pages that a few small changes write.
const BYTES: u64 = 256 << 10;

/// The space of the reserve, free for others until this is dropped.
#[must_use = "the space is taken back when this is dropped"]
#[derive(Debug)]
pub struct Room {
    directory: PathBuf,
}

impl Room {
    pub(super) fn make(directory: &Path) -> Self {
        // Where it is missing, the space is free already or gone.
        let _ = fs::remove_file(place(directory));
        Self { directory: directory.to_owned() }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        keep(&self.directory);
    }
}

/// Makes the reserve where it is missing and there is space for it.
pub(super) fn keep(directory: &Path) {
    let place = place(directory);
    if !matches!(check_file(&place), Ok(false)) {
        return;
    }
    let Ok(file) = create(&place) else { return };
    let kept = match fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
        Err(rustix::io::Errno::OPNOTSUPP) => fs::write(&place, vec![0; BYTES as usize]).is_ok(),
        done => done.is_ok(),
    };
    if !kept {
        // A part of it holds the space that somebody needs, and is no reserve.
        let _ = fs::remove_file(&place);
    }
}

fn place(directory: &Path) -> PathBuf {
    directory.join("reserve")
}
