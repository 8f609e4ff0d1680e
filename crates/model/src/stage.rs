//! The stages of a task, in order: what each may touch, and which may follow on which.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::grant::WorkspaceAccess;
use crate::intake::Ceiling;

/// One stage. What is done in a later one rests on all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// What is wanted was said.
    Intake,
    /// What the task starts from lies there.
    Workspace,
    /// It was looked through.
    Inspection,
    /// An action was proposed, and policy allowed it.
    Proposal,
    /// The action came to its end.
    Execution,
    /// What came of it was checked against what was wanted.
    Verification,
    /// The changes were shown to whoever decides.
    Review,
    /// What would reach the outside was shown.
    Preview,
    /// Somebody said yes to exactly that.
    Approval,
    /// It left.
    Release,
}

/// What a stage may touch, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageGrant {
    /// Whether programs of the task run.
    pub runs: bool,
    /// Whether a layer is written.
    pub writes_layer: bool,
    /// Whether a network beside that of the task's own actions may be given.
    pub network: bool,
    /// Whether the host's directory, or anything else outside, is written.
    pub writes_outside: bool,
}

/// What was done in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageWork {
    /// What this digest covers.
    Done(Digest),
    /// Nothing that anybody could rely on: the stage was passed without its work.
    Nothing,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::Intake,
        Self::Workspace,
        Self::Inspection,
        Self::Proposal,
        Self::Execution,
        Self::Verification,
        Self::Review,
        Self::Preview,
        Self::Approval,
        Self::Release,
    ];

    /// Returns the stage after it.
    pub fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }

    /// Tells whether a stage may follow: the next one of the same round, or the proposal of the next round. Nothing can be
    /// before the first.
    pub fn may_follow(before: Option<(Self, u32)>, stage: Self, round: u32) -> bool {
        match before {
            None => (stage, round) == (Self::Intake, 1),
            Some((last, same)) if same == round => last.next() == Some(stage),
            Some((last, earlier)) => {
                stage == Self::Proposal && last >= Self::Proposal && earlier.checked_add(1) == Some(round)
            }
        }
    }

    /// Returns what it may touch where nothing takes that away.
    pub fn most(self) -> StageGrant {
        let nothing = StageGrant { runs: false, writes_layer: false, network: false, writes_outside: false };
        match self {
            Self::Execution => StageGrant { runs: true, writes_layer: true, network: true, ..nothing },
            // Tests run on what was made, and leave it as it is.
            Self::Verification => StageGrant { runs: true, ..nothing },
            Self::Release => StageGrant { writes_outside: true, ..nothing },
            _ => nothing,
        }
    }

    /// Returns what it may touch below a ceiling.
    pub fn grant(self, ceiling: &Ceiling) -> StageGrant {
        let most = self.most();
        StageGrant {
            writes_layer: most.writes_layer && ceiling.workspace == WorkspaceAccess::ReadWrite,
            network: most.network && ceiling.network,
            writes_outside: most.writes_outside && ceiling.workspace == WorkspaceAccess::ReadWrite,
            ..most
        }
    }
}

impl StageGrant {
    /// Tells whether it touches nothing that the other one may not.
    pub fn is_within(&self, other: &Self) -> bool {
        (!self.runs || other.runs)
            && (!self.writes_layer || other.writes_layer)
            && (!self.network || other.network)
            && (!self.writes_outside || other.writes_outside)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Intake => "intake",
            Self::Workspace => "workspace",
            Self::Inspection => "inspection",
            Self::Proposal => "proposal",
            Self::Execution => "execution",
            Self::Verification => "verification",
            Self::Review => "review",
            Self::Preview => "preview",
            Self::Approval => "approval",
            Self::Release => "release",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::WorkLevel;
    use crate::profile::Profile;

    #[test]
    fn of_all_pairs_only_the_next_stage_and_a_new_proposal_may_follow() {
        let mut follow = Vec::new();
        for last in Stage::ALL {
            for stage in Stage::ALL {
                for round in 0..=4 {
                    if Stage::may_follow(Some((last, 2)), stage, round) {
                        follow.push((last, stage, round));
                    }
                }
            }
        }
        let next = Stage::ALL.windows(2).map(|pair| (pair[0], pair[1], 2));
        let again = Stage::ALL[3..].iter().map(|last| (*last, Stage::Proposal, 3));
        let mut expected: Vec<_> = next.chain(again).collect();
        expected.sort();
        follow.sort();
        assert_eq!(follow, expected);
        let first: Vec<_> =
            Stage::ALL.into_iter().filter(|stage| Stage::may_follow(None, *stage, 1)).collect();
        assert_eq!(first, [Stage::Intake]);
        assert!(!Stage::may_follow(None, Stage::Intake, 2));
        assert!(!Stage::may_follow(Some((Stage::Release, u32::MAX)), Stage::Proposal, 0));
    }

    #[test]
    fn only_one_stage_writes_outside_and_a_ceiling_takes_away() {
        let outside: Vec<Stage> =
            Stage::ALL.into_iter().filter(|stage| stage.most().writes_outside).collect();
        assert_eq!(outside, [Stage::Release]);
        let ceiling = Ceiling {
            level: WorkLevel::READ,
            workspace: WorkspaceAccess::ReadOnly,
            network: false,
            limits: Profile::strict().limits,
        };
        for stage in Stage::ALL {
            let grant = stage.grant(&ceiling);
            assert!(grant.is_within(&stage.most()) && !grant.network && !grant.writes_outside, "{stage}");
            assert!(!grant.writes_layer, "{stage}");
        }
        let (run, release) = (Stage::Execution.most(), Stage::Release.most());
        assert!(!run.is_within(&release) && !release.is_within(&run));
    }
}
