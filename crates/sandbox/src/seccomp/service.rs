//! The tables for our own processes: the first one in a sandbox, and helpers that run beside it.
//!
//! Guarantees: none of them can start a program, make a process, mount, trace or signal a stranger after its filter
//! is on. Leaves to others: descriptors that were opened before, which a filter does not take back.

use super::calls::Call::*;
use super::command::{AF_INET, AF_NETLINK, ALWAYS, IS_DGRAM, IS_STREAM, NOT_THERE, REFUSED, ROUTE, TCP};
use super::rules::{Answer, ArgTest, Errno, Group, Row, Switch, Test};

// linux/sched.h: a thread shares memory, files and signals; `CLONE_THREAD` cannot be had without the others.
const IS_THREAD: ArgTest = ArgTest::new(0, Test::HasAny(0x1_0000), "flags have CLONE_THREAD");
// asm-generic/mman-common.h
const PROT_EXEC: ArgTest = ArgTest::new(2, Test::HasAny(4), "protection has PROT_EXEC");
// asm-generic/fcntl.h: O_ACCMODE, O_CREAT, O_TRUNC and the bit of O_TMPFILE that is not O_DIRECTORY.
const WRITES: u32 = 0o3 | 0o100 | 0o1000 | 0o20_000_000;
const OPEN_READ: ArgTest = ArgTest::new(1, Test::Masked(WRITES, &[0]), "flags are O_RDONLY and make nothing");
const OPENAT_READ: ArgTest =
    ArgTest::new(2, Test::Masked(WRITES, &[0]), "flags are O_RDONLY and make nothing");
// asm-generic/ioctls.h
const PLAIN_IOCTL: ArgTest = ArgTest::new(
    1,
    Test::AnyOf(&[0x5401, 0x541b, 0x5421, 0x5450, 0x5451]),
    "request is TCGETS, FIONREAD, FIONBIO, FIONCLEX or FIOCLEX",
);
const UDP: ArgTest = ArgTest::new(2, Test::AnyOf(&[0, 17]), "the default protocol or UDP");
// linux/seccomp.h
const NOTIFICATIONS: ArgTest = ArgTest::new(
    1,
    Test::AnyOf(&[0xc050_2100, 0xc018_2101, 0x4008_2102, 0x4008_2104]),
    "request is SECCOMP_IOCTL_NOTIF_RECV, SEND, ID_VALID or SET_FLAGS",
);
// linux/prctl.h
const NAMES: ArgTest =
    ArgTest::new(0, Test::AnyOf(&[15, 16, 39, 0x5356_4d41]), "NAME, GET_NO_NEW_PRIVS or SET_VMA");

/// What every one of our processes does: descriptors it has, memory, waiting, time.
const BASIS: Row = Row::new(
    Group::Files,
    &[
        read,
        write,
        readv,
        writev,
        close,
        fstat,
        lseek,
        fcntl,
        dup,
        poll,
        ppoll,
        pselect6,
        select,
        epoll_create1,
        epoll_ctl,
        epoll_wait,
        epoll_pwait,
        epoll_pwait2,
        eventfd2,
        timerfd_create,
        timerfd_settime,
        timerfd_gettime,
        recvmsg,
        sendmsg,
        recvfrom,
        sendto,
        shutdown,
        munmap,
        mremap,
        madvise,
        brk,
        futex,
        futex_wait,
        futex_wake,
        set_robust_list,
        rseq,
        membarrier,
        sched_yield,
        sched_getaffinity,
        rt_sigaction,
        rt_sigprocmask,
        rt_sigreturn,
        rt_sigtimedwait,
        sigaltstack,
        restart_syscall,
        nanosleep,
        clock_nanosleep,
        clock_gettime,
        clock_getres,
        gettimeofday,
        time,
        getpid,
        gettid,
        getppid,
        getuid,
        geteuid,
        getgid,
        getegid,
        getrandom,
        uname,
        sysinfo,
        exit,
        exit_group,
        uretprobe,
    ],
    ALWAYS,
    Answer::Allow,
    "work on what it already holds",
);

const NO_PROGRAMS: Row = Row::new(
    Group::Programs,
    &[execve, execveat, fork, vfork],
    ALWAYS,
    REFUSED,
    "whoever takes it over must not get a program of his own",
);

const NO_CLONE3: Row = Row::new(
    Group::Programs,
    &[clone3],
    ALWAYS,
    NOT_THERE,
    "its flags lie in memory; C libraries fall back to clone",
);

/// Names may be given.
const NAMES_OF_THREADS: Row = Row::new(
    Group::ProcessOptions,
    &[prctl],
    &[NAMES],
    Answer::Allow,
    "names of threads and of memory, for people who debug it",
);

/// All other options of a process are settled.
const SET_BEFORE: Row = Row::new(
    Group::ProcessOptions,
    &[prctl],
    ALWAYS,
    Answer::Fail(Errno::Einval),
    "the rest was set before the filter",
);

