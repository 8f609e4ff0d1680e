//! One request: decided, sent, and answered.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use model::egress::{EgressRule, HostPattern, Place, Protocol, Verdict};
use model::text::escape;

use super::body::{Body, Counted, Looked, Source};
use super::cover::{Cover, Watched};
use super::head::{self, Head};
use super::hook::{Asked, Exchange, Fetch, Later, Notes, Reading};
use super::told::Told;
use super::{Host, Serving, Target, Unreached, Way, answer};
use crate::Refusal;

/// Why the client gets an answer of ours.
enum Stopped {
    Refused(Refusal),
    Failed(String),
}

/// A request that may go out.
struct Allowed {
    rule: EgressRule,
    target: Target,
    exchange: Option<Box<dyn Exchange>>,
}

/// Answers one request.
pub(crate) async fn answer(
    serving: Arc<Serving>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let told = Told::begin(&serving, &parts);
    Ok(match serving.pass(parts, body, &told).await {
        Ok(response) => response,
        Err(Stopped::Refused(refusal)) => {
            told.is(refusal.clone().into());
            answer::refused(&refusal)
        }
        Err(Stopped::Failed(why)) => answer::failed(&why),
    })
}

impl Serving {
    async fn pass(
        self: &Arc<Self>,
        mut parts: Parts,
        body: Incoming,
        told: &Arc<Told>,
    ) -> Result<Response<Body>, Stopped> {
        let switched = parts.extensions.remove::<OnUpgrade>();
        let mut allowed = self.decide(&mut parts, told).await?;
        // What follows a switch is not read, so a rule whose requests or answers are looked through allows none.
        let is_read = allowed.exchange.is_some() || allowed.rule.credential.is_some();
        let switchable = parts.version == Version::HTTP_11 && !is_read;
        let upgrade = head::upgrade(&parts.headers).filter(|_| switchable);
        head::strip(&mut parts.headers)?;
        if let Some(protocol) = &upgrade {
            switches(&mut parts.headers, protocol);
        }
        let body = self.watched(body, &allowed, told);
        let (response, cover) = self.send(parts, body, (&allowed.target, &allowed.rule), told).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let switched = switched.zip(upgrade);
            return carry(response, switched, told).map_err(|why| failed(told, &allowed.rule, why));
        }
        self.receive((response, cover), allowed.exchange.take(), told, &allowed.rule).await
    }

    /// Lets the body of a request go out, looked through where there is something to look for.
    fn watched(&self, body: Incoming, allowed: &Allowed, told: &Arc<Told>) -> Body {
        let body = Counted { inner: Source::Plain(body), way: Way::Sent, told: told.clone() };
        if !self.credentials.watches() {
            return body.boxed_unsync();
        }
        let (own, host) = (allowed.rule.credential.clone(), allowed.target.host.to_string());
        Watched::new(body, self.credentials.clone(), own, host).boxed_unsync()
    }

    /// Decides a request by what is in its head.
    async fn decide(self: &Arc<Self>, parts: &mut Parts, told: &Arc<Told>) -> Result<Allowed, Stopped> {
        if self.outside.rules().iter().any(|rule| rule.registry.is_some()) {
            head::unscope(parts);
        }
        let head = head::read(parts, &self.meant)?;
        told.names(head.target.host.to_string(), head.target.port);
        let rule = self.rule(parts.method.as_str(), &head);
        let own = rule.as_ref().ok().and_then(|rule| rule.credential.as_deref());
        self.credentials.check_head(parts, own, &head.target.host.to_string())?;
        let rule = rule?.clone();
        told.is(Verdict::Allowed { rule: rule.to_string() });
        if let Some(credential) = &rule.credential {
            self.credentials.get(credential)?;
        }
        let exchange = self.hooked(parts, &rule, &head, told).await?;
        Ok(Allowed { rule, target: head.target, exchange })
    }

    /// Returns the rule that takes a request: of several, the one that asks for most.
    fn rule(&self, method: &str, head: &Head) -> Result<&EgressRule, Refusal> {
        let takes = |rule: &&EgressRule| {
            rule.protocol == self.meant.protocol && head.target.is_of(rule) && rule.takes(method, &head.path)
        };
        let asks = |rule: &&EgressRule| (rule.registry.is_some(), rule.credential.is_some());
        let found = self.outside.rules().iter().filter(takes).max_by_key(asks);
        found.ok_or_else(|| {
            let Target { host, port } = &head.target;
            let usual = *port == if self.meant.protocol == Protocol::Https { 443 } else { 80 };
            let port = if usual { String::new() } else { format!(":{port}") };
            let needed = format!("{} {}://{host}{port}{}", escape(method), self.meant.protocol, head.shown);
            Refusal::without_rule("no-rule", "this request", needed)
        })
    }

    async fn hooked(
        self: &Arc<Self>,
        parts: &mut Parts,
        rule: &EgressRule,
        head: &Head,
        told: &Arc<Told>,
    ) -> Result<Option<Box<dyn Exchange>>, Refusal> {
        let Some(registry) = &rule.registry else { return Ok(None) };
        let hook = self.outside.hook(registry).ok_or_else(|| {
            Refusal::new(
                "no-registry",
                format!("nothing here reads a registry of the kind `{}`", escape(registry)),
            )
        })?;
        let fetch = Fetching { serving: self.clone(), registry: registry.clone() };
        let notes: Arc<dyn Notes> = told.clone();
        let asked = Asked { rule, target: &head.target, fetch: &fetch, notes: &notes };
        let exchange = hook.request(asked, parts).await?;
        let changed = head::read(parts, &self.meant)?;
        if changed.target == head.target && rule.takes(parts.method.as_str(), &changed.path) {
            Ok(Some(exchange))
        } else {
            Err(Refusal::new("no-rule", "what the rules of its registry made of it is not what a rule takes"))
        }
    }

    /// Sends a request as a new one of our own.
    async fn send(
        &self,
        mut parts: Parts,
        body: Body,
        (target, rule): (&Target, &EgressRule),
        told: &Arc<Told>,
    ) -> Result<(Response<Incoming>, Option<Cover>), Stopped> {
        let cover = self.cover(target, rule, told)?;
        if let Some(cover) = &cover {
            cover.given.put(&mut parts, rule.protocol)?;
        }
        let ends = cover.as_ref().map(|cover| cover.given.end());
        let connection =
            self.pool.get(self.outside.as_ref(), target, rule, ends).await.map_err(|error| match error {
                Unreached::Refused(refusal) => refusal.into(),
                Unreached::Failed(why) => failed(told, rule, why),
            })?;
        told.reached(connection.address);
        address(&mut parts, target, rule.protocol, connection.is_two());
        let request = Request::from_parts(parts, body);
        match self.pool.send(connection, request, target, rule).await {
            Ok(response) => Ok((response, cover)),
            // The connection is closed when the credential ends.
            Err(error) => Err(match (cover.filter(|cover| cover.given.has_ended()), refusal_in(&error)) {
                (Some(cover), _) => cover.given.over().into(),
                (None, Some(refusal)) => refusal.into(),
                (None, None) => failed(told, rule, format!("the server did not answer: {}", chain(&error))),
            }),
        }
    }

    /// Returns what looks through the answer to a request of a rule with a credential.
    fn cover(&self, target: &Target, rule: &EgressRule, told: &Arc<Told>) -> Result<Option<Cover>, Refusal> {
        let Some(name) = &rule.credential else { return Ok(None) };
        let (given, credentials) = (self.credentials.get(name)?, self.credentials.clone());
        Ok(Some(Cover { given, credentials, told: told.clone(), host: target.host.to_string() }))
    }

    async fn receive(
        &self,
        (response, cover): (Response<Incoming>, Option<Cover>),
        exchange: Option<Box<dyn Exchange>>,
        told: &Arc<Told>,
        rule: &EgressRule,
    ) -> Result<Response<Body>, Stopped> {
        let (mut parts, body) = response.into_parts();
        // What a server says about its own connection is its own; what it says wrongly there is not passed on either.
        head::strip(&mut parts.headers).map_err(|refusal| failed(told, rule, refusal.why))?;
        (parts.version, parts.extensions) = (Version::default(), http::Extensions::new());
        // Some servers say twice how long it is, and clients of HTTP/2 take that for an error. What differs was not accepted.
        if let Some(length) = parts.headers.get(header::CONTENT_LENGTH).cloned() {
            parts.headers.insert(header::CONTENT_LENGTH, length);
        }
        let inner = received(&mut parts, body, cover, told)?;
        let Some(mut exchange) = exchange else {
            return Ok(Response::from_parts(parts, inner.boxed_unsync()));
        };
        let body = match exchange.response(&mut parts)? {
            Reading::Pass => inner.boxed_unsync(),
            Reading::Pieces => {
                Looked { inner, exchange, waits: None, ended: false, over: false }.boxed_unsync()
            }
            Reading::Whole { bytes_max } => {
                let body = exchange.whole(whole(inner, bytes_max, told, rule).await?)?;
                parts.headers.remove(header::CONTENT_LENGTH);
                Full::new(body).map_err(|never| match never {}).boxed_unsync()
            }
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// Takes what comes in, looked through where it answers a request with a credential.
fn received(
    parts: &mut http::response::Parts,
    body: Incoming,
    cover: Option<Cover>,
    told: &Arc<Told>,
) -> Result<Counted, Refusal> {
    let inner = match cover {
        None => Source::Plain(body),
        Some(cover) => {
            cover.head(parts)?;
            Source::Covered(Box::new(cover.body(body)))
        }
    };
    Ok(Counted { inner, way: Way::Received, told: told.clone() })
}

async fn whole(
    body: Counted,
    bytes_max: usize,
    told: &Arc<Told>,
    rule: &EgressRule,
) -> Result<Bytes, Stopped> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(all) => Ok(all.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("the answer has more than {bytes_max} bytes, and has to be read whole");
            Err(Refusal::new("too-large", why).into())
        }
        Err(error) => match error.downcast::<Refusal>() {
            Ok(refusal) => Err(Stopped::Refused(*refusal)),
            Err(error) => Err(failed(told, rule, format!("the answer broke off: {error}"))),
        },
    }
}

