//! The table for commands: what programs inside a sandbox may ask of the kernel.
//!
//! Guarantees: the table is an allow-list. Every call of the kernel's tables stands in it or gets `ENOSYS`, and each
//! row says why it is there. Rows are in order: for each call the first that applies decides. Leaves to others: what
//! cannot be seen in the registers. A path, an address and the mode that `openat2` creates a file with lie in memory
//! that the program can change after the filter has looked, so the namespaces, the root and the layer's reader hold
//! those.
//!
//! What was weighed:
//! - **The set-group-id bit** may be set: `git` sets it on the directories of a shared repository, and `chmod` keeps
//!   it on directories below one that has it; the filter cannot tell a directory from a file. Writable places are
//!   mounted `nosuid`, and neither bit leaves through a layer.
//! - **Opening with a set-user-id mode** is not looked at: `openat2` takes the same mode from memory, no program asks
//!   for it by accident, and the test would cost every open. The same two walls hold it.
//! - **Addresses of `sendto`, `sendmsg` and `sendmmsg`** are not reported: they lie in memory, and a datagram has
//!   nowhere to go but the sandbox's own network.
//! - **`ENOSYS` and not `EPERM`** answers what programs probe for, so that they fall back (`clone3`, `io_uring`).
//!   `EACCES` stands where an unprivileged program would hear `EPERM` from the kernel too: the proof must be able to
//!   tell whether the filter answered.

use super::calls::Call::*;
use super::rules::{Answer, ArgTest, Errno, Group, Row, Switch, Test};

/// The answer to every number that is in no row.
pub(super) const DEFAULT: Answer = NOT_THERE;

pub(super) const ALWAYS: &[ArgTest] = &[];
pub(super) const REFUSED: Answer = Answer::Fail(Errno::Eperm);
pub(super) const NOT_THERE: Answer = Answer::Fail(Errno::Enosys);
const DENIED: Answer = Answer::Fail(Errno::Eacces);

// linux/sched.h
const CLONE_NEWTIME: u32 = 0x80;
const CLONE_NEWNS: u32 = 0x2_0000;
const CLONE_NEWCGROUP: u32 = 0x200_0000;
const CLONE_NEWUTS: u32 = 0x400_0000;
const CLONE_NEWIPC: u32 = 0x800_0000;
const CLONE_NEWUSER: u32 = 0x1000_0000;
const CLONE_NEWPID: u32 = 0x2000_0000;
const CLONE_NEWNET: u32 = 0x4000_0000;
const NESTABLE: u32 = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;
const NEVER_NESTED: u32 = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP;

const ANY_NEW_NAMESPACE: ArgTest =
    ArgTest::new(0, Test::HasAny(NESTABLE), "flags have one of CLONE_NEW{USER,PID,NET,IPC}");
const NEW_VIEW: ArgTest =
    ArgTest::new(0, Test::HasAny(NEVER_NESTED), "flags have one of CLONE_NEW{NS,UTS,CGROUP}");
// In the flags of `clone` this bit belongs to the number of the exit signal.
const NEW_TIME: ArgTest = ArgTest::new(0, Test::HasAny(CLONE_NEWTIME), "flags have CLONE_NEWTIME");

// asm-generic/ioctls.h
const TYPING: ArgTest = ArgTest::new(
    1,
    Test::AnyOf(&[0x5412, 0x541c, 0x541d, 0x5423]),
    "request is TIOCSTI, TIOCLINUX, TIOCCONS or TIOCSETD",
);

