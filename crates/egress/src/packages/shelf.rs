//! One registry: each request to it read, decided, and what comes of it looked at.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use http::{Response, StatusCode, request};
use model::egress::{HostPattern, PackageUse, Place, Registry, RegistryKind, RequestPath};
use model::text::escape;

use super::archive::Archive;
use super::file::{self, File};
use super::lists::{self, Downloads, LIST_MAX, List, Listed, Settings};
use super::protocol::{self, Asks, FileAsked};
use super::release::Release;
use super::template::Template;
use super::{Known, cargo, judge, pypi, request as asking};
use crate::Refusal;
use crate::attempts::now;
use crate::http::Host;
use crate::http::hook::{Asked, Exchange, Hook, Later};

/// The code of what a registry does not list.
const UNLISTED: &str = "package-unlisted";

/// One registry.
#[derive(Debug)]
pub(crate) struct Shelf {
    registry: Arc<Registry>,
    known: Arc<Known>,
    listed: Listed,
    downloads: Downloads,
}

impl Hook for Shelf {
    fn request<'a>(
        &'a self,
        asked: Asked<'a>,
        head: &'a mut request::Parts,
    ) -> Later<'a, Result<Box<dyn Exchange>, Refusal>> {
        Box::pin(self.look(asked, head))
    }
}

impl Shelf {
    pub(crate) fn new(registry: Registry, known: Arc<Known>) -> Self {
        Self {
            registry: Arc::new(registry),
            known,
            listed: Listed::default(),
            downloads: Downloads::default(),
        }
    }

    async fn look(&self, asked: Asked<'_>, head: &mut request::Parts) -> Result<Box<dyn Exchange>, Refusal> {
        let kind = self.registry.kind;
        asking::narrow(head, kind)?;
        let method = head.method.clone();
        match self.asks(&asked, head).await? {
            Asks::Settings => {
                let (registry, downloads) = (self.registry.clone(), self.downloads.clone());
                Ok(Box::new(Settings { registry, downloads, method }))
            }
            Asks::Index => {
                let (name, listed) = (String::new(), self.listed.clone());
                Ok(Box::new(List { kind, name, listed, method, form: None }))
            }
            Asks::List(name) => {
                asked.notes.package(self.told(&name));
                judge::name(&self.registry, &self.known, &name)?;
                Ok(Box::new(List { kind, name, listed: self.listed.clone(), method, form: None }))
            }
            Asks::File(of) => {
                let told = PackageUse { version: Some(of.version.clone()), ..self.told(&of.name) };
                asked.notes.package(told);
                judge::name(&self.registry, &self.known, &of.name)?;
                let release = self.release(&asked, &of).await?;
                judge::release(&self.registry, &self.known, (&of.name, &release), now())?;
                Ok(Box::new(self.file(&asked, &of, &release, method)))
            }
        }
    }

    /// Reads what is asked for, and writes that down in one spelling.
    async fn asks(&self, asked: &Asked<'_>, head: &mut request::Parts) -> Result<Asks, Refusal> {
        let other = || {
            let why = format!(
                "`{}` is nothing that a registry of the kind {} is asked for to fetch packages",
                escape(head.uri.path()),
                self.registry.kind
            );
            Refusal::new("package-path", why)
        };
        let path = RequestPath::parse(head.uri.path().as_bytes()).map_err(|_| other())?;
        let segments = path.segments().ok_or_else(other)?;
        let (at, whole) = (here(asked), format!("/{}", segments.join("/")));
        let mut asks = protocol::asks(&self.registry, &at, &whole);
        if asks.is_none() && self.registry.kind == RegistryKind::Cargo {
            asks = self.template(asked).await?.reads(&at, &whole).and_then(crate_file);
        }
        let mut asks = asks.ok_or_else(other)?;
        if let Asks::File(of) = &mut asks {
            of.path = whole;
        }
        asking::spell(head, &segments);
        Ok(asks)
    }

    /// Returns where the files are; the registry is asked when it did not say so yet.
    async fn template(&self, asked: &Asked<'_>) -> Result<Arc<Template>, Refusal> {
        let said = self.downloads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(said) = said {
            return Ok(said);
        }
        let answer = self.get(asked, cargo::SETTINGS, None).await?;
        let template = Arc::new(lists::downloads(&self.registry, answer.body())?);
        *self.downloads.lock().unwrap_or_else(PoisonError::into_inner) = Some(template.clone());
        Ok(template)
    }

    /// Returns what the registry lists of a file; it is asked when it did not say so yet.
    async fn release(&self, asked: &Asked<'_>, of: &FileAsked) -> Result<Release, Refusal> {
        let said = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(&of.name).cloned();
        let said = match said.filter(|said| said.iter().any(|release| self.is_of(release, of))) {
            Some(said) => said,
            None => self.list(asked, of).await?,
        };
        said.iter().find(|release| self.is_of(release, of)).cloned().ok_or_else(|| {
            let file = of.file.as_deref().unwrap_or(&of.version);
            let why = format!("the registry lists no `{}` of {}", escape(file), of.name);
            Refusal::new(UNLISTED, why)
        })
    }

