//! Collects what the first process reports while the command runs, within bounds.

use std::collections::BTreeSet;
use std::time::Duration;

use launcher::message::{FromSandbox, Unlisted};
use model::enforcement::Layer;
use model::evidence::{ConnectionAttempt, Observed, ProgramStart, ProgramTry};
use model::{Bytes, OsText, Usage};

use crate::address;
use crate::output::{Printed, Stream};

/// Programs that are kept one by one; the rest is counted.
const PROGRAMS_MAX: usize = 2000;
/// Tries of other programs than the listed ones that are kept one by one; the rest is counted.
const UNLISTED_MAX: usize = 200;
/// Connections that are kept one by one; the rest is counted.
const CONNECTIONS_MAX: usize = 500;

/// What was reported so far.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    observed: Observed,
    connected: BTreeSet<String>,
    /// The first program that was tried and is not listed.
    pub(crate) first_unlisted: Option<OsText>,
    cpu_time: Duration,
    memory_peak: Bytes,
    processes_peak: u32,
    memory_byte_seconds: u64,
    /// Whether somebody asked the command to end.
    pub(crate) stopped: bool,
}

impl Recorder {
    /// Takes one report. What is no evidence is ignored: the first process is inside, and may be lying.
    pub(crate) fn take(&mut self, message: FromSandbox) {
        match message {
            FromSandbox::Program { pid, file, argv, unlisted } => self.program(pid, file, argv, unlisted),
            FromSandbox::Connection { pid, address } => self.connection(pid, &address),
            FromSandbox::Healed => self.observed.renames_healed += 1,
            FromSandbox::Sample { memory, processes } => {
                self.memory_peak = self.memory_peak.max(Bytes::new(memory));
                self.processes_peak = self.processes_peak.max(processes);
            }
            _ => {}
        }
    }

    fn program(&mut self, pid: i32, file: Vec<u8>, argv: Vec<Vec<u8>>, unlisted: Option<Unlisted>) {
        let Ok(file) = OsText::new(file) else { return };
        let argv: Vec<OsText> = argv.into_iter().filter_map(|argument| OsText::new(argument).ok()).collect();
        if let Some(unlisted) = unlisted {
            self.unlisted(ProgramTry { file: file.clone(), argv: argv.clone(), pid, layer: layer(unlisted) });
        }
        // The loader runs, if only to say that it finds nothing.
        if unlisted.is_some_and(|unlisted| unlisted != Unlisted::Loader) {
            return;
        }
        if self.observed.programs.len() >= PROGRAMS_MAX {
            self.observed.programs_dropped += 1;
        } else {
            self.observed.programs.push(ProgramStart { file, argv, pid });
        }
    }

    fn unlisted(&mut self, tried: ProgramTry) {
        self.first_unlisted.get_or_insert_with(|| tried.file.clone());
        if self.observed.unlisted_programs.len() >= UNLISTED_MAX {
            self.observed.unlisted_programs_dropped += 1;
        } else {
            self.observed.unlisted_programs.push(tried);
        }
    }

    fn connection(&mut self, pid: i32, address: &[u8]) {
        let Some(address) = address::describe(address) else { return };
        if !self.connected.insert(address.clone()) {
            return;
        }
        if self.observed.connections.len() < CONNECTIONS_MAX {
            self.observed.connections.push(ConnectionAttempt { address, pid });
        } else {
            self.observed.connections_dropped += 1;
        }
    }

    /// Takes what the kernel counted.
    pub(crate) fn used(&mut self, cpu_time: Duration, memory: Bytes) {
        self.cpu_time = self.cpu_time.max(cpu_time);
        self.memory_peak = self.memory_peak.max(memory);
        self.processes_peak = self.processes_peak.max(1);
    }

    /// Returns what was used, as far as it was measured here.
    pub(crate) fn usage(&self, wall_time: Duration, printed: &[(Stream, Printed)]) -> Usage {
        let seconds = u64::try_from(wall_time.as_millis()).unwrap_or(u64::MAX);
        Usage {
            wall_time,
            cpu_time: self.cpu_time,
            memory_peak: self.memory_peak,
            processes_peak: self.processes_peak,
            disk: Bytes::default(),
            files: 0,
            output: Bytes::new(printed.iter().map(|(_, printed)| printed.total()).sum()),
            // An upper bound: the peak for the whole time.
            memory_byte_seconds: self
                .memory_byte_seconds
                .max(self.memory_peak.get().saturating_mul(seconds) / 1000),
        }
    }

    /// Returns what was seen.
    pub(crate) fn observed(self) -> Observed {
        self.observed
    }
}

/// Returns the layer that stands in the way of a program that is not listed.
fn layer(unlisted: Unlisted) -> Layer {
    match unlisted {
        Unlisted::Absent | Unlisted::Loader => Layer::Root,
        Unlisted::NotExecutable => Layer::Landlock,
    }
}
