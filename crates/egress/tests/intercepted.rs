//! A request from a client inside to a server over TLS on both sides, looked into between them.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use egress::Refusal;
use egress::http::hook::{Hook, Later};
use egress::http::{Host, Meant, Outside, Reached, Speaks, Target, Unreached, Way, serve};
use egress::tls::{Authority, Interceptor, Upstream};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::egress::{Attempt, Door, EgressRule, Protocol, Verdict};
use model::units::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::duplex;
use tokio_rustls::rustls;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    Timestamp::from_nanos(since.as_nanos().try_into().expect("fits"))
}

fn root(authority: &Authority) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(authority.certificate().as_bytes()).expect("a certificate")
}

fn host() -> Host {
    "a.test".parse().expect("a host")
}

/// A gateway whose only server is another interceptor, with an authority of the outside.
struct Gateway {
    rules: Vec<EgressRule>,
    server: Arc<Interceptor>,
    upstream: Upstream,
    told: Mutex<Vec<Attempt>>,
}

impl Outside for Gateway {
    fn rules(&self) -> &[EgressRule] {
        &self.rules
    }

    fn connect<'a>(&'a self, target: &'a Target, _: &'a EgressRule) -> Later<'a, Result<Reached, Unreached>> {
        let (one, other) = duplex(1 << 16);
        tokio::spawn(answer(self.server.clone(), other));
        Box::pin(async move {
            let (stream, speaks) =
                self.upstream.connect(one, &target.host).await.map_err(Unreached::Failed)?;
            Ok(Reached { stream: Box::new(stream), speaks, address: IpAddr::V4(Ipv4Addr::LOCALHOST) })
        })
    }

    fn hook(&self, _: &str) -> Option<Arc<dyn Hook>> {
        None
    }

    fn count(&self, _: Way, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn tell(&self, attempt: Attempt) {
        self.told.lock().expect("told").push(attempt);
    }
}

async fn answer(server: Arc<Interceptor>, stream: tokio::io::DuplexStream) {
    let Ok((stream, speaks)) = server.accept(stream, &host(), now()).await else { return };
    assert_eq!(speaks, Speaks::Http2);
    let path = |request: Request<Incoming>| async move {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(request.uri().path().to_owned()))))
    };
    let two = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = two.serve_connection(TokioIo::new(stream), service_fn(path)).await;
}

/// What a client inside gets for two paths, of which a rule names the first, and what was told.
async fn asked(known: bool) -> (Vec<(u16, String)>, Vec<Attempt>) {
    let (own, theirs) = (Authority::make(now()).expect("an authority"), Authority::make(now()).expect("one"));
    let trusted = if known { root(&theirs) } else { root(&own) };
    let gateway = Arc::new(Gateway {
        rules: vec!["GET https://a.test/team/a.git/**".parse().expect("a rule")],
        server: Arc::new(Interceptor::new(theirs)),
        upstream: Upstream::new([trusted]).expect("roots"),
        told: Mutex::default(),
    });
    let (inside, outside) = duplex(1 << 16);
    let client = Upstream::new([root(&own)]).expect("a client");
    let serving = gateway.clone();
    tokio::spawn(async move {
        let accepted = Interceptor::new(own).accept(outside, &host(), now()).await;
        let (stream, speaks) = accepted.expect("TLS inside");
        let target = Some(Target { host: host(), port: 443 });
        let meant = Meant { target, protocol: Protocol::Https, door: Door::Direct };
        serve(stream, speaks, meant, serving).await
    });
    let (stream, speaks) = client.connect(inside, &host()).await.expect("TLS");
    assert_eq!(speaks, Speaks::Http2);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("h2");
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for repository in ["a", "b"] {
        let uri = format!("https://a.test/team/{repository}.git/info/refs?service=git-upload-pack");
        let request = Request::get(uri).body(Empty::<Bytes>::new()).expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        answers.push((status, String::from_utf8_lossy(&body).into_owned()));
    }
    let told = gateway.told.lock().expect("told").clone();
    (answers, told)
}

#[tokio::test]
async fn a_path_is_decided_within_tls_and_the_other_one_of_the_same_host_is_refused() {
    let (answers, told) = asked(true).await;
    assert_eq!(answers[0], (200, "/team/a.git/info/refs".to_owned()));
    assert_eq!(answers[1].0, 403, "{answers:?}");
    assert!(answers[1].1.contains("`GET https://a.test/team/b.git/info/refs`"), "{answers:?}");
    assert!(told.iter().any(|attempt| attempt.is_refused()), "{told:?}");
}

#[tokio::test]
async fn a_server_that_is_not_verified_gets_no_request_and_is_told_as_failed() {
    let (answers, told) = asked(false).await;
    assert_eq!(answers[0].0, 502, "{answers:?}");
    assert!(answers[0].1.contains("the server of `a.test` is not verified"), "{answers:?}");
    let failed = |attempt: &Attempt| matches!(&attempt.verdict, Verdict::Failed { why, .. } if why.contains("not verified"));
    assert!(told.iter().any(failed), "{told:?}");
}
