//! Credentials through the HTTP engine, between a client that writes bytes by hand and a server of this test.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use egress::http::hook::{Hook, Later};
use egress::http::{Meant, Outside, Reached, Speaks, Target, Unreached, Way, serve};
use egress::{Credentials, Refusal};
use model::egress::{
    AlertKind, Attempt, Canary, Door, EgressRule, GivenCredential, Protocol, Secret, Verdict,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};

const VALUE: &str = "real-Value-0123456789";
const STAND_IN: &str = "fhq7w3e5r2t8y4u6i9o0p1";
const CANARY: &str = "fhcanary1234567890abc";

/// A gateway around the engine, which leads all names to one server.
struct Gateway {
    rules: Vec<EgressRule>,
    server: SocketAddr,
    credentials: Arc<Credentials>,
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
            Ok(Reached { stream: Box::new(stream), speaks: Speaks::Http1, address: self.server.ip() })
        })
    }

    fn hook(&self, _: &str) -> Option<Arc<dyn Hook>> {
        None
    }

    fn credentials(&self) -> Option<Arc<Credentials>> {
        Some(self.credentials.clone())
    }

    fn count(&self, _: Way, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn tell(&self, attempt: Attempt) {
        self.told.lock().expect("told").push(attempt);
    }
}

/// A server that keeps what it got and answers each request with the next of these.
async fn server(answers: &[&str]) -> (SocketAddr, Arc<Mutex<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let got = Arc::new(Mutex::new(String::new()));
    let (keeps, mut answers) =
        (got.clone(), answers.iter().map(|answer| (*answer).to_owned()).collect::<VecDeque<_>>());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            keeps.lock().expect("kept").push_str(&String::from_utf8_lossy(&head));
            let answer = answers.pop_front().unwrap_or_default();
            // In small pieces, so that what is looked for lies across their edges.
            for piece in answer.as_bytes().chunks(5) {
                stream.write_all(piece).await.expect("writes");
                stream.flush().await.expect("writes");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            tokio::spawn(async move {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
            });
        }
    });
    (address, got)
}

fn gateway(server: SocketAddr) -> Arc<Gateway> {
    let secret = |text: &str| Secret::new(text.to_owned());
    let given = GivenCredential {
        name: "forge".to_owned(),
        value: secret(VALUE),
        stand_in: secret(STAND_IN),
        placement: "bearer".parse().expect("a place"),
        in_clear: false,
    };
    let canary = Canary { name: "BACKUP".to_owned(), value: secret(CANARY) };
    let rule = |text: &str| text.parse::<EgressRule>().expect("a rule");
    let with = EgressRule { credential: Some("forge".to_owned()), ..rule("https://a.test/api/**") };
    let clear = EgressRule { credential: Some("forge".to_owned()), ..rule("http://a.test:443") };
    Arc::new(Gateway {
        rules: vec![rule("https://a.test"), with, rule("https://b.test"), clear],
        server,
        credentials: Arc::new(Credentials::new(vec![given], vec![canary]).expect("can be looked for")),
        told: Mutex::default(),
    })
}

async fn ask(gateway: &Arc<Gateway>, host: &str, protocol: Protocol, request: &str) -> String {
    let (mut inside, outside) = duplex(1 << 16);
    let target = Some(Target { host: host.parse().expect("a host"), port: 443 });
    tokio::spawn(serve(
        outside,
        Speaks::Http1,
        Meant { target, protocol, door: Door::Direct },
        gateway.clone(),
    ));
    inside.write_all(request.as_bytes()).await.expect("writes");
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(5), inside.read_to_end(&mut answer));
    let _ = read.await.expect("the engine closes");
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(host: &str, path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n")
}

