//! What a registry says: passed on as it is, and kept where it decides about files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, StatusCode, header, response};
use model::egress::{Registry, RegistryKind};
use model::text::escape;

use super::protocol::listed;
use super::release::Release;
use super::request::PYPI_JSON;
use super::{cargo, template::Template};
use crate::Refusal;
use crate::http::hook::{Exchange, Reading};

/// The largest list that is read whole.
pub(crate) const LIST_MAX: usize = 64 << 20;
/// The largest answer that is no list and no file.
const OTHER_MAX: usize = 1 << 20;

/// What was listed of packages, by their names.
pub(crate) type Listed = Arc<Mutex<BTreeMap<String, Arc<Vec<Release>>>>>;
/// Where the files of a registry are, once it said so.
pub(crate) type Downloads = Arc<Mutex<Option<Arc<Template>>>>;

/// The answer to what a registry says of itself.
pub(crate) struct Settings {
    pub(crate) registry: Arc<Registry>,
    pub(crate) downloads: Downloads,
    pub(crate) method: Method,
}

/// The answer to what it has of a package.
pub(crate) struct List {
    pub(crate) kind: RegistryKind,
    pub(crate) name: String,
    pub(crate) listed: Listed,
    pub(crate) method: Method,
    /// What form it came in, when it is read.
    pub(crate) form: Option<String>,
}

impl Exchange for Settings {
    fn response(&mut self, head: &mut response::Parts) -> Result<Reading, Refusal> {
        if self.method == Method::HEAD {
            return Ok(Reading::Pass);
        }
        is_plain(head)?;
        if head.status == StatusCode::OK {
            return Ok(Reading::Whole { bytes_max: OTHER_MAX });
        }
        self.method = Method::HEAD;
        Ok(nothing())
    }

    fn whole(&mut self, body: Bytes) -> Result<Bytes, Refusal> {
        if self.method == Method::HEAD {
            return Ok(Bytes::new());
        }
        let template = downloads(&self.registry, &body)?;
        *self.downloads.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(template));
        Ok(body)
    }
}

/// Reads where the files of a registry of cargo are.
pub(crate) fn downloads(registry: &Registry, body: &[u8]) -> Result<Template, Refusal> {
    cargo::downloads(body, registry.places()).map_err(|why| {
        let why = format!(
            "what the registry `{}` says of itself cannot be gone by: {}",
            registry.name,
            escape(&why)
        );
        Refusal::new("registry-elsewhere", why)
    })
}

impl Exchange for List {
    fn response(&mut self, head: &mut response::Parts) -> Result<Reading, Refusal> {
        if self.method == Method::HEAD {
            return Ok(Reading::Pass);
        }
        if head.status != StatusCode::OK {
            (self.method, self.form) = (Method::HEAD, None);
            return Ok(nothing());
        }
        is_plain(head)?;
        let form = form(head);
        // What npm lists is asked for in its short form, which does not say when a version was published.
        let read = match self.kind {
            RegistryKind::Cargo => true,
            RegistryKind::Pypi => form.starts_with(PYPI_JSON),
            RegistryKind::Npm | RegistryKind::Debian => false,
        };
        self.form = read.then_some(form);
        Ok(if read { Reading::Whole { bytes_max: LIST_MAX } } else { Reading::Pass })
    }

    fn whole(&mut self, body: Bytes) -> Result<Bytes, Refusal> {
        let Some(form) = &self.form else { return Ok(Bytes::new()) };
        let read = listed(self.kind, &self.name, form, &body).map_err(|why| unreadable(&self.name, &why))?;
        keep(&self.listed, read);
        Ok(body)
    }
}

/// Keeps what was listed; of a name that was listed before, in the place of that.
pub(crate) fn keep(all: &Listed, read: BTreeMap<String, Vec<Release>>) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(read.into_iter().map(|(name, releases)| (name, Arc::new(releases))));
}

/// Reads an answer that is no list and no file, to leave it out.
pub(crate) fn nothing() -> Reading {
    Reading::Whole { bytes_max: OTHER_MAX }
}

/// Returns the form of an answer.
pub(crate) fn form(head: &response::Parts) -> String {
    let form = head.headers.get(header::CONTENT_TYPE).and_then(|form| form.to_str().ok());
    form.unwrap_or_default().to_ascii_lowercase()
}

/// Says that a list cannot be read.
pub(crate) fn unreadable(name: &str, why: &str) -> Refusal {
    Refusal::new(
        "package-unreadable",
        format!("what the registry has of {name} cannot be read: {}", escape(why)),
    )
}

/// Refuses what is encoded though nobody asked for it: it could not be looked at.
pub(crate) fn is_plain(head: &response::Parts) -> Result<(), Refusal> {
    match head.headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(Refusal::new("package-unreadable", "the registry encoded what was to be looked at"))
        }
        _ => Ok(()),
    }
}
