//! The one way by which text reaches a model: [`Outgoing`].
//!
//! Guarantees: the messages fit the budget or nothing is sent; every text has passed the check for secrets; what
//! the model said is never left out, cut or parted from its answers, so that the server's demand for its
//! `reasoning_content` is met; and what is cut once stays cut in the same way, so that the server's cache of the
//! beginning of a conversation stays useful.
//! Leaves to others: the tools that are offered, and the model's settings.

use serde_json::{Value, json};

use crate::conversation::{Message, ToolCall, Turn};
use crate::redact::Secrets;

/// What stays of each end of an answer that is cut for the first time, in bytes.
const FIRST_CUT: usize = 1024;
/// What stays of each end of an answer that is cut again.
const SECOND_CUT: usize = 120;
/// When the budget is passed, answers are cut until this part of it is free again, so that it happens rarely.
const FREED: u64 = 4;
/// What the server demands of the name of a function.
const NAME_MAX: usize = 64;

/// Messages that may be sent to a model. Only [`Outgoing::new`] makes one.
#[derive(Debug, Clone)]
pub struct Outgoing {
    messages: Vec<Value>,
    turn: u32,
}

/// Says that a conversation does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the conversation takes {bytes} bytes, though old answers were cut, and its budget is {budget}: raise the \
     budget, or split the task"
)]
pub struct ContextError {
    /// What it takes.
    pub bytes: u64,
    /// What it may take.
    pub budget: u64,
}

impl Outgoing {
    /// Takes secrets out of a conversation and makes it fit.
    ///
    /// # Errors
    /// When it does not fit even with all answers cut.
    pub fn new(messages: &[Message], secrets: &Secrets, budget: u64) -> Result<Self, ContextError> {
        let mut cutter = Cutter { budget, total: 0, parts: Vec::new() };
        for message in messages {
            cutter.add(redacted(message, secrets));
        }
        if cutter.total > budget {
            return Err(ContextError { bytes: cutter.total, budget });
        }
        let turns = messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        let turn = u32::try_from(turns).unwrap_or(u32::MAX).saturating_add(1);
        Ok(Self { messages: cutter.parts.iter().map(|part| wire(&part.message)).collect(), turn })
    }

    /// Returns the messages as the server reads them.
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Returns the turn that is asked for, from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }
}

/// One message, and how often it was cut.
struct Part {
    message: Message,
    bytes: u64,
    cuts: u8,
}

/// Walks through a conversation from its beginning and cuts when the budget is passed, so that what is cut depends
/// only on what came before.
struct Cutter {
    budget: u64,
    total: u64,
    parts: Vec<Part>,
}

impl Cutter {
    fn add(&mut self, message: Message) {
        let bytes = size(&message);
        self.total += bytes;
        self.parts.push(Part { message, bytes, cuts: 0 });
        if self.total > self.budget {
            let goal = self.budget - self.budget / FREED;
            let latest = self.parts.iter().rposition(|part| matches!(part.message, Message::Assistant(_)));
            let old = latest.unwrap_or(self.parts.len());
            self.cut(old, 1, FIRST_CUT, goal);
            self.cut(old, 2, SECOND_CUT, goal);
            // Only when nothing else helps: what the model has not read yet.
            self.cut(self.parts.len(), 1, FIRST_CUT, self.budget);
            self.cut(self.parts.len(), 2, SECOND_CUT, self.budget);
        }
    }

    /// Cuts answers before `end`, oldest first, that were cut less than `cuts` times, until `goal` is met.
    fn cut(&mut self, end: usize, cuts: u8, keep: usize, goal: u64) {
        for part in self.parts.iter_mut().take(end).filter(|part| part.cuts < cuts) {
            if self.total <= goal {
                return;
            }
            if let Message::Tool(answer) = &mut part.message {
                answer.content =
                    cut_middle(&answer.content, keep * 2, "to keep the conversation within its budget");
                part.cuts = cuts;
                let bytes = size(&part.message);
                self.total = self.total - part.bytes + bytes;
                part.bytes = bytes;
            }
        }
    }
}

