//! The client against a server on the loopback: each thing that the real one does or suffers.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use agent::context::Outgoing;
use agent::conversation::{Answered, Message, ToolCall, Turn};
use agent::deepseek::{Client, ClientError, Endpoint, Retry, Settings, Timeouts};
use agent::protocol::{Effort, FailureKind, Progress, ProtocolError};
use agent::run_loop::{Model, Reply};
use agent::{Secret, Secrets};
use common::raw::{RawServer, hello, response};
use common::{KEY, calls, play};
use model::event::TokenUsage;
use proptest::prelude::*;
use serde_json::{Value, json};

fn settings() -> Settings {
    Settings {
        model: "deepseek-flash".into(),
        effort: None,
        user: "task-aaaaaaaaaaaaaaaa".into(),
        turn_tokens: None,
        timeouts: Timeouts { idle: Duration::from_secs(5), ..Timeouts::default() },
        retry: Retry { attempts: 3, ..Retry::default() },
    }
}

thread_local! {
    static PAUSES: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
}

fn client_with(base_url: &str, settings: Settings) -> Client {
    let endpoint = Endpoint::resolve(base_url, None).expect("the loopback");
    let client = Client::new(&endpoint, &Secret::new(KEY), settings).expect("a plain key");
    PAUSES.with_borrow_mut(Vec::clear);
    client.with_pause(|pause| PAUSES.with_borrow_mut(|pauses| pauses.push(pause)))
}

fn begun() -> Vec<Message> {
    vec![Message::System { content: "s".into() }, Message::User { content: "t".into() }]
}

fn outgoing(messages: &[Message]) -> Outgoing {
    let secrets = Secrets::new(&Secret::new(KEY), &[]).expect("the shapes are well-formed");
    Outgoing::new(messages, &secrets, 1 << 20).expect("fits")
}

fn ask_with(base_url: &str, settings: Settings) -> (Result<Reply, ClientError>, Vec<Progress>) {
    let mut seen = Vec::new();
    let mut report = |progress| {
        seen.push(progress);
        Ok(())
    };
    let result = client_with(base_url, settings).ask(&outgoing(&begun()), &mut report);
    (result, seen)
}

fn ask(base_url: &str) -> (Result<Reply, ClientError>, Vec<Progress>) {
    ask_with(base_url, settings())
}

fn whole_turn() -> Value {
    json!({
        "reasoning": "Ich sollte nachsehen — 日本語.", "content": "I look.",
        "tool_calls": [
            { "name": "read_file", "arguments": { "path": "src/naïve.rs" } },
            { "name": "run_command", "arguments": "{\"command\": oops" },
        ],
        "usage": { "hit": 640, "miss": 56, "completion": 40 },
    })
}