/// No other process is signalled.
const NO_SIGNALS: Row = Row::new(
    Group::SignalsToOthers,
    &[kill, tkill, tgkill, pidfd_open, pidfd_send_signal, rt_sigqueueinfo, rt_tgsigqueueinfo],
    ALWAYS,
    REFUSED,
    "it runs beside the user's processes; when it gives up itself it dies of the refusal just as well",
);

/// No other process is looked into.
const NO_TRACING: Row = Row::new(
    Group::Tracing,
    &[ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, kcmp],
    ALWAYS,
    REFUSED,
    "it has no business in the memory of others",
);

/// No mount and no namespace changes.
const STAYS: Row = Row::new(
    Group::Mount,
    &[
        mount,
        umount2,
        pivot_root,
        chroot,
        open_tree,
        open_tree_attr,
        move_mount,
        fsopen,
        fsconfig,
        fsmount,
        fspick,
        mount_setattr,
        unshare,
        setns,
    ],
    ALWAYS,
    REFUSED,
    "it stays where it was started",
);

/// The rows for the first process of a sandbox, once the runner exists that becomes the command.
///
/// It has to read what a notified call says, to look into `/proc`, and to rename directories in the command's place
/// with the command's own rights, so it may open files, but never for writing.
pub(super) const FIRST_PROCESS: &[Row] = &[
    BASIS,
    Row::new(
        Group::Memory,
        &[mmap, mprotect],
        &[PROT_EXEC],
        REFUSED,
        "all of its code is there from the start",
    ),
    Row::new(Group::Memory, &[mmap, mprotect], ALWAYS, Answer::Allow, "buffers"),
    Row::new(
        Group::Processes,
        &[wait4, waitid, kill, tgkill, pidfd_open, pidfd_send_signal, signalfd4, getrusage, prlimit64, times],
        ALWAYS,
        Answer::Allow,
        "it reaps, forwards signals and ends everything in its process namespace",
    ),
    Row::new(
        Group::Recorded,
        &[ioctl],
        &[NOTIFICATIONS],
        Answer::Allow,
        "it answers the filter of the command",
    ),
    Row::new(Group::Terminal, &[ioctl], ALWAYS, REFUSED, "it has no terminal and no device"),
    Row::new(
        Group::Recorded,
        &[process_vm_readv],
        ALWAYS,
        Answer::Allow,
        "it reads the arguments of a notified call",
    ),
    Row::new(Group::Files, &[open], &[OPEN_READ], Answer::Allow, "it looks into /proc"),
    Row::new(
        Group::Files,
        &[openat],
        &[OPENAT_READ],
        Answer::Allow,
        "it looks into /proc, and finds directories",
    ),
    Row::new(Group::Writes, &[open, openat, creat], ALWAYS, REFUSED, "it moves files and writes none"),
    Row::new(
        Group::Files,
        &[stat, lstat, newfstatat, statx, statfs, fstatfs, readlink, readlinkat, getdents64, pread64, getcwd],
        ALWAYS,
        Answer::Allow,
        "looking",
    ),
    Row::new(
        Group::Files,
        &[
            rename, renameat, renameat2, mkdir, mkdirat, rmdir, unlinkat, fchmod, fchown, utimensat,
            fgetxattr, flistxattr, fsetxattr,
        ],
        ALWAYS,
        Answer::Allow,
        "a directory of a lower layer is made anew, its entries are moved, and the old one is removed",
    ),
    NO_PROGRAMS,
    NO_CLONE3,
    Row::new(
        Group::Programs,
        &[clone],
        ALWAYS,
        REFUSED,
        "it has one thread, and the command was its last child",
    ),
    Row::new(
        Group::Tracing,
        &[ptrace, process_vm_writev, pidfd_getfd, kcmp],
        ALWAYS,
        REFUSED,
        "it changes nothing in the command",
    ),
];