/// Writes whom a request is for, in the way that its connection writes it.
fn address(parts: &mut Parts, target: &Target, protocol: Protocol, two: bool) {
    let usual = target.port == if protocol == Protocol::Https { 443 } else { 80 };
    let named = if usual { target.host.to_string() } else { format!("{}:{}", target.host, target.port) };
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    parts.headers.remove(header::HOST);
    parts.version = if two { Version::HTTP_2 } else { Version::HTTP_11 };
    let whole =
        Uri::builder().scheme(protocol.scheme()).authority(named.as_str()).path_and_query(path.clone());
    // INVARIANT: the name was parsed as one of a host, so it is one of a URI and of a header.
    if !two && let Ok(host) = HeaderValue::from_str(&named) {
        parts.headers.insert(header::HOST, host);
        parts.uri = Uri::from(path);
    } else if let Ok(whole) = whole.build() {
        parts.uri = whole;
    }
}

fn switches(headers: &mut http::HeaderMap, protocol: &HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol.clone());
}

/// Carries what is spoken after a switch, both ways.
fn carry(
    mut response: Response<Incoming>,
    switched: Option<(OnUpgrade, HeaderValue)>,
    told: &Arc<Told>,
) -> Result<Response<Body>, String> {
    let (inside, protocol) = switched.ok_or("the server switched protocols without being asked")?;
    let same = response
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(protocol.as_bytes()));
    if !same {
        return Err("the server switched to another protocol than it was asked for".to_owned());
    }
    let (outside, told) = (upgrade::on(&mut response), told.clone());
    tokio::spawn(async move {
        // Either end may leave before the switch; then there is nothing to carry.
        let (Ok(inside), Ok(outside)) = (inside.await, outside.await) else { return };
        told.carry(TokioIo::new(inside), TokioIo::new(outside)).await;
    });
    let (mut parts, _) = response.into_parts();
    head::strip(&mut parts.headers).map_err(|refusal| refusal.why)?;
    switches(&mut parts.headers, &protocol);
    Ok(Response::from_parts(parts, Empty::new().map_err(|never| match never {}).boxed_unsync()))
}

