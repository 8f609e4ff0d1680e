//! Asks, reads the stream, and tries again.

use std::io::{BufReader, Read};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderValue, Response};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use super::assemble::Assembly;
use super::sse::{Event, Events, Metered};
use super::{ClientError, Endpoint, Retry, retry};
use crate::context::Outgoing;
use crate::protocol::{Effort, Progress, TurnRecord};
use crate::run_loop::{Model, Reply, Report};
use crate::secret::Secret;
use crate::tools;

/// The largest response, in bytes. A turn of the greatest length, one event for each token, stays below it.
const RESPONSE_MAX: u64 = 256 << 20;
/// How much of an error's body is read.
const ERROR_MAX: u64 = 64 << 10;

/// What is asked for, and how patiently.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model.
    pub model: String,
    /// How hard it is to think; its own default when missing.
    pub effort: Option<Effort>,
    /// The name under which the server keeps this task's cache apart; never a person's.
    pub user: String,
    /// Tokens of one turn; the server's default when missing.
    pub turn_tokens: Option<u32>,
    /// When to stop waiting.
    pub timeouts: Timeouts,
    /// When to try again.
    pub retry: Retry,
}

/// When to stop waiting for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, its encryption included.
    pub connect: Duration,
    /// Between two pieces of an answer, the first one included. The server says that it is alive while a request is
    /// in its queue.
    pub idle: Duration,
    /// For a whole answer.
    pub whole: Duration,
}

impl Default for Timeouts {
    /// The server itself closes a connection when nothing has begun after ten minutes.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            idle: Duration::from_secs(600),
            whole: Duration::from_secs(3600),
        }
    }
}

/// A client of one server with one key.
pub struct Client {
    agent: Agent,
    url: String,
    host: String,
    authorization: HeaderValue,
    settings: Settings,
    pause: fn(Duration),
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.url)
    }
}

impl Client {
    /// Makes a client. Nothing is sent yet.
    ///
    /// # Errors
    /// When the key cannot be put into a header.
    pub fn new(endpoint: &Endpoint, key: &Secret, settings: Settings) -> Result<Self, ClientError> {
        let plain = !key.is_empty() && key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        let authorization = HeaderValue::try_from(format!("Bearer {}", key.expose()));
        let mut authorization = authorization.ok().filter(|_| plain).ok_or(ClientError::KeyText)?;
        authorization.set_sensitive(true);
        let config = Agent::config_builder()
            .https_only(endpoint.is_encrypted())
            .http_status_as_error(false)
            // A redirect would take the key elsewhere; the response comes back as it is, and is refused.
            .max_redirects(0)
            // A proxy from the environment would see where we connect, and on plain connections the key.
            .proxy(None)
            .tls_config(endpoint.tls())
            .user_agent(concat!("fumehood/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(settings.timeouts.connect))
            .timeout_per_read(Some(settings.timeouts.idle))
            .timeout_per_write(Some(settings.timeouts.idle))
            .timeout_global(Some(settings.timeouts.whole))
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), endpoint.resolver());
        let (url, host) = (endpoint.url().to_owned(), endpoint.host().to_owned());
        Ok(Self { agent, url, host, authorization, settings, pause: std::thread::sleep })
    }

    /// Waits by this function instead of sleeping.
    #[must_use]
    pub fn with_pause(self, pause: fn(Duration)) -> Self {
        Self { pause, ..self }
    }

    fn body(&self, outgoing: &Outgoing) -> Vec<u8> {
        let mut body = json!({
            "model": self.settings.model,
            "messages": outgoing.messages(),
            "tools": tools::offered(),
            "stream": true,
            "stream_options": { "include_usage": true },
            "user_id": self.settings.user,
        });
        if let Some(most) = self.settings.turn_tokens {
            body["max_tokens"] = json!(most);
        }
        match self.settings.effort {
            None => {}
            Some(Effort::Off) => body["thinking"] = json!({ "type": "disabled" }),
            Some(effort) => {
                body["thinking"] = json!({ "type": "enabled" });
                body["reasoning_effort"] = json!(effort);
            }
        }
        body.to_string().into_bytes()
    }

    /// Asks once.
    fn attempt(&self, body: &[u8], report: &mut Report<'_>) -> Result<Reply, ClientError> {
        let request = self.agent.post(&self.url).header("authorization", self.authorization.clone());
        let request =
            request.header("content-type", "application/json").header("accept", "text/event-stream");
        let mut response = request.send(body).map_err(|error| self.not_reached(error))?;
        self.check(&mut response)?;
        let metered = Metered::new(response.body_mut().as_reader(), RESPONSE_MAX);
        self.read(metered, body, report)
    }

