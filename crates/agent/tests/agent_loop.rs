//! Whole tasks: the agent in a thread, the replay server on the loopback, an engine that makes up outcomes.
#![allow(clippy::unwrap_used)]

mod common;

use agent::conversation::{Message, check};
use agent::protocol::{AgentLimits, FailureKind, FromAgent, Start};
use agent::replay::ReplayServer;
use agent::{Secret, ToolResult};
use common::engine::{AtKill, End, Engine};
use common::{KEY, calls, demo, finish, play, start};
use model::Tool;
use serde_json::{Value, json};

/// Runs a whole task against these turns.
fn run(turns: &[Value], start: &Start) -> (Engine, End) {
    let server = play(turns);
    let mut engine = Engine::default();
    let end = engine.run(&server.base_url(), start);
    check(&engine.messages).expect("what is stored is a conversation");
    (engine, end)
}

fn answers(engine: &Engine) -> Vec<(String, bool)> {
    let answer = |message: &Message| match message {
        Message::Tool(answer) => Some((answer.content.clone(), answer.failed)),
        _ => None,
    };
    engine.messages.iter().filter_map(answer).collect()
}

fn command(line: &str) -> Value {
    calls(&[("run_command", json!({ "command": line }))])
}

fn failure(end: End) -> FailureKind {
    match end {
        End::Failed(failure) => failure.kind,
        other => panic!("no failure but {other:?}"),
    }
}

#[test]
fn the_demo_runs_from_its_first_line_to_its_last() {
    let server = ReplayServer::start(demo()).expect("a free port");
    let mut engine = Engine::default();
    let start = Start { text: demo().header().task.clone(), ..start() };
    let End::Finished(summary) = engine.run(&server.base_url(), &start) else { panic!("does not finish") };
    assert!(summary.contains("tr -cs"), "{summary}");
    let tools: Vec<&str> = engine.runs.iter().map(|proposal| proposal.tool.name()).collect();
    assert_eq!(tools, ["list", "read", "read", "run", "run", "run", "run", "write", "patch", "run"]);
    let purposes = engine.runs.iter().map(|proposal| proposal.purpose.as_deref().unwrap_or_default());
    assert!(purposes.into_iter().all(|purpose| !purpose.is_empty()));
    assert_eq!(engine.turns.len(), 9);
    assert!(engine.turns.iter().skip(1).all(|turn| turn.usage.prompt_cache_hit > 0));
    assert_eq!(server.requests(), 9);
}

#[test]
fn a_denied_call_is_an_answer_and_the_task_goes_on() {
    let write = calls(&[("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" }))]);
    let (engine, end) = run(&[write, finish()], &start());
    assert!(matches!(end, End::Finished(_)));
    let (text, failed) = answers(&engine).remove(0);
    let denial: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        failed && denial["denied"] == "protected-path" && denial["same_effect_same_answer"] == true,
        "{text}"
    );
}

#[test]
fn wrong_calls_are_handed_back_and_never_proposed() {
    let wrong = calls(&[
        ("read_file", json!("{\"path\": ")),
        ("read_file", json!({ "path": "/etc/passwd" })),
        ("run; rm -rf /", json!({})),
        ("run_command", json!({ "command": 7 })),
    ]);
    let (engine, end) = run(&[wrong, finish()], &start());
    assert!(matches!(end, End::Finished(_)));
    assert!(engine.runs.is_empty());
    let told = answers(&engine);
    assert!(told[..4].iter().all(|(text, failed)| *failed && text.starts_with("error: ")), "{told:?}");
}

#[test]
fn parallel_calls_are_made_in_their_order_and_each_gets_its_answer() {
    let three = calls(&[
        ("run_command", json!({ "command": ["one"] })),
        ("run_command", json!({ "command": ["fail"], "directory": "src" })),
        ("read_file", json!({ "path": "a" })),
    ]);
    let (engine, end) = run(&[three, finish()], &start());
    assert!(matches!(end, End::Finished(_)));
    let ids: Vec<String> = engine.runs.iter().map(|proposal| proposal.call.to_string()).collect();
    assert_eq!(ids, ["1.1", "1.2", "1.3"]);
    let failed: Vec<bool> = answers(&engine).iter().map(|(_, failed)| *failed).collect();
    assert_eq!(failed, [false, true, false, false]);
}

