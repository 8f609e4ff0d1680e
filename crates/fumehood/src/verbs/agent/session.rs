//! One process of the agent at work on one task, from its start to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Duration;

use ::agent::Secret;
use ::agent::conversation::Message;
use ::agent::protocol::{
    AgentLimits, Confined, EngineSide, Failure, FailureKind, FromAgent, Proposal, ProtocolError, Running,
    Start, TurnRecord,
};
use engine::{Engine, Workspace};
use model::event::Event;
use model::evidence::Probe;
use model::task::Task;
use model::{Profile, TaskId};
use serde_json::value::to_raw_value;

use super::call::{self, Made};
use super::interrupt::Interrupt;
use super::source::ModelSource;
use crate::error::CliError;
use crate::exit::Exit;
use crate::verbs::context::Context;

/// Our own file, whatever has become of its name.
const OURSELVES: &str = "/proc/self/exe";
/// The hidden verb that is the agent's process.
const VERB: &str = "__agent";

/// How an agent works on a task.
pub(in crate::verbs) struct Plan {
    /// How many answers of the model the task may take.
    pub(in crate::verbs) turns: u32,
    /// What each action asks for.
    pub(in crate::verbs) asked: Profile,
    /// Whether the task starts from a commit.
    pub(in crate::verbs) from_commit: bool,
    /// How long to wait for a person, where policy wants one's yes.
    pub(in crate::verbs) wait: Option<Duration>,
    /// The layer that a build for tests leaves out.
    pub(in crate::verbs) mutant: Option<String>,
}

/// An agent that is to work on a task.
pub(in crate::verbs) struct Job<'j> {
    pub(in crate::verbs) context: &'j Context<'j>,
    pub(in crate::verbs) engine: &'j Engine,
    pub(in crate::verbs) task: Task,
    pub(in crate::verbs) workspace: Workspace,
    pub(in crate::verbs) source: ModelSource,
    pub(in crate::verbs) plan: Plan,
    /// The profile that the actions name, as it holds.
    pub(in crate::verbs) holds: Profile,
}

/// How the work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verbs) enum End {
    /// The model says that the task is done.
    Finished {
        /// What it says it did.
        summary: String,
    },
    /// The agent cannot go on.
    Failed(Failure),
    /// Somebody stopped it.
    Stopped,
}

impl End {
    /// Returns the code that the record has for it.
    fn reason(&self) -> String {
        match self {
            Self::Finished { .. } => "finished".to_owned(),
            Self::Stopped => "stopped".to_owned(),
            Self::Failed(failure) => code(failure.kind),
        }
    }

    /// Returns how the program ends: what the task or the model could not do is an answer, everything else is not.
    pub(in crate::verbs) fn exit(&self) -> Exit {
        use FailureKind::{Context, Silent, Stuck, Tokens, Turns, Withheld};
        match self {
            Self::Finished { .. } => Exit::Success,
            Self::Stopped => Exit::Signal(2),
            Self::Failed(failure) => match failure.kind {
                Turns | Tokens | Context | Stuck | Silent | Withheld => Exit::Negative,
                _ => Exit::Failed,
            },
        }
    }
}

/// Returns the word that a kind of failure has in JSON.
pub(super) fn code(kind: FailureKind) -> String {
    let word = serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned));
    word.unwrap_or_else(|| "failed".to_owned())
}

/// Is told what goes on.
pub(in crate::verbs) trait Watch {
    /// The agent's process gave up its rights, and tried what it must not be able to do.
    fn confined(&mut self, probes: &[Probe]);
    /// Somebody has to wait for this.
    fn waits(&mut self, what: &str);
    /// The model said this beside its calls.
    fn said(&mut self, text: &str);
    /// A call was carried out, or refused.
    fn made(&mut self, proposal: &Proposal, made: &Made);
}

/// Records that an agent starts on a task, and how.
pub(in crate::verbs) fn announce(
    engine: &Engine,
    task: &TaskId,
    source: &ModelSource,
    plan: &Plan,
) -> Result<(), CliError> {
    let event = Event::AgentStarted {
        model: source.model.clone(),
        server: source.base_url.clone(),
        transcript: source.transcript,
        from_commit: plan.from_commit,
        turns: plan.turns,
        profile: Box::new(plan.asked.clone()),
    };
    Ok(engine.note(task, &event)?)
}

