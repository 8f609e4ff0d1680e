//! A file on its way in: hashed while it passes, and looked into where what it runs is in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode, header, response};
use model::egress::{Algorithm, Checksum, PackageUse};
use ring::digest;

use super::archive::Archive;
use super::{judge, lists};
use crate::Refusal;
use crate::http::hook::{Exchange, Notes, Reading};

/// The largest file that is read whole before any of it passes, so that a no can be an answer with its reason.
const WHOLE_MAX: usize = 8 << 20;

/// A file on its way in.
pub(crate) struct File {
    /// The package that it is of, as it is told.
    pub(crate) package: PackageUse,
    /// The same for people.
    pub(crate) shown: String,
    pub(crate) notes: Arc<dyn Notes>,
    pub(crate) method: Method,
    /// What it must be, each by who says so: of one algorithm, one of those.
    pub(crate) wants: Vec<(&'static str, BTreeSet<Checksum>)>,
    /// What is looked into for what it runs, with what refuses that.
    pub(crate) archive: Option<(Archive, Box<Refuse>)>,
    pub(crate) hashes: Vec<(Algorithm, digest::Context)>,
    /// Whether it is the package itself.
    pub(crate) whole: bool,
    /// Whether it is the file that was asked for, and not another answer.
    pub(crate) comes: bool,
}

/// Says no to what runs when it is installed.
pub(crate) type Refuse = dyn Fn(&str) -> Refusal + Send;

/// Begins to hash with all algorithms that are wanted, and the one that is recorded.
pub(crate) fn hashes(wants: &[(&'static str, BTreeSet<Checksum>)]) -> Vec<(Algorithm, digest::Context)> {
    let wanted = wants.iter().flat_map(|(_, all)| all).map(|checksum| checksum.algorithm);
    let all: BTreeSet<Algorithm> = wanted.chain([Algorithm::Sha256]).collect();
    all.into_iter().map(|algorithm| (algorithm, digest::Context::new(made_by(algorithm)))).collect()
}

fn made_by(algorithm: Algorithm) -> &'static digest::Algorithm {
    match algorithm {
        Algorithm::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        Algorithm::Sha256 => &digest::SHA256,
        Algorithm::Sha384 => &digest::SHA384,
        Algorithm::Sha512 => &digest::SHA512,
    }
}

impl Exchange for File {
    fn response(&mut self, head: &mut response::Parts) -> Result<Reading, Refusal> {
        if self.method == Method::HEAD {
            return Ok(Reading::Pass);
        }
        self.comes = head.status == StatusCode::OK;
        if !self.comes {
            return Ok(lists::nothing());
        }
        lists::is_plain(head)?;
        let length: Option<usize> =
            head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        match length {
            Some(length) if length <= WHOLE_MAX => Ok(Reading::Whole { bytes_max: WHOLE_MAX }),
            _ => Ok(Reading::Pieces),
        }
    }

    fn whole(&mut self, body: Bytes) -> Result<Bytes, Refusal> {
        if !self.comes {
            return Ok(Bytes::new());
        }
        self.piece(&body)?;
        self.end().map(|()| body)
    }

    fn piece(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        self.hashes.iter_mut().for_each(|(_, hash)| hash.update(piece));
        match &mut self.archive {
            Some((archive, _)) => archive.push(piece).map_err(|why| unreadable(&self.shown, &why)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let made = std::mem::take(&mut self.hashes).into_iter();
        let made: BTreeSet<Checksum> =
            made.map(|(algorithm, hash)| Checksum::new(algorithm, hash.finish().as_ref())).collect();
        let other = |(_, all): &&(&str, BTreeSet<Checksum>)| !all.is_empty() && !agrees(&made, all);
        if let Some((says, _)) = self.wants.iter().find(other) {
            return Err(judge::differs(&self.shown, says));
        }
        if let Some((archive, refuse)) = self.archive.take()
            && let Some(runs) = archive.end().map_err(|why| unreadable(&self.shown, &why))?
        {
            return Err(refuse(&runs));
        }
        let recorded = made.into_iter().find(|one| one.algorithm == Algorithm::Sha256);
        self.package.digest = recorded.filter(|_| self.whole);
        self.notes.package(self.package.clone());
        Ok(())
    }
}

/// Tells whether what was made is among what is wanted, for each algorithm that is wanted.
fn agrees(made: &BTreeSet<Checksum>, wanted: &BTreeSet<Checksum>) -> bool {
    let algorithms: BTreeSet<Algorithm> = wanted.iter().map(|checksum| checksum.algorithm).collect();
    made.iter().filter(|one| algorithms.contains(&one.algorithm)).all(|one| wanted.contains(one))
}

fn unreadable(shown: &str, why: &str) -> Refusal {
    Refusal::new(
        "package-unreadable",
        format!("what {shown} runs when it is installed cannot be told: {why}"),
    )
}
