//! The HTTP engine between a client that writes bytes by hand and a server of this test.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use egress::Refusal;
use egress::http::hook::{Asked, Exchange, Hook, Later, Reading};
use egress::http::{Meant, Outside, Reached, Speaks, Target, Unreached, Way, serve};
use http::{Request, Response, StatusCode, request, response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::egress::{Attempt, Door, EgressRule, Place, Protocol, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};

/// A gateway around the engine, which leads all names to one server.
struct Gateway {
    rules: Vec<EgressRule>,
    server: SocketAddr,
    speaks: Speaks,
    hook: Option<Arc<dyn Hook>>,
    budget: u64,
    counted: AtomicU64,
    connected: AtomicU64,
    told: Mutex<Vec<Attempt>>,
}

impl Outside for Gateway {
    fn rules(&self) -> &[EgressRule] {
        &self.rules
    }

    fn connect<'a>(&'a self, _: &'a Target, _: &'a EgressRule) -> Later<'a, Result<Reached, Unreached>> {
        Box::pin(async {
            let stream = TcpStream::connect(self.server).await;
            let stream = stream.map_err(|error| Unreached::Failed(error.to_string()))?;
            self.connected.fetch_add(1, Ordering::SeqCst);
            Ok(Reached { stream: Box::new(stream), speaks: self.speaks, address: self.server.ip() })
        })
    }

    fn hook(&self, registry: &str) -> Option<Arc<dyn Hook>> {
        self.hook.clone().filter(|_| registry == "test")
    }

    fn count(&self, _: Way, bytes: usize) -> Result<(), Refusal> {
        let all = self.counted.fetch_add(bytes as u64, Ordering::SeqCst) + bytes as u64;
        if all > self.budget { Err(Refusal::new("budget", "no more bytes")) } else { Ok(()) }
    }

    fn tell(&self, attempt: Attempt) {
        self.told.lock().expect("told").push(attempt);
    }
}

impl Gateway {
    fn new(rules: &[&str], server: SocketAddr) -> Self {
        Self {
            rules: rules.iter().map(|rule| rule.parse().expect("a rule")).collect(),
            server,
            speaks: Speaks::Http1,
            hook: None,
            budget: u64::MAX,
            counted: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            told: Mutex::default(),
        }
    }

    /// What was told, once this many attempts were: method, name, path, the rule or the reason, and bytes.
    async fn told(&self, attempts: usize) -> Vec<String> {
        for _ in 0..200 {
            if self.told.lock().expect("told").len() >= attempts {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let line = |attempt: &Attempt| {
            let verdict = match &attempt.verdict {
                Verdict::Allowed { rule } => format!("allowed {rule}"),
                Verdict::Refused { reason, .. } => format!("refused {reason}"),
                Verdict::Failed { rule, .. } => format!("failed {rule}"),
            };
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            let bytes = (attempt.sent.get(), attempt.received.get());
            format!("{} {} {} {verdict} {bytes:?}", of(&attempt.method), of(&attempt.name), of(&attempt.path))
        };
        self.told.lock().expect("told").iter().map(line).collect()
    }
}

/// Answers with what it was asked, so that a test sees what arrived.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut seen = format!("{} {} {:?}\n", parts.method, parts.uri, parts.version);
    for (name, value) in &parts.headers {
        seen += &format!("{name}={}\n", String::from_utf8_lossy(value.as_bytes()));
    }
    seen += &String::from_utf8_lossy(&body);
    Ok(Response::new(Full::from(seen)))
}

async fn server(speaks: Speaks) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = TokioIo::new(stream);
            match speaks {
                Speaks::Http1 => drop(tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(stream, service_fn(echo)),
                )),
                Speaks::Http2 => drop(tokio::spawn(
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service_fn(echo)),
                )),
            }
        }
    });
    address
}

/// A server that answers each connection with these bytes once a head has come, and then sends back what it gets.
async fn raw_server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a byte"));
                }
                stream.write_all(answer.as_bytes()).await.expect("writes");
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

fn meant(host: Option<&str>) -> Meant {
    let target = host.map(|host| Target { host: host.parse().expect("a host"), port: 80 });
    Meant { target, protocol: Protocol::Http, door: Door::Direct }
}

fn client(gateway: &Arc<Gateway>, speaks: Speaks, meant: Meant) -> DuplexStream {
    let (inside, outside) = duplex(1 << 16);
    tokio::spawn(serve(outside, speaks, meant, gateway.clone()));
    inside
}

