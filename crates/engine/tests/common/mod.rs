//! An engine with a state directory of its own, and a repository with one commit.
#![allow(dead_code, reason = "not every test needs everything")]
#![allow(clippy::disallowed_methods, reason = "the tests make repositories with git")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Config, Engine, EngineError, Finished, Io, Order, Outcome, Silent, TaskChoice, Workspace};
use model::action::Principal;
use model::task::Task;
use model::{ActionRequest, Grant, OsText, Profile, Tool};
use sandbox::{Identity, Stream};
use tempfile::TempDir;

/// A state directory and a repository with one commit.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) engine: Engine,
}

/// How an engine on this directory is configured.
pub(crate) fn config(directory: &TempDir) -> Config {
    let environment = [("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())].into();
    Config {
        state_dir: directory.path().join("state"),
        run_as: Identity { uid: 64_500, gid: 64_500 },
        user: "ada".to_owned(),
        account: 1000,
        owners: [1000].into(),
        egress: Vec::new(),
        credentials: Vec::new(),
        canaries: Vec::new(),
        registries: Vec::new(),
        gateway: None,
        roles: engine::Roles::default(),
        home: directory.path().join("home"),
        environment,
        secrets: Vec::new(),
        anchor: None,
        service_manager: None,
        answers: None,
        policy: engine::PolicySource::Bundle("default".to_owned()),
        helper_profile: Profile::default_profile(),
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("home")).expect("a home");
        let engine = Engine::open(config(&directory)).expect("opens");
        let bench = Self { directory, engine };
        fs::create_dir(bench.repository()).expect("a repository");
        bench.git(&["init", "--quiet", "--initial-branch=main"]);
        fs::write(bench.repository().join("a.txt"), "committed\n").expect("a file");
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

    pub(crate) fn repository(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.directory.path().join("home"));
        let output = git.arg("-C").arg(self.repository()).args(arguments).output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn workspace(&self, path: &Path) -> Workspace {
        Workspace::find(
            Some(path),
            Path::new("/"),
            &self.engine.config().home,
            &self.engine.config().state_dir,
        )
        .expect("a workspace")
    }

    /// Opens a task on a directory as it stands.
    pub(crate) fn live(&self, path: &Path) -> Task {
        let owner = Principal::User("ada".into());
        self.engine.task_for(&self.workspace(path), &TaskChoice::New, &owner, None).expect("opens")
    }

    /// Opens a task on the commit of a repository.
    pub(crate) fn start(&self, path: &Path) -> Result<Task, EngineError> {
        let workspace = self.workspace(path);
        let task = self.engine.open_task_at_commit(&workspace, &Principal::User("ada".into()), None)?;
        self.engine.make_base(&task, &workspace, &Profile::default_profile())
    }

    pub(crate) fn shell(&self, task: &Task, path: &Path, script: &str) -> (Finished, String) {
        self.shell_under(&Profile::default_profile(), task, path, script)
    }

    pub(crate) fn shell_under(
        &self,
        profile: &Profile,
        task: &Task,
        path: &Path,
        script: &str,
    ) -> (Finished, String) {
        self.take(task, self.order(profile, path, script))
    }

    /// An agent's order to run a script.
    pub(crate) fn order(&self, profile: &Profile, path: &Path, script: &str) -> Order {
        let profile = profile.clone();
        let argv = ["sh", "-c", script].map(OsText::literal).to_vec();
        Order {
            request: ActionRequest {
                principal: Principal::Agent("m".into()),
                tool: Tool::Run { argv },
                directory: None,
                environment: BTreeMap::new(),
                purpose: None,
            },
            grant: Grant::under(profile.clone()),
            profile,
            workspace: self.workspace(path),
            mutant: None,
        }
    }

    pub(crate) fn handle(&self, task: &Task, order: Order) -> Outcome {
        let io = Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None };
        self.engine.handle(task, order, io, || {}).expect("the engine works")
    }

    pub(crate) fn take(&self, task: &Task, order: Order) -> (Finished, String) {
        match self.handle(task, order) {
            Outcome::Finished(finished) => {
                let out = finished.printed.iter().find(|(stream, _)| *stream == Stream::Out);
                let err = finished.printed.iter().find(|(stream, _)| *stream == Stream::Err);
                let text =
                    [out, err].into_iter().flatten().map(|(_, printed)| printed.kept()).collect::<Vec<_>>();
                let text = String::from_utf8_lossy(&text.concat()).into_owned();
                (*finished, text)
            }
            other => panic!("it did not run: {other:?}"),
        }
    }
}
