//! A small directory, a home and a state directory of their own, the real program, and the groups that it makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What somebody outside says must be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demanded {
    /// The kernel holds every limit, by version 2.
    Hard,
    /// Nothing is delegated.
    Watched,
}

pub(crate) fn demanded() -> Option<Demanded> {
    let said = std::env::var("FUMEHOOD_TEST_GROUPS").ok()?;
    Some(match said.as_str() {
        "hard" => Demanded::Hard,
        "watched" => Demanded::Watched,
        other => panic!("FUMEHOOD_TEST_GROUPS is `{other}`: say `hard` or `watched`"),
    })
}

/// Places for one test.
pub(crate) struct Bench {
    top: TempDir,
    /// The group in which each start is alone.
    scope: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let top = tempfile::tempdir().expect("a directory");
        for directory in ["home", "ws"] {
            fs::create_dir(top.path().join(directory)).expect("makes a directory");
        }
        fs::write(top.path().join("ws/README"), "hello\n").expect("writes");
        Self { top, scope: new_scope() }
    }

    /// Tells whether each start is alone in a group.
    pub(crate) fn is_alone(&self) -> bool {
        self.scope.is_some()
    }

    /// Returns the program in the workspace, with nothing of our environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_fumehood");
        let mut command = match &self.scope {
            None => Command::new(program),
            Some(scope) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(scope).arg(program);
                command
            }
        };
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.top.path().join("home"));
        command.env("FUMEHOOD_STATE_DIR", self.top.path().join("state"));
        command.current_dir(self.top.path().join("ws")).args(words).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it starts")
    }

    /// Runs a command and returns what is on the record of it.
    pub(crate) fn shown(&self, options: &[&str], argv: &[&str]) -> Value {
        let words = [&["--json", "run"], options, &["--"], argv].concat();
        let child = self.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        let pid = child.id();
        let answer = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&answer.stderr).into_owned();
        let document = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let mut shown: Value = document.unwrap_or_else(|| panic!("{said}"));
        assert!(shown["end"].is_object(), "{said}");
        shown["pid"] = pid.into();
        shown
    }

    /// Runs a shell line under the strict profile.
    pub(crate) fn strict(&self, line: &str) -> Value {
        self.shown(&["--profile", "strict"], &["sh", "-c", line])
    }

    /// Returns what is left of a run: what its teardown says, and the groups of its supervisor.
    pub(crate) fn left(&self, shown: &Value) -> Vec<String> {
        let mut left: Vec<String> = shown["teardown"]["left"]
            .as_array()
            .unwrap_or_else(|| panic!("no teardown: {shown:#}"))
            .iter()
            .map(ToString::to_string)
            .collect();
        left.extend(self.groups_of(u32::try_from(shown["pid"].as_u64().expect("a number")).expect("is one")));
        if let Some(scope) = &self.scope {
            // The group that was given is as it was.
            let given = fs::read_to_string(scope.join("cgroup.subtree_control")).expect("is there");
            left.extend(given.split_whitespace().map(str::to_owned));
        }
        left
    }

    /// Returns the groups that a process made: their names begin with its process namespace and its number.
    pub(crate) fn groups_of(&self, pid: u32) -> Vec<String> {
        let namespace = fs::read_link("/proc/self/ns/pid").expect("there are namespaces");
        let namespace = namespace.to_string_lossy().replace(|letter: char| !letter.is_ascii_digit(), "");
        let mut found = Vec::new();
        below(Path::new("/sys/fs/cgroup"), &format!("{namespace}-{pid}-"), &mut found);
        found
    }

    /// Returns how a layer is held: the level, and by what.
    pub(crate) fn held(shown: &Value, layer: &str) -> (String, String) {
        let all = shown["held"].as_array().unwrap_or_else(|| panic!("{shown:#}"));
        let one = all.iter().find(|held| held["layer"] == layer).unwrap_or_else(|| panic!("{shown:#}"));
        let text = |name: &str| one[name].as_str().expect("text").to_owned();
        (text("level"), text("by"))
    }

    /// Tells whether a probe held; nothing when there was none.
    pub(crate) fn probe(shown: &Value, name: &str) -> Option<bool> {
        let probes = shown["sandbox"]["probes"].as_array().unwrap_or_else(|| panic!("{shown:#}"));
        probes.iter().find(|probe| probe["name"] == name).map(|probe| probe["held"] == true)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What a killed supervisor left in its scope goes with the scope, the inner groups first.
        for group in self.scope.iter().flat_map(|scope| tree(scope)) {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Makes a group below the directory that was delegated for that.
fn new_scope() -> Option<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let scopes = PathBuf::from(std::env::var_os("FUMEHOOD_TEST_SCOPES")?);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let scope = scopes.join(format!("scope-{}-{number}", std::process::id()));
    fs::create_dir(&scope).expect("the directory is ours");
    Some(scope)
}

/// Returns the directories of a tree, the innermost first.
fn tree(top: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(top).into_iter().flatten().flatten();
    let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = below.flat_map(|entry| tree(&entry.path())).collect();
    found.push(top.to_owned());
    found
}

fn below(directory: &Path, prefix: &str, found: &mut Vec<String>) {
    // A group may go while it is looked at.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path().to_string_lossy().into_owned());
        }
        below(&entry.path(), prefix, found);
    }
}

/// Returns what stands in a file of a group; nothing when it is gone.
pub(crate) fn text_of(group: &str, file: &str) -> String {
    fs::read_to_string(Path::new(group).join(file)).unwrap_or_default()
}

/// Waits for something that must come.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
