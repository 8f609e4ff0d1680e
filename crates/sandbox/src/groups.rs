//! The control group of one sandbox, where the host gives us one.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use model::enforcement::Layer;
use model::evidence::Probe;
use model::limits::{DiskMode, LimitKind, Limits};
use model::{Bytes, Profile};

use crate::cgroup::scope::{self, NoScope};
use crate::cgroup::{
    Cpu, Creation, Group, Hierarchies, NotDelegated, Request, Resource, Support, Usage, detect,
};
use crate::error::SandboxError;

/// Processes of ours in the group while the sandbox is built: the first stage, the first process, the runner, the prober
/// and one that it makes.
const WHILE_BUILT: u32 = 5;
/// How long an empty group may take to go.
const REMOVE_WITHIN: Duration = Duration::from_secs(2);

/// The control group of a sandbox, or why there is none.
#[derive(Debug)]
pub(crate) enum Groups {
    /// A group with limits.
    Made(Group),
    /// None: the limits are watched.
    None(NotDelegated),
}

impl Groups {
    /// Makes the group of a sandbox. Where nothing is delegated to this process, the service manager behind `bus` is asked for
    /// a scope; where the host delegates nothing then either, that is said and not an error.
    pub(crate) fn make(profile: &Profile, bus: Option<&Path>) -> Result<Self, SandboxError> {
        let failed = |error| SandboxError::prepare("control groups")(std::io::Error::other(error));
        let limits = &profile.limits;
        let request = Request {
            label: "run",
            memory: memory(limits),
            swap: Bytes::new(0),
            pids: pids_max(limits),
            cpu: Cpu::from(limits.millicpus),
        };
        let mut hierarchies = detect().map_err(failed)?;
        let scope = bus.and_then(|bus| delegation(&hierarchies, bus));
        if let Some(Ok(())) = scope {
            hierarchies = detect().map_err(failed)?;
        }
        match (hierarchies.create(&request).map_err(failed)?, scope) {
            (Creation::Made(group), _) => Ok(Self::Made(group)),
            (Creation::NotDelegated(no), Some(Err(asked))) => {
                Ok(Self::None(NotDelegated { why: format!("{}; {asked}", no.why), ..no }))
            }
            (Creation::NotDelegated(no), _) => Ok(Self::None(no)),
        }
    }

    /// Opens what the launcher writes to, to enter.
    pub(crate) fn entries(&self) -> Result<Vec<OwnedFd>, SandboxError> {
        match self {
            Self::Made(group) => group
                .entries()
                .map_err(|error| SandboxError::prepare("control groups")(std::io::Error::other(error))),
            Self::None(_) => Ok(Vec::new()),
        }
    }

    /// Says by what the kernel holds a resource, or why it does not.
    pub(crate) fn support(&self, resource: Resource) -> Result<&'static str, NotDelegated> {
        match self {
            Self::Made(group) => {
                let known = group.support().iter().find(|support| support.resource == resource);
                known.map_or_else(|| Err(unknown()), |support| support.by.clone())
            }
            Self::None(why) => Err(why.clone()),
        }
    }

    /// Looks from outside whether the sandbox is in the group: a limit that is set where nobody is holds nothing.
    pub(crate) fn proof(&self) -> Option<Probe> {
        let Self::Made(group) = self else { return None };
        let found = group.has_members();
        Some(Probe {
            name: "control-group-members".to_owned(),
            layer: Layer::Limit(LimitKind::Memory),
            held: matches!(found, Ok(true)),
            observed: match found {
                Ok(true) => "the sandbox is in each of its control groups".to_owned(),
                Ok(false) => "a control group is empty".to_owned(),
                Err(error) => error.to_string(),
            },
            control: None,
        })
    }

    /// Reads what was used, where the kernel counts it.
    pub(crate) fn usage(&self) -> Usage {
        match self {
            // A number that cannot be read is one that was not measured.
            Self::Made(group) => group.usage().unwrap_or_default(),
            Self::None(_) => Usage::default(),
        }
    }

    /// Removes the group, and says what was found.
    pub(crate) fn remove(self) -> Option<Result<String, String>> {
        let Self::Made(group) = self else { return None };
        let names: Vec<String> = group.directories().iter().map(|path| path.display().to_string()).collect();
        let names = names.join(", ");
        Some(match group.remove(REMOVE_WITHIN) {
            Ok(()) => Ok(format!("control group {names}")),
            Err(error) => Err(format!("control group {names}: {error}")),
        })
    }
}

/// Asks for a scope where that helps: no group of ours can hold memory, and one that is delegated could. Root can make
/// groups wherever a scope could be.
fn delegation(hierarchies: &Hierarchies, bus: &Path) -> Option<Result<(), NoScope>> {
    let is_root = rustix::process::geteuid().is_root();
    let lacks = |support: &Support| support.resource == Resource::Memory && support.by.is_err();
    let helps =
        !is_root && hierarchies.could_hold(Resource::Memory) && hierarchies.support().iter().any(lacks);
    helps.then(|| scope::ask_once(bus))
}

/// Removes the control groups of owners that are gone, and says which.
///
/// # Errors
/// When one of them cannot be emptied or removed.
pub fn remove_leftover_groups() -> Result<Vec<String>, crate::cgroup::CgroupError> {
    let mut removed = Vec::new();
    for leftover in detect()?.leftovers()? {
        leftover.clear(REMOVE_WITHIN)?;
        removed.push(format!("control group {}", leftover.path.display()));
    }
    Ok(removed)
}

/// Returns how many processes the group may hold: those of the command, and the first process.
fn pids_max(limits: &Limits) -> u32 {
    limits.processes.saturating_add(1).max(WHILE_BUILT)
}

/// Returns the value of `RLIMIT_NPROC`. Of two limits only the one that is met counts it, and the kernel looks at this one
/// first (`copy_process` in `kernel/fork.c`) but keeps no count: where a group has the same limit, this one stands back.
pub(crate) fn rlimit_processes(limits: &Limits, held_by_group: bool) -> u64 {
    let own = u64::from(limits.processes) + 1;
    if held_by_group && u64::from(pids_max(limits)) == own { own + 1 } else { own }
}

/// Files in memory count as memory, so the limit grows by what they may hold.
fn memory(limits: &Limits) -> Bytes {
    match limits.disk_mode {
        DiskMode::Memory => limits.memory.plus(limits.disk),
        DiskMode::Disk => limits.memory,
    }
}

fn unknown() -> NotDelegated {
    NotDelegated {
        why: "the host does not offer this controller".to_owned(),
        fix: "mount it, or choose a profile that accepts `watched`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_meets_the_process_limit_before_the_one_that_counts_nothing() {
        let limits = |processes| Limits { processes, ..Profile::strict().limits };
        assert_eq!((pids_max(&limits(128)), rlimit_processes(&limits(128), true)), (129, 130));
        assert_eq!(rlimit_processes(&limits(128), false), 129);
        // What the launcher needs is more than so small a limit: then only the other one can hold it.
        assert_eq!((pids_max(&limits(1)), rlimit_processes(&limits(1), true)), (5, 2));
        assert_eq!(pids_max(&limits(u32::MAX)), u32::MAX);
    }
}