    /// Reads a stream to its end.
    fn read(
        &self,
        metered: Metered<impl Read>,
        body: &[u8],
        report: &mut Report<'_>,
    ) -> Result<Reply, ClientError> {
        let mut reader = BufReader::new(metered);
        let mut assembly = Assembly::default();
        let (mut answering, mut done) = (false, false);
        let mut events = Events::new(&mut reader);
        while let Some(event) = events.next().map_err(|error| ClientError::of_stream(error, &self.host))? {
            match event {
                // Said with each sign of life, so that waiting ends when nobody waits any more.
                Event::Comment => report(Progress::Queued).map_err(ClientError::Abandoned)?,
                Event::Data(data) if data.trim() == "[DONE]" => {
                    done = true;
                    break;
                }
                Event::Data(data) => {
                    assembly.add(&data).map_err(|error| ClientError::of_piece(&error, &self.host))?;
                    if !std::mem::replace(&mut answering, true) {
                        report(Progress::Answering).map_err(ClientError::Abandoned)?;
                    }
                }
            }
        }
        self.whole(assembly, done, body, reader.get_ref().digest())
    }

    /// Makes a reply out of an answer, if it is a whole one.
    fn whole(
        &self,
        assembly: Assembly,
        done: bool,
        body: &[u8],
        response: model::Digest,
    ) -> Result<Reply, ClientError> {
        let host = || self.host.clone();
        if assembly.finish_reason() == "insufficient_system_resource" {
            return Err(ClientError::Exhausted { host: host() });
        }
        if !assembly.is_whole() {
            let reason = if done { "it ended without a reason" } else { "the connection ended" };
            return Err(ClientError::Cut { host: host(), reason: reason.to_owned() });
        }
        let (turn, usage, model) = assembly.into_parts();
        let model = model.unwrap_or_else(|| self.settings.model.clone());
        // We wrote it ourselves, as JSON.
        let sent = String::from_utf8_lossy(body).into_owned();
        Ok(Reply { turn, record: TurnRecord { model, sent, response, usage } })
    }

    /// Refuses everything but a stream.
    fn check(&self, response: &mut Response<Body>) -> Result<(), ClientError> {
        let host = self.host.clone();
        let header = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().chars().take(500).collect::<String>()
        };
        let status = response.status();
        if status.is_redirection() {
            return Err(ClientError::Redirected {
                status: status.as_u16(),
                host,
                location: header("location"),
            });
        }
        if !status.is_success() {
            let retry_after = retry::asked_wait(&header("retry-after"));
            let message = what_it_said(response);
            return Err(ClientError::Status { status: status.as_u16(), message, host, retry_after });
        }
        let kind = header("content-type");
        if !kind.starts_with("text/event-stream") {
            let reason = format!("it sent `{}` instead of a stream", model::text::escape(&kind));
            return Err(ClientError::Response { host, reason });
        }
        Ok(())
    }

    /// Says why a request did not get as far as a response.
    fn not_reached(&self, error: ureq::Error) -> ClientError {
        let (host, source) = (self.host.clone(), Box::new(error));
        match source.as_ref() {
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) | ureq::Error::TlsRequired => {
                ClientError::Certificate { host, source }
            }
            // The handshake's faults come wrapped.
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                ClientError::Certificate { host, source }
            }
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                ClientError::Response { host, reason: model::text::escape(&source.to_string()).into_owned() }
            }
            _ => ClientError::Connection { host, source },
        }
    }
}

impl Model for Client {
    fn ask(&mut self, outgoing: &Outgoing, report: &mut Report<'_>) -> Result<Reply, ClientError> {
        let body = self.body(outgoing);
        let retry = self.settings.retry;
        let mut attempt = 1;
        loop {
            let error = match self.attempt(&body, report) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let wait = retry.wait_after(attempt, error.retry_after());
            let Some(wait) = wait.filter(|_| error.may_pass()) else { return Err(error) };
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let why = error.with_causes();
            let progress = Progress::Retrying { attempt, attempts: retry.attempts, wait_ms, why };
            report(progress).map_err(ClientError::Abandoned)?;
            (self.pause)(wait);
            attempt += 1;
        }
    }
}

/// Returns what an error's body says, cut to what a person reads.
fn what_it_said(response: &mut Response<Body>) -> String {
    let mut bytes = Vec::new();
    // What came before a fault is worth showing, and the fault is not: the status says enough.
    let _ = response.body_mut().as_reader().take(ERROR_MAX).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let said = serde_json::from_str::<Value>(text.trim()).ok();
    let said = said.and_then(|body| body["error"]["message"].as_str().map(str::to_owned));
    said.as_deref().unwrap_or(&text).trim().chars().take(500).collect()
}
