//! Obligations: the ways in which policy can make a grant smaller instead of refusing it.

use model::grant::{Network, WorkspaceAccess};
use model::{Grant, Profile, Tool};

/// One way of making a grant smaller, named by a rule's `@obligation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Obligation {
    /// No limit above the profile's, and nothing held less firmly.
    NarrowLimits,
    /// Only the own loopback.
    NarrowNetwork,
    /// No terminal.
    NarrowTerminal,
    /// The workspace cannot be written.
    ReadOnly,
}

impl Obligation {
    pub(crate) const ALL: [Self; 4] =
        [Self::NarrowLimits, Self::NarrowNetwork, Self::NarrowTerminal, Self::ReadOnly];

    /// Returns the name by which rules know it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NarrowLimits => "narrow-limits",
            Self::NarrowNetwork => "narrow-network",
            Self::NarrowTerminal => "narrow-terminal",
            Self::ReadOnly => "read-only",
        }
    }

    /// Makes the grant smaller, and tells whether that changed anything.
    ///
    /// A tool that writes a named file cannot be done with a workspace that it may only read: then nothing
    /// changes, and the refusal stands.
    pub(crate) fn narrow(self, grant: &mut Grant, profile: &Profile, tool: &Tool) -> bool {
        let before = grant.clone();
        match self {
            Self::NarrowLimits => narrow_limits(grant, profile),
            Self::NarrowNetwork => grant.network = Network::Loopback,
            Self::NarrowTerminal => grant.terminal = false,
            Self::ReadOnly if tool.writes().is_empty() => grant.workspace = WorkspaceAccess::ReadOnly,
            Self::ReadOnly => {}
        }
        *grant != before
    }
}

fn narrow_limits(grant: &mut Grant, profile: &Profile) {
    let asked = &mut grant.profile;
    asked.limits = profile.limits.tightest(&asked.limits);
    asked.cgroup_limits = asked.cgroup_limits.max(profile.cgroup_limits);
    asked.disk_limits = asked.disk_limits.max(profile.disk_limits);
    asked.reads = asked.reads.max(profile.reads);
    asked.unlisted_program = asked.unlisted_program.max(profile.unlisted_program);
}
