//! Putting a credential into a request.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue};
use model::egress::{Placement, Protocol};
use model::text::escape;

use super::Given;
use crate::Refusal;

/// What is asked of a server only for its answer to be one that can be looked through.
const PLAIN: HeaderValue = HeaderValue::from_static("identity");

impl Given {
    /// Puts the value into a request, in the place of whatever the client put there, and asks for an answer in which it can be
    /// looked for.
    ///
    /// # Errors
    /// When it is for a connection in the clear and may not be, or does not fit.
    pub(crate) fn put(&self, parts: &mut Parts, protocol: Protocol) -> Result<(), Refusal> {
        let name = escape(&self.about.name);
        if protocol != Protocol::Https && !self.about.in_clear {
            let why = format!("the credential `{name}` is not for connections in the clear");
            return Err(Refusal::new("credential-in-clear", why));
        }
        let value = self.about.value.reveal();
        let unfit =
            || Refusal::new("credential-unfit", format!("the credential `{name}` does not fit its place"));
        match &self.about.placement {
            Placement::Bearer => set(&mut parts.headers, header::AUTHORIZATION, format!("Bearer {value}")),
            Placement::Basic { user } => {
                let both = BASE64_STANDARD.encode(format!("{user}:{value}"));
                set(&mut parts.headers, header::AUTHORIZATION, format!("Basic {both}"))
            }
            Placement::Header { name, template } => HeaderName::try_from(name)
                .ok()
                .and_then(|name| set(&mut parts.headers, name, Placement::filled(template, value))),
            Placement::Query { name } => with_parameter(&parts.uri, name, value).map(|uri| parts.uri = uri),
        }
        .ok_or_else(unfit)?;
        parts.headers.insert(header::ACCEPT_ENCODING, PLAIN);
        // In pieces that the client chooses it would come back piece by piece.
        parts.headers.remove(header::RANGE);
        parts.headers.remove(header::IF_RANGE);
        Ok(())
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, text: String) -> Option<()> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Returns an address with one parameter of this name and no other.
fn with_parameter(uri: &Uri, name: &str, value: &str) -> Option<Uri> {
    let others = uri.query().unwrap_or_default().split('&');
    let others = others.filter(|one| !one.is_empty() && !is_named(one, name));
    let own = format!("{}={}", percent(name), percent(value));
    let query: Vec<&str> = others.chain([own.as_str()]).collect();
    let both = format!("{}?{}", uri.path(), query.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(both).ok()?);
    Uri::from_parts(parts).ok()
}

/// Tells whether a server could read this as a parameter of that name.
fn is_named(parameter: &str, name: &str) -> bool {
    let written = parameter.split('=').next().unwrap_or_default().replace('+', " ");
    decoded(&written).eq_ignore_ascii_case(name.as_bytes())
}

fn decoded(text: &str) -> Vec<u8> {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

/// Writes all but unreserved signs (RFC 3986, section 2.3) with percent signs.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use model::egress::{GivenCredential, Secret};

    use super::*;

    fn put(placement: &str, value: &str, protocol: Protocol, uri: &str) -> Result<Parts, &'static str> {
        let given = Given::new(GivenCredential {
            name: "c".to_owned(),
            value: Secret::new(value.to_owned()),
            stand_in: Secret::new("stand-in-1234".to_owned()),
            placement: placement.parse().expect("a place"),
            in_clear: false,
        });
        let request =
            Request::get(uri).header("authorization", "Bearer of-the-client").header("range", "bytes=0-1");
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let put = given.expect("is one").put(&mut parts, protocol);
        put.map(|()| parts).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn it_takes_the_place_of_what_the_client_put_there() {
        let header = |placement: &str, name: &str| {
            let parts = put(placement, "v-1234567", Protocol::Https, "https://a.test/x").expect("fits");
            let all: Vec<_> = parts
                .headers
                .get_all(name)
                .iter()
                .map(|value| value.to_str().expect("text").to_owned())
                .collect();
            assert_eq!(parts.headers.get("accept-encoding"), Some(&PLAIN));
            assert!(parts.headers.get("range").is_none());
            assert!(!format!("{parts:?}").contains("v-1234567"));
            all
        };
        assert_eq!(header("bearer", "authorization"), ["Bearer v-1234567"]);
        assert_eq!(header("basic git", "authorization"), ["Basic Z2l0OnYtMTIzNDU2Nw=="]);
        assert_eq!(header("header Authorization: token {}", "authorization"), ["token v-1234567"]);
        assert_eq!(header("header Private-Token", "private-token"), ["v-1234567"]);
    }

    #[test]
    fn a_parameter_is_there_once_however_the_client_wrote_it() {
        let query = |uri| put("query key", "a b&c", Protocol::Https, uri).expect("fits").uri.to_string();
        assert_eq!(query("https://a.test/x"), "https://a.test/x?key=a%20b%26c");
        assert_eq!(
            query("https://a.test/x?a=1&%6Bey=2&KEY&k=3&key=4"),
            "https://a.test/x?a=1&k=3&key=a%20b%26c"
        );
    }

    #[test]
    fn it_is_not_put_into_the_clear_nor_where_it_breaks_a_request() {
        assert_eq!(
            put("bearer", "v-1234567", Protocol::Http, "http://a.test/").err(),
            Some("credential-in-clear")
        );
        assert_eq!(
            put("bearer", "a\r\nb: c", Protocol::Https, "https://a.test/").err(),
            Some("credential-unfit")
        );
    }
}
