//! Which turn a request asks for, and what is sent for it.
//!
//! Guarantees: both depend on the request and the transcript alone.

use serde_json::{Value, json};

use super::transcript::{Figures, PlayedTurn, Transcript};

/// What the server says when a turn that made calls comes back without its thoughts: word by word what the real
/// one says.
const THOUGHTS_MISSING: &str = "The `reasoning_content` in the thinking mode must be passed back to the API.";

/// Returns the turn that a request asks for.
///
/// # Errors
/// With a text, when the real server would refuse the request or the transcript has no turn for it.
pub(super) fn turn_for<'a>(transcript: &'a Transcript, request: &Value) -> Result<&'a PlayedTurn, String> {
    let messages = request["messages"].as_array().ok_or("`messages` is missing")?;
    check_calls(messages)?;
    let answers = messages.iter().filter(|message| message["role"] == "tool").count();
    let mut before = 0;
    let group: Vec<&PlayedTurn> = transcript
        .turns()
        .iter()
        .filter(|turn| {
            let asked_at = before;
            before += turn.tool_calls.len();
            asked_at == answers
        })
        .collect();
    let last = group.len().checked_sub(1).ok_or_else(|| {
        format!("the transcript has no turn after {answers} answers: it makes {before} calls in all")
    })?;
    Ok(group[quiet_turns(messages).min(last)])
}

/// Returns how many turns without a call the model made since the last answer: turns that do not change the number
/// of answers are told apart by them.
fn quiet_turns(messages: &[Value]) -> usize {
    let since = messages.iter().rposition(|message| message["role"] == "tool").map_or(0, |at| at + 1);
    messages[since..]
        .iter()
        .filter(|message| message["role"] == "assistant" && calls(message).is_empty())
        .count()
}

fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

/// Checks what the real server checks: thoughts come back, and each call is answered where it was made.
fn check_calls(messages: &[Value]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let calls = calls(message);
        if !calls.is_empty() && !message["reasoning_content"].is_string() {
            return Err(THOUGHTS_MISSING.to_owned());
        }
        let mut answers: Vec<&Value> = messages[at + 1..]
            .iter()
            .take_while(|message| message["role"] == "tool")
            .map(|message| &message["tool_call_id"])
            .take(calls.len())
            .collect();
        let mut made: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
        answers.sort_by_key(|id| id.to_string());
        made.sort_by_key(|id| id.to_string());
        if answers != made {
            return Err(format!(
                "the calls of message {} are not each answered by the messages after it",
                at + 1
            ));
        }
    }
    Ok(())
}

/// Returns the data of the events that a turn is sent in, without the one that ends the stream.
pub(super) fn events(transcript: &Transcript, turn: &PlayedTurn, request_bytes: usize) -> Vec<String> {
    let split = usize::from(turn.delivery.split);
    let mut deltas = vec![json!({ "role": "assistant", "content": null, "reasoning_content": "" })];
    deltas.extend(
        pieces(&turn.reasoning, split).map(|text| json!({ "content": null, "reasoning_content": text })),
    );
    deltas.extend(pieces(&turn.content, split).map(|text| json!({ "content": text })));
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let first = json!({
            "index": index, "id": call_id(turn, index), "type": "function",
            "function": { "name": call.name, "arguments": "" },
        });
        deltas.push(json!({ "tool_calls": [first] }));
        let arguments = call.arguments_text();
        deltas
            .extend(pieces(&arguments, split).map(
                |text| json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] }),
            ));
    }
    let id = format!("replay-{}", turn.turn);
    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": transcript.header().model,
            "choices": choices, "usage": usage,
        })
        .to_string()
    };
    let choice =
        |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
    let mut events: Vec<String> =
        deltas.into_iter().map(|delta| chunk(choice(delta, Value::Null), Value::Null)).collect();
    let usage = usage(turn, request_bytes);
    let (with_end, apart) =
        if turn.delivery.usage_apart { (Value::Null, Some(usage)) } else { (usage, None) };
    events.push(chunk(choice(json!({ "content": "" }), finish_reason(turn).into()), with_end));
    events.extend(apart.map(|usage| chunk(json!([]), usage)));
    events
}