// linux/socket.h, linux/in.h, linux/netlink.h
pub(super) const SOCK_TYPE_MASK: u32 = 0xf;
pub(super) const STREAM: &[u32] = &[1];
pub(super) const DGRAM: &[u32] = &[2];
const AF_UNIX: ArgTest = ArgTest::new(0, Test::AnyOf(&[1]), "AF_UNIX");
pub(super) const AF_INET: ArgTest = ArgTest::new(0, Test::AnyOf(&[2, 10]), "AF_INET or AF_INET6");
pub(super) const AF_NETLINK: ArgTest = ArgTest::new(0, Test::AnyOf(&[16]), "AF_NETLINK");
const AF_PACKET: ArgTest = ArgTest::new(0, Test::AnyOf(&[17]), "AF_PACKET");
const AF_ALG: ArgTest = ArgTest::new(0, Test::AnyOf(&[38]), "AF_ALG");
const AF_VSOCK: ArgTest = ArgTest::new(0, Test::AnyOf(&[40]), "AF_VSOCK");
const AF_XDP: ArgTest = ArgTest::new(0, Test::AnyOf(&[44]), "AF_XDP");
const UNIX_TYPE: ArgTest =
    ArgTest::new(1, Test::Masked(SOCK_TYPE_MASK, &[1, 2, 5]), "SOCK_STREAM, SOCK_DGRAM or SOCK_SEQPACKET");
pub(super) const IS_STREAM: ArgTest = ArgTest::new(1, Test::Masked(SOCK_TYPE_MASK, STREAM), "SOCK_STREAM");
pub(super) const IS_DGRAM: ArgTest = ArgTest::new(1, Test::Masked(SOCK_TYPE_MASK, DGRAM), "SOCK_DGRAM");
// `socket(AF_INET, SOCK_PACKET)` is an old spelling of a packet socket: the kernel turns it into AF_PACKET.
const IS_RAW: ArgTest = ArgTest::new(1, Test::Masked(SOCK_TYPE_MASK, &[3, 10]), "SOCK_RAW or SOCK_PACKET");
pub(super) const TCP: ArgTest = ArgTest::new(2, Test::AnyOf(&[0, 6]), "the default protocol or TCP");
const UDP_OR_PING: ArgTest =
    ArgTest::new(2, Test::AnyOf(&[0, 17, 1, 58]), "the default protocol, UDP, ICMP or ICMPv6");
pub(super) const ROUTE: ArgTest = ArgTest::new(2, Test::AnyOf(&[0]), "NETLINK_ROUTE");
const SOL_TCP: ArgTest = ArgTest::new(1, Test::AnyOf(&[6]), "level is SOL_TCP");
const TCP_ULP: ArgTest = ArgTest::new(2, Test::AnyOf(&[31]), "option is TCP_ULP");

// linux/stat.h
const SET_USER_ID: u32 = 0o4000;
const CHMOD_MODE: ArgTest = ArgTest::new(1, Test::HasAny(SET_USER_ID), "mode has S_ISUID");
const FCHMODAT_MODE: ArgTest = ArgTest::new(2, Test::HasAny(SET_USER_ID), "mode has S_ISUID");
const MKNOD_SET_ID: ArgTest = ArgTest::new(1, Test::HasAny(0o6000), "mode has S_ISUID or S_ISGID");
const MKNODAT_SET_ID: ArgTest = ArgTest::new(2, Test::HasAny(0o6000), "mode has S_ISUID or S_ISGID");
const S_IFMT: u32 = 0o170_000;
const NO_DEVICE: &[u32] = &[0, 0o100_000, 0o010_000, 0o140_000];
const MKNOD_KIND: ArgTest = ArgTest::new(1, Test::Masked(S_IFMT, NO_DEVICE), "a file, a fifo or a socket");
const MKNODAT_KIND: ArgTest = ArgTest::new(2, Test::Masked(S_IFMT, NO_DEVICE), "a file, a fifo or a socket");
const WHITEOUT: ArgTest = ArgTest::new(4, Test::HasAny(4), "flags have RENAME_WHITEOUT");

// linux/personality.h: PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE; all ones only asks.
const PERSONA: ArgTest =
    ArgTest::new(0, Test::OnlyBits(0x0006_0008), "no more than PER_LINUX32, UNAME26 and ADDR_NO_RANDOMIZE");
const PERSONA_QUERY: ArgTest = ArgTest::new(0, Test::AnyOf(&[u32::MAX]), "0xffffffff, which only asks");

