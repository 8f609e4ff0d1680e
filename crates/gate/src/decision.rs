//! Decisions, and the one way from a yes to a permit.
//!
//! INVARIANT: an [`Authorization`] is made only where a policy allowed its subject, and a [`Permit`] only out of
//! an authorization and the receipt for the very event that recorded it. Neither can be copied, made by default
//! or read from outside: their fields are private and they have no such traits. `tests/compile_fail` holds that.

use std::collections::BTreeSet;
use std::fmt;

use audit::Receipt;
use model::event::{DecisionRecord, Event, Verdict};
use model::{Action, Digest, Effect, Grant, Quorum};
use serde::Serialize;

/// Something that a decision can be about.
pub trait Subject {
    /// Returns the digest over all that decides what will happen.
    fn digest(&self) -> Digest;

    /// Returns what the record files the decision under; a receipt for anything else makes no permit.
    fn about(&self) -> model::Subject;

    /// Returns the event that records a yes about this.
    fn decided(&self, decision: DecisionRecord) -> Event {
        Event::Decided { digest: self.digest(), decision }
    }
}

/// What was decided. Every one is recorded before anybody acts on it.
#[must_use = "a decision is recorded whichever it is"]
#[derive(Debug)]
pub enum Decision<S: Subject = Granted> {
    /// As asked.
    Allow(Authorization<S>),
    /// With a smaller grant than asked.
    Narrow(Authorization<S>),
    /// When a person says yes; then it is decided again, with the approval among the facts.
    RequireApproval(ApprovalRequest),
    /// No. This is an answer, not an error.
    Deny(Denial),
}

/// An action together with the grant that it was given, which is at most what it asked for.
pub struct Granted {
    pub(crate) action: Action,
    pub(crate) grant: Grant,
    /// Whether it is only tried, before a person is asked.
    pub(crate) is_trial: bool,
}

/// A yes that is not written down yet.
#[must_use = "a yes that is not recorded permits nothing"]
pub struct Authorization<S = Granted> {
    subject: S,
    record: DecisionRecord,
}

/// A yes that is written down. Whoever acts on it takes it by value, so it is good for one time.
#[must_use = "a permit that is dropped permits nothing"]
pub struct Permit<S = Granted> {
    subject: S,
}

/// A question to a person. It becomes an answer only by deciding again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub(crate) subject: Digest,
    pub(crate) what: String,
    pub(crate) quorums: BTreeSet<Quorum>,
    pub(crate) record: DecisionRecord,
}

/// A no, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub(crate) subject: Digest,
    pub(crate) what: String,
    pub(crate) effects: Vec<Effect>,
    pub(crate) record: DecisionRecord,
}

/// Says that a receipt is for something else than this authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receipt is for another decision: record this one and use the receipt of that, nothing was run")]
pub struct ReceiptMismatch;

/// A decision in the form that agents get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// `allow`, `narrow`, `require-approval` or `deny`.
    pub decision: Verdict,
    /// A stable code.
    pub reason_code: String,
    /// The rules that decided, by their ids.
    pub matched_rules: Vec<String>,
    /// What may be done instead.
    pub advice: String,
    /// Whether asking a person could help.
    pub person_may_allow: bool,
    /// Whether another try, also by another command with the same effect, gets the same answer.
    pub retry_useless: bool,
}

impl<S: Subject> Decision<S> {
    /// Returns the decision as the record holds it.
    pub fn record(&self) -> &DecisionRecord {
        match self {
            Self::Allow(authorization) | Self::Narrow(authorization) => &authorization.record,
            Self::RequireApproval(request) => &request.record,
            Self::Deny(denial) => &denial.record,
        }
    }

    /// Returns the digest of what was decided about.
    pub fn subject(&self) -> Digest {
        match self {
            Self::Allow(authorization) | Self::Narrow(authorization) => authorization.subject.digest(),
            Self::RequireApproval(request) => request.subject,
            Self::Deny(denial) => denial.subject,
        }
    }

    /// Returns the event to append to the record before anybody acts on this.
    pub fn event(&self) -> Event {
        match self {
            Self::Allow(authorization) | Self::Narrow(authorization) => authorization.event(),
            Self::RequireApproval(_) | Self::Deny(_) => {
                Event::Decided { digest: self.subject(), decision: self.record().clone() }
            }
        }
    }

    /// Returns the decision in the form that agents get.
    pub fn answer(&self) -> Answer {
        Answer::of(self.record())
    }
}

impl<S: Subject> Authorization<S> {
    pub(crate) fn new(subject: S, record: DecisionRecord) -> Self {
        Self { subject, record }
    }

