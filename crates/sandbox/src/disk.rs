//! Measures what the writable places hold, where the kernel does not hold the quota; and the disk below an image, which can
//! get full of what others write.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Bytes, LimitKind};

use crate::quota::Quota;
use crate::spec::Spec;

/// The least time between two measurements.
const INTERVAL: Duration = Duration::from_millis(250);
/// Measuring may take at most this part of the time.
const COST_FACTOR: u32 = 20;

/// Measures the writable places of one run from time to time.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    run_directory: PathBuf,
    /// What is measured; nothing where an image holds the quota.
    places: Option<Vec<PathBuf>>,
    disk: Bytes,
    files: u64,
    next: Instant,
}

impl DiskWatch {
    /// Watches a run, unless its quota is held by a store in memory.
    pub(crate) fn new(spec: &Spec, quota: &Quota) -> Option<Self> {
        let limits = &spec.grant.profile.limits;
        let is_watched = !matches!(quota, Quota::Memory);
        is_watched.then(|| Self {
            run_directory: spec.run_directory.clone(),
            places: (!quota.is_store()).then(|| places(spec)),
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
    pub(crate) fn passed(&mut self, quota: &Quota) -> Option<LimitKind> {
        let start = Instant::now();
        if start < self.next {
            return None;
        }
        let Some(places) = &self.places else {
            self.next = start + INTERVAL;
            return quota.disk_gets_full(&self.run_directory).then_some(LimitKind::Disk);
        };
        let (bytes, files) = measure(places);
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
