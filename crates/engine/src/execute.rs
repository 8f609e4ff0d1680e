//! The second half of the path: the sandbox of an action, its run, and what is kept of it.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use audit::Entry;
use gate::{Authorization, Permit};
use inspect::credentials::FoundKind;
use inspect::layer::{self, Bounds};
use inspect::tree::Time;
use inspect::{Report, Rules, Stack, Tree};
use model::action::Base;
use model::event::{Event, HeldBack};
use model::task::Task;
use model::{ActionId, OsText, Subject, TaskId, WorkspacePath};
use sandbox::fail_point;
use sandbox::{Execution, GitDirectory, Identity, Io, Prepared, Spec};

use crate::Engine;
use crate::apply::BaseStats;
use crate::checkpoint::{Lowers, holds_something};
use crate::clock::now;
use crate::error::EngineError;
use crate::git_dirs;
use crate::handle::{Manner, Order, new_action_id};
use crate::host_edits;
use crate::ignore_rules;
use crate::layers::GIT_UPPER;
use crate::lock::Lock;
use crate::masks;
use crate::outcome::{Finished, Outcome};
use crate::recover::RUN_LOCK;
use crate::store::{Evidence, StoredLayer};
use crate::workspace::Workspace;

/// Changes that one event lists; the rest is counted. All of them stay in the layer.
const CHANGES_MAX: usize = 1000;

/// One run: its names and places, known before it is decided.
#[derive(Debug)]
pub(crate) struct Run {
    /// The name of the action and of its layer.
    pub(crate) action: ActionId,
    /// Its task.
    pub(crate) task: TaskId,
    /// The layers that it starts from, oldest first.
    pub(crate) layers: Vec<StoredLayer>,
    /// The directories that show them, newest first: a checkpoint stands for most.
    lowers: Vec<PathBuf>,
    /// The repository behind the workspace, when that is a linked worktree.
    git_directory: Option<GitDirectory>,
    /// What is below them.
    pub(crate) base_kind: Base,
    /// The call of an agent that it carries out.
    pub(crate) call: Option<String>,
    is_helper: bool,
    workspace: Workspace,
    base: PathBuf,
    base_owner: Identity,
    identity: Identity,
    masked: Vec<WorkspacePath>,
    covers: Vec<(PathBuf, Vec<u8>)>,
    mutant: Option<String>,
    began: model::Timestamp,
    directory: PathBuf,
    _alive: Lock,
}

impl Run {
    /// Names a run and takes its place. The lock says to others that its owner lives.
    pub(crate) fn begin(
        engine: &Engine,
        task: &Task,
        order: &Order,
        manner: Manner<'_>,
    ) -> Result<Self, EngineError> {
        let began = now();
        let action = new_action_id()?;
        let directory = engine.places().runs().join(action.as_str());
        let alive = take_place(&directory)?;
        let is_helper = manner.service.is_some();
        // Most helpers look at the host's directory: it is what the task's own base is made from.
        let (base, base_kind, layers) = if is_helper && !manner.on_layers {
            (task.workspace.path.to_path_buf(), Base::Live, Vec::new())
        } else {
            let layers = engine.store().read(|reader| reader.kept_layers(&task.id))?;
            (engine.base_of(task), task.base.clone(), layers)
        };
        let Lowers { workspace: lowers, git } = engine.lowers(&task.id, &layers)?;
        let repository = git_dirs::repository_of_worktree(&base);
        let git_directory = repository.map(|path| GitDirectory { path, layers: git });
        let on_disk = std::fs::metadata(&base).map_err(EngineError::file("look at", &base))?;
        let (masked, mut covers) = engine.masked(&task.id, &base, &lowers, order)?;
        if let Some(git) = &git_directory {
            covers.extend(git_dirs::repository_cover(&open(&git.layers, &git.path)?, &git.path));
        }
        Ok(Self {
            action,
            task: task.id.clone(),
            layers,
            lowers,
            git_directory,
            base_kind,
            call: manner.call.map(str::to_owned),
            is_helper,
            base_owner: Identity { uid: on_disk.uid(), gid: on_disk.gid() },
            identity: engine.run_identity(&order.workspace),
            workspace: order.workspace.clone(),
            base,
            masked,
            covers,
            mutant: order.mutant.clone(),
            began,
            directory,
            _alive: alive,
        })
    }
}

