//! A small repository, a home and a state directory of their own, and the real program.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Places for one test.
pub(crate) struct Bench {
    top: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { top: tempfile::tempdir().expect("a directory") };
        for directory in ["home", "ws/src", "ws/docs"] {
            fs::create_dir_all(bench.path(directory)).expect("makes a directory");
        }
        bench.write("README", "one\ntwo\nthree\n");
        bench.write("src/code", "code\n");
        bench.write("docs/page", "page\n");
        bench.write(".gitignore", "build/\n");
        bench.git(&["init", "--quiet", "--initial-branch=main"]);
        bench.commit();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    /// Returns a path in the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("ws").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("writes");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub(crate) fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "safe.directory=*"]);
        let output = git.current_dir(self.path("ws")).args(words).output().expect("git starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns what git on the host prints.
    pub(crate) fn git_says(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        let output = git.current_dir(self.path("ws")).args(words).output().expect("git starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "state"]);
    }

    /// Returns the program in the workspace, with nothing of our environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_fumehood")), words)
    }

    /// Returns a program, by another name perhaps, in the workspace.
    pub(crate) fn command_of<S: AsRef<OsStr>>(&self, program: &Path, words: &[S]) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        command.env("FUMEHOOD_STATE_DIR", self.path("state")).current_dir(self.path("ws"));
        // `cargo xtask disarm` chooses by this what the program leaves out.
        command.envs(std::env::var_os("FUMEHOOD_TEST_MUTANT").map(|mutant| ("FUMEHOOD_TEST_MUTANT", mutant)));
        command.args(words).stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Answer {
        Answer::of(self.command(words).output().expect("it starts"))
    }

    /// Runs a shell line in a sandbox.
    pub(crate) fn sh(&self, line: &str) -> Answer {
        self.run(&["run", "--", "sh", "-c", line])
    }

    /// Runs the program and reads the JSON that it prints.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let answer = self.run(words);
        serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    pub(crate) fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Writes the settings of the person.
    pub(crate) fn settings(&self, text: &str) {
        let directory = self.path("home/.config/fumehood");
        fs::create_dir_all(&directory).expect("makes a directory");
        fs::write(directory.join("fumehood.toml"), text).expect("writes");
    }

    /// Returns the newest action.
    pub(crate) fn newest(&self) -> String {
        self.json(&["show", "--json"])["action"].as_str().expect("an id").to_owned()
    }
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Checks a document against its committed schema.
pub(crate) fn fits(name: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas").join(format!("{name}.json"));
    let schema = fs::read_to_string(path).expect("the schema is committed");
    let schema: Value = serde_json::from_str(&schema).expect("is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    if let Err(error) = validator.validate(value) {
        panic!("{name}: {error} at {}\n{value:#}", error.instance_path());
    }
}