/// Returns the text, or its two ends with a note of how much is missing, when it is longer than `most` bytes and
/// the note is worth it.
pub(crate) fn cut_middle(text: &str, most: usize, why: &str) -> String {
    let (head, tail) = (floor(text, most / 2), ceil(text, text.len().saturating_sub(most / 2)));
    let missing = tail.saturating_sub(head);
    let note = format!("\n[{missing} bytes were cut here {why}; ask for less at a time to see them]\n");
    if text.len() <= most || missing <= note.len() {
        return text.to_owned();
    }
    format!("{}{note}{}", &text[..head], &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Bytes of a message on the wire.
fn size(message: &Message) -> u64 {
    wire(message).to_string().len() as u64 + 1
}

fn redacted(message: &Message, secrets: &Secrets) -> Message {
    let clean = |text: &str| secrets.redact(text).into_owned();
    match message {
        Message::System { content } => Message::System { content: clean(content) },
        Message::User { content } => Message::User { content: clean(content) },
        Message::Tool(answer) => {
            let mut answer = answer.clone();
            answer.content = clean(&answer.content);
            Message::Tool(answer)
        }
        Message::Assistant(turn) => Message::Assistant(Turn {
            content: clean(&turn.content),
            reasoning_content: turn.reasoning_content.as_deref().map(clean),
            tool_calls: turn.tool_calls.iter().map(|call| redacted_call(call, secrets)).collect(),
            finish_reason: turn.finish_reason.clone(),
        }),
    }
}

fn redacted_call(call: &ToolCall, secrets: &Secrets) -> ToolCall {
    let clean = |text: &str| secrets.redact(text).into_owned();
    ToolCall { id: call.id.clone(), name: clean(&call.name), arguments: clean(&call.arguments) }
}

/// Returns a message as the server reads it.
fn wire(message: &Message) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Tool(answer) => {
            json!({ "role": "tool", "tool_call_id": answer.tool_call_id, "content": answer.content })
        }
        Message::Assistant(turn) => wire_turn(turn),
    }
}

fn wire_turn(turn: &Turn) -> Value {
    // The server refuses a turn that says nothing at all.
    let silent = turn.content.is_empty() && turn.tool_calls.is_empty();
    let mut message =
        json!({ "role": "assistant", "content": if silent { "(no answer)" } else { &turn.content } });
    if let Some(reasoning) = &turn.reasoning_content {
        message["reasoning_content"] = json!(reasoning);
    }
    if !turn.tool_calls.is_empty() {
        message["tool_calls"] = turn.tool_calls.iter().map(wire_call).collect();
    }
    message
}

fn wire_call(call: &ToolCall) -> Value {
    let name = if is_function_name(&call.name) { &call.name } else { "unknown_tool" };
    json!({ "id": call.id, "type": "function", "function": { "name": name, "arguments": call.arguments } })
}

