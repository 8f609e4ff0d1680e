//! `run --allow-net registry:NAME`: what may come from a registry comes and is on the record, and all else is stopped with its
//! reason, also for a client that writes its requests by hand.

use std::io::{Read, Write};
use std::net::TcpListener;

use model::Digest;
use serde_json::Value;

use super::bench::{Answer, Bench, fits};

const CRATE: &str = "what a crate is";

/// A registry of cargo on the host, and its port: `own` with an old, a fresh and a changed version.
fn registry() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("has one").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0; 1]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.extend(byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let (status, body) = answer(port, head.split(' ').nth(1).unwrap_or_default());
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
            });
        }
    });
    port
}

fn answer(port: u16, path: &str) -> (&'static str, String) {
    let sum = Digest::of(CRATE.as_bytes()).to_string();
    let sum = sum.rsplit(':').next().unwrap_or_default();
    let line = |version: &str, time: jiff::Timestamp| {
        format!(r#"{{"name":"own","vers":"{version}","cksum":"{sum}","pubtime":"{time}"}}"#)
    };
    let (old, now) = (jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::now());
    match path {
        "/index/config.json" => ("200 OK", format!(r#"{{"dl":"http://127.0.0.1:{port}/index/dl"}}"#)),
        "/index/3/o/own" => {
            ("200 OK", [line("1.0.0", old), line("1.0.1", now), line("1.0.2", old)].join("\n"))
        }
        "/index/dl/own/1.0.0/download" | "/index/dl/own/1.0.1/download" => ("200 OK", CRATE.to_owned()),
        "/index/dl/own/1.0.2/download" => ("200 OK", "what a crate became".to_owned()),
        _ => ("404 Not Found", String::new()),
    }
}

/// Asks through the proxy for each path, and prints the status, and the reason or the first word of what came.
const CLIENT: &str = r#"
import os, socket, sys
proxy = os.environ['HTTP_PROXY'].split('//')[1].rstrip('/').rsplit(':', 1)
host = sys.argv[1]
for path in sys.argv[2:]:
    with socket.create_connection((proxy[0], int(proxy[1])), 10) as s:
        s.sendall(f'GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'.encode())
        answer = b''
        while chunk := s.recv(4096):
            answer += chunk
    head, _, body = answer.decode().partition('\r\n\r\n')
    reason = [line.split(': ')[1] for line in head.split('\r\n') if line.lower().startswith('x-fumehood-reason')]
    print(path, head.split(' ')[1], reason[0] if reason else (body.split() + [''])[0])
"#;

struct Shop {
    bench: Bench,
    host: String,
}

impl Shop {
    fn new(more: &str) -> Self {
        let (bench, host) = (Bench::new(), format!("127.0.0.1:{}", registry()));
        let shop = Self { bench, host };
        shop.settings(more);
        shop
    }

    fn settings(&self, more: &str) {
        let host = &self.host;
        self.bench.settings(&format!(
            "[registry.own]\nkind = \"cargo\"\nindex = \"sparse+http://{host}/index/\"\n{more}"
        ));
    }

    fn ask(&self, paths: &[&str]) -> Answer {
        let words =
            ["run", "--json", "--allow-net", "registry:own", "--", "python3", "-c", CLIENT, &self.host];
        self.bench.run(&[&words, paths].concat())
    }
}

#[test]
fn what_may_come_comes_and_all_else_is_stopped_with_its_reason() {
    let shop = Shop::new("known = [\"own\"]\n");
    let lines = [
        ("/index/3/o/own", "200 {\"name\":\"own\",\"vers\":\"1.0.0\""),
        ("/index/dl/own/1.0.0/download", "200 what"),
        ("/index/dl/own/1.0.1/download", "403 package-too-fresh"),
        ("/index/dl/own/1.0.2/download", "403 package-digest"),
        ("/index/dl/own/1.0.3/download", "403 package-unlisted"),
        ("/index/dl/ovvn/1.0.0/download", "403 package-look-alike"),
        ("/index/to/ki/tokio", "403 package-new-name"),
        ("/index/dl/own/1.0.0/download?secret", "403 package-path"),
        ("/other", "403 no-rule"),
    ];
    let answer = shop.ask(&lines.map(|(path, _)| path));
    for (line, (path, says)) in answer.out.lines().zip(lines) {
        assert!(line.starts_with(&format!("{path} {says}")), "{path}: {line}\n{answer:?}");
    }
    assert_eq!(answer.out.lines().count(), lines.len(), "{answer:?}");
    let document: Value = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
    let attempts = document["end"]["observed"]["network"]["attempts"].as_array().expect("some").clone();
    let came: Vec<&Value> = attempts
        .iter()
        .map(|one| &one["attempt"]["package"])
        .filter(|package| !package["digest"].is_null())
        .collect();
    assert_eq!(came.len(), 1, "{attempts:?}");
    assert_eq!((&came[0]["name"], &came[0]["version"]), (&"own".into(), &"1.0.0".into()));
}

#[test]
fn what_came_is_on_the_record_with_whom_it_came_for() {
    let shop = Shop::new("known = [\"own\"]\n");
    let answer = shop.ask(&["/index/dl/own/1.0.0/download", "/index/dl/own/1.0.1/download"]);
    let document: Value = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    let action = document["action"].as_str().expect("has one").to_owned();
    let listed = shop.bench.json(&["deps", "list", "--json"]);
    fits("deps", &listed);
    let rows = listed["packages"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{listed}");
    assert_eq!((&rows[0]["version"], &rows[0]["action"]), (&"1.0.0".into(), &action.clone().into()));
    let found = shop.bench.run(&["deps", "who-used", "own@1.0.0"]);
    assert!(found.code == Some(0) && found.out.contains(&action), "{found:?}");
    assert_eq!(shop.bench.run(&["deps", "who-used", "own@1.0.1"]).code, Some(1));
    let sbom: Value = serde_json::from_str(&shop.bench.run(&["deps", "sbom", &action]).out).expect("is JSON");
    assert_eq!(sbom["components"][0]["purl"], "pkg:cargo/own@1.0.0", "{sbom}");
    // A name that was used before needs nobody's word again.
    shop.settings("");
    assert!(shop.ask(&["/index/dl/own/1.0.0/download"]).out.contains("200 what"));
}

#[test]
fn a_lockfile_counts_as_the_task_began_from_it_and_not_as_a_command_wrote_it() {
    let lock = |sum: &str| {
        format!(
            "version = 4\n[[package]]\nname = \"own\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"{sum}\"\n"
        )
    };
    let shop = Shop::new("cooldown = \"0s\"\n");
    let right = Digest::of(CRATE.as_bytes()).to_string().rsplit(':').next().unwrap_or_default().to_owned();
    shop.bench.write("Cargo.lock", &lock(&right));
    let paths = ["/index/dl/own/1.0.0/download", "/index/dl/own/1.0.1/download"];
    let held = format!("{} 200 what\n{} 403 package-not-locked\n", paths[0], paths[1]);
    assert_eq!(shop.ask(&paths).out, held);
    let wrote = shop.bench.run(&["run", "--", "rm", "Cargo.lock"]);
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    assert_eq!(shop.ask(&paths).out, held);
    shop.bench.write("Cargo.lock", &lock(&"00".repeat(32)));
    assert_eq!(shop.ask(&paths[..1]).out, format!("{} 403 package-digest\n", paths[0]));
    shop.bench.write("Cargo.lock", "nonsense");
    let refused = shop.ask(&paths[..1]);
    assert!(
        refused.code == Some(125) && refused.err.contains("the lockfile `Cargo.lock` cannot be read"),
        "{refused:?}"
    );
}

#[test]
fn a_registry_that_no_setting_names_needs_a_persons_yes_and_an_unknown_one_is_said() {
    let shop = Shop::new("");
    let unknown = shop.bench.run(&["run", "--allow-net", "registry:other", "--", "true"]);
    assert!(
        unknown.err.contains("there is no registry `other`") && unknown.err.contains("own"),
        "{unknown:?}"
    );
    shop.bench.settings("[registry.own]\nindex = \"https://a.test\"\n");
    let wrong = shop.bench.run(&["run", "--", "true"]);
    assert!(wrong.err.contains("no `kind`"), "{wrong:?}");
    shop.bench.settings("");
    std::fs::write(shop.bench.path("home/.npmrc"), "registry=https://mirror.test/npm\n").expect("writes");
    let answer = shop.bench.run(&["run", "--json", "--allow-net", "registry:npm", "--", "touch", "ran"]);
    let document: Value = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    assert_eq!(document["decision"]["reason"], "network-not-named", "{answer:?}");
    let explained = shop.bench.run(&["config", "explain", "registry"]);
    assert!(
        explained.out.contains("https://mirror.test/npm") && explained.out.contains(".npmrc"),
        "{explained:?}"
    );
}