/// Writes requests by hand, and returns all that comes back until the engine closes.
async fn by_hand(gateway: &Arc<Gateway>, meant: Meant, request: &str) -> String {
    let mut stream = client(gateway, Speaks::Http1, meant);
    stream.write_all(request.as_bytes()).await.expect("writes");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(5), read).await.expect("the engine closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn each_request_of_a_connection_is_decided_anew_and_told() {
    let gateway = Arc::new(Gateway::new(&["GET http://a.test/v1/**"], server(Speaks::Http1).await));
    let requests = "GET /v1/x?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n\
        POST /v1/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n\
        GET /v2 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = by_hand(&gateway, meant(Some("a.test")), requests).await;
    assert!(answer.contains("GET /v1/x?q=1 HTTP/1.1\nhost=a.test\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403").count(), 2, "{answer}");
    assert_eq!(answer.matches("x-fumehood-reason: no-rule").count(), 2, "{answer}");
    assert!(answer.contains("`GET http://a.test/v2` would"), "{answer}");
    let told = gateway.told(3).await;
    let refused = ["POST a.test /v1/x refused no-rule (0, 0)", "GET a.test /v2 refused no-rule (0, 0)"];
    assert!(refused.iter().all(|line| told.iter().any(|told| told == line)), "{told:?}");
    let allowed = "GET a.test /v1/x allowed GET http://a.test/v1/** (0, ";
    assert!(told.iter().any(|told| told.starts_with(allowed)), "{told:?}");
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_reaches_nobody() {
    let server = server(Speaks::Http1).await;
    for head in [
        "GET / HTTP/1.1\r\nHost: b.test",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test",
        "GET / HTTP/1.1",
        "GET http://b.test/ HTTP/1.1\r\nHost: a.test",
        "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80",
        "GET /%2e%2e/x HTTP/1.1\r\nHost: a.test",
        "GET //x HTTP/1.1\r\nHost: a.test",
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: host",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX: 1\r\n 2",
        "GET / HTTP/1.1\r\nHost : a.test",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: +1",
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked, identity",
    ] {
        let gateway = Arc::new(Gateway::new(&["http://a.test"], server));
        let answer =
            by_hand(&gateway, meant(Some("a.test")), &format!("{head}\r\nConnection: close\r\n\r\n")).await;
        let status = answer.get(..12).unwrap_or_default();
        assert!(["HTTP/1.1 400", "HTTP/1.1 403"].contains(&status), "{head}: {answer}");
        assert_eq!(gateway.connected.load(Ordering::SeqCst), 0, "{head} was sent on");
    }
}

#[tokio::test]
async fn two_lengths_are_one_request_to_the_server_too() {
    let gateway = Arc::new(Gateway::new(&["POST http://a.test/x"], server(Speaks::Http1).await));
    let smuggled = "POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 60\r\n\r\n\
        0\r\n\r\nGET /secret HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = by_hand(&gateway, meant(Some("a.test")), smuggled).await;
    assert!(!answer.contains("content-length=60") && !answer.contains("GET /secret HTTP"), "{answer}");
    assert!(gateway.told(1).await.iter().all(|told| !told.contains("/secret allowed")));
}

#[tokio::test]
async fn a_request_to_the_proxy_is_decided_by_its_own_target() {
    let gateway = Arc::new(Gateway::new(&["http://a.test"], server(Speaks::Http1).await));
    let requests = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\n\
        GET http://b.test/x HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n";
    let answer = by_hand(&gateway, meant(None), requests).await;
    assert!(answer.contains("GET /x HTTP/1.1\nhost=a.test\n"), "{answer}");
    assert!(!answer.contains("proxy-connection="), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403").count(), 1, "{answer}");
    let told = gateway.told(2).await;
    assert!(told.contains(&"GET b.test /x refused no-rule (0, 0)".to_owned()), "{told:?}");
}

/// The client follows a redirect, the gateway does not: where it leads is a request of its own.
#[test]
fn a_redirect_is_handed_over_and_where_it_leads_is_decided_anew() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let answer = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/admin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let gateway = Arc::new(Gateway::new(&["http://allowed.test"], raw_server(answer).await));
        let requests = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
            GET http://127.0.0.1/admin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\
            GET http://localhost/admin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answers = by_hand(&gateway, meant(None), requests).await;
        let codes: Vec<&str> =
            answers.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).map(|line| &line[..3]).collect();
        assert_eq!(codes, ["302", "403", "403"], "{answers}");
        assert!(answers.contains("location: http://127.0.0.1/admin"), "{answers}");
        assert_eq!(gateway.connected.load(Ordering::SeqCst), 1, "one server was asked once");
    });
}

