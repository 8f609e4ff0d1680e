//! Profiles: the limits of a run, and the least that must hold for it to start.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::enforcement::{Layer, Level};
use crate::limits::{DiskMode, LimitKind, Limits};
use crate::units::Bytes;

/// The limits of a run, and the least firmness that it accepts for each layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The name by which it is asked for.
    pub name: String,
    /// What the action may use at most.
    pub limits: Limits,
    /// The least for the memory and processor limits, which an ordinary user can seldom have from the kernel.
    pub cgroup_limits: Level,
    /// The least for the disk and file limits.
    pub disk_limits: Level,
    /// The least for the observation of the files that are read: `absent` accepts that they are not.
    #[serde(default = "absent")]
    pub reads: Level,
    /// What becomes of an action that tries to start a program which its grant does not list.
    #[serde(default)]
    pub unlisted_program: UnlistedProgram,
}

fn absent() -> Level {
    Level::Absent
}

/// What becomes of an action that tries to start a program which its grant does not list. The program itself never
/// starts: the kernel refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnlistedProgram {
    /// It is recorded, and the action goes on.
    #[default]
    Refuse,
    /// It is recorded, and the action is ended.
    End,
}

impl std::fmt::Display for UnlistedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Refuse => "refuse",
            Self::End => "end",
        })
    }
}

/// Output kept of each stream by the profiles that people use.
const DEFAULT_OUTPUT: Bytes = Bytes::mib(16);

impl Profile {
    /// Returns the profile for daily work.
    pub fn default_profile() -> Self {
        Self {
            name: "default".to_owned(),
            limits: Limits {
                memory: Bytes::gib(4),
                processes: 1024,
                millicpus: None,
                wall_time: Duration::from_secs(30 * 60),
                disk: Bytes::gib(8),
                files: 1_000_000,
                disk_mode: DiskMode::Disk,
                output: DEFAULT_OUTPUT,
                open_files: 4096,
                file_size: Bytes::gib(8),
            },
            cgroup_limits: Level::Watched,
            disk_limits: Level::Watched,
            reads: Level::Absent,
            unlisted_program: UnlistedProgram::Refuse,
        }
    }

    /// Returns the profile for what is not trusted at all: small, short, and with the disk held by the kernel.
    pub fn strict() -> Self {
        Self {
            name: "strict".to_owned(),
            limits: Limits {
                memory: Bytes::mib(96),
                processes: 128,
                millicpus: None,
                wall_time: Duration::from_secs(10),
                disk: Bytes::mib(32),
                files: 4096,
                disk_mode: DiskMode::Memory,
                output: Bytes::mib(1),
                open_files: 1024,
                file_size: Bytes::mib(32),
            },
            cgroup_limits: Level::Watched,
            disk_limits: Level::Hard,
            reads: Level::Absent,
            unlisted_program: UnlistedProgram::Refuse,
        }
    }

    /// Returns `strict` with the time that a compiler needs.
    pub fn strict_build() -> Self {
        let mut profile = Self::strict();
        "strict-build".clone_into(&mut profile.name);
        profile.limits.wall_time = Duration::from_secs(60);
        profile
    }

    /// Returns the profiles that come with the product.
    pub fn built_in() -> [Self; 3] {
        [Self::default_profile(), Self::strict(), Self::strict_build()]
    }

    /// Returns the least firmness that this profile accepts for a layer.
    pub fn least(&self, layer: Layer) -> Level {
        match layer {
            Layer::Limit(LimitKind::Memory | LimitKind::Cpu) => self.cgroup_limits,
            Layer::Limit(LimitKind::Disk | LimitKind::Files) => self.disk_limits,
            Layer::Limit(LimitKind::WallTime | LimitKind::Output) => Level::Watched,
            // A user cannot drop supplementary groups; what only a group can reach is not shown at all.
            Layer::Groups => Level::Absent,
            Layer::Reads => self.reads,
            _ => Level::Hard,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_unique_and_strict_is_never_wider_than_default() {
        let [default, strict, build] = Profile::built_in();
        assert_eq!([default.name.as_str(), &strict.name, &build.name], ["default", "strict", "strict-build"]);
        assert!(strict.limits.wider_than(&default.limits).is_empty());
        assert_eq!(build.limits.wider_than(&strict.limits), [LimitKind::WallTime]);
    }

    #[test]
    fn no_profile_accepts_a_missing_wall() {
        for profile in Profile::built_in() {
            for layer in
                [Layer::Seccomp, Layer::Landlock, Layer::PidNamespace, Layer::Root, Layer::Capabilities]
            {
                assert_eq!(profile.least(layer), Level::Hard, "{layer}");
            }
        }
    }
}
