//! People: who has which role, and whose yes is still missing.
//!
//! Guarantees: a yes counts in a role only while the operator's settings give its account that role, and one of another
//! account only while its file is there; what counts is worked out by the gate alone.

use std::collections::{BTreeMap, BTreeSet};

use gate::{Approval, Said};
use model::approval::{Answered, ApprovalAnswer};
use model::quorum::PERSON;
use model::{Quorum, Timestamp};

use crate::Engine;
use crate::deadline::Moment;
use crate::store::StoredApproval;

/// Who has which role beside the one that everybody has, by the numbers of accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles(BTreeMap<String, BTreeSet<u32>>);

/// How far a request has come towards one quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whose yes policy wants.
    pub quorum: Quorum,
    /// The accounts of the people whose yes counts towards it.
    pub people: BTreeSet<u32>,
}

impl Roles {
    /// Takes what the settings say.
    pub fn new(accounts: BTreeMap<String, BTreeSet<u32>>) -> Self {
        Self(accounts)
    }

    /// Returns the accounts that have a role; nothing for the one that everybody has.
    pub fn people(&self, role: &str) -> Option<BTreeSet<u32>> {
        (role != PERSON).then(|| self.0.get(role).cloned().unwrap_or_default())
    }

    /// Tells whether somebody has a role.
    pub fn has(&self, account: u32, role: &str) -> bool {
        role == PERSON || self.0.get(role).is_some_and(|accounts| accounts.contains(&account))
    }
}

impl Progress {
    /// Tells whether nobody is missing.
    pub fn is_enough(&self) -> bool {
        self.people.len() >= usize::from(self.quorum.people())
    }
}

impl Engine {
    /// Returns how far a request has come towards everything that policy wants of it, as the settings are now.
    pub fn progress(&self, approval: &StoredApproval, now: &Moment) -> Vec<Progress> {
        let approvals = self.approvals_of(approval, now);
        let owners = self.owners_of(approval);
        let said = Said { approvals: &approvals, owners: &owners, subject: approval.digest, now: now.wall };
        let progress = |quorum: &Quorum| Progress { quorum: quorum.clone(), people: said.people(quorum) };
        approval.wanted.iter().map(progress).collect()
    }

    /// Returns whose yes is still missing.
    pub fn missing(&self, approval: &StoredApproval, now: &Moment) -> BTreeSet<Quorum> {
        let progress = self.progress(approval, now).into_iter();
        progress.filter(|progress| !progress.is_enough()).map(|progress| progress.quorum).collect()
    }

    /// Returns what the gate is told of the answers to a request; nothing when their time is over.
    pub(crate) fn approvals_of(&self, approval: &StoredApproval, now: &Moment) -> Vec<Approval> {
        let Some(expires) = approval.deadline.by_the_clock_of(approval.asked, now) else { return Vec::new() };
        let yes = approval.answers.iter().filter(|answer| answer.answer == Answered::Yes);
        let yes = yes.filter(|answer| self.still_stands(approval, answer));
        yes.flat_map(|answer| self.approvals_by(approval, answer, expires)).collect()
    }

    /// Returns the accounts whose yes to a request is the owner's own.
    pub fn owners_of(&self, approval: &StoredApproval) -> BTreeSet<u32> {
        approval.owners.union(&self.config().owners).copied().collect()
    }

    /// Returns what one answer counts as: in the roles in which it was given, as far as its account still has them.
    fn approvals_by(
        &self,
        approval: &StoredApproval,
        answer: &ApprovalAnswer,
        expires: Timestamp,
    ) -> Vec<Approval> {
        // Answers of earlier versions do not say from which account they came.
        let Some(account) = answer.account else { return Vec::new() };
        let still = answer.roles.iter().filter(|role| self.config().roles.has(account, role));
        let one = |role: &String| Approval {
            subject: approval.digest,
            approver: answer.by.clone(),
            account,
            role: role.clone(),
            expires,
        };
        still.map(one).collect()
    }
}
