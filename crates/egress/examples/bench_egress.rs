//! Measures ways out of a sandbox, for `cargo xtask bench`: a server, and a client that takes the time of its requests.
//!
//! ```text
//! bench_egress serve ROOT                                 a server for `bench.test`, until its input ends
//! bench_egress ask WHAT URL [--proxy HOST:PORT] [--root FILE]
//! bench_egress hold NUMBER URL [--root FILE]              as many connections, until its input ends
//! ```
//!
//! `serve` writes the certificate that it is verified by to `ROOT`, and says `{"http": PORT, "https": PORT}`. `ask` says `ready`,
//! and after each `go` on its standard input `{"wall_us": NUMBER}`: with `median` and `p99` of one request among many on one
//! connection, with `connect` of one on a connection of its own, with `load` of many requests on 32 connections, with `bulk` of one
//! long answer. `hold` says `ready` when all connections have had an answer.
#![allow(clippy::print_stdout, reason = "an example speaks for itself")]
#![allow(clippy::disallowed_methods, reason = "an example has no settings module")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The name of the server.
const NAME: &str = "bench.test";
/// What is answered: as much as an answer of an API has, and as much as shows how quick bytes are.
const SHORT: usize = 1024;
const LONG: usize = 64 << 20;
/// How many requests one try is made of.
const REQUESTS: usize = 500;
const CONNECTS: usize = 50;
const THREADS: usize = 32;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "serve", root] => serve(root),
        [_, "ask", what, url, options @ ..] => ask(what, &Way::of(url, options)?),
        [_, "hold", number, url, options @ ..] => hold(number.parse()?, &Way::of(url, options)?),
        _ => Err("see the beginning of this file".into()),
    }
}

// --- The server --------------------------------------------------------------------------------------------------------------

fn serve(root: &str) -> Result<()> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    std::fs::write(root, made.cert.pem())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clear = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let tls = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{{\"http\": {}, \"https\": {}}}", clear.local_addr()?.port(), tls.local_addr()?.port());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(accept(clear, None));
        tokio::spawn(accept(tls, Some(acceptor)));
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
        Ok(())
    })
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>) {
    let long = Bytes::from(vec![b'x'; LONG]);
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, long) = (tls.clone(), long.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let service = service_fn(move |request| answer(request, long.clone()));
            let http = hyper::server::conn::http1::Builder::new();
            match tls {
                None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                }
            }
        });
    }
}

async fn answer(request: Request<Incoming>, long: Bytes) -> Result<Response<Full<Bytes>>> {
    let body = if request.uri().path() == "/long" { long } else { long.slice(..SHORT) };
    Ok(Response::new(Full::new(body)))
}

// --- The client --------------------------------------------------------------------------------------------------------------

