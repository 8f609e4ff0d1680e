//! A repository, a home and a state directory of their own, and the real program in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The transcript that ships with the program.
pub(crate) const DEMO: &str = include_str!("../../../agent/transcripts/demo.jsonl");

/// A repository with one commit, in the hands of nobody else.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    /// Makes the repository that the demo is about.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let bench = Self { directory };
        fs::create_dir_all(bench.path("home/.ssh")).expect("a home");
        fs::write(bench.path("home/.ssh/id_ed25519"), "the key in home\n").expect("a file");
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        for name in ["README.md", "src/slug.sh", "tests/run.sh"] {
            let to = bench.repository().join(name);
            fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
            fs::copy(demo.join(name), to).expect("a copy");
        }
        bench.git(&["init", "--quiet", "--initial-branch=main"]);
        bench.git(&["remote", "add", "origin", "git://192.0.2.7/slug.git"]);
        bench.git(&["add", "."]);
        bench.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "-m",
            "first",
        ]);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        let output = git.arg("-C").arg(self.repository()).args(arguments).output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Writes a transcript in which each turn makes one call.
    pub(crate) fn transcript(&self, calls: &[(&str, Value)]) -> PathBuf {
        let mut text =
            json!({ "fumehood_replay": 1, "model": "deepseek-flash", "task": "t" }).to_string() + "\n";
        for (at, (name, arguments)) in calls.iter().enumerate() {
            let call = json!({ "name": name, "arguments": arguments });
            let turn = json!({ "turn": at + 1, "reasoning": "I think so.", "tool_calls": [call] });
            text.push_str(&format!("{turn}\n"));
        }
        text.push_str(&format!("{}\n", json!({ "end": calls.len() })));
        self.file("transcript.jsonl", &text)
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// Returns the program in the repository, with a state directory of its own and nothing of our environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fumehood"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        command.env("FUMEHOOD_STATE_DIR", self.path("state")).current_dir(self.repository());
        // `cargo xtask disarm` chooses by this what the program leaves out.
        command.envs(std::env::var_os("FUMEHOOD_TEST_MUTANT").map(|mutant| ("FUMEHOOD_TEST_MUTANT", mutant)));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// Runs the program, which must say something in JSON, and returns that with its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.run(arguments);
        (output.status.code().unwrap_or(-1), answer(&output))
    }

    /// Starts the program in the background.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Returns the id of the only task.
    pub(crate) fn task(&self) -> String {
        let (_, tasks) = self.json(&["task", "list", "--all", "--json"]);
        let tasks = tasks["tasks"].as_array().expect("a list").clone();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks[0]["task"].as_str().expect("an id").to_owned()
    }
}

/// Reads what the program answered.
pub(crate) fn answer(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}\nstderr: {}", String::from_utf8_lossy(&output.stderr));
    })
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
