//! Why something is refused, in words that the client, the record and a person get alike.

use model::egress::Verdict;

/// An answer of no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refusal {
    /// The stable code, such as `no-rule`.
    pub reason: &'static str,
    /// A sentence for people, with what would be needed; what came from outside is escaped in it.
    pub why: String,
}

impl Refusal {
    /// Makes one.
    pub fn new(reason: &'static str, why: impl Into<String>) -> Self {
        Self { reason, why: why.into() }
    }
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { reason: refusal.reason.to_owned(), why: refusal.why }
    }
}
