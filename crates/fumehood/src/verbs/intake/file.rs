//! A file with what is wanted of a task. Whoever wrote it, it is read as hostile: bounded, and with every unknown key refused.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use model::Bytes;
use model::intake::{ChangeName, WorkLevel};
use model::text::escape;
use serde::Deserialize;

use crate::args::value::{ArgumentError, agent_name, claim, positive_bytes, positive_duration};
use crate::args::{AcceptanceOptions, BudgetOptions, LimitOptions, Millicpus, TaskNewArgs};
use crate::error::CliError;

/// The largest file that is read.
const FILE_MAX: u64 = 64 << 10;
/// The most entries of one list.
const ENTRIES_MAX: usize = 200;

/// What is wanted, as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IntakeFile {
    outcome: Option<String>,
    agent: Option<String>,
    level: Option<WorkLevel>,
    network: bool,
    deadline: Option<String>,
    profile: Option<String>,
    limits: LimitsTable,
    budget: BudgetTable,
    acceptance: AcceptanceTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsTable {
    memory: Option<String>,
    cpus: Option<f64>,
    processes: Option<u32>,
    disk: Option<String>,
    files: Option<u64>,
    wall_time: Option<String>,
    output: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BudgetTable {
    actions: Option<u64>,
    processor_time: Option<String>,
    tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AcceptanceTable {
    paths: Vec<String>,
    kinds: Vec<ChangeName>,
    tests: Vec<String>,
    artifacts: Vec<String>,
}

/// A file with everything in it read.
pub(super) struct Wanted(TaskNewArgs);

impl IntakeFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Wanted, CliError> {
        let mut options = File::options();
        // What is no file could keep us waiting for ever.
        options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(path).map_err(CliError::file("read", path))?;
        let mut bytes = Vec::new();
        file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(CliError::file("read", path))?;
        let wrong =
            |why: &str| CliError::Cannot(format!("`{}`: {}", escape(&path.to_string_lossy()), escape(why)));
        if bytes.len() as u64 > FILE_MAX {
            return Err(wrong("it has more than 64 KiB, and says more than anybody reads with care"));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
        let parsed: Self = toml::from_str(&text).map_err(|error| wrong(&placed(&text, &error)))?;
        parsed.wanted().map_err(|error| wrong(&error))
    }

    fn wanted(self) -> Result<Wanted, String> {
        let named = |key: &'static str| move |error: ArgumentError| format!("{key}: {error}");
        let time = |key: &'static str, text: Option<String>| -> Result<Option<Duration>, String> {
            text.map(|text| positive_duration(&text).map_err(named(key))).transpose()
        };
        let size = |key: &'static str, text: Option<String>| -> Result<Option<Bytes>, String> {
            text.map(|text| positive_bytes(&text).map_err(named(key))).transpose()
        };
        let number = |key: &'static str, number: Option<u64>| match number {
            Some(0) => Err(format!("{key}: 0 is nothing at all: give more, or leave it out")),
            number => Ok(number),
        };
        let LimitsTable { memory, cpus, processes, disk, files, wall_time, output } = self.limits;
        let pids = number("limits.processes", processes.map(u64::from))?.and_then(|n| u32::try_from(n).ok());
        let limits = LimitOptions {
            memory: size("limits.memory", memory)?,
            cpus: cpus
                .map(|cpus| cpus.to_string().parse::<Millicpus>())
                .transpose()
                .map_err(named("limits.cpus"))?,
            pids,
            disk: size("limits.disk", disk)?,
            files: number("limits.files", files)?,
            timeout: time("limits.wall_time", wall_time)?,
            output_limit: size("limits.output", output)?,
        };
        let AcceptanceTable { paths, kinds, tests, artifacts } = self.acceptance;
        let lists = [("paths", paths.len()), ("tests", tests.len()), ("artifacts", artifacts.len())];
        if let Some((name, _)) = lists.iter().find(|(_, entries)| *entries > ENTRIES_MAX) {
            return Err(format!("acceptance.{name}: more than {ENTRIES_MAX} entries"));
        }
        Ok(Wanted(TaskNewArgs {
            outcome: self.outcome.map(|text| claim(&text)).transpose().map_err(named("outcome"))?,
            agent: self.agent.map(|name| agent_name(&name)).transpose().map_err(named("agent"))?,
            level: self.level,
            network: self.network,
            deadline: time("deadline", self.deadline)?,
            profile: self.profile,
            budget: BudgetOptions {
                max_actions: number("budget.actions", self.budget.actions)?,
                max_processor_time: time("budget.processor_time", self.budget.processor_time)?,
                max_tokens: number("budget.tokens", self.budget.tokens)?,
            },
            acceptance: AcceptanceOptions { path: paths, kind: kinds, test: tests, artifact: artifacts },
            limits,
            ..TaskNewArgs::default()
        }))
    }
}