// linux/prctl.h
const PRCTL: ArgTest = ArgTest::new(
    0,
    Test::AnyOf(&[
        1,
        2,
        3,
        4,
        7,
        8,
        15,
        16,
        21,
        22,
        23,
        24,
        25,
        26,
        27,
        28,
        29,
        30,
        36,
        37,
        38,
        39,
        40,
        41,
        42,
        47,
        50,
        51,
        52,
        53,
        54,
        55,
        56,
        59,
        60,
        61,
        63,
        64,
        65,
        66,
        71,
        72,
        73,
        78,
        0x4155_5856,
        0x5356_4d41,
        0x5961_6d61,
    ]),
    "PDEATHSIG, DUMPABLE, KEEPCAPS, NAME, SECCOMP, CAPBSET, TSC, SECUREBITS, TIMERSLACK, CHILD_SUBREAPER, \
     NO_NEW_PRIVS, GET_TID_ADDRESS, THP_DISABLE, CAP_AMBIENT, SVE, SME, SPECULATION_CTRL, PAC, TAGGED_ADDR_CTRL, \
     SYSCALL_USER_DISPATCH, MDWE, SHADOW_STACK, FUTEX_HASH, GET_AUXV, SET_VMA or SET_PTRACER",
);

const fn row(
    group: Group,
    calls: &'static [super::Call],
    when: &'static [ArgTest],
    answer: Answer,
    reason: &'static str,
) -> Row {
    Row::new(group, calls, when, answer, reason)
}