fn check_whole(reply: &Reply) {
    let turn = &reply.turn;
    assert_eq!(turn.reasoning_content.as_deref(), Some("Ich sollte nachsehen — 日本語."));
    assert_eq!(turn.content, "I look.");
    assert_eq!(turn.finish_reason, "tool_calls");
    let calls: Vec<(&str, &str)> =
        turn.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("read_file", r#"{"path":"src/naïve.rs"}"#), ("run_command", r#"{"command": oops"#)]);
    assert_ne!(turn.tool_calls[0].id, turn.tool_calls[1].id);
    let usage = TokenUsage { prompt_cache_hit: 640, prompt_cache_miss: 56, completion: 40 };
    assert_eq!(reply.record.usage, usage);
    assert_eq!(reply.record.model, "deepseek-flash");
}

#[test]
fn a_turn_arrives_whole_however_it_is_sent() {
    for delivery in [
        json!({}),
        json!({ "keep_alive": 0, "split": 1 }),
        json!({ "keep_alive": 3, "split": 5, "write": 1 }),
        json!({ "keep_alive": 1, "split": 1000, "write": 7, "usage_apart": true }),
    ] {
        let mut turn = whole_turn();
        turn["delivery"] = delivery.clone();
        let server = play(&[turn]);
        let (reply, seen) = ask(&server.base_url());
        check_whole(&reply.unwrap_or_else(|error| panic!("{delivery}: {error}")));
        let signs = seen.iter().filter(|progress| **progress == Progress::Queued).count();
        assert_eq!(Some(signs as u64), delivery["keep_alive"].as_u64().or(Some(1)), "{delivery}");
        assert_eq!(seen.last(), Some(&Progress::Answering));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_way_a_turn_is_cut_into_pieces_changes_nothing(split in 1u16..40, write in 0u16..200, alive in 0u16..4) {
        let mut turn = whole_turn();
        turn["delivery"] = json!({ "keep_alive": alive, "split": split, "write": write });
        let server = play(&[turn]);
        check_whole(&ask(&server.base_url()).0.expect("is answered"));
    }
}

#[test]
fn passing_faults_are_tried_again_and_told() {
    let status = |status: u16| json!({ "fault": "status", "status": status });
    let faults = [
        status(429),
        status(500),
        status(502),
        status(503),
        json!({ "fault": "close" }),
        json!({ "fault": "report", "message": "overloaded" }),
        json!({ "fault": "exhausted" }),
    ];
    for fault in faults {
        let mut turn = whole_turn();
        turn["faults"] = json!([fault, fault]);
        let server = play(&[turn]);
        let (reply, seen) = ask(&server.base_url());
        check_whole(&reply.unwrap_or_else(|error| panic!("{fault}: {error}")));
        assert_eq!(server.requests(), 3, "{fault}");
        let retries: Vec<_> = seen.iter().filter_map(retrying).collect();
        assert_eq!(retries, [(1, 3), (2, 3)], "{fault}: {seen:?}");
        PAUSES.with_borrow(|pauses| {
            assert!(
                pauses[0] >= Duration::from_millis(500) && pauses[0] <= Duration::from_secs(1),
                "{pauses:?}"
            );
            assert!(pauses[1] >= Duration::from_secs(1) && pauses[1] <= Duration::from_secs(2), "{pauses:?}");
        });
    }
}

fn retrying(progress: &Progress) -> Option<(u32, u32)> {
    match progress {
        Progress::Retrying { attempt, attempts, .. } => Some((*attempt, *attempts)),
        _ => None,
    }
}

#[test]
fn a_stream_that_was_cut_is_never_taken_for_an_answer() {
    // The turn is sent in fewer events than this; each place to cut is tried.
    for after in 0..14 {
        let mut turn = whole_turn();
        turn["delivery"] = json!({ "split": 12 });
        turn["faults"] = json!([{ "fault": "cut", "after": after }]);
        let server = play(&[turn]);
        let (reply, _) = ask(&server.base_url());
        check_whole(&reply.unwrap_or_else(|error| panic!("{after}: {error}")));
        assert_eq!(server.requests(), 2, "{after}");
    }
}

#[test]
fn a_server_that_falls_silent_is_given_up_after_the_idle_time() {
    let mut turn = whole_turn();
    turn["faults"] = json!([{ "fault": "stall", "after": 2, "ms": 1500 }]);
    let server = play(&[turn]);
    let timeouts = Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() };
    let begin = Instant::now();
    let retry = Retry { attempts: 1, ..Retry::default() };
    let (reply, _) = ask_with(&server.base_url(), Settings { timeouts, retry, ..settings() });
    assert!(matches!(reply, Err(ClientError::Cut { .. })), "{reply:?}");
    assert!(begin.elapsed() < Duration::from_millis(1400), "{:?}", begin.elapsed());
}

#[test]
fn the_wait_that_the_server_asks_for_is_kept() {
    let mut turn = whole_turn();
    turn["faults"] = json!([{ "fault": "status", "status": 429, "retry_after": 17 }]);
    let server = play(&[turn]);
    check_whole(&ask(&server.base_url()).0.expect("is answered"));
    PAUSES.with_borrow(|pauses| assert_eq!(pauses.as_slice(), [Duration::from_secs(17)]));
}

#[test]
fn a_wait_beyond_reason_ends_the_tries() {
    let mut turn = whole_turn();
    turn["faults"] = json!([{ "fault": "status", "status": 429, "retry_after": 86_400 }]);
    let server = play(&[turn]);
    let error = ask(&server.base_url()).0.expect_err("gives up");
    assert_eq!((error.kind(), server.requests()), (FailureKind::Server, 1));
}

#[test]
fn the_number_of_tries_is_bounded() {
    let mut turn = whole_turn();
    turn["faults"] = json!(vec![json!({ "fault": "status", "status": 503, "message": "overloaded" }); 9]);
    let server = play(&[turn]);
    let error = ask(&server.base_url()).0.expect_err("gives up");
    assert_eq!((error.kind(), server.requests()), (FailureKind::Server, 3));
    assert!(error.to_string().contains("503: `overloaded`"), "{error}");
}

#[test]
fn lasting_errors_are_told_at_once_with_what_to_do() {
    let cases = [
        (400, FailureKind::Request, "report this"),
        (401, FailureKind::Key, "DEEPSEEK_API_KEY"),
        (402, FailureKind::Balance, "add to it"),
        (403, FailureKind::Key, "rights"),
        (404, FailureKind::Address, "base URL"),
        (422, FailureKind::Request, "parameter"),
    ];
    for (status, kind, advice) in cases {
        let mut turn = whole_turn();
        turn["faults"] = json!([{ "fault": "status", "status": status, "message": "no, says the server" }]);
        let server = play(&[turn]);
        let error = ask(&server.base_url()).0.expect_err("is refused");
        assert_eq!((error.kind(), server.requests()), (kind, 1), "{status}");
        let text = error.to_string();
        assert!(text.contains(advice) && text.contains("no, says the server"), "{text}");
    }
}

#[test]
fn thoughts_that_are_not_sent_back_are_refused_in_the_server_s_words() {
    let server = play(&[calls(&[("list_directory", json!({}))]), whole_turn()]);
    let mut messages = begun();
    let call = ToolCall { id: "call_1_0".into(), name: "list_directory".into(), arguments: "{}".into() };
    let answer = Answered { tool_call_id: call.id.clone(), content: "a".into(), failed: false };
    let turn = Turn { tool_calls: vec![call], finish_reason: "tool_calls".into(), ..Turn::default() };
    messages.extend([Message::Assistant(turn.clone()), Message::Tool(answer)]);
    let mut client = client_with(&server.base_url(), settings());
    let error = client.ask(&outgoing(&messages), &mut |_| Ok(())).expect_err("is refused");
    let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    assert!(
        matches!(&error, ClientError::Status { status: 400, message, .. } if message == words),
        "{error}"
    );

    messages[2] = Message::Assistant(Turn { reasoning_content: Some(String::new()), ..turn });
    check_whole(&client.ask(&outgoing(&messages), &mut |_| Ok(())).expect("is answered"));
}

#[test]
fn a_redirect_is_refused_and_nothing_is_sent_there() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    elsewhere.set_nonblocking(true).expect("can be polled");
    let location = format!("http://{}/chat/completions", elsewhere.local_addr().expect("bound"));
    for status in [301, 302, 303, 307, 308] {
        let mut turn = whole_turn();
        turn["faults"] = json!([{ "fault": "status", "status": status, "location": location }]);
        let server = play(&[turn]);
        let error = ask(&server.base_url()).0.expect_err("is refused");
        assert_eq!((error.kind(), server.requests()), (FailureKind::Redirect, 1));
        assert!(error.to_string().contains(&location), "{error}");
        let came = elsewhere.accept().map_err(|error| error.kind());
        assert_eq!(came.err(), Some(std::io::ErrorKind::WouldBlock));
    }
}