#[test]
fn a_turn_without_a_call_is_reminded_and_then_ends_the_task() {
    let quiet = json!({ "reasoning": "hm", "content": "It is fixed." });
    let (engine, end) = run(&[quiet.clone(), quiet], &start());
    assert!(matches!(end, End::Finished(summary) if summary == "It is fixed."));
    assert_eq!(engine.messages.len(), 5);
    let empty = json!({ "reasoning": "hm" });
    assert_eq!(failure(run(&[empty.clone(), empty], &start()).1), FailureKind::Silent);
}

#[test]
fn the_same_failing_call_ends_the_task_at_last() {
    let turns: Vec<Value> = (0..8).map(|_| command("fail")).collect();
    let turns: Vec<Value> = turns
        .into_iter()
        .map(|mut turn| {
            turn["tool_calls"][0]["arguments"] = json!({ "command": ["fail"] });
            turn
        })
        .collect();
    let (engine, end) = run(&turns, &start());
    assert_eq!(failure(end), FailureKind::Stuck);
    assert_eq!(engine.runs.len(), 3);
}

#[test]
fn turns_tokens_and_context_end_a_task_with_their_own_word() {
    let turns: Vec<Value> = (0..6).map(|at| command(&format!("echo {at}"))).collect();
    let limited = |limits: AgentLimits| failure(run(&turns, &Start { limits, ..start() }).1);
    assert_eq!(limited(AgentLimits { turns: 2, ..AgentLimits::default() }), FailureKind::Turns);
    assert_eq!(limited(AgentLimits { tokens: 1500, ..AgentLimits::default() }), FailureKind::Tokens);
    assert_eq!(limited(AgentLimits { context_bytes: 900, ..AgentLimits::default() }), FailureKind::Context);
}

#[test]
fn a_server_that_refuses_ends_the_task_with_what_to_do() {
    let mut turn = command("true");
    turn["faults"] = json!([{ "fault": "status", "status": 402, "message": format!("no balance on {KEY}") }]);
    let (_, end) = run(&[turn], &start());
    let End::Failed(failure) = end else { panic!("does not fail") };
    assert_eq!(failure.kind, FailureKind::Balance);
    assert!(
        failure.message.contains("[redacted:api-key]") && !failure.message.contains(KEY),
        "{}",
        failure.message
    );
}

#[test]
fn secrets_neither_reach_the_model_nor_the_store() {
    let secrets = vec![Secret::new("hunter2-hunter2")];
    let text = format!("use {KEY} and hunter2-hunter2");
    let leak = calls(&[("run_command", json!({ "command": ["leak"] }))]);
    let (engine, _) = run(&[leak, finish()], &Start { secrets, text, ..start() });
    let stored = serde_json::to_string(&engine.messages).expect("JSON");
    assert!(!stored.contains(KEY) && !stored.contains("hunter2"), "{stored}");
    assert!(stored.contains("use [redacted:api-key] and [redacted:secret]"), "{stored}");
    assert!(answers(&engine)[0].0.contains("key=[redacted:api-key]"), "{stored}");
    let said = serde_json::to_string(&engine.heard).expect("JSON");
    assert!(!said.contains(KEY) && !said.contains("hunter2"));
}

#[test]
fn a_long_answer_is_cut_before_it_is_stored() {
    let flood = calls(&[("run_command", json!({ "command": ["flood"] }))]);
    let (engine, _) = run(&[flood, finish()], &start());
    let (text, _) = answers(&engine).remove(0);
    assert!(
        text.len() < 66_000 && text.contains("bytes were cut here because the answer was long"),
        "{}",
        text.len()
    );
}