/// Makes the directory of a run and locks it. Whoever recovers at this very moment may take it for one of the dead and
/// remove it before the lock is ours; then it is made again.
fn take_place(directory: &Path) -> Result<Lock, EngineError> {
    let lock = directory.join(RUN_LOCK);
    loop {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(EngineError::file("make", directory))?;
        match Lock::take(&lock, || {}) {
            Ok(taken) if taken.is_at(&lock) => return Ok(taken),
            Err(EngineError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Empty when the sandbox was torn down; otherwise what never came that far. Leftovers are found at the next start.
        let _ = sandbox::remove_tree(&self.directory);
    }
}

/// What was found in a layer.
#[derive(Debug, Default)]
struct Looked {
    report: Report,
    held: Vec<inspect::Held>,
    host_edits: Vec<OsText>,
}

impl Engine {
    /// Names what is covered in a workspace: credential files, what the order hides, and git configuration that is
    /// shown without the credentials in it.
    #[allow(clippy::type_complexity, reason = "two lists of what is covered, one with what is seen instead")]
    fn masked(
        &self,
        task: &TaskId,
        base: &Path,
        lowers: &[PathBuf],
        order: &Order,
    ) -> Result<(Vec<WorkspacePath>, Vec<(PathBuf, Vec<u8>)>), EngineError> {
        let scan = self.scan_base(base)?;
        refuse_base(&scan, base)?;
        let now = Stack::new(Vec::new(), open(lowers, base)?);
        let found = self.credentials(task, base, scan, &now)?;
        let covers = git_dirs::covers(&found, &now, &order.workspace.path);
        let shown = &order.grant.shown_credentials;
        let mut masked: Vec<WorkspacePath> = found
            .into_iter()
            .filter(|found| found.kind == FoundKind::File && !shown.contains(&found.path))
            .map(|found| found.path)
            .collect();
        masked.extend(order.hidden.iter().cloned());
        Ok((masked, covers))
    }

    /// Puts the sandbox of an authorized action together.
    pub(crate) fn spec(&self, run: &Run, yes: &Authorization) -> Result<Spec, EngineError> {
        let grant = yes.grant().clone();
        let places = self.places();
        Ok(Spec {
            identity: run.identity,
            view: self.view(&run.workspace, run.identity, &grant)?,
            workspace: sandbox::Workspace {
                path: run.workspace.path.clone(),
                base: run.base.clone(),
                base_owner: run.base_owner,
                layers: run.lowers.clone(),
                layer: places.layer(&run.task, &run.action),
            },
            masks: run.masked.clone(),
            covers: run.covers.clone(),
            git_directory: run.git_directory.clone(),
            grant,
            run_directory: run.directory.clone(),
            artifacts: places.artifacts(&run.task, &run.action),
            cache: places.cache(&run.task),
            mutant: run.mutant.clone(),
        })
    }

    /// Runs a permitted action in its sandbox, looks at what came out, and records all of it.
    pub(crate) fn run(
        &self,
        about: &Subject,
        run: Run,
        prepared: Prepared,
        permit: Permit,
        io: Io,
    ) -> Result<Outcome, EngineError> {
        let masked: Vec<OsText> = run.masked.iter().cloned().map(OsText::from).collect();
        let report = prepared.report().clone();
        let started = Event::Started {
            backend: "native".to_owned(),
            held: report.held.clone(),
            probes: report.probes.clone(),
            masked: masked.clone(),
        };
        self.record(about, &started, |writer, time| writer.set_started(&run.action, time))?;
        fail_point::reached("run: the start is on the record");
        let decision =
            self.store().read(|reader| reader.action(&run.action))?.and_then(|action| action.decision);
        let execution = prepared.run(permit, io).map_err(EngineError::Sandbox)?;
        let Looked { report: changes, held: inspection, host_edits } = self.look_at_layer(&run)?;
        let evidence = Evidence {
            held: Some(report.held),
            probes: Some(report.probes),
            masked: Some(masked),
            host_edits: Some(host_edits),
            ..Evidence::default()
        };
        let decision =
            decision.ok_or_else(|| EngineError::Nothing("the decision is not in the store".into()))?;
        let held_back: Vec<HeldBack> = inspection.iter().map(inspect::Held::record).collect();
        let receipt = self.record_end(about, &run, &execution, &changes, &held_back, evidence.clone())?;
        fail_point::reached("inspection: the end is on the record");
        Ok(Outcome::Finished(Box::new(Finished {
            action: run.action.clone(),
            task: run.task.clone(),
            decision,
            ending: execution.ending,
            usage: execution.usage,
            observed: execution.observed,
            held: evidence.held.unwrap_or_default(),
            probes: evidence.probes.unwrap_or_default(),
            masked: evidence.masked.unwrap_or_default(),
            steps: execution.steps,
            printed: execution.printed,
            report: changes,
            held_back: inspection,
            host_edits: evidence.host_edits.unwrap_or_default(),
            teardown: execution.teardown,
            receipt,
        })))
    }

    /// Reads the new layer back against what was below it, and sorts what of it may leave.
    fn look_at_layer(&self, run: &Run) -> Result<Looked, EngineError> {
        let places = self.places();
        let upper = places.layer(&run.task, &run.action).join("upper");
        if !upper.exists() {
            // A workspace that is read-only has no layer.
            return Ok(Looked::default());
        }
        self.keep_git(run)?;
        let stack = Stack::new(vec![Tree::open(&upper)?], open(&run.lowers, &run.base)?);
        let mut report = layer::read(&stack, Bounds::default())?;
        fail_point::reached("inspection: the layer is read");
        strip(&report, &upper)?;
        masks::report_credentials(&mut report, &stack)?;
        let base = Tree::open(&run.base)?;
        let began = file_time(run.began);
        let below = Stack::new(Vec::new(), vec![base.clone()]);
        let stats = BaseStats::take(&report, &below, began)?;
        self.keep_base_stats(&run.task, &run.action, &stats)?;
        fail_point::reached("inspection: what the run saw below is kept");
        let host_edits = match run.base_kind {
            Base::Live => host_edits::since(began, &report, &stats, &base)?,
            Base::Commit { .. } => Vec::new(),
        };
        ignore_rules::mark(&mut report.changes, &run.base, &stack);
        let held = inspect::inspect(stack, &report, Rules::built_in())?.held().to_vec();
        fail_point::reached("inspection: it is judged");
        Ok(Looked { report, held, host_edits })
    }

    /// Sees to it that what was written to the repository of a linked worktree can be below later actions. It is kept with
    /// the layer, and `apply` never looks at it.
    fn keep_git(&self, run: &Run) -> Result<(), EngineError> {
        let upper = self.git_upper(run);
        if holds_something(&upper) {
            layer::strip_foreign_attributes(&Tree::open(&upper)?)?;
            return Ok(());
        }
        let git = self.places().layer(&run.task, &run.action).join("git");
        sandbox::remove_tree(&git).map_err(EngineError::file("remove", &git))
    }

    fn git_upper(&self, run: &Run) -> PathBuf {
        self.places().layer(&run.task, &run.action).join(GIT_UPPER)
    }

    fn record_end(
        &self,
        about: &Subject,
        run: &Run,
        execution: &Execution,
        report: &Report,
        held_back: &[HeldBack],
        evidence: Evidence,
    ) -> Result<audit::Receipt, EngineError> {
        let output = self.keep_output(&run.task, &run.action, &execution.printed)?;
        fail_point::reached("inspection: the output is kept");
        let ended = Event::Ended {
            ending: execution.ending.clone(),
            usage: execution.usage,
            observed: Box::new(execution.observed.clone()),
            steps: execution.steps.clone(),
            output: output.clone(),
        };
        let listed = report.changes.len().min(CHANGES_MAX);
        let inspected = Event::Inspected {
            changes: report.changes[..listed].to_vec(),
            changes_dropped: (report.changes.len() - listed) as u64 + report.unlisted,
            held_back: held_back.iter().take(CHANGES_MAX).cloned().collect(),
            host_edits: evidence.host_edits.iter().flatten().take(CHANGES_MAX).cloned().collect(),
        };
        let torn_down = Event::TornDown { teardown: execution.teardown.clone() };
        let evidence = Evidence {
            observed: Some(execution.observed.clone()),
            steps: Some(execution.steps.clone()),
            output: Some(output),
            changes: Some(report.changes[..listed].to_vec()),
            held_back: Some(held_back.to_vec()),
            teardown: Some(execution.teardown.clone()),
            ..evidence
        };
        let keeps = !run.is_helper && (has_changes(report) || holds_something(&self.git_upper(run)));
        if keeps {
            self.write_out(run)?;
        }
        let time = now();
        let events = [&ended, &inspected, &torn_down];
        let entries = events.map(|event| Entry { subject: about, event, time });
        let receipts = self.log.append_all(&entries, |writer| {
            writer.set_ended(&run.action, &execution.ending, &execution.usage, time)?;
            writer.keep_evidence(&run.action, &evidence)?;
            if keeps { writer.add_layer(&run.task, &run.action) } else { Ok(()) }
        })?;
        if !keeps && !run.is_helper {
            self.remove_empty(run)?;
        }
        receipts
            .into_iter()
            .next_back()
            .ok_or_else(|| EngineError::Nothing("the record gave no receipt".into()))
    }

    /// Sees to it that a layer is on the disk before the record speaks of it.
    fn write_out(&self, run: &Run) -> Result<(), EngineError> {
        let layer = self.places().layer(&run.task, &run.action);
        let written = std::fs::File::open(&layer).and_then(|directory| Ok(rustix::fs::syncfs(&directory)?));
        written.map_err(EngineError::file("write out", &layer))
    }

    /// Removes the places of an action that changed nothing and gave nothing out.
    fn remove_empty(&self, run: &Run) -> Result<(), EngineError> {
        let layer = self.places().layer(&run.task, &run.action);
        sandbox::remove_tree(&layer).map_err(EngineError::file("remove", &layer))?;
        let artifacts = self.places().artifacts(&run.task, &run.action);
        match std::fs::remove_dir(&artifacts) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                Err(EngineError::file("remove", &artifacts)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a moment by the clock that the kernel gives files.
fn file_time(time: model::Timestamp) -> Time {
    let nanos = time.as_nanos();
    Time {
        seconds: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        nanos: u32::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// Opens what is mounted below a layer.
fn open(lowers: &[PathBuf], base: &Path) -> Result<Vec<Tree>, EngineError> {
    let all = lowers.iter().map(PathBuf::as_path).chain([base]);
    Ok(all.map(Tree::open).collect::<Result<_, _>>()?)
}

/// Takes off a layer what a later mount would obey, before it can be below one.
fn strip(report: &Report, upper: &Path) -> Result<(), EngineError> {
    let planted = |finding: &inspect::Finding| matches!(finding, inspect::Finding::ForeignAttribute { .. });
    if report.findings.iter().any(planted) || report.findings_dropped > 0 {
        layer::strip_foreign_attributes(&Tree::open(upper)?)?;
    }
    Ok(())
}

/// A layer in which nothing changed is not mounted below later actions. What an action that did not end by itself
/// left behind stays too: it is what a person sees, and `undo` takes it away.
fn has_changes(report: &Report) -> bool {
    !report.changes.is_empty() || report.unlisted > 0
}

/// Refuses a base that a mount would read otherwise than it is, or that cannot be below an overlay.
fn refuse_base(scan: &inspect::credentials::BaseScan, base: &Path) -> Result<(), EngineError> {
    let refuse = |why: String| Err(EngineError::Workspace { path: base.to_owned(), why });
    if let Some(foreign) = scan.foreign.first() {
        let why = format!(
            "`{}` carries attributes of an overlay, which a mount would obey; remove them with `setfattr -x`",
            foreign.path()
        );
        return refuse(why);
    }
    match scan.mount_points.first() {
        Some(mounted) => refuse(format!(
            "something is mounted at `{mounted}` inside it, and the kernel puts no overlay over that; unmount it, or work \
             in a clone"
        )),
        None => Ok(()),
    }
}
