//! Repositories of Debian packages (the Debian wiki, "RepositoryFormat"): indexes below `dists/`, packages below `pool/`.
//!
//! Signatures are the client's to check; what the gateway goes by is what the index says that the repository gives for each suite.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::LazyLock;

use flate2::read::MultiGzDecoder;
use model::egress::{Registry, RegistryKind};
use regex::Regex;

use super::protocol::{Asks, FileAsked};
use super::release::Release;

/// The most that an index unpacks to.
const INDEX_MAX: usize = 512 << 20;
/// How every xz file begins.
const XZ: &[u8] = b"\xfd7zXZ\0";
/// What is asked for below a suite: what is signed, and below a component the indexes, also by their digests.
static INDEX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names =
        "(Packages|Sources|Release|Index|Translation-[A-Za-z_]+|Components-[a-z0-9]+|Commands-[a-z0-9]+)";
    let files = format!(
        "{names}(\\.yml)?(\\.(gz|xz|bz2|zst|lzma))?|by-hash/(MD5Sum|SHA1|SHA256|SHA512)/[0-9a-f]{{32,128}}"
    );
    Regex::new(&format!("^(binary-[a-z0-9-]+|source|i18n|dep11|cnf)/({files})$")).ok()
});

/// Reads what a path below the repository asks for.
pub(crate) fn asks(registry: &Registry, below: &str) -> Option<Asks> {
    match below.strip_prefix("dists/") {
        Some(index) => registry.suites.iter().any(|suite| is_index(suite, index)).then_some(Asks::Index),
        None => file(below),
    }
}

/// Tells whether a path below `dists/` is one of a suite with its component.
fn is_index(suite: &str, path: &str) -> bool {
    let Some((suite, component)) = suite.rsplit_once('/') else { return false };
    let Some(rest) = path.strip_prefix(suite).and_then(|rest| rest.strip_prefix('/')) else { return false };
    let of_component = rest.strip_prefix(component).and_then(|rest| rest.strip_prefix('/'));
    matches!(rest, "InRelease" | "Release" | "Release.gpg")
        || of_component.is_some_and(|rest| INDEX.as_ref().is_some_and(|index| index.is_match(rest)))
}

/// Reads which package a path is: `…/NAME_VERSION_ARCHITECTURE.deb`.
fn file(below: &str) -> Option<Asks> {
    let (name, version) = parts(below)?;
    let spelled = architecture(below)?.to_owned();
    Some(Asks::File(FileAsked {
        name,
        spelled,
        version,
        path: String::new(),
        file: Some(below.to_owned()),
        beside: false,
    }))
}

fn parts(path: &str) -> Option<(String, String)> {
    let bare = path.rsplit('/').next()?.strip_suffix(".deb")?;
    let mut parts = bare.split('_');
    let (name, version) = (RegistryKind::Debian.name(parts.next()?)?, parts.next()?);
    let whole = parts.next().is_some() && parts.next().is_none() && !version.is_empty();
    whole.then(|| (name, version.to_owned()))
}

/// Returns for which machines a package is. One for all of them is in the index of each.
fn architecture(path: &str) -> Option<&str> {
    match path.rsplit_once('_')?.1.strip_suffix(".deb")? {
        "all" if cfg!(target_arch = "aarch64") => Some("arm64"),
        "all" => Some("amd64"),
        other => other
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            .then_some(other),
    }
}

/// Returns where the packages of an architecture are listed, for each suite: in either form that repositories have.
pub(crate) fn lists(registry: &Registry, architecture: &str) -> Vec<String> {
    let both = |suite: &String| {
        let list = format!("dists/{suite}/binary-{architecture}/Packages");
        [format!("{list}.gz"), format!("{list}.xz")]
    };
    registry.suites.iter().flat_map(both).collect()
}

