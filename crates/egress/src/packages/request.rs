//! What goes out of a request to a registry: which package and file is meant, and nothing else.

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use model::egress::RegistryKind;

use crate::Refusal;

/// Who asks, as a registry is told.
const AGENT: &str = "fumehood";
/// The short form of what npm lists.
const NPM_SHORT: &str = "application/vnd.npm.install-v1+json";
/// What Python's registries list as JSON.
pub(crate) const PYPI_JSON: &str = "application/vnd.pypi.simple.v1+json";

/// Takes everything out of a head that could carry more than what is asked for.
pub(crate) fn narrow(head: &mut Parts, kind: RegistryKind) -> Result<(), Refusal> {
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err(Refusal::new("package-method", "from a registry is only read: `GET` and `HEAD`"));
    }
    if head.uri.query().is_some() {
        let why = "to fetch a package nothing is asked for after a `?`";
        return Err(Refusal::new("package-path", why));
    }
    let length = head.headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
    if length || head.headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(Refusal::new("package-method", "a request that reads from a registry has no body"));
    }
    head.headers = narrowed(&head.headers, kind);
    Ok(())
}

/// Writes the path of a request as it was read, so that its spelling says nothing.
pub(crate) fn spell(head: &mut Parts, segments: &[&str]) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@+!".contains(&byte);
    let escaped = |segment: &&str| {
        segment
            .bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect()
    };
    let path = format!("/{}", segments.iter().map(escaped).collect::<Vec<String>>().join("/"));
    let mut uri = head.uri.clone().into_parts();
    // INVARIANT: these letters are those of a path.
    if let Ok(path) = PathAndQuery::try_from(path) {
        uri.path_and_query = Some(path);
        head.uri = Uri::from_parts(uri).unwrap_or_else(|_| head.uri.clone());
    }
}

fn narrowed(headers: &HeaderMap, kind: RegistryKind) -> HeaderMap {
    let mut left = HeaderMap::new();
    // A credential of the gateway's own is put there later; one that comes from inside goes nowhere.
    headers.get(header::HOST).into_iter().for_each(|host| drop(left.insert(header::HOST, host.clone())));
    left.insert(header::ACCEPT, HeaderValue::from_static(accepts(headers, kind)));
    left.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    left
}

/// Says what the client can read, in words of ours.
fn accepts(headers: &HeaderMap, kind: RegistryKind) -> &'static str {
    let asked = |form: &str| {
        let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        all.into_iter().any(|value| value.contains(form))
    };
    match kind {
        RegistryKind::Npm if asked(NPM_SHORT) => {
            "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"
        }
        RegistryKind::Pypi if asked(PYPI_JSON) => {
            "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01, */*;q=0.01"
        }
        RegistryKind::Cargo | RegistryKind::Npm | RegistryKind::Pypi | RegistryKind::Debian => "*/*",
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn narrowed(request: http::request::Builder) -> Result<Parts, &'static str> {
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        narrow(&mut parts, RegistryKind::Npm).map_err(|refusal| refusal.reason)?;
        Ok(parts)
    }

    #[test]
    fn what_could_carry_something_out_does_not_leave() {
        let request = Request::get("/left-pad")
            .header("host", "a.test")
            .header("user-agent", "c2VjcmV0")
            .header("accept", "c2VjcmV0, application/vnd.npm.install-v1+json")
            .header("if-none-match", "c2VjcmV0")
            .header("cookie", "c2VjcmV0")
            .header("authorization", "Bearer c2VjcmV0")
            .header("range", "bytes=0-9")
            .header("x-own", "c2VjcmV0");
        let parts = narrowed(request).expect("may go");
        assert!(!format!("{:?}", parts.headers).contains("c2VjcmV0"), "{:?}", parts.headers);
        let mut names: Vec<&str> = parts.headers.keys().map(header::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "user-agent"]);
        for (request, reason) in [
            (Request::post("/left-pad"), "package-method"),
            (Request::put("/left-pad"), "package-method"),
            (Request::get("/left-pad?write=true"), "package-path"),
            (Request::get("/left-pad").header("content-length", "3"), "package-method"),
            (Request::get("/left-pad").header("transfer-encoding", "chunked"), "package-method"),
        ] {
            assert_eq!(narrowed(request).map(drop), Err(reason));
        }
    }

    #[test]
    fn a_path_leaves_in_one_spelling() {
        let (mut parts, ()) = Request::get("http://a.test/%6c%65ft-pad").body(()).expect("one").into_parts();
        spell(&mut parts, &["@a b", "left-pad"]);
        assert_eq!(parts.uri.to_string(), "http://a.test/@a%20b/left-pad");
    }
}
