//! Proofs that a newer signed head only adds to an older one, for somebody who keeps heads and never sees the record.
//!
//! The text is the one that witnesses of transparency logs are sent (c2sp.org/tlog-witness): the size of the older head,
//! the hashes of the proof (RFC 6962, section 2.1.2) in base64, an empty line, and the newer head.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::Digest;

use crate::checkpoint::{Checkpoint, CheckpointError, MAX_NOTE};
use crate::merkle::{Prover, is_consistent};
use crate::signing::PublicKey;
use crate::verify::{Broken, Flaw, Verification};

/// A proof, with the newer head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    old: u64,
    hashes: Vec<Digest>,
    new: Checkpoint,
}

/// The most hashes that a proof can have.
const MAX_HASHES: usize = 63;

/// Says why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// It does not have the form of one.
    #[error("it does not have the form of a proof: {0}")]
    Form(&'static str),
    /// The newer head is none.
    #[error("the head in it cannot be gone by: {0}")]
    Head(#[source] CheckpointError),
    /// The record does not go on from the older head, so there is nothing to prove.
    #[error(
        "the record does not go on from the head over {old} records: it belongs to another log, or the record was cut or \
         rewritten"
    )]
    NoneThere {
        /// The size of the older head.
        old: u64,
    },
}

impl Proof {
    /// Makes the proof from one head to another out of the digests of the records, in order.
    ///
    /// # Errors
    /// When the newer one does not add to the older one.
    pub fn new(
        old: &Checkpoint,
        new: Checkpoint,
        digests: impl IntoIterator<Item = Digest>,
    ) -> Result<Self, ProofError> {
        let none = || ProofError::NoneThere { old: old.head().seq };
        let size = new.head().seq;
        let mut prover = Prover::new(old.head().seq, size).ok_or_else(none)?;
        let records = usize::try_from(size).unwrap_or(usize::MAX);
        digests.into_iter().take(records).for_each(|digest| prover.push(&digest));
        let proof = Self { old: old.head().seq, hashes: prover.finish(), new };
        if proof.holds(old) { Ok(proof) } else { Err(none()) }
    }

    /// Reads a proof whose head is signed by this key.
    ///
    /// # Errors
    /// When the text is none.
    pub fn open(text: &str, key: &PublicKey) -> Result<Self, ProofError> {
        if text.len() > MAX_NOTE {
            return Err(ProofError::Form("it is longer than any"));
        }
        let (proof, note) =
            text.split_once("\n\n").ok_or(ProofError::Form("there is no empty line in it"))?;
        let mut lines = proof.lines();
        let old = lines.next().and_then(|line| line.strip_prefix("old ")?.parse().ok());
        let old = old.ok_or(ProofError::Form("its first line is not `old` and a number"))?;
        let hashes: Option<Vec<Digest>> = lines.map(hash).collect();
        let hashes = hashes.filter(|hashes| hashes.len() <= MAX_HASHES);
        let hashes = hashes.ok_or(ProofError::Form("its hashes are no hashes, or too many"))?;
        Ok(Self { old, hashes, new: Checkpoint::open(note, key).map_err(ProofError::Head)? })
    }

    /// Compares the newer head with an older one: does all that the older one vouches for stand at the start of it?
    pub fn check(&self, old: &Checkpoint) -> Verification {
        let (end, from) = (self.new.head().clone(), old.head().seq);
        if old.head().log != end.log {
            let flaw = Flaw::OtherHead { log: old.head().log.clone() };
            return Verification::Broken(Broken { record: 0, flaw });
        }
        if self.holds(old) {
            return Verification::Extends { from, end };
        }
        Verification::Broken(Broken { record: from, flaw: Flaw::Unproved { end: end.seq } })
    }

    fn holds(&self, old: &Checkpoint) -> bool {
        let (one, other) = (old.head(), self.new.head());
        let proved = is_consistent(one.seq, old.root(), other.seq, self.new.root(), &self.hashes);
        one.log == other.log && one.seq == self.old && proved && (one.seq != other.seq || one == other)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.hashes {
            writeln!(f, "{}", BASE64.encode(hash.as_bytes()))?;
        }
        write!(f, "\n{}", self.new)
    }
}

fn hash(line: &str) -> Option<Digest> {
    let bytes = BASE64.decode(line).ok()?;
    Some(Digest::from_bytes(bytes.try_into().ok()?))
}
