//! TLS towards servers.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

use super::{protocols, server_name, spoken};
use crate::http::{Host, Speaks, Stream};

/// Speaks TLS with servers, and verifies them.
pub struct Upstream(Arc<ClientConfig>);

impl Upstream {
    /// Makes one that trusts these roots and no others.
    ///
    /// # Errors
    /// When none of them is a certificate: it would trust nobody.
    pub fn new(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        let (taken, _) = store.add_parsable_certificates(roots);
        if taken == 0 {
            return Err(
                "no root certificate is there to verify servers by: install the system's (ca-certificates)"
                    .to_owned(),
            );
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let mut config = builder.with_root_certificates(store).with_no_client_auth();
        config.alpn_protocols = protocols();
        Ok(Self(Arc::new(config)))
    }

    /// Speaks TLS on a connection to a server, which has to prove that it is this host.
    ///
    /// # Errors
    /// With a sentence for people, when it does not.
    pub async fn connect<S: Stream>(&self, stream: S, host: &Host) -> Result<(TlsStream<S>, Speaks), String> {
        let name = server_name(host).map_err(|error| format!("`{host}` is no name of a server: {error}"))?;
        let connected = TlsConnector::from(self.0.clone()).connect(name, stream).await;
        let stream = connected.map_err(|error| {
            let why = format!("the server of `{host}` is not verified: {error}");
            model::text::escape(&why).into_owned()
        })?;
        let speaks = spoken(stream.get_ref().1.alpn_protocol());
        Ok((stream, speaks))
    }
}

/// Reads the roots of the system. What cannot be read of them is left out; a process that has no files has none.
pub fn system_roots() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}
