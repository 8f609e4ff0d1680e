//! `run --allow-net`: what settings name is reached through the gateway, everything else is refused and told.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

/// A server of the host that answers every request with one word, and the port that it is at.
fn server() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("has one").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0; 1];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.extend(byte);
                }
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nreached");
            });
        }
    });
    port
}

/// Speaks with the proxy as its bytes are, one line of request after the other, and prints how each is answered. What has to
/// be tried beside is tried without it.
const CLIENT: &str = r#"
import os, socket, sys
proxy = os.environ['HTTP_PROXY'].split('//')[1].rstrip('/').rsplit(':', 1)
def ask(request):
    with socket.create_connection((proxy[0], int(proxy[1])), 5) as s:
        s.sendall(request.encode())
        answer = b''
        while chunk := s.recv(4096):
            answer += chunk
    return answer.split(b' ')[1].decode(), b'reached' in answer
def tunnel(to):
    with socket.create_connection((proxy[0], int(proxy[1])), 5) as s:
        s.sendall(f'CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n'.encode())
        return s.recv(4096).split(b' ')[1].decode()
for line in sys.argv[1:]:
    kind, _, rest = line.partition(' ')
    if kind == 'get':
        target, _, host = rest.partition(' ')
        print(line, *ask(f'GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'))
    elif kind == 'tunnel':
        print(line, tunnel(rest))
    elif kind == 'name':
        try:
            print(line, bool(socket.getaddrinfo(rest, 443)))
        except socket.gaierror as error:
            print(line, error.errno == socket.EAI_NONAME)
    else:
        host, port = rest.rsplit(':', 1)
        try:
            socket.create_connection((host, int(port)), 5)
            print(line, 'connected')
        except OSError as error:
            print(line, error.errno)
"#;

fn says(bench: &Bench, allow: &str, tries: &[&str]) -> Answer {
    bench.run(&[&["run", "--json", "--allow-net", allow, "--", "python3", "-c", CLIENT], tries].concat())
}

fn named(rules: &[String]) -> Bench {
    let bench = Bench::new();
    let rules: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
    bench.settings(&format!("[network.own]\nrules = [{}]\n", rules.join(", ")));
    bench
}

fn document(answer: &Answer) -> Value {
    let document = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
    document
}

#[test]
fn what_settings_name_is_reached_and_nothing_else() {
    let port = server();
    let other = server();
    let bench = named(&[format!("http://127.0.0.1:{port}/open/**"), "https://a.test".to_owned()]);
    let own = format!("127.0.0.1:{port}");
    let lines = [
        (format!("get http://{own}/open/x {own}"), "200 True"),
        (format!("get http://{own}/other {own}"), "403 False"),
        (format!("get http://{own}/open/../other {own}"), "403 False"),
        (format!("get http://127.0.0.1:{other}/open/x 127.0.0.1:{other}"), "403 False"),
        (format!("get http://{own}/open/x allowed.test"), "403 False"),
        (format!("get http://2130706433:{port}/open/x 2130706433:{port}"), "403 False"),
        (format!("tunnel 127.0.0.1:{other}"), "403"),
        (format!("tunnel localhost:{port}"), "403"),
        ("tunnel evila.test:443".to_owned(), "403"),
        ("name evila.test".to_owned(), "True"),
        ("name a.test".to_owned(), "True"),
        // EACCES: no packet leaves (13).
        ("connect 192.0.2.1:443".to_owned(), "13"),
        (format!("connect 127.0.0.1:{port}"), "111"),
    ];
    let tries: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
    let answer = says(&bench, "own", &tries);
    let expected: Vec<String> = lines.iter().map(|(line, says)| format!("{line} {says}")).collect();
    assert_eq!(answer.out.lines().collect::<Vec<_>>(), expected, "{answer:?}");

    let network = &document(&answer)["end"]["observed"]["network"];
    let attempts = network["attempts"].as_array().expect("some");
    let verdicts =
        |verdict: &str| attempts.iter().filter(|one| one["attempt"]["verdict"]["verdict"] == verdict).count();
    assert_eq!(verdicts("allowed"), 1, "{network}");
    assert!(verdicts("refused") >= 9, "{network}");
    let said =
        bench.run(&["run", "--allow-net", "own", "--", "python3", "-c", CLIENT, "name evila.test"]).err;
    assert!(
        said.contains("refused over the network: evila.test") && said.contains("`https://evila.test` would"),
        "{said}"
    );
}

