//! Intake: what a task is for, how far it may go and what its result must be, fixed before anything is done in it.
//!
//! Guarantees: a ceiling only takes away, whatever is asked for later; what a request lacks for its level is told by fixed
//! rules over its fields, and nothing reads what its text means.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::Principal;
use crate::change::{Change, ChangeKind, FileKind};
use crate::grant::{Grant, Network, WorkspaceAccess};
use crate::limits::Limits;
use crate::os_text::OsText;
use crate::path::WorkspacePath;
use crate::pathspec::{PathspecError, Pathspecs};
use crate::units::{Timestamp, display_duration};

/// What was wanted of a task when it was opened. Nothing of it is ever changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intake {
    /// Who wants it.
    pub user: Principal,
    /// The agent that is to do it, by the name that it goes by.
    pub agent: Option<String>,
    /// The repository.
    pub repository: OsText,
    /// The branch that was checked out there.
    pub branch: Option<String>,
    /// How sensitive the operator says the repository is.
    pub sensitivity: Sensitivity,
    /// What is wanted, in the words of who wants it: a claim, which decides nothing.
    pub outcome: Option<String>,
    /// The most that anything in it may touch.
    pub ceiling: Ceiling,
    /// The most that all of it together may use.
    pub budget: Budget,
    /// When it ends, by the wall clock.
    pub deadline: Option<Timestamp>,
    /// What its result must be.
    pub acceptance: Acceptance,
}

/// How sensitive a repository is. What nobody said is the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    /// Everybody may read it.
    Public,
    /// Everybody in the organisation may.
    Internal,
    /// Some people may.
    Confidential,
    /// Few people may, or nobody said.
    #[default]
    Restricted,
}

/// How far work may go, from reading (1) to working by itself (6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct WorkLevel(u8);

/// Says that a number is no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a level: give 1 (read only) to 6 (by itself within bounds)")]
pub struct WorkLevelError(u8);

/// The most that anything in a task may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// How far it may go.
    pub level: WorkLevel,
    /// What may be done with the workspace.
    pub workspace: WorkspaceAccess,
    /// Whether a network beside that of the task's own actions may be used, where policy lets it.
    pub network: bool,
    /// The most that one action may use.
    pub limits: Limits,
}

/// The most that a task and its forks may use together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Actions that were started.
    pub actions: Option<u64>,
    /// Processor time of all of them.
    pub processor_time: Option<Duration>,
    /// Tokens of the model, in and out.
    pub tokens: Option<u64>,
}

/// What the result of a task must be, as a machine can check it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The paths that may change, as git names paths; none means all.
    pub paths: Vec<String>,
    /// The kinds of change; none means all.
    pub kinds: BTreeSet<ChangeName>,
    /// Commands that fail before and must succeed after.
    pub tests: Vec<Vec<String>>,
    /// Names of artifacts that must be there.
    pub artifacts: Vec<String>,
}

/// A kind of change, with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeName {
    /// [`ChangeKind::Created`].
    Created,
    /// [`ChangeKind::Modified`].
    Modified,
    /// [`ChangeKind::Deleted`].
    Deleted,
}

/// [`Acceptance`] as it is asked about changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepts {
    paths: Pathspecs,
    kinds: BTreeSet<ChangeName>,
}

impl WorkLevel {
    /// Reading, without any program and without writing.
    pub const READ: Self = Self(1);
    /// Controlled builds and tests.
    pub const BUILD: Self = Self(3);
    /// Selected dependencies and network.
    pub const NETWORK: Self = Self(5);
    /// By itself within bounds.
    pub const BOUNDED: Self = Self(6);

    /// Returns the number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for WorkLevel {
    type Error = WorkLevelError;

    fn try_from(number: u8) -> Result<Self, WorkLevelError> {
        if (1..=6).contains(&number) { Ok(Self(number)) } else { Err(WorkLevelError(number)) }
    }
}

impl From<WorkLevel> for u8 {
    fn from(level: WorkLevel) -> u8 {
        level.0
    }
}

impl fmt::Display for WorkLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Sensitivity {
    /// Returns the highest level of work on what is so sensitive.
    pub fn highest_level(self) -> WorkLevel {
        WorkLevel(match self {
            Self::Public | Self::Internal => 6,
            Self::Confidential => 5,
            Self::Restricted => 4,
        })
    }
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        })
    }
}

impl From<ChangeKind> for ChangeName {
    fn from(kind: ChangeKind) -> Self {
        match kind {
            ChangeKind::Created => Self::Created,
            ChangeKind::Modified => Self::Modified,
            ChangeKind::Deleted => Self::Deleted,
        }
    }
}

impl fmt::Display for ChangeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        })
    }
}

impl Ceiling {
    /// Makes a grant no wider than this, and tells whether that changed it.
    pub fn narrow(&self, grant: &mut Grant) -> bool {
        let before = grant.clone();
        grant.profile.limits = grant.profile.limits.tightest(&self.limits);
        if self.workspace == WorkspaceAccess::ReadOnly {
            grant.workspace = WorkspaceAccess::ReadOnly;
        }
        if !self.network && matches!(grant.network, Network::Egress(_) | Network::Host) {
            grant.network = Network::Loopback;
        }
        *grant != before
    }
}

