//! Approvals: where a request for a person's yes stands, and what people answered.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::Principal;
use crate::units::Timestamp;

/// Where a request for a person's yes stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalState {
    /// The action is being tried on a throwaway layer.
    Trying,
    /// It waits for a person.
    Open,
    /// People said yes, and the same request may run once.
    Given,
    /// The request ran with the yes.
    Used,
    /// People said yes, and the layer on which the action was tried is the task's now.
    Kept,
    /// A person said no.
    Refused,
    /// A person took the yes, or the request, back.
    Revoked,
    /// What it was about is not any longer as it was shown.
    Void,
    /// Nobody answered in time, or the yes was not used in time.
    Expired,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Trying,
        Self::Open,
        Self::Given,
        Self::Used,
        Self::Kept,
        Self::Refused,
        Self::Revoked,
        Self::Void,
        Self::Expired,
    ];

    /// Returns the word that stands for it, in the database and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trying => "trying",
            Self::Open => "open",
            Self::Given => "given",
            Self::Used => "used",
            Self::Kept => "kept",
            Self::Refused => "refused",
            Self::Revoked => "revoked",
            Self::Void => "void",
            Self::Expired => "expired",
        }
    }

    /// Tells whether nothing more can come of it.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Trying | Self::Open | Self::Given)
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a person answered to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// Who.
    pub by: Principal,
    /// The account of the system from which it came, by number; nothing in answers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<u32>,
    /// What.
    pub answer: Answered,
    /// The roles in which a yes was said.
    pub roles: BTreeSet<String>,
    /// The reason that was given.
    pub reason: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The name of the file that it stands in, when it came from another account: it holds as long as that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// Yes.
    Yes,
    /// No.
    No,
    /// What was said before no longer holds.
    TakenBack,
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::TakenBack => "taken back",
        })
    }
}
