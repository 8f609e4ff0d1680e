//! Measures what the writable places hold, where the kernel does not hold the quota.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::limits::DiskMode;
use model::{Bytes, LimitKind};

use crate::spec::Spec;

/// The least time between two measurements.
const INTERVAL: Duration = Duration::from_millis(250);
/// Measuring may take at most this part of the time.
const COST_FACTOR: u32 = 20;

/// Measures the writable places of one run from time to time.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    places: Vec<PathBuf>,
    disk: Bytes,
    files: u64,
    next: Instant,
}

impl DiskWatch {
    /// Watches a run, unless the kernel holds its quota.
    pub(crate) fn new(spec: &Spec) -> Option<Self> {
        let limits = &spec.grant.profile.limits;
        (limits.disk_mode == DiskMode::Disk).then(|| Self {
            places: places(spec),
            disk: limits.disk,
            files: limits.files,
            next: Instant::now() + INTERVAL,
        })
    }

    /// Returns when to measure next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Measures when it is time, and names the limit that was passed.
    pub(crate) fn passed(&mut self) -> Option<LimitKind> {
        let start = Instant::now();
        if start < self.next {
            return None;
        }
        let (bytes, files) = measure(&self.places);
        self.next = Instant::now() + INTERVAL.max(start.elapsed() * COST_FACTOR);
        if bytes > self.disk {
            Some(LimitKind::Disk)
        } else if files > self.files {
            Some(LimitKind::Files)
        } else {
            None
        }
    }
}

/// Returns the writable places of a run on the host's disk.
pub(crate) fn places(spec: &Spec) -> Vec<PathBuf> {
    let mut places =
        vec![spec.workspace.layer.join("upper"), spec.run_directory.join("store"), spec.artifacts.clone()];
    places.extend(spec.git_layer().map(|layer| layer.join("upper")));
    places
}

/// Adds up the bytes on disk and the entries below some places. What goes away meanwhile does not count.
pub(crate) fn measure(places: &[PathBuf]) -> (Bytes, u64) {
    let mut bytes = 0u64;
    let mut files = 0u64;
    let mut left: Vec<PathBuf> = places.to_vec();
    while let Some(directory) = left.pop() {
        for (path, metadata) in entries(&directory) {
            // Sparse files count by what they occupy (`stat(2)`: 512-byte blocks).
            bytes += metadata.blocks() * 512;
            files += 1;
            if metadata.is_dir() {
                left.push(path);
            }
        }
    }
    (Bytes::new(bytes), files)
}

fn entries(directory: &Path) -> impl Iterator<Item = (PathBuf, fs::Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}
