//! The client against a server with a certificate of its own.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use agent::context::Outgoing;
use agent::conversation::Message;
use agent::deepseek::{Client, ClientError, Endpoint, Retry, Settings, Timeouts};
use agent::protocol::FailureKind;
use agent::run_loop::{Model, Reply};
use agent::{Secret, Secrets};
use common::KEY;
use common::raw::{hello, read_request};

struct Server {
    url: String,
    roots: String,
    thread: JoinHandle<Option<String>>,
}

/// Starts a server for one connection, with a certificate for this name that it signed itself.
fn serve(name: &str) -> Server {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config =
        config.expect("versions").with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
    let config = Arc::new(config.expect("a matching key"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://localhost:{}", listener.local_addr().expect("bound").port());
    let thread = std::thread::spawn(move || {
        let (tcp, _) = listener.accept().expect("a client");
        let connection = rustls::ServerConnection::new(config).expect("a connection");
        let mut stream = rustls::StreamOwned::new(connection, tcp);
        // A client that does not trust us ends the handshake.
        stream.conn.complete_io(&mut stream.sock).ok()?;
        let request = read_request(&mut BufReader::new(&mut stream));
        stream.write_all(&hello()).expect("the client reads");
        stream.conn.send_close_notify();
        stream.flush().ok();
        Some(request)
    });
    Server { url, roots: made.cert.pem(), thread }
}

fn ask(url: &str, roots: Option<&str>) -> Result<Reply, ClientError> {
    let endpoint = Endpoint::resolve(url, roots).expect("localhost");
    let settings = Settings {
        model: "m".into(),
        effort: None,
        user: "task".into(),
        turn_tokens: None,
        timeouts: Timeouts::default(),
        retry: Retry { attempts: 1, ..Retry::default() },
    };
    let mut client = Client::new(&endpoint, &Secret::new(KEY), settings)?;
    let secrets = Secrets::new(&Secret::new(KEY), &[]).expect("the shapes are well-formed");
    let messages = [Message::System { content: "s".into() }, Message::User { content: "t".into() }];
    client.ask(&Outgoing::new(&messages, &secrets, 1 << 20).expect("fits"), &mut |_| Ok(()))
}

#[test]
fn a_certificate_is_trusted_when_its_root_was_named() {
    let server = serve("localhost");
    let reply = ask(&server.url, Some(&server.roots)).expect("is answered");
    assert_eq!(reply.turn.content, "hello");
    assert!(server.thread.join().expect("ends").expect("was asked").contains(KEY));
}

#[test]
fn a_certificate_that_nobody_vouches_for_gets_no_key() {
    let server = serve("localhost");
    let error = ask(&server.url, None).expect_err("is not trusted");
    assert_eq!(error.kind(), FailureKind::Certificate, "{}", error.with_causes());
    assert_eq!(server.thread.join().expect("ends"), None);
}

#[test]
fn a_certificate_for_another_name_gets_no_key() {
    let server = serve("elsewhere.example");
    let error = ask(&server.url, Some(&server.roots)).expect_err("is another's");
    assert_eq!(error.kind(), FailureKind::Certificate, "{}", error.with_causes());
    assert_eq!(server.thread.join().expect("ends"), None);
}
