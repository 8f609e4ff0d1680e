//! Servers of the host over TLS, with certificates of an authority that settings can name.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// An authority of this test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// Writes its certificate where settings can name it.
    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, self.0.pem()).expect("writes");
    }

    fn config(&self, address: IpAddr) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![address.to_string()]).expect("params");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate").der().clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Arc::new(builder.with_single_cert(vec![certificate], key).expect("fits"))
    }
}

/// A server that keeps each head that it gets, and answers by the path: `/api/echo` with the head, `/api/slow` with a beginning
/// and then nothing, anything else with `ok`.
pub(crate) struct Server {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(authority: &Authority, address: &str) -> Self {
        let address: IpAddr = address.parse().expect("an address");
        let listener = TcpListener::bind((address, 0)).expect("a port");
        let port = listener.local_addr().expect("has one").port();
        let (heads, config) = (Arc::new(Mutex::new(Vec::new())), authority.config(address));
        let kept = heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, kept) = (config.clone(), kept.clone());
                std::thread::spawn(move || serve(config, stream, &kept));
            }
        });
        Self { address, port, heads }
    }

    pub(crate) fn at(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Returns the heads that came.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("kept").clone()
    }
}

fn serve(config: Arc<ServerConfig>, stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).expect("a connection"), stream);
    loop {
        let (mut head, mut byte) = (Vec::new(), [0; 1]);
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) => head.extend(byte),
                _ => return,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        kept.lock().expect("kept").push(head.clone());
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let (body, length) = match path.as_str() {
            "/api/echo" => (head.clone(), head.len()),
            "/api/slow" => ("beginning\n".to_owned(), 1000),
            _ => ("ok".to_owned(), 2),
        };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
            return;
        }
        if path == "/api/slow" {
            // Until whoever asked has gone.
            let _ = stream.sock.set_read_timeout(Some(Duration::from_secs(60)));
            let _ = stream.read(&mut byte);
            return;
        }
    }
}

/// Makes requests over TLS through a tunnel, each `HOST:PORT PATH [HEADER…]` with `$NAME` for variables, and prints how each is
/// answered.
pub(crate) const CLIENT: &str = r#"
import os, socket, ssl, sys
proxy = os.environ['HTTPS_PROXY'].split('//')[1].rstrip('/').rsplit(':', 1)
for line in sys.argv[1:]:
    to, path, *headers = os.path.expandvars(line).split('|')
    with socket.create_connection((proxy[0], int(proxy[1])), 5) as s:
        s.sendall(f'CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n'.encode())
        said = s.recv(4096)
        if b' 200 ' not in said:
            print('tunnel', said.split(b' ')[1].decode(), flush=True)
            continue
        with ssl.create_default_context().wrap_socket(s, server_hostname=to.rsplit(':', 1)[0]) as s:
            lines = [f'GET {path} HTTP/1.1', f'Host: {to}', 'Connection: close', *headers, '', '']
            s.sendall('\r\n'.join(lines).encode())
            answer = b''
            try:
                while chunk := s.recv(4096):
                    answer += chunk
                    if b'beginning' in chunk:
                        print('beginning', flush=True)
            except OSError:
                pass
    head, _, body = answer.partition(b'\r\n\r\n')
    reason = [l.split(b': ')[1].decode() for l in head.split(b'\r\n') if l.startswith(b'x-fumehood-reason')]
    print(answer.split(b' ')[1].decode(), *reason, flush=True)
    if b'authorization' in body.lower():
        print(*[l.decode() for l in body.split(b'\r\n') if l.lower().startswith(b'authorization')], flush=True)
"#;

/// Returns the texts that are in the record, by the name of their event.
pub(crate) fn events(exported: &str) -> BTreeMap<String, Vec<String>> {
    let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in exported.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("is JSON");
        if let Some(name) = record["event"]["event"].as_str() {
            events.entry(name.to_owned()).or_default().push(record["event"].to_string());
        }
    }
    events
}
