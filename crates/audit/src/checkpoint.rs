//! Signed heads: what a log was at some time, signed, as a text that is easy to keep elsewhere.
//!
//! The form is a checkpoint of transparency logs (c2sp.org/tlog-checkpoint) in a signed note, which other tools read, too:
//!
//! ```text
//! fumehood/log-…                      the log
//! 42                                  how many records it has
//! CsUYapGGPo4dkMgIAUqom/Xajj7h2fB…    the root of the Merkle tree over their digests, in base64
//! chain 2c26b46b68ffc68ff99b453c…     the digest of the last record
//! time 2026-11-30T12:00:00.000000Z    when it was signed, by the clock of who signed
//!
//! — fumehood/log-… Az3grlgtzPICa5O…   the signature
//! ```
//!
//! Guarantees: nothing of a text is looked at before its signature was found to hold under the given key; bytes of any kind
//! are read without a panic and in bounded memory. Several heads in one file follow on each other, with or without empty
//! lines between them: that is what appending gives.
//!
//! Leaves to others: keeping the private key, and keeping signed heads where whoever has that key cannot reach them.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::{Digest, LogId, Timestamp};

use crate::head::Head;
use crate::merkle::Tree;
use crate::signing::{DASH, ORIGIN, PublicKey, SigningKey, origin};
use crate::view::rfc3339;

/// Bytes of one signed head at most. Ours have about 300; cosignatures of others may stand below it.
pub const MAX_NOTE: usize = 128 << 10;

/// What a log was at some time, with a signature that was found to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    head: Head,
    root: Digest,
    time: Timestamp,
    note: String,
}

impl Checkpoint {
    /// Signs the head of a log, over whose records this is the tree.
    pub fn sign(head: Head, tree: &Tree, time: Timestamp, key: &SigningKey) -> Self {
        let root = tree.root();
        // As it is written, so that it reads as itself again.
        let time = Timestamp::from_nanos(time.as_nanos() / 1000 * 1000);
        let text = format!(
            "{}\n{}\n{}\nchain {}\ntime {}\n",
            origin(&head.log),
            head.seq,
            BASE64.encode(root.as_bytes()),
            head.digest,
            rfc3339(time),
        );
        let note = format!("{text}\n{}", key.signature_line(&text));
        Self { head, root, time, note }
    }

    /// Reads one signed head.
    ///
    /// # Errors
    /// When it is not signed by this key, or what is signed is no head of a log of ours.
    pub fn open(note: &str, key: &PublicKey) -> Result<Self, CheckpointError> {
        let (text, signatures) = split(note).ok_or(CheckpointError::Form("it has no signature"))?;
        let held: Vec<bool> = signatures.lines().filter_map(|line| key.check(line, text)).collect();
        if held.is_empty() {
            return Err(CheckpointError::OtherKey { key: key.id() });
        }
        if held.contains(&false) {
            return Err(CheckpointError::Signature);
        }
        let (head, root, time) = read(text).map_err(CheckpointError::Form)?;
        if key.name() != origin(&head.log) {
            return Err(CheckpointError::Form("its key is named after another log"));
        }
        Ok(Self { head, root, time, note: note.to_owned() })
    }

    /// Returns the head: the log, how many records it had, and the digest of the last one.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the root of the tree over the records.
    pub fn root(&self) -> &Digest {
        &self.root
    }

    /// Returns when it was signed, by the clock of who signed.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Tells whether a log whose records have this tree and this last digest is the one that was signed.
    pub(crate) fn names(&self, tree: &Tree, last: &Digest) -> bool {
        tree.size() == self.head.seq && tree.root() == self.root && *last == self.head.digest
    }

    /// Tells whether both name the same records.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        (&self.head, &self.root) == (&other.head, &other.root)
    }
}

impl fmt::Display for Checkpoint {
    /// Writes the signed text, byte for byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.note)
    }
}

/// Parts a note into the signed text with its line feed, and the lines with signatures.
fn split(note: &str) -> Option<(&str, &str)> {
    let control = |c: char| c.is_control() && c != '\n';
    let at = note.rfind("\n\n").filter(|_| !note.contains(control) && note.ends_with('\n'))?;
    let (text, signatures) = (&note[..=at], &note[at + 2..]);
    (!signatures.is_empty() && signatures.lines().all(|line| line.starts_with(DASH)))
        .then_some((text, signatures))
}

