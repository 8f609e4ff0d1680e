//! A home, a workspace and a state directory for one meeting, and the program.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A transcript that is right.
pub(crate) const TRANSCRIPT: &[u8] = include_bytes!("../../../agent/transcripts/demo.jsonl");

/// What the program answered.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Whether what must not change did not.
    pub(crate) untouched: Result<(), String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        write!(
            f,
            "  code {:?}\n  stdout {:?}\n  stderr {:?}",
            self.code,
            text(&self.stdout),
            text(&self.stderr)
        )
    }
}

/// Places for one meeting.
pub(crate) struct Bench {
    top: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { top: tempfile::tempdir().expect("a directory") };
        for directory in ["home/.config/fumehood", "ws"] {
            fs::create_dir_all(bench.path(directory)).expect("makes a directory");
        }
        fs::write(bench.path("ws/README"), "text\n").expect("writes");
        fs::write(bench.path("ws/session.jsonl"), TRANSCRIPT).expect("writes");
        let (_, rules) = gate::BUNDLES[0];
        fs::write(bench.path("ws/rules.cedar"), rules).expect("writes");
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Makes a state directory with something in it, as an earlier run would have left it.
    pub(crate) fn used_state(&self) {
        let answer = self.run(&["task", "list"]);
        assert_eq!(answer.code, Some(0), "{answer}");
    }

    /// Starts the program in the workspace.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Answer {
        self.run_in(&self.path("ws"), words, &[])
    }

    pub(crate) fn run_with<S: AsRef<OsStr>>(&self, words: &[S], variables: &[(&str, &OsStr)]) -> Answer {
        self.run_in(&self.path("ws"), words, variables)
    }

    pub(crate) fn run_in<S: AsRef<OsStr>>(
        &self,
        at: &Path,
        words: &[S],
        variables: &[(&str, &OsStr)],
    ) -> Answer {
        let mut command = self.command(words);
        command.current_dir(at).envs(variables.iter().copied());
        answer(&mut command)
    }

    /// Starts the program through a shell line, in which `"$@"` stands for it.
    pub(crate) fn run_by_shell(&self, line: &str, words: &[&str]) -> Answer {
        let program = self.command(words);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line, "sh"]).arg(program.get_program()).args(program.get_args());
        shell.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(self.path("ws")).stdin(Stdio::null());
        answer(&mut shell)
    }

    fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fumehood"));
        command.args(words).stdin(Stdio::null()).env_clear();
        command
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("FUMEHOOD_STATE_DIR", self.state());
        command
    }

    /// Returns all files of the state directory with what they hold.
    pub(crate) fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut left = vec![self.state()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => left.push(path),
                    _ => files.push((path.clone(), fs::read(&path).unwrap_or_default())),
                }
            }
        }
        files.sort();
        files
    }
}

fn answer(command: &mut Command) -> Answer {
    let output = command.output().expect("the program starts");
    Answer { code: output.status.code(), stdout: output.stdout, stderr: output.stderr, untouched: Ok(()) }
}

/// Sets the mode of a file or directory.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Returns words as the operating system takes them.
pub(crate) fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
