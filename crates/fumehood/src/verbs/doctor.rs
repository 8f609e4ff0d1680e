//! `doctor`: what this host can hold, by really building a sandbox and letting the prober try to get out of it.

mod host;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use engine::{Engine, Helper, Outcome, Sees, Workspace};
use model::action::Base;
use model::enforcement::{Held, Shortfall};
use model::{Ending, Profile};

use super::context::Context;
use crate::args::DoctorArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::DoctorDocument;

/// The name by which policy and the record know this helper.
const SERVICE: &str = "doctor";

/// Says what this host can hold.
pub(super) fn doctor(context: &Context<'_>, args: &DoctorArgs) -> Result<Exit, CliError> {
    let profile = context.settings.profile(args.profile.as_deref())?.profile;
    let progress = context.console.progress("building a sandbox and trying to get out of it");
    let mut document = empty(&profile);
    match tried(context, profile) {
        Ok(outcome) => fill(&mut document, outcome),
        Err(error) => document.failure = Some(error.line()),
    }
    document.host = host::facts(context);
    drop(progress);
    context.console.answer(&document, |paint| render::doctor(&document, paint));
    if let Some(advice) = host::advice() {
        context.console.say(&advice);
    }
    Ok(Exit::answer(document.ready))
}

fn empty(profile: &Profile) -> DoctorDocument {
    DoctorDocument {
        profile: profile.name.clone(),
        ready: false,
        held: Vec::new(),
        shortfalls: Vec::new(),
        probes: Vec::new(),
        teardown: None,
        failure: None,
        host: Vec::new(),
    }
}

/// Runs a helper that does nothing in a sandbox like any other, on an empty directory.
fn tried(context: &Context<'_>, profile: Profile) -> Result<Outcome, CliError> {
    let engine = context.engine()?;
    let scratch = Scratch::new(context)?;
    let workspace = context.workspace(Some(&scratch.0))?;
    let task = engine.open_task(&workspace, &context.principal(), Some("doctor"), Base::Live)?;
    let outcome = run(&engine, &workspace, &task, profile);
    engine.discard(&task)?;
    outcome
}

fn run(
    engine: &Engine,
    workspace: &Workspace,
    task: &model::task::Task,
    profile: Profile,
) -> Result<Outcome, CliError> {
    let (argv, environment) = (vec!["true".to_owned()], Vec::new());
    let (workspace, sees) = (workspace.clone(), Sees::Host);
    let helper = Helper { service: SERVICE, argv, environment, profile, workspace, sees, inputs: Vec::new() };
    Ok(engine.help(task, helper)?)
}

fn fill(document: &mut DoctorDocument, outcome: Outcome) {
    match outcome {
        Outcome::Finished(finished) => {
            let ended = finished.ending == Ending::Exited { status: 0 };
            let proved = finished.probes.iter().all(|probe| probe.held) && !finished.probes.is_empty();
            document.ready = ended && proved && finished.teardown.is_clean();
            document.failure = (!ended).then(|| format!("a command that does nothing {}", finished.ending));
            document.held = finished.held;
            document.probes = finished.probes;
            document.teardown = Some(finished.teardown);
        }
        Outcome::NotStarted(not_started) => {
            document.failure = Some(not_started.reason);
            document.held = not_started.shortfalls.iter().map(held_here).collect();
            document.shortfalls = not_started.shortfalls;
            document.probes = not_started.failed_probes;
        }
        Outcome::Denied { denial, .. } => document.failure = Some(denial.to_string()),
        Outcome::NeedsApproval { .. } => {
            document.failure =
                Some("policy wants a person's approval for the engine's own helper".to_owned());
        }
    }
}

/// Says of a layer that falls short how it is held here.
fn held_here(short: &Shortfall) -> Held {
    Held { layer: short.layer, level: short.has, by: short.why.clone() }
}

/// An empty directory of ours, until it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// Makes one beside the state directory: what holds layers can be below one. Where that cannot be written, among the
    /// temporary files.
    fn new(context: &Context<'_>) -> Result<Self, CliError> {
        let beside = context.settings.state_dir.value.parent().map(Self::below);
        match beside {
            Some(Ok(scratch)) => Ok(scratch),
            _ => Self::below(context.environment.directory("TMPDIR").unwrap_or(Path::new("/tmp"))),
        }
    }

    fn below(place: &Path) -> Result<Self, CliError> {
        let us = std::process::id();
        let names = (0..100).map(|number| place.join(format!("fumehood-doctor-{us}-{number}")));
        let mut last = None;
        for path in names {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => last = Some(CliError::file("make", &path)(error)),
            }
        }
        Err(last.unwrap_or_else(|| CliError::Cannot("no directory could be made".to_owned())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be in it: the helper sees it read-only.
        let _ = std::fs::remove_dir(&self.0);
    }
}
