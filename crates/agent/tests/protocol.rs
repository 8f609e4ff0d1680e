//! The two ends of the pipe: what passes between them, and what hostile input does.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Cursor;

use agent::conversation::{Answered, CallId, Message, ToolCall, Turn};
use agent::protocol::{
    AgentSide, EngineSide, FailureKind, FromAgent, LINE_MAX, Progress, Proposal, ProtocolError, TurnRecord,
};
use agent::{Secret, Stream, ToolResult};
use common::engine::{end_of, probe, spawn, spawn_with};
use common::{KEY, start};
use model::event::TokenUsage;
use model::{Digest, Ending, OsText, Tool, WorkspacePath};
use proptest::prelude::*;

fn messages() -> Vec<Message> {
    let call = ToolCall { id: "a".into(), name: "read_file".into(), arguments: "{oops\u{0}".into() };
    let turn = Turn {
        content: "x".into(),
        reasoning_content: Some("hm\n".into()),
        tool_calls: vec![call],
        finish_reason: "tool_calls".into(),
    };
    vec![
        Message::System { content: "s".into() },
        Message::User { content: "t\u{202e}".into() },
        Message::Assistant(turn),
        Message::Tool(Answered { tool_call_id: "a".into(), content: "no".into(), failed: true }),
    ]
}

fn proposal() -> Proposal {
    Proposal {
        call: CallId { turn: 2, call: 1 },
        tool: Tool::Run { argv: vec![OsText::new(b"\xff\xfe".to_vec()).expect("no NUL")] },
        directory: Some(WorkspacePath::parse("src").expect("inside")),
        purpose: Some("why".into()),
    }
}

fn said() -> Vec<FromAgent> {
    vec![
        FromAgent::Progress(Progress::Asking { turn: 1 }),
        FromAgent::Progress(Progress::Queued),
        FromAgent::Progress(Progress::Retrying { attempt: 1, attempts: 2, wait_ms: 3, why: "\u{1b}".into() }),
        FromAgent::Turn(TurnRecord {
            model: "m".into(),
            sent: "{\"messages\":[]}".into(),
            response: Digest::of(b"b"),
            usage: TokenUsage { prompt_cache_hit: u64::MAX, prompt_cache_miss: 0, completion: 1 },
        }),
        FromAgent::Message { message: messages().remove(2) },
        FromAgent::Finished { summary: "done".into() },
    ]
}

#[test]
fn everything_arrives_as_it_was_said() {
    let (from_engine, to_agent) = std::io::pipe().expect("a pipe");
    let (from_agent, to_engine) = std::io::pipe().expect("a pipe");
    let result = ToolResult::Ran {
        ending: Ending::Signaled { signal: 9 },
        stdout: Stream { head: "a".into(), dropped: 3, tail: "b".into() },
        stderr: Stream::default(),
        notes: vec!["n".into()],
    };
    let agent = std::thread::spawn(move || {
        let mut side = AgentSide::new(from_engine, to_engine);
        let prepare = side.prepare().expect("prepare");
        side.confined(vec![probe(true)]).expect("confined");
        let started = side.start().expect("start");
        let result = side.propose(proposal()).expect("an answer");
        said().iter().for_each(|what| side.say(what).expect("heard"));
        (prepare, started, result)
    });
    let confined =
        EngineSide::new(from_agent, to_agent).prepare("https://api.example", Some("PEM")).expect("confined");
    assert_eq!(confined.probes(), [probe(true)]);
    let start = agent::protocol::Start { secrets: vec![Secret::new("other")], tokens_used: 9, ..start() };
    let mut running = confined.start(&start, &messages()).expect("started");
    assert_eq!(running.hear().expect("hears"), Some(FromAgent::Propose(proposal())));
    running.answer(proposal().call, result.clone()).expect("waits");
    for what in said() {
        assert_eq!(running.hear().expect("hears"), Some(what));
    }
    assert_eq!(running.hear().expect("hears"), None);
    let (prepare, started, answered) = agent.join().expect("ends");
    assert_eq!(
        (prepare.base_url.as_str(), prepare.roots_pem.as_deref()),
        ("https://api.example", Some("PEM"))
    );
    assert_eq!(started, (start, messages()));
    assert_eq!(answered, result);
}

