//! The authority of this machine, which signs what clients inside are shown where a rule has to look into TLS.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use model::egress::{Secret, SigningAuthority};
use model::units::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustix::fs::OFlags;
use time::OffsetDateTime;

/// How long an authority is valid.
const LIFETIME: Duration = Duration::from_secs(365 * DAY);
/// How long before its end another one is made in its place: longer than any action runs.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * DAY);
/// How far the clocks of clients may be behind.
const SKEW: Duration = Duration::from_secs(DAY);
const DAY: u64 = 24 * 60 * 60;
/// The largest file that is one, in bytes.
const FILE_MAX: u64 = 16 * 1024;

/// A certificate that may sign others, and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority(SigningAuthority);

/// Says why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Its file cannot be used.
    #[error("the file of the authority, `{}`, cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// Others may read or write its file.
    #[error("the file of the authority, `{}`, is not its owner's alone: remove it, and another authority is made", .0.display())]
    Open(PathBuf),
    /// Its file holds none.
    #[error("`{}` holds no authority: remove it, and another one is made", .0.display())]
    Content(PathBuf, #[source] serde_json::Error),
    /// It has expired.
    #[error(
        "the authority that signs for clients inside has expired: end the action and start another one, which makes a new authority"
    )]
    Expired,
    /// Keys or certificates cannot be made.
    #[error("a certificate cannot be made")]
    Make(#[from] rcgen::Error),
}

impl Authority {
    /// Makes one that is valid from now on.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn make(now: Timestamp) -> Result<Self, AuthorityError> {
        let (key, until) = (KeyPair::generate()?, after(now, LIFETIME));
        let mut params = params();
        (params.not_before, params.not_after) = (date(before(now, SKEW)), date(until));
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self(SigningAuthority { certificate, key: Secret::new(key.serialize_pem()), until }))
    }

    /// Reads the one of this machine, and makes it, or another one when its end is near.
    ///
    /// # Errors
    /// When the file cannot be used, is not its owner's alone, or holds none: it is never put aside by itself.
    pub fn of_machine(file: &Path, now: Timestamp) -> Result<Self, AuthorityError> {
        match Self::read(file)? {
            Some(authority) if after(now, RENEW_BEFORE) < authority.until() => Ok(authority),
            _ => {
                let authority = Self::make(now)?;
                authority.write(file).map_err(|error| AuthorityError::File(file.to_owned(), error))?;
                Ok(authority)
            }
        }
    }

    /// Returns the certificate, as PEM: all of it that clients inside may know.
    pub fn certificate(&self) -> &str {
        &self.0.certificate
    }

    /// Returns its last moment.
    pub fn until(&self) -> Timestamp {
        self.0.until
    }

    /// Returns what signs, when it may still sign.
    pub(crate) fn issuer(&self, now: Timestamp) -> Result<Issuer<'static, KeyPair>, AuthorityError> {
        if now >= self.0.until {
            return Err(AuthorityError::Expired);
        }
        Ok(Issuer::new(params(), KeyPair::from_pem(self.0.key.reveal())?))
    }

    fn read(file: &Path) -> Result<Option<Self>, AuthorityError> {
        let failed = |error| AuthorityError::File(file.to_owned(), error);
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let opened = match OpenOptions::new().read(true).custom_flags(flags).open(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let about = opened.metadata().map_err(failed)?;
        let own = about.uid() == rustix::process::geteuid().as_raw();
        if !about.is_file() || !own || about.mode() & 0o077 != 0 {
            return Err(AuthorityError::Open(file.to_owned()));
        }
        let mut text = String::new();
        opened.take(FILE_MAX).read_to_string(&mut text).map_err(failed)?;
        let authority = serde_json::from_str(&text);
        authority
            .map(|read| Some(Self(read)))
            .map_err(|error| AuthorityError::Content(file.to_owned(), error))
    }

    /// Writes it at once or not at all. Of two that do so together one stays, and both have signed for their own action.
    fn write(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension(format!("{}.new", process::id()));
        let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let done = serde_json::to_vec(&self.0)
            .map_err(io::Error::from)
            .and_then(|text| written.write_all(&text))
            .and_then(|()| written.sync_all())
            .and_then(|()| fs::rename(&new, file));
        if done.is_err() {
            // The error that is told is the first one.
            let _ = fs::remove_file(&new);
        }
        done
    }
}

impl From<SigningAuthority> for Authority {
    fn from(said: SigningAuthority) -> Self {
        Self(said)
    }
}

impl From<Authority> for SigningAuthority {
    fn from(authority: Authority) -> Self {
        authority.0
    }
}

/// What is the same for every authority. It may sign for servers, and make no other authority.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Fumehood gateway of this machine");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

pub(crate) fn after(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_add(nanos(by)))
}

pub(crate) fn before(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_sub(nanos(by)))
}

fn nanos(of: Duration) -> u64 {
    of.as_nanos().try_into().unwrap_or(u64::MAX)
}

pub(crate) fn date(time: Timestamp) -> OffsetDateTime {
    // INVARIANT: 64 bits of nanoseconds are within the years that a date has.
    OffsetDateTime::from_unix_timestamp_nanos(time.as_nanos().into()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Timestamp = Timestamp::from_nanos(1_800_000_000_000_000_000);

    #[test]
    fn the_machine_keeps_one_authority_until_its_end_is_near() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("authority.json");
        let first = Authority::of_machine(&file, NOW).expect("made");
        let mode = fs::metadata(&file).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Authority::of_machine(&file, NOW).expect("read"), first);
        let near = before(first.until(), RENEW_BEFORE);
        let second = Authority::of_machine(&file, near).expect("made anew");
        assert_ne!(second, first);
        assert!(second.until() > first.until());
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
        assert!(!format!("{first:?}").contains("PRIVATE") && !first.certificate().contains("PRIVATE"));
    }

    #[test]
    fn a_file_that_others_may_read_or_that_holds_something_else_is_not_used_and_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("authority.json");
        Authority::of_machine(&file, NOW).expect("made");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("opened");
        assert!(matches!(Authority::of_machine(&file, NOW), Err(AuthorityError::Open(_))));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(&file, "{}").expect("written");
        assert!(matches!(Authority::of_machine(&file, NOW), Err(AuthorityError::Content(..))));
        let link = directory.path().join("link.json");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        assert!(matches!(Authority::of_machine(&link, NOW), Err(AuthorityError::File(..))));
    }

    #[test]
    fn an_expired_authority_signs_nothing() {
        let authority = Authority::make(NOW).expect("made");
        assert!(authority.issuer(before(authority.until(), Duration::from_secs(1))).is_ok());
        let refused = authority.issuer(authority.until()).map(|_| ()).expect_err("refused");
        assert!(matches!(refused, AuthorityError::Expired));
        assert!(refused.to_string().contains("start another one"));
    }
}
