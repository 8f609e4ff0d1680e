//! Puts the pieces of a streamed answer together.
//!
//! Guarantees: an answer is whole only when the server said why it ended; its size is bounded; the names of its
//! calls are unique. Leaves to others: whether the calls make sense.

use model::event::TokenUsage;
use serde::Deserialize;

use crate::conversation::{ToolCall, Turn};

/// The most that a model may say in one turn, in bytes: thoughts, text and arguments together.
const TURN_MAX: usize = 8 << 20;
/// The most calls in one turn.
const CALLS_MAX: usize = 128;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    model: Option<String>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: usize,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_cache_hit_tokens: Option<u64>,
    prompt_cache_miss_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

/// Says why pieces do not make an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PieceError {
    #[error("an event is not a piece of an answer: {0}")]
    Syntax(String),
    #[error("the answer is larger than {TURN_MAX} bytes or makes more than {CALLS_MAX} calls")]
    TooLarge,
    #[error("the server reported `{}`", model::text::escape(.0))]
    Reported(String),
}

/// The pieces of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    turn: Turn,
    ended: bool,
    usage: TokenUsage,
    model: Option<String>,
    bytes: usize,
}

impl Assembly {
    /// Adds the data of one event.
    pub(super) fn add(&mut self, data: &str) -> Result<(), PieceError> {
        let chunk: Chunk =
            serde_json::from_str(data).map_err(|error| PieceError::Syntax(error.to_string()))?;
        if let Some(error) = chunk.error {
            let text = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(PieceError::Reported(text.chars().take(500).collect()));
        }
        if let Some(usage) = chunk.usage {
            self.usage = counted(&usage);
        }
        self.model = self.model.take().or(chunk.model.map(|model| model.chars().take(128).collect()));
        // We ask for one choice; another one would be mixed into it.
        chunk.choices.into_iter().take(1).try_for_each(|choice| self.add_choice(choice))
    }

    fn add_choice(&mut self, choice: Choice) -> Result<(), PieceError> {
        if let Some(text) = choice.delta.content {
            self.count(&text)?;
            self.turn.content.push_str(&text);
        }
        if let Some(text) = choice.delta.reasoning_content {
            self.count(&text)?;
            self.turn.reasoning_content.get_or_insert_default().push_str(&text);
        }
        for piece in choice.delta.tool_calls.into_iter().flatten() {
            self.add_call(piece)?;
        }
        if let Some(reason) = choice.finish_reason {
            self.turn.finish_reason = reason.chars().take(64).collect();
            self.ended = true;
        }
        Ok(())
    }

    fn add_call(&mut self, piece: CallPiece) -> Result<(), PieceError> {
        let calls = &mut self.turn.tool_calls;
        if piece.index > calls.len() || piece.index >= CALLS_MAX {
            return Err(PieceError::TooLarge);
        }
        if piece.index == calls.len() {
            calls.push(ToolCall { id: String::new(), name: String::new(), arguments: String::new() });
        }
        let call = &mut calls[piece.index];
        let id = piece.id.unwrap_or_default();
        // The name of a call comes once; some servers repeat it with each piece.
        if call.id.is_empty() {
            call.id.push_str(&id);
        }
        let mut added = id.len();
        if let Some(function) = piece.function {
            let name = function.name.unwrap_or_default();
            if call.name.is_empty() {
                call.name.push_str(&name);
            }
            let arguments = function.arguments.unwrap_or_default();
            call.arguments.push_str(&arguments);
            added += name.len() + arguments.len();
        }
        self.count_bytes(added)
    }

    fn count(&mut self, text: &str) -> Result<(), PieceError> {
        self.count_bytes(text.len())
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), PieceError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > TURN_MAX { Err(PieceError::TooLarge) } else { Ok(()) }
    }

    /// Tells whether the server said why the answer ended.
    pub(super) fn is_whole(&self) -> bool {
        self.ended
    }

    /// Returns why the answer ended, as the server put it.
    pub(super) fn finish_reason(&self) -> &str {
        &self.turn.finish_reason
    }

    /// Returns the answer, what it cost, and the model that the server says gave it.
    pub(super) fn into_parts(mut self) -> (Turn, TokenUsage, Option<String>) {
        make_unique(&mut self.turn.tool_calls);
        (self.turn, self.usage, self.model)
    }
}

