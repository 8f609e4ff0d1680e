//! Messages between the supervisor and the first process.

use serde::{Deserialize, Serialize};

use crate::plan::Entrance;

/// What the supervisor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSandbox {
    /// Start the command. Sent once, and only when the decision is on record and the proof held.
    Start {
        /// The program and its arguments.
        argv: Vec<Vec<u8>>,
        /// The whole environment, as `NAME=VALUE`.
        environment: Vec<Vec<u8>>,
        /// Where it starts.
        directory: Vec<u8>,
    },
    /// Send a signal to the command's process group.
    Signal(i32),
}

/// What the launcher and the first process say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSandbox {
    /// The first process exists. A pidfd for it comes along, and a descriptor of its network namespace.
    Born {
        /// Its number outside.
        pid: i32,
    },
    /// The way out of the network is there; these of its sockets come along, in the same order.
    Entrances {
        /// What they are.
        entrances: Vec<Entrance>,
        /// Whether the namespace has IPv6.
        v6: bool,
        /// Whether these are the last.
        last: bool,
    },
    /// A step could not be done, and the sandbox is gone.
    Failed {
        /// The step.
        step: String,
        /// The error number of the kernel, or zero.
        errno: i32,
        /// What it was about.
        about: String,
    },
    /// Everything is built and confined, and the prober has tried. The descriptor of the store comes along, and
    /// the master of the terminal when there is one.
    Proved {
        /// What the prober observed.
        observations: Vec<Observation>,
        /// How long each step took, in nanoseconds.
        steps: Vec<(String, u64)>,
        /// What Landlock really enforces.
        landlock: LandlockReport,
        /// The effective options of the workspace mount, as the kernel reports them.
        workspace_options: String,
    },
    /// The command was started.
    Started,
    /// The command could not be started.
    ExecFailed {
        /// The error number of `execve(2)`, or of the `chdir(2)` before it.
        errno: i32,
        /// Whether it was the directory that could not be entered.
        directory: bool,
    },
    /// A program is being started.
    Program {
        /// The process, by its number inside.
        pid: i32,
        /// The file, as the caller named it.
        file: Vec<u8>,
        /// The arguments, cut after 4 KiB.
        argv: Vec<Vec<u8>>,
        /// What is in its way, when it is not listed.
        unlisted: Option<Unlisted>,
    },
    /// Something is being connected to.
    Connection {
        /// The process, by its number inside.
        pid: i32,
        /// The address as the kernel takes it, cut after 128 bytes.
        address: Vec<u8>,
    },
    /// A directory was renamed by the helper, because the overlay could not.
    Healed,
    /// How much is in use.
    Sample {
        /// Bytes of memory of all processes together.
        memory: u64,
        /// Processes.
        processes: u32,
    },
    /// A limit that the first process watches was passed; everything inside is being ended.
    MemoryPassed {
        /// Bytes in use.
        memory: u64,
    },
    /// The command ended.
    Exited {
        /// Its status, as `waitpid(2)` gives it.
        status: i32,
        /// Processor time of everything that was waited for, in microseconds.
        cpu_us: u64,
        /// The largest resident size of one process, in KiB.
        max_rss_kib: u64,
    },
}

/// What is in the way of a program that a grant does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unlisted {
    /// It is not in the root.
    Absent,
    /// It is in the root, and Landlock does not let it be executed.
    NotExecutable,
    /// It is the dynamic loader, started by itself: nothing but what is listed can be loaded.
    Loader,
}

/// One thing that the prober tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Its name.
    pub probe: String,
    /// What happened.
    pub saw: Saw,
}

/// What happened when the prober tried something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Saw {
    /// It succeeded, which is wrong for what is forbidden.
    Done,
    /// The kernel answered with this error number.
    Errno(i32),
    /// A number was read.
    Number(u64),
    /// A text was read.
    Text(String),
}

/// What Landlock really enforces, beside what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LandlockReport {
    /// The version of the interface that the kernel has.
    pub abi: u32,
    /// Whether all that was asked is enforced.
    pub full: bool,
    /// Whether signals and abstract sockets are held inside the domain.
    pub scoped: bool,
}