#[test]
fn the_key_is_in_one_header_and_the_body_is_as_agreed() {
    let server = RawServer::start(vec![hello()]);
    let settings = Settings { effort: Some(Effort::Max), turn_tokens: Some(1000), ..settings() };
    let url = format!("{}/v1/", server.base_url);
    let (reply, _) = ask_with(&url, settings);
    assert_eq!(reply.expect("is answered").turn.content, "hello");
    let request = server.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert_eq!(request.matches(KEY).count(), 1);
    assert!(
        head.lines().any(|line| line.eq_ignore_ascii_case(&format!("authorization: bearer {KEY}"))),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["model"], "deepseek-flash");
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    assert_eq!((&body["thinking"]["type"], &body["reasoning_effort"]), (&json!("enabled"), &json!("max")));
    assert_eq!((&body["max_tokens"], &body["user_id"]), (&json!(1000), &json!("task-aaaaaaaaaaaaaaaa")));
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(7));
    assert_eq!(body["messages"][1]["content"], "t");
}

#[test]
fn what_was_sent_and_received_is_reported_as_it_was() {
    let bytes = hello();
    let server = RawServer::start(vec![bytes.clone()]);
    let reply = ask(&server.base_url).0.expect("is answered");
    let request = server.requests().remove(0);
    let sent = request.split_once("\r\n\r\n").expect("a head").1;
    assert_eq!(reply.record.sent, sent);
    let text = String::from_utf8(bytes).expect("text");
    let received = text.split_once("\r\n\r\n").expect("a head").1;
    assert_eq!(reply.record.response, model::Digest::of(received.as_bytes()));
}

