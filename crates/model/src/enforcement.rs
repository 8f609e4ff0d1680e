//! The layers of the sandbox, and how firmly each is held.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::LimitKind;

/// One layer of the sandbox: a thing that can be taken away alone, and whose absence a probe notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A user namespace of its own, in which one id is mapped and no new one can be made.
    UserNamespace,
    /// A mount namespace of its own.
    MountNamespace,
    /// A process namespace of its own.
    PidNamespace,
    /// A network namespace of its own, with only the loopback.
    NetworkNamespace,
    /// A namespace of its own for System V and POSIX message queues.
    IpcNamespace,
    /// A host name of its own.
    UtsNamespace,
    /// A view of the control groups of its own.
    CgroupNamespace,
    /// The root assembled from named read-only pieces; the rest of the host is absent.
    Root,
    /// The workspace as an overlay, with the host's directory read-only below it.
    Workspace,
    /// `/proc` of its own, with dangerous entries masked.
    Proc,
    /// Files that hold credentials are masked.
    Masks,
    /// The filter for system calls.
    Seccomp,
    /// Landlock as a second wall for files, and for signals and abstract sockets.
    Landlock,
    /// Empty capability sets, and an empty bounding set.
    Capabilities,
    /// `no_new_privs`.
    NoNewPrivs,
    /// No descriptor is open but the ones given.
    Descriptors,
    /// The environment holds only what was given.
    Environment,
    /// An own session without the caller's terminal.
    Session,
    /// The supplementary groups of the caller are gone.
    Groups,
    /// The first process cannot be traced, read or robbed of its descriptors by the command.
    Supervisor,
    /// Files that are read are observed. It holds nothing; a profile can demand it all the same.
    Reads,
    /// A limit.
    #[serde(untagged)]
    Limit(LimitKind),
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserNamespace => "user-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::CgroupNamespace => "cgroup-namespace",
            Self::Root => "root",
            Self::Workspace => "workspace",
            Self::Proc => "proc",
            Self::Masks => "masks",
            Self::Seccomp => "seccomp",
            Self::Landlock => "landlock",
            Self::Capabilities => "capabilities",
            Self::NoNewPrivs => "no-new-privs",
            Self::Descriptors => "descriptors",
            Self::Environment => "environment",
            Self::Session => "session",
            Self::Groups => "groups",
            Self::Supervisor => "supervisor",
            Self::Reads => "reads",
            Self::Limit(limit) => return limit.fmt(f),
        })
    }
}

/// How firmly a layer is held; the order is from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing holds it.
    Absent,
    /// The supervisor measures, and ends the run when it is passed.
    Watched,
    /// The kernel refuses to pass it.
    Hard,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "absent",
            Self::Watched => "watched",
            Self::Hard => "hard",
        })
    }
}

/// How one layer is held in one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The layer.
    pub layer: Layer,
    /// How firmly.
    pub level: Level,
    /// By what: the mechanism in a few words, or why it is not held.
    pub by: String,
}

/// A layer that the host cannot hold as firmly as the profile demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The layer.
    pub layer: Layer,
    /// The least that the profile accepts.
    pub needs: Level,
    /// What the host can do.
    pub has: Level,
    /// Why it is no more.
    pub why: String,
    /// What would change that.
    pub fix: String,
}
