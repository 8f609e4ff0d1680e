//! The keys of a state directory: one under which values are digested that must not be written down, one that signs heads.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use chacha20poly1305::XChaCha20Poly1305;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::Digest;
use sha2::Sha256;

use super::error::StoreError;
use super::state_directory::{self, check_file, failed};

const LENGTH: usize = 32;
/// The name of the key of a state directory.
pub(super) const NAME: &str = "key";

/// 32 random bytes. There is no way to show them.
pub(crate) struct Key([u8; LENGTH]);

impl Key {
    /// Reads a key of a directory.
    pub(super) fn load(directory: &Path, name: &str) -> Result<Self, StoreError> {
        load(directory, name).map(Self)
    }

    /// Makes a key of a directory when it has none of this name. The caller holds the directory's lock.
    pub(super) fn make(directory: &Path, name: &str) -> Result<(), StoreError> {
        make(directory, name)
    }

    /// Makes a key of a directory when it has none of this name, and reads it. Of several processes one makes it.
    pub(super) fn make_locked(directory: &Path, name: &str) -> Result<Self, StoreError> {
        make_locked(directory, name).map(Self)
    }

    #[cfg(test)]
    pub(crate) fn of(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns what seals and opens under this key.
    pub(super) fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.0.into())
    }

    pub(crate) fn digest(&self, value: &[u8]) -> Digest {
        // HMAC fills a key that is shorter than a block of the hash with zeros; given whole, it cannot be refused.
        let mut block = [0; 64];
        block[..LENGTH].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(value);
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }
}

/// What [`StoreError::Key`] says of a key that is not there.
pub(super) const MISSING: &str = "missing";

/// Reads a key of the directory by its name.
pub(super) fn load(directory: &Path, name: &str) -> Result<[u8; LENGTH], StoreError> {
    let path = directory.join(name);
    if !check_file(&path)? {
        return Err(StoreError::Key { path, state: MISSING });
    }
    let bytes = fs::read(&path).map_err(|source| failed("read", &path, source))?;
    bytes.try_into().map_err(|_| StoreError::Key { path, state: "not 32 bytes long" })
}

/// Makes a key of the directory when it has none by that name, and reads it. Of several processes one makes it.
pub(super) fn make_locked(directory: &Path, name: &str) -> Result<[u8; LENGTH], StoreError> {
    let _lock = state_directory::lock(directory)?;
    make(directory, name)?;
    load(directory, name)
}

fn make(directory: &Path, name: &str) -> Result<(), StoreError> {
    let (path, new) = (directory.join(name), directory.join(format!("{name}.new")));
    if check_file(&path)? {
        return Ok(());
    }
    state_directory::remove_unfinished(&new)?;
    let written = state_directory::create(&new)?.write_all(&random::<LENGTH>()?);
    written.map_err(|source| failed("write", &new, source))?;
    state_directory::publish(directory, &new, &path)
}

/// Returns random bytes from the kernel.
pub(super) fn random<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let got = rustix::io::retry_on_intr(|| {
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
        });
        filled += got.map_err(|error| StoreError::Random(error.into()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_hmac_that_others_compute() {
        // RFC 4231, test case 2: the key `Jefe`, which HMAC fills up with zeros.
        let mut key = [0; LENGTH];
        key[..4].copy_from_slice(b"Jefe");
        let digest = Key(key).digest(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(digest.to_string(), expected);
    }
}
