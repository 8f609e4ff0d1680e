//! Registries of each kind, made by this test, and a client that writes requests by hand: what may come does, and all else is
//! stopped with its reason, whoever asks.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use egress::Refusal;
use egress::http::hook::{Hook, Later};
use egress::http::{Meant, Outside, Reached, Speaks, Target, Unreached, Way, serve};
use egress::packages::{Known, Packages};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::egress::{
    Algorithm, Attempt, Checksum, Door, EgressRule, Locked, Lockfile, PackageUse, Protocol, Registry,
    RegistryKind, Unlisted, Verdict,
};
use ring::digest;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};

/// Files by their paths, each with its form.
type Files = BTreeMap<String, (&'static str, Vec<u8>)>;

struct Bench {
    packages: Packages,
    rules: Vec<EgressRule>,
    server: SocketAddr,
    told: Mutex<Vec<Attempt>>,
    /// What the registry was asked for.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Outside for Bench {
    fn rules(&self) -> &[EgressRule] {
        &self.rules
    }

    fn connect<'a>(&'a self, _: &'a Target, _: &'a EgressRule) -> Later<'a, Result<Reached, Unreached>> {
        Box::pin(async {
            let stream = TcpStream::connect(self.server).await;
            let stream = stream.map_err(|error| Unreached::Failed(error.to_string()))?;
            Ok(Reached { stream: Box::new(stream), speaks: Speaks::Http1, address: self.server.ip() })
        })
    }

    fn hook(&self, registry: &str) -> Option<Arc<dyn Hook>> {
        self.packages.hook(registry)
    }

    fn count(&self, _: Way, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn tell(&self, attempt: Attempt) {
        self.told.lock().expect("told").push(attempt);
    }
}

impl Bench {
    async fn new(registry: Registry, known: Known, files: Files) -> Arc<Self> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let server = server(files, seen.clone()).await;
        let rules = registry.rules().into_iter().collect();
        Arc::new(Self {
            packages: Packages::new(vec![registry], known),
            rules,
            server,
            told: Mutex::default(),
            seen,
        })
    }

    /// Asks for a path by hand. Returns the status, the reason that is given, and the body, or nothing when it broke off.
    async fn ask(self: &Arc<Self>, path: &str) -> (u16, String, Option<Vec<u8>>) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: registry.test\r\nConnection: close\r\n\r\n")).await
    }

    async fn send(self: &Arc<Self>, request: &str) -> (u16, String, Option<Vec<u8>>) {
        let target = Target { host: "registry.test".parse().expect("a host"), port: 80 };
        let meant = Meant { target: Some(target), protocol: Protocol::Http, door: Door::Direct };
        let (mut inside, outside) = duplex(1 << 16);
        tokio::spawn(serve(outside, Speaks::Http1, meant, self.clone()));
        inside.write_all(request.as_bytes()).await.expect("writes");
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(10), inside.read_to_end(&mut answer))
            .await
            .expect("closes")
            .expect("reads");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("has a head") + 4;
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default()
        };
        let length: Option<usize> = field("content-length:").parse().ok();
        let body = answer[end..].to_vec();
        let status = head[9..12].parse().expect("a status");
        (
            status,
            field("x-fumehood-reason:").to_owned(),
            Some(body).filter(|body| length.is_none_or(|length| length == body.len())),
        )
    }

    async fn reason(self: &Arc<Self>, path: &str) -> String {
        let (status, reason, body) = self.ask(path).await;
        // What is refused when all of it was seen breaks off; the reason is told.
        if status == 200 {
            if body.is_some() { "comes".to_owned() } else { self.last_reason() }
        } else {
            reason
        }
    }

    fn last_reason(&self) -> String {
        let told = self.told.lock().expect("told");
        match &told.last().expect("one").verdict {
            Verdict::Refused { reason, .. } => format!("cut: {reason}"),
            other => format!("{other:?}"),
        }
    }

    fn last_package(&self) -> PackageUse {
        let told = self.told.lock().expect("told");
        *told.iter().rev().find_map(|attempt| attempt.package.clone()).expect("one about a package")
    }
}

async fn server(files: Files, seen: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    let files = Arc::new(files);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (files, seen) = (files.clone(), seen.clone());
            let answer = service_fn(move |request| answer(request, files.clone(), seen.clone()));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    address
}

