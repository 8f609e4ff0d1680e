//! A workspace, a home, and places for temporary files and state of their own, and the real program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use engine::store::{ActionState, Store};
use tempfile::TempDir;

/// Places for one test.
pub(crate) struct Bench {
    top: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { top: tempfile::tempdir().expect("a directory") };
        for directory in ["home", "ws/src", "tmp", "runtime"] {
            fs::create_dir_all(bench.path(directory)).expect("makes a directory");
        }
        fs::write(bench.path("ws/src/file"), "below\n").expect("writes");
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    pub(crate) fn top(&self) -> &Path {
        self.top.path()
    }

    /// Returns the program in the workspace, with nothing of our environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fumehood"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.path("home"));
        command.env("TMPDIR", self.path("tmp")).env("XDG_RUNTIME_DIR", self.path("runtime"));
        command.env("FUMEHOOD_STATE_DIR", self.path("state")).current_dir(self.path("ws"));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs the program and demands that it ends well.
    pub(crate) fn run(&self, words: &[&str]) {
        let output = self.command(words).stderr(Stdio::piped()).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Counts the actions by the state that they came to, and demands that it is a last one.
    pub(crate) fn states(&self) -> BTreeMap<ActionState, u32> {
        let store = Store::open(&self.path("state")).expect("the state is opened");
        let mut states = BTreeMap::new();
        let tasks = store.read(|reader| reader.tasks()).expect("tasks are read");
        for overview in tasks {
            for action in store.read(|reader| reader.actions(&overview.task.id)).expect("actions are read") {
                assert!(action.state.is_final(), "{} is still {}", action.id, action.state.name());
                *states.entry(action.state).or_insert(0) += 1;
            }
        }
        states
    }

    /// Returns what the state directory should not hold when nothing runs.
    pub(crate) fn half_done(&self) -> Vec<PathBuf> {
        let names = |directory: &Path| {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let mut found = names(&self.path("state/run"));
        for layers in names(&self.path("state/tasks")).iter().map(|task| names(&task.join("layers"))) {
            found.extend(layers.iter().map(|layer| layer.join("work")).filter(|work| work.exists()));
        }
        found
    }
}
