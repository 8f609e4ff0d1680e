//! The head of a request: what it asks of whom, read in one way or refused.

use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Method, Uri, Version};
use model::egress::{Protocol, RequestPath};
use model::text::escape;

use super::{Host, Meant, Target};
use crate::Refusal;

/// Headers that are about one connection and not about the request (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// More of them, which have no constant.
const HOP_BY_HOP_OLD: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];
/// What a request cannot do without: a `Connection` header that takes one of them away changes what is asked.
const KEPT: [&str; 3] = ["host", "content-length", "authorization"];

/// What a request asks of whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) target: Target,
    pub(crate) path: RequestPath,
    /// The path for people.
    pub(crate) shown: String,
}

/// Reads a head that came on a connection.
pub(crate) fn read(parts: &Parts, meant: &Meant) -> Result<Head, Refusal> {
    if parts.method == Method::CONNECT {
        return refuse(
            "connect",
            "`CONNECT` is taken by the proxy alone, and there only as the first request",
        );
    }
    let target = target(parts, meant)?;
    if meant.target.as_ref().is_some_and(|own| *own != target) {
        let why =
            format!("it asks `{}:{}` on a connection that is to another host", target.host, target.port);
        return refuse("other-host", why);
    }
    Ok(Head { target, path: path(&parts.uri)?, shown: escape(parts.uri.path()).into_owned() })
}

/// Reads the path of a request as every server reads it.
pub(crate) fn path(uri: &Uri) -> Result<RequestPath, Refusal> {
    let path = uri.path_and_query().map_or("", |both| both.as_str());
    RequestPath::parse(path.as_bytes())
        .map_err(|error| Refusal::new("unclear-path", format!("`{}`: {error}", escape(uri.path()))))
}

/// Writes the name of a package with a scope as a path has it: `/@scope%2fname`, as clients of npm write it, is asked for as
/// `/@scope/name`. That is what is then decided and sent.
pub(crate) fn unscope(parts: &mut Parts) {
    let Some(both) = parts.uri.path_and_query() else { return };
    let (path, query) = (both.path(), both.query());
    let Some(at) = path.rfind("/@") else { return };
    let plain = path[at..].replacen("%2f", "/", 1).replacen("%2F", "/", 1);
    let plain =
        format!("{}{plain}{}", &path[..at], query.map(|query| format!("?{query}")).unwrap_or_default());
    let mut uri = parts.uri.clone().into_parts();
    // What is no path any more stays as it was, and is refused for its escape.
    if let Ok(plain) = plain.parse() {
        uri.path_and_query = Some(plain);
        parts.uri = Uri::from_parts(uri).unwrap_or_else(|_| parts.uri.clone());
    }
}

/// Reads whom it asks: all that names a host must name the same one.
fn target(parts: &Parts, meant: &Meant) -> Result<Target, Refusal> {
    if parts.uri.scheme_str().is_some_and(|scheme| scheme != meant.protocol.scheme()) {
        return refuse("bad-target", format!("it asks for another scheme than `{}`", meant.protocol));
    }
    let hosts: Vec<&HeaderValue> = parts.headers.get_all(header::HOST).iter().collect();
    let needs_host = parts.version < Version::HTTP_2 || parts.uri.authority().is_none();
    let asks_proxy = meant.target.is_none() && parts.version < Version::HTTP_2;
    if hosts.len() > 1 || (hosts.is_empty() && needs_host) {
        return refuse("bad-host", format!("it has {} `Host` headers, and one is needed", hosts.len()));
    }
    if asks_proxy && parts.uri.authority().is_none() {
        return refuse("bad-target", "a request to the proxy names its target as `http://HOST/PATH`");
    }
    let host = hosts.first().map(|host| host.as_bytes().try_into()).transpose();
    let host: Option<Authority> = host.or_else(|_| refuse("bad-host", "its `Host` header names no host"))?;
    let mut named = parts.uri.authority().into_iter().chain(&host).map(|named| one(named, meant.protocol));
    let first = named.next().unwrap_or_else(|| refuse("bad-host", "it names no host"))?;
    match named.next().transpose()? {
        Some(second) if second != first => refuse(
            "other-host",
            format!("its target is `{}`, and its `Host` is `{}`", first.host, second.host),
        ),
        _ => Ok(first),
    }
}

fn one(named: &Authority, protocol: Protocol) -> Result<Target, Refusal> {
    if named.as_str().contains('@') {
        return refuse("bad-host", "it names a user before its host");
    }
    let host: Host =
        named.host().parse().map_err(|error| Refusal::new("bad-host", format!("its host: {error}")))?;
    let usual = if protocol == Protocol::Https { 443 } else { 80 };
    let port = match named.as_str().len() == named.host().len() {
        true => Some(usual),
        false => named.port_u16().filter(|port| *port != 0),
    };
    let port = port.map_or_else(|| refuse("bad-host", "its host has no port after the colon"), Ok)?;
    Ok(Target { host, port })
}

/// Returns what it asks to switch to, where we carry that: `websocket`. Others would bring requests that nobody decides.
pub(crate) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = listed(headers).any(|name| name == "upgrade");
    let mut all = headers.get_all(header::UPGRADE).iter();
    let only = all.next().filter(|_| all.next().is_none() && asks)?;
    only.as_bytes().eq_ignore_ascii_case(b"websocket").then(|| only.clone())
}

