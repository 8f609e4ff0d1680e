//! The conversation with a model, as it is stored: who said what, and which call each answer belongs to.
//!
//! Guarantees: the stored form says everything that the loop needs to go on, and nothing that was sent is lost
//! but what [`crate::context`] says it leaves out.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One message of a conversation. Its JSON form is what the engine stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// What we tell the model about where it is.
    System {
        /// The text.
        content: String,
    },
    /// The task, or a remark of the loop.
    User {
        /// The text.
        content: String,
    },
    /// What the model said.
    Assistant(Turn),
    /// The answer to one call.
    Tool(Answered),
}

/// One turn of the model, exactly as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The text for people; may be empty.
    pub content: String,
    /// What the model thought. The server demands it back in every later request, so it is never dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why the server ended the turn: `stop`, `tool_calls`, `length` or a word that we do not know.
    pub finish_reason: String,
}

/// A call that the model wants to be made. The name and the arguments are its own words and may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The model's name for the call, unique in its turn.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: JSON, or what the model took for it.
    pub arguments: String,
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// The model's name for the call.
    pub tool_call_id: String,
    /// The answer.
    pub content: String,
    /// Whether the call did not do what was asked.
    pub failed: bool,
}

/// Names one call of one conversation by its place: the turn (from 1) and the call in it (from 1).
///
/// It is the same after a resume, whatever names the model gives its calls, so the engine can tell a call that it
/// has seen from a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId {
    /// The turn, from 1.
    pub turn: u32,
    /// The call in the turn, from 1.
    pub call: u32,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.call)
    }
}

/// Says that a text does not name a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` does not name a call: expected the turn and the call, for example `3.1`", model::text::escape(.0))]
pub struct CallIdError(String);

impl FromStr for CallId {
    type Err = CallIdError;

    fn from_str(text: &str) -> Result<Self, CallIdError> {
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|n| n.to_string() == digits);
        let (turn, call) = text.split_once('.').unwrap_or(("", ""));
        match (number(turn), number(call)) {
            (Some(turn), Some(call)) => Ok(Self { turn, call }),
            _ => Err(CallIdError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for CallId {
    type Error = CallIdError;

    fn try_from(text: String) -> Result<Self, CallIdError> {
        text.parse()
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> String {
        id.to_string()
    }
}

/// Says what is wrong with a stored conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// It does not begin with our system message and the task.
    #[error("message {0} is not where it belongs: a conversation begins with a system message and the task")]
    Start(usize),
    /// An answer belongs to no call that is waiting for one.
    #[error("message {at} answers `{}`, which no call before it is waiting for", model::text::escape(id))]
    Stray {
        /// The message, from 1.
        at: usize,
        /// The call that it names.
        id: String,
    },
    /// Somebody spoke while a call was waiting for its answer.
    #[error("message {0} comes before the answers to all calls of the turn above it")]
    Early(usize),
}

/// Checks that a stored conversation is one that the loop can have written.
///
/// # Errors
/// When an answer stands where no call is waiting for it, or something else stands where an answer must.
pub fn check(messages: &[Message]) -> Result<(), ConversationError> {
    let mut waiting: std::collections::VecDeque<&str> = std::collections::VecDeque::new();
    for (place, message) in messages.iter().enumerate() {
        let at = place + 1;
        match message {
            Message::System { .. } if place != 0 => return Err(ConversationError::Start(at)),
            Message::User { .. } if place == 0 => return Err(ConversationError::Start(at)),
            Message::Assistant(_) | Message::Tool(_) if place < 2 => {
                return Err(ConversationError::Start(at));
            }
            Message::Tool(answer) if waiting.front() != Some(&answer.tool_call_id.as_str()) => {
                return Err(ConversationError::Stray { at, id: answer.tool_call_id.clone() });
            }
            Message::Tool(_) => {
                waiting.pop_front();
            }
            _ if !waiting.is_empty() => return Err(ConversationError::Early(at)),
            Message::Assistant(turn) => waiting.extend(turn.tool_calls.iter().map(|call| call.id.as_str())),
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() }
    }

    fn answer(id: &str) -> Message {
        Message::Tool(Answered { tool_call_id: id.to_owned(), content: String::new(), failed: false })
    }

    fn begun(rest: Vec<Message>) -> Vec<Message> {
        let start = [Message::System { content: "s".into() }, Message::User { content: "t".into() }];
        start.into_iter().chain(rest).collect()
    }

    #[test]
    fn a_call_id_is_read_back_and_nothing_else_is_taken() {
        let id = CallId { turn: 12, call: 1 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "1", "1.", ".1", "1.2.3", "+1.2", "01.1", "1.x", "99999999999.1"] {
            assert!(wrong.parse::<CallId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_conversation_may_stop_anywhere_but_not_lose_an_answer() {
        let turn = Message::Assistant(Turn { tool_calls: vec![call("a"), call("b")], ..Turn::default() });
        let whole = begun(vec![turn, answer("a"), answer("b"), Message::User { content: "go on".into() }]);
        for end in 0..=whole.len() {
            assert_eq!(check(&whole[..end]), Ok(()), "{end}");
        }
        let mut lost = whole.clone();
        lost.remove(3);
        assert_eq!(check(&lost), Err(ConversationError::Stray { at: 4, id: "b".into() }));
        let mut early = whole;
        early.remove(4);
        assert_eq!(check(&early), Err(ConversationError::Early(5)));
    }

    #[test]
    fn a_conversation_begins_with_its_system_message_and_the_task() {
        assert_eq!(check(&[Message::User { content: "t".into() }]), Err(ConversationError::Start(1)));
        let two = [Message::System { content: "s".into() }, Message::Assistant(Turn::default())];
        assert_eq!(check(&two), Err(ConversationError::Start(2)));
        assert_eq!(
            check(&begun(vec![Message::System { content: "x".into() }])),
            Err(ConversationError::Start(3))
        );
    }
}
