//! TLS towards clients inside, with certificates of the authority.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::units::Timestamp;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

use super::authority::{Authority, AuthorityError, after, before, date};
use super::{protocols, spoken};
use crate::Refusal;
use crate::http::{Host, Speaks, Stream};

/// How long a certificate of a host is valid: it is made for one action.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long before its end another one is made.
const RENEW_BEFORE: Duration = Duration::from_secs(60 * 60);
/// How far the clocks of clients may be behind.
const SKEW: Duration = Duration::from_secs(60 * 60);

/// Takes TLS off connections from inside.
pub struct Interceptor {
    authority: Authority,
    leaves: Mutex<HashMap<Host, Leaf>>,
}

#[derive(Clone)]
struct Leaf {
    config: Arc<ServerConfig>,
    until: Timestamp,
}

impl Interceptor {
    /// Makes one that signs with this authority.
    pub fn new(authority: Authority) -> Self {
        Self { authority, leaves: Mutex::default() }
    }

    /// Takes TLS off a connection to a host.
    ///
    /// # Errors
    /// When the authority has expired, or the client asks for another name, or does not trust the certificate.
    pub async fn accept<S: Stream>(
        &self,
        stream: S,
        host: &Host,
        now: Timestamp,
    ) -> Result<(TlsStream<S>, Speaks), Refusal> {
        let config =
            self.config(host, now).map_err(|error| Refusal::new("no-authority", error.to_string()))?;
        let accepted = TlsAcceptor::from(config).accept(stream).await;
        let stream = accepted.map_err(|error| {
            let why = format!("TLS for `{host}` was not agreed with the client: {error}");
            Refusal::new("tls-inside", model::text::escape(&why).into_owned())
        })?;
        let speaks = spoken(stream.get_ref().1.alpn_protocol());
        Ok((stream, speaks))
    }

    fn config(&self, host: &Host, now: Timestamp) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaf) = leaves.get(host).filter(|leaf| now < leaf.until) {
            return Ok(leaf.config.clone());
        }
        let leaf = self.sign(host, now)?;
        leaves.insert(host.clone(), leaf.clone());
        Ok(leaf.config)
    }

    fn sign(&self, host: &Host, now: Timestamp) -> Result<Leaf, AuthorityError> {
        let (issuer, key) = (self.authority.issuer(now)?, KeyPair::generate()?);
        let until = after(now, LIFETIME).min(self.authority.until());
        let name = match host {
            Host::Name(name) => name.to_string(),
            Host::Address(address) => address.to_string(),
        };
        let mut params = CertificateParams::new(vec![name])?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        (params.not_before, params.not_after) = (date(before(now, SKEW)), date(until));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer)?.der().clone();
        let signs = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .map_err(|_| rcgen::Error::RemoteKeyError)?;
        let shown = Shown { host: host.clone(), key: Arc::new(CertifiedKey::new(vec![certificate], signs)) };
        // At its own end the authority itself answers, and says so.
        let until = if until == self.authority.until() { until } else { before(until, RENEW_BEFORE) };
        Ok(Leaf { config: config(shown)?, until })
    }
}

fn config(shown: Shown) -> Result<Arc<ServerConfig>, AuthorityError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|_| rcgen::Error::RemoteKeyError)?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(shown));
    config.alpn_protocols = protocols();
    Ok(Arc::new(config))
}

/// The certificate of a host, for clients that ask for it alone.
struct Shown {
    host: Host,
    key: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = match (&self.host, hello.server_name()) {
            (Host::Name(name), Some(asked)) => asked.eq_ignore_ascii_case(name.as_str()),
            // An address is never asked for by name (RFC 6066, section 3).
            (Host::Address(_), None) => true,
            _ => false,
        };
        asked.then(|| self.key.clone())
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").field("host", &self.host).finish_non_exhaustive()
    }
}
