//! The plan of one sandbox: plain data, carried out in order.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A directory that its mount lets everybody write, and that is in no rule of Landlock: what stops a write there is
/// Landlock alone, so the prober can see it.
pub const LANDLOCK_CANARY: &str = "/.fumehood";
/// Where names are asked for inside a network with a way out (RFC 1035, section 4.2).
pub const DNS_PORT: u16 = 53;
/// Where the proxy answers on the loopback of such a network. No program without capabilities can take a port below 1024,
/// and this is one of those that are kept free for experiments (RFC 4727, section 6).
pub const PROXY_PORT: u16 = 1021;
/// Where connections come to that the kernel turns.
pub const TURNED_PORT: u16 = 1022;
/// The first port that programs without capabilities may take (`ip_unprivileged_port_start` in `ip(7)`).
pub const UNPRIVILEGED_PORT: u16 = 1024;

/// Everything the launcher needs to build one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Who the command will be.
    pub identity: Identity,
    /// Places of the host that are shown, opened before anything is mounted over them.
    pub sources: Vec<Source>,
    /// What is mounted and made, in order.
    pub steps: Vec<Step>,
    /// The host name inside.
    pub hostname: String,
    /// Whose network namespace it gets.
    pub network: Network,
    /// The way out of it, when it is its own and has one.
    pub way_out: Option<WayOut>,
    /// Places below which Landlock lets the command write; everything shown can be read.
    pub writable: Vec<Vec<u8>>,
    /// The programs that may be executed; everything shown when missing.
    pub programs: Option<ProgramList>,
    /// Resource limits of every process, by the numbers of `setrlimit(2)`.
    pub rlimits: Vec<Rlimit>,
    /// The filter of the command, which notifies the first process.
    pub command_filter: Vec<Instruction>,
    /// The filter of the first process.
    pub first_process_filter: Vec<Instruction>,
    /// Whether the command gets a terminal of the sandbox's own.
    pub terminal: bool,
    /// What the prober needs to know about the host.
    pub probe: ProbeFacts,
    /// Calls that the command's filter must answer, one or more for each of its groups.
    pub filter_probes: Vec<FilterProbe>,
    /// What the first process samples, where the kernel does not hold a limit.
    pub watch: Watch,
    /// Whether the command may make user namespaces of its own.
    pub nested_user_namespaces: bool,
    /// The layer that a mutant of the builder leaves out. Without the feature `mutants` it is refused.
    pub mutant: Option<String>,
}

/// The programs that a grant lists, by their resolved place inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramList {
    /// Files that may be executed.
    pub files: Vec<Vec<u8>>,
    /// Dynamic loaders: the kernel executes them for a program, so they may be executed too.
    pub loaders: Vec<Vec<u8>>,
    /// The names under which the files can be found.
    pub names: Vec<Vec<u8>>,
    /// Whether everything inside ends when another program is tried.
    pub ends: bool,
}

/// Whose network namespace a sandbox gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// One of its own.
    Own,
    /// That of another sandbox; its descriptor comes along with the plan, after the standard streams.
    Joined,
}

/// The way to a gateway outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayOut {
    /// What can be connected to; every other address but the loopback's is refused.
    pub destinations: Vec<Destination>,
    /// Destinations that the loopback has as addresses of its own: the C library gives no addresses of a kind of which
    /// the machine has none but the loopback's (`AI_ADDRCONFIG` in `getaddrinfo(3)`). Nobody is reached there.
    pub own: Vec<IpAddr>,
    /// The listening sockets, in order.
    pub entrances: Vec<Entrance>,
    /// The ports of destinations from which connections are turned.
    pub turned: Vec<u16>,
    /// How many turned connections there may be at once.
    pub connections: u32,
}

impl WayOut {
    /// Tells whether an address is a destination.
    pub fn leads_to(&self, address: IpAddr) -> bool {
        self.destinations.iter().any(|destination| destination.holds(address))
    }
}

/// Addresses that begin in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits are the same.
    pub length: u8,
}