impl Wanted {
    /// Puts what the command line says over it.
    pub(super) fn under(self, line: TaskNewArgs) -> TaskNewArgs {
        let file = self.0;
        let list = |line: Vec<String>, file: Vec<String>| if line.is_empty() { file } else { line };
        let (budget, limits) = (line.budget, line.limits);
        TaskNewArgs {
            workspace: line.workspace,
            intake: line.intake,
            dirty: line.dirty,
            outcome: line.outcome.or(file.outcome),
            agent: line.agent.or(file.agent),
            level: line.level.or(file.level),
            network: line.network || file.network,
            deadline: line.deadline.or(file.deadline),
            profile: line.profile.or(file.profile),
            budget: BudgetOptions {
                max_actions: budget.max_actions.or(file.budget.max_actions),
                max_processor_time: budget.max_processor_time.or(file.budget.max_processor_time),
                max_tokens: budget.max_tokens.or(file.budget.max_tokens),
            },
            acceptance: AcceptanceOptions {
                path: list(line.acceptance.path, file.acceptance.path),
                kind: if line.acceptance.kind.is_empty() {
                    file.acceptance.kind
                } else {
                    line.acceptance.kind
                },
                test: list(line.acceptance.test, file.acceptance.test),
                artifact: list(line.acceptance.artifact, file.acceptance.artifact),
            },
            limits: LimitOptions {
                memory: limits.memory.or(file.limits.memory),
                cpus: limits.cpus.or(file.limits.cpus),
                pids: limits.pids.or(file.limits.pids),
                disk: limits.disk.or(file.limits.disk),
                files: limits.files.or(file.limits.files),
                timeout: limits.timeout.or(file.limits.timeout),
                output_limit: limits.output_limit.or(file.limits.output_limit),
            },
        }
    }
}

/// Says where in the file something is wrong, and what.
fn placed(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TaskNewArgs, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("writes");
        IntakeFile::read(file.path()).map(|wanted| wanted.0).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_all_that_options_can_and_they_go_before_it() {
        let text = "outcome = \"it works\"\nagent = \"m\"\nlevel = 6\ndeadline = \"2h\"\n[limits]\nmemory = \"1GiB\"\ncpus = 1.5\n\
                    processes = 64\n[budget]\nactions = 10\nprocessor_time = \"1h\"\ntokens = 1000\n[acceptance]\n\
                    paths = [\"src\"]\nkinds = [\"created\"]\ntests = [\"make check\"]\nartifacts = [\"report\"]\n";
        let file = read(text).expect("is right");
        assert_eq!((file.level, file.limits.cpus), (WorkLevel::try_from(6).ok(), Some(Millicpus(1500))));
        assert_eq!(file.acceptance.test, ["make check"]);
        let line = TaskNewArgs {
            level: WorkLevel::try_from(2).ok(),
            budget: BudgetOptions { max_actions: Some(3), ..BudgetOptions::default() },
            ..TaskNewArgs::default()
        };
        let both = Wanted(file).under(line);
        assert_eq!((both.level, both.budget.max_actions), (WorkLevel::try_from(2).ok(), Some(3)));
        assert_eq!((both.budget.max_tokens, both.acceptance.path), (Some(1000), vec!["src".to_owned()]));
    }

    #[test]
    fn a_hostile_file_is_refused_with_its_place() {
        let long = format!("outcome = \"{}\"", "x".repeat(70_000));
        let many = format!("[acceptance]\npaths = [{}]", "\"a\",".repeat(300));
        for (text, why) in [
            ("sensitivity = \"public\"", "line 1: unknown field"),
            ("outcome = \"a\"\nlevel = 7", "line 2: `7` is not a level"),
            ("level = -1", "line 1: "),
            ("deadline = \"soon\"", "deadline: "),
            ("deadline = \"0s\"", "deadline: "),
            ("outcome = \"a\\u0000b\"", "outcome: "),
            ("agent = \"a b\"", "agent: "),
            ("[limits]\nmemory = \"lots\"", "limits.memory: "),
            ("[limits]\ncpus = nan", "limits.cpus: "),
            ("[budget]\nactions = 0", "budget.actions: "),
            ("[acceptance]\nkinds = [\"renamed\"]", "line 2: unknown variant"),
            ("[acceptance]\npaths = \"src\"", "line 2: "),
            ("outcome = ", "line 1: "),
            (&long, "64 KiB"),
            (&many, "more than 200 entries"),
        ] {
            let error = read(text).map(|_| ()).expect_err(why);
            let shown: String = text.chars().take(40).collect();
            assert!(error.contains(why), "{shown}: {error}");
        }
        let error = read("\"\\u001b[31m\" = 1").map(|_| ()).expect_err("is refused");
        assert!(!error.contains('\u{1b}'), "{error:?}");
        assert!(IntakeFile::read(Path::new("/dev/null/x")).is_err());
    }
}