/// Takes off what is about one connection, and what that names as such.
pub(crate) fn strip(headers: &mut HeaderMap) -> Result<(), Refusal> {
    let trailers =
        headers.get_all(header::TE).iter().any(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"));
    let named: Vec<String> = listed(headers).collect();
    if let Some(kept) = named.iter().find(|name| KEPT.contains(&name.as_str())) {
        return refuse("bad-connection", format!("its `Connection` header takes `{kept}` away"));
    }
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(name)));
    HOP_BY_HOP_OLD.iter().for_each(|name| drop(headers.remove(*name)));
    named.iter().for_each(|name| drop(headers.remove(name.as_str())));
    if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

/// Returns the names that `Connection` lists, in small letters.
fn listed(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let all = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase())
}

fn refuse<T>(reason: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(reason, why))
}

#[cfg(test)]
mod tests {
    use http::Request;
    use model::egress::Door;

    use super::*;

    fn asked(target: Option<&str>, uri: &str, headers: &[(&str, &str)]) -> Result<String, &'static str> {
        let target = target.map(|host| Target { host: host.parse().expect("a host"), port: 80 });
        let meant = Meant { target, protocol: Protocol::Http, door: Door::Direct };
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let head = read(&parts, &meant).map_err(|refusal| refusal.reason)?;
        Ok(format!("{}:{}", head.target.host, head.target.port))
    }

    #[test]
    fn all_that_names_a_host_must_name_the_one_of_the_connection() {
        let own = Some("a.test");
        for host in ["a.test", "A.TEST", "a.test:80"] {
            assert_eq!(asked(own, "/x", &[("host", host)]), Ok("a.test:80".to_owned()), "{host}");
        }
        assert_eq!(asked(own, "http://a.test/", &[("host", "a.test")]), Ok("a.test:80".to_owned()));
        for (uri, hosts, reason) in [
            ("/", vec![], "bad-host"),
            ("/", vec!["a.test", "a.test"], "bad-host"),
            ("/", vec!["b.test"], "other-host"),
            ("/", vec!["a.test.b.test"], "other-host"),
            ("/", vec!["a.test:81"], "other-host"),
            ("/", vec!["a.test."], "bad-host"),
            ("/", vec!["a.test:"], "bad-host"),
            ("/", vec!["a.test:0"], "bad-host"),
            ("/", vec!["a.test:080x"], "bad-host"),
            ("/", vec!["a.test, b.test"], "bad-host"),
            ("/", vec!["u@a.test"], "bad-host"),
            ("/", vec![""], "bad-host"),
            ("http://b.test/", vec!["a.test"], "other-host"),
            ("http://a.test/", vec!["b.test"], "other-host"),
            ("http://a.test@b.test/", vec!["a.test"], "bad-host"),
            ("https://a.test/", vec!["a.test"], "bad-target"),
            ("/../x", vec!["a.test"], "unclear-path"),
            ("/a%2fb", vec!["a.test"], "unclear-path"),
            ("*", vec!["a.test"], "unclear-path"),
        ] {
            let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            assert_eq!(asked(own, uri, &headers), Err(reason), "{uri} {hosts:?}");
        }
    }

    #[test]
    fn a_request_to_the_proxy_names_its_host_twice() {
        assert_eq!(
            asked(None, "http://b.test:8080/x", &[("host", "b.test:8080")]),
            Ok("b.test:8080".to_owned())
        );
        assert_eq!(asked(None, "http://192.0.2.1/", &[("host", "192.0.2.1")]), Ok("192.0.2.1:80".to_owned()));
        assert_eq!(asked(None, "http://a.test/", &[("host", "b.test")]), Err("other-host"));
        assert_eq!(asked(None, "/x", &[("host", "b.test")]), Err("bad-target"));
    }

    #[test]
    fn what_is_about_the_connection_is_taken_off_and_nothing_that_the_request_needs() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Own"),
            ("x-own", "1"),
            ("x-other", "2"),
            ("te", "trailers"),
            ("proxy-authorization", "Basic eA=="),
            ("upgrade", "h2c"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(upgrade(&headers), None);
        strip(&mut headers).expect("strips");
        let left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["te", "x-other"].iter().rev().copied().collect::<Vec<_>>());
        headers.insert(header::CONNECTION, HeaderValue::from_static("Host"));
        assert_eq!(strip(&mut headers).map_err(|refusal| refusal.reason), Err("bad-connection"));
    }

    #[test]
    fn only_websockets_are_switched_to() {
        let of = |connection: &'static str, protocols: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
            for protocol in protocols {
                headers.append(header::UPGRADE, HeaderValue::from_static(protocol));
            }
            upgrade(&headers).is_some()
        };
        assert!(of("keep-alive, Upgrade", &["WebSocket"]));
        for protocols in
            [vec!["h2c"], vec!["websocket, h2c"], vec!["websocket", "h2c"], vec!["TLS/1.2"], vec![]]
        {
            assert!(!of("upgrade", &protocols), "{protocols:?}");
        }
        assert!(!of("keep-alive", &["websocket"]));
    }
}
