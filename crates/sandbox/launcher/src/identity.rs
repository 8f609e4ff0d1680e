//! Who the command will be.

use std::fs;

use launcher::plan::{Identity, Plan};
use rustix::process::{Gid, Uid};
use rustix::thread;

use crate::failure::{Context, Done};
use crate::mutant::leaves_out;

/// Becomes the run identity when the launcher was started as root: no supplementary groups, no way back.
pub(crate) fn switch(plan: &Plan) -> Done {
    let identity = plan.identity;
    if !identity.switch {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    let groups: &[Gid] = if leaves_out(plan, "groups") { &[gid] } else { &[] };
    thread::set_thread_groups(groups).during("identity", "setgroups")?;
    thread::set_thread_res_gid(gid, gid, gid).during("identity", "setresgid")?;
    thread::set_thread_res_uid(uid, uid, uid).during("identity", "setresuid")?;
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