impl Job<'_> {
    /// Lets an agent work until it is done, stopped or cannot go on.
    pub(in crate::verbs) fn run(
        &self,
        watch: &mut dyn Watch,
        interrupt: &Interrupt,
    ) -> Result<End, CliError> {
        let _alone = self.engine.at_work(&self.task.id)?;
        let end = self.work(watch, interrupt);
        self.engine.unpark();
        let end = match end {
            Err(error) if !interrupt.came() => return Err(error),
            Err(_) => End::Stopped,
            Ok(end) => end,
        };
        let finished = matches!(end, End::Finished { .. });
        self.engine.note(&self.task.id, &Event::AgentEnded { finished, reason: end.reason() })?;
        Ok(end)
    }

    fn work(&self, watch: &mut dyn Watch, interrupt: &Interrupt) -> Result<End, CliError> {
        let (_process, side) = Process::start(interrupt)?;
        watch.waits("starting the agent");
        let confined = match side.prepare(&self.source.base_url, None) {
            Ok(confined) => confined,
            Err(ProtocolError::FailedEarly(failure)) => return Ok(End::Failed(failure)),
            Err(error) => return Err(lost(&error)),
        };
        self.engine.agent_confined(&self.task.id, confined.probes())?;
        watch.confined(confined.probes());
        let mut running = self.start(confined)?;
        loop {
            let said = match running.hear() {
                Ok(Some(said)) => said,
                Ok(None) => return Err(lost(&ProtocolError::Gone)),
                Err(error) => return Err(lost(&error)),
            };
            if interrupt.came() {
                return Ok(End::Stopped);
            }
            match said {
                FromAgent::Propose(proposal) => {
                    watch.waits(proposal.tool.name());
                    let made = call::make(self, &proposal, interrupt)?;
                    watch.made(&proposal, &made);
                    if interrupt.came() {
                        return Ok(End::Stopped);
                    }
                    running.answer(proposal.call, made.result.clone()).map_err(|error| lost(&error))?;
                    call::park(self, &proposal, &made);
                }
                FromAgent::Message { message } => self.keep(&message, watch)?,
                FromAgent::Turn(turn) => {
                    self.keep_turn(&turn)?;
                    // A model is asked for nothing more where no action could start.
                    if let Some(halt) = self.engine.halt_of(&self.task)? {
                        self.context
                            .console
                            .say_always(&format!("fumehood: the agent is stopped: {}", halt.why()));
                        return Ok(End::Stopped);
                    }
                }
                FromAgent::Progress(progress) => watch.waits(&super::report::waiting(&progress)),
                FromAgent::Finished { summary } => return Ok(End::Finished { summary }),
                FromAgent::Failed(failure) => return Ok(End::Failed(failure)),
                FromAgent::Confined { .. } => return Err(lost(&ProtocolError::Gone)),
            }
        }
    }

    /// Gives the agent its task and what was said before.
    fn start(
        &self,
        confined: Confined<ChildStdout, ChildStdin>,
    ) -> Result<Running<ChildStdout, ChildStdin>, CliError> {
        let stored = self.engine.store().messages(&self.task.id)?;
        let damaged = |error| CliError::Cannot(format!("the stored conversation cannot be read: {error}"));
        let earlier: Vec<Message> = stored
            .iter()
            .map(|message| serde_json::from_str(message.get()).map_err(damaged))
            .collect::<Result<_, _>>()?;
        let secrets = &self.engine.config().secrets;
        let start = Start {
            task: self.task.id.clone(),
            text: self.task.title.clone().unwrap_or_default(),
            workspace: self.task.workspace.path.clone(),
            model: self.source.model.clone(),
            effort: None,
            key: self.source.key.clone(),
            secrets: secrets.iter().filter_map(|(_, secret)| secret.to_str()).map(Secret::new).collect(),
            limits: AgentLimits { turns: self.plan.turns, ..AgentLimits::default() },
            tokens_used: tokens_used(&self.engine.events_of_task(&self.task.id)?),
        };
        confined.start(&start, &earlier).map_err(|error| lost(&error))
    }

    /// Keeps a message before anything builds on it.
    fn keep(&self, message: &Message, watch: &mut dyn Watch) -> Result<(), CliError> {
        let body = to_raw_value(message)
            .map_err(|error| CliError::Cannot(format!("a message cannot be written down: {error}")))?;
        self.engine.keep_message(&self.task.id, &body)?;
        if let Message::Assistant(turn) = message
            && !turn.content.trim().is_empty()
        {
            watch.said(turn.content.trim());
        }
        Ok(())
    }

    fn keep_turn(&self, turn: &TurnRecord) -> Result<(), CliError> {
        let TurnRecord { model, sent, response, usage } = turn;
        let turn = engine::Turn { model, sent, response: *response, tokens: *usage };
        Ok(self.engine.model_turn(&self.task.id, &turn)?)
    }
}

/// Adds up the tokens that a task used.
fn tokens_used(events: &[Event]) -> u64 {
    let used = events.iter().map(|event| match event {
        Event::ModelTurn { tokens, .. } => {
            [tokens.prompt_cache_hit, tokens.prompt_cache_miss, tokens.completion]
                .iter()
                .fold(0, |sum: u64, part| sum.saturating_add(*part))
        }
        _ => 0,
    });
    used.fold(0, u64::saturating_add)
}

fn lost(error: &ProtocolError) -> CliError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    CliError::Cannot(format!("the agent's process cannot be worked with: {error}{cause}"))
}

/// The agent's process. It is ended and waited for when this value goes.
struct Process(Child);

impl Process {
    fn start(interrupt: &Interrupt) -> Result<(Self, EngineSide<ChildStdout, ChildStdin>), CliError> {
        let started = sandbox::service::spawn_agent(Path::new(OURSELVES), &[OsStr::new(VERB)], None);
        let started = started.map_err(CliError::system("start the agent's process"))?;
        let process = Self(started.child);
        interrupt.ends(&process.0)?;
        Ok((process, EngineSide::new(started.stdout, started.stdin)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to finish: what it said is kept already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
