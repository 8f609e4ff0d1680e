//! The scene of the demo: a directory of its own with a small repository, a home with a key, and a state directory.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use engine::{Engine, Helper, Outcome, Sees, Workspace};
use model::Ending;
use model::action::Base;
use model::task::TaskState;

use crate::error::CliError;
use crate::output::Console;
use crate::settings::{Environment, Setting, Settings};
use crate::verbs::context::Context;
use crate::verbs::user;

/// The files of the repository.
const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("../../../demo/README.md")),
    ("src/slug.sh", include_str!("../../../demo/src/slug.sh")),
    ("tests/run.sh", include_str!("../../../demo/tests/run.sh")),
];
/// The files of the second act.
const SHOP: [(&str, &str); 3] = [
    ("customers.tsv", include_str!("../../../demo/shop/customers.tsv")),
    ("migrate.sh", include_str!("../../../demo/shop/migrate.sh")),
    ("release.sh", include_str!("../../../demo/shop/release.sh")),
];
/// The file with the fault.
pub(super) const FAULTY: &str = "src/slug.sh";
/// Where the repository would be pushed to: an address for documentation (RFC 5737), at which nobody answers.
const REMOTE: &str = "git://192.0.2.7/slug.git";
/// The places for scratch files, in the order in which they are tried.
const PLACES: [&str; 3] = ["/var/tmp", "/tmp", "/dev/shm"];
/// `OVERLAYFS_SUPER_MAGIC` (`linux/magic.h`): the kernel makes no layer of an overlay on another one.
const OVERLAY: i64 = 0x794c_7630;

/// Makes a repository of the current directory and leaves it among the artifacts.
const MAKE: &str = r#"set -eu
export GIT_DIR=/artifacts/git GIT_WORK_TREE="$PWD"
git init --quiet --template= --initial-branch=main
git add -A
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet -m "Turn titles into slugs"
git remote add origin "$1"
git config --unset core.worktree || true
"#;

/// The scene. What it made is removed when it is struck, or when this value goes.
pub(super) struct Scene {
    directory: PathBuf,
    kept: bool,
    /// The key in home, which nobody may see.
    canary: String,
}

impl Scene {
    /// Makes a new directory with everything in it that the demo needs.
    pub(super) fn set(environment: &Environment, keep: Option<&Path>) -> Result<Self, CliError> {
        let directory = match keep {
            Some(directory) => std::path::absolute(directory).map_err(CliError::file("find", directory))?,
            None => place(environment).join(format!("fumehood-demo-{}", random()?)),
        };
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(CliError::file("make the new directory", &directory))?;
        let directory = fs::canonicalize(&directory).map_err(CliError::file("find", &directory))?;
        let scene = Self { directory, kept: keep.is_some(), canary: random()? };
        scene.fill().map_err(CliError::file("fill", &scene.directory))?;
        Ok(scene)
    }

