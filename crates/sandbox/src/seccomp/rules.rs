//! The words in which the tables are written: a row names calls, a condition, an answer, a group and the reason.
//!
//! Guarantees: conditions look at the low 32 bits of an argument and at nothing else. Every argument that a table
//! tests is an `int`, an `unsigned int` or a `umode_t` in the kernel, or one of which the kernel itself drops or
//! refuses the upper half (the flags of `clone` and `unshare`): what a program puts there cannot make the filter and
//! the kernel read two different numbers, as it could in CVE-2019-10063. Leaves to others: the rows themselves
//! ([`super::command`], [`super::service`]) and their form in the kernel ([`super::compile`]).

use super::calls::Call;

/// One rule: what is answered to some calls under a condition. For each call the first row that applies decides.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What the row is about; a mutation test takes one group away.
    pub group: Group,
    /// The calls.
    pub calls: &'static [Call],
    /// The arguments to which the row applies: all tests hold.
    pub when: &'static [ArgTest],
    /// What is answered.
    pub answer: Answer,
    /// The option with which the row is in the filter at all.
    pub only: Option<Switch>,
    /// Why.
    pub reason: &'static str,
}

impl Row {
    /// Makes a row that is in the filter with every option.
    pub(super) const fn new(
        group: Group,
        calls: &'static [Call],
        when: &'static [ArgTest],
        answer: Answer,
        reason: &'static str,
    ) -> Self {
        Self { group, calls, when, answer, only: None, reason }
    }

    /// Makes a row that is in the filter only with this option.
    pub(super) const fn only(self, switch: Switch) -> Self {
        Self { only: Some(switch), ..self }
    }

    /// Tells whether the row applies to these arguments.
    pub fn applies(&self, args: &[u64; 6]) -> bool {
        self.when.iter().all(|test| test.holds(args))
    }
}

/// An option that brings rows into a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Programs may make user namespaces of their own.
    NestedUserNamespaces,
    /// Opening a file is reported.
    ObserveOpens,
    /// Only listed programs may be started.
    ListedPrograms,
    /// The service takes connections.
    Listens,
}

/// What is answered to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The kernel carries it out.
    Allow,
    /// It fails with this error.
    Fail(Errno),
    /// The supervisor is told, and then lets the kernel carry it out.
    Notify,
    /// The program gets `SIGSYS`, which ends it unless it has a handler.
    Trap,
}

impl Answer {
    /// Returns the number by which the kernel knows the answer (`SECCOMP_RET_*` in `linux/seccomp.h`).
    pub(super) const fn code(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Fail(errno) => 0x0005_0000 | errno as u32,
            Self::Notify => 0x7fc0_0000,
            Self::Trap => 0x0003_0000,
        }
    }

    /// Tells whether the call is held back.
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Fail(_) | Self::Trap)
    }
}

/// An error that a filter answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Errno {
    /// Operation not permitted.
    Eperm = 1,
    /// Permission denied; given where an unprivileged program would get `EPERM` from the kernel as well, so that
    /// the proof can tell whose answer it is.
    Eacces = 13,
    /// Invalid argument: what a kernel says that does not know the option.
    Einval = 22,
    /// Function not implemented: programs fall back to what older kernels have.
    Enosys = 38,
    /// Protocol not supported.
    Eprotonosupport = 93,
    /// Socket type not supported.
    Esocktnosupport = 94,
    /// Address family not supported.
    Eafnosupport = 97,
}

impl Errno {
    /// Returns the C name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eperm => "EPERM",
            Self::Eacces => "EACCES",
            Self::Einval => "EINVAL",
            Self::Enosys => "ENOSYS",
            Self::Eprotonosupport => "EPROTONOSUPPORT",
            Self::Esocktnosupport => "ESOCKTNOSUPPORT",
            Self::Eafnosupport => "EAFNOSUPPORT",
        }
    }
}

/// A test of one argument, in words for the reader and in numbers for the kernel.
#[derive(Debug, Clone, Copy)]
pub struct ArgTest {
    /// Which argument, from 0 to 5.
    pub arg: u8,
    /// What its low 32 bits must be.
    pub test: Test,
    /// The test in words.
    pub text: &'static str,
}

impl ArgTest {
    /// Makes a test.
    pub(super) const fn new(arg: u8, test: Test, text: &'static str) -> Self {
        Self { arg, test, text }
    }

