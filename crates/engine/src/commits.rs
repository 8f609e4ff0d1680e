//! Importing commits that were made inside: they come to the host's repository as a branch of their own.
//!
//! Guarantees: git runs in sandboxes only, as a helper of the engine's own (class `internal`). One packs the commits
//! where the task made them; another, which sees the host's repository, checks every object and fetches them onto a
//! layer; and of that layer nothing reaches the host but packs of objects and the one branch. Hooks, configuration and
//! other branches of what the task made of `.git` stay behind. Leaves to others: what the commits hold. As a branch
//! that nobody has merged they change no file.

use inspect::layer::{self, Bounds};
use inspect::{Artifacts, Stack, Tree};
use model::action::Principal;
use model::event::Event;
use model::grant::Input;
use model::task::Task;
use model::{ActionId, Change, Ending, OsText, Profile, TaskId, WorkspacePath};

use crate::apply::BaseStats;
use crate::applying::{Asked, KnownBase, write, yes_of};
use crate::base::{Git, Sees};
use crate::error::EngineError;
use crate::intent::{Intent, Purpose};
use crate::outcome::Finished;
use crate::{ApplyMode, Engine, Workspace};

/// The class under which policy is asked about the branch and its packs.
const CLASS: &str = "commits";

/// Packs what the current branch has and the commits `$@` have not, and prints how many commits that are. Ends with 3
/// where there is no commit, and with 4 where none is new.
const PACK: &str = r#"set -eu
git rev-parse --quiet --verify 'HEAD^{commit}' >/dev/null || exit 3
for commit; do
    shift
    if git cat-file -e "$commit^{commit}" 2>/dev/null; then set -- "$@" "^$commit"; fi
done
number=$(git rev-list --count HEAD "$@")
[ "$number" -gt 0 ] || exit 4
git bundle create --quiet /artifacts/commits HEAD "$@"
printf '%s\n' "$number"
"#;

/// Fetches what was packed as the branch `$1`, with every object checked, and prints its commit.
const FETCH: &str = r#"set -eu
git -c fetch.fsckObjects=true -c fetch.unpackLimit=1 fetch --quiet --no-tags --no-write-fetch-head \
    --no-recurse-submodules --no-auto-maintenance /inputs/commits "+HEAD:refs/heads/$1"
git rev-parse --verify "refs/heads/$1^{commit}"
"#;

/// Commits that came to the host's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedCommits {
    /// The branch that names them there.
    pub branch: String,
    /// The newest of them.
    pub commit: String,
    /// How many of them the host's current branch has not.
    pub number: u64,
}

/// Returns the branch for the commits of a task.
fn branch_of(task: &TaskId) -> String {
    format!("fumehood/{task}")
}

impl Engine {
    /// Tells whether a task moved a branch of its repository. This looks at its layers only and starts nothing.
    ///
    /// # Errors
    /// When a layer or the base cannot be read.
    pub fn moved_a_branch(&self, task: &Task) -> Result<bool, EngineError> {
        let layers = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let report = layer::read(&self.stack(task, &layers)?, Bounds::default())?;
        let is_branch = |change: &Change| {
            let path = change.path.as_bytes();
            path.starts_with(b".git/refs/heads/") || path == b".git/packed-refs" || path == b".git/HEAD"
        };
        // Of a linked worktree the branches lie in the repository behind it.
        let has_branch = |upper: &std::path::PathBuf| {
            upper.join("refs/heads").is_dir() || upper.join("packed-refs").is_file()
        };
        let behind = self.places().git_uppers(&layers);
        Ok(report.changes.iter().any(is_branch) || behind.iter().any(has_branch))
    }

    /// Imports the commits of the task's current branch as the branch `fumehood/TASK`. Nothing when there are none that
    /// the host's current commit has not.
    ///
    /// `profile` is what the helpers of ours ask for; it is the operator's, so it is never wider than policy.
    ///
    /// # Errors
    /// When the workspace is no repository of its own, git fails or finds an object that is not sound, policy does not
    /// allow it, or the branch cannot be written.
    pub fn import_commits(
        &self,
        task: &Task,
        workspace: &Workspace,
        profile: &Profile,
        person: &Principal,
    ) -> Result<Option<ImportedCommits>, EngineError> {
        let git = Git { engine: self, task, workspace, profile };
        if !workspace.path.join(".git").is_dir() {
            return Err(git.failed(
                "its `.git` is not a directory, and only a repository of its own takes commits: fetch them from \
                 inside with `fumehood run -- git format-patch` and apply the patches",
            ));
        }
        let Some((bundle, number)) = git.packed()? else { return Ok(None) };
        let fetched = git.fetched(&bundle);
        self.forget_artifacts(task, &bundle)?;
        let (finished, commit) = fetched?;
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let imported = ImportedCommits { branch: branch_of(&task.id), commit, number };
        let written = self.write_branch(task, &git, &finished.action, &imported, person);
        self.forget_layer(task, &finished.action)?;
        written?;
        Ok(Some(imported))
    }