/// Reads a text whose signature holds.
fn read(text: &str) -> Result<(Head, Digest, Timestamp), &'static str> {
    let mut lines = text.lines();
    let mut next = |what| lines.next().ok_or(what);
    let log =
        next("its first line is missing")?.strip_prefix(ORIGIN).and_then(|log| log.parse::<LogId>().ok());
    let log = log.ok_or("its first line names no log of ours")?;
    let size = next("it has no size")?;
    let seq: u64 = size.parse().map_err(|_| "its size is no number")?;
    if seq.to_string() != size {
        return Err("its size is not written as numbers are");
    }
    let root = BASE64.decode(next("it has no root")?).ok().and_then(|root| <[u8; 32]>::try_from(root).ok());
    let root = root.map(Digest::from_bytes).ok_or("its root is no hash")?;
    let digest =
        next("it has no `chain` line")?.strip_prefix("chain ").and_then(|digest| digest.parse().ok());
    let digest = digest.ok_or("its fourth line names no digest")?;
    let time = next("it has no `time` line")?.strip_prefix("time ").and_then(moment);
    let time = time.ok_or("its fifth line names no time")?;
    Ok((Head { log, seq, digest }, root, time))
}

fn moment(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    let time = Timestamp::from_nanos(u64::try_from(moment.as_nanosecond()).ok()?);
    (rfc3339(time) == text).then_some(time)
}

/// Says why something is no signed head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It does not have the form of one.
    #[error("it does not have the form of a signed head: {0}")]
    Form(&'static str),
    /// None of its signatures is by the given key.
    #[error("it is not signed by the given key `{key}`")]
    OtherKey {
        /// The short name of the key.
        key: String,
    },
    /// It says that the given key signed it, which is not so.
    #[error(
        "its signature does not hold: it was changed, or signed by somebody else in the name of that key"
    )]
    Signature,
}

/// Says why a file of signed heads cannot be gone by.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointsError {
    /// It could not be read.
    #[error("cannot read the signed heads")]
    Read(#[source] io::Error),
    /// There is none in it.
    #[error("there is no signed head in it")]
    None,
    /// One of them is none.
    #[error("the signed head that starts in line {line} cannot be gone by: {why}")]
    Bad {
        /// Where it starts.
        line: u64,
        /// What is wrong with it.
        why: CheckpointError,
    },
}

/// Reads a file of signed heads, one at least, all by this key. One that cannot be gone by is an error: it could be the one
/// that shows what was done.
///
/// # Errors
/// When it cannot be read, holds none, or one of them is not signed by this key.
pub fn read_checkpoints(
    mut input: impl BufRead,
    key: &PublicKey,
) -> Result<Vec<Checkpoint>, CheckpointsError> {
    let mut found = Vec::new();
    let mut at = 1;
    let mut ahead = String::new();
    loop {
        let (note, lines) = next_note(&mut input, &mut ahead).map_err(|error| error.at(at))?;
        if note.is_empty() {
            return if found.is_empty() { Err(CheckpointsError::None) } else { Ok(found) };
        }
        let checkpoint = Checkpoint::open(&note, key);
        found.push(checkpoint.map_err(|why| CheckpointsError::Bad { line: at, why })?);
        at += lines;
    }
}