    fn holds(&self, args: &[u64; 6]) -> bool {
        // INVARIANT: the upper half is dropped on purpose, see the head of this file.
        let value = args[usize::from(self.arg)] as u32;
        match self.test {
            Test::AnyOf(values) => values.contains(&value),
            Test::Masked(mask, values) => values.contains(&(value & mask)),
            Test::HasAny(mask) => value & mask != 0,
            Test::OnlyBits(mask) => value & !mask == 0,
        }
    }
}

/// A test of 32 bits.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    /// They are one of these numbers.
    AnyOf(&'static [u32]),
    /// Those under the mask are one of these numbers.
    Masked(u32, &'static [u32]),
    /// One or more of those in the mask are set.
    HasAny(u32),
    /// None but those in the mask is set.
    OnlyBits(u32),
}

macro_rules! groups {
    ($(#[doc = $text:literal] $name:ident $label:literal),* $(,)?) => {
        /// What a row is about. Those that hold something back are taken away one by one by the mutation tests.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Group { $(#[doc = $text] $name),* }

        impl Group {
            /// Every group.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name, as selectors and documents write it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }

            /// Returns what the group is about, in one sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => $text.trim_ascii_start()),* }
            }
        }
    };
}

groups! {
    /// Mounting and everything that changes what the root shows.
    Mount "mount",
    /// Making and entering namespaces.
    Namespaces "namespaces",
    /// The kernel's key rings.
    Keys "keys",
    /// Programs for the kernel's virtual machine.
    Bpf "bpf",
    /// Performance counters and samples.
    Perf "perf",
    /// Page faults handled by a program.
    Userfaultfd "userfaultfd",
    /// Requests that the kernel carries out behind the calling thread.
    IoUring "io-uring",
    /// Starting another kernel.
    Kexec "kexec",
    /// Kernel modules.
    Modules "modules",
    /// Files named by a number instead of a path.
    Handles "handles",
    /// Terminal requests that type for the user or change the line discipline.
    Terminal "terminal",
    /// Sockets to the host of a virtual machine.
    Vsock "sockets-vsock",
    /// Sockets below the network layer.
    Packet "sockets-packet",
    /// Raw IP sockets.
    RawSockets "sockets-raw",
    /// Kernel message sockets other than the routing family.
    Netlink "sockets-netlink",
    /// Sockets of the kernel's cryptography.
    KernelCrypto "sockets-alg",
    /// Sockets that share packet buffers with a driver.
    Xdp "sockets-xdp",
    /// Every other address family.
    OtherFamilies "sockets-other-families",
    /// Rarely used transports and socket types of the ordinary families.
    Transports "sockets-transports",
    /// Protocols that the kernel stacks on a TCP connection.
    UpperProtocols "sockets-upper-protocols",
    /// Device nodes and whiteouts.
    Devices "devices",
    /// The set-user-id bit.
    SetId "set-id",
    /// The clock of the machine.
    Clock "clock",
    /// The state of the whole machine.
    Machine "machine",
    /// Ways to run that weaken a program's own memory.
    Personality "personality",
    /// Options of `prctl` that no ordinary program needs.
    ProcessOptions "process-options",
    /// The call tables of other machines: 32-bit x86 and ARM.
    ForeignTables "foreign-tables",
    /// Calls that are in no other row: obsolete ones, and those newer than this table.
    Unlisted "unlisted",
    /// Starting a program. Only the filters of services have it.
    Programs "programs",
    /// Signals to other processes. Only the filters of services have it.
    SignalsToOthers "signals-to-others",
    /// Writing files. Only the filters of services have it.
    Writes "writes",
    /// Calls that are reported to the supervisor and then carried out.
    Recorded "recorded",
    /// Files and descriptors.
    Files "files",
    /// Waiting for many descriptors, and descriptors for events.
    Events "events",
    /// Memory.
    Memory "memory",
    /// Processes and threads.
    Processes "processes",
    /// Signals and timers.
    Signals "signals",
    /// Messages and memory shared between processes of the sandbox.
    Ipc "ipc",
    /// Sockets inside the sandbox's own network.
    Sockets "sockets",
    /// Ids and facts about the process and the machine.
    Identity "identity",
    /// Debuggers: tracing of the sandbox's own processes.
    Tracing "tracing",
    /// Programs that confine themselves further.
    SelfConfinement "self-confinement",
}