#[tokio::test]
async fn http_2_goes_to_a_server_of_either_version() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let mut gateway = Gateway::new(&["GET http://a.test/ok"], server(speaks).await);
        gateway.speaks = speaks;
        let gateway = Arc::new(gateway);
        let stream = TokioIo::new(client(&gateway, Speaks::Http2, meant(Some("a.test"))));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut asked = Vec::new();
        for uri in ["http://a.test/ok", "http://a.test/no", "http://b.test/ok"] {
            let request = Request::get(uri).body(Empty::<Bytes>::new()).expect("a request");
            let response = sender.send_request(request).await.expect("a response");
            let status = response.status();
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            asked.push((status, String::from_utf8_lossy(&body).into_owned()));
        }
        let statuses: Vec<_> = asked.iter().map(|(status, _)| status.as_u16()).collect();
        assert_eq!(statuses, [200, 403, 403], "{asked:?}");
        let version = if speaks == Speaks::Http2 { "http://a.test/ok HTTP/2.0" } else { "/ok HTTP/1.1" };
        assert!(asked[0].1.starts_with(&format!("GET {version}")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_websocket_is_carried_after_its_request_was_decided_and_nothing_else_is_switched_to() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let gateway = Arc::new(Gateway::new(&["GET http://a.test/ws"], raw_server(switch).await));
    let ask = |path: &str, protocol: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n")
    };
    let mut stream = client(&gateway, Speaks::Http1, meant(Some("a.test")));
    stream.write_all(ask("/ws", "websocket").as_bytes()).await.expect("writes");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a byte"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream.write_all(b"\x81\x02hi").await.expect("writes");
    let mut back = [0; 4];
    stream.read_exact(&mut back).await.expect("reads");
    assert_eq!(&back, b"\x81\x02hi");
    drop(stream);
    assert_eq!(gateway.told(1).await, ["GET a.test /ws allowed GET http://a.test/ws (4, 4)"]);
    for (path, protocol, status) in [("/no", "websocket", "403"), ("/ws", "h2c", "502")] {
        let mut stream = client(&gateway, Speaks::Http1, meant(Some("a.test")));
        stream.write_all(ask(path, protocol).as_bytes()).await.expect("writes");
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("reads");
        assert_eq!(String::from_utf8_lossy(&start), format!("HTTP/1.1 {status}"), "{path} {protocol}");
    }
}

#[tokio::test]
async fn a_server_that_fails_is_told_as_such() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let nobody = listener.local_addr().expect("an address");
    drop(listener);
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    for server in [nobody, raw_server("HTTP/9.9 nonsense\r\n\r\n").await] {
        let gateway = Arc::new(Gateway::new(&["http://a.test"], server));
        let answer = by_hand(&gateway, meant(Some("a.test")), request).await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        assert_eq!(gateway.told(1).await, ["GET a.test / failed http://a.test (0, 0)"]);
    }
}

#[tokio::test]
async fn bytes_above_the_budget_do_not_pass() {
    let mut gateway = Gateway::new(&["http://a.test"], server(Speaks::Http1).await);
    gateway.budget = 10;
    let gateway = Arc::new(gateway);
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    let answer = by_hand(&gateway, meant(Some("a.test")), request).await;
    assert!(!answer.contains("host=a.test"), "{answer}");
    assert_eq!(gateway.told(1).await, ["GET a.test / refused budget (0, 0)"]);
}

#[tokio::test]
async fn a_credential_or_a_registry_that_nobody_serves_takes_nothing() {
    let server = server(Speaks::Http1).await;
    let rule: EgressRule = "http://a.test".parse().expect("a rule");
    let with = EgressRule { credential: Some("c".to_owned()), ..rule.clone() };
    let of = EgressRule { registry: Some("unknown".to_owned()), ..rule.clone() };
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
    for (narrow, reason) in [(with, "no-credential"), (of, "no-registry")] {
        let mut gateway = Gateway::new(&[], server);
        // The rule that asks for most decides, also beside one that asks for nothing.
        gateway.rules = vec![rule.clone(), narrow, rule.clone()];
        let gateway = Arc::new(gateway);
        let answer = by_hand(&gateway, meant(Some("a.test")), request).await;
        assert!(answer.contains(&format!("x-fumehood-reason: {reason}")), "{answer}");
        assert_eq!(gateway.connected.load(Ordering::SeqCst), 0);
    }
}

/// Reads responses as it is told, and refuses those with `bad` in them at the end.
struct Reader(Reading);

