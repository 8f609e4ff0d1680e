//! Facts: what the caller knows about an action, and the action itself does not say.

use std::collections::{BTreeMap, BTreeSet};

use model::action::Principal;
use model::grant::Input;
use model::intake::Ceiling;
use model::{Digest, Effect, EgressRule, Profile, Timestamp, WorkspacePath};
use serde::{Deserialize, Serialize};

/// Classes of protected paths that one path belongs to, by their codes in the table of protected paths, for example
/// `hooks`, `ci-files` or `tests`. A path that belongs to none has an empty set.
pub type Classes = BTreeSet<String>;

/// What is known about an action beside what it asks for. All of it comes from the engine, nothing from the asker.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The profile that the action names, as the operator's settings define it: what passes it is wider.
    pub profile: Profile,
    /// The inputs that a person named for this task; an agent may see these and no others.
    pub inputs: Vec<Input>,
    /// What a person allowed actions of this workspace to reach, in settings that no agent writes.
    pub egress: Vec<EgressRule>,
    /// What the action would do, as far as its words say. When it is missing nobody looked, and policy is told that
    /// it is not known.
    pub declared: Option<BTreeSet<Effect>>,
    /// The classes of every path that the action says it will write or remove. A path that is missing here was not
    /// looked at, and policy is told so.
    pub classes: BTreeMap<WorkspacePath, Classes>,
    /// What is known of the action whose network is asked for. When it is missing nobody looked, and policy is told
    /// that it is neither of this task nor running.
    pub joined: Option<OtherAction>,
    /// What was denied in the task before. Another way to it gets the same answer.
    pub remembered: Vec<Remembered>,
    /// Why nothing may run in the task, when that is so: the denial that was tried in too many ways.
    pub frozen: Option<Remembered>,
    /// Why nothing may start whatever policy says, when that is so: a person stopped it, or its task is not open.
    pub halted: Option<Halted>,
    /// The most that an action of the task may touch, fixed when it was opened: the grant is made no wider first.
    pub ceiling: Option<Ceiling>,
    /// What people said yes to. Only what covers the very thing that is decided, and has not expired, counts.
    pub approvals: Vec<Approval>,
    /// The accounts of the system, by number, whose yes does not count where policy keeps the owner apart: whose task it
    /// is, and whose agent asks. When it is empty nobody said who that is, and nobody's yes counts there.
    pub owners: BTreeSet<u32>,
    /// The time of the decision.
    pub now: Timestamp,
}

/// An effect that was denied, with the answer that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The effect.
    pub effect: Effect,
    /// The stable code.
    pub reason: String,
    /// The rules that denied it, by their ids.
    pub rules: Vec<String>,
    /// What to do instead.
    pub advice: String,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
}

/// Why nothing may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halted {
    /// The stable code.
    pub reason: String,
    /// Who wants that and why, and what a person can do.
    pub advice: String,
}

/// What is known of another action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherAction {
    /// Whether it belongs to the task of the action that is decided, or to one that this task was forked from.
    pub same_task: bool,
    /// How far it came.
    pub progress: Progress,
}

/// How far another action came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was asked for, and its command has not started.
    NotStarted,
    /// Its command runs.
    Running,
    /// Its command ended, or will never start.
    Ended,
}

/// One person's yes to one exact thing, until a fixed time. It runs nothing: the thing is decided again with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The digest of the action, or of the changes to be applied.
    pub subject: Digest,
    /// Who said yes. Only a person's counts.
    pub approver: Principal,
    /// The account of the system from which it came, by number. One account is one person, whatever its names.
    pub account: u32,
    /// The role in which the approver said it; `person` is the one that everybody has.
    pub role: String,
    /// When it ends.
    pub expires: Timestamp,
}

impl Facts {
    /// Starts with a profile and the time, and nothing else known.
    pub fn new(profile: Profile, now: Timestamp) -> Self {
        Self {
            profile,
            inputs: Vec::new(),
            egress: Vec::new(),
            declared: None,
            classes: BTreeMap::new(),
            joined: None,
            remembered: Vec::new(),
            frozen: None,
            halted: None,
            ceiling: None,
            approvals: Vec::new(),
            owners: BTreeSet::new(),
            now,
        }
    }
}
