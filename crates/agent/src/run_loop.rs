//! The loop: asks the model, proposes what it calls for, hands back what came of it, until the task ends.
//!
//! Guarantees: each message is said to the engine before anything builds on it; what comes next is decided by
//! the messages alone, so a task that was stopped anywhere goes on exactly as it would have; a refusal is an
//! answer and never ends the loop by itself.
//! Leaves to others: everything that has an effect.

use std::io::{Read, Write};

use crate::answer::Told;
use crate::context::{Outgoing, cut_middle};
use crate::conversation::{Answered, Message, Turn};
use crate::deepseek::ClientError;
use crate::protocol::{
    AgentSide, Failure, FailureKind, FromAgent, Progress, ProtocolError, Start, TurnRecord,
};
use crate::redact::Secrets;
use crate::steps::{Step, next};

/// Is told what a model is waiting for; an error says that nobody is there to be told, and ends the waiting.
pub type Report<'a> = dyn FnMut(Progress) -> Result<(), ProtocolError> + 'a;

/// Something that takes a conversation and says what comes next in it.
pub trait Model {
    /// Asks for the next turn.
    ///
    /// # Errors
    /// When there is no answer that can be used.
    fn ask(&mut self, outgoing: &Outgoing, report: &mut Report<'_>) -> Result<Reply, ClientError>;
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it said.
    pub turn: Turn,
    /// What is recorded of it.
    pub record: TurnRecord,
}

/// Runs a task from its beginning, or from where its stored messages end.
///
/// # Errors
/// When the engine is gone or does not keep to the protocol. That the task failed is no error: the engine was told.
pub fn run<R: Read, W: Write>(
    side: &mut AgentSide<R, W>,
    model: &mut dyn Model,
    start: &Start,
    earlier: Vec<Message>,
    secrets: &Secrets,
) -> Result<(), ProtocolError> {
    let tokens = start.tokens_used;
    let mut task = Task { side, start, secrets, messages: earlier, tokens };
    loop {
        match next(start, &task.messages, task.tokens) {
            Step::Say(message) => task.add(message)?,
            Step::Propose(proposal, id) => {
                let tool = proposal.tool.clone();
                let told = task.side.propose(proposal)?.told(&tool);
                task.add(answer(id, told))?;
            }
            Step::Ask => {
                if let Err(failure) = task.ask(model)? {
                    return task.fail(failure);
                }
            }
            Step::Finish(summary) => {
                let summary = secrets.redact(&summary).into_owned();
                return task.side.say(&FromAgent::Finished { summary });
            }
            Step::Fail(failure) => return task.fail(failure),
        }
    }
}

fn answer(id: String, told: Told) -> Message {
    Message::Tool(Answered { tool_call_id: id, content: told.text, failed: told.failed })
}

struct Task<'a, R: Read, W> {
    side: &'a mut AgentSide<R, W>,
    start: &'a Start,
    secrets: &'a Secrets,
    messages: Vec<Message>,
    tokens: u64,
}

impl<R: Read, W: Write> Task<'_, R, W> {
    /// Adds a message: the engine stores it first.
    fn add(&mut self, message: Message) -> Result<(), ProtocolError> {
        let message = self.fit_to_store(message);
        self.side.say(&FromAgent::Message { message: message.clone() })?;
        self.messages.push(message);
        Ok(())
    }

    /// Takes secrets out before a message is stored, and cuts long answers. What the model said stays as it is,
    /// because its calls are made from the stored message.
    fn fit_to_store(&self, message: Message) -> Message {
        let most = usize::try_from(self.start.limits.answer_bytes).unwrap_or(usize::MAX);
        match message {
            Message::User { content } => {
                Message::User { content: self.secrets.redact(&content).into_owned() }
            }
            Message::Tool(mut answer) => {
                let clean = self.secrets.redact(&answer.content);
                answer.content = cut_middle(&clean, most, "because the answer was long");
                Message::Tool(answer)
            }
            Message::System { .. } | Message::Assistant(_) => message,
        }
    }

    /// Asks the model for its next turn.
    fn ask(&mut self, model: &mut dyn Model) -> Result<Result<(), Failure>, ProtocolError> {
        let outgoing = match Outgoing::new(&self.messages, self.secrets, self.start.limits.context_bytes) {
            Ok(outgoing) => outgoing,
            Err(error) => return Ok(Err(Failure { kind: FailureKind::Context, message: error.to_string() })),
        };
        self.side.say(&FromAgent::Progress(Progress::Asking { turn: outgoing.turn() }))?;
        let side = &mut *self.side;
        let reply = match model.ask(&outgoing, &mut |progress| side.say(&FromAgent::Progress(progress))) {
            Ok(reply) => reply,
            Err(ClientError::Abandoned(error)) => return Err(error),
            Err(error) => return Ok(Err(Failure { kind: error.kind(), message: error.with_causes() })),
        };
        let usage = reply.record.usage;
        let used = [usage.prompt_cache_hit, usage.prompt_cache_miss, usage.completion];
        self.tokens = used.iter().fold(self.tokens, |sum, part| sum.saturating_add(*part));
        self.side.say(&FromAgent::Turn(reply.record))?;
        self.add(Message::Assistant(reply.turn)).map(Ok)
    }

    fn fail(&mut self, failure: Failure) -> Result<(), ProtocolError> {
        let message = self.secrets.redact(&failure.message).into_owned();
        self.side.say(&FromAgent::Failed(Failure { message, ..failure }))
    }
}