/// Returns a turn as one body, for a client that does not want a stream.
pub(super) fn body(transcript: &Transcript, turn: &PlayedTurn, request_bytes: usize) -> Value {
    let calls = turn.tool_calls.iter().enumerate().map(|(index, call)| {
        json!({
            "id": call_id(turn, index), "type": "function",
            "function": { "name": call.name, "arguments": call.arguments_text() },
        })
    });
    let mut message = json!({
        "role": "assistant", "content": turn.content, "reasoning_content": turn.reasoning,
    });
    if !turn.tool_calls.is_empty() {
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": format!("replay-{}", turn.turn), "object": "chat.completion", "created": 0,
        "model": transcript.header().model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason(turn), "logprobs": null }],
        "usage": usage(turn, request_bytes),
    })
}

fn call_id(turn: &PlayedTurn, index: usize) -> String {
    format!("call_{}_{index}", turn.turn)
}

fn finish_reason(turn: &PlayedTurn) -> &str {
    let by_calls = if turn.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    turn.finish_reason.as_deref().unwrap_or(by_calls)
}

/// Returns the tokens as the server would count them. Without figures in the transcript they are made up: four
/// bytes are a token, and all but the newest part of the prompt is in the cache, in blocks of 64.
fn usage(turn: &PlayedTurn, request_bytes: usize) -> Value {
    let said = turn.reasoning.len()
        + turn.content.len()
        + turn.tool_calls.iter().map(|call| call.arguments_text().len()).sum::<usize>();
    let prompt = request_bytes as u64 / 4;
    let cached = if turn.turn > 1 { prompt * 3 / 4 / 64 * 64 } else { 0 };
    let made_up = Figures { hit: cached, miss: prompt - cached, completion: said as u64 / 4 + 1 };
    let Figures { hit, miss, completion } = turn.usage.unwrap_or(made_up);
    json!({
        "prompt_tokens": hit + miss, "completion_tokens": completion, "total_tokens": hit + miss + completion,
        "prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": miss,
        "prompt_tokens_details": { "cached_tokens": hit },
        "completion_tokens_details": { "reasoning_tokens": turn.reasoning.len() / 4 },
    })
}

/// Splits a text into pieces of so many characters.
fn pieces(text: &str, split: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(split.max(1)).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript() -> Transcript {
        let text = concat!(
            "{\"fumehood_replay\":1,\"model\":\"m\",\"task\":\"t\"}\n",
            "{\"turn\":1,\"tool_calls\":[{\"name\":\"a\",\"arguments\":{}},{\"name\":\"b\",\"arguments\":{}}]}\n",
            "{\"turn\":2,\"content\":\"hm\"}\n",
            "{\"turn\":3,\"tool_calls\":[{\"name\":\"c\",\"arguments\":{}}]}\n",
            "{\"end\":3}\n",
        );
        Transcript::parse(text.as_bytes()).expect("is whole")
    }

    fn made(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "function": {} })).collect();
        json!({ "role": "assistant", "content": "", "reasoning_content": "", "tool_calls": calls })
    }

    fn answer(id: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": id, "content": "x" })
    }

    fn asked(messages: &[Value]) -> Result<usize, String> {
        turn_for(&transcript(), &json!({ "messages": messages })).map(|turn| turn.turn)
    }

    #[test]
    fn the_answers_in_the_request_say_which_turn_is_due() {
        let user = json!({ "role": "user", "content": "t" });
        let quiet = json!({ "role": "assistant", "content": "hm" });
        let first = vec![user.clone()];
        let second = vec![user.clone(), made(&["x", "y"]), answer("y"), answer("x")];
        let third = [second.clone(), vec![quiet, user]].concat();
        let over = [third.clone(), vec![made(&["z"]), answer("z")]].concat();
        assert_eq!(asked(&first), Ok(1));
        assert_eq!(asked(&second), Ok(2));
        assert_eq!(asked(&third), Ok(3));
        assert!(asked(&over).expect_err("there is none").contains("no turn after 3 answers"));
    }

    #[test]
    fn what_the_real_server_refuses_is_refused() {
        let mut without = made(&["x"]);
        without.as_object_mut().expect("an object").remove("reasoning_content");
        assert_eq!(asked(&[without, answer("x")]), Err(THOUGHTS_MISSING.to_owned()));
        assert!(asked(&[made(&["x", "y"]), answer("x")]).expect_err("y waits").contains("not each answered"));
        assert!(turn_for(&transcript(), &json!({})).is_err());
    }
}
