//! The agent's end of the pipe.

use std::io::{Read, Write};

use model::evidence::Probe;

use super::engine_side::{StartLine, ToAgent};
use super::link::Link;
use super::{Answer, FromAgent, Prepare, Proposal, ProtocolError, Start, VERSION};
use crate::answer::ToolResult;
use crate::conversation::{Message, check};
use crate::secret::Secret;

/// The agent's end of the pipe.
#[derive(Debug)]
pub struct AgentSide<R: Read, W>(Link<R, W>);

impl<R: Read, W: Write> AgentSide<R, W> {
    /// Takes both directions of the pipe.
    pub fn new(reader: R, writer: W) -> Self {
        Self(Link::new(reader, writer))
    }

    /// Waits for what must be known before the agent gives up its rights.
    ///
    /// # Errors
    /// When something else comes, or another version speaks.
    pub fn prepare(&mut self) -> Result<Prepare, ProtocolError> {
        match self.0.expect()? {
            ToAgent::Prepare(prepare) if prepare.version == VERSION => Ok(prepare),
            ToAgent::Prepare(prepare) => Err(ProtocolError::Version(prepare.version)),
            other => Err(ProtocolError::Order { got: other.name(), due: "`prepare`" }),
        }
    }

    /// Says that the agent has given up its rights.
    ///
    /// # Errors
    /// When the engine is gone.
    pub fn confined(&mut self, probes: Vec<Probe>) -> Result<(), ProtocolError> {
        self.say(&FromAgent::Confined { version: VERSION, probes })
    }

    /// Waits for the task, the key and the messages of an earlier process.
    ///
    /// # Errors
    /// When something else comes, or the messages are not a conversation.
    pub fn start(&mut self) -> Result<(Start, Vec<Message>), ProtocolError> {
        let line = match self.0.expect()? {
            ToAgent::Start(line) => line,
            other => return Err(ProtocolError::Order { got: other.name(), due: "`start`" }),
        };
        let mut messages = Vec::new();
        for _ in 0..line.earlier {
            match self.0.expect()? {
                ToAgent::Earlier { message } => messages.push(message),
                other => return Err(ProtocolError::Order { got: other.name(), due: "`earlier`" }),
            }
        }
        check(&messages)?;
        Ok((Start::from(line), messages))
    }

    /// Says something that needs no answer.
    ///
    /// # Errors
    /// When the engine is gone.
    pub fn say(&mut self, what: &FromAgent) -> Result<(), ProtocolError> {
        self.0.send(what)
    }

    /// Proposes something and waits for what came of it.
    ///
    /// # Errors
    /// When the engine is gone, or answers another call.
    pub fn propose(&mut self, proposal: Proposal) -> Result<ToolResult, ProtocolError> {
        let due = proposal.call;
        self.say(&FromAgent::Propose(proposal))?;
        match self.0.expect()? {
            ToAgent::Answer(Answer { call, result }) if call == due => Ok(result),
            ToAgent::Answer(Answer { call, .. }) => Err(ProtocolError::Call { got: call, due }),
            other => Err(ProtocolError::Order { got: other.name(), due: "`answer`" }),
        }
    }
}

impl From<StartLine> for Start {
    fn from(line: StartLine) -> Self {
        Self {
            task: line.task,
            text: line.text,
            workspace: line.workspace,
            model: line.model,
            effort: line.effort,
            key: Secret::new(line.key),
            secrets: line.secrets.into_iter().map(Secret::new).collect(),
            limits: line.limits,
            tokens_used: line.tokens_used,
        }
    }
}
