//! Importing commits that were made inside: they come to the host's repository as a branch of their own.
//!
//! Guarantees: git runs in sandboxes only, as a helper of the engine's own (class `internal`). One packs the commits
//! where the task made them; another, which sees the host's repository, checks every object and fetches them onto a
//! layer; and of that layer nothing reaches the host but packs of objects and the one branch. In a linked worktree that
//! is the repository behind it, with the layers that lie over that. Hooks, configuration and other branches of what the
//! task made of `.git` stay behind. Leaves to others: what the commits hold. As a branch that nobody has merged they
//! change no file.

use std::path::PathBuf;

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
use crate::repository::Repository;
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

/// Fetches what was packed as the branch `$1`, with every object checked, and prints its commit. A branch that is there
/// is moved when it names `$2`, the last commit of it that came from here, or when it only goes forward. Ends with 5
/// where it has commits of its own.
const FETCH: &str = r#"set -eu
branch=refs/heads/$1
fetch() {
    git -c fetch.fsckObjects=true -c fetch.unpackLimit=1 fetch --quiet --no-tags --no-write-fetch-head \
        --no-recurse-submodules --no-auto-maintenance /inputs/commits "$1"
}
there=$(git rev-parse --quiet --verify "$branch^{commit}") || there=
if [ -n "$there" ] && [ "$there" != "$2" ]; then
    fetch HEAD
    new=$(git bundle list-heads /inputs/commits HEAD)
    git merge-base --is-ancestor "$there" "${new%% *}" || exit 5
