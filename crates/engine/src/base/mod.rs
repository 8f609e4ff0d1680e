//! Tasks that start from a commit: the commit is checked out once, into a directory that nobody edits.
//!
//! Guarantees: git runs in a sandbox, on the repository read-only, as a helper of the engine's own (class `internal`,
//! decided and recorded like every action); what it leaves is taken only as a directory; a base is there as a whole or
//! not at all, and is never written again. Tasks of one workspace that start from one commit share it.
//! Leaves to others: what is in the base. It is as little to be trusted as the repository.

mod committed;
mod garbage;
mod helper;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use model::action::{Base, Principal};
use model::event::Event;
use model::grant::Input;
use model::task::{Task, TaskState};
use model::{ActionId, Ending, Profile};
use sandbox::Stream;

use crate::error::EngineError;
use crate::lock::Lock;
use crate::outcome::{Finished, Outcome};
use crate::tasks::about;
use crate::{Engine, Workspace};

pub(crate) use committed::Unmoved;
pub use committed::{CommittedFile, REPOSITORY_RULES, REPOSITORY_SETTINGS, RepositoryFiles};
pub use helper::{Helper, Sees};

/// The name by which policy knows this helper.
const SERVICE: &str = "git";
/// Where the helper leaves what it checked out, among its artifacts.
const CHECKED_OUT: &str = "base";

/// Clones the repository of the current directory to the artifacts and checks the commit `$1` out.
///
/// Addresses of remotes are kept so that what an agent tries with them is seen, but no password in them. The commit is
/// checked out without a branch: tasks that start from one commit share the base, whatever branch was current. That the
/// repository belongs to another id inside is said in a file, because the other end of a clone does not get variables.
const CHECK_OUT: &str = r#"set -eu
base=/artifacts/base
git config --global --add safe.directory '*'
git clone --quiet --no-checkout --no-hardlinks --template= -- "$PWD" "$base"
git -C "$base" config --remove-section remote.origin
git remote | while IFS= read -r name; do
    url=$(git config --get "remote.$name.url" |
        sed -e 's#^\(https\{0,1\}://\)[^/]*@#\1#' -e 's#^\([a-z+]*://[^/@:]*\):[^/]*@#\1@#')
    git -C "$base" remote add -- "$name" "$url"
done
git -C "$base" checkout --quiet --force --detach "$1" --
"#;

/// What git is told in every helper: no program of the repository is run, nothing is asked for, and nobody's settings
/// but the cleaned ones of the caller count. That the repository belongs to another id inside is known and fine.
const GIT_SETTINGS: [(&str, &str); 5] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("protocol.ext.allow", "never"),
    ("safe.directory", "*"),
];
const GIT_VARIABLES: [(&str, &str); 4] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // Large files stay pointers: there is no network to get them from.
    ("GIT_LFS_SKIP_SMUDGE", "1"),
];

impl Engine {
    /// Opens a task that is to start from the commit that is checked out in the workspace. It can be worked on when
    /// [`Engine::make_base`] is done; until then it is `stopped`.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn open_task_at_commit(
        &self,
        workspace: &Workspace,
        owner: &Principal,
        title: Option<&str>,
    ) -> Result<Task, EngineError> {
        self.open_task_as(workspace, owner, title, Base::Live, TaskState::Stopped)
    }

    /// Checks the current commit of the workspace out, puts it below the task and opens the task. A task that has its
    /// base is returned as it is.
    ///
    /// `profile` is what the helpers of ours ask for; it is the operator's, so it is never wider than policy.
    ///
    /// # Errors
    /// When the workspace is no repository or has no commit, git fails, or the state cannot be written. The task is
    /// discarded then, and the error says what can be done.
    pub fn make_base(
        &self,
        task: &Task,
        workspace: &Workspace,
        profile: &Profile,
    ) -> Result<Task, EngineError> {
        if matches!(task.base, Base::Commit { .. }) {
            return Ok(task.clone());
        }
        let made = self.checked_out(task, workspace, profile);
        if made.is_err() {
            self.set_task_state(&task.id, TaskState::Discarded)?;
        }
        let (commit, by, _alone) = made?;
        let base = Base::Commit { commit: commit.clone() };
        self.record(&about(&task.id), &Event::BaseMade { commit, by }, |writer, time| {
            writer.set_base(&task.id, &base, time)
        })?;
        let task = Task { base, state: TaskState::Open, ..task.clone() };
        self.begin_stages(&task)?;
        Ok(task)
    }

    /// Sees to it that the current commit lies checked out in its place; returns it, the helper that did it, and the lock
    /// that keeps it there until the record says that it is needed.
    fn checked_out(
        &self,
        task: &Task,
        workspace: &Workspace,
        profile: &Profile,
    ) -> Result<(String, Option<ActionId>, Lock), EngineError> {
        let git = Git { engine: self, task, workspace, profile };
        let commit = git.current_commit()?;
        let place = self.places().base(&task.workspace, &commit);
        let bases = self.places().bases();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&bases)
            .map_err(EngineError::file("make", &bases))?;
        let alone = Lock::take(&place.with_extension("lock"), || {})?;
        if place.is_dir() {
            return Ok((commit, None, alone));
        }
        let by = git.check_out(&commit, &place)?;
        Ok((commit, Some(by), alone))
    }
}

