//! The replay server as other programs meet it.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use agent::replay::ReplayServer;
use common::{calls, play};
use serde_json::{Value, json};

fn send(server: &ReplayServer, request: &str) -> String {
    let address = server.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is connected");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

fn post(server: &ReplayServer, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    send(
        server,
        &format!("POST /v1/chat/completions HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}"),
    )
}

const KEY: &str = "authorization: Bearer any\r\n";

fn one_turn() -> ReplayServer {
    let mut turn = calls(&[("bash", json!({ "command": "ls" }))]);
    turn["delivery"] = json!({ "keep_alive": 2 });
    play(&[turn])
}

#[test]
fn a_client_without_a_stream_gets_one_body_after_empty_lines() {
    let server = one_turn();
    let response = post(&server, KEY, &json!({ "messages": [{ "role": "user", "content": "x" }] }));
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(body.starts_with("\n\n{"), "{body}");
    let body: Value = serde_json::from_str(body.trim()).expect("JSON");
    let message = &body["choices"][0]["message"];
    assert_eq!(message["reasoning_content"], "I think so.");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{\"command\":\"ls\"}");
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    let usage = &body["usage"];
    let sum = usage["prompt_cache_hit_tokens"].as_u64().unwrap()
        + usage["prompt_cache_miss_tokens"].as_u64().unwrap();
    assert_eq!(usage["prompt_tokens"], sum);
}

#[test]
fn a_stream_is_made_of_events_that_end_with_done() {
    let server = one_turn();
    let response =
        post(&server, KEY, &json!({ "stream": true, "messages": [{ "role": "user", "content": "x" }] }));
    let events: Vec<&str> =
        response.lines().filter(|line| line.starts_with("data: ") || line.starts_with(": ")).collect();
    assert_eq!(events[..2], [": keep-alive", ": keep-alive"]);
    assert_eq!(events.last(), Some(&"data: [DONE]"));
    let last: Value = serde_json::from_str(&events[events.len() - 2]["data: ".len()..]).expect("JSON");
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");
    assert!(last["usage"]["prompt_tokens"].as_u64().is_some());
}

#[test]
fn requests_that_the_real_server_refuses_are_refused() {
    let server = one_turn();
    let user = json!({ "messages": [{ "role": "user", "content": "x" }] });
    let done = json!({ "messages": [
        { "role": "assistant", "reasoning_content": "", "tool_calls": [{ "id": "a" }] },
        { "role": "tool", "tool_call_id": "a", "content": "" },
    ] });
    let cases = [
        (post(&server, "", &user), "401", "header is missing"),
        (post(&server, "authorization: Bearer \r\n", &user), "401", "header is missing"),
        (post(&server, "authorization: Basic eDp5\r\n", &user), "401", "header is missing"),
        (post(&server, KEY, &json!([])), "400", "`messages` is missing"),
        (post(&server, KEY, &done), "400", "no turn after 1 answers"),
        (send(&server, "GET /models HTTP/1.1\r\n\r\n"), "404", "only POST"),
    ];
    for (response, status, text) in cases {
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")) && response.contains(text),
            "{text}: {response}"
        );
    }
}

#[test]
fn a_client_that_talks_nonsense_does_not_end_the_server() {
    let server = one_turn();
    for nonsense in
        ["\r\n\r\n", "\u{0}\u{1}\u{2}\r\n", "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n"]
    {
        assert!(!send(&server, nonsense).contains("200 OK"), "{nonsense:?}");
    }
    let user = json!({ "messages": [{ "role": "user", "content": "x" }] });
    assert!(post(&server, KEY, &user).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let server = one_turn();
    let address = server.base_url().replace("http://", "");
    let begin = Instant::now();
    drop(server);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(address).is_err());
}