async fn answer(
    request: Request<Incoming>,
    files: Arc<Files>,
    seen: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, _) = request.into_parts();
    seen.lock().expect("seen").push(format!("{} {} {:?}", parts.method, parts.uri, parts.headers));
    let found = files.get(parts.uri.path());
    let (form, body) = found.cloned().unwrap_or(("text/plain", b"what nobody asked for".to_vec()));
    let response = Response::builder().header("content-type", form);
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    Ok(response.status(status).body(Full::from(body)).expect("a response"))
}

fn hex(algorithm: &'static digest::Algorithm, of: &[u8]) -> String {
    digest::digest(algorithm, of).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(of: &[u8]) -> Checksum {
    Checksum::new(Algorithm::Sha256, digest::digest(&digest::SHA256, of).as_ref())
}

/// A moment this many hours ago.
fn hours_ago(hours: i64) -> String {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
    let then = i64::try_from(seconds).expect("fits") - hours * 3600;
    jiff::Timestamp::from_second(then).expect("a moment").to_string()
}

fn registry(kind: RegistryKind, path: &str) -> Registry {
    let place = format!("http://registry.test{path}").parse().expect("a place");
    Registry {
        known: ["own", "own*"].map(|name| name.parse().expect("a pattern")).into(),
        ..Registry::at("own", kind, place)
    }
}

fn locked(kind: RegistryKind, name: &str, version: &str, content: &[u8]) -> Known {
    let mut known = Known::default();
    let (name, version, checksums) = (name.to_owned(), version.to_owned(), [sha256(content)].into());
    known.lock([Locked { kind, name, version, checksums }]);
    known
}

const CRATE: &[u8] = b"what a crate is";
const TAMPERED: &[u8] = b"what a crate became";

/// A registry of cargo: `own` with an old, a fresh, an ageless and a changed version.
fn crates() -> Files {
    let line = |version: &str, sum: &[u8], when: Option<String>| {
        let time = when.map(|when| format!(r#","pubtime":"{when}""#)).unwrap_or_default();
        format!(r#"{{"name":"own","vers":"{version}","cksum":"{}"{time}}}"#, hex(&digest::SHA256, sum))
    };
    let lines = [
        line("1.0.0", CRATE, Some(hours_ago(100))),
        line("1.0.1", CRATE, Some(hours_ago(2))),
        line("1.0.2", CRATE, None),
        line("1.0.3", CRATE, Some(hours_ago(100))),
        line("1.0.4", CRATE, Some(hours_ago(100))),
    ];
    let file = |version: &str, content: &[u8]| {
        (format!("/dl/own/{version}/download"), ("application/gzip", content.to_vec()))
    };
    [
        (
            "/index/config.json".to_owned(),
            ("application/json", br#"{"dl":"http://registry.test/dl"}"#.to_vec()),
        ),
        ("/index/3/o/own".to_owned(), ("text/plain", lines.join("\n").into_bytes())),
        file("1.0.0", CRATE),
        file("1.0.1", CRATE),
        file("1.0.2", CRATE),
        file("1.0.3", TAMPERED),
        file("1.0.4", &TAMPERED.repeat(1 << 20)),
        file("9.9.9", CRATE),
    ]
    .into()
}

fn cargo() -> Registry {
    let downloads = ["http://registry.test/dl".parse().expect("a place")].into();
    Registry { downloads, ..registry(RegistryKind::Cargo, "/index") }
}

#[tokio::test]
async fn a_crate_comes_when_it_is_listed_old_enough_and_what_the_index_says() {
    let bench = Bench::new(cargo(), Known::default(), crates()).await;
    assert_eq!(bench.ask("/index/3/o/own").await.0, 200);
    let (_, _, body) = bench.ask("/dl/own/1.0.0/download").await;
    assert_eq!(body.as_deref(), Some(CRATE));
    let package = bench.last_package();
    assert_eq!(
        (package.name.as_str(), package.version.as_deref(), package.digest),
        ("own", Some("1.0.0"), Some(sha256(CRATE)))
    );
    for (path, reason) in [
        ("/dl/own/1.0.1/download", "package-too-fresh"),
        ("/dl/own/1.0.2/download", "package-age-unknown"),
        ("/dl/own/1.0.3/download", "package-digest"),
        // A larger one passes while it is read, and ends before its end.
        ("/dl/own/1.0.4/download", "cut: package-digest"),
        ("/dl/own/9.9.9/download", "package-unlisted"),
        ("/dl/ovvn/1.0.0/download", "package-look-alike"),
        ("/dl/tokio/1.0.0/download", "package-new-name"),
        ("/index/to/ki/tokio", "package-new-name"),
        ("/dl/own/1.0.0/other", "package-path"),
        ("/dl/own/1.0.0/download?x=secret", "package-path"),
        ("/index/crates.io-index/archive", "package-path"),
        ("/elsewhere", "no-rule"),
    ] {
        assert_eq!(bench.reason(path).await, reason, "{path}");
    }
    let seen = bench.seen.lock().expect("seen").join("\n");
    assert!(!seen.contains("tokio") && !seen.contains("secret") && !seen.contains("1.0.1/"), "{seen}");
}

#[tokio::test]
async fn a_client_that_asks_for_no_list_and_writes_by_hand_meets_the_same_answers() {
    let bench = Bench::new(cargo(), Known::default(), crates()).await;
    assert_eq!(bench.reason("/dl/own/1.0.1/download").await, "package-too-fresh");
    assert_eq!(bench.reason("/dl/own/1.0.3/download").await, "package-digest");
    assert_eq!(bench.reason("/dl/o%77n/1.0.0/download").await, "comes");
    let partial = "GET /dl/own/1.0.3/download HTTP/1.1\r\nHost: registry.test\r\nRange: bytes=0-4\r\nConnection: close\r\n\r\n";
    let (status, reason, _) = bench.send(partial).await;
    assert_eq!((status, reason.as_str()), (403, "package-digest"));
    for request in [
        "POST /dl/own/1.0.0/download HTTP/1.1\r\nHost: registry.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "GET /dl/own/1.0.0/download HTTP/1.1\r\nHost: registry.test\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret",
    ] {
        let (status, reason, _) = bench.send(request).await;
        assert_eq!(status, 403, "{reason}");
    }
    // What is not found brings nothing with it.
    assert_eq!(bench.ask("/index/ow/nm/ownmissing").await, (404, String::new(), Some(Vec::new())));
    let (_, _, body) = bench.ask("/index/config.json").await;
    assert!(body.is_some_and(|body| body.starts_with(b"{\"dl\"")));
}

#[tokio::test]
async fn a_lockfile_holds_for_version_and_content_whatever_the_client_is_told() {
    let kind = RegistryKind::Cargo;
    let bench = Bench::new(cargo(), locked(kind, "own", "1.0.0", CRATE), crates()).await;
    assert_eq!(bench.reason("/dl/own/1.0.0/download").await, "comes");
    assert!(bench.last_package().locked);
    assert_eq!(bench.reason("/dl/own/1.0.1/download").await, "package-not-locked");
    let bench = Bench::new(cargo(), locked(kind, "own", "1.0.0", TAMPERED), crates()).await;
    assert_eq!(bench.reason("/dl/own/1.0.0/download").await, "package-digest");
    let loose = Registry { lockfile: Lockfile::Record, unknown_age: Unlisted::Allow, ..cargo() };
    let bench = Bench::new(loose, locked(kind, "own", "1.0.0", TAMPERED), crates()).await;
    assert_eq!(bench.reason("/dl/own/1.0.2/download").await, "comes");
    assert_eq!(bench.reason("/dl/own/1.0.0/download").await, "package-digest");
}

#[tokio::test]
async fn a_registry_that_gives_its_files_elsewhere_is_not_followed() {
    let mut files = crates();
    files.insert(
        "/index/config.json".to_owned(),
        ("application/json", br#"{"dl":"http://elsewhere.test/dl"}"#.to_vec()),
    );
    let bench = Bench::new(cargo(), Known::default(), files).await;
    assert_eq!(bench.reason("/index/config.json").await, "registry-elsewhere");
    assert_eq!(bench.reason("/dl/own/1.0.0/download").await, "registry-elsewhere");
}

fn tarball(manifest: &str) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..20].copy_from_slice(b"package/package.json");
    header[124..135].copy_from_slice(format!("{:011o}", manifest.len()).as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].copy_from_slice(b"        ");
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.extend_from_slice(manifest.as_bytes());
    header.resize(header.len().next_multiple_of(512) + 1024, 0);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&header).expect("packs");
    gzip.finish().expect("packs")
}

/// A registry of npm: a plain version, one that says its script, and one that hides it from its list.
fn npm() -> Files {
    let plain = tarball(r#"{"name":"@own/a","version":"1.0.0"}"#);
    let runs = tarball(r#"{"name":"@own/a","version":"3.0.0","scripts":{"postinstall":"x"}}"#);
    let one = |version: &str, file: &[u8], more: &str| {
        let sum = STANDARD.encode(digest::digest(&digest::SHA512, file));
        format!(
            r#""{version}":{{"name":"@own/a","version":"{version}","dist":{{"integrity":"sha512-{sum}"}}{more}}}"#
        )
    };
    let versions = [
        one("1.0.0", &plain, ""),
        one("2.0.0", &runs, r#","scripts":{"postinstall":"x"}"#),
        one("3.0.0", &runs, ""),
        one("4.0.0", &plain, ""),
    ];
    let (old, fresh) = (hours_ago(100), hours_ago(1));
    let packument = format!(
        r#"{{"name":"@own/a","versions":{{{}}},"time":{{"1.0.0":"{old}","2.0.0":"{old}","3.0.0":"{old}","4.0.0":"{fresh}"}}}}"#,
        versions.join(",")
    );
    let file = |version: &str, file: &[u8]| {
        (format!("/npm/@own/a/-/a-{version}.tgz"), ("application/octet-stream", file.to_vec()))
    };
    [
        ("/npm/@own/a".to_owned(), ("application/json", packument.into_bytes())),
        file("1.0.0", &plain),
        file("2.0.0", &runs),
        file("3.0.0", &runs),
        file("4.0.0", &plain),
    ]
    .into()
}

fn npm_registry() -> Registry {
    Registry { known: ["@own/*".parse().expect("a pattern")].into(), ..registry(RegistryKind::Npm, "/npm") }
}

#[tokio::test]
async fn of_npm_nothing_comes_that_runs_when_it_is_installed_whatever_its_list_says() {
    let bench = Bench::new(npm_registry(), Known::default(), npm()).await;
    assert_eq!(bench.ask("/npm/@own%2fa").await.0, 200);
    for (path, reason) in [
        ("/npm/@own/a/-/a-1.0.0.tgz", "comes"),
        ("/npm/@own/a/-/a-2.0.0.tgz", "package-install-script"),
        ("/npm/@own/a/-/a-3.0.0.tgz", "package-install-script"),
        ("/npm/@own/a/-/a-4.0.0.tgz", "package-too-fresh"),
        ("/npm/@own/a/-/a-5.0.0.tgz", "package-unlisted"),
        ("/npm/@ovvn/a", "package-new-name"),
        ("/npm/-/v1/search", "package-path"),
    ] {
        assert_eq!(bench.reason(path).await, reason, "{path}");
    }
    let named = Registry { scripts: ["@own/a".parse().expect("a pattern")].into(), ..npm_registry() };
    let bench = Bench::new(named, Known::default(), npm()).await;
    assert_eq!(bench.reason("/npm/@own/a/-/a-3.0.0.tgz").await, "comes");
}

const WHEEL: &[u8] = b"what a wheel is";

fn python(json: bool) -> Files {
    let sum = hex(&digest::SHA256, WHEEL);
    let one = |file: &str, hours: i64| {
        format!(
            r#"{{"filename":"{file}","url":"http://registry.test/files/ab/{file}","hashes":{{"sha256":"{sum}"}},"upload-time":"{}","core-metadata":{{"sha256":"{sum}"}}}}"#,
            hours_ago(hours)
        )
    };
    let names = [
        "own_x-1.0-py3-none-any.whl",
        "own_x-1.1-py3-none-any.whl",
        "own_x-1.0.tar.gz",
        "own_x-1.2-py3-none-any.whl",
    ];
    let list = if json {
        let files = names.iter().zip([100, 1, 100, 100]).map(|(file, hours)| one(file, hours));
        format!(r#"{{"files":[{}]}}"#, files.collect::<Vec<_>>().join(","))
    } else {
        names
            .iter()
            .map(|file| format!(r#"<a href="../../files/ab/{file}#sha256={sum}">{file}</a>"#))
            .collect()
    };
    let form = if json { "application/vnd.pypi.simple.v1+json" } else { "text/html" };
    let file = |name: &str, content: &[u8]| {
        (format!("/files/ab/{name}"), ("application/octet-stream", content.to_vec()))
    };
    [
        ("/simple/own-x/".to_owned(), (form, list.into_bytes())),
        file(names[0], WHEEL),
        file(names[1], WHEEL),
        file(names[2], WHEEL),
        file(names[3], TAMPERED),
        file("own_x-1.0-py3-none-any.whl.metadata", WHEEL),
        file("own_x-1.2-py3-none-any.whl.metadata", TAMPERED),
    ]
    .into()
}

fn python_registry() -> Registry {
    let downloads = ["http://registry.test/files".parse().expect("a place")].into();
    Registry { downloads, ..registry(RegistryKind::Pypi, "/simple") }
}

#[tokio::test]
async fn of_python_wheels_come_and_nothing_that_is_built_first() {
    let bench = Bench::new(python_registry(), Known::default(), python(true)).await;
    for (path, reason) in [
        ("/simple/own-x/", "comes"),
        ("/files/ab/own_x-1.0-py3-none-any.whl", "comes"),
        ("/files/ab/own_x-1.0-py3-none-any.whl.metadata", "comes"),
        ("/files/ab/own_x-1.1-py3-none-any.whl", "package-too-fresh"),
        ("/files/ab/own_x-1.0.tar.gz", "package-install-script"),
        ("/files/ab/own_x-1.2-py3-none-any.whl", "package-digest"),
        ("/files/ab/own_x-1.2-py3-none-any.whl.metadata", "package-digest"),
        ("/files/ab/own_x-7.0-py3-none-any.whl", "package-unlisted"),
        // What is before the name of a file is the registry's to say.
        ("/files/secret/own_x-1.0-py3-none-any.whl", "package-unlisted"),
        ("/files/secret/files/ab/own_x-1.0-py3-none-any.whl", "package-unlisted"),
        ("/simple/requests/", "package-new-name"),
        ("/simple/", "package-path"),
        ("/files/ab/own_x-1.0-py3-none-any.whl.asc", "package-path"),
    ] {
        assert_eq!(bench.reason(path).await, reason, "{path}");
    }
    // A list as HTML does not say when a file came.
    let bench = Bench::new(python_registry(), Known::default(), python(false)).await;
    assert_eq!(bench.reason("/files/ab/own_x-1.0-py3-none-any.whl").await, "package-age-unknown");
    let lax = Registry { unknown_age: Unlisted::Allow, ..python_registry() };
    let bench = Bench::new(lax, Known::default(), python(false)).await;
    assert_eq!(bench.reason("/files/ab/own_x-1.0-py3-none-any.whl").await, "comes");
    assert_eq!(bench.reason("/files/ab/own_x-1.2-py3-none-any.whl").await, "package-digest");
}

/// A repository of Debian packages with one suite: a package as its index says, and one that is not.
fn debian() -> Files {
    let one = |name: &str, content: &[u8]| {
        format!(
            "Package: {name}\nVersion: 1:1.0-1\nFilename: pool/{name}_1.0-1_amd64.deb\nSHA256: {}\n",
            hex(&digest::SHA256, content)
        )
    };
    let mut index = GzEncoder::new(Vec::new(), Compression::fast());
    index.write_all([one("hello", CRATE), one("changed", CRATE)].join("\n").as_bytes()).expect("packs");
    let file = |name: &str, content: &[u8]| {
        (
            format!("/debian/pool/{name}_1.0-1_amd64.deb"),
            ("application/vnd.debian.binary-package", content.to_vec()),
        )
    };
    [
        (
            "/debian/dists/stable/main/binary-amd64/Packages.gz".to_owned(),
            ("application/gzip", index.finish().expect("packs")),
        ),
        ("/debian/dists/stable/InRelease".to_owned(), ("text/plain", b"Suite: stable".to_vec())),
        file("hello", CRATE),
        file("changed", TAMPERED),
        file("unlisted", CRATE),
    ]
    .into()
}

#[tokio::test]
async fn of_debian_packages_come_that_are_what_the_index_of_a_named_suite_says() {
    let suites = ["stable/main".to_owned()].into();
    let own = Registry {
        suites,
        deny: ["denied".parse().expect("a pattern")].into(),
        ..registry(RegistryKind::Debian, "/debian")
    };
    let bench = Bench::new(own, Known::default(), debian()).await;
    for (path, reason) in [
        ("/debian/dists/stable/InRelease", "comes"),
        ("/debian/dists/stable/main/binary-amd64/Packages.gz", "comes"),
        ("/debian/pool/hello_1.0-1_amd64.deb", "comes"),
        ("/debian/pool/changed_1.0-1_amd64.deb", "package-digest"),
        ("/debian/pool/unlisted_1.0-1_amd64.deb", "package-unlisted"),
        ("/debian/pool/denied_1.0-1_amd64.deb", "package-denied"),
        ("/debian/dists/testing/InRelease", "package-path"),
        ("/debian/pool/hello_1.0-1.dsc", "package-path"),
    ] {
        assert_eq!(bench.reason(path).await, reason, "{path}");
    }
}
