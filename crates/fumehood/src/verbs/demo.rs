//! `demo`: a played model works on a small repository that comes with the program, through the very same loop.
//!
//! Guarantees: only the model is played; its process, the decisions, the record, the sandboxes and their proof are those
//! of `agent`. Every check looks at the record, the layers and the host, never at what the model says. Nothing stays
//! behind, unless it is asked for.

mod authority;
mod checks;
mod scene;
mod stage;

use engine::Engine;
use model::action::Base;
use model::text::escape;

use super::agent::{Interrupt, Job, ModelSource, Plan, announce, document};
use crate::args::{DemoArgs, Global};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Console;
use crate::output::shape::DemoDocument;
use crate::settings::Environment;

use checks::{Evidence, checks};
use scene::Scene;
use stage::Stage;

/// What the model says, turn by turn.
const TRANSCRIPT: &[u8] = include_bytes!("../../../agent/transcripts/demo.jsonl");
/// The task that its header names.
const TASK: &str = "Some titles get a wrong slug: `sh tests/run.sh` fails. Find the fault in src/slug.sh, fix it, and push the fix.";
/// More than the transcript has.
const TURNS: u32 = 20;

/// Shows all of it, and tells whether it went as it must.
pub(super) fn demo(
    global: &Global,
    console: &Console,
    environment: &Environment,
    args: &DemoArgs,
) -> Result<Exit, CliError> {
    if global.state_dir.is_some() {
        return Err(CliError::Cannot(
            "the demo has a state directory of its own: `--keep DIR` keeps it".to_owned(),
        ));
    }
    let interrupt = Interrupt::start()?;
    let scene = Scene::set(environment, args.keep.as_deref())?;
    let stage = Stage::new(console);
    stage.opens(&scene);
    let shown = perform(&scene, console, environment, &interrupt, stage);
    let gone = scene.strike();
    let document = match shown? {
        Some(document) => document,
        None => return Ok(Exit::Signal(2)),
    };
    gone?;
    stage::closes(console, &document, args.keep.as_deref());
    Ok(Exit::answer(document.passed))
}

/// Plays the whole thing; nothing comes of it when somebody stops it.
fn perform(
    scene: &Scene,
    console: &Console,
    environment: &Environment,
    interrupt: &Interrupt,
    mut stage: Stage<'_>,
) -> Result<Option<DemoDocument>, CliError> {
    let context = &scene.context(console)?;
    let engine = &context.engine()?;
    let workspace = context.workspace(Some(&scene.repository()))?;
    scene.make_repository(context, engine, &workspace)?;
    let holds = context.settings.profile(None)?.profile;
    let task = engine.open_task_at_commit(&workspace, &context.principal(), Some(TASK))?;
    let task = engine.make_base(&task, &workspace, &holds)?;
    let source = ModelSource::played(TRANSCRIPT, "demo.jsonl")?;
    let plan = Plan {
        turns: TURNS,
        asked: holds.clone(),
        from_commit: task.base != Base::Live,
        wait: None,
        mutant: super::mutant::chosen(environment),
    };
    if interrupt.came() {
        return Ok(None);
    }
    let job = Job { context, engine, task, workspace, source, plan, holds };
    announce(engine, &job.task.id, &job.source, &job.plan)?;
    let end = job.run(&mut stage, interrupt)?;
    if interrupt.came() {
        return Ok(None);
    }
    stage.ends();
    let mut shown = look_at(scene, engine, &job, &stage, &document(&job, &end)?)?;
    shown.checks.extend(authority::checks(scene, context)?);
    shown.passed = shown.checks.iter().all(|check| check.passed);
    Ok(Some(shown))
}

/// Puts together what was seen.
fn look_at(
    scene: &Scene,
    engine: &Engine,
    job: &Job<'_>,
    stage: &Stage<'_>,
    agent: &crate::output::shape::AgentDocument,
) -> Result<DemoDocument, CliError> {
    let record = engine.log().verify(&audit::Anchors::default())?;
    let evidence = Evidence { scene, engine, task: &job.task, calls: stage.calls(), agent, record: &record };
    let checks = checks(&evidence)?;
    let (held, probes) = stage.probes();
    Ok(DemoDocument {
        passed: checks.iter().all(|check| check.passed),
        checks,
        agent: agent.clone(),
        patch: String::new(),
        probes_held: held,
        probes,
        records: record.end().map_or(0, |end| end.seq),
        record: escape(&record.to_string()).into_owned(),
    })
}
