//! Why something is refused, in words that the client, the record and a person get alike.

use model::egress::{EgressRule, Verdict};

/// An answer of no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refusal {
    /// The stable code, such as `no-rule`.
    pub reason: &'static str,
    /// A sentence for people, with what would be needed; what came from outside is escaped in it.
    pub why: String,
    /// The rule that would let it, as it is written, where a rule would.
    pub needs: Option<String>,
}

impl Refusal {
    /// Makes one.
    pub fn new(reason: &'static str, why: impl Into<String>) -> Self {
        Self { reason, why: why.into(), needs: None }
    }

    /// Makes one of what no rule names, and the rule would let.
    pub(crate) fn without_rule(reason: &'static str, what: &str, rule: String) -> Self {
        let why = format!("no rule names {what}; `{rule}` would");
        Self { reason, why, needs: rule.parse::<EgressRule>().is_ok().then_some(rule) }
    }
}

impl From<Refusal> for Verdict {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { reason: refusal.reason.to_owned(), why: refusal.why, needs: refusal.needs }
    }
}
