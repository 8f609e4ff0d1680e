//! Why a sandbox could not be made or run.

use std::io;

use model::ActionId;
use model::enforcement::Shortfall;
use model::evidence::Probe;

/// Why a sandbox could not be made or run. The command did not run, unless [`SandboxError::ran`] says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The host cannot hold what the profile demands.
    #[error("{}", shortfall_text(.0))]
    NotEnforceable(Vec<Shortfall>),
    /// A step of building the sandbox failed inside.
    #[error("cannot build the sandbox: {step} failed for `{about}`{}", hint(step, *errno))]
    Setup {
        /// The step.
        step: String,
        /// The error number of the kernel, or zero.
        errno: i32,
        /// What it was about.
        about: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A control did not hold when the prober tried it.
    #[error("the sandbox did not hold: {}", .0.iter().map(|probe| probe.name.as_str()).collect::<Vec<_>>().join(", "))]
    NotProved(Vec<Probe>),
    /// Something outside failed before the command started.
    #[error("cannot prepare the sandbox: {step} failed")]
    Prepare {
        /// The step.
        step: &'static str,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The action whose network was granted is not there to be joined.
    #[error("cannot join the network of {action}: it has ended")]
    JoinedEnded {
        /// The action.
        action: ActionId,
        /// What was met in its place.
        #[source]
        source: io::Error,
    },
    /// A credential that it was to have cannot be had.
    #[error("a credential cannot be had: {0}")]
    Credential(String),
    /// The gateway of the sandbox does not serve.
    #[error("cannot give the sandbox its gateway: {0}")]
    Gateway(String),
    /// The permit is not for the sandbox that was prepared.
    #[error("the permit grants something else than this sandbox was built for: nothing was run")]
    OtherGrant,
    /// The sandbox went away or stopped making sense while the command ran.
    #[error("lost the sandbox while the command ran: {step} failed")]
    Lost {
        /// The step.
        step: &'static str,
        /// The error.
        #[source]
        source: io::Error,
    },
}

impl SandboxError {
    /// Tells whether the command ran.
    pub fn ran(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Makes an error out of one of the kernel, before the command started.
    pub(crate) fn prepare(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Prepare { step, source }
    }

    /// Makes an error out of one of the kernel, while the command ran.
    pub(crate) fn lost(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Lost { step, source }
    }
}

fn shortfall_text(shortfalls: &[Shortfall]) -> String {
    let one = |s: &Shortfall| {
        format!("{} must be {} and this host has {}: {}; {}", s.layer, s.needs, s.has, s.why, s.fix)
    };
    let all: Vec<String> = shortfalls.iter().map(one).collect();
    format!("the profile demands more than this host can hold, so nothing was run: {}", all.join("; "))
}

/// Says what would help for failures that have a usual cause.
fn hint(step: &str, errno: i32) -> &'static str {
    match (step, errno) {
        ("namespaces", libc::EPERM | libc::ENOSPC | libc::EUSERS) => {
            " (user namespaces are switched off or restricted here: `fumehood doctor` says how to allow them)"
        }
        ("user namespace", _) => {
            " (AppArmor or another module restricts user namespaces: `fumehood doctor` prints the profile to install)"
        }
        ("mount file system", libc::EPERM) => {
            " (inside a container with a masked /proc the kernel refuses a new one: run the container with an unmasked /proc)"
        }
        ("create file system", libc::EINVAL) => {
            " (the workspace must be on a file system that can be below an overlay, with nothing mounted inside it)"
        }
        ("id map", libc::EINVAL) => {
            " (its file system shows no file under another owner, as an overlay in a container: work on a volume, or as \
             the user that owns it)"
        }
        (_, libc::ENOSPC | libc::EDQUOT) => {
            " (`--disk` and `--files` say how much it may write, and what it is built of needs some of that; or the disk \
             of the state directory is full)"
        }
        ("prober" | "runner", libc::EAGAIN) => {
            " (it needs a few processes for itself: grant more with `--pids`)"
        }
        ("entrance", libc::EADDRINUSE) => " (two rules need the same socket: this is a fault of Fumehood)",
        ("turned ports", _) => {
            " (a rule for a port from 1024 on needs nf_tables with connection tracking in this kernel, and a /proc/sys that can \
             be written)"
        }
        ("seccomp", _) => {
            " (this kernel has no system call filter with notifications: Linux 5.9 or later is needed)"
        }
        _ => "",
    }
}
