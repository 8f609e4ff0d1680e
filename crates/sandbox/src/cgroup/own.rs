//! The group of this process itself, where it had to leave the one that it was started in.
//!
//! Version 2 gives controllers to the groups below only when no process is left above (`cgroups(7)`, "no internal
//! processes"). A process that was started alone in a group, as in a scope of systemd, therefore moves to a group of its
//! own below it. Guarantees: after [`leave`] the group that it was started in is as it was. Leaves to others: calling it
//! at the end; a process that was killed leaves its own group to the next start, which looks for dead owners.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::AtFlags;

use super::CgroupError;
use super::files::{Directory, failed};
use super::group::{OURS, make_directory};
use super::owner::Owner;

/// The group that this process was started in, once it has left it.
static STARTED_IN: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Moves this process to a group of its own in `ours`, which lies in the group that it was started in.
pub(super) fn enter(started_in: &Directory, ours: &Directory, owner: &Owner) -> Result<(), CgroupError> {
    let name = owner.own_name();
    make_directory(ours, &name)?;
    ours.child(&name)?.write("cgroup.procs", "0")?;
    *STARTED_IN.lock().unwrap_or_else(PoisonError::into_inner) = Some(started_in.path.clone());
    Ok(())
}

/// Goes back to the group that this process was started in, and removes its own; nothing to do where it never left.
///
/// To be called when no sandbox runs any longer. While another group or another process of ours is there, it stays.
///
/// # Errors
/// When the kernel refuses. The next start then finds and removes what is left.
pub fn leave() -> Result<(), CgroupError> {
    let mut started_in = STARTED_IN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(path) = started_in.as_ref() else { return Ok(()) };
    let owner = Owner::current().map_err(|error| failed("read", "/proc/self".as_ref(), error))?;
    let (name, above) = (owner.own_name(), Directory::open(path)?);
    let ours = above.child(OURS)?;
    let is_alone = ours.child(&name)?.processes()? == [std::process::id().cast_signed()];
    if !is_alone || ours.children()? != [name.as_str()] {
        return Ok(());
    }
    take_controllers(&ours)?;
    take_controllers(&above)?;
    above.write("cgroup.procs", "0")?;
    remove(&ours, &name)?;
    remove(&above, OURS)?;
    *started_in = None;
    Ok(())
}

/// Takes back what was given to the groups below. There was a process here before, so nothing was given then.
fn take_controllers(directory: &Directory) -> Result<(), CgroupError> {
    let given = directory.read("cgroup.subtree_control")?.unwrap_or_default();
    let words: Vec<String> =
        given.split_ascii_whitespace().map(|controller| format!("-{controller}")).collect();
    if words.is_empty() { Ok(()) } else { directory.write("cgroup.subtree_control", &words.join(" ")) }
}

fn remove(above: &Directory, name: &str) -> Result<(), CgroupError> {
    let removed = rustix::fs::unlinkat(&above.fd, name, AtFlags::REMOVEDIR);
    removed.map_err(|error| failed("remove", &above.path.join(name), error))
}