    /// Tells whether a file is what is asked for, at the very path that its registry gives it at.
    fn is_of(&self, release: &Release, of: &FileAsked) -> bool {
        let there = |at: &String| {
            let path =
                if of.beside { of.path.strip_suffix(".metadata").unwrap_or(&of.path) } else { &of.path };
            pypi::path_of(&self.registry.index.path, &of.name, at) == path
        };
        let named = of.file.is_none() || release.file == of.file;
        release.version == of.version && named && release.at.as_ref().is_none_or(there)
    }

    /// Asks for what the registry lists of a package: of several lists until one has the file.
    async fn list(&self, asked: &Asked<'_>, of: &FileAsked) -> Result<Arc<Vec<Release>>, Refusal> {
        let (lists, accept) = protocol::lists(&self.registry, &of.spelled);
        let (mut found, mut had, only) = (Arc::default(), String::new(), lists.len() == 1);
        for below in lists {
            // The second form of a list that was had says the same.
            if below.rsplit_once('.').is_some_and(|(stem, _)| stem == had) && !only {
                continue;
            }
            let answer = match self.get(asked, &below, accept).await {
                Err(refusal) if refusal.reason == UNLISTED && !only => continue,
                answer => answer?,
            };
            had = below.rsplit_once('.').map(|(stem, _)| stem.to_owned()).unwrap_or_default();
            let (head, body) = answer.into_parts();
            lists::is_plain(&head)?;
            let read = protocol::listed(self.registry.kind, &of.name, &lists::form(&head), &body);
            lists::keep(&self.listed, read.map_err(|why| lists::unreadable(&of.name, &why))?);
            let said = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(&of.name).cloned();
            found = said.unwrap_or_default();
            if found.iter().any(|release| self.is_of(release, of)) {
                break;
            }
        }
        Ok(found)
    }

    /// Asks the index for something.
    async fn get(
        &self,
        asked: &Asked<'_>,
        below: &str,
        accept: Option<&'static str>,
    ) -> Result<Response<Bytes>, Refusal> {
        let path = format!("{}/{below}", self.registry.index.path);
        let answer = asked.fetch.get(&self.registry.index, &path, accept, LIST_MAX).await?;
        if answer.status() == StatusCode::OK {
            return Ok(answer);
        }
        let why = format!(
            "the registry `{}` answers {} when it is asked for it",
            self.registry.name,
            answer.status()
        );
        Err(Refusal::new(UNLISTED, why))
    }

    fn told(&self, name: &str) -> PackageUse {
        PackageUse {
            registry: self.registry.name.clone(),
            kind: self.registry.kind,
            name: name.to_owned(),
            version: None,
            digest: None,
            published: None,
            locked: false,
        }
    }

    fn file(&self, asked: &Asked<'_>, of: &FileAsked, release: &Release, method: http::Method) -> File {
        let locked = self.known.locked(self.registry.kind, &of.name, &of.version);
        let package = PackageUse {
            version: Some(of.version.clone()),
            published: release.published,
            locked: locked.is_some(),
            ..self.told(&of.name)
        };
        let shown = format!("{} {}", of.name, escape(&of.version));
        let wants = if of.beside {
            vec![("the registry lists", release.beside.clone())]
        } else {
            vec![
                ("the registry lists", release.checksums.clone()),
                ("the lockfile names", locked.cloned().unwrap_or_default()),
            ]
        };
        let hashes = file::hashes(&wants);
        let notes = asked.notes.clone();
        let archive = self.archive(of, &shown);
        File { package, shown, notes, method, wants, archive, hashes, whole: !of.beside, comes: false }
    }

    /// Returns what looks into a file for what it runs: of npm's, whose registries do not say it of what is in the file.
    fn archive(&self, of: &FileAsked, shown: &str) -> Option<(Archive, Box<file::Refuse>)> {
        let looked = self.registry.kind == RegistryKind::Npm && !judge::may_run(&self.registry, &of.name);
        let (registry, shown) = (self.registry.clone(), shown.to_owned());
        let refuse = move |runs: &str| judge::script(&registry, &shown, runs);
        looked.then(|| (Archive::default(), Box::new(refuse) as Box<file::Refuse>))
    }
}

fn crate_file((spelled, version): (String, String)) -> Option<Asks> {
    let name = RegistryKind::Cargo.name(&spelled)?;
    Some(Asks::File(FileAsked { name, spelled, version, path: String::new(), file: None, beside: false }))
}

/// Returns the place that is asked.
fn here(asked: &Asked<'_>) -> Place {
    let host = match &asked.target.host {
        Host::Name(name) => HostPattern::Name(name.clone()),
        Host::Address(address) => HostPattern::Address(*address),
    };
    Place { protocol: asked.rule.protocol, host, port: asked.target.port, path: String::new() }
}