impl Destination {
    fn holds(&self, address: IpAddr) -> bool {
        let same = |own: u128, other: u128, bits: u32| {
            let different = bits.saturating_sub(self.length.into());
            own.checked_shr(different) == other.checked_shr(different)
        };
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same(own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

/// A listening socket of a way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entrance {
    /// Questions for names, as datagrams.
    DnsDatagrams,
    /// Questions for names, as streams.
    DnsStreams,
    /// The proxy.
    Proxy,
    /// Connections to this port of any destination.
    Port(u16),
    /// Connections that the kernel turns: one socket for each version of the protocol.
    Turned,
}

/// Who the command will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user id, the same inside and outside.
    pub uid: u32,
    /// The group id, the same inside and outside.
    pub gid: u32,
    /// Whether the launcher starts as root and becomes this id before any namespace is made.
    pub switch: bool,
}

/// A place of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its path on the host.
    pub path: Vec<u8>,
    /// Whether what is mounted below it comes along.
    pub recursive: bool,
    /// Shows files of the id on the left as files of the id on the right.
    pub id_map: Option<IdMap>,
    /// Whether nothing is built where the file system has no such maps; otherwise the place is shown as it is.
    pub map_required: bool,
}

/// Shows files of one id as files of another, in a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdMap {
    /// The user id on the disk.
    pub disk_uid: u32,
    /// The group id on the disk.
    pub disk_gid: u32,
    /// The user id that is shown.
    pub shown_uid: u32,
    /// The group id that is shown.
    pub shown_gid: u32,
}

impl Plan {
    /// Tells whether the mount of an image comes along with the plan.
    pub fn has_image(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::ImageStore { .. }))
    }
}

/// The index of a place in [`Plan::sources`].
pub type SourceIndex = usize;

/// One thing that is mounted or made in the new root. Targets are absolute paths inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A small tmpfs that becomes the root; it turns read-only at the end.
    Root {
        /// Bytes it may hold.
        bytes: u64,
        /// Files it may hold.
        inodes: u64,
    },
    /// The one place behind all that is writable, as a tmpfs: the kernel holds its quota.
    MemoryStore {
        /// Bytes it may hold.
        bytes: u64,
        /// Files it may hold.
        inodes: u64,
        /// Whether programs in it may be executed.
        executable: bool,
    },
    /// The one place behind all that is writable, as a file system of its own on the disk: the kernel holds its quota. Its
    /// mount comes along with the plan, after the network.
    ImageStore {
        /// Bytes of the whole, as it says itself: the quota, and what the file system needs for itself.
        bytes: u64,
        /// Files of the whole, as it says itself.
        inodes: u64,
        /// Whether programs in it may be executed.
        executable: bool,
    },
    /// The one place behind all that is writable, as a directory of the host.
    DiskStore {
        /// The directory.
        source: SourceIndex,
        /// Whether programs in it may be executed.
        executable: bool,
    },
    /// A directory of the root.
    Directory {
        /// Where.
        target: Vec<u8>,
        /// Its mode.
        mode: u32,
    },
    /// A file of the root that belongs to the caller.
    File {
        /// Where.
        target: Vec<u8>,
        /// What it holds.
        contents: Vec<u8>,
        /// Its mode.
        mode: u32,
    },
    /// A symbolic link of the root.
    Symlink {
        /// Where.
        target: Vec<u8>,
        /// What it says.
        points_to: Vec<u8>,
    },
    /// A place of the host, read-only.
    ReadOnly {
        /// The place.
        source: SourceIndex,
        /// Where.
        target: Vec<u8>,
        /// Whether programs in it may be executed.
        executable: bool,
    },
    /// A place of the host that may be written, for outputs.
    ReadWrite {
        /// The place.
        source: SourceIndex,
        /// Where.
        target: Vec<u8>,
    },
    /// A writable directory out of the store.
    Private {
        /// Its name in the store.
        name: String,
        /// Where.
        target: Vec<u8>,
        /// Its mode.
        mode: u32,
    },
    /// An overlay whose changes go to the store and are gone afterwards.
    PrivateOverlay {
        /// What is below.
        lower: SourceIndex,
        /// Its name in the store.
        name: String,
        /// Where.
        target: Vec<u8>,
    },
    /// The git repository of a linked worktree, with the changes to it.
    GitDirectory {
        /// What is below, newest layer first, the repository last.
        lowers: Vec<SourceIndex>,
        /// Where the changes go: `upper` and `work` in a directory of the host, or else in `git` in the store.
        upper: Option<SourceIndex>,
        /// The mode of the top, where the changes go to the store.
        mode: u32,
        /// Where.
        target: Vec<u8>,
    },
    /// The workspace.
    Workspace {
        /// What is below, newest layer first, the base last.
        lowers: Vec<SourceIndex>,
        /// Where the changes go; the workspace is read-only when missing.
        upper: Option<Upper>,
        /// Where.
        target: Vec<u8>,
        /// Whether programs in it may be executed.
        executable: bool,
    },
    /// A device of the host's `/dev`: one of null, zero, full, random, urandom, tty.
    Device {
        /// Its name.
        name: String,
    },
    /// `/dev/pts` of the sandbox's own, and `/dev/ptmx`.
    Terminals,
    /// `/dev/mqueue`, the message queues of the sandbox's own IPC namespace.
    Queues,
    /// `/proc` of the sandbox's own process namespace.
    Proc,
    /// Covers a file with an empty one and a directory with an empty one; nothing happens when it is missing.
    Mask {
        /// What is covered.
        target: Vec<u8>,
    },
    /// Covers a file with one that holds something else; nothing happens when it is missing.
    Cover {
        /// What is covered.
        target: Vec<u8>,
        /// What is seen instead.
        contents: Vec<u8>,
    },
    /// Makes a directory that is already shown read-only, such as `/proc/sys`.
    Freeze {
        /// Which.
        target: Vec<u8>,
    },
}