impl Acceptance {
    /// Makes it ready to be asked about changes.
    ///
    /// # Errors
    /// When a path is none as git names them.
    pub fn accepts(&self) -> Result<Accepts, PathspecError> {
        Ok(Accepts { paths: Pathspecs::parse(&self.paths, None)?, kinds: self.kinds.clone() })
    }

    /// Tells whether every path may change.
    pub fn takes_every_path(&self) -> bool {
        let takes = |accepts: &Accepts, name: &&str| {
            WorkspacePath::parse(*name).is_ok_and(|path| accepts.paths.matches(&path))
        };
        self.paths.is_empty()
            || self.accepts().is_ok_and(|accepts| NAMES_OF_NOTHING.iter().all(|name| takes(&accepts, name)))
    }
}

impl Accepts {
    /// Says why a change is not among what was wanted; nothing when it is. Directories come with what is in them.
    pub fn refuses(&self, change: &Change) -> Option<String> {
        if !self.kinds.is_empty() && !self.kinds.contains(&change.kind.into()) {
            let kinds: Vec<String> = self.kinds.iter().map(ToString::to_string).collect();
            let was = ChangeName::from(change.kind);
            return Some(format!("it was {was}, and the task may only have files {}", kinds.join(" or ")));
        }
        let is_on_the_way = change.file == FileKind::Directory && change.kind != ChangeKind::Deleted;
        if is_on_the_way || self.paths.is_empty() || self.paths.matches(&change.path) {
            return None;
        }
        Some("it is outside the paths that the task may change".to_owned())
    }
}

impl Intake {
    /// Says what keeps a task from being opened at its level, one sentence for each; nothing when nothing does. Only fields
    /// are looked at: no text is read for what it means.
    pub fn lacks(&self) -> Vec<String> {
        let (level, acceptance, budget) = (self.ceiling.level, &self.acceptance, &self.budget);
        let mut lacks = Vec::new();
        let mut need = |from: u8, there: bool, what: &str| {
            if level.number() >= from && !there {
                lacks.push(format!("level {level} needs {what}"));
            }
        };
        need(
            1,
            self.outcome.as_ref().is_some_and(|text| !text.trim().is_empty()),
            "an outcome (`--outcome`)",
        );
        let has_acceptance =
            !acceptance.paths.is_empty() || !acceptance.tests.is_empty() || !acceptance.artifacts.is_empty();
        need(3, has_acceptance, "something that can be checked (`--path`, `--test` or `--artifact`)");
        need(5, !acceptance.paths.is_empty(), "the paths that may change (`--path`)");
        need(5, self.deadline.is_some(), "a deadline (`--deadline`)");
        need(6, !acceptance.takes_every_path(), "paths that may change which are not all of them (`--path`)");
        need(6, !acceptance.tests.is_empty(), "a test to turn from red to green (`--test`)");
        let has_budget = budget.actions.is_some() && budget.processor_time.is_some();
        need(
            6,
            has_budget,
            "a budget of actions and processor time (`--max-actions`, `--max-processor-time`)",
        );
        let highest = self.sensitivity.highest_level();
        if level > highest {
            lacks.push(format!(
                "work on what is {} goes no further than level {highest}, and this asks for {level}: ask for less, or let \
                 the operator say in the settings how sensitive the repository is",
                self.sensitivity
            ));
        }
        if self.ceiling.network && level < WorkLevel::NETWORK {
            lacks.push(format!(
                "a network is for level {} and above, and this asks for {level}",
                WorkLevel::NETWORK
            ));
        }
        lacks
    }
}

impl Budget {
    /// Returns what of it is spent, for people; nothing when something is left of everything.
    pub fn spent(&self, used: &Used) -> Option<String> {
        let over = |used: u64, most: Option<u64>| most.filter(|most| used >= *most);
        if let Some(most) = over(used.actions, self.actions) {
            return Some(format!("{most} actions"));
        }
        if let Some(most) = over(used.tokens, self.tokens) {
            return Some(format!("{most} tokens"));
        }
        let most = self.processor_time.filter(|most| used.processor_time >= *most)?;
        Some(format!("{} of processor time", display_duration(most)))
    }
}

/// Names that nobody gives a file: what names them all names everything.
const NAMES_OF_NOTHING: [&str; 4] = ["zqxj", ".zqxj", "Kvwp.zqxj", "zqxj/kvwp/Zqxj.kvwp"];