#[test]
fn what_was_paid_for_is_told_before_it_is_used() {
    let (engine, _) = run(&[command("true"), finish()], &start());
    let kinds: Vec<&str> = engine
        .heard
        .iter()
        .filter_map(|said| match said {
            FromAgent::Turn(_) => Some("turn"),
            FromAgent::Message { message: Message::Assistant(_) } => Some("message"),
            FromAgent::Propose(_) => Some("propose"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["turn", "message", "propose", "turn", "message"]);
}

/// Kills the agent after each number of things that it says, resumes it, and compares with the undisturbed task.
fn killed_anywhere(at_kill: AtKill) -> usize {
    let start = Start { text: demo().header().task.clone(), ..start() };
    let mut undisturbed = Engine::default();
    let server = ReplayServer::start(demo()).expect("a free port");
    assert!(matches!(undisturbed.run(&server.base_url(), &start), End::Finished(_)));
    let mut kills = 0;
    for most in 0..undisturbed.heard.len() {
        let mut engine = Engine::default();
        let server = ReplayServer::start(demo()).expect("a free port");
        assert!(matches!(engine.run_until(&server.base_url(), &start, most, at_kill), End::Killed));
        kills += 1;
        let End::Finished(_) = engine.run(&server.base_url(), &start) else {
            panic!("{most}: does not finish")
        };
        assert_eq!(engine.messages, undisturbed.messages, "killed after {most}");
        assert_eq!(engine.runs, undisturbed.runs, "killed after {most}");
    }
    kills
}

#[test]
fn a_task_killed_anywhere_goes_on_as_if_it_had_not_been() {
    assert!(killed_anywhere(AtKill::NotSeen) > 60);
}

#[test]
fn a_task_killed_after_an_action_does_not_run_it_again() {
    assert!(killed_anywhere(AtKill::Done) > 60);
}

#[test]
fn a_task_killed_at_every_step_gets_to_its_end() {
    let start = Start { text: demo().header().task.clone(), ..start() };
    let server = ReplayServer::start(demo()).expect("a free port");
    let mut engine = Engine::default();
    // Each process gets a little further: six things, of which some repeat what was said before.
    let finished = (0..200)
        .any(|_| matches!(engine.run_until(&server.base_url(), &start, 6, AtKill::Done), End::Finished(_)));
    assert!(finished);
    let mut undisturbed = Engine::default();
    undisturbed.run(&ReplayServer::start(demo()).expect("a free port").base_url(), &start);
    assert_eq!(engine.messages, undisturbed.messages);
}

#[test]
fn a_call_whose_end_nobody_saw_is_told_as_unknown() {
    let turns = [command("make install"), finish()];
    let server = play(&turns);
    let mut engine = Engine::default();
    let proposals =
        |engine: &Engine| engine.heard.iter().filter(|said| matches!(said, FromAgent::Propose(_))).count();
    // As many things as are said before the proposal.
    let before = {
        let (undisturbed, _) = run(&turns, &start());
        undisturbed.heard.iter().position(|said| matches!(said, FromAgent::Propose(_))).expect("is proposed")
    };
    assert!(matches!(engine.run_until(&server.base_url(), &start(), before, AtKill::Unknown), End::Killed));
    assert_eq!(proposals(&engine), 1);
    assert!(matches!(engine.run(&server.base_url(), &start()), End::Finished(_)));
    assert!(engine.runs.is_empty());
    assert!(matches!(engine.outcomes.values().next(), Some(ToolResult::Unknown { .. })));
    let (text, failed) = answers(&engine).remove(0);
    assert!(failed && text.contains("its end is unknown"), "{text}");
}

#[test]
fn a_task_that_is_finished_says_so_again() {
    let server = play(&[finish()]);
    let mut engine = Engine::default();
    assert!(matches!(engine.run(&server.base_url(), &start()), End::Finished(_)));
    let before = engine.messages.clone();
    assert!(matches!(engine.run(&server.base_url(), &start()), End::Finished(_)));
    assert_eq!((engine.messages, server.requests()), (before, 1));
}

#[test]
fn a_command_line_and_a_list_arrive_as_they_were_meant() {
    let both = calls(&[
        ("run_command", json!({ "command": "make | tail" })),
        ("run_command", json!({ "command": ["make", "a b"] })),
    ]);
    let (engine, _) = run(&[both, finish()], &start());
    let argv = |at: usize| match &engine.runs[at].tool {
        Tool::Run { argv } => argv.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect(),
        _ => Vec::new(),
    };
    assert_eq!((argv(0).join("/"), argv(1).join("/")), ("bash/-c/make | tail".into(), "make/a b".into()));
}