    /// Writes the branch and its packs from the layer of the helper that fetched them.
    fn write_branch(
        &self,
        task: &Task,
        git: &Git<'_>,
        helper: &ActionId,
        imported: &ImportedCommits,
        person: &Principal,
    ) -> Result<(), EngineError> {
        let upper = self.places().layer(&task.id, helper).join("upper");
        let stack = Stack::new(vec![Tree::open(&upper)?], vec![Tree::open(&git.workspace.path)?]);
        let report = layer::read(&stack, Bounds::default())?;
        let file = WorkspacePath::parse(format!(".git/refs/heads/{}", imported.branch));
        let file = file.map_err(|error| EngineError::Nothing(error.to_string()))?;
        let artifacts = inspect::inspect(stack, &report, &self.rules(task))?.fetched(&file)?;
        // A branch that is on the host already, just so, is not written again.
        let on_host = std::fs::read(git.workspace.path.join(file.as_path())).unwrap_or_default();
        let ImportedCommits { branch, commit, number } = imported.clone();
        let by = helper.clone();
        if artifacts.is_empty() && on_host == line(&commit) {
            return self.note(&task.id, &Event::CommitsImported { branch, commit, number, by });
        }
        check_branch(&artifacts, &file, &imported.commit)
            .map_err(|why| git.failed(format!("the fetched branch is not sound: {why}")))?;
        self.permit_import(task, helper, &artifacts, person)?.map_err(|why| git.failed(why))?;
        let base = self.base_stats(&task.id, helper);
        let base = KnownBase { stats: BaseStats::of_task(base), checked_out: None };
        let intent = Intent::new(task, Purpose::Import { branch, commit, number, by })?;
        let done = self.carry_out(task, &intent, |target| write(artifacts, &base, target))?;
        match done.held.first() {
            None => Ok(()),
            Some(held) => Err(git.failed(format!("`{}` could not be written: {}", held.path, held.why))),
        }
    }

    /// Asks the policy, and records what it says. Whoever asks for the import has said yes to it.
    fn permit_import(
        &self,
        task: &Task,
        helper: &ActionId,
        artifacts: &Artifacts,
        person: &Principal,
    ) -> Result<Result<(), String>, EngineError> {
        let changes: Vec<Change> = artifacts.items().iter().map(|item| item.change().clone()).collect();
        let consent = yes_of(person);
        let asked = Asked { principal: person, mode: ApplyMode::Always, consent: consent.as_ref() };
        let layer = crate::store::StoredLayer {
            action: helper.clone(),
            home: task.id.clone(),
            state: crate::store::LayerState::Kept,
        };
        Ok(match self.permit_group(task, &asked, &[layer], &[CLASS], &changes)? {
            Ok(permit) => {
                drop(permit.spend());
                Ok(())
            }
            Err((reason, advice)) => Err(format!("policy does not allow it ({reason}): {advice}")),
        })
    }

    /// Removes the layer of a helper, of which the host has what it wants.
    fn forget_layer(&self, task: &Task, helper: &ActionId) -> Result<(), EngineError> {
        let layer = self.places().layer(&task.id, helper);
        sandbox::remove_tree(&layer).map_err(EngineError::file("remove", &layer))
    }

    /// Removes what a helper left, which nobody needs any more.
    fn forget_artifacts(&self, task: &Task, bundle: &Bundle) -> Result<(), EngineError> {
        let artifacts = self.places().artifacts(&task.id, &bundle.by);
        sandbox::remove_tree(&artifacts).map_err(EngineError::file("remove", &artifacts))
    }
}

/// The commits of a task in one file. Nothing in it is believed.
struct Bundle {
    /// The helper that left it among its artifacts.
    by: ActionId,
    file: OsText,
}

impl Git<'_> {
    /// Packs the commits of the task that the host has not.
    fn packed(&self) -> Result<Option<(Bundle, u64)>, EngineError> {
        // A host without a commit has none of them.
        let known = self.current_commit().ok();
        let argv: Vec<&str> = ["sh", "-c", PACK, "pack"].into_iter().chain(known.as_deref()).collect();
        let finished = self.run_seeing(&argv, Sees::Task, Vec::new())?;
        if matches!(finished.ending, Ending::Exited { status: 3 | 4 }) {
            return Ok(None);
        }
        let printed = self.succeeded(&finished)?;
        let number = printed.trim().parse().map_err(|_| self.failed("git did not count the commits"))?;
        let file = self.engine.places().artifacts(&self.task.id, &finished.action).join("commits");
        if !std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
            return Err(self.failed("git left no bundle of the commits"));
        }
        let file = OsText::try_from(file.as_path()).map_err(|error| self.failed(error.to_string()))?;
        Ok(Some((Bundle { by: finished.action.clone(), file }, number)))
    }

    /// Fetches the commits onto a layer of the helper's own over the host's repository; returns their newest.
    fn fetched(&self, bundle: &Bundle) -> Result<(Box<Finished>, String), EngineError> {
        let branch = branch_of(&self.task.id);
        let input = Input { name: "commits".to_owned(), source: bundle.file.clone() };
        let finished =
            self.run_seeing(&["sh", "-c", FETCH, "fetch", &branch], Sees::HostWritable, vec![input])?;
        match self.succeeded(&finished) {
            Ok(printed) => Ok((finished, printed.trim().to_owned())),
            Err(error) => {
                self.engine.forget_layer(self.task, &finished.action)?;
                Err(error)
            }
        }
    }
}

/// Returns what the file of a branch holds.
fn line(commit: &str) -> Vec<u8> {
    format!("{commit}\n").into_bytes()
}

/// Checks that the file of the branch is among what was fetched, and names the commit and nothing else.
fn check_branch(artifacts: &Artifacts, file: &WorkspacePath, commit: &str) -> Result<(), String> {
    let is_name = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_name {
        return Err("git did not name a commit".to_owned());
    }
    let item = artifacts.items().iter().find(|item| item.change().path == *file);
    let item = item.ok_or("git wrote none")?;
    let entry = artifacts.reader().find(item).map_err(|error| error.to_string())?;
    let text = entry.read(commit.len() as u64 + 2).map_err(|error| error.to_string())?;
    if text == line(commit) { Ok(()) } else { Err("it names another commit".to_owned()) }
}
