//! One call for each wall of the command's filter, whose answer tells whether the wall stands.
//!
//! Guarantees: with the filter each probe gets the answer written here; without its group the kernel itself gives
//! another one, for a privileged caller and for one without any capability, so that an answer cannot be mistaken for
//! the other. No probe does harm when nothing stops it: it names no real object, or makes one that ends with its
//! descriptor. Leaves to others: making the calls.

use super::calls::{Arch, Call};
use super::rules::{Answer, Errno, Group};

/// A call that a wall must answer.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// The wall.
    pub group: Group,
    /// The call.
    pub call: Call,
    /// Its arguments.
    pub args: [u64; 6],
    /// The filter's answer. [`Answer::Trap`] is met by the native number of [`FOREIGN_CALL`] in a foreign table.
    pub answer: Answer,
}

impl Probe {
    /// Returns the number of the call on a machine.
    pub fn number(&self, arch: Arch) -> Option<u32> {
        self.call.number(arch)
    }
}

/// The number that `getpid` has in the 32-bit tables of x86 and ARM; made through `int 0x80` on x86_64.
///
/// Where the wall stands the program gets `SIGSYS`. Where it does not, the answer is the number of the process.
pub const FOREIGN_CALL: u32 = 20;

/// Nowhere: neither a descriptor nor an address nor a number that anything has.
const NONE: u64 = u64::MAX;
/// Not a pointer. The kernel says `EFAULT` when it comes to look.
const NOWHERE: u64 = 1;

const fn probe(group: Group, call: Call, args: [u64; 6], errno: Errno) -> Probe {
    Probe { group, call, args, answer: Answer::Fail(errno) }
}

/// The probes: at least one for each group of the command's table that refuses something, but for
/// [`Group::ForeignTables`], which [`FOREIGN_CALL`] is for.
pub const PROBES: &[Probe] = &[
    // The target is looked up before the capability.
    probe(Group::Mount, Call::mount, [NOWHERE, NOWHERE, NOWHERE, 0, 0, 0], Errno::Eperm),
    probe(Group::Mount, Call::umount2, [NOWHERE, 0, 0, 0, 0, 0], Errno::Eperm),
    probe(Group::Namespaces, Call::setns, [NONE, 0, 0, 0, 0, 0], Errno::Eperm),
    // A new user namespace and shared directories cannot be had together: EINVAL.
    probe(Group::Namespaces, Call::clone, [0x1000_0200 | 17, 0, 0, 0, 0, 0], Errno::Eperm),
    probe(Group::Namespaces, Call::clone3, [NOWHERE, 0, 0, 0, 0, 0], Errno::Enosys),
    probe(Group::Keys, Call::keyctl, [NONE, 0, 0, 0, 0, 0], Errno::Eperm),
    probe(Group::Bpf, Call::bpf, [NONE, NOWHERE, NONE, 0, 0, 0], Errno::Eperm),
    probe(Group::Perf, Call::perf_event_open, [NOWHERE, NONE, NONE, NONE, NONE, 0], Errno::Eperm),
    probe(Group::Userfaultfd, Call::userfaultfd, [NONE, 0, 0, 0, 0, 0], Errno::Eperm),
    probe(Group::IoUring, Call::io_uring_setup, [1, NOWHERE, 0, 0, 0, 0], Errno::Enosys),
    probe(Group::Kexec, Call::kexec_load, [0, NONE, 0, NONE, 0, 0], Errno::Eacces),
    probe(Group::Modules, Call::delete_module, [NOWHERE, 0, 0, 0, 0, 0], Errno::Eacces),
    probe(Group::Handles, Call::name_to_handle_at, [NONE, NOWHERE, NOWHERE, NOWHERE, NONE, 0], Errno::Eperm),
    probe(Group::Terminal, Call::ioctl, [NONE, 0x5412, NOWHERE, 0, 0, 0], Errno::Eperm),
    // The upper half means nothing to the kernel, and so must mean nothing to the filter.
    probe(Group::Terminal, Call::ioctl, [NONE, 0x1_0000_5412, NOWHERE, 0, 0, 0], Errno::Eperm),
    probe(Group::Vsock, Call::socket, [40, 1, 0, 0, 0, 0], Errno::Eacces),
    probe(Group::Packet, Call::socket, [17, 3, 0x0300, 0, 0, 0], Errno::Eacces),
    probe(Group::RawSockets, Call::socket, [2, 3, 1, 0, 0, 0], Errno::Eacces),
    probe(Group::Netlink, Call::socket, [16, 3, 16, 0, 0, 0], Errno::Eprotonosupport),
    probe(Group::KernelCrypto, Call::socket, [38, 5, 0, 0, 0, 0], Errno::Eacces),
    probe(Group::Xdp, Call::socket, [44, 3, 0, 0, 0, 0], Errno::Eacces),
    // The kernel looks at the type first, and 15 is none: EINVAL whether it knows Bluetooth or not.
    probe(Group::OtherFamilies, Call::socket, [31, 15, 0, 0, 0, 0], Errno::Eafnosupport),
    // One more than the highest protocol there is: EINVAL.
    probe(Group::Transports, Call::socket, [2, 1, 263, 0, 0, 0], Errno::Eprotonosupport),
    probe(Group::UpperProtocols, Call::setsockopt, [NONE, 6, 31, NOWHERE, 3, 0], Errno::Eperm),
    // Character device 1:3; and a whiteout, which takes no capability.
    probe(Group::Devices, Call::mknodat, [NONE, NOWHERE, 0o020_666, 0x103, 0, 0], Errno::Eperm),
    probe(Group::Devices, Call::mknodat, [NONE, NOWHERE, 0o020_000, 0, 0, 0], Errno::Eperm),
    probe(Group::SetId, Call::fchmodat, [NONE, NOWHERE, 0o4755, 0, 0, 0], Errno::Eperm),
    probe(Group::Clock, Call::clock_settime, [NONE, NOWHERE, 0, 0, 0, 0], Errno::Eperm),
    // No quota has type 255: EINVAL.
    probe(Group::Machine, Call::quotactl, [NONE, NOWHERE, 0, NOWHERE, 0, 0], Errno::Eperm),
    // MMAP_PAGE_ZERO.
    probe(Group::Personality, Call::personality, [0x10_0000, 0, 0, 0, 0, 0], Errno::Eperm),
    // PR_GET_IO_FLUSHER: the state, or EPERM.
    probe(Group::ProcessOptions, Call::prctl, [58, 0, 0, 0, 0, 0], Errno::Einval),
    // Privileged, and on every machine.
    probe(Group::Unlisted, Call::vhangup, [0; 6], Errno::Enosys),
];
