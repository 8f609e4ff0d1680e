//! What the tests of this crate share: servers on the loopback, and an engine that keeps its word.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part")]

pub mod engine;
pub mod raw;

use agent::Secret;
use agent::protocol::{AgentLimits, Start};
use agent::replay::{ReplayServer, Transcript};
use model::{OsText, TaskId};
use serde_json::{Value, json};

/// The key of the tests. It must show up in one header only.
pub const KEY: &str = "test-key-that-nobody-may-see";

/// Makes a transcript out of turns; their numbers are filled in.
pub fn transcript(turns: &[Value]) -> Transcript {
    Transcript::parse(&transcript_text(turns)).expect("the turns are well-formed")
}

pub fn transcript_text(turns: &[Value]) -> Vec<u8> {
    let header = json!({ "fumehood_replay": 1, "model": "deepseek-flash", "task": "fix it" });
    let numbered = turns.iter().enumerate().map(|(at, turn)| {
        let mut turn = turn.clone();
        turn["turn"] = json!(at + 1);
        turn
    });
    let end = json!({ "end": turns.len() });
    [header]
        .into_iter()
        .chain(numbered)
        .chain([end])
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

pub fn play(turns: &[Value]) -> ReplayServer {
    ReplayServer::start(transcript(turns)).expect("there is a free port")
}

/// A turn that makes these calls.
pub fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|(name, arguments)| json!({ "name": name, "arguments": arguments })).collect();
    json!({ "reasoning": "I think so.", "tool_calls": calls })
}

pub fn finish() -> Value {
    calls(&[("finish", json!({ "summary": "done" }))])
}

pub fn demo() -> Transcript {
    Transcript::parse(include_bytes!("../../transcripts/demo.jsonl")).expect("the demo is well-formed")
}

pub fn start() -> Start {
    Start {
        task: TaskId::from_random([7; 10]),
        text: "fix it".into(),
        workspace: OsText::try_from("/ws").expect("no NUL"),
        model: "deepseek-flash".into(),
        effort: None,
        key: Secret::new(KEY),
        secrets: Vec::new(),
        limits: AgentLimits::default(),
        tokens_used: 0,
    }
}
