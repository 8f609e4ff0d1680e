//! A server that sends what it is told to, byte by byte, and keeps what it was sent.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// A server that answers one connection after the other with the next of its responses.
pub struct RawServer {
    pub base_url: String,
    thread: JoinHandle<Vec<String>>,
}

impl RawServer {
    pub fn start(responses: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base_url = format!("http://{}", listener.local_addr().expect("bound"));
        let thread = std::thread::spawn(move || {
            let answer = |response: Vec<u8>| answer(listener.accept().expect("a client").0, &response);
            responses.into_iter().map(answer).collect()
        });
        Self { base_url, thread }
    }

    /// Waits until all responses were sent; returns the requests.
    pub fn requests(self) -> Vec<String> {
        self.thread.join().expect("the server ends")
    }
}

fn answer(mut stream: TcpStream, response: &[u8]) -> String {
    let request = read_request(&mut BufReader::new(&stream));
    // A client that has seen enough may be gone.
    let _ = stream.write_all(response);
    request
}

pub fn read_request(reader: &mut impl BufRead) -> String {
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).expect("a line") == 0 {
            return request;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        request.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a whole body");
    request + &String::from_utf8(body).expect("text")
}

/// A response with a body that ends when the connection does.
pub fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes()
}

/// A stream that says `hello` and stops.
pub fn hello() -> Vec<u8> {
    let event = r#"{"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let headers = "content-type: text/event-stream; charset=utf-8\r\n";
    response("200 OK", headers, &format!("data: {event}\n\ndata: [DONE]\n\n"))
}