    /// Returns what was authorized, for looking at.
    pub fn subject(&self) -> &S {
        &self.subject
    }

    /// Returns the event to append to the record before anybody acts on this.
    pub fn event(&self) -> Event {
        self.subject.decided(self.record.clone())
    }

    /// Turns the yes into a permit by the receipt for the event that recorded it.
    ///
    /// # Errors
    /// When the receipt is for another decision. The authorization is spent all the same.
    pub fn recorded(self, receipt: &Receipt) -> Result<Permit<S>, ReceiptMismatch> {
        if receipt.covers_decision(&self.subject.about(), &self.event()) {
            Ok(Permit { subject: self.subject })
        } else {
            Err(ReceiptMismatch)
        }
    }
}

impl Authorization {
    /// Returns the action, so that what is not dangerous can be prepared while the record is written.
    pub fn action(&self) -> &Action {
        &self.subject.action
    }

    /// Returns the grant that it was given.
    pub fn grant(&self) -> &Grant {
        &self.subject.grant
    }
}

impl<S> Permit<S> {
    /// Returns what is permitted.
    pub fn subject(&self) -> &S {
        &self.subject
    }

    /// Spends the permit: the caller goes on to do what it permits, once.
    pub fn spend(self) -> S {
        self.subject
    }
}

impl Permit {
    /// Returns the action that may be run.
    pub fn action(&self) -> &Action {
        &self.subject.action
    }

    /// Returns what it may touch, at most.
    pub fn grant(&self) -> &Grant {
        &self.subject.grant
    }
}

impl Granted {
    /// Returns the action and the grant that it was given.
    pub fn into_parts(self) -> (Action, Grant) {
        (self.action, self.grant)
    }
}

impl Subject for Granted {
    fn digest(&self) -> Digest {
        self.action.digest()
    }

    fn about(&self) -> model::Subject {
        model::Subject { task: Some(self.action.task().clone()), action: Some(self.action.id().clone()) }
    }

    fn decided(&self, decision: DecisionRecord) -> Event {
        let digest = self.digest();
        if self.is_trial {
            Event::TrialDecided { digest, decision }
        } else {
            Event::Decided { digest, decision }
        }
    }
}

impl ApprovalRequest {
    /// Returns the digest that an approval must name.
    pub fn subject(&self) -> Digest {
        self.subject
    }

    /// Returns what is asked, to follow after "may this".
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the people who must say yes; of two where one covers the other, that one alone.
    pub fn quorums(&self) -> &BTreeSet<Quorum> {
        &self.quorums
    }

    /// Returns the request in the form that agents get.
    pub fn answer(&self) -> Answer {
        Answer::of(&self.record)
    }
}

impl Denial {
    /// Returns the effects that rules forbid, for which it was denied; none when it was for something else.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Returns the stable code of the reason.
    pub fn reason(&self) -> &str {
        &self.record.reason
    }

    /// Returns the denial as the record holds it.
    pub fn record(&self) -> &DecisionRecord {
        &self.record
    }

    /// Returns the denial in the form that agents get.
    pub fn answer(&self) -> Answer {
        Answer::of(&self.record)
    }
}

impl Answer {
    fn of(record: &DecisionRecord) -> Self {
        Self {
            decision: record.verdict,
            reason_code: record.reason.clone(),
            matched_rules: record.rules.clone(),
            advice: record.advice.clone(),
            person_may_allow: record.person_may_allow,
            retry_useless: matches!(record.verdict, Verdict::Deny),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "denied: policy does not let this {}", self.what)?;
        explain(f, &self.record)
    }
}

impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let people: Vec<String> = self.quorums.iter().map(Quorum::to_string).collect();
        write!(f, "needs a yes ({}) before this may {}", people.join(", "), self.what)?;
        explain(f, &self.record)
    }
}

/// Writes the rule, the reason and the next step.
fn explain(f: &mut fmt::Formatter<'_>, record: &DecisionRecord) -> fmt::Result {
    match record.rules.as_slice() {
        [] => write!(f, " ({})", record.reason)?,
        rules => write!(f, " ({}, by rule `{}`)", record.reason, rules.join("`, `"))?,
    }
    if record.advice.is_empty() { Ok(()) } else { write!(f, "; {}", record.advice) }
}

// What an action holds (values of the environment among it) stays out of logs: only the digest is shown.
impl<S: Subject> fmt::Debug for Authorization<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorization({})", self.subject.digest())
    }
}

impl<S: Subject> fmt::Debug for Permit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.subject.digest())
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Granted({})", self.action.digest())
    }
}
