//! A directory with a project in it, and the two ways to run a command there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What tools are told about the outside, and the same inside. Everything else that a test runner sets (cargo sets
/// much) would make the two runs differ.
const KEPT: [&str; 15] = [
    "CARGO_HOME",
    "CURL_CA_BUNDLE",
    "HOME",
    "LANG",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "PIP_CERT",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "USER",
];

/// A scratch directory with a project.
pub(crate) struct Bench {
    top: tempfile::TempDir,
}

/// What became of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let top =
            tempfile::Builder::new().prefix("fumehood-real-work.").tempdir().expect("a scratch directory");
        let bench = Self { top };
        fs::create_dir(bench.project()).expect("a project directory");
        bench
    }

    /// Returns the directory of the project, which is the workspace.
    pub(crate) fn project(&self) -> PathBuf {
        self.top.path().join("project")
    }

    /// Returns a directory beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, contents: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, contents).expect("a file");
    }

    /// Runs a shell command outside that must succeed: fetching, unpacking, installing.
    pub(crate) fn prepare(&self, script: &str) {
        let ran = self.outside(script);
        assert_eq!(ran.code, Some(0), "`{script}` failed outside:\n{}\n{}", ran.stdout, ran.stderr);
    }

    /// Runs a shell command outside, in the project.
    pub(crate) fn outside(&self, script: &str) -> Ran {
        ran(self.command("bash").args(["-c", script]))
    }

    /// Runs a shell command inside, in the project. What it changes stays in a layer.
    pub(crate) fn inside(&self, script: &str) -> Ran {
        let mut command = self.command(env!("CARGO_BIN_EXE_fumehood"));
        command.env("FUMEHOOD_STATE_DIR", self.top.path().join("state"));
        ran(command.args(["run", "--apply", "never", "--", "bash", "-c", script]))
    }

    /// Runs a shell command inside and then outside, and requires the same exit code and the same facts about its
    /// output; returns what it said inside.
    pub(crate) fn same(&self, script: &str, facts: impl Fn(&str) -> Vec<String>) -> Ran {
        let inside = self.inside(script);
        let outside = self.outside(script);
        let both = format!(
            "inside:\n{}\n{}\noutside:\n{}\n{}",
            inside.stdout, inside.stderr, outside.stdout, outside.stderr
        );
        assert_eq!(inside.code, outside.code, "{both}");
        let found = facts(&inside.stdout);
        assert!(!found.is_empty(), "nothing was found in the output\n{both}");
        assert_eq!(found, facts(&outside.stdout), "{both}");
        inside
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.project()).env_clear();
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }
}

impl Drop for Bench {
    /// Go and other tools write directories that nobody may write to, which would stay otherwise.
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+w"]).arg(self.top.path()).output();
    }
}

fn ran(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Returns every line.
pub(crate) fn lines(output: &str) -> Vec<String> {
    output.lines().map(str::to_owned).collect()
}

/// Returns the results of `cargo test` without how long they took.
pub(crate) fn cargo_results(output: &str) -> Vec<String> {
    let results = output.lines().filter(|line| line.starts_with("test result:"));
    results.map(|line| line.split("; finished in").next().unwrap_or(line).to_owned()).collect()
}

/// Returns the closing line of `pytest` without how long it took.
pub(crate) fn pytest_results(output: &str) -> Vec<String> {
    let results = output.lines().filter(|line| line.contains(" passed") || line.contains(" failed"));
    results.map(|line| line.split(" in ").next().unwrap_or(line).to_owned()).collect()
}

/// Returns the counts of a test run that speaks TAP.
pub(crate) fn tap_results(output: &str) -> Vec<String> {
    let is_count = |line: &&str| ["# tests", "# pass", "# fail"].iter().any(|start| line.starts_with(start));
    output.lines().filter(is_count).map(str::to_owned).collect()
}

/// Tells whether a program is on this machine.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}
