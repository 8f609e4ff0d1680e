//! The first stage: still in the host's namespaces. As root it takes what only root can; it makes the network, or enters
//! the one of another sandbox; then it becomes the run identity, makes the other namespaces with the first process in
//! them, and leaves.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use launcher::message::FromSandbox;
use launcher::plan::{Network, Plan};
use launcher::wire;
use rustix::fs::FileType;
use rustix::stdio;

use crate::failure::{Context, Done, Failure};
use crate::first::{self, Given};
use crate::{identity, mutant, network, root, sys, way_out};

/// Reads the plan and carries out the first stage; in the child this returns when the sandbox has ended.
pub(crate) fn run() -> Done {
    let control = stdio::stdin().try_clone_to_owned().during("control socket", "")?;
    run_with(&control).inspect_err(|failure| {
        // The supervisor may be gone; then nobody is left to tell.
        let _ = wire::send(&control, &failure.message(), &[]);
    })
}

fn run_with(control: &OwnedFd) -> Done {
    let mut descriptors = receive_descriptors(control)?;
    let plan = read_plan(descriptors.remove(0))?;
    mutant::refuse_unless_built_in(&plan)?;
    let mut others = descriptors.split_off(3);
    let joined = (plan.network == Network::Joined && !others.is_empty()).then(|| others.remove(0));
    let image = (plan.has_image() && !others.is_empty()).then(|| others.remove(0));
    let Groups { born_into, entered } = Groups::of(others)?;
    enter_cgroups(entered)?;
    rustix::process::umask(rustix::fs::Mode::empty());
    let sources = if plan.identity.switch { Some(root::open_sources(&plan)?) } else { None };
    let network = network::enter(&plan, joined)?;
    way_out::open(&plan, control)?;
    identity::switch(&plan, born_into.is_some())?;
    let control_child = control.try_clone().during("control socket", "")?;
    let flags = sys::namespace_flags(&plan);
    match sys::clone_into_namespaces(flags, born_into.as_ref()).during("namespaces", "clone3")? {
        sys::Cloned::Parent { pid, pidfd } => {
            wire::send(control, &FromSandbox::Born { pid }, &[pidfd.as_fd(), network.as_fd()])
                .during("control socket", "born")
        }
        sys::Cloned::Child => {
            drop((born_into, network));
            let given = Given { plan, control: control_child, stdio: descriptors, sources, image };
            // The first process never returns to the first stage: its end is the end of the sandbox.
            std::process::exit(i32::from(first::run(given).is_err()))
        }
    }
}

/// Receives the plan's file, the three standard streams, the network to join when there is one, the mount of the
/// image when there is one, and the control groups to enter, in this order.
fn receive_descriptors(control: &OwnedFd) -> Done<Vec<OwnedFd>> {
    let received = wire::receive::<u32>(control).during("control socket", "plan")?;
    match received {
        Some((count, descriptors)) if descriptors.len() == count as usize && count >= 4 => Ok(descriptors),
        _ => Err(Failure::new("control socket", "the plan did not arrive whole")),
    }
}

fn read_plan(file: OwnedFd) -> Done<Plan> {
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes).during("plan", "read")?;
    postcard::from_bytes(&bytes).map_err(|error| Failure::new("plan", error.to_string()))
}

/// The control groups of the sandbox, by how they are entered.
struct Groups {
    /// The directory of the one of version 2: the first process is made in it.
    born_into: Option<OwnedFd>,
    /// The files to write to of those of version 1.
    entered: Vec<OwnedFd>,
}

impl Groups {
    fn of(descriptors: Vec<OwnedFd>) -> Done<Self> {
        let mut groups = Self { born_into: None, entered: Vec::new() };
        for group in descriptors {
            let stat = rustix::fs::fstat(&group).during("cgroup", "look at")?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => groups.born_into = Some(group),
                _ => groups.entered.push(group),
            }
        }
        Ok(groups)
    }
}

/// Enters control groups by writing zero, the caller, to their process lists. Children inherit them, so the
/// command itself is never moved.
fn enter_cgroups(files: Vec<OwnedFd>) -> Done {
    files.into_iter().try_for_each(|file| File::from(file).write_all(b"0").during("cgroup", "enter"))
}
