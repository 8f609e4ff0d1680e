//! The engine's end of the pipe. Each step is possible only on the type that the step before it returns, so that
//! the key cannot be sent to an agent that has not shown that it gave up its rights.

use std::io::{Read, Write};

use model::evidence::Probe;
use model::{OsText, TaskId};
use serde::{Deserialize, Serialize};

use super::link::Link;
use super::{AgentLimits, Answer, Effort, FromAgent, Prepare, ProtocolError, Start, VERSION};
use crate::answer::ToolResult;
use crate::conversation::{CallId, Message, check};

/// Everything that the engine can say.
#[derive(Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ToAgent {
    Prepare(Prepare),
    Start(StartLine),
    Earlier { message: Message },
    Answer(Answer),
}

impl ToAgent {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "`prepare`",
            Self::Start(_) => "`start`",
            Self::Earlier { .. } => "`earlier`",
            Self::Answer(_) => "`answer`",
        }
    }
}

/// [`Start`] as it crosses the pipe: the only form in which the key is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StartLine {
    pub(super) task: TaskId,
    pub(super) text: String,
    pub(super) workspace: OsText,
    pub(super) model: String,
    pub(super) effort: Option<Effort>,
    pub(super) key: String,
    pub(super) secrets: Vec<String>,
    pub(super) limits: AgentLimits,
    pub(super) tokens_used: u64,
    /// How many `earlier` lines follow.
    pub(super) earlier: u64,
}

/// The engine's end of the pipe, to an agent that has been told nothing yet.
#[derive(Debug)]
pub struct EngineSide<R: Read, W>(Link<R, W>);

/// The engine's end of the pipe, to an agent that says it gave up its rights.
#[derive(Debug)]
pub struct Confined<R: Read, W> {
    link: Link<R, W>,
    probes: Vec<Probe>,
}

/// The engine's end of the pipe, to an agent at work.
#[derive(Debug)]
pub struct Running<R: Read, W> {
    link: Link<R, W>,
    waiting: Option<CallId>,
    ended: bool,
}

impl<R: Read, W: Write> EngineSide<R, W> {
    /// Takes the agent's standard output and standard input.
    pub fn new(reader: R, writer: W) -> Self {
        Self(Link::new(reader, writer))
    }

    /// Tells the agent where the model is, and waits until it has given up its rights.
    ///
    /// # Errors
    /// When the agent fails, is gone, or speaks another version.
    pub fn prepare(
        mut self,
        base_url: &str,
        roots_pem: Option<&str>,
    ) -> Result<Confined<R, W>, ProtocolError> {
        let (base_url, roots_pem) = (base_url.to_owned(), roots_pem.map(str::to_owned));
        self.0.send(&ToAgent::Prepare(Prepare { version: VERSION, base_url, roots_pem }))?;
        match self.0.expect()? {
            FromAgent::Confined { version: VERSION, probes } => Ok(Confined { link: self.0, probes }),
            FromAgent::Confined { version, .. } => Err(ProtocolError::Version(version)),
            FromAgent::Failed(failure) => Err(ProtocolError::FailedEarly(failure)),
            other => Err(ProtocolError::Order { got: other.name(), due: "`confined`" }),
        }
    }
}

impl<R: Read, W: Write> Confined<R, W> {
    /// Returns what the agent tried and saw, for the record.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Gives the agent its task, the key, and the messages that were stored of it.
    ///
    /// # Errors
    /// When the agent showed nothing, a probe did not hold, or the messages are not a conversation; the key has not
    /// been sent then.
    pub fn start(mut self, start: &Start, earlier: &[Message]) -> Result<Running<R, W>, ProtocolError> {
        match self.probes.iter().find(|probe| !probe.held) {
            Some(probe) => {
                return Err(ProtocolError::NotConfined(model::text::escape(&probe.name).into_owned()));
            }
            None if self.probes.is_empty() => {
                return Err(ProtocolError::NotConfined("it tried nothing".into()));
            }
            None => {}
        }
        check(earlier)?;
        self.link.send(&ToAgent::Start(start_line(start, earlier.len() as u64)))?;
        for message in earlier {
            self.link.send(&ToAgent::Earlier { message: message.clone() })?;
        }
        Ok(Running { link: self.link, waiting: None, ended: false })
    }
}

fn start_line(start: &Start, earlier: u64) -> StartLine {
    StartLine {
        task: start.task.clone(),
        text: start.text.clone(),
        workspace: start.workspace.clone(),
        model: start.model.clone(),
        effort: start.effort,
        key: start.key.expose().to_owned(),
        secrets: start.secrets.iter().map(|secret| secret.expose().to_owned()).collect(),
        limits: start.limits,
        tokens_used: start.tokens_used,
        earlier,
    }
}

impl<R: Read, W: Write> Running<R, W> {
    /// Waits for what the agent says next; nothing when it has ended.
    ///
    /// # Errors
    /// When the agent says something that is not due: anything after its end, anything but waiting after a
    /// proposal.
    pub fn hear(&mut self) -> Result<Option<FromAgent>, ProtocolError> {
        let Some(said) = self.link.receive::<FromAgent>()? else {
            return Ok(None);
        };
        if self.ended {
            return Err(ProtocolError::Order { got: said.name(), due: "the end" });
        }
        if self.waiting.is_some() {
            return Err(ProtocolError::Order { got: said.name(), due: "our answer" });
        }
        match &said {
            FromAgent::Confined { .. } => {
                return Err(ProtocolError::Order { got: said.name(), due: "work" });
            }
            FromAgent::Propose(proposal) => self.waiting = Some(proposal.call),
            FromAgent::Finished { .. } | FromAgent::Failed(_) => self.ended = true,
            FromAgent::Message { .. } | FromAgent::Turn(_) | FromAgent::Progress(_) => {}
        }
        Ok(Some(said))
    }

    /// Answers the proposal that waits.
    ///
    /// # Errors
    /// When the agent is gone, or no such call waits.
    pub fn answer(&mut self, call: CallId, result: ToolResult) -> Result<(), ProtocolError> {
        match self.waiting.take() {
            Some(due) if due == call => self.link.send(&ToAgent::Answer(Answer { call, result })),
            Some(due) => Err(ProtocolError::Call { got: call, due }),
            None => Err(ProtocolError::Order { got: "an answer", due: "a proposal" }),
        }
    }
}
