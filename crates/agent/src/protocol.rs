//! What the agent and the engine say to each other: one JSON object a line, over the agent's standard streams.
//!
//! The order is fixed. Engine: [`Prepare`]. Agent: it looks up the server's address, gives up its rights, and says
//! [`FromAgent::Confined`]. Only then does the engine send [`Start`] with the key, followed by the stored messages.
//! From then on the agent speaks, and the engine answers each [`Proposal`] with one [`Answer`].
//!
//! Guarantees: lines are bounded, nothing that is read can end the reader but with an error, words that are not
//! known are refused, and the key has no JSON form outside this module.
//! Leaves to others: what is stored, and what a proposal leads to.
//!
//! # Resuming
//!
//! The agent says each [`FromAgent::Message`] once, when it is added, and before anything that builds on it: the
//! messages that the engine holds when the agent dies are a beginning of the conversation. Started again with them,
//! the agent goes on where they end. A call whose answer is not among them is proposed again under the same
//! [`CallId`], and what that means is the engine's to say, because only it knows what happened:
//!
//! - a call that it never saw is a new one;
//! - a call whose outcome it has recorded gets that outcome again, and nothing runs twice;
//! - a call that was started and whose end nobody saw gets [`crate::ToolResult::Unknown`], and the model decides
//!   whether to repeat it.

mod agent_side;
mod engine_side;
mod link;

use model::event::TokenUsage;
use model::evidence::Probe;
use model::{Digest, OsText, TaskId, Tool, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::answer::ToolResult;
use crate::conversation::{CallId, ConversationError, Message};
use crate::secret::Secret;

pub use agent_side::AgentSide;
pub use engine_side::{Confined, EngineSide, Running};

/// The version of this protocol. Both ends are one binary, so another version is a mixed-up installation.
pub const VERSION: u32 = 1;

/// The longest line, in bytes.
pub const LINE_MAX: usize = 64 << 20;

/// The first line: what the agent must know before it gives up its rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// [`VERSION`].
    pub version: u32,
    /// Where the model answers, for example `https://api.deepseek.com`.
    pub base_url: String,
    /// Certificates (PEM) to trust instead of the built-in ones, for a gateway with a certificate of its own.
    pub roots_pem: Option<String>,
}

/// What the agent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The task; the model's server sees this name and no person's.
    pub task: TaskId,
    /// What is to be done, in the words of whoever asked.
    pub text: String,
    /// The workspace's directory, as the sandbox shows it.
    pub workspace: OsText,
    /// The model.
    pub model: String,
    /// How hard the model is to think; its own default when missing.
    pub effort: Option<Effort>,
    /// The key of the model's server.
    pub key: Secret,
    /// Other texts that the model must not read.
    pub secrets: Vec<Secret>,
    /// When to stop.
    pub limits: AgentLimits,
    /// Tokens that earlier processes of this task used.
    pub tokens_used: u64,
}

/// How hard the model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// The server's default.
    High,
    /// As much as it can.
    Max,
}

/// When the agent stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentLimits {
    /// Turns of the model, over the whole task.
    pub turns: u32,
    /// Tokens in and out, over the whole task.
    pub tokens: u64,
    /// Bytes of one request's messages.
    pub context_bytes: u64,
    /// Bytes of one answer to a call; longer ones are cut in the middle before they are stored.
    pub answer_bytes: u64,
    /// Tokens of one turn; the server's default when missing.
    pub turn_tokens: Option<u32>,
}

impl Default for AgentLimits {
    /// Room for a long task with a model that reads a million tokens: 2 MiB of text are about half of that.
    fn default() -> Self {
        Self {
            turns: 200,
            tokens: 20_000_000,
            context_bytes: 2 << 20,
            answer_bytes: 64 << 10,
            turn_tokens: None,
        }
    }
}

/// The engine's answer to one proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The call.
    pub call: CallId,
    /// What came of it.
    pub result: ToolResult,
}

/// Everything that the agent can say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromAgent {
    /// It has given up its rights.
    Confined {
        /// [`VERSION`].
        version: u32,
        /// What it tried, and what it saw.
        probes: Vec<Probe>,
    },
    /// The model wants something done. The agent waits for the answer.
    Propose(Proposal),
    /// A message was added to the conversation.
    Message {
        /// The message.
        message: Message,
    },
    /// The model was asked and answered. It comes before the message, so that what was paid for is never lost.
    Turn(TurnRecord),
    /// Something that takes time is going on.
    Progress(Progress),
    /// The task is done, says the model.
    Finished {
        /// What it says it did: a claim, in its own words.
        summary: String,
    },
    /// The agent cannot go on.
    Failed(Failure),
}