/// Returns why the body of a request was cut, when that is what an error is about.
fn refusal_in(error: &hyper::Error) -> Option<Refusal> {
    let mut causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.find_map(|error| error.downcast_ref::<Refusal>().cloned())
}

/// Returns an error with all that caused it: the first of them alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    escape(&causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")).into_owned()
}

fn failed(told: &Told, rule: &EgressRule, why: String) -> Stopped {
    told.is(Verdict::Failed { rule: rule.to_string(), why: why.clone() });
    Stopped::Failed(why)
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Asks a registry for what its hook needs.
struct Fetching {
    serving: Arc<Serving>,
    registry: String,
}

impl Fetch for Fetching {
    fn get<'a>(
        &'a self,
        place: &'a Place,
        path_and_query: &'a str,
        accept: Option<&'a str>,
        bytes_max: usize,
    ) -> Later<'a, Result<Response<Bytes>, Refusal>> {
        Box::pin(self.fetch(place, path_and_query, accept, bytes_max))
    }
}

impl Fetching {
    async fn fetch(
        &self,
        place: &Place,
        path_and_query: &str,
        accept: Option<&str>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Refusal> {
        let unclear = |error: http::Error| Refusal::new("unclear-path", escape(&error.to_string()));
        let mut request = Request::get(path_and_query);
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        let (parts, ()) = request.body(()).map_err(unclear)?.into_parts();
        let told = Told::begin(&self.serving, &parts);
        let asked = self.asked(place, &parts).inspect_err(|refusal| told.is(refusal.clone().into()));
        let (target, rule) = asked?;
        told.names(target.host.to_string(), target.port);
        self.ask(parts, (&target, &rule), bytes_max, &told).await.map_err(|stopped| match stopped {
            Stopped::Refused(refusal) => {
                told.is(refusal.clone().into());
                refusal
            }
            Stopped::Failed(why) => Refusal::new("not-known", format!("what decides cannot be had: {why}")),
        })
    }

    /// Returns whom it asks, and the rule that takes it.
    fn asked(&self, place: &Place, parts: &Parts) -> Result<(Target, EgressRule), Refusal> {
        let none = |why: &str| Refusal::new("no-rule", why);
        let host = match &place.host {
            HostPattern::Name(name) => Host::Name(name.clone()),
            HostPattern::Address(address) => Host::Address(*address),
            HostPattern::Below(_) => return Err(none("what decides about it is at no single host")),
        };
        let (target, path) = (Target { host, port: place.port }, head::path(&parts.uri)?);
        let takes = |rule: &&EgressRule| {
            rule.registry.as_ref() == Some(&self.registry)
                && rule.protocol == place.protocol
                && target.is_of(rule)
                && rule.takes("GET", &path)
        };
        let rule = self.serving.outside.rules().iter().find(takes).cloned();
        let rule = rule.ok_or_else(|| none("what decides about it is at a path that no rule takes"))?;
        Ok((target, rule))
    }

    async fn ask(
        &self,
        parts: Parts,
        (target, rule): (&Target, &EgressRule),
        bytes_max: usize,
        told: &Arc<Told>,
    ) -> Result<Response<Bytes>, Stopped> {
        told.is(Verdict::Allowed { rule: rule.to_string() });
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let (response, cover) = self.serving.send(parts, body, (target, rule), told).await?;
        let (mut parts, body) = response.into_parts();
        let inner = received(&mut parts, body, cover, told)?;
        Ok(Response::from_parts(parts, whole(inner, bytes_max, told, rule).await?))
    }
}
