//! What people said, as it counts: each person once, for the very thing that is decided, and not as somebody else's yes.
//!
//! Cedar has no way to count people or to compare digests and times. So that is worked out here, and reaches policy as the
//! set of quorums that are there; which of them lifts what, policy says alone.

use std::collections::BTreeSet;

use model::action::Principal;
use model::{Digest, Quorum, Timestamp};

use crate::facts::Approval;

/// Quorums that are there, with every smaller one.
pub(crate) type Quorums = BTreeSet<Quorum>;

/// Approvals, as they count for one thing at one time.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The approvals.
    pub approvals: &'a [Approval],
    /// The accounts of the owner. When it is empty nobody said who that is, and nobody counts as somebody else.
    pub owners: &'a BTreeSet<u32>,
    /// The digest of what is decided.
    pub subject: Digest,
    /// The time of the decision.
    pub now: Timestamp,
}

impl Said<'_> {
    /// Returns the accounts of the people whose yes counts towards a quorum.
    pub fn people(&self, quorum: &Quorum) -> BTreeSet<u32> {
        let in_role = self.counting().filter(|approval| approval.role == quorum.role());
        let is_kept_apart = |account: &u32| {
            quorum.is_without_owner() && (self.owners.is_empty() || self.owners.contains(account))
        };
        in_role.map(|approval| approval.account).filter(|account| !is_kept_apart(account)).collect()
    }

    /// Returns the quorums that are there.
    pub(crate) fn quorums(&self) -> Quorums {
        let roles: BTreeSet<&str> = self.counting().map(|approval| approval.role.as_str()).collect();
        let one = roles.into_iter().filter_map(|role| Quorum::of(role).ok());
        let both = one.flat_map(|one| [one.clone(), one.without_owner()]);
        with_covered(both.filter_map(|one| one.made_by(self.people(&one).len())))
    }

    /// Returns the approvals that are a person's, to this very thing, and have not expired.
    fn counting(&self) -> impl Iterator<Item = &Approval> {
        self.approvals.iter().filter(|approval| {
            approval.subject == self.subject
                && matches!(approval.approver, Principal::User(_))
                && self.now < approval.expires
        })
    }
}

/// Returns quorums with every smaller one: whoever has two yes also has one.
pub(crate) fn with_covered(quorums: impl IntoIterator<Item = Quorum>) -> Quorums {
    quorums.into_iter().flat_map(|quorum| quorum.covered().collect::<Vec<_>>()).collect()
}

/// Returns those of some quorums that no other of them covers.
pub(crate) fn largest(quorums: &Quorums) -> Quorums {
    let is_covered = |one: &Quorum| quorums.iter().any(|other| other != one && other.covers(one));
    quorums.iter().filter(|one| !is_covered(one)).cloned().collect()
}
