//! The simple repository API of Python, as JSON and as HTML (PEP 503, 691, 700, 658 and 714).

use std::collections::BTreeMap;

use model::egress::{Checksum, RegistryKind};
use serde::Deserialize;
use serde_json::Value;

use super::protocol::{Asks, FileAsked};
use super::release::{Release, moment};
use super::request::PYPI_JSON;

/// Which forms of a list are read, the one that says most first.
pub(crate) const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
/// The endings of source distributions.
const SOURCES: [&str; 6] = [".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".tar.Z"];
/// What is beside a wheel: its metadata (PEP 658).
const BESIDE: &str = ".metadata";

#[derive(Deserialize)]
struct List {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    upload_time: Option<String>,
    #[serde(default, alias = "dist-info-metadata", alias = "data-dist-info-metadata")]
    core_metadata: Value,
}

/// Reads what a path below the index asks for.
pub(crate) fn lists(below: &str) -> Option<Asks> {
    RegistryKind::Pypi.name(below.strip_suffix('/').unwrap_or(below)).map(Asks::List)
}

/// Reads which file a path is, wherever the registry keeps it.
pub(crate) fn file(below: &str) -> Option<Asks> {
    let last = below.rsplit('/').next()?;
    let (file, beside) = last.strip_suffix(BESIDE).map_or((last, false), |file| (file, true));
    let (name, version) = parts(file)?;
    let spelled = name.clone();
    Some(Asks::File(FileAsked {
        name,
        spelled,
        version,
        path: String::new(),
        file: Some(file.to_owned()),
        beside,
    }))
}

/// Reads name and version off a file name.
fn parts(file: &str) -> Option<(String, String)> {
    let (name, version) = match file.strip_suffix(".whl") {
        Some(wheel) => {
            let parts: Vec<&str> = wheel.split('-').collect();
            matches!(parts.len(), 5 | 6).then(|| (parts[0], parts[1]))?
        }
        None => source(file)?.rsplit_once('-')?,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".!+_".contains(&byte);
    let whole = !version.is_empty() && version.bytes().all(fits);
    Some((RegistryKind::Pypi.name(name)?, version.to_owned())).filter(|_| whole)
}

/// Returns a source distribution without its ending.
fn source(file: &str) -> Option<&str> {
    SOURCES.iter().find_map(|ending| file.strip_suffix(ending))
}

/// Reads a list in either form.
pub(crate) fn releases(name: &str, form: &str, body: &[u8]) -> Result<Vec<Release>, String> {
    let listed = if form.starts_with(PYPI_JSON) {
        serde_json::from_slice::<List>(body).map_err(|error| error.to_string())?.files
    } else {
        anchors(&String::from_utf8_lossy(body))
    };
    // A list may hold files that are named in other ways; they are not asked for.
    Ok(listed.into_iter().filter_map(|one| release(name, one)).collect())
}

fn release(name: &str, listed: Listed) -> Option<Release> {
    let (of, version) = parts(&listed.filename)?;
    let runs = source(&listed.filename).map(|_| "its own build, being a source distribution,".to_owned());
    let beside = listed.core_metadata.as_object().into_iter().flatten();
    let beside = beside.filter_map(|(algorithm, digest)| checksum(algorithm, digest.as_str()?)).collect();
    let release = Release {
        version,
        checksums: listed
            .hashes
            .iter()
            .filter_map(|(algorithm, digest)| checksum(algorithm, digest))
            .collect(),
        beside,
        published: listed.upload_time.as_deref().and_then(moment),
        runs,
        at: Some(listed.url),
        file: Some(listed.filename),
    };
    (of == name).then_some(release)
}

/// Returns the path of an address in the list of a project, below this index.
pub(crate) fn path_of(index: &str, name: &str, url: &str) -> String {
    let address = url.split(['#', '?']).next().unwrap_or_default();
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => address,
    };
    let mut segments: Vec<&str> =
        if path.starts_with('/') { Vec::new() } else { index.split('/').chain([name]).collect() };
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let whole: Vec<&str> = segments.into_iter().filter(|segment| !segment.is_empty()).collect();
    format!("/{}", whole.join("/")).replace("%2B", "+").replace("%2b", "+")
}

fn checksum(algorithm: &str, digest: &str) -> Option<Checksum> {
    format!("{algorithm}:{digest}").parse().ok()
}

/// Reads the links of a list as HTML: the file name from the end of each address, and its digest from what follows a `#`.
fn anchors(text: &str) -> Vec<Listed> {
    let targets = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    targets.map(anchor).collect()
}

fn anchor(target: &str) -> Listed {
    let (address, fragment) = target.split_once('#').unwrap_or((target, ""));
    let filename = address.split('?').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let hashes =
        fragment.split_once('=').map(|(algorithm, digest)| (algorithm.to_owned(), digest.to_owned()));
    Listed {
        filename: filename.replace("%2B", "+").replace("%2b", "+"),
        url: address.to_owned(),
        hashes: hashes.into_iter().collect(),
        upload_time: None,
        core_metadata: Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_projects_and_their_files() {
        let read = |below: &str| match file(below) {
            Some(Asks::File(asked)) => Some((asked.name, asked.version, asked.beside)),
            _ => None,
        };
        let of = |name: &str, version: &str, beside| Some((name.to_owned(), version.to_owned(), beside));
        assert_eq!(
            read("x/y/Zope.Interface-7.0-cp311-cp311-linux_x86_64.whl"),
            of("zope-interface", "7.0", false)
        );
        assert_eq!(read("six-1.17.0-py2.py3-none-any.whl.metadata"), of("six", "1.17.0", true));
        assert_eq!(read("six-1.17.0-1-py2.py3-none-any.whl"), of("six", "1.17.0", false));
        assert_eq!(read("python-dateutil-2.9.0.tar.gz"), of("python-dateutil", "2.9.0", false));
        for other in ["six-1.17.0.exe", "six.whl", "a-b.whl", "six-.tar.gz", "six-1.0.tar.gz.asc", ""] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(lists("Six_X/"), Some(Asks::List("six-x".to_owned())));
        assert_eq!((lists(""), lists("six/more/")), (None, None));
    }

    #[test]
    fn both_forms_of_a_list_say_what_a_file_is() {
        let sum = "ab".repeat(32);
        let json = format!(
            r#"{{"files":[{{"filename":"six-1.0.tar.gz","url":"u","hashes":{{"sha256":"{sum}","md5":"x"}},"upload-time":"2020-01-01T00:00:00.5Z"}},
            {{"filename":"six-1.0-py3-none-any.whl","url":"u","hashes":{{"sha256":"{sum}"}},"core-metadata":{{"sha256":"{sum}"}}}},
            {{"filename":"other-1.0-py3-none-any.whl","url":"u","hashes":{{}}}}, {{"filename":"six.exe","url":"u"}}]}}"#
        );
        let read = releases("six", PYPI_JSON, json.as_bytes()).expect("is one");
        assert_eq!((read.len(), read[0].at.as_deref()), (2, Some("u")));
        let path = |url: &str| path_of("/api/simple", "six", url);
        assert_eq!(path("https://a.test/p/x%2B1.whl#sha256=0"), "/p/x+1.whl");
        assert_eq!(
            (path("../../p/x.whl"), path("x.whl"), path("/p/x.whl")),
            ("/api/p/x.whl".to_owned(), "/api/simple/six/x.whl".to_owned(), "/p/x.whl".to_owned())
        );
        assert!(read[0].runs.is_some() && read[0].published.is_some() && read[1].runs.is_none());
        assert_eq!((read[0].checksums.len(), read[1].beside.len()), (1, 1));
        let html = format!(
            r#"<a href="../../p/six-1.0%2Bx-py3-none-any.whl#sha256={sum}">six</a><a href="x">x</a>"#
        );
        let read = releases("six", "text/html", html.as_bytes()).expect("is one");
        assert_eq!((read[0].version.as_str(), read[0].checksums.len(), read.len()), ("1.0+x", 1, 1));
        assert!(releases("six", PYPI_JSON, b"{").is_err());
    }
}
