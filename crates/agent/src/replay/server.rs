//! The server: one thread on the loopback of this machine.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Request, chunk, read_request, write_head};
use super::script::{body, events, turn_for};
use super::transcript::{Delivery, Fault, PlayedTurn, Transcript};

/// How long a client may be silent before its connection is dropped: it must not keep the next one waiting.
const SILENCE: Duration = Duration::from_secs(10);

/// A server that plays one transcript until it is dropped.
#[derive(Debug)]
pub struct ReplayServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    requests: AtomicU64,
}

impl ReplayServer {
    /// Starts to play a transcript on a free port.
    ///
    /// # Errors
    /// When there is no port or no thread.
    pub fn start(transcript: Transcript) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let player =
            Player { tries: vec![0; transcript.turns().len()], transcript, shared: Arc::clone(&shared) };
        let thread =
            std::thread::Builder::new().name("replay".into()).spawn(move || player.serve(&listener))?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Returns the base URL to give to a client. The server takes any key.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how many requests came.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the thread. When this fails, its listener is gone and so is the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Player {
    transcript: Transcript,
    /// How often each turn was asked for: the faults of a turn come one after the other.
    tries: Vec<usize>,
    shared: Arc<Shared>,
}

impl Player {
    fn serve(mut self, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.shared.stop.load(Ordering::Acquire) {
                return;
            }
            // What goes wrong on one connection is its client's to notice.
            let _ = stream.and_then(|stream| self.answer(stream));
        }
    }

    fn answer(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        stream.set_nodelay(true)?;
        let Some(request) = read_request(&stream)? else { return Ok(()) };
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        let asked = match checked(&request) {
            Ok(asked) => asked,
            Err((status, message)) => return refuse(&mut stream, status, message, &[]),
        };
        let turn = match turn_for(&self.transcript, &asked) {
            Ok(turn) => turn.clone(),
            Err(message) => return refuse(&mut stream, 400, &message, &[]),
        };
        let tries = &mut self.tries[turn.turn - 1];
        let fault = turn.faults.get(*tries).cloned();
        *tries += 1;
        if asked["stream"] == true {
            self.stream(stream, &turn, fault, request.body.len())
        } else {
            self.at_once(stream, &turn, fault, request.body.len())
        }
    }

    /// Sends a turn as a stream.
    fn stream(
        &self,
        mut stream: TcpStream,
        turn: &PlayedTurn,
        fault: Option<Fault>,
        request_bytes: usize,
    ) -> io::Result<()> {
        let mut events = events(&self.transcript, turn, request_bytes);
        let mut pause = None;
        match fault {
            Some(Fault::Status { .. } | Fault::Close {}) => return fail(&mut stream, fault),
            Some(Fault::Cut { after }) => {
                events.truncate(after);
                pause = Some(Duration::ZERO);
            }
            Some(Fault::Stall { after, ms }) => {
                events.truncate(after);
                pause = Some(Duration::from_millis(ms));
            }
            Some(Fault::Report { message }) => {
                let half = events.len() / 2;
                events.truncate(half);
                events.push(json!({ "error": { "message": message, "type": "server_error" } }).to_string());
            }
            Some(Fault::Exhausted {}) => {
                let half = events.len() / 2;
                events.truncate(half);
                events.push(exhausted());
            }
            None => {}
        }
        let headers = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
        write_head(&mut stream, 200, &headers)?;
        write_body(&mut stream, turn.delivery, &events, pause)
    }

    /// Sends a turn as one body.
    fn at_once(
        &self,
        mut stream: TcpStream,
        turn: &PlayedTurn,
        fault: Option<Fault>,
        request_bytes: usize,
    ) -> io::Result<()> {
        match fault {
            Some(Fault::Status { .. } | Fault::Close {}) => return fail(&mut stream, fault),
            // The other faults are those of a stream; here the connection ends without a body.
            Some(_) => return write_head(&mut stream, 200, &[("content-length", "1")]),
            None => {}
        }
        // While a request waits, the real server sends empty lines before the body.
        let alive = "\n".repeat(usize::from(turn.delivery.keep_alive));
        let body = format!("{alive}{}", body(&self.transcript, turn, request_bytes));
        let length = body.len().to_string();
        write_head(&mut stream, 200, &[("content-type", "application/json"), ("content-length", &length)])?;
        stream.write_all(body.as_bytes())
    }
}

/// Returns what a request asks for, or the status and the text with which it is refused.
fn checked(request: &Request) -> Result<Value, (u16, &'static str)> {
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method != "POST" || !path.ends_with("/chat/completions") {
        return Err((404, "only POST /chat/completions is played"));
    }
    if request.key.as_deref().is_none_or(str::is_empty) {
        return Err((401, "the `Authorization: Bearer` header is missing or empty"));
    }
    serde_json::from_slice(&request.body).map_err(|_| (400, "the body is not JSON"))
}

/// Writes the events, each in a chunk of its own.
fn write_body(
    stream: &mut TcpStream,
    delivery: Delivery,
    events: &[String],
    pause: Option<Duration>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for _ in 0..delivery.keep_alive {
        bytes.extend(chunk(b": keep-alive\n\n"));
    }
    for event in events {
        bytes.extend(chunk(format!("data: {event}\n\n").as_bytes()));
    }
    if pause.is_none() {
        bytes.extend(chunk(b"data: [DONE]\n\n"));
        bytes.extend(b"0\r\n\r\n");
    }
    let piece = if delivery.write == 0 { bytes.len().max(1) } else { usize::from(delivery.write) };
    bytes.chunks(piece).try_for_each(|piece| stream.write_all(piece))?;
    std::thread::sleep(pause.unwrap_or_default());
    Ok(())
}

fn exhausted() -> String {
    let choice =
        json!({ "index": 0, "delta": { "content": "" }, "finish_reason": "insufficient_system_resource" });
    json!({ "choices": [choice] }).to_string()
}

/// Answers with an error, or not at all.
fn fail(stream: &mut TcpStream, fault: Option<Fault>) -> io::Result<()> {
    let Some(Fault::Status { status, retry_after, location, message }) = fault else { return Ok(()) };
    let retry_after = retry_after.map(|seconds| seconds.to_string());
    let mut headers = Vec::new();
    headers.extend(retry_after.as_deref().map(|value| ("retry-after", value)));
    headers.extend(location.as_deref().map(|value| ("location", value)));
    refuse(stream, status, message.as_deref().unwrap_or("a fault of the transcript"), &headers)
}

/// Answers with an error in the form of the real server.
fn refuse(stream: &mut TcpStream, status: u16, message: &str, headers: &[(&str, &str)]) -> io::Result<()> {
    let kind = match status {
        401 => "authentication_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let body =
        json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } }).to_string();
    let length = body.len().to_string();
    let fixed = [("content-type", "application/json"), ("content-length", length.as_str())];
    write_head(stream, status, &[&fixed, headers].concat())?;
    stream.write_all(body.as_bytes())
}