/// What the model wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The call.
    pub call: CallId,
    /// What is to be done.
    pub tool: Tool,
    /// Where a command starts; the top of the workspace when missing.
    pub directory: Option<WorkspacePath>,
    /// What the model said beside the call: a claim.
    pub purpose: Option<String>,
}

/// One answer of the model, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// The model that the server says answered.
    pub model: String,
    /// The request's body: all that the model was sent.
    pub sent: String,
    /// Digest of the response's body, as it was received.
    pub response: Digest,
    /// Tokens, as the server counted them.
    pub usage: TokenUsage,
}

/// What the agent is waiting for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "now", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Progress {
    /// The model is asked.
    Asking {
        /// The turn, from 1.
        turn: u32,
    },
    /// The server has the request in its queue and says that it is alive.
    Queued,
    /// The answer began.
    Answering,
    /// The server did not answer well, and will be asked again.
    Retrying {
        /// The try that failed, from 1.
        attempt: u32,
        /// How many tries there are.
        attempts: u32,
        /// How long until the next one, in milliseconds.
        wait_ms: u64,
        /// What happened.
        why: String,
    },
}

/// Why the agent cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind, for programs.
    pub kind: FailureKind,
    /// What happened and what to do, for people.
    pub message: String,
}

/// Why the agent cannot go on, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The agent could not give up its rights, or a probe showed that it still has them.
    Confinement,
    /// What the engine sent cannot be used.
    Start,
    /// The base URL cannot be used, or its name not be found.
    Address,
    /// The server does not take the key.
    Key,
    /// The account has no balance.
    Balance,
    /// The server does not take the request.
    Request,
    /// The server did not answer well in all tries.
    Server,
    /// The server could not be reached in all tries.
    Connection,
    /// The server's certificate is not trusted.
    Certificate,
    /// The server wants the request, and the key with it, somewhere else.
    Redirect,
    /// What the server sent is no answer.
    Response,
    /// The server withheld the answer because of its content.
    Withheld,
    /// The model said nothing, twice.
    Silent,
    /// The model makes the same call again and again.
    Stuck,
    /// The turns of the task are used up.
    Turns,
    /// The tokens of the task are used up.
    Tokens,
    /// The conversation does not fit its budget any more.
    Context,
}

/// Says why the two ends do not understand each other.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The pipe failed.
    #[error("the pipe between the engine and the agent failed")]
    Pipe(#[source] std::io::Error),
    /// The other end is gone.
    #[error("the other end of the pipe is gone")]
    Gone,
    /// The stream ended in the middle of a line.
    #[error("the last line was cut: the other end died while it was writing")]
    Cut,
    /// A line is longer than allowed.
    #[error("a line is longer than {LINE_MAX} bytes")]
    TooLong,
    /// A line is not what it should be.
    #[error("a line is not a message of version {VERSION}: {reason}")]
    Syntax {
        /// What is wrong, without what was in the line.
        reason: String,
    },
    /// A message came when another was due.
    #[error("{got} came where {due} is due")]
    Order {
        /// What came.
        got: &'static str,
        /// What is due.
        due: &'static str,
    },
    /// The other end speaks another version.
    #[error(
        "the other end speaks version {0} of the protocol and this one {VERSION}: install one version of both"
    )]
    Version(u32),
    /// An answer is for another call.
    #[error("the answer is for call {got}, but call {due} is waiting")]
    Call {
        /// The call that was answered.
        got: CallId,
        /// The call that waits.
        due: CallId,
    },
    /// The agent did not show that it gave up its rights, so it does not get the key.
    #[error("the agent has not shown that it cannot start programs: {0}")]
    NotConfined(String),
    /// The stored messages are not a conversation.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The agent failed before it could be started.
    #[error("the agent failed before it was started: {}", model::text::escape(&.0.message))]
    FailedEarly(Failure),
}

impl FromAgent {
    /// Returns what errors call it.
    fn name(&self) -> &'static str {
        match self {
            Self::Confined { .. } => "`confined`",
            Self::Propose(_) => "`propose`",
            Self::Message { .. } => "`message`",
            Self::Turn(_) => "`turn`",
            Self::Progress(_) => "`progress`",
            Self::Finished { .. } => "`finished`",
            Self::Failed(_) => "`failed`",
        }
    }
}