impl Hook for Reader {
    fn request<'a>(
        &'a self,
        asked: Asked<'a>,
        head: &'a mut request::Parts,
    ) -> Later<'a, Result<Box<dyn Exchange>, Refusal>> {
        Box::pin(async move {
            match head.uri.path() {
                "/no" => return Err(Refusal::new("hook-says-no", "not this one")),
                "/wander" => head.uri = "/elsewhere".parse().expect("a path"),
                "/other" => drop(head.headers.insert("host", "b.test".parse().expect("a value"))),
                "/fetch" => {
                    let here: Place = "http://a.test".parse().expect("a place");
                    let more = asked.fetch.get(&here, "/more", None, 1024).await?;
                    assert!(more.body().starts_with(b"GET /more"));
                    let there: Place = "http://b.test".parse().expect("a place");
                    assert!(asked.fetch.get(&there, "/more", None, 1024).await.is_err());
                    asked.fetch.get(&here, "/pkg/more", None, 1024).await?;
                }
                _ => {}
            }
            Ok(Box::new(Read { how: self.0, seen: Vec::new() }) as Box<dyn Exchange>)
        })
    }
}

struct Read {
    how: Reading,
    seen: Vec<u8>,
}

impl Exchange for Read {
    fn response(&mut self, head: &mut response::Parts) -> Result<Reading, Refusal> {
        assert_eq!(head.status, StatusCode::OK);
        Ok(self.how)
    }

    fn whole(&mut self, body: Bytes) -> Result<Bytes, Refusal> {
        self.seen = body.to_vec();
        self.end().map(|()| Bytes::from_static(b"whole and good"))
    }

    fn piece(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        self.seen.extend_from_slice(piece);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let bad = self.seen.windows(3).any(|three| three == b"bad");
        if bad { Err(Refusal::new("bad-body", "it is bad")) } else { Ok(()) }
    }
}

async fn hooked(reading: Reading, path: &str) -> (String, Vec<String>) {
    let mut gateway = Gateway::new(&[], server(Speaks::Http1).await);
    let rules = ["/pkg/**", "/no", "/wander", "/other", "/fetch"].map(|path| {
        let rule: EgressRule = format!("http://a.test{path}").parse().expect("a rule");
        EgressRule { registry: Some("test".to_owned()), ..rule }
    });
    gateway.rules = rules.to_vec();
    if path == "/fetch" {
        gateway.rules = vec![EgressRule { path: None, ..rules[0].clone() }];
        gateway.rules[0].path = Some("/*".parse().expect("a path"));
    }
    gateway.hook = Some(Arc::new(Reader(reading)));
    let gateway = Arc::new(gateway);
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let answer = by_hand(&gateway, meant(Some("a.test")), &request).await;
    (answer, gateway.told(1).await)
}

#[tokio::test]
async fn a_hook_narrows_what_a_rule_took_and_never_widens_it() {
    for (path, reason) in [("/no", "hook-says-no"), ("/wander", "no-rule"), ("/other", "other-host")] {
        let (answer, told) = hooked(Reading::Pass, path).await;
        assert!(answer.contains(&format!("x-fumehood-reason: {reason}")), "{path}: {answer}");
        assert!(told[0].contains(&format!("refused {reason}")), "{told:?}");
    }
    // What it fetches is decided by the rules of its registry; the only one is about one segment and one host here.
    let (answer, told) = hooked(Reading::Pass, "/fetch").await;
    assert!(answer.contains("HTTP/1.1 403") && answer.contains("that no rule takes"), "{answer}");
    assert!(told.iter().any(|told| told.contains("/pkg/more refused no-rule")), "{told:?}");
}

#[tokio::test]
async fn a_body_that_a_hook_refuses_reaches_nobody_in_full() {
    for reading in [Reading::Whole { bytes_max: 4096 }, Reading::Pieces] {
        let (answer, told) = hooked(reading, "/pkg/bad").await;
        assert!(!answer.contains("GET /pkg/bad"), "{reading:?}: {answer}");
        assert!(told[0].contains("refused bad-body"), "{told:?}");
        let (answer, told) = hooked(reading, "/pkg/good").await;
        assert!(
            answer.contains("whole and good") || answer.contains("GET /pkg/good"),
            "{reading:?}: {answer}"
        );
        assert!(told[0].contains("/pkg/good allowed"), "{told:?}");
    }
    let (answer, _) = hooked(Reading::Whole { bytes_max: 4 }, "/pkg/good").await;
    assert!(answer.contains("x-fumehood-reason: too-large"), "{answer}");
}

#[tokio::test]
async fn an_address_is_served_by_the_rule_that_names_it_alone() {
    let server = server(Speaks::Http1).await;
    let gateway = Arc::new(Gateway::new(&["http://192.0.2.1", "http://a.test"], server));
    for (host, status) in [("192.0.2.1", "200"), ("192.0.2.2", "403"), ("[::ffff:192.0.2.1]", "403")] {
        let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = by_hand(&gateway, meant(None), &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    gateway.told(3).await;
    let address = gateway.told.lock().expect("told").iter().find_map(|attempt| attempt.address);
    assert_eq!(address, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
}