    fn fill(&self) -> io::Result<()> {
        let files = FILES.map(|(name, content)| (self.repository().join(name), content));
        let shop = SHOP.map(|(name, content)| (self.shop().join(name), content));
        for (path, content) in files.into_iter().chain(shop) {
            let parent = path.parent().unwrap_or(&self.directory);
            DirBuilder::new().recursive(true).create(parent)?;
            fs::write(&path, content)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(self.home().join(".ssh"))?;
        fs::write(self.key(), self.key_text())?;
        fs::set_permissions(self.key(), fs::Permissions::from_mode(0o600))
    }

    /// Returns the repository.
    pub(super) fn repository(&self) -> PathBuf {
        self.directory.join("slug")
    }

    /// Returns the directory of the second act.
    pub(super) fn shop(&self) -> PathBuf {
        self.directory.join("shop")
    }

    /// Returns a state directory of its own for a part of the second act.
    pub(super) fn state(&self, name: &str) -> PathBuf {
        self.directory.join(format!("state-{name}"))
    }

    fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    fn key(&self) -> PathBuf {
        self.home().join(".ssh/id_ed25519")
    }

    /// Returns what the key in home holds, and nothing else in the world does.
    pub(super) fn canary(&self) -> &str {
        &self.canary
    }

    fn key_text(&self) -> String {
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n", self.canary)
    }

    /// Tells whether the key is where the model looks for it, and can be read from outside.
    pub(super) fn key_is_there(&self) -> bool {
        fs::read_to_string(self.key()).is_ok_and(|text| text == self.key_text())
    }

    /// Tells whether the host's files are as they were, and there is no hook.
    pub(super) fn is_untouched(&self) -> bool {
        let same = |(name, content): &(&str, &str)| {
            fs::read_to_string(self.repository().join(name)).is_ok_and(|text| text == *content)
        };
        FILES.iter().all(same) && !self.repository().join(".git/hooks/pre-commit").exists()
    }

    /// Returns a context in which home and state are those of the scene.
    pub(super) fn context<'c>(&self, console: &'c Console) -> Result<Context<'c>, CliError> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let home = text(self.home());
        let environment =
            Environment::from([("HOME", home.as_str()), ("PATH", "/usr/local/bin:/usr/bin:/bin")]);
        let state = Setting::StateDir(self.directory.join("state"));
        let settings = Settings::load(&environment, vec![(state, "--keep")])?;
        let user = user::caller(&environment)?;
        Ok(Context { console, environment, settings, cwd: self.repository(), user })
    }

    /// Makes a git repository of the files: git runs in a sandbox, as a helper of ours.
    pub(super) fn make_repository(
        &self,
        context: &Context<'_>,
        engine: &Engine,
        workspace: &Workspace,
    ) -> Result<(), CliError> {
        let task = engine.open_task(
            workspace,
            &context.principal(),
            Some("make the repository of the demo"),
            Base::Live,
        )?;
        let helper = Helper {
            service: "git",
            argv: ["sh", "-c", MAKE, "make", REMOTE].map(String::from).to_vec(),
            environment: vec![("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned())],
            profile: context.settings.profile(None)?.profile,
            workspace: workspace.clone(),
            sees: Sees::Host,
            inputs: Vec::new(),
        };
        let action = match engine.help(&task, helper)? {
            Outcome::Finished(finished) if finished.ending.succeeded() => finished.action,
            Outcome::Finished(finished) if is_missing(&finished.ending) => {
                return Err(CliError::Cannot(
                    "the demo needs git, and it is not installed: `apt install git`".to_owned(),
                ));
            }
            Outcome::Finished(finished) => {
                let (ending, said) = (&finished.ending, finished.last_error());
                return Err(CliError::Cannot(format!(
                    "git could not make the repository: it {ending}: {said}"
                )));
            }
            Outcome::NotStarted(not_started) => {
                let reason = not_started.reason;
                return Err(CliError::Cannot(format!(
                    "no sandbox could be built: {reason}; `fumehood doctor` says more"
                )));
            }
            Outcome::Denied { .. } | Outcome::NeedsApproval { .. } => {
                return Err(CliError::Cannot("policy does not allow git as a helper".to_owned()));
            }
        };
        let made = engine.artifacts_directory(&task.id, &action).join("git");
        let place = self.repository().join(".git");
        let take = || {
            fs::rename(&made, &place)?;
            let owner = fs::metadata(self.repository())?;
            give(&place, owner.uid(), owner.gid())
        };
        take().map_err(CliError::file("take over", &made))?;
        Ok(engine.set_task_state(&task.id, TaskState::Discarded)?)
    }

    /// Removes everything, and says whether that worked.
    pub(super) fn strike(mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.kept, true) {
            return Ok(());
        }
        sandbox::remove_tree(&self.directory).map_err(CliError::file("remove", &self.directory))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !self.kept {
            // Somebody is told of an error already.
            let _ = sandbox::remove_tree(&self.directory);
        }
    }
}

fn is_missing(ending: &Ending) -> bool {
    matches!(ending, Ending::NotFound | Ending::Exited { status: 127 })
}

/// Gives a directory that we have just taken over to the owner of the repository. Links are not followed.
fn give(directory: &Path, uid: u32, gid: u32) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        lchown(&path, Some(uid), Some(gid))?;
        if fs::symlink_metadata(&path)?.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// Returns a place for scratch files that can hold layers.
fn place(environment: &Environment) -> PathBuf {
    let holds_layers = |place: &PathBuf| {
        let kind = rustix::fs::statfs(place).map(|stat| stat.f_type);
        kind.is_ok_and(|kind| kind != OVERLAY)
            && rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
    };
    let named = environment.directory("TMPDIR").map(Path::to_owned);
    let usual = || PLACES.iter().map(PathBuf::from).find(holds_layers);
    named.or_else(usual).unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// Returns letters that nobody can guess.
fn random() -> Result<String, CliError> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(CliError::file("read", "/dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