/// How a client comes to the server.
struct Way {
    scheme: String,
    host: String,
    proxy: Option<String>,
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Way {
    fn of(url: &str, options: &[&str]) -> Result<Self> {
        let (scheme, host) = url.split_once("://").ok_or("a URL has a scheme")?;
        let (mut proxy, mut root) = (None, None);
        for option in options.chunks(2) {
            match option {
                ["--proxy", address] => proxy = Some((*address).to_owned()),
                ["--root", file] => root = Some(*file),
                other => return Err(format!("{other:?} is not known").into()),
            }
        }
        let tls = if scheme == "https" { Some(Arc::new(verifying(root)?)) } else { None };
        Ok(Self { scheme: scheme.to_owned(), host: host.to_owned(), proxy, tls })
    }

    fn connect(&self) -> Result<Connection> {
        let tcp = TcpStream::connect(self.proxy.as_deref().unwrap_or(&self.host))?;
        tcp.set_nodelay(true)?;
        let Some(config) = &self.tls else { return Ok(Connection(BufReader::new(Box::new(tcp)))) };
        if self.proxy.is_some() {
            let mut tunnel = BufReader::new(tcp.try_clone()?);
            write!(tunnel.get_mut(), "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", self.host)?;
            head(&mut tunnel)?;
        }
        let client = rustls::ClientConnection::new(Arc::clone(config), ServerName::try_from(NAME)?)?;
        Ok(Connection(BufReader::new(Box::new(rustls::StreamOwned::new(client, tcp)))))
    }

    fn request(&self, path: &str) -> String {
        let target = match (&self.proxy, &self.tls) {
            (Some(_), None) => format!("{}://{}{path}", self.scheme, self.host),
            _ => path.to_owned(),
        };
        format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host)
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

struct Connection(BufReader<Box<dyn Stream>>);

impl Connection {
    /// Makes a request, and returns how many bytes its answer had.
    fn get(&mut self, request: &str) -> Result<u64> {
        self.0.get_mut().write_all(request.as_bytes())?;
        self.0.get_mut().flush()?;
        let length = head(&mut self.0)?;
        let read = std::io::copy(&mut self.0.by_ref().take(length), &mut std::io::sink())?;
        if read == length { Ok(read) } else { Err("an answer was cut".into()) }
    }
}

/// Reads the head of an answer, and returns how long its body is.
fn head(from: &mut impl BufRead) -> Result<u64> {
    let (mut line, mut length, mut first) = (String::new(), 0, true);
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let text = line.trim_end().to_ascii_lowercase();
        match text.split_once(':') {
            _ if first && !text.contains(" 200") => return Err(format!("it was answered `{text}`").into()),
            Some(("content-length", number)) => length = number.trim().parse()?,
            None if text.is_empty() => return Ok(length),
            _ => {}
        }
        first = false;
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn verifying(root: Option<&str>) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = root {
        roots.add(CertificateDer::from_pem_file(file)?)?;
    }
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}

fn ask(what: &str, way: &Way) -> Result<()> {
    let mut kept = way.connect()?;
    kept.get(&way.request("/"))?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        if line? != "go" {
            return Err("only `go` is understood".into());
        }
        let micros = match what {
            "median" => taken(&mut kept, way, |all| all[all.len() / 2])?,
            "p99" => taken(&mut kept, way, |all| all[all.len() * 99 / 100])?,
            "connect" => micros(|| (0..CONNECTS).try_for_each(|_| once(way)))? / CONNECTS as f64,
            "load" => micros(|| load(way))?,
            "bulk" => micros(|| asked(&mut kept, way, "/long"))?,
            other => return Err(format!("`{other}` is not measured").into()),
        };
        println!("{{\"wall_us\": {micros}}}");
    }
    Ok(())
}

fn micros(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64() * 1e6)
}

/// Returns one of the times of many requests, which are sorted.
fn taken(connection: &mut Connection, way: &Way, choose: fn(&[f64]) -> f64) -> Result<f64> {
    let one = |_| micros(|| asked(connection, way, "/"));
    let mut all = (0..REQUESTS).map(one).collect::<Result<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    Ok(choose(&all))
}

/// Makes a request; where the connection is not kept, on a new one.
fn asked(connection: &mut Connection, way: &Way, path: &str) -> Result<()> {
    let request = way.request(path);
    if connection.get(&request).is_err() {
        *connection = way.connect()?;
        connection.get(&request)?;
    }
    Ok(())
}

fn once(way: &Way) -> Result<()> {
    way.connect()?.get(&way.request("/")).map(drop)
}

fn load(way: &Way) -> Result<()> {
    std::thread::scope(|threads| {
        let one = || {
            let mut connection = way.connect()?;
            (0..REQUESTS / 10).try_for_each(|_| asked(&mut connection, way, "/"))
        };
        let all: Vec<_> = (0..THREADS).map(|_| threads.spawn(one)).collect();
        all.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

fn hold(number: usize, way: &Way) -> Result<()> {
    let open = |_| {
        let mut connection = way.connect()?;
        connection.get(&way.request("/"))?;
        Ok(connection)
    };
    let held = (0..number).map(open).collect::<Result<Vec<_>>>()?;
    println!("ready");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(held);
    Ok(())
}
