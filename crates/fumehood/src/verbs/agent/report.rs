//! What the person sees of an agent's work: a line for each step, and what came of it at the end.

use ::agent::protocol::{Progress as Waiting, Proposal};
use engine::Scope;
use inspect::diff::DiffBounds;
use model::event::Event;
use model::evidence::Probe;
use model::text::escape;

use super::call::Made;
use super::session::{End, Job, Watch, code};
use crate::error::CliError;
use crate::output::shape::{AgentDocument, AgentEnd, AgentFailure, ChangePart, LogRow, Refused, SandboxUse};
use crate::output::{Console, Progress, render};
use crate::verbs::look;

/// Shows each step on standard error.
pub(in crate::verbs) struct Steps<'c> {
    console: &'c Console,
    progress: Option<Progress>,
}

impl<'c> Steps<'c> {
    /// Shows nothing yet.
    pub(in crate::verbs) fn new(console: &'c Console) -> Self {
        Self { console, progress: None }
    }

    fn line(&mut self, line: &str) {
        // The line of the progress would stand in front of ours.
        self.progress = None;
        self.console.say(line);
    }
}

impl Watch for Steps<'_> {
    fn confined(&mut self, probes: &[Probe]) {
        let held = probes.iter().filter(|probe| probe.held).count();
        self.line(&format!(
            "fumehood: the process that speaks with the model gave up its rights: {held} of {} tries were refused",
            probes.len()
        ));
    }

    fn waits(&mut self, what: &str) {
        match &self.progress {
            Some(progress) => progress.set(what),
            None => self.progress = Some(self.console.progress(what)),
        }
    }

    fn said(&mut self, text: &str) {
        let paint = self.console.err;
        self.line(&format!("{} {}", paint.dim("model:"), escape(text)));
    }

    fn made(&mut self, proposal: &Proposal, made: &Made) {
        let call = format!("{:>5}", proposal.call.to_string());
        let made = match &made.document {
            Some(document) => render::agent_step(document, made.again, "       ", self.console.err),
            None => format!("{} is no action", proposal.tool.name()),
        };
        self.line(&format!("{}  {made}", self.console.err.dim(call)));
    }
}

/// Says what is waited for.
pub(super) fn waiting(progress: &Waiting) -> String {
    match progress {
        Waiting::Asking { turn } => format!("asking the model for turn {turn}"),
        Waiting::Queued => "the model's server has the request in its queue".to_owned(),
        Waiting::Answering => "the model answers".to_owned(),
        Waiting::Retrying { attempt, attempts, why, .. } => {
            format!("the model's server did not answer well ({why}); try {attempt} of {attempts} failed")
        }
    }
}

/// Puts together what came of the work, from the record and the layers.
pub(in crate::verbs) fn document(job: &Job<'_>, end: &End) -> Result<AgentDocument, CliError> {
    let engine = job.engine;
    let actions = engine.store().read(|reader| reader.actions(&job.task.id))?;
    let (mut log, mut refused, mut used) = (Vec::new(), Vec::new(), SandboxUse::default());
    for action in actions.iter().filter(|action| action.class == "action") {
        let document = look::of_stored(engine, action)?;
        refused.extend(Refused::all_of(&document));
        used.add(&document);
        log.push(LogRow::of(&document));
    }
    let review = engine.review(&job.task, Scope::ToApply { include_ignored: false })?;
    let stack = engine.stack(&job.task, &review.layers)?;
    let patch = inspect::diff::patch(&stack, &review.report.changes, DiffBounds::default().file);
    let patch = patch.map_err(engine::EngineError::from)?;
    let mut document = AgentDocument {
        task: job.task.id.clone(),
        workspace: job.task.workspace.path.clone(),
        commit: match &job.task.base {
            model::action::Base::Live => None,
            model::action::Base::Commit { commit } => Some(commit.clone()),
        },
        model: job.source.model.clone(),
        ended: match end {
            End::Finished { .. } => AgentEnd::Finished,
            End::Failed(_) => AgentEnd::Failed,
            End::Stopped => AgentEnd::Stopped,
        },
        failure: match end {
            End::Failed(failure) => {
                Some(AgentFailure { code: code(failure.kind), message: failure.message.clone() })
            }
            _ => None,
        },
        summary: match end {
            End::Finished { summary } => Some(summary.clone()),
            _ => None,
        },
        log,
        refused,
        changes: review.report.changes.into_iter().map(ChangePart::from).collect(),
        held_back: review.inspection.held().iter().map(|held| held.record()).collect(),
        patch: String::from_utf8_lossy(&patch.bytes).into_owned(),
        confinement: Vec::new(),
        turns: 0,
        prompt_cache_hit_tokens: 0,
        prompt_cache_miss_tokens: 0,
        completion_tokens: 0,
        used,
    };
    for event in engine.events_of_task(&job.task.id)? {
        count(&mut document, event);
    }
    Ok(document)
}

fn count(document: &mut AgentDocument, event: Event) {
    match event {
        Event::ModelTurn { tokens, .. } => {
            document.turns += 1;
            document.prompt_cache_hit_tokens += tokens.prompt_cache_hit;
            document.prompt_cache_miss_tokens += tokens.prompt_cache_miss;
            document.completion_tokens += tokens.completion;
        }
        Event::AgentConfined { probes } => document.confinement = probes,
        _ => {}
    }
}

/// Shows what came of it.
pub(super) fn show(console: &Console, document: &AgentDocument) {
    console.answer(document, |paint| render::agent(document, paint));
}
