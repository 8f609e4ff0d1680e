//! Where the model's server is: everything about it that needs names or files, found out before the process gives
//! those up.

use std::net::{SocketAddr, ToSocketAddrs};

use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::ClientError;

/// How many addresses of one server are kept.
const ADDRESSES: usize = 16;

/// A server whose name has been looked up.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: String,
    host: String,
    addresses: Vec<SocketAddr>,
    roots: RootCerts,
    encrypted: bool,
}

impl Endpoint {
    /// Checks the base URL and looks up its name. This is the last thing that needs the system's files.
    ///
    /// Only `https` is taken, and `http` to the loopback of this machine: the key must not cross a network in the
    /// clear. With `roots_pem`, those certificates are trusted instead of the built-in ones.
    ///
    /// # Errors
    /// When the URL cannot be used, its name is not found, or the certificates are none.
    pub fn resolve(base_url: &str, roots_pem: Option<&str>) -> Result<Self, ClientError> {
        let refuse =
            |reason: &str| ClientError::Address { url: without_user(base_url), reason: reason.to_owned() };
        let base = base_url.trim_end_matches('/');
        let uri: Uri =
            base.parse().map_err(|_| refuse("it is not a URL: give one like `https://api.deepseek.com`"))?;
        let authority = uri.authority().ok_or_else(|| refuse("it names no server"))?;
        if authority.as_str().contains('@') {
            return Err(refuse("it holds a user name: give the key by DEEPSEEK_API_KEY or a key file"));
        }
        if uri.query().is_some() || base.contains('#') {
            return Err(refuse("it holds a query or a fragment: give only the address"));
        }
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refuse("it begins with neither `https://` nor `http://`")),
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let addresses = look_up(&host, port)?;
        if !encrypted && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(refuse("the key would cross the network in the clear: use `https://`"));
        }
        let url = format!("{base}/chat/completions");
        Ok(Self { url, host, addresses, roots: roots(roots_pem)?, encrypted })
    }

    /// Returns the addresses that the client connects to, and no other.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    pub(super) fn tls(&self) -> TlsConfig {
        TlsConfig::builder().root_certs(self.roots.clone()).build()
    }

    pub(super) fn resolver(&self) -> Pinned {
        Pinned { host: self.host.clone(), addresses: self.addresses.clone() }
    }
}

/// Returns a URL for showing: what stands before an `@` may be a password.
fn without_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        (None, Some((_, rest))) => format!("…@{rest}"),
        _ => url.to_owned(),
    }
}

fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, ClientError> {
    let failed = |source| ClientError::Lookup { host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> =
        (host, port).to_socket_addrs().map_err(failed)?.take(ADDRESSES).collect();
    match addresses.is_empty() {
        true => Err(failed(std::io::ErrorKind::NotFound.into())),
        false => Ok(addresses),
    }
}

fn roots(pem: Option<&str>) -> Result<RootCerts, ClientError> {
    let Some(pem) = pem else { return Ok(RootCerts::WebPki) };
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(pem.as_bytes()) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(ClientError::Roots),
        }
    }
    if certificates.is_empty() {
        return Err(ClientError::Roots);
    }
    Ok(RootCerts::from(certificates))
}

/// Answers with the addresses that were looked up, and for no other name.
#[derive(Debug)]
pub(super) struct Pinned {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolver for Pinned {
    fn resolve(
        &self,
        uri: &Uri,
        _config: &ureq::config::Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if host != self.host {
            return Err(ureq::Error::HostNotFound);
        }
        let mut resolved = self.empty();
        for address in self.addresses.iter().take(ADDRESSES) {
            resolved.push(*address);
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_loopback_are_taken() {
        for url in ["https://127.0.0.1/v1", "http://127.0.0.1:8080", "http://[::1]:1/", "http://localhost:9"]
        {
            let endpoint = Endpoint::resolve(url, None).expect(url);
            assert!(
                endpoint.url().ends_with("/chat/completions") && !endpoint.url().contains("//chat"),
                "{url}"
            );
        }
    }

    #[test]
    fn what_would_give_the_key_away_is_refused() {
        let cases = [
            ("http://192.0.2.1/v1", "in the clear"),
            ("https://ada:pw@127.0.0.1", "user name"),
            ("ftp://127.0.0.1", "neither"),
            ("127.0.0.1:80", "neither"),
            ("not a url", "not a URL"),
            ("https://127.0.0.1/?key=1", "query"),
            ("", "not a URL"),
        ];
        for (url, reason) in cases {
            let error = Endpoint::resolve(url, None).expect_err(url).to_string();
            assert!(error.contains(reason), "{url} gave: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn a_name_that_does_not_exist_is_said() {
        let error = Endpoint::resolve("https://no-such-host.invalid", None).expect_err("is reserved");
        assert!(matches!(error, ClientError::Lookup { .. }), "{error}");
    }

    #[test]
    fn roots_must_be_certificates() {
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
            let error = Endpoint::resolve("https://127.0.0.1", Some(pem)).expect_err("no certificate");
            assert!(matches!(error, ClientError::Roots), "{pem:?} gave {error}");
        }
    }
}
