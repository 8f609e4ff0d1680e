//! Samples how much memory and how many processes are in use, where the kernel does not hold a limit.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use launcher::message::FromSandbox;
use launcher::plan::Watch;
use launcher::wire;
use rustix::event::Timespec;

use crate::failure::{Context, Done};

/// Samples at a fixed interval.
pub(crate) struct Watcher {
    watch: Watch,
    last: Instant,
    peak: (u64, u32),
    page: u64,
}

impl Watcher {
    /// Starts to watch. To be made while this process can still read its own `/proc/self`, which holds the page size.
    pub(crate) fn new(watch: Watch) -> Self {
        Self { watch, last: Instant::now(), peak: (0, 0), page: rustix::param::page_size() as u64 }
    }

    /// Returns how long to wait for the next sample.
    pub(crate) fn interval(&self) -> Option<Timespec> {
        let interval = self.step()?;
        let left = interval.saturating_sub(self.last.elapsed());
        Timespec::try_from(left).ok()
    }

    fn step(&self) -> Option<Duration> {
        (self.watch.interval_ms > 0).then(|| Duration::from_millis(self.watch.interval_ms.into()))
    }

    /// Samples when it is time, and says whether the memory limit was passed; then everything must end.
    pub(crate) fn passed(&mut self, control: &OwnedFd) -> Done<bool> {
        if self.step().is_none_or(|step| self.last.elapsed() < step) {
            return Ok(false);
        }
        let memory = self.sample(control)?;
        let Some(limit) = self.watch.memory.filter(|limit| memory > *limit) else { return Ok(false) };
        // The quick sum counts a page once for each process that shares it since a fork; the exact one does not.
        let memory = processes().map(|pid| proportional(pid).unwrap_or(0)).sum();
        if memory <= limit {
            return Ok(false);
        }
        wire::send(control, &FromSandbox::MemoryPassed { memory }, &[]).during("control socket", "memory")?;
        Ok(true)
    }

    /// Takes a sample, reports it when it is a new peak, and returns the memory in use.
    pub(crate) fn sample(&mut self, control: &OwnedFd) -> Done<u64> {
        self.last = Instant::now();
        let mut memory = 0;
        let mut count = 0;
        for pid in processes() {
            memory += anonymous_pages(pid).unwrap_or(0) * self.page;
            count += 1;
        }
        if memory > self.peak.0 || count > self.peak.1 {
            self.peak = (memory.max(self.peak.0), count.max(self.peak.1));
            let (memory, processes) = self.peak;
            let message = FromSandbox::Sample { memory, processes };
            wire::send(control, &message, &[]).during("control socket", "sample")?;
        }
        Ok(memory)
    }
}

/// Returns the processes of the sandbox, without this one.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != 1)
}

/// Returns the pages that one process has to itself by `statm`: resident less shared (`proc(5)`).
fn anonymous_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut fields = text.split(' ').skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some(resident.saturating_sub(shared))
}

/// Returns the share of one process by `smaps_rollup`: pages that several have count in part (`proc(5)`, Pss).
fn proportional(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
