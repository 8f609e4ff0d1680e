//! Parts of an action as the record has them, in the form for programs.

use model::change::Change;
use model::event::OutputRecord;
use model::evidence::StepTime;
use model::grant::{Grant, GrantedProgram, Programs};
use model::{Limits, Usage};

use super::{ChangePart, GrantPart, LimitsPart, OutputPart, ProgramPart, StepPart, UsagePart};

impl From<Grant> for GrantPart {
    fn from(grant: Grant) -> Self {
        let Grant { workspace, network, profile, programs, inputs, shown_credentials, terminal, hidden } =
            grant;
        let programs = match programs {
            Programs::Any => None,
            Programs::Only(files) => Some(files.into_iter().map(ProgramPart::from).collect()),
        };
        let limits = LimitsPart::from(&profile.limits);
        Self {
            workspace,
            network,
            profile: profile.name,
            limits,
            programs,
            inputs,
            shown_credentials,
            terminal,
            hidden,
        }
    }
}

impl From<GrantedProgram> for ProgramPart {
    fn from(GrantedProgram { file, digest }: GrantedProgram) -> Self {
        Self { file, digest }
    }
}

impl From<&Limits> for LimitsPart {
    fn from(limits: &Limits) -> Self {
        Self {
            memory: limits.memory.get(),
            processes: limits.processes,
            millicpus: limits.millicpus,
            wall_time_ms: limits.wall_time,
            disk: limits.disk.get(),
            files: limits.files,
            disk_mode: limits.disk_mode,
            output: limits.output.get(),
            open_files: limits.open_files,
            file_size: limits.file_size.get(),
        }
    }
}

impl From<Usage> for UsagePart {
    fn from(usage: Usage) -> Self {
        Self {
            wall_time_ms: usage.wall_time,
            cpu_time_ms: usage.cpu_time,
            memory_peak: usage.memory_peak.get(),
            processes_peak: usage.processes_peak,
            disk: usage.disk.get(),
            files: usage.files,
            output: usage.output.get(),
            memory_byte_seconds: usage.memory_byte_seconds,
        }
    }
}

impl From<StepTime> for StepPart {
    fn from(step: StepTime) -> Self {
        Self { step: step.step, time_ms: step.time }
    }
}

impl From<OutputRecord> for OutputPart {
    fn from(output: OutputRecord) -> Self {
        let OutputRecord { stream, digest, kept, dropped } = output;
        Self { stream, digest, kept, dropped }
    }
}

impl From<Change> for ChangePart {
    fn from(change: Change) -> Self {
        let Change { path, kind, file, mode, size, ignored } = change;
        let mode = (kind != model::ChangeKind::Deleted).then(|| format!("{mode:04o}"));
        Self { path, kind, file, mode, size, ignored }
    }
}