enum NoteError {
    Read(io::Error),
    Form(&'static str),
}

impl NoteError {
    fn at(self, line: u64) -> CheckpointsError {
        match self {
            Self::Read(source) => CheckpointsError::Read(source),
            Self::Form(why) => CheckpointsError::Bad { line, why: CheckpointError::Form(why) },
        }
    }
}

/// Reads up to the end of a note and returns it with the number of lines that it took. `ahead` is the line that was read
/// last and belongs to the next one.
fn next_note(input: &mut impl BufRead, ahead: &mut String) -> Result<(String, u64), NoteError> {
    let (mut note, mut lines, mut signed) = (String::new(), 0, false);
    loop {
        let line = if ahead.is_empty() { next_line(input)? } else { std::mem::take(ahead) };
        let of_signature = line.starts_with(DASH);
        if line.is_empty() || signed && !of_signature && line != "\n" {
            *ahead = line;
            return Ok((note, lines));
        }
        lines += 1;
        // Empty lines before a note and after its signatures are nobody's.
        if line == "\n" && (signed || note.is_empty()) {
            continue;
        }
        signed |= of_signature && note.ends_with("\n\n");
        note += &line;
        if note.len() > MAX_NOTE {
            return Err(NoteError::Form("it is longer than any"));
        }
    }
}

fn next_line(input: &mut impl BufRead) -> Result<String, NoteError> {
    let mut line = Vec::new();
    let mut limited = io::Read::by_ref(input).take(MAX_NOTE as u64 + 1);
    limited.read_until(b'\n', &mut line).map_err(NoteError::Read)?;
    String::from_utf8(line).map_err(|_| NoteError::Form("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log() -> LogId {
        LogId::from_random([1; 10])
    }

    fn key() -> SigningKey {
        SigningKey::new(&log(), &[7; 32])
    }

    fn checkpoint(records: u64) -> Checkpoint {
        let mut tree = Tree::default();
        let mut head = Head::genesis(log());
        for n in 1..=records {
            head = Head { seq: n, digest: Digest::of(&n.to_be_bytes()), ..head };
            tree.push(&head.digest);
        }
        Checkpoint::sign(head, &tree, Timestamp::from_nanos(1_764_440_834_123_456_789), &key())
    }

    fn signed(text: &str) -> String {
        format!("{text}\n{}", key().signature_line(text))
    }

    #[test]
    fn a_signed_head_has_the_form_of_a_checkpoint_and_reads_as_itself_again() {
        let made = checkpoint(5);
        let note = made.to_string();
        let lines: Vec<&str> = note.lines().collect();
        assert_eq!(lines.len(), 7, "{note}");
        assert_eq!(lines[..2], [format!("fumehood/{}", log()).as_str(), "5"]);
        assert_eq!(BASE64.decode(lines[2]).map(|root| root.len()), Ok(32));
        assert_eq!(lines[3], format!("chain {}", made.head().digest));
        assert_eq!(lines[4], "time 2025-11-29T18:27:14.123456Z");
        assert_eq!(lines[5], "");
        assert!(lines[6].starts_with(&format!("\u{2014} fumehood/{} ", log())), "{note}");
        assert_eq!(Checkpoint::open(&note, key().public()), Ok(made));
    }

    /// Written in another language, from the documents about the form alone, with the same key over the same records.
    const OF_ANOTHER_PROGRAM: &str = "\
fumehood/log-aeaqcaibaeaqcaib
5
fqk3jyu/Vw+qatCPJsWGE+F1W8jmYSe0fTIEe0Q3pKI=
chain 5dee4dd60ff8d0ba9900fe91e90e0dcf65f0570d42c431f727d0300dd70dc431
time 2025-11-29T18:27:14.123456Z

\u{2014} fumehood/log-aeaqcaibaeaqcaib 459vykiBFo1bjB6GauFO7Zyw7kaoWqbsCx0lbPjrnAiUu4Tgzh8JndoevlIfDSjWW8PQ/Lc361mZbDR77qBKQvdXLQ8=
";

    #[test]
    fn another_program_writes_the_same_signed_head() {
        assert_eq!(checkpoint(5).to_string(), OF_ANOTHER_PROGRAM);
    }

    #[test]
    fn a_log_without_records_can_be_signed_too() {
        let made = checkpoint(0);
        assert_eq!(Checkpoint::open(&made.to_string(), key().public()), Ok(made));
    }

    #[test]
    fn what_was_changed_or_signed_by_another_key_is_refused() {
        let note = checkpoint(5).to_string();
        let open = |note: &str| Checkpoint::open(note, key().public());
        assert_eq!(open(&note.replace("\n5\n", "\n6\n")), Err(CheckpointError::Signature));
        let other = SigningKey::new(&log(), &[8; 32]);
        let error = Checkpoint::open(&note, other.public()).expect_err("is another key");
        assert_eq!(error, CheckpointError::OtherKey { key: other.public().id() });
        assert!(matches!(open(note.trim_end()), Err(CheckpointError::Form(_))));
        assert!(matches!(open(&note.replace("\n\n", "\n")), Err(CheckpointError::Form(_))));
        assert!(matches!(open(&note.replace("\nchain", "\r\nchain")), Err(CheckpointError::Form(_))));
        assert!(matches!(open(""), Err(CheckpointError::Form(_))));
    }

    #[test]
    fn a_signature_of_a_witness_below_ours_is_left_alone() {
        let note =
            checkpoint(5).to_string() + "\u{2014} witness.example/w1 CMp+6LWBU0anHGH5aNDTJkH/gj79sG+T\n";
        assert!(Checkpoint::open(&note, key().public()).is_ok());
    }

    #[test]
    fn what_is_signed_and_no_head_is_refused() {
        let right = format!(
            "fumehood/{}\n0\n{}\nchain {}\ntime 2025-11-29T18:27:14.123456Z\n",
            log(),
            BASE64.encode(Tree::default().root().as_bytes()),
            Head::genesis(log()).digest
        );
        let open = |text: &str| Checkpoint::open(&signed(text), key().public());
        assert!(open(&right).is_ok());
        assert!(open(&format!("{right}a later line\n")).is_ok(), "lines of later builds are left alone");
        let other = LogId::from_random([2; 10]).to_string();
        for (from, to) in [
            ("fumehood/", "elsewhere/"),
            (log().as_str(), other.as_str()),
            ("\n0\n", "\n00\n"),
            ("\n0\n", "\n-1\n"),
            ("\n0\n", "\n99999999999999999999\n"),
            ("chain ", "chain  "),
            ("time ", ""),
            (".123456Z", "Z"),
            ("2025-11-29", "1925-11-29"),
            ("=\n", "\n"),
        ] {
            let text = right.replacen(from, to, 1);
            assert_ne!(text, right);
            assert!(matches!(open(&text), Err(CheckpointError::Form(_))), "{text}");
        }
    }

    #[test]
    fn a_file_holds_several_and_one_bad_one_spoils_it() {
        let (one, two) = (checkpoint(5).to_string(), checkpoint(9).to_string());
        let read = |text: &str| read_checkpoints(text.as_bytes(), key().public());
        for between in ["", "\n", "\n\n\n"] {
            let found = read(&format!("{between}{one}{between}{two}{between}")).expect("is read");
            assert_eq!(found.iter().map(|found| found.head().seq).collect::<Vec<_>>(), [5, 9]);
        }
        assert!(matches!(read(""), Err(CheckpointsError::None)));
        assert!(matches!(read("\n\n"), Err(CheckpointsError::None)));
        let error =
            read(&format!("{one}{}", two.replace("\n9\n", "\n8\n"))).expect_err("is refused").to_string();
        assert!(error.contains("starts in line 8") && error.contains("does not hold"), "{error}");
        let torn = read(&format!("{one}{}", &two[..60])).expect_err("is refused");
        assert!(matches!(torn, CheckpointsError::Bad { line: 8, .. }), "{torn}");
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert!(read_checkpoints(endless, key().public()).is_err());
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in "(.|\n){0,200}", place in any::<prop::sample::Index>()) {
            let _ = read_checkpoints(text.as_bytes(), key().public());
            let _ = Checkpoint::open(&signed(&text), key().public());
            let note = checkpoint(3).to_string();
            let mut bytes = note.into_bytes();
            let at = place.index(bytes.len());
            bytes.splice(at..at, text.bytes());
            let _ = read_checkpoints(&bytes[..], key().public());
        }

        #[test]
        fn any_changed_byte_is_found(place in any::<prop::sample::Index>(), with in any::<u8>()) {
            let note = checkpoint(3).to_string();
            let mut bytes = note.clone().into_bytes();
            let at = place.index(bytes.len());
            prop_assume!(bytes[at] != with);
            bytes[at] = with;
            let found = read_checkpoints(&bytes[..], key().public());
            // Base64 has one way to write a signature, and a text has one strict signature.
            prop_assert!(found.is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
    }
}
