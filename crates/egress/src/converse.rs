//! One connection of a client, from the moment that it is known what it wants to reach.
//!
//! Guarantees: the same for every door: the rules decide by the host that the door gave, and what is spoken must be for that very
//! host; nothing is sent to a server before that is known.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::EgressRule;
use model::egress::{Door, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::attempts::{allowed, attempt, now, refused};
use crate::carry::carry;
use crate::context::{Context, NO_TLS};
use crate::decide::{Look, looks};
use crate::hello::{self, Hello};
use crate::http::Host;
use crate::http::{self, Meant, Speaks};
use crate::refusal::Refusal;
use crate::stream::Client;
use crate::upstream::UpstreamError;

/// How long a client may take to say what shows whether it may go on.
const SPEAKS_WITHIN: Duration = Duration::from_secs(30);
/// In how many pieces: each time, all of it is looked at again.
const READS_MAX: usize = 64;
/// What is read of it at once.
const PIECE: usize = 4096;

/// Where a connection is to go, and how that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) door: Door,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Place {
    /// Notes that it is refused.
    pub(crate) fn refuse(&self, context: &Context, refusal: &Refusal) {
        context.attempts.note(attempt(self.door, self.host.to_string(), Some(self.port), refused(refusal)));
    }
}

/// Serves a client whose connection is to go somewhere.
pub(crate) async fn converse(context: Arc<Context>, place: Place, mut client: Client) {
    let rules = match context.rules.connection(&place.host, place.port) {
        Ok(rules) => rules,
        Err(refusal) => return place.refuse(&context, &refusal),
    };
    let speech = match looks(&rules) {
        Look::Not => return through(&context, &place, &rules, Protocol::Tcp, client).await,
        Look::Speech { tls, through, http } => (tls, through, http),
    };
    let answer: Result<(), Refusal> = match (first_words(&mut client).await, speech) {
        (Ok(Words::Tls { name, hides }), (true, look_on, _)) => {
            match hello::agrees(name.as_deref(), hides, &place.host) {
                Ok(()) if look_on => return through(&context, &place, &rules, Protocol::Https, client).await,
                Ok(()) if context.tls.is_some() => return looked_into(context, place, client).await,
                Ok(()) => Err(Refusal::new("not-looked-into", NO_TLS)),
                Err(refusal) => Err(refusal),
            }
        }
        (Ok(Words::Other), (_, _, true)) => return clear(context, place, client).await,
        (Ok(Words::Tls { .. }), _) => Err(Refusal::new(
            "not-http",
            format!("the rules for {} allow HTTP in the clear alone", place.host),
        )),
        (Ok(Words::Other), _) => Err(Refusal::new(
            "not-tls",
            format!("the rules for {} allow TLS alone, and this is none", place.host),
        )),
        (Ok(Words::Nothing), _) => return,
        (Err(_), _) => Err(Refusal::new("silent", "the client said nothing that shows for which host it is")),
    };
    if let Err(refusal) = answer {
        place.refuse(&context, &refusal);
        let is_tls = speech.0;
        let (_, mut stream) = client.into_parts();
        if is_tls {
            // It may be gone; then nobody is to be told.
            let _ = stream.write_all(&hello::alert(&refusal)).await;
        }
        let _ = stream.shutdown().await;
    }
}

/// Serves HTTP in the clear.
async fn clear(context: Arc<Context>, place: Place, client: Client) {
    let host = http::Target { host: place.host, port: place.port };
    let meant = Meant { target: Some(host), protocol: Protocol::Http, door: place.door };
    // An error here is a client that went away or spoke no HTTP; it got its answer.
    let _ = http::serve(client, Speaks::Http1, meant, context).await;
}

/// Takes TLS off a connection, and serves the HTTP in it.
async fn looked_into(context: Arc<Context>, place: Place, client: Client) {
    let Some(tls) = &context.tls else { return };
    match tls.clients.accept(client, &place.host, now()).await {
        Ok((stream, speaks)) => {
            let host = http::Target { host: place.host, port: place.port };
            let meant = Meant { target: Some(host), protocol: Protocol::Https, door: place.door };
            // An error here is a client that went away or spoke no HTTP; it got its answer.
            let _ = http::serve(stream, speaks, meant, Arc::clone(&context) as Arc<dyn http::Outside>).await;
        }
        Err(refusal) => place.refuse(&context, &refusal),
    }
}

/// What a client says first.
enum Words {
    /// Nothing: it closed.
    Nothing,
    /// The beginning of TLS.
    Tls { name: Option<String>, hides: bool },
    /// Something else.
    Other,
}

/// Reads what a client says first, and leaves it to be read again.
async fn first_words(client: &mut Client) -> io::Result<Words> {
    let mut said = Vec::new();
    let words = timeout(SPEAKS_WITHIN, async {
        for _ in 0..READS_MAX {
            let had = said.len();
            said.resize(had + PIECE, 0);
            let read = client.read(&mut said[had..]).await?;
            said.truncate(had + read);
            match Hello::read(&said) {
                _ if said.is_empty() => return Ok(Words::Nothing),
                Hello::Incomplete if read > 0 => {}
                Hello::Client { name, hides } => return Ok(Words::Tls { name, hides }),
                Hello::Incomplete | Hello::None => return Ok(Words::Other),
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    })
    .await
    .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))
    .and_then(|words| words);
    client.unread(said);
    words
}

/// Carries a connection through, by the first of its rules for what is spoken that does not look inside.
async fn through(
    context: &Context,
    place: &Place,
    rules: &[&EgressRule],
    protocol: Protocol,
    client: Client,
) {
    let fits = |rule: &&&EgressRule| rule.protocol == protocol && !rule.looks_inside();
    let Some(rule) = rules.iter().find(fits) else { return };
    let ticket =
        context.attempts.begin(attempt(place.door, place.host.to_string(), Some(place.port), allowed(rule)));
    match context.upstream.connect(&place.host, place.port, &[rule]).await {
        Ok(server) => {
            reached(&ticket, &server);
            let (said, stream) = client.into_parts();
            if let Err(error) = carry(context, &ticket, stream, server, &said).await {
                ticket.failed(&error.to_string());
            }
        }
        Err(error) => unreached(&ticket, &error),
    }
}

/// Notes which server was connected to.
pub(crate) fn reached(ticket: &crate::attempts::Ticket, server: &TcpStream) {
    if let Ok(address) = server.peer_addr() {
        ticket.reached(address.ip());
    }
}

/// Notes why no server was connected to.
pub(crate) fn unreached(ticket: &crate::attempts::Ticket, error: &UpstreamError) {
    match error {
        UpstreamError::Refused(refusal) => ticket.refuse(refusal),
        error => ticket.failed(&error.to_string()),
    }
}
