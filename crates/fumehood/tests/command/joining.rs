//! `run --join`: a client in the network of an action that runs a server.

use std::io::{BufRead, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::bench::{Answer, Bench, fits};

const CLIENT: [&str; 3] =
    ["python3", "-c", "import socket; print(socket.create_connection(('127.0.0.1', 8000)).recv(9).decode())"];

/// A server that runs in an action.
struct Server {
    child: Child,
    action: String,
    task: String,
}

impl Server {
    /// Starts one that says `hello`, with these options of `run`.
    fn start(bench: &Bench, options: &[&str], port: u16) -> Self {
        let script = format!(
            "import socket\nserver = socket.create_server(('127.0.0.1', {port}))\nprint('ready', flush=True)\n\
             while True: server.accept()[0].sendall(b'hello')"
        );
        let words = [&["run"], options, &["--", "python3", "-c", &script]].concat();
        let mut child = bench.start(&words);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("is piped")).read_line(&mut line).expect("it prints");
        assert_eq!(line, "ready\n");
        let shown = bench.json(&["show", "--json"]);
        let text = |key: &str| shown[key].as_str().expect("an id").to_owned();
        Self { child, action: text("action"), task: text("task") }
    }

    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it lives");
        self.child.wait().expect("it ends");
        self.action
    }
}

fn joined(bench: &Bench, action: &str, options: &[&str]) -> Answer {
    bench.run(&[&["run", "--join", action], options, &["--"], &CLIENT].concat())
}

fn document(answer: &Answer) -> Value {
    let document = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
    document
}

#[test]
fn a_server_answers_who_joins_its_network_and_nobody_else() {
    let bench = Bench::new();
    let server = Server::start(&bench, &[], 8000);
    let answer = joined(&bench, &server.action, &["--json"]);
    assert!(answer.out == "hello\n" && answer.err.contains("a fork of it"), "{answer:?}");
    let seen = document(&answer);
    assert_eq!(seen["request"]["grant"]["network"]["joined"], server.action.as_str());
    assert_eq!(seen["decision"]["grant"]["network"]["joined"], server.action.as_str());
    assert_ne!(seen["task"], server.task.as_str());
    let shown = bench.run(&["show", seen["action"].as_str().expect("an id")]).out;
    assert!(shown.contains(&format!("the loopback of {}", server.action)), "{shown}");

    // The fork is the open task now, and the action that it was forked beside can still be joined.
    let again = joined(&bench, &server.action, &[]);
    assert!(again.out == "hello\n" && !again.err.contains("a fork of it"), "{again:?}");
    let joins: Vec<Value> = [seen["action"].clone(), bench.newest().into()].into();
    let alone = bench.run(&[&["run", "--"][..], &CLIENT].concat());
    assert!(alone.code == Some(1) && alone.err.contains("ConnectionRefusedError"), "{alone:?}");
    let action = server.end();
    let shown = bench.json(&["show", "--json", &action]);
    fits("action", &shown);
    let by: Vec<&Value> =
        shown["joined_by"].as_array().expect("a list").iter().map(|by| &by["action"]).collect();
    assert_eq!(by, joins.iter().collect::<Vec<_>>(), "whoever joined, and nobody else");
    assert_eq!(shown["joined_by"][0]["task"], seen["task"]);
    let text = bench.run(&["show", &action]).out;
    assert!(joins.iter().all(|by| text.contains(by.as_str().expect("an id"))), "{text}");
}

#[test]
fn an_action_of_another_task_is_not_joined() {
    let bench = Bench::new();
    let server = Server::start(&bench, &[], 8000);
    bench.run(&["run", "--new-task", "--", "true"]);
    let refused = joined(&bench, &server.action, &["--json"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(126), ""), "{refused:?}");
    let seen = document(&refused);
    assert_eq!(
        (&seen["state"], &seen["decision"]["reason"]),
        (&"denied".into(), &"network-of-another-task".into())
    );
    let joined_by = |bench: &Bench| bench.json(&["show", "--json", &server.action])["joined_by"].clone();
    assert_eq!(joined_by(&bench), serde_json::json!([]), "what was denied joined nothing");
    let named = joined(&bench, &server.action, &["--task", &server.task]);
    assert_eq!(named.out, "hello\n", "{named:?}");
    assert_eq!(joined_by(&bench).as_array().map(Vec::len), Some(1), "while it runs, too");
    server.end();
}

#[test]
fn an_action_that_ended_is_named_and_nothing_runs() {
    let bench = Bench::new();
    let ended = Server::start(&bench, &[], 8000).end();
    let refused = joined(&bench, &ended, &[]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(126), ""), "{refused:?}");
    assert!(refused.err.contains(&ended) && refused.err.contains("has ended"), "{refused:?}");
    let why = bench.json(&["why", "--json"]);
    fits("why", &why);
    assert_eq!(why["causes"][0]["code"], "joined-action-not-running", "{why:#}");
    assert!(why["causes"][0]["sentence"].as_str().is_some_and(|text| text.contains(&ended)), "{why:#}");
}

#[test]
fn an_action_that_joined_has_no_network_to_give() {
    let bench = Bench::new();
    let first = Server::start(&bench, &[], 8000);
    let second = Server::start(&bench, &["--join", &first.action], 8001);
    let refused = joined(&bench, &second.action, &[]);
    let says = format!("it uses that of {}", first.action);
    assert!(refused.code == Some(125) && refused.err.contains(&says), "{refused:?}");
    second.end();
    first.end();
}