fi
fetch "+HEAD:$branch"
git rev-parse --verify "$branch^{commit}"
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
        let has_branch = |upper: &PathBuf| {
            let own = std::fs::read_dir(upper.join("worktrees")).into_iter().flatten().flatten();
            upper.join("refs/heads").is_dir()
                || upper.join("packed-refs").is_file()
                || own.into_iter().any(|worktree| worktree.path().join("HEAD").is_file())
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
    /// When the workspace is neither a repository of its own nor a linked worktree, git fails or finds an object that is
    /// not sound, policy does not allow it, or the branch cannot be written.
    pub fn import_commits(
        &self,
        task: &Task,
        workspace: &Workspace,
        profile: &Profile,
        person: &Principal,
    ) -> Result<Option<ImportedCommits>, EngineError> {
        let git = Git { engine: self, task, workspace, profile };
        self.import(task, &git, person).map_err(|error| match error {
            EngineError::Base { path, why } => EngineError::Import { path, why },
            other => other,
        })
    }

    fn import(
        &self,
        task: &Task,
        git: &Git<'_>,
        person: &Principal,
    ) -> Result<Option<ImportedCommits>, EngineError> {
        let repository = Repository::of(&git.workspace.path).ok_or_else(|| {
            git.failed(
                "its `.git` is neither a directory nor that of a linked worktree, and only those take commits: fetch \
                 them from inside with `fumehood run -- git format-patch` and apply the patches",
            )
        })?;
        let Some((bundle, number)) = git.packed()? else { return Ok(None) };
        let fetched = git.fetched(&bundle);
        self.forget_artifacts(task, &bundle)?;
        let (finished, commit) = fetched?;
        let gate = self.gate_of(task, git.workspace)?;
        let consent = yes_of(person);
        let (mode, consent) = (ApplyMode::Always, consent.as_ref());
        let asked = Asked { gate: &gate, principal: person, mode, consent };
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let imported = ImportedCommits { branch: branch_of(&task.id), commit, number };
        let written = self.write_branch(task, git, &repository, &finished.action, &imported, &asked);
        self.forget_layer(task, &finished.action)?;
        written?;
        Ok(Some(imported))
    }

    /// Returns the commit that the branch of a task was last given.
    fn last_imported(&self, task: &Task) -> Result<Option<String>, EngineError> {
        let events = self.events_of_task(&task.id)?;
        Ok(events.into_iter().rev().find_map(|event| match event {
            Event::CommitsImported { commit, .. } => Some(commit),
            _ => None,
        }))
    }

    /// Writes the branch and its packs from the layer of the helper that fetched them.
    fn write_branch(
        &self,
        task: &Task,
        git: &Git<'_>,
        repository: &Repository,
        helper: &ActionId,
        imported: &ImportedCommits,
        asked: &Asked<'_>,
    ) -> Result<(), EngineError> {
        let ImportedCommits { branch, commit, number } = imported.clone();
        let by = helper.clone();
        let file = repository.file(&format!("refs/heads/{branch}"))?;
        let (artifacts, base) = self.fetched_on(task, repository, helper, &file)?;
        // A branch that is on the host already, just so, is not written again.
        if artifacts.is_empty() && repository.has(&branch, &commit) {
            return self.note(&task.id, &Event::CommitsImported { branch, commit, number, by });
        }
        check_branch(&artifacts, &file, &imported.commit)
            .map_err(|why| git.failed(format!("the fetched branch is not sound: {why}")))?;
        let changes = artifacts.items().iter().map(|item| repository.told(item.change())).collect();
        self.permit_import(task, helper, changes, asked)?.map_err(|why| git.failed(why))?;
        let repository = repository.elsewhere()?;
        let intent = Intent::new(task, Purpose::Import { branch, commit, number, by, repository })?;
        let done = self.carry_out(task, &intent, |target| write(artifacts, &base, target))?;
        match done.held.first() {
            None => Ok(()),
            Some(held) => Err(git.failed(format!("`{}` could not be written: {}", held.path, held.why))),
        }
    }

    /// Lets out what a helper fetched onto its layer, and returns what it saw below that.
    fn fetched_on(
        &self,
        task: &Task,
        repository: &Repository,
        helper: &ActionId,
        branch: &WorkspacePath,
    ) -> Result<(Artifacts, KnownBase), EngineError> {
        let upper = repository.upper_in(&self.places().layer(&task.id, helper));
        // Of a repository behind the workspace nothing is kept where nothing was written.
        let uppers = if upper.is_dir() { vec![Tree::open(&upper)?] } else { Vec::new() };
        let stack = Stack::new(uppers, vec![Tree::open(&repository.top)?]);
        let report = layer::read(&stack, Bounds::default())?;
        let stats = if repository.elsewhere()?.is_none() {
            self.base_stats(&task.id, helper)
        } else {
            let began = self.store().read(|reader| reader.find_action(helper.as_str()))?.created;
            Some(repository.seen(&report, began)?)
        };
        let artifacts =
            inspect::inspect(stack, &report, &self.rules(task))?.fetched(repository.git, branch)?;
        Ok((artifacts, KnownBase { stats: BaseStats::of_task(stats), checked_out: None }))
    }

    /// Asks the policy, and records what it says. Whoever asks for the import has said yes to it.
    fn permit_import(
        &self,
        task: &Task,
        helper: &ActionId,
        changes: Vec<Change>,
        asked: &Asked<'_>,
    ) -> Result<Result<(), String>, EngineError> {
        let layer = crate::store::StoredLayer {
            action: helper.clone(),
            home: task.id.clone(),
            state: crate::store::LayerState::Kept,
        };
        Ok(match self.permit_group(task, asked, &[layer], &[CLASS], &changes)? {
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
        let last = self.engine.last_imported(self.task)?.unwrap_or_default();
        let argv = ["sh", "-c", FETCH, "fetch", &branch, &last];
        let finished = self.run_seeing(&argv, Sees::HostWritable, vec![input])?;
        let printed = if matches!(finished.ending, Ending::Exited { status: 5 }) {
            Err(self.failed(format!(
                "its branch `{branch}` has commits that did not come from this task: give it another name with \
                 `git branch -m {branch} NAME` and import again"
            )))
        } else {
            self.succeeded(&finished)
        };
        match printed {
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
