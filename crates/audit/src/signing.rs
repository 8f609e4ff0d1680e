//! Keys for signed heads: Ed25519, in the text form of signed notes (c2sp.org/signed-note), so that other tools can use
//! them.
//!
//! Guarantees: a private key is never shown, also not by `Debug`, and is wiped from memory when it is dropped; a public key
//! that stands for no signature, or does not fit its own short name, is refused. A signature counts only in its strict
//! form, of which there is one for each text.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use model::LogId;
use sha2::{Digest as _, Sha256};

/// What tells an Ed25519 key from others in a signed note.
const ED25519: u8 = 1;

/// Signs heads of one log.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    public: PublicKey,
}

impl SigningKey {
    /// Makes the key of a log out of 32 random bytes.
    pub fn new(log: &LogId, secret: &[u8; 32]) -> Self {
        let key = ed25519_dalek::SigningKey::from_bytes(secret);
        let public = PublicKey::new(origin(log), key.verifying_key());
        Self { key, public }
    }

    /// Returns the public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the line that signs a text.
    pub(crate) fn signature_line(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let signed = [&self.public.id[..], &signature].concat();
        format!("{DASH}{} {}\n", self.public.name, BASE64.encode(signed))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// What a line with a signature starts with.
pub(crate) const DASH: &str = "\u{2014} ";

/// Returns the name by which a log signs.
pub(crate) fn origin(log: &LogId) -> String {
    format!("{ORIGIN}{log}")
}

/// What stands before the name of a log in the first line of its heads.
pub(crate) const ORIGIN: &str = "fumehood/";

/// The public half of the key of a log. Written as `NAME+ID+KEY`, the form of verifier keys of signed notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl PublicKey {
    fn new(name: String, key: VerifyingKey) -> Self {
        let digest =
            Sha256::new().chain_update(&name).chain_update([b'\n', ED25519]).chain_update(key.as_bytes());
        let digest: [u8; 32] = digest.finalize().into();
        Self { name, id: [digest[0], digest[1], digest[2], digest[3]], key }
    }

    /// Returns the name: that of the log with a prefix, for a key of ours.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the short name, eight hexadecimal digits.
    pub fn id(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Tells whether a line signs the text with this key; nothing when the line belongs to another key.
    pub(crate) fn check(&self, line: &str, text: &str) -> Option<bool> {
        let (name, signed) = line.strip_prefix(DASH)?.split_once(' ')?;
        let signed = BASE64.decode(signed).ok()?;
        let (id, signature) = signed.split_at_checked(self.id.len())?;
        if name != self.name || id != self.id {
            return None;
        }
        let signature = Signature::from_slice(signature);
        Some(signature.is_ok_and(|signature| self.key.verify_strict(text.as_bytes(), &signature).is_ok()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[ED25519], &self.key.as_bytes()[..]].concat();
        write!(f, "{}+{}+{}", self.name, self.id(), BASE64.encode(key))
    }
}

/// Says that a text is not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a public key: {why}; expected `NAME+ID+KEY`, as `fumehood audit key` prints it", model::text::escape(.given))]
pub struct KeyError {
    given: String,
    why: &'static str,
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        parse(text).map_err(|why| KeyError { given: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<PublicKey, &'static str> {
    let parts: Vec<&str> = text.splitn(3, '+').collect();
    let [name, id, key] = parts[..] else { return Err("it has no three parts") };
    if !is_name(name) {
        return Err("its name is empty or has blanks");
    }
    let key = BASE64.decode(key).map_err(|_| "its last part is not base64")?;
    let key: [u8; 33] = key.try_into().map_err(|_| "it has another length")?;
    let (kind, key) = key.split_at(1);
    if kind != [ED25519] {
        return Err("it is not for Ed25519");
    }
    let key = <&[u8; 32]>::try_from(key).map_err(|_| "it has another length")?;
    let key = VerifyingKey::from_bytes(key).map_err(|_| "its bytes are no key")?;
    if key.is_weak() {
        return Err("anybody can sign for it");
    }
    let key = PublicKey::new(name.to_owned(), key);
    if key.id() == id { Ok(key) } else { Err("its id does not fit: a character was lost or changed") }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of c2sp.org/signed-note.
    const KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    const TEXT: &str = "This is an example message.\n";
    const LINE: &str = "\u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=";

    #[test]
    fn keys_and_signatures_have_the_form_of_signed_notes() {
        let key: PublicKey = KEY.parse().expect("is a key");
        assert_eq!((key.name(), key.id().as_str()), ("example.com/foo", "530d903a"));
        assert_eq!(key.to_string(), KEY);
        assert_eq!(key.check(LINE, TEXT), Some(true));
        assert_eq!(key.check(LINE, "This is another message.\n"), Some(false));
        assert_eq!(key.check(&LINE.replace("foo", "bar"), TEXT), None);
    }

    #[test]
    fn what_is_signed_can_be_checked_and_nothing_else() {
        let log = LogId::from_random([1; 10]);
        let key = SigningKey::new(&log, &[7; 32]);
        let line = key.signature_line("one\n");
        let line = line.trim_end();
        assert_eq!(key.public().check(line, "one\n"), Some(true));
        assert_eq!(key.public().check(line, "two\n"), Some(false));
        let other = SigningKey::new(&log, &[8; 32]);
        assert_eq!(other.public().check(line, "one\n"), None, "it has another id");
        assert_eq!(key.public().to_string().parse(), Ok(key.public().clone()));
    }

    #[test]
    fn a_private_key_is_not_shown() {
        let shown = format!("{:?}", SigningKey::new(&LogId::from_random([1; 10]), &[0xab; 32]));
        assert!(!shown.contains("171, 171") && !shown.to_lowercase().contains("abab"), "{shown}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for (wrong, why) in [
            ("", "three parts"),
            ("a+b", "three parts"),
            ("+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "its name"),
            ("example.com/foo+530d903b+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "does not fit"),
            ("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2", "not base64"),
            ("example.com/foo+530d903a+AukyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "Ed25519"),
            ("example.com/foo+530d903a+AekyeRrm", "another length"),
            ("a+00000000+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "anybody can sign"),
        ] {
            let error = wrong.parse::<PublicKey>().expect_err(wrong).to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