/// The rows for the process that speaks with a model and holds its key.
pub(super) const AGENT: &[Row] = &[
    BASIS,
    NO_PROGRAMS,
    NO_CLONE3,
    Row::new(Group::Processes, &[clone], &[IS_THREAD], Answer::Allow, "threads of its own"),
    Row::new(Group::Programs, &[clone], ALWAYS, REFUSED, "a process could be made to run a program"),
    Row::new(
        Group::Memory,
        &[
            mmap,
            mprotect,
            pkey_alloc,
            pkey_mprotect,
            set_tid_address,
            get_robust_list,
            arch_prctl,
            getcpu,
            prlimit64,
        ],
        ALWAYS,
        Answer::Allow,
        "allocators, threads, and the modules with which the C library looks up names",
    ),
    Row::new(
        Group::Files,
        &[open],
        &[OPEN_READ],
        Answer::Allow,
        "resolver settings and certificates are read",
    ),
    Row::new(
        Group::Files,
        &[openat],
        &[OPENAT_READ],
        Answer::Allow,
        "resolver settings and certificates are read",
    ),
    Row::new(
        Group::Writes,
        &[open, openat, creat],
        ALWAYS,
        REFUSED,
        "what it has to say it says to the engine, and everything it would keep is kept there",
    ),
    Row::new(
        Group::Files,
        &[
            stat, lstat, newfstatat, statx, access, faccessat, faccessat2, readlink, readlinkat, getcwd,
            pread64, preadv, getdents64, fadvise64,
        ],
        ALWAYS,
        Answer::Allow,
        "reading",
    ),
    Row::new(Group::Files, &[ioctl], &[PLAIN_IOCTL], Answer::Allow, "descriptors are set to not block"),
    Row::new(Group::Terminal, &[ioctl], ALWAYS, REFUSED, "it has no terminal and no device"),
    Row::new(Group::Sockets, &[socket], &[AF_INET, IS_STREAM, TCP], Answer::Allow, "the model's server"),
    Row::new(Group::Sockets, &[socket], &[AF_INET, IS_DGRAM, UDP], Answer::Allow, "looking up its name"),
    Row::new(
        Group::Sockets,
        &[socket],
        &[AF_NETLINK, ROUTE],
        Answer::Allow,
        "the C library asks whether the machine has IPv6",
    ),
    Row::new(
        Group::OtherFamilies,
        &[socket],
        ALWAYS,
        Answer::Fail(Errno::Eafnosupport),
        "no local daemon is to be spoken to in the user's name",
    ),
    Row::new(
        Group::Sockets,
        &[
            connect,
            bind,
            getsockname,
            getpeername,
            getsockopt,
            setsockopt,
            sendmmsg,
            recvmmsg,
            socketpair,
            pipe2,
        ],
        ALWAYS,
        Answer::Allow,
        "work on those sockets",
    ),
    Row::new(
        Group::Sockets,
        &[listen, accept, accept4],
        ALWAYS,
        Answer::Allow,
        "a replayed model answers on the loopback, from a thread of the same process",
    )
    .only(Switch::Listens),
    Row::new(Group::Sockets, &[listen, accept, accept4], ALWAYS, REFUSED, "it waits for nobody"),
    NAMES_OF_THREADS,
    SET_BEFORE,
    NO_SIGNALS,
    NO_TRACING,
    STAYS,
];

/// The rows for the gateway of a sandbox: it speaks with both sides of the way out, and holds what clients must not see.
///
/// Its listening sockets are handed to it, so it makes none; and what it asks for names needs no port of its own choice.
pub(super) const GATEWAY: &[Row] = &[
    BASIS,
    NO_PROGRAMS,
    NO_CLONE3,
    Row::new(Group::Processes, &[clone], &[IS_THREAD], Answer::Allow, "threads of its own"),
    Row::new(Group::Programs, &[clone], ALWAYS, REFUSED, "a process could be made to run a program"),
    Row::new(
        Group::Memory,
        &[mmap, mprotect],
        &[PROT_EXEC],
        REFUSED,
        "all of its code is there from the start",
    ),
    Row::new(
        Group::Memory,
        &[mmap, mprotect, set_tid_address, get_robust_list, getcpu, prlimit64],
        ALWAYS,
        Answer::Allow,
        "allocators and threads",
    ),
    Row::new(
        Group::Writes,
        &[open, openat, openat2, creat],
        ALWAYS,
        REFUSED,
        "what it needs of the host it has read before, and it keeps nothing",
    ),
    Row::new(Group::Files, &[ioctl], &[PLAIN_IOCTL], Answer::Allow, "descriptors are set to not block"),
    Row::new(Group::Terminal, &[ioctl], ALWAYS, REFUSED, "it has no terminal and no device"),
    Row::new(
        Group::Sockets,
        &[socket],
        &[AF_INET, IS_STREAM, TCP],
        Answer::Allow,
        "connections to what the rules name",
    ),
    Row::new(Group::Sockets, &[socket], &[AF_INET, IS_DGRAM, UDP], Answer::Allow, "looking up names"),
    Row::new(
        Group::OtherFamilies,
        &[socket],
        ALWAYS,
        Answer::Fail(Errno::Eafnosupport),
        "no local daemon is to be spoken to in the user's name",
    ),
    Row::new(
        Group::Sockets,
        &[
            connect,
            accept,
            accept4,
            getsockname,
            getpeername,
            getsockopt,
            setsockopt,
            sendmmsg,
            recvmmsg,
            socketpair,
            pipe2,
            splice,
        ],
        ALWAYS,
        Answer::Allow,
        "work on those sockets, and on those that it was handed",
    ),
    Row::new(
        Group::Sockets,
        &[bind, listen],
        ALWAYS,
        REFUSED,
        "it waits for nobody but at the sockets that it was handed",
    ),
    NAMES_OF_THREADS,
    SET_BEFORE,
    NO_SIGNALS,
    NO_TRACING,
    STAYS,
];
