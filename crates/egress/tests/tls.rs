//! TLS towards clients inside and towards servers, with handshakes over memory.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use egress::http::{Host, Speaks};
use egress::tls::{Authority, Interceptor, Upstream};
use model::units::Timestamp;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::{TlsAcceptor, rustls};

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    Timestamp::from_nanos(since.as_nanos().try_into().expect("fits"))
}

fn host(text: &str) -> Host {
    text.parse().expect("a host")
}

fn root(authority: &Authority) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(authority.certificate().as_bytes()).expect("a certificate")
}

/// What a client that trusts `trusted` and asks for `asked` gets on a connection to `to`.
async fn inside(authority: &Authority, to: &str, asked: &str, trusted: &Authority) -> Result<Speaks, String> {
    let (one, other) = duplex(1 << 16);
    let interceptor = Interceptor::new(authority.clone());
    let to = host(to);
    let served = tokio::spawn(async move {
        let (mut stream, _) = interceptor.accept(other, &to, now()).await.map_err(|refusal| refusal.why)?;
        stream.write_all(b"x").await.map_err(|error| error.to_string())
    });
    let client = Upstream::new([root(trusted)]).expect("a client");
    let (mut stream, speaks) = client.connect(one, &host(asked)).await?;
    assert_eq!(stream.read_u8().await.expect("a byte"), b'x');
    served.await.expect("ends").map(|()| speaks)
}

#[tokio::test]
async fn a_client_inside_sees_a_certificate_for_the_name_that_it_asked_for() {
    let authority = Authority::make(now()).expect("an authority");
    for name in ["a.test", "192.0.2.1", "[2001:db8::1]"] {
        assert_eq!(inside(&authority, name, name, &authority).await, Ok(Speaks::Http2), "{name}");
    }
    let other = Authority::make(now()).expect("an authority");
    for (to, asked, trusted) in [
        ("a.test", "b.test", &authority),
        ("a.test", "192.0.2.1", &authority),
        ("192.0.2.1", "a.test", &authority),
        ("a.test", "a.test", &other),
    ] {
        assert!(inside(&authority, to, asked, trusted).await.is_err(), "{to} {asked}");
    }
}

#[tokio::test]
async fn an_expired_authority_takes_nothing_off_and_says_what_to_do() {
    let year = Duration::from_secs(366 * 24 * 60 * 60).as_nanos();
    let long_ago = Timestamp::from_nanos(now().as_nanos() - u64::try_from(year).expect("fits"));
    let interceptor = Interceptor::new(Authority::make(long_ago).expect("an authority"));
    let (_client, stream) = duplex(1 << 16);
    let refusal = interceptor.accept(stream, &host("a.test"), now()).await.map(|_| ()).expect_err("refused");
    assert_eq!(refusal.reason, "no-authority");
    assert!(refusal.why.contains("has expired") && refusal.why.contains("start another one"), "{refusal}");
}

/// What the gateway says of a server whose certificate is for `name` until the year `until`.
async fn server(name: &str, until: i32, known: bool, protocols: &[&str]) -> Result<Speaks, String> {
    let key = || KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params.clone(), key()).expect("a root");
    let other = CertifiedIssuer::self_signed(params, key()).expect("a root");
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.not_after = date_time_ymd(until, 1, 1);
    let own = key();
    let certificate = params.signed_by(&own, &issuer).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let own = PrivateKeyDer::Pkcs8(own.serialize_der().into());
    let mut config = config.with_single_cert(vec![certificate.der().clone()], own).expect("a configuration");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let (one, two) = duplex(1 << 16);
    let served = tokio::spawn(async move { TlsAcceptor::from(Arc::new(config)).accept(two).await.map(drop) });
    let root = if known { issuer.der().clone() } else { other.der().clone() };
    let upstream = Upstream::new([root]).expect("roots");
    let connected = upstream.connect(one, &host("a.test")).await.map(|(_, speaks)| speaks);
    let _ = served.await.expect("ends");
    connected
}

#[tokio::test]
async fn a_server_is_verified_in_full_and_chooses_what_is_spoken() {
    assert_eq!(server("a.test", 2090, true, &["h2", "http/1.1"]).await, Ok(Speaks::Http2));
    assert_eq!(server("a.test", 2090, true, &["http/1.1"]).await, Ok(Speaks::Http1));
    assert_eq!(server("a.test", 2090, true, &[]).await, Ok(Speaks::Http1));
    for (name, until, known, word) in [
        ("a.test", 2020, true, "xpired"),
        ("b.test", 2090, true, "not valid for"),
        ("a.test", 2090, false, "certificate"),
    ] {
        let why = server(name, until, known, &[]).await.expect_err("not verified");
        assert!(why.starts_with("the server of `a.test` is not verified") && why.contains(word), "{why}");
    }
    assert!(Upstream::new([]).is_err_and(|why| why.contains("no root certificate")));
}