/// Unpacks an index in the form that its first bytes say.
fn unpacked(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = Bounded(Vec::new());
    let done = if packed.starts_with(XZ) {
        lzma_rs::xz_decompress(&mut &packed[..], &mut text).map_err(|error| error.to_string())
    } else {
        std::io::copy(&mut MultiGzDecoder::new(packed), &mut text)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    done.map(|()| text.0)
}

/// Text up to the most that an index unpacks to.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > INDEX_MAX {
            return Err(io::Error::other("it unpacks to too much"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads an index: paragraphs with `Key: value`, of which `Filename` and the digests count.
pub(crate) fn releases(packed: &[u8]) -> Result<BTreeMap<String, Vec<Release>>, String> {
    let text = unpacked(packed)?;
    let mut all = BTreeMap::<String, Vec<Release>>::new();
    let (mut file, mut checksums) = (None, BTreeSet::new());
    // An empty line ends a paragraph, and so does the end.
    for line in text.split(|byte| *byte == b'\n').chain([&b""[..]]) {
        let line = String::from_utf8_lossy(line);
        match line.split_once(": ") {
            Some(("Filename", path)) => file = Some(path.trim().to_owned()),
            Some(("SHA256", hex)) => checksums.extend(format!("sha256:{}", hex.trim()).parse()),
            Some(("SHA512", hex)) => checksums.extend(format!("sha512:{}", hex.trim()).parse()),
            _ if line.trim().is_empty() => {
                let (file, checksums) = (file.take(), std::mem::take(&mut checksums));
                let Some((file, (name, version))) =
                    file.and_then(|file| parts(&file).map(|both| (file, both)))
                else {
                    continue;
                };
                let beside = BTreeSet::new();
                let release = Release {
                    version,
                    file: Some(file),
                    at: None,
                    checksums,
                    beside,
                    published: None,
                    runs: None,
                };
                all.entry(name).or_default().push(release);
            }
            _ => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn indexes_of_named_suites_and_packages_are_read_and_nothing_else() {
        let place = "http://a.test/debian".parse().expect("a place");
        let registry = Registry {
            suites: ["stable/main", "stable/updates/main"].map(str::to_owned).into(),
            ..Registry::at("d", RegistryKind::Debian, place)
        };
        for index in [
            "dists/stable/InRelease",
            "dists/stable/main/binary-amd64/Packages.xz",
            "dists/stable/main/i18n/Translation-en.bz2",
            "dists/stable/main/binary-amd64/by-hash/SHA256/0123456789abcdef0123456789abcdef",
            "dists/stable/updates/main/binary-amd64/Packages.gz",
        ] {
            assert_eq!(asks(&registry, index), Some(Asks::Index), "{index}");
        }
        for other in [
            "dists/testing/InRelease",
            "dists/stable/contrib/binary-amd64/Packages.xz",
            "dists/stable/main/secret",
            "dists/stable",
            "pool/main/h/hello/hello_2.10.dsc",
            "pool/main/h/hello/hello.deb",
            "pool/main/h/hello/hello_2.10_amd64_x.deb",
            "project/trace",
        ] {
            assert_eq!(asks(&registry, other), None, "{other}");
        }
        let Some(Asks::File(asked)) = asks(&registry, "pool/main/g/gcc/g++_12.2.0-1_amd64.deb") else {
            panic!("is one")
        };
        assert_eq!(
            (asked.name.as_str(), asked.version.as_str(), asked.spelled.as_str()),
            ("g++", "12.2.0-1", "amd64")
        );
        assert_eq!(lists(&registry, "amd64")[0], "dists/stable/main/binary-amd64/Packages.gz");
    }

    #[test]
    fn an_index_says_what_each_file_is() {
        let text = format!(
            "Package: hello\nVersion: 1:2.10-3\nFilename: pool/h/hello_2.10-3_amd64.deb\nSHA256: {0}\n\nPackage: x\nSHA256: {0}\n\nPackage: y\nFilename: pool/y_1_all.deb\n",
            "ab".repeat(32)
        );
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).expect("packs");
        let read = releases(&gzip.finish().expect("packs")).expect("is one");
        assert_eq!(read.keys().collect::<Vec<_>>(), ["hello", "y"]);
        let hello = &read["hello"][0];
        assert_eq!((hello.version.as_str(), hello.checksums.len()), ("2.10-3", 1));
        assert!(releases(b"no gzip").is_err() && releases(XZ).is_err());
        let mut packed = Vec::new();
        lzma_rs::xz_compress(&mut text.as_bytes(), &mut packed).expect("packs");
        assert_eq!(releases(&packed).expect("is one"), read);
    }
}