fn refusals(gateway: &Gateway) -> Vec<String> {
    let told = gateway.told.lock().expect("told");
    let reason = |attempt: &Attempt| match &attempt.verdict {
        Verdict::Refused { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    told.iter().filter_map(reason).collect()
}

#[tokio::test]
async fn the_value_is_put_into_requests_of_its_rule_and_into_no_other() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let (server, got) = server(&[ok, ok]).await;
    let gateway = gateway(server);
    let stand_in = format!("Authorization: Bearer {STAND_IN}\r\nAccept-Encoding: gzip\r\n");
    let answer = ask(&gateway, "a.test", Protocol::Https, &get("a.test", "/api/x", &stand_in)).await;
    assert!(answer.ends_with("ok"), "{answer}");
    let seen = got.lock().expect("kept").clone();
    assert!(seen.contains(&format!("authorization: Bearer {VALUE}\r\n")), "{seen}");
    assert!(!seen.contains(STAND_IN) && seen.contains("accept-encoding: identity\r\n"), "{seen}");
    let other = ask(&gateway, "a.test", Protocol::Https, &get("a.test", "/other", "")).await;
    assert!(other.ends_with("ok"), "{other}");
    assert_eq!(got.lock().expect("kept").matches(VALUE).count(), 1);
    let clear = ask(&gateway, "a.test", Protocol::Http, &get("a.test:443", "/api/x", "")).await;
    assert!(clear.contains("x-fumehood-reason: credential-in-clear"), "{clear}");
    assert_eq!(got.lock().expect("kept").matches(VALUE).count(), 1);
    assert!(gateway.credentials.take_alerts().is_empty());
}

#[tokio::test]
async fn a_stand_in_for_another_host_and_a_canary_for_any_do_not_go_out() {
    let (server, got) = server(&[]).await;
    let gateway = gateway(server);
    let authorization = |token: &str| format!("Authorization: Bearer {token}\r\n");
    for (host, path, headers, reason) in [
        ("b.test", "/x", authorization(STAND_IN), "stand-in-elsewhere"),
        ("b.test", &format!("/x?t={STAND_IN}"), String::new(), "stand-in-elsewhere"),
        ("a.test", "/other", authorization(STAND_IN), "stand-in-elsewhere"),
        ("a.test", "/api/x", authorization(CANARY), "canary"),
        ("b.test", &format!("/{CANARY}"), String::new(), "canary"),
    ] {
        let answer = ask(&gateway, host, Protocol::Https, &get(host, path, &headers)).await;
        assert!(answer.contains(&format!("x-fumehood-reason: {reason}\r\n")), "{host}{path}: {answer}");
    }
    // In a body, across the edges of its pieces, to where the stand-in itself may go.
    let (one, two) = CANARY.split_at(7);
    let body = format!("4\r\nxxxx\r\n7\r\n{one}\r\ne\r\n{two}\r\n0\r\n\r\n");
    let post =
        "POST /api/x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let answer = ask(&gateway, "a.test", Protocol::Https, &format!("{post}{body}")).await;
    assert!(answer.contains("x-fumehood-reason: canary\r\n"), "{answer}");
    assert!(!got.lock().expect("kept").contains(two));
    let alerts = gateway.credentials.take_alerts();
    let has = |kind, host: &str| alerts.iter().any(|alert| alert.kind == kind && alert.host == host);
    assert!(
        has(AlertKind::StandInElsewhere, "b.test") && has(AlertKind::StandInElsewhere, "a.test"),
        "{alerts:?}"
    );
    assert!(has(AlertKind::Canary, "a.test") && has(AlertKind::Canary, "b.test"), "{alerts:?}");
    assert_eq!(refusals(&gateway).len(), 6);
}

#[tokio::test]
async fn a_value_that_comes_back_is_illegible_wherever_it_stands() {
    let echo = format!(
        "HTTP/1.1 200 OK\r\nX-Seen: {VALUE}\r\nTransfer-Encoding: chunked\r\nTrailer: x-last\r\n\r\n\
         1d\r\nyou said {VALUE:.20}\r\n4\r\n9 !\n\r\n0\r\nx-last: {VALUE}\r\n\r\n"
    );
    let length = VALUE.len() + 2;
    let plain =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Length: {length}\r\n\r\n<{VALUE}>");
    let packed = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok".to_owned();
    let (server, _) = server(&[&echo, &plain, &packed]).await;
    let gateway = gateway(server);
    let request = get("a.test", "/api/x", "TE: trailers\r\n");
    let answer = ask(&gateway, "a.test", Protocol::Https, &request).await;
    let stars = "*".repeat(VALUE.len());
    assert!(!answer.contains(VALUE) && !answer.contains(&VALUE[..15]), "{answer}");
    assert!(answer.contains(&format!("x-seen: {stars}\r\n")), "{answer}");
    let answer = ask(&gateway, "a.test", Protocol::Https, &request).await;
    assert!(answer.ends_with(&format!("<{stars}>")), "{answer}");
    assert_eq!(answer.matches("content-length").count(), 1, "{answer}");
    let answer = ask(&gateway, "a.test", Protocol::Https, &request).await;
    assert!(answer.contains("x-fumehood-reason: not-legible\r\n"), "{answer}");
    let alerts = gateway.credentials.take_alerts();
    assert_eq!(alerts.len(), 1);
    assert_eq!((alerts[0].kind, alerts[0].host.as_str()), (AlertKind::ValueCameBack, "a.test"));
}

#[tokio::test]
async fn taking_it_back_closes_what_is_open_and_lets_nothing_more_out() {
    let (server, got) = server(&["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning"]).await;
    let gateway = gateway(server);
    let ends = gateway.credentials.clone();
    let reached = got.clone();
    tokio::spawn(async move {
        while reached.lock().expect("kept").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(ends.end("forge"));
    });
    // The server would keep it open for ever.
    let answer = ask(&gateway, "a.test", Protocol::Https, &get("a.test", "/api/x", "")).await;
    assert!(answer.contains("beginning"), "{answer}");
    let answer = ask(&gateway, "a.test", Protocol::Https, &get("a.test", "/api/x", "")).await;
    assert!(answer.contains("x-fumehood-reason: credential-ended\r\n"), "{answer}");
    assert_eq!(got.lock().expect("kept").matches(VALUE).count(), 1);
    assert_eq!(refusals(&gateway), ["credential-ended", "credential-ended"]);
}