/// Runs git on one workspace.
pub(crate) struct Git<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) task: &'a Task,
    pub(crate) workspace: &'a Workspace,
    pub(crate) profile: &'a Profile,
}

impl Git<'_> {
    pub(crate) fn current_commit(&self) -> Result<String, EngineError> {
        if fs::symlink_metadata(self.workspace.path.join(".git")).is_err() {
            return Err(self.failed("it is not a git repository"));
        }
        let finished = self.run(&["git", "rev-parse", "--quiet", "--verify", "HEAD^{commit}"])?;
        if finished.ending == (Ending::Exited { status: 1 }) {
            return Err(self.failed("it has no commit yet"));
        }
        let printed = self.succeeded(&finished)?;
        let commit = printed.trim();
        let is_name = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_name { Ok(commit.to_owned()) } else { Err(self.failed("git did not name a commit")) }
    }

    /// Lets a helper check the commit out, and moves what it left to its place.
    fn check_out(&self, commit: &str, place: &Path) -> Result<ActionId, EngineError> {
        let finished = self.run(&["sh", "-c", CHECK_OUT, "check-out", commit])?;
        self.succeeded(&finished)?;
        let artifacts = self.engine.places().artifacts(&self.task.id, &finished.action);
        take_directory(&artifacts.join(CHECKED_OUT), place)?;
        // Empty by now; what else the helper left there is nobody's.
        sandbox::remove_tree(&artifacts).map_err(EngineError::file("remove", &artifacts))?;
        Ok(finished.action.clone())
    }

    fn run(&self, argv: &[&str]) -> Result<Box<Finished>, EngineError> {
        self.run_seeing(argv, Sees::Host, Vec::new())
    }

    pub(crate) fn run_seeing(
        &self,
        argv: &[&str],
        sees: Sees,
        inputs: Vec<Input>,
    ) -> Result<Box<Finished>, EngineError> {
        let helper = Helper {
            service: SERVICE,
            argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
            environment: environment(),
            profile: self.profile.clone(),
            workspace: self.workspace.clone(),
            sees,
            inputs,
        };
        match self.engine.help(self.task, helper)? {
            Outcome::Finished(finished) => Ok(finished),
            Outcome::NotStarted(not_started) => {
                Err(self.failed(format!("the sandbox for git could not be built: {}", not_started.reason)))
            }
            Outcome::Denied { action, .. } | Outcome::NeedsApproval { action, .. } => {
                Err(self.failed(format!("policy does not allow git: `fumehood why {action}` says more")))
            }
        }
    }

    /// Returns what a helper printed, when it did well.
    pub(crate) fn succeeded(&self, finished: &Finished) -> Result<String, EngineError> {
        match &finished.ending {
            Ending::Exited { status: 0 } => Ok(finished.text(Stream::Out)),
            Ending::NotFound | Ending::Exited { status: 127 } => {
                Err(self.failed("git is not installed where a sandbox sees it (`apt install git`)"))
            }
            ending => Err(self.failed(format!("git {ending}: {}", finished.last_error()))),
        }
    }

    pub(crate) fn failed(&self, why: impl Into<String>) -> EngineError {
        EngineError::Base { path: self.workspace.path.clone(), why: why.into() }
    }
}

/// Returns the variables of a helper that runs git.
fn environment() -> Vec<(String, String)> {
    let settings = GIT_SETTINGS.iter().enumerate().flat_map(|(at, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()),
            (format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()),
        ]
    });
    let count = ("GIT_CONFIG_COUNT".to_owned(), GIT_SETTINGS.len().to_string());
    let fixed = GIT_VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    settings.chain([count]).chain(fixed).collect()
}

/// Moves a directory that a helper left to its place: in full, on the disk, or not at all.
fn take_directory(from: &Path, to: &Path) -> Result<(), EngineError> {
    let failed = EngineError::file("take over", from);
    let take = || {
        if !fs::symlink_metadata(from)?.is_dir() {
            return Err(std::io::Error::from(std::io::ErrorKind::NotADirectory));
        }
        // After a loss of power a base must not be there with files that are not.
        rustix::fs::syncfs(fs::File::open(from)?)?;
        fs::rename(from, to)
    };
    take().map_err(failed)
}