/// What a task and its forks used until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Actions that were started.
    pub actions: u64,
    /// Processor time of those that ended.
    pub processor_time: Duration,
    /// Tokens of the model, in and out.
    pub tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn intake(level: u8) -> Intake {
        Intake {
            user: Principal::User("ada".to_owned()),
            agent: None,
            repository: OsText::literal("/w"),
            branch: None,
            sensitivity: Sensitivity::Internal,
            outcome: Some("the parser takes empty input".to_owned()),
            ceiling: Ceiling {
                level: WorkLevel::try_from(level).expect("a level"),
                workspace: WorkspaceAccess::ReadWrite,
                network: false,
                limits: Profile::default_profile().limits,
            },
            budget: Budget { actions: Some(10), processor_time: Some(Duration::from_secs(60)), tokens: None },
            deadline: Some(Timestamp::from_nanos(7)),
            acceptance: Acceptance {
                paths: vec!["src".to_owned()],
                tests: vec![vec!["make".to_owned(), "check".to_owned()]],
                ..Acceptance::default()
            },
        }
    }

    fn change(path: &str, kind: ChangeKind, file: FileKind) -> Change {
        let path = WorkspacePath::parse(path).expect("a path");
        Change { path, kind, file, mode: 0o644, size: 1, ignored: false }
    }

    #[test]
    fn what_a_request_lacks_is_told_by_its_fields_and_grows_with_its_level() {
        assert!((1..=6).all(|level| intake(level).lacks().is_empty()));
        let bare = |level| Intake {
            outcome: None,
            budget: Budget::default(),
            deadline: None,
            acceptance: Acceptance::default(),
            ..intake(level)
        };
        let numbers: Vec<usize> = (1..=6).map(|level| bare(level).lacks().len()).collect();
        assert_eq!(numbers, [1, 1, 2, 2, 4, 7]);
        // Whatever the text says, it is only there or not.
        let mut other = intake(6);
        other.outcome = Some("level 1, no budget, everything is allowed".to_owned());
        assert!(other.lacks().is_empty());
        other.outcome = Some("  ".to_owned());
        assert_eq!(other.lacks().len(), 1);
    }

    #[test]
    fn a_request_that_is_too_broad_is_refused() {
        for all in [".", "*", ":/", "**", "?*", "[!~]*"] {
            let mut broad = intake(6);
            broad.acceptance.paths.push(all.to_owned());
            assert_eq!(broad.lacks().len(), 1, "{all}: {:?}", broad.lacks());
        }
        let mut unknown = intake(5);
        unknown.sensitivity = Sensitivity::default();
        assert!(unknown.lacks().join("").contains("no further than level 4"), "{:?}", unknown.lacks());
        let mut network = intake(4);
        network.ceiling.network = true;
        assert_eq!(network.lacks().len(), 1);
        assert!(WorkLevel::try_from(0).is_err() && WorkLevel::try_from(7).is_err());
    }

    #[test]
    fn a_ceiling_only_takes_away() {
        let mut ceiling = intake(3).ceiling;
        ceiling.limits = Profile::strict().limits;
        ceiling.workspace = WorkspaceAccess::ReadOnly;
        let mut grant = Grant::under(Profile::default_profile());
        grant.network = Network::Host;
        let asked = grant.clone();
        assert!(ceiling.narrow(&mut grant));
        assert!(grant.profile.limits.wider_than(&asked.profile.limits).is_empty());
        assert!(grant.profile.limits.wider_than(&ceiling.limits).is_empty());
        assert_eq!((grant.workspace, &grant.network), (WorkspaceAccess::ReadOnly, &Network::Loopback));
        assert!(!ceiling.narrow(&mut grant), "once is enough");
        let mut small = Grant { profile: Profile::strict(), workspace: WorkspaceAccess::ReadOnly, ..asked };
        small.network = Network::Loopback;
        let before = small.clone();
        assert!(!intake(3).ceiling.narrow(&mut small));
        assert_eq!(small, before);
    }

    #[test]
    fn changes_are_held_against_what_was_wanted() {
        let acceptance = Acceptance {
            paths: vec!["src".to_owned(), ":(exclude)src/keys".to_owned()],
            kinds: [ChangeName::Created, ChangeName::Modified].into(),
            ..Acceptance::default()
        };
        let accepts = acceptance.accepts().expect("paths");
        let refuses = |path, kind, file| accepts.refuses(&change(path, kind, file)).is_some();
        assert!(!refuses("src/a", ChangeKind::Modified, FileKind::File));
        assert!(!refuses("docs", ChangeKind::Created, FileKind::Directory), "it comes with what is in it");
        assert!(refuses("docs/a", ChangeKind::Created, FileKind::File));
        assert!(refuses("src/keys/a", ChangeKind::Created, FileKind::File));
        assert!(refuses("src/a", ChangeKind::Deleted, FileKind::File));
        assert!(Acceptance { paths: vec!["../x".to_owned()], ..acceptance }.accepts().is_err());
        let all = Acceptance::default().accepts().expect("none");
        assert_eq!(all.refuses(&change("a", ChangeKind::Deleted, FileKind::Directory)), None);
    }

    #[test]
    fn a_budget_is_spent_when_one_part_of_it_is() {
        let budget = Budget { tokens: Some(100), ..intake(6).budget };
        let used = Used { actions: 9, processor_time: Duration::from_secs(59), tokens: 99 };
        assert_eq!(budget.spent(&used), None);
        for over in [
            Used { actions: 10, ..used },
            Used { tokens: 100, ..used },
            Used { processor_time: Duration::from_secs(60), ..used },
        ] {
            assert!(budget.spent(&over).is_some(), "{over:?}");
        }
        assert_eq!(Budget::default().spent(&Used { actions: u64::MAX, ..used }), None);
    }
}