/// Where the changes of a workspace go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upper {
    /// To `upper` and `work` in a directory of the host.
    Host(SourceIndex),
    /// To `upper` and `work` in the store.
    Store {
        /// The mode of the top.
        mode: u32,
    },
}

/// One resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// Its number in `setrlimit(2)`.
    pub resource: u32,
    /// The limit, soft and hard.
    pub value: u64,
}

/// One instruction of a classic BPF program, as in `struct sock_filter` of `linux/filter.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// Instructions to skip when the comparison holds.
    pub jump_true: u8,
    /// Instructions to skip when it does not.
    pub jump_false: u8,
    /// Its constant.
    pub k: u32,
}

/// A call that the command's filter must answer before the kernel does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterProbe {
    /// The name of the probe.
    pub name: String,
    /// The number of the call.
    pub call: u32,
    /// Its arguments; none is an address that exists.
    pub arguments: [u64; 6],
}

/// What the prober needs to know about the host: canaries that exist outside and must not be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ProbeFacts {
    /// A file that exists on the host and is not shown.
    pub canary_file: Vec<u8>,
    /// A process that lives on the host: the supervisor.
    pub canary_process: i32,
    /// The port of a stream listener on the host's IPv4 loopback.
    pub listener_v4: u16,
    /// The name of a listener in the host's abstract socket namespace.
    pub listener_abstract: Vec<u8>,
    /// The path of a listener of the host that is not shown.
    pub listener_path: Vec<u8>,
    /// A variable that is set in the environment of the supervisor.
    pub canary_variable: String,
    /// The id of a System V shared memory segment that exists on the host.
    pub canary_segment: Option<i32>,
    /// The inode of the host's cgroup namespace.
    pub host_cgroup_namespace: u64,
    /// The inode of the host's network namespace.
    pub host_network_namespace: u64,
    /// The inode of the network namespace that the grant names, when it is that of another sandbox.
    pub joined_network_namespace: Option<u64>,
    /// The name of a listener in the abstract socket namespace of a network that is joined: the first process makes it
    /// before it enters Landlock, and keeps it until the proof.
    pub listener_outside_landlock: Option<Vec<u8>>,
    /// Where the workspace is.
    pub workspace: Vec<u8>,
    /// A masked file of the workspace, when there is one.
    pub masked_file: Option<Vec<u8>>,
    /// A file with the permission to be executed that is shown and not listed, when there is a list and such a file.
    pub unlisted_file: Option<Vec<u8>>,
}

/// What the first process samples, where the kernel does not hold a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Watch {
    /// Bytes of memory of all processes together that end the run.
    pub memory: Option<u64>,
    /// Milliseconds between two samples.
    pub interval_ms: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_what_begins_in_the_same_way() {
        let holds = |address: &str, length, other: &str| {
            let address = address.parse().expect("an address");
            Destination { address, length }.holds(other.parse().expect("an address"))
        };
        assert!(holds("198.18.0.0", 15, "198.19.255.255") && !holds("198.18.0.0", 15, "198.20.0.0"));
        assert!(holds("192.0.2.1", 32, "192.0.2.1") && !holds("192.0.2.1", 32, "192.0.2.2"));
        assert!(holds("fd66::", 64, "fd66::1") && !holds("fd66::", 64, "fd66:0:0:1::"));
        assert!(
            !holds("0.0.0.0", 0, "::1") && holds("0.0.0.0", 0, "255.255.255.255") && holds("::", 0, "ff::")
        );
    }
}