/// Gives a name to each call that has none of its own: an answer is told by its call's name which call it is for.
fn make_unique(calls: &mut [ToolCall]) {
    for at in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(at);
        let taken = |id: &str| before.iter().any(|call| call.id == id);
        let call = &mut rest[0];
        let mut number = at;
        while call.id.is_empty() || taken(&call.id) {
            call.id = format!("call_{number}");
            number += 1;
        }
    }
}

fn counted(usage: &Usage) -> TokenUsage {
    let cached = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    let hit = usage.prompt_cache_hit_tokens.or(cached).unwrap_or(0);
    let miss = usage.prompt_cache_miss_tokens.unwrap_or(usage.prompt_tokens.saturating_sub(hit));
    TokenUsage { prompt_cache_hit: hit, prompt_cache_miss: miss, completion: usage.completion_tokens }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(events: &[&str]) -> Assembly {
        let mut assembly = Assembly::default();
        for event in events {
            assembly.add(event).expect("is a piece");
        }
        assembly
    }

    #[test]
    fn thoughts_text_and_split_arguments_are_put_together() {
        let assembly = assembled(&[
            r#"{"model":"deepseek-flash","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"I should "}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"look."}}]}"#,
            r#"{"choices":[{"delta":{"content":"Looking"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"read_file","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"call_1","function":{"name":"finish","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a\"}"}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":120,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":56,"completion_tokens":40}}"#,
        ]);
        assert!(assembly.is_whole());
        let (turn, usage, model) = assembly.into_parts();
        assert_eq!(turn.content, "Looking");
        assert_eq!(turn.reasoning_content.as_deref(), Some("I should look."));
        assert_eq!(turn.tool_calls[0].arguments, r#"{"path":"a"}"#);
        assert_eq!((turn.tool_calls[1].id.as_str(), turn.tool_calls[1].name.as_str()), ("call_1", "finish"));
        assert_eq!(usage, TokenUsage { prompt_cache_hit: 64, prompt_cache_miss: 56, completion: 40 });
        assert_eq!(model.as_deref(), Some("deepseek-flash"));
    }

    #[test]
    fn usage_may_come_alone_and_in_the_other_words() {
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#;
        let (_, usage, _) = assembled(&[usage]).into_parts();
        assert_eq!(usage, TokenUsage { prompt_cache_hit: 4, prompt_cache_miss: 6, completion: 2 });
    }

    #[test]
    fn an_answer_without_its_end_is_not_whole() {
        assert!(!assembled(&[r#"{"choices":[{"delta":{"content":"half"}}]}"#]).is_whole());
    }

    #[test]
    fn calls_get_names_of_their_own() {
        let piece = |index: usize, id: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"f"}}}}]}}}}]}}"#
            )
        };
        let pieces = [piece(0, ""), piece(1, "call_0"), piece(2, "x"), piece(3, "x")];
        let (turn, ..) = assembled(&pieces.each_ref().map(String::as_str)).into_parts();
        let ids: std::collections::BTreeSet<_> = turn.tool_calls.iter().map(|call| &call.id).collect();
        assert_eq!(ids.len(), 4, "{ids:?}");
    }

    #[test]
    fn what_is_no_piece_or_too_much_is_refused() {
        let add = |data: &str| Assembly::default().add(data);
        assert!(matches!(add("hello"), Err(PieceError::Syntax(_))));
        assert!(matches!(add("[]"), Err(PieceError::Syntax(_))));
        let reported = Err(PieceError::Reported("overloaded".into()));
        assert_eq!(add(r#"{"error":{"message":"overloaded"}}"#), reported);
        let far = r#"{"choices":[{"delta":{"tool_calls":[{"index":4000000000}]}}]}"#;
        assert_eq!(add(far), Err(PieceError::TooLarge));
        let mut assembly = Assembly::default();
        let piece =
            serde_json::json!({ "choices": [{ "delta": { "content": "x".repeat(1 << 20) } }] }).to_string();
        let result = (0..9).try_for_each(|_| assembly.add(&piece));
        assert_eq!(result, Err(PieceError::TooLarge));
    }
}