/// Tells whether the server takes this as the name of a function; a model may have made up another.
fn is_function_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::Answered;
    use crate::secret::Secret;

    fn secrets() -> Secrets {
        Secrets::new(&Secret::new("the-key-of-this-test"), &[]).expect("the shapes are well-formed")
    }

    /// A conversation in which each turn makes one call for each length given, answered by that many bytes.
    fn conversation(turns: &[Vec<usize>]) -> Vec<Message> {
        let mut messages =
            vec![Message::System { content: "system".into() }, Message::User { content: "task".into() }];
        for (at, answers) in turns.iter().enumerate() {
            let id = |call: usize| format!("call-{at}-{call}");
            let call =
                |call: usize| ToolCall { id: id(call), name: "read_file".into(), arguments: "{}".into() };
            messages.push(Message::Assistant(Turn {
                content: String::new(),
                reasoning_content: Some(format!("thought {at}")),
                tool_calls: (0..answers.len()).map(call).collect(),
                finish_reason: "tool_calls".into(),
            }));
            messages.extend(answers.iter().enumerate().map(|(call, bytes)| {
                let content = "é".repeat(bytes / 2);
                Message::Tool(Answered { tool_call_id: id(call), content, failed: false })
            }));
        }
        messages
    }

    fn total(outgoing: &Outgoing) -> u64 {
        outgoing.messages().iter().map(|message| message.to_string().len() as u64 + 1).sum()
    }

    #[test]
    fn what_fits_is_sent_as_it_is() {
        let messages = conversation(&[vec![5000], vec![10, 20]]);
        let outgoing = Outgoing::new(&messages, &secrets(), 1 << 20).expect("fits");
        let expected: Vec<Value> = messages.iter().map(wire).collect();
        assert_eq!(outgoing.messages(), expected);
        assert_eq!(outgoing.turn(), 3);
    }

    #[test]
    fn the_oldest_answers_are_cut_and_say_by_how_much() {
        let messages = conversation(&[vec![8000], vec![8000], vec![8000]]);
        let outgoing = Outgoing::new(&messages, &secrets(), 20_000).expect("fits");
        let text = |at: usize| outgoing.messages()[at]["content"].as_str().unwrap_or_default().to_owned();
        assert!(text(3).contains("bytes were cut here to keep the conversation within its budget"));
        assert!(text(3).starts_with('é') && text(3).ends_with('é'));
        assert_eq!(text(7).len(), 8000);
    }

    #[test]
    fn what_cannot_fit_is_refused_with_the_figures() {
        let messages =
            vec![Message::System { content: String::new() }, Message::User { content: "x".repeat(500) }];
        let error = Outgoing::new(&messages, &secrets(), 300).expect_err("does not fit");
        assert!(error.bytes > 500 && error.budget == 300, "{error}");
    }

    #[test]
    fn secrets_are_taken_out_of_every_kind_of_message() {
        let key = "the-key-of-this-test".to_owned();
        let call = ToolCall {
            id: "a".into(),
            name: "run_command".into(),
            arguments: format!("{{\"c\":\"{key}\"}}"),
        };
        let turn = Turn {
            content: key.clone(),
            reasoning_content: Some(key.clone()),
            tool_calls: vec![call],
            finish_reason: String::new(),
        };
        let answer = Answered { tool_call_id: "a".into(), content: key.clone(), failed: false };
        let messages = [
            Message::System { content: key.clone() },
            Message::User { content: key.clone() },
            Message::Assistant(turn),
            Message::Tool(answer),
        ];
        let sent =
            Value::from(Outgoing::new(&messages, &secrets(), 1 << 20).expect("fits").messages().to_vec());
        assert!(!sent.to_string().contains(&key), "{sent}");
        assert_eq!(sent.to_string().matches("[redacted:api-key]").count(), 6);
    }

    #[test]
    fn names_and_turns_that_the_server_would_refuse_are_made_harmless() {
        let call = ToolCall { id: "a".into(), name: "run; rm".into(), arguments: "not json".into() };
        let turn = wire_turn(&Turn { tool_calls: vec![call], ..Turn::default() });
        assert_eq!(turn["tool_calls"][0]["function"]["name"], "unknown_tool");
        assert_eq!(turn["tool_calls"][0]["function"]["arguments"], "not json");
        assert_eq!(wire_turn(&Turn::default())["content"], "(no answer)");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_budget_holds_and_the_model_s_words_stay(
            turns in proptest::collection::vec(proptest::collection::vec(0usize..6000, 0..4), 0..12),
            budget in 200u64..30_000,
        ) {
            let messages = conversation(&turns);
            match Outgoing::new(&messages, &secrets(), budget) {
                Err(error) => prop_assert!(error.bytes > budget),
                Ok(outgoing) => {
                    prop_assert!(total(&outgoing) <= budget);
                    prop_assert_eq!(outgoing.messages().len(), messages.len());
                    for (sent, message) in outgoing.messages().iter().zip(&messages) {
                        match message {
                            Message::Tool(answer) => {
                                prop_assert_eq!(sent["tool_call_id"].as_str(), Some(answer.tool_call_id.as_str()));
                            }
                            other => prop_assert_eq!(sent, &wire(other)),
                        }
                    }
                }
            }
        }

    }

    proptest! {
        // Each case walks through a whole conversation.
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn what_was_cut_stays_cut_in_the_same_way(
            turns in proptest::collection::vec(proptest::collection::vec(0usize..6000, 1..3), 2..10),
        ) {
            let messages = conversation(&turns);
            let mut rewritten = 0;
            let mut before: Vec<Value> = Vec::new();
            for end in 2..=messages.len() {
                let Ok(outgoing) = Outgoing::new(&messages[..end], &secrets(), 16_000) else { break };
                let same = before.iter().zip(outgoing.messages()).take_while(|(old, new)| old == new).count();
                rewritten += usize::from(same < before.len());
                before = outgoing.messages().to_vec();
            }
            // Each rewriting frees a quarter of the budget, so it cannot happen at every step.
            prop_assert!(rewritten <= messages.len() / 2 + 1);
        }
    }
}