/// The rows for commands, in order.
pub(super) const TABLE: &[Row] = &[
    // What is told to the supervisor.
    row(
        Group::Recorded,
        &[open, openat, openat2, creat],
        ALWAYS,
        Answer::Notify,
        "a profile may ask for the files that were read; each open then costs a round trip",
    )
    .only(Switch::ObserveOpens),
    row(
        Group::Devices,
        &[renameat2],
        &[WHITEOUT],
        Answer::Fail(Errno::Einval),
        "a whiteout in a layer hides a file of the layers below; only overlays make them, and overlayfs says the same",
    ),
    row(
        Group::Recorded,
        &[execve, execveat],
        ALWAYS,
        Answer::Notify,
        "the programs that were started are part of the record; what is recorded is evidence and never a control",
    ),
    row(
        Group::Recorded,
        &[connect],
        ALWAYS,
        Answer::Notify,
        "attempts to connect are part of the record; the network namespace refuses them, not the filter",
    ),
    row(
        Group::Recorded,
        &[rename, renameat, renameat2],
        ALWAYS,
        Answer::Notify,
        "an overlay cannot rename a directory of a lower layer; the helper does it for the program",
    ),
    // What a sandbox has no use for.
    row(
        Group::Mount,
        &[chroot],
        ALWAYS,
        Answer::Allow,
        "browsers leave the file system behind in a user namespace of their own",
    )
    .only(Switch::NestedUserNamespaces),
    row(
        Group::Mount,
        &[
            mount, umount2, pivot_root, chroot, open_tree, open_tree_attr, move_mount, fsopen, fsconfig, fsmount,
            fspick, mount_setattr,
        ],
        ALWAYS,
        REFUSED,
        "the root is complete before the command starts; a mount could uncover what is masked (CVE-2021-41133)",
    ),
    row(
        Group::Mount,
        &[statmount, listmount],
        ALWAYS,
        NOT_THERE,
        "they say where the pieces of the root come from; programs fall back to /proc/self/mountinfo",
    ),
    row(
        Group::Namespaces,
        &[setns],
        ALWAYS,
        REFUSED,
        "no namespace is worth entering from inside, and entering one gives back kernel surface",
    ),
    row(
        Group::Namespaces,
        &[clone3],
        ALWAYS,
        NOT_THERE,
        "its flags lie in memory where a filter cannot see them; C libraries fall back to clone",
    ),
    row(
        Group::Namespaces,
        &[clone, unshare],
        &[NEW_VIEW],
        REFUSED,
        "a mount namespace is of no use without mounting, and the host name and the groups are ours",
    ),
    row(
        Group::Namespaces,
        &[unshare],
        &[NEW_TIME],
        REFUSED,
        "a program with another clock would confuse the record; no build asks for it",
    ),
    row(
        Group::Namespaces,
        &[clone, unshare],
        &[ANY_NEW_NAMESPACE],
        Answer::Allow,
        "a profile may let a browser build its own sandbox; it has no mount family and no raw sockets all the same",
    )
    .only(Switch::NestedUserNamespaces),
    row(
        Group::Namespaces,
        &[clone, unshare],
        &[ANY_NEW_NAMESPACE],
        REFUSED,
        "a user namespace gives back the capabilities that most kernel faults need (bwrap has --disable-userns for it)",
    ),
    row(
        Group::Keys,
        &[keyctl, add_key, request_key],
        ALWAYS,
        REFUSED,
        "key rings are not namespaced: they can hold the caller's keys and outlive the sandbox (CVE-2016-0728)",
    ),
    row(
        Group::Bpf,
        &[bpf],
        ALWAYS,
        REFUSED,
        "the verifier has a long record of faults, and no build loads programs into the kernel",
    ),
    row(
        Group::Perf,
        &[perf_event_open],
        ALWAYS,
        REFUSED,
        "large and rarely used; counters also see other processes' timing (CVE-2013-2094)",
    ),
    row(
        Group::Userfaultfd,
        &[userfaultfd],
        ALWAYS,
        REFUSED,
        "it stops the kernel in the middle of a copy, which turns small races into reliable attacks",
    ),
    row(
        Group::IoUring,
        &[io_uring_setup, io_uring_enter, io_uring_register],
        ALWAYS,
        NOT_THERE,
        "its requests pass by every filter, and many published attacks on the kernel went through it",
    ),
    row(
        Group::IoUring,
        &[io_setup, io_destroy, io_submit, io_cancel, io_getevents, io_pgetevents],
        ALWAYS,
        NOT_THERE,
        "its contexts count against one limit of the whole machine (fs.aio-max-nr); databases fall back",
    ),
    row(
        Group::Kexec,
        &[kexec_load, kexec_file_load],
        ALWAYS,
        DENIED,
        "replaces the running kernel",
    ),
    row(
        Group::Modules,
        &[init_module, finit_module, delete_module],
        ALWAYS,
        DENIED,
        "puts code into the kernel",
    ),
    row(
        Group::Handles,
        &[name_to_handle_at, open_by_handle_at],
        ALWAYS,
        REFUSED,
        "a handle names a file by number past every directory on the way (the Docker `shocker` escape)",
    ),
    row(
        Group::Handles,
        &[fanotify_init, fanotify_mark],
        ALWAYS,
        REFUSED,
        "reports files by handle; watchers use inotify",
    ),
    row(
        Group::Terminal,
        &[ioctl],
        &[TYPING],
        REFUSED,
        "types into the terminal of the user, takes its console or changes its line discipline (CVE-2017-5226)",
    ),
    row(
        Group::SetId,
        &[chmod, fchmod],
        &[CHMOD_MODE],
        REFUSED,
        "a set-user-id program in a workspace would outlive the sandbox",
    ),
    row(
        Group::SetId,
        &[fchmodat, fchmodat2],
        &[FCHMODAT_MODE],
        REFUSED,
        "the same with the mode in another place",
    ),
    row(Group::SetId, &[mknod], &[MKNOD_SET_ID], REFUSED, "the same when a file is made"),
    row(Group::SetId, &[mknodat], &[MKNODAT_SET_ID], REFUSED, "the same when a file is made"),
    row(Group::Files, &[mknod], &[MKNOD_KIND], Answer::Allow, "fifos and sockets are ordinary files of a build"),
    row(Group::Files, &[mknodat], &[MKNODAT_KIND], Answer::Allow, "fifos and sockets are ordinary files of a build"),
    row(
        Group::Devices,
        &[mknod, mknodat],
        ALWAYS,
        REFUSED,
        "a device node passes by every path rule, and the character device 0:0 is an overlay's whiteout",
    ),
    row(
        Group::Clock,
        &[settimeofday, clock_settime, clock_adjtime, adjtimex],
        ALWAYS,
        REFUSED,
        "the clock is the machine's; approvals and records depend on it",
    ),
    row(
        Group::Machine,
        &[
            swapon, swapoff, reboot, acct, quotactl, quotactl_fd, syslog, sethostname, setdomainname, iopl, ioperm,
        ],
        ALWAYS,
        REFUSED,
        "changes or reads the state of the whole machine; for administrators only",
    ),
    row(
        Group::Personality,
        &[personality],
        &[PERSONA_QUERY],
        Answer::Allow,
        "asks which one is set",
    ),
    row(
        Group::Personality,
        &[personality],
        &[PERSONA],
        Answer::Allow,
        "debuggers turn address randomisation off for the program they start; linux32 builds change what uname says",
    ),
    row(
        Group::Personality,
        &[personality],
        ALWAYS,
        REFUSED,
        "the rest maps the zero page, makes data executable or imitates systems of the past (CVE-2009-1895)",
    ),
    row(
        Group::ProcessOptions,
        &[prctl],
        &[PRCTL],
        Answer::Allow,
        "what C libraries, runtimes, debuggers and shells use",
    ),
    row(
        Group::ProcessOptions,
        &[prctl],
        ALWAYS,
        Answer::Fail(Errno::Einval),
        "the rest rewrites the description of the process (SET_MM), merges its pages with others' or steers I/O",
    ),
    // Sockets.
    row(
        Group::Sockets,
        &[socket],
        &[AF_UNIX, UNIX_TYPE],
        Answer::Allow,
        "programs talk to their own parts; names outside are not in the root, and abstract ones are per network",
    ),
    row(
        Group::Sockets,
        &[socket],
        &[AF_INET, IS_STREAM, TCP],
        Answer::Allow,
        "servers and clients on the sandbox's own loopback",
    ),
    row(
        Group::Sockets,
        &[socket],
        &[AF_INET, IS_DGRAM, UDP_OR_PING],
        Answer::Allow,
        "the same; the kernel decides who may ping",
    ),
    row(
        Group::Sockets,
        &[socket],
        &[AF_NETLINK, ROUTE],
        Answer::Allow,
        "getifaddrs and name look-ups read addresses by it; changing them needs a capability",
    ),
    row(
        Group::Vsock,
        &[socket],
        &[AF_VSOCK],
        DENIED,
        "network namespaces do not hold it: the host of a virtual machine is at the other end",
    ),
    row(
        Group::Packet,
        &[socket],
        &[AF_PACKET],
        DENIED,
        "sees traffic of others and has a long record of faults (CVE-2017-7308, CVE-2020-14386)",
    ),
    row(
        Group::RawSockets,
        &[socket],
        &[AF_INET, IS_RAW],
        DENIED,
        "makes packets that no protocol checked",
    ),
    row(
        Group::KernelCrypto,
        &[socket],
        &[AF_ALG],
        DENIED,
        "cryptography is done in the program; the kernel's is rarely used and often at fault",
    ),
    row(
        Group::Xdp,
        &[socket],
        &[AF_XDP],
        DENIED,
        "shares packet buffers with drivers",
    ),
    row(
        Group::Transports,
        &[socket],
        &[AF_INET],
        Answer::Fail(Errno::Eprotonosupport),
        "SCTP, MPTCP, DCCP, UDP-Lite, L2TP and SMC load large protocols; programs fall back to TCP and UDP",
    ),
    row(
        Group::Netlink,
        &[socket],
        &[AF_NETLINK],
        Answer::Fail(Errno::Eprotonosupport),
        "the rest configures the kernel (CVE-2022-34918, CVE-2024-1086); the answer is that of a kernel without it",
    ),
    row(
        Group::Transports,
        &[socket],
        &[AF_UNIX],
        Answer::Fail(Errno::Esocktnosupport),
        "no program needs another type",
    ),
    row(
        Group::OtherFamilies,
        &[socket],
        ALWAYS,
        Answer::Fail(Errno::Eafnosupport),
        "Bluetooth, CAN, TIPC, RDS, IPsec keys and dozens more; the answer is that of a kernel without them",
    ),
    row(Group::Sockets, &[socketpair], &[AF_UNIX, UNIX_TYPE], Answer::Allow, "pipes that go both ways"),
    row(
        Group::OtherFamilies,
        &[socketpair],
        ALWAYS,
        Answer::Fail(Errno::Eafnosupport),
        "no other family that is allowed has pairs",
    ),
    row(
        Group::UpperProtocols,
        &[setsockopt],
        &[SOL_TCP, TCP_ULP],
        REFUSED,
        "TLS and IPsec in the kernel are loaded by it; libraries fall back to their own (CVE-2023-0461)",
    ),
    row(
        Group::Sockets,
        &[
            setsockopt, getsockopt, bind, listen, accept, accept4, getsockname, getpeername, shutdown, sendto, sendmsg,
            sendmmsg, recvfrom, recvmsg, recvmmsg,
        ],
        ALWAYS,
        Answer::Allow,
        "work on sockets that could be made",
    ),
    // What ordinary programs do.
    row(
        Group::Files,
        &[
            read, write, open, openat, openat2, creat, close, close_range, stat, fstat, lstat, newfstatat, statx,
            lseek, pread64, pwrite64, readv, writev, preadv, pwritev, preadv2, pwritev2, access, faccessat, faccessat2,
            dup, dup2, dup3, pipe, pipe2, fcntl, flock, fsync, fdatasync, sync, syncfs, sync_file_range, truncate,
            ftruncate, fallocate, fadvise64, readahead, getdents, getdents64, getcwd, chdir, fchdir, mkdir, mkdirat,
            rmdir, link, linkat, unlink, unlinkat, symlink, symlinkat, readlink, readlinkat, chmod, fchmod, fchmodat,
            fchmodat2, chown, fchown, lchown, fchownat, umask, utime, utimes, futimesat, utimensat, statfs, fstatfs,
            sendfile, copy_file_range, splice, tee, vmsplice, cachestat,
        ],
        ALWAYS,
        Answer::Allow,
        "the root decides what can be reached, and mounts and quotas what can be written",
    ),
    row(
        Group::Files,
        &[
            setxattr, lsetxattr, fsetxattr, setxattrat, getxattr, lgetxattr, fgetxattr, getxattrat, listxattr,
            llistxattr, flistxattr, listxattrat, removexattr, lremovexattr, fremovexattr, removexattrat,
        ],
        ALWAYS,
        Answer::Allow,
        "archives and copies keep attributes; an overlay keeps its own ones to itself, and a layer is read without them",
    ),
    row(
        Group::Files,
        &[ioctl],
        ALWAYS,
        Answer::Allow,
        "terminals, pipes and files; there is no device in the root that could be harmed",
    ),
    row(
        Group::Events,
        &[
            poll, ppoll, select, pselect6, epoll_create, epoll_create1, epoll_ctl, epoll_wait, epoll_pwait,
            epoll_pwait2, eventfd, eventfd2, signalfd, signalfd4, timerfd_create, timerfd_settime, timerfd_gettime,
            inotify_init, inotify_init1, inotify_add_watch, inotify_rm_watch,
        ],
        ALWAYS,
        Answer::Allow,
        "event loops and watchers",
    ),
    row(
        Group::Programs,
        &[memfd_create],
        ALWAYS,
        REFUSED,
        "a file in memory lies outside the mounts that let no code be executed, and Landlock does not hold it",
    )
    .only(Switch::ListedPrograms),
    row(
        Group::Memory,
        &[
            mmap, mprotect, munmap, mremap, msync, mincore, madvise, process_madvise, brk, mlock, mlock2, munlock,
            mlockall, munlockall, memfd_create, remap_file_pages, mseal, map_shadow_stack, pkey_mprotect, pkey_alloc,
            pkey_free, mbind, set_mempolicy, get_mempolicy, set_mempolicy_home_node, migrate_pages, move_pages,
            membarrier, process_mrelease,
        ],
        ALWAYS,
        Answer::Allow,
        "allocators, loaders and just-in-time compilers; the memory limit counts all of it",
    ),
    row(
        Group::Processes,
        &[
            clone, fork, vfork, exit, exit_group, wait4, waitid, unshare, set_tid_address, set_robust_list,
            get_robust_list, rseq, futex, futex_waitv, futex_wake, futex_wait, futex_requeue, sched_yield,
            sched_setparam, sched_getparam, sched_setscheduler, sched_getscheduler, sched_get_priority_max,
            sched_get_priority_min, sched_rr_get_interval, sched_setaffinity, sched_getaffinity, sched_setattr,
            sched_getattr, getpriority, setpriority, ioprio_set, ioprio_get, setrlimit, getrlimit, prlimit64,
            arch_prctl, getcpu, pidfd_open,
        ],
        ALWAYS,
        Answer::Allow,
        "processes and threads of the sandbox; limits hold their number, and the process namespace their sight",
    ),
    row(
        Group::Signals,
        &[
            rt_sigaction, rt_sigprocmask, rt_sigreturn, rt_sigpending, rt_sigtimedwait, rt_sigqueueinfo,
            rt_sigsuspend, rt_tgsigqueueinfo, sigaltstack, kill, tkill, tgkill, pidfd_send_signal, pause, alarm,
            getitimer, setitimer, timer_create, timer_settime, timer_gettime, timer_getoverrun, timer_delete,
            nanosleep, clock_nanosleep, clock_gettime, clock_getres, gettimeofday, time, times, restart_syscall,
        ],
        ALWAYS,
        Answer::Allow,
        "only processes of the sandbox have a number to send a signal to",
    ),
    row(
        Group::Signals,
        &[uretprobe],
        ALWAYS,
        Answer::Allow,
        "the kernel itself makes this call in a program that an administrator is measuring",
    ),
    row(
        Group::Ipc,
        &[
            shmget, shmat, shmctl, shmdt, semget, semop, semtimedop, semctl, msgget, msgsnd, msgrcv, msgctl, mq_open,
            mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr,
        ],
        ALWAYS,
        Answer::Allow,
        "the namespace is the sandbox's own",
    ),
    row(
        Group::Identity,
        &[
            getpid, gettid, getppid, getpgrp, getpgid, setpgid, getsid, setsid, getuid, geteuid, getgid, getegid,
            getresuid, getresgid, getgroups, setuid, setgid, setreuid, setregid, setresuid, setresgid, setfsuid,
            setfsgid, setgroups, capget, capset, uname, sysinfo, getrusage, getrandom,
        ],
        ALWAYS,
        Answer::Allow,
        "without capabilities an id can only be set to what it is",
    ),
    row(
        Group::Tracing,
        &[ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd],
        ALWAYS,
        Answer::Allow,
        "debuggers work on processes of the sandbox; no other has a number, and the first process cannot be traced",
    ),
    row(
        Group::SelfConfinement,
        &[seccomp, landlock_create_ruleset, landlock_add_rule, landlock_restrict_self],
        ALWAYS,
        Answer::Allow,
        "programs may confine themselves further; a second notification listener is refused by the kernel with EBUSY",
    ),
    row(
        Group::Unlisted,
        &[
            uselib, ustat, sysfs, _sysctl, create_module, get_kernel_syms, query_module, nfsservctl, getpmsg, putpmsg,
            afs_syscall, tuxcall, security, vserver, epoll_ctl_old, epoll_wait_old, lookup_dcookie, set_thread_area,
            get_thread_area, modify_ldt, vhangup, memfd_secret, lsm_get_self_attr, lsm_set_self_attr,
            lsm_list_modules, file_getattr, file_setattr,
        ],
        ALWAYS,
        NOT_THERE,
        "obsolete, or newer than any program that needs it; the same is answered to every number that has no row",
    ),
];