/// Makes requests over TLS through a tunnel, as a client that verifies by what its system says, and prints how each is
/// answered.
const OVER_TLS: &str = r#"
import os, socket, ssl, sys
proxy = os.environ['HTTPS_PROXY'].split('//')[1].rstrip('/').rsplit(':', 1)
for path in sys.argv[1:]:
    with socket.create_connection((proxy[0], int(proxy[1])), 5) as s:
        s.sendall(b'CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n')
        assert b' 200 ' in s.recv(4096)
        with ssl.create_default_context().wrap_socket(s, server_hostname='a.test') as s:
            s.sendall(f'GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n'.encode())
            answer = b''
            while chunk := s.recv(4096):
                answer += chunk
    print(path, answer.split(b' ')[1].decode())
"#;

#[test]
fn a_path_within_tls_is_decided_and_clients_inside_trust_who_looks() {
    let bench = named(&["GET https://a.test/open/**".to_owned()]);
    let answer = bench.run(&[
        "run",
        "--json",
        "--allow-net",
        "own",
        "--",
        "python3",
        "-c",
        OVER_TLS,
        "/open/x",
        "/other",
    ]);
    // The one that is allowed goes out, where nobody knows the name.
    assert_eq!(answer.out, "/open/x 502\n/other 403\n", "{answer:?}");
    let attempts = document(&answer)["end"]["observed"]["network"]["attempts"].clone();
    let verdict = |path: &str| {
        let all = attempts.as_array().expect("some").iter();
        let of = all.filter(|one| one["attempt"]["path"] == path);
        of.map(|one| one["attempt"]["verdict"]["verdict"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((verdict("/open/x"), verdict("/other")), (vec!["failed".into()], vec!["refused".into()]));
    let file = bench.path("state/authority.json");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("is kept").permissions());
    assert_eq!(mode & 0o777, 0o600);
    // Without a rule that looks inside, nobody inside is told to trust it.
    let plain = named(&["https://a.test".to_owned()]);
    let script = "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; env | grep -c SSL_CERT_FILE";
    let roots = std::fs::read_to_string("/etc/ssl/certs/ca-certificates.crt")
        .expect("has roots")
        .matches("BEGIN")
        .count();
    assert_eq!(
        plain.run(&["run", "--allow-net", "own", "--", "sh", "-c", script]).out,
        format!("{roots}\n0\n")
    );
}

#[test]
fn what_no_setting_names_needs_a_persons_yes_and_nothing_runs_before() {
    let bench = Bench::new();
    let answer = bench.run(&["run", "--json", "--allow-net", "https://a.test", "--", "touch", "ran"]);
    let document = document(&answer);
    assert_eq!(document["decision"]["reason"], "network-not-named", "{answer:?}");
    assert!(answer.err.contains("approvals"), "{answer:?}");
    let refused = bench.run(&["run", "--allow-net", "a.test", "--", "true"]);
    assert!(
        refused.err.contains("`https://example.com`") && refused.err.contains("[network.NAME]"),
        "{refused:?}"
    );
}

#[test]
fn a_run_without_it_has_no_way_out() {
    let bench = named(&["https://a.test".to_owned()]);
    let script = "import os; print('HTTP_PROXY' in os.environ, os.path.exists('/etc/resolv.conf') and 'nameserver' in open('/etc/resolv.conf').read())";
    assert_eq!(bench.run(&["run", "--", "python3", "-c", script]).out, "False False\n");
}

#[test]
fn what_was_tried_is_listed_and_explained_with_the_rule_that_it_would_need() {
    let port = server();
    let bench = named(&[format!("GET http://127.0.0.1:{port}/open/**"), "https://a.test".to_owned()]);
    let own = format!("127.0.0.1:{port}");
    let (open, other) = (format!("get http://{own}/open/x {own}"), format!("get http://{own}/other {own}"));
    says(&bench, "own", &[&open, &other, &other, "name b.test", "connect 192.0.2.1:443"]);

    let log: Value = serde_json::from_str(&bench.run(&["net", "log", "--json"]).out).expect("is JSON");
    fits("net-log", &log);
    let rows = log["attempts"].as_array().expect("some");
    let of = |path: &str| rows.iter().find(|row| row["attempt"]["path"] == path).expect("is listed");
    assert_eq!((&of("/open/x")["times"], &of("/other")["times"]), (&1.into(), &2.into()), "{log}");
    let refused = bench.run(&["net", "log", "--refused"]).out;
    assert!(refused.contains("/other") && !refused.contains("/open/x"), "{refused}");
    assert_eq!(bench.run(&["net", "log", "--refused", "-n", "1"]).out.lines().count(), 1);

    let explained: Value =
        serde_json::from_str(&bench.run(&["net", "explain", "--json"]).out).expect("is JSON");
    fits("net-explain", &explained);
    let refusals = explained["refused"].as_array().expect("some");
    let refusal = |what: &str| {
        let found = refusals.iter().find(|one| one["what"].as_str().is_some_and(|text| text.contains(what)));
        let found = found.unwrap_or_else(|| panic!("{what} is not among {explained:#}"));
        (found["reason"].as_str().expect("a text").to_owned(), found["needs"].clone())
    };
    assert_eq!(refusal("/other"), ("no-rule".to_owned(), format!("GET http://{own}/other").into()));
    assert_eq!(refusal("b.test"), ("host-not-allowed".to_owned(), "https://b.test".into()));
    assert_eq!(refusal("192.0.2.1"), ("no-name".to_owned(), Value::Null));
    let again = explained["again"].as_str().expect("a command");
    for rule in
        ["--allow-net https://b.test", "--allow-net https://a.test", &format!("'GET http://{own}/other'")]
    {
        assert!(again.contains(rule), "{again}");
    }
    let why = bench.run(&["why"]).out;
    assert!(why.contains("`--allow-net https://b.test` asks for it"), "{why}");
    assert!(bench.run(&["show"]).out.contains(&format!("refused GET {own}/other")));
}

#[test]
fn what_may_be_reached_is_said_without_reaching_it() {
    let bench = named(&["GET https://a.test/open/**".to_owned(), "tcp://a.test:22".to_owned()]);
    let tested = |words: &[&str]| {
        let answer = bench.run(&[&["net", "test", "--json"], words].concat());
        let document: Value = serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{answer:?}"));
        fits("net-test", &document);
        (answer.code, document)
    };
    for (words, code, needs) in [
        (&["https://a.test/open/x?q=1"][..], 0, None),
        (&["tcp://a.test:22"], 0, None),
        (&["https://a.test/open/x", "-X", "POST"], 1, Some("POST https://a.test/open/x")),
        (&["https://a.test/other"], 1, Some("GET https://a.test/other")),
        (&["http://a.test/open/x"], 1, Some("GET http://a.test/open/x")),
        (&["https://evila.test"], 1, Some("GET https://evila.test/")),
    ] {
        let (exit, document) = tested(words);
        assert_eq!((exit, document["needs"].as_str()), (Some(code), needs), "{words:?}: {document:#}");
    }
    let (_, open) = tested(&["https://a.test/open/x"]);
    assert_eq!((&open["looks_into_tls"], &open["named_by"][0]), (&true.into(), &"own".into()));
    // A rule that is given on the command line lets it, and a person is asked.
    let (exit, asked) = tested(&["https://b.test/", "--allow-net", "https://b.test"]);
    assert_eq!((exit, &asked["policy"]["reason"]), (Some(1), &"network-not-named".into()));
    for wrong in ["ftp://a.test", "https://a.test/../x", "https://*.test/", "https://127.1/", "a.test"] {
        assert_eq!(bench.run(&["net", "test", wrong]).code, Some(125), "{wrong}");
    }
    bench.settings("[network.none]\nrules = []\n");
    let empty = bench.run(&["run", "--allow-net", "none", "--", "true"]);
    assert!(empty.code == Some(125) && empty.err.contains("has no rules"), "{empty:?}");
}
