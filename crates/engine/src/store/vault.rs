//! The vault: content is sealed under a key of its class before it is kept.
//!
//! Guarantees: content is read back exactly as it was kept under its name, or refused (XChaCha20-Poly1305, the class and the
//! name are part of what is sealed); a class whose key was removed is unreadable as a whole, in the state directory and in
//! every copy of it that has not got the key. Whoever has the state directory has the keys too: it is no wall against them.
//! Leaves to others: what is kept, under which name, and who may read it.

use std::path::{Path, PathBuf};

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead as _, Payload};
use model::ContentClass;

use super::Store;
use super::error::StoreError;
use super::key::{Key, random};
use super::state_directory::{check_file, failed};

/// Where the keys of the classes are, in the state directory.
const KEYS: &str = "keys";
/// What sealed content begins with. What older builds kept does not, and is read as it is.
const MARK: &[u8; 8] = b"\0fume-1\n";
const NONCE: usize = 24;

impl Store {
    /// Seals content under the key of its class, which is made when there is none.
    pub(crate) fn seal(
        &self,
        class: ContentClass,
        name: &str,
        content: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let key = self.class_key(class)?;
        let nonce: [u8; NONCE] = random()?;
        let payload = Payload { msg: content, aad: &about(class, name) };
        let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload);
        // It fails for more than 256 GiB only.
        let sealed = sealed.map_err(|_| StoreError::Sealed { class, why: "it is too large" })?;
        Ok([MARK.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens what was sealed under this name.
    pub(crate) fn unseal(
        &self,
        class: ContentClass,
        name: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let Some(rest) = sealed.strip_prefix(MARK.as_slice()) else { return Ok(sealed.to_vec()) };
        let refuse = |why| StoreError::Sealed { class, why };
        let (nonce, text) = rest.split_first_chunk::<NONCE>().ok_or_else(|| refuse("it was cut"))?;
        let place = self.place_of_keys();
        if !check_file(&place.join(class.name()))? {
            return Err(refuse("its key was removed"));
        }
        let key = Key::load(&place, class.name())?;
        let payload = Payload { msg: text, aad: &about(class, name) };
        let opened = key.cipher().decrypt(&XNonce::from(*nonce), payload);
        opened.map_err(|_| refuse("it was changed, or its key was removed and another one made since"))
    }

    fn class_key(&self, class: ContentClass) -> Result<Key, StoreError> {
        let place = self.place_of_keys();
        if check_file(&place.join(class.name()))? {
            return Key::load(&place, class.name());
        }
        make_directory(&place)?;
        Key::make_locked(&place, class.name())
    }

    fn place_of_keys(&self) -> PathBuf {
        self.directory.join(KEYS)
    }
}

fn make_directory(place: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place);
    made.map_err(|source| failed("make", place, source))
}

/// Returns what sealed content is bound to beside its key.
fn about(class: ContentClass, name: &str) -> Vec<u8> {
    format!("fumehood content 1\0{class}\0{name}").into_bytes()
}