#[test]
fn the_key_is_sent_only_to_an_agent_that_showed_what_it_gave_up() {
    for probes in [vec![], vec![probe(true), probe(false)]] {
        let (side, agent) = spawn_with(move |_| Ok(probes));
        let confined = side.prepare("http://127.0.0.1:9", None).expect("the agent speaks");
        let error = confined.start(&start(), &[]).expect_err("is refused");
        assert!(matches!(error, ProtocolError::NotConfined(_)), "{error}");
        assert!(matches!(end_of(agent), Err(ProtocolError::Gone)));
    }
}

#[test]
fn an_agent_that_cannot_be_confined_or_find_its_server_says_so() {
    let (side, agent) = spawn_with(|_| Err("seccomp is missing".into()));
    let failed = side.prepare("http://127.0.0.1:9", None).expect_err("fails");
    assert!(
        matches!(&failed, ProtocolError::FailedEarly(failure)
        if failure.kind == FailureKind::Confinement && failure.message.contains("seccomp is missing")),
        "{failed}"
    );
    end_of(agent).expect("it said so");
    let (side, agent) = spawn();
    let failed = side.prepare("http://192.0.2.1", None).expect_err("fails");
    assert!(
        matches!(&failed, ProtocolError::FailedEarly(failure) if failure.kind == FailureKind::Address),
        "{failed}"
    );
    end_of(agent).expect("it said so");
}

#[test]
fn the_agent_knows_what_it_must_reach_before_it_gives_up_its_rights() {
    let (side, agent) = spawn_with(|reach| {
        assert_eq!(reach.addresses, ["127.0.0.1:9".parse().expect("an address")]);
        Ok(vec![probe(true)])
    });
    drop(side.prepare("http://127.0.0.1:9", None).expect("confined"));
    assert!(matches!(end_of(agent), Err(ProtocolError::Gone)));
}

/// The lines of an engine that does everything right, up to the answer.
fn good_lines() -> Vec<String> {
    let mut engine_out = Vec::new();
    let agent_out = b"{\"say\":\"confined\",\"version\":1,\"probes\":[{\"name\":\"x\",\"layer\":\"seccomp\",\"held\":true,\"observed\":\"EPERM\"}]}\n{\"say\":\"propose\",\"call\":\"2.1\",\"tool\":{\"tool\":\"list\",\"path\":null},\"directory\":null,\"purpose\":null}\n";
    let side = EngineSide::new(&agent_out[..], &mut engine_out);
    let mut running =
        side.prepare("https://a", None).expect("confined").start(&start(), &messages()).expect("starts");
    assert!(matches!(running.hear(), Ok(Some(FromAgent::Propose(_)))));
    let result = ToolResult::NotRun { reason: "x".into() };
    running.answer(CallId { turn: 2, call: 1 }, result).expect("waits");
    drop(running);
    String::from_utf8(engine_out).expect("text").lines().map(|line| format!("{line}\n")).collect()
}

/// Reads what an engine sends the way the agent does, to the first error.
fn read_as_agent(bytes: &[u8]) -> Result<(), ProtocolError> {
    let mut side = AgentSide::new(Cursor::new(bytes), std::io::sink());
    side.prepare()?;
    side.confined(Vec::new())?;
    side.start()?;
    side.propose(proposal())?;
    Ok(())
}

#[test]
fn whatever_is_missing_is_noticed() {
    let lines = good_lines();
    let whole: Vec<u8> = lines.concat().into_bytes();
    read_as_agent(&whole).expect("is as agreed");
    let mut boundary = 0;
    for line in &lines {
        let before = read_as_agent(&whole[..boundary]);
        assert!(matches!(before, Err(ProtocolError::Gone)), "{before:?}");
        boundary += line.len();
        let cut = read_as_agent(&whole[..boundary - 1]);
        assert!(matches!(cut, Err(ProtocolError::Cut)), "{cut:?}");
    }
    for left_out in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(left_out);
        assert!(read_as_agent(rest.concat().as_bytes()).is_err(), "{left_out}");
    }
}