#[test]
fn what_is_no_answer_is_told_as_such() {
    let stream = "content-type: text/event-stream\r\n";
    let cases = [
        (response("200 OK", "content-type: text/html\r\n", "<html>log in</html>"), "`text/html`"),
        (response("200 OK", stream, "data: hello\n\n"), "not a piece of an answer"),
        (response("200 OK", stream, "data: \u{1}\n\n"), "not a piece of an answer"),
        (b"220 mail.example ESMTP\r\n".to_vec(), "did not send an answer"),
        (response("200 OK", stream, &format!("data: {}", "x".repeat(9 << 20))), "longer than"),
        (response("200 OK", &format!("x: {}\r\n", "y".repeat(1 << 20)), ""), "did not send an answer"),
    ];
    for (bytes, expected) in cases {
        let server = RawServer::start(vec![bytes]);
        let error = ask(&server.base_url).0.expect_err("is no answer");
        assert_eq!(error.kind(), FailureKind::Response, "{expected}: {}", error.with_causes());
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn an_error_page_of_any_kind_is_cut_and_escaped() {
    let page = format!("<h1>\u{1b}[2J</h1>{}", "x".repeat(1 << 20));
    let server = RawServer::start(vec![response("401 No", "content-type: text/html\r\n", &page)]);
    let text = ask(&server.base_url).0.expect_err("is refused").to_string();
    assert!(text.len() < 1000 && text.contains("\\u{1b}[2J"), "{text}");
}

#[test]
fn nobody_there_is_told_after_all_tries() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    drop(listener);
    let (result, seen) = ask(&url);
    let error = result.expect_err("nobody is there");
    assert_eq!(error.kind(), FailureKind::Connection);
    assert_eq!(seen.iter().filter_map(retrying).count(), 2);
    assert!(error.with_causes().contains("refused"), "{}", error.with_causes());
}

#[test]
fn waiting_ends_when_nobody_waits_any_more() {
    let mut turn = whole_turn();
    turn["delivery"] = json!({ "keep_alive": 3 });
    let server = play(&[turn]);
    let mut client = client_with(&server.base_url(), settings());
    let result = client.ask(&outgoing(&begun()), &mut |_| Err(ProtocolError::Gone));
    assert!(matches!(result, Err(ClientError::Abandoned(ProtocolError::Gone))), "{result:?}");
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_before_anything_is_sent() {
    let endpoint = Endpoint::resolve("http://127.0.0.1:9", None).expect("the loopback");
    for key in ["", "a b", "a\n", "schlüssel", "a\u{7f}"] {
        let error = Client::new(&endpoint, &Secret::new(key), settings()).expect_err("is refused");
        assert_eq!(error.kind(), FailureKind::Key);
    }
}
