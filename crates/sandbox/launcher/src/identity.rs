//! Who the command will be.

use std::fs;

use launcher::plan::{Identity, Plan};
use rustix::process::{Gid, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use crate::failure::{Context, Done};
use crate::mutant::leaves_out;

/// Becomes the run identity when the launcher was started as root: no supplementary groups, no way back.
///
/// With `makes_in_group`, this process may still write where root may, and nothing else: the kernel asks for that when a
/// process is made in a control group. The process that is made has no privilege outside its own user namespace, and
/// this one ends right after.
pub(crate) fn switch(plan: &Plan, makes_in_group: bool) -> Done {
    let identity = plan.identity;
    if !identity.switch {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: &[Gid] = if leaves_out(plan, "groups") { &[gid] } else { &[] };
    thread::set_thread_groups(groups).during("identity", "setgroups")?;
    thread::set_thread_res_gid(gid, gid, gid).during("identity", "setresgid")?;
    thread::set_keep_capabilities(makes_in_group).during("identity", "keep capabilities")?;
    thread::set_thread_res_uid(uid, uid, uid).during("identity", "setresuid")?;
    if makes_in_group {
        let write = CapabilitySet::DAC_OVERRIDE;
        let only = CapabilitySets { effective: write, permitted: write, inheritable: CapabilitySet::empty() };
        thread::set_capabilities(None, only).during("identity", "capabilities")?;
    }
    // Changing ids makes the process undumpable, and then its own files in /proc belong to root.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
        .during("identity", "dumpable")
}

/// Maps the one id into the new user namespace. No other id exists inside, and no group can be set.
pub(crate) fn map(identity: Identity) -> Done {
    let Identity { uid, gid, .. } = identity;
    fs::write("/proc/self/setgroups", "deny").during("user namespace", "/proc/self/setgroups")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1\n"))
        .during("user namespace", "/proc/self/uid_map")?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1\n")).during("user namespace", "/proc/self/gid_map")
}
