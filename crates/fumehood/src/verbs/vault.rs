//! Reading a value from a server that speaks the HTTP interface of Vault: its key-value store, version 2.
//!
//! Guarantees: one request, to the server that the settings name and over TLS that is verified in full (or to this machine's
//! loopback); no redirect is followed, no proxy is asked, and half a minute and 64 KiB are all that it gets. No value and no token
//! is in an error.

use std::time::Duration;

use egress::tls::system_roots;
use model::text::escape;
use serde_json::Value;
use ureq::Agent;
use ureq::http::HeaderValue;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The header that holds the token.
const TOKEN: &str = "x-vault-token";
/// How long the server has for its answer, and how long that may be.
const WITHIN: Duration = Duration::from_secs(30);
const ANSWER_MAX: u64 = 64 << 10;

/// Where a value is in such a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'p> {
    /// The address of the secret: `https://HOST/v1/MOUNT/data/PATH`.
    pub(super) url: &'p str,
    /// The field of it.
    pub(super) field: &'p str,
}

/// Reads the value that is at a place now. `roots` are certificates (PEM) that the server is verified by beside the system's.
///
/// # Errors
/// With a sentence for people.
pub(super) fn read(place: &Place<'_>, token: &str, roots: &[String]) -> Result<String, String> {
    let shown = escape(place.url);
    let mut token = HeaderValue::try_from(token).map_err(|_| "the token of the vault is none".to_owned())?;
    token.set_sensitive(true);
    let config = Agent::config_builder()
        .https_only(place.url.starts_with("https://"))
        .http_status_as_error(false)
        // A redirect would take the token elsewhere.
        .max_redirects(0)
        .proxy(None)
        .tls_config(TlsConfig::builder().root_certs(trusted(roots)?).build())
        .timeout_global(Some(WITHIN))
        .build();
    let asked = Agent::new_with_config(config).get(place.url).header(TOKEN, token).call();
    let mut response = asked.map_err(|error| format!("`{shown}` did not answer: {error}"))?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(match status {
            403 => format!("`{shown}` refuses the token (403): log in to the vault again"),
            404 => {
                format!("there is no secret at `{shown}` (404): its address ends like `/v1/secret/data/NAME`")
            }
            _ => format!("`{shown}` answered with {status}"),
        });
    }
    let text = response.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
    let text = text.map_err(|error| format!("the answer of `{shown}` cannot be read: {error}"))?;
    field(&text, place.field)
        .ok_or_else(|| format!("the secret at `{shown}` has no text in a field `{}`", escape(place.field)))
}

fn field(text: &str, name: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(text).ok()?;
    answer.get("data")?.get("data")?.get(name)?.as_str().map(str::to_owned)
}

fn trusted(roots: &[String]) -> Result<RootCerts, String> {
    let mut all: Vec<Certificate<'static>> =
        system_roots().iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    for item in roots.iter().flat_map(|text| parse_pem(text.as_bytes())) {
        match item {
            Ok(PemItem::Certificate(certificate)) => all.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("a root of the settings is none: {error}")),
        }
    }
    Ok(RootCerts::from(all))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that gives its answer to one request, and what that was.
    fn asked(answer: &'static str) -> (Result<String, String>, String) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("has one").port();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let (mut head, mut byte) = (Vec::new(), [0; 1]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.extend(byte);
            }
            stream.write_all(answer.as_bytes()).expect("answers");
            String::from_utf8_lossy(&head).into_owned()
        });
        let url = format!("http://127.0.0.1:{port}/v1/secret/data/ci");
        let read = read(&Place { url: &url, field: "token" }, "hvs.Token-0123", &[]);
        (read, served.join().expect("ends"))
    }

    #[test]
    fn a_field_of_a_secret_is_read_with_the_token_in_its_header() {
        let (read, request) = asked(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":{\"data\":{\"token\":\"tok-0123\"},\"metadata\":{\"version\":2}}}",
        );
        assert_eq!(read.as_deref(), Ok("tok-0123"));
        assert!(request.starts_with("GET /v1/secret/data/ci HTTP/1.1\r\n"), "{request}");
        assert!(request.to_ascii_lowercase().contains("x-vault-token: hvs.token-0123\r\n"), "{request}");
    }

    #[test]
    fn anything_else_is_an_error_without_the_token() {
        for (answer, why) in [
            ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "refuses the token"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "no secret"),
            (
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                "answered with 302",
            ),
            (
                "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":{\"token\":\"of version 1\"}}",
                "no text in a field",
            ),
            ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nnonsense", "no text in a field"),
        ] {
            let why_not = asked(answer).0.expect_err(why);
            assert!(why_not.contains(why) && !why_not.contains("hvs."), "{why_not}");
        }
    }
}