#[test]
fn no_error_shows_the_key() {
    let lines = good_lines();
    let start_line = lines.iter().find(|line| line.contains(KEY)).expect("the key is sent once");
    assert_eq!(lines.concat().matches(KEY).count(), 1);
    let wrong = start_line.replace("\"model\":", "\"modell\":");
    let wrong_type = start_line.replace(&format!("\"{KEY}\""), &format!("[\"{KEY}\"]"));
    for line in [wrong, wrong_type] {
        let error = read_as_agent(format!("{}{line}", lines[0]).as_bytes()).expect_err("is refused");
        assert!(!format!("{error:?} {error}").contains(KEY), "{error}");
    }
    assert!(!format!("{:?}", start()).contains(KEY));
}

#[test]
fn another_version_is_refused_on_both_ends() {
    let newer = good_lines()[0].replace("\"version\":1", "\"version\":2");
    assert!(matches!(read_as_agent(newer.as_bytes()), Err(ProtocolError::Version(2))));
    let confined = b"{\"say\":\"confined\",\"version\":7,\"probes\":[]}\n";
    let result = EngineSide::new(&confined[..], std::io::sink()).prepare("https://a", None);
    assert!(matches!(result, Err(ProtocolError::Version(7))));
}

#[test]
fn an_agent_out_of_turn_is_refused() {
    let confined = "{\"say\":\"confined\",\"version\":1,\"probes\":[{\"name\":\"x\",\"layer\":\"seccomp\",\"held\":true,\"observed\":\"EPERM\"}]}\n";
    let finished = "{\"say\":\"finished\",\"summary\":\"x\"}\n";
    let propose = "{\"say\":\"propose\",\"call\":\"1.1\",\"tool\":{\"tool\":\"list\",\"path\":null},\"directory\":null,\"purpose\":null}\n";
    for (first, second) in [(finished, finished), (propose, finished), (propose, propose), (confined, "")] {
        let text = format!("{confined}{first}{second}");
        let side = EngineSide::new(text.as_bytes(), std::io::sink());
        let mut running = side.prepare("https://a", None).unwrap().start(&start(), &[]).unwrap();
        let error = std::iter::from_fn(|| running.hear().transpose()).find_map(Result::err);
        assert!(matches!(error, Some(ProtocolError::Order { .. })), "{text}: {error:?}");
    }
    let text = format!("{confined}{propose}");
    let mut running = EngineSide::new(text.as_bytes(), std::io::sink())
        .prepare("https://a", None)
        .unwrap()
        .start(&start(), &[])
        .unwrap();
    let result = ToolResult::NotRun { reason: "x".into() };
    let call = CallId { turn: 1, call: 1 };
    assert!(matches!(running.answer(call, result.clone()), Err(ProtocolError::Order { .. })));
    running.hear().expect("a proposal");
    let other = CallId { turn: 9, call: 9 };
    assert!(matches!(running.answer(other, result), Err(ProtocolError::Call { .. })));
}

#[test]
fn lines_are_bounded() {
    struct Endless;
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let result = AgentSide::new(Endless, std::io::sink()).prepare();
    assert!(matches!(result, Err(ProtocolError::TooLong)));
    let mut side = AgentSide::new(std::io::empty(), std::io::sink());
    let result = side.say(&FromAgent::Finished { summary: "x".repeat(LINE_MAX) });
    assert!(matches!(result, Err(ProtocolError::TooLong)));
}

proptest! {
    #[test]
    fn no_bytes_crash_either_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read_as_agent(&bytes).is_err());
        let result = EngineSide::new(bytes.as_slice(), std::io::sink()).prepare("https://a", None);
        prop_assert!(result.is_err());
    }

    #[test]
    fn damaged_lines_crash_neither_end(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = good_lines().concat().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read_as_agent(&bytes);
    }

    #[test]
    fn deep_json_is_an_error(depth in 1usize..5000) {
        let line = format!("{}\n", "[".repeat(depth));
        prop_assert!(read_as_agent(line.as_bytes()).is_err());
        let line = format!("{{\"say\":{}\n", "{\"a\":".repeat(depth));
        prop_assert!(read_as_agent(line.as_bytes()).is_err());
    }
}
