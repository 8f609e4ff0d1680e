//! Tunnels through the HTTP proxy: `CONNECT HOST:PORT` (RFC 9110, section 9.3.6), as the first request of a connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::egress::Door;
use model::text::escape;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::attempts::{attempt, refused};
use crate::context::Context;
use crate::converse::{Place, converse};
use crate::decide;
use crate::http::Host;
use crate::refusal::Refusal;
use crate::stream::Client;

/// How a request for a tunnel begins.
pub(crate) const BEGINNING: &[u8] = b"CONNECT ";
/// The longest head, in bytes, and the most lines in it.
const HEAD_MAX: usize = 16 << 10;
const LINES_MAX: usize = 100;
/// In how many pieces it may come: each time, all of it is looked at again.
const READS_MAX: usize = 64;
/// How long a client may take for it.
const SPEAKS_WITHIN: Duration = Duration::from_secs(30);

/// What a head says.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// It is not there in full.
    Partial,
    /// It has so many bytes, and asks for this.
    Whole { length: usize, asked: Result<(Host, u16), (String, Refusal)> },
    /// It is none.
    Bad,
}

/// Serves a client that asks for a tunnel.
pub(crate) async fn serve(context: Arc<Context>, mut client: Client) {
    let asked = match timeout(SPEAKS_WITHIN, hear(&mut client)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(_)) | Err(_) => return say(&mut client, "400 Bad Request", None).await,
    };
    let decided = asked.and_then(|(host, port)| match context.rules.connection(&host, port) {
        Ok(_) => Ok((host, port)),
        Err(refusal) => Err((format!("{host}:{port}"), refusal)),
    });
    match decided {
        Ok((host, port)) => {
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_ok() {
                converse(context, Place { door: Door::Proxy, host, port }, client).await;
            }
        }
        Err((shown, refusal)) => {
            let (name, port) = shown.rsplit_once(':').unwrap_or((&shown, ""));
            let tried = attempt(Door::Proxy, name.to_owned(), port.parse().ok(), refused(&refusal));
            context.attempts.note(model::egress::Attempt { method: Some("CONNECT".to_owned()), ..tried });
            say(&mut client, "403 Forbidden", Some(&refusal)).await;
        }
    }
}

/// Hears the head; what comes behind it stays to be read.
async fn hear(client: &mut Client) -> io::Result<Result<(Host, u16), (String, Refusal)>> {
    let mut said = Vec::new();
    for _ in 0..READS_MAX {
        let had = said.len();
        said.resize(had + 4096, 0);
        let read = client.read(&mut said[had..]).await?;
        said.truncate(had + read);
        match head_of(&said) {
            Head::Whole { length, asked } => {
                client.unread(said.split_off(length));
                return Ok(asked);
            }
            Head::Partial if read > 0 && said.len() < HEAD_MAX => {}
            Head::Partial | Head::Bad => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Reads where a request is to go; nothing when that is nowhere.
pub(crate) fn target_of(bytes: &[u8]) -> Option<(Host, u16)> {
    match head_of(bytes) {
        Head::Whole { asked, .. } => asked.ok(),
        Head::Partial | Head::Bad => None,
    }
}

fn head_of(bytes: &[u8]) -> Head {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut request = httparse::Request::new(&mut lines);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Head::Partial,
        Err(_) => return Head::Bad,
    };
    match (request.method, request.path) {
        (Some("CONNECT"), Some(target)) => {
            let hosts = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case("host"));
            let hosts: Vec<&[u8]> = hosts.map(|line| line.value).collect();
            let asked = asked(target, &hosts).map_err(|refusal| (target.to_owned(), refusal));
            Head::Whole { length, asked }
        }
        _ => Head::Bad,
    }
}

/// Says where a tunnel is to go, when the head agrees with itself. Many clients leave the port out of `Host`.
fn asked(target: &str, hosts: &[&[u8]]) -> Result<(Host, u16), Refusal> {
    let no_name =
        || Refusal::new("bad-target", format!("`{}` is no name of a host with a port", escape(target)));
    let (host, port) = target.rsplit_once(':').ok_or_else(no_name)?;
    let host = decide::host(host).ok_or_else(no_name)?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port: u16 = port.parse().ok().filter(|port| is_number && *port != 0).ok_or_else(no_name)?;
    let same = |named: &&[u8]| {
        let text = std::str::from_utf8(named).unwrap_or_default().trim();
        let (name, named_port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (text, Some(port)),
        };
        decide::host(name).as_ref() == Some(&host) && named_port == Some(port)
    };
    match hosts {
        [] => Ok((host, port)),
        [named] if same(named) => Ok((host, port)),
        _ => Err(Refusal::new(
            "other-host",
            format!("the tunnel is to {host}:{port}, and `Host` says something else"),
        )),
    }
}

async fn say(client: &mut Client, status: &str, refusal: Option<&Refusal>) {
    let (text, reason) = match refusal {
        Some(refusal) => (
            format!("refused by fumehood ({}): {}\n", refusal.reason, refusal.why),
            format!("x-fumehood-reason: {}\r\n", refusal.reason),
        ),
        None => (String::new(), String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n{reason}connection: close\r\n\r\n",
        text.len()
    );
    // A client that is gone needs no answer.
    let _ = client.write_all(format!("{head}{text}").as_bytes()).await;
    let _ = client.shutdown().await;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn says(target: &str, host: Option<&str>) -> String {
        let host = host.map(|host| format!("Host: {host}\r\n")).unwrap_or_default();
        match head_of(format!("CONNECT {target} HTTP/1.1\r\n{host}\r\n").as_bytes()) {
            Head::Whole { asked: Ok((host, port)), .. } => format!("{host}:{port}"),
            Head::Whole { asked: Err((_, refusal)), .. } => refusal.reason.to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_tunnel_names_a_host_and_a_port_and_agrees_with_itself() {
        for (target, host, expected) in [
            ("a.test:443", Some("a.test:443"), "a.test:443"),
            ("a.test:443", Some("a.test"), "a.test:443"),
            ("A.test:443", None, "a.test:443"),
            ("[::1]:443", None, "[::1]:443"),
            ("127.0.0.1:80", None, "127.0.0.1:80"),
            ("a.test:443", Some("b.test:443"), "other-host"),
            ("a.test:443", Some("a.test:80"), "other-host"),
            ("a.test", None, "bad-target"),
            ("a.test:0", None, "bad-target"),
            ("a.test:+443", None, "bad-target"),
            ("127.0.0.1.:443", None, "bad-target"),
            ("2130706433:443", None, "bad-target"),
            ("evil.test/a.test:443", None, "bad-target"),
            ("user@a.test:443", None, "bad-target"),
        ] {
            assert_eq!(says(target, host), expected, "{target} {host:?}");
        }
    }

    #[test]
    fn a_head_is_waited_for_and_what_is_none_is_refused() {
        assert_eq!(head_of(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a"), Head::Partial);
        assert_eq!(head_of(b"GET / HTTP/1.1\r\n\r\n"), Head::Bad);
        assert_eq!(
            head_of(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n").length(),
            None
        );
        let whole = b"CONNECT a.test:443 HTTP/1.1\r\n\r\nmore";
        assert_eq!(head_of(whole).length(), Some(whole.len() - 4));
    }

    impl Head {
        fn length(&self) -> Option<usize> {
            match self {
                Self::Whole { length, asked: Ok(_) } => Some(*length),
                _ => None,
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            head_of(&bytes);
            head_of(&[BEGINNING, &bytes].concat());
        }
    }
}
