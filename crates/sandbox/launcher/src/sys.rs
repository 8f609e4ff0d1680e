//! System calls that `rustix` has no safe form of. The only `unsafe` of the launcher is in this file.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use launcher::plan::{IdMap, Instruction, Plan};
use rustix::mount::MountAttrFlags;

use crate::mutant::leaves_out;

/// Which side of [`clone_into_namespaces`] this is.
pub(crate) enum Cloned {
    /// The caller, with the child's number and a descriptor for it.
    Parent {
        /// The child's number, as seen here.
        pid: i32,
        /// The descriptor.
        pidfd: OwnedFd,
    },
    /// The first process of the new namespaces.
    Child,
}

/// Returns the namespaces in which the first process is made, less the one that a mutant leaves out.
pub(crate) fn namespace_flags(plan: &Plan) -> u64 {
    // The network is there already: see `network.rs`. Two are made later: see `late_namespace_flags`.
    const NAMESPACES: [(&str, i32); 4] = [
        ("user-namespace", libc::CLONE_NEWUSER),
        ("mount-namespace", libc::CLONE_NEWNS),
        ("pid-namespace", libc::CLONE_NEWPID),
        ("uts-namespace", libc::CLONE_NEWUTS),
    ];
    u64::from(flags_of(plan, &NAMESPACES).cast_unsigned())
}

/// Returns the namespaces that the first process makes for itself, less the one that a mutant leaves out.
///
/// The control groups of the process become the top of what it sees of them: it must be in them already, while a namespace
/// that is made together with the process shows those of the parent as the top. The directory of message queues belongs to
/// who makes it: that must be a user whom the user namespace knows, or nobody can make a queue.
pub(crate) fn late_namespace_flags(plan: &Plan) -> i32 {
    flags_of(plan, &[("cgroup-namespace", libc::CLONE_NEWCGROUP), ("ipc-namespace", libc::CLONE_NEWIPC)])
}

fn flags_of(plan: &Plan, namespaces: &[(&str, i32)]) -> i32 {
    let kept = namespaces.iter().filter(|(name, _)| !leaves_out(plan, name));
    kept.fold(0, |flags, (_, flag)| flags | flag)
}

/// Makes the namespaces, with a child in them. The child is the supervisor's (`CLONE_PARENT`), so that the
/// supervisor can wait for it and this process can leave (`clone(2)`). With a control group of version 2 the child is made
/// in it: nothing has to move, which would wait for every processor.
pub(crate) fn clone_into_namespaces(flags: u64, group: Option<&OwnedFd>) -> io::Result<Cloned> {
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` is plain numbers, for which all zeros is a value.
    let mut arguments: libc::clone_args = unsafe { zeroed() };
    arguments.flags = flags | (libc::CLONE_PIDFD | libc::CLONE_PARENT) as u64;
    arguments.pidfd = (&raw mut pidfd) as u64;
    if let Some(group) = group {
        arguments.flags |= INTO_CGROUP;
        arguments.cgroup = group.as_raw_fd().cast_unsigned().into();
    }
    // SAFETY: without CLONE_VM the child works on a copy of this single-threaded process. `pidfd` is written by
    // the kernel before the call returns, and lives longer than the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the call succeeded, so the kernel stored a descriptor that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid: i32::try_from(pid).unwrap_or(i32::MAX), pidfd })
        }
    }
}

/// Puts this process into new namespaces of these kinds (`unshare(2)`).
pub(crate) fn unshare(kinds: i32) -> io::Result<()> {
    // SAFETY: this process has one thread; the call changes only what it sees and may do.
    check(unsafe { libc::unshare(kinds) }.into())
}

/// Returns the user namespace that a namespace belongs to (`ioctl_nsfs(2)`).
pub(crate) fn owner_of_namespace(namespace: &OwnedFd) -> io::Result<OwnedFd> {
    const GET_USERNS: libc::c_ulong = 0xb701;
    // SAFETY: the request takes no argument.
    let owner = unsafe { libc::ioctl(namespace.as_raw_fd(), GET_USERNS as _) };
    check(owner.into())?;
    // SAFETY: the call succeeded, so the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(owner) })
}

/// Starts a copy of this process; returns the child's number, or zero in the child.
pub(crate) fn fork() -> io::Result<i32> {
    // SAFETY: the launcher has one thread, so the child sees no lock that somebody else holds.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// Adds attributes to a mount, and to all below it when `recursive` (`mount_setattr(2)`).
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: MountAttrFlags,
    recursive: bool,
) -> io::Result<()> {
    mount_setattr(mount, u64::from(attributes.bits()), 0, recursive)
}

/// Shows files of one id as files of another in a mount that hangs nowhere yet, by the map of a user namespace.
pub(crate) fn set_id_map(mount: BorrowedFd<'_>, namespace: BorrowedFd<'_>) -> io::Result<()> {
    mount_setattr(mount, libc::MOUNT_ATTR_IDMAP, namespace.as_raw_fd().cast_unsigned().into(), true)
}

fn mount_setattr(mount: BorrowedFd<'_>, set: u64, userns_fd: u64, recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string and `attributes` is a `mount_attr` whose size is given; both live
    // longer than the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    check(result)
}

/// Returns a user namespace whose map says how the ids of a mount are shown. The process that carried it is gone.
pub(crate) fn user_namespace_with(map: IdMap) -> io::Result<OwnedFd> {
    let parent = rustix::process::getpid();
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: a raw clone with a null stack is a fork of this single-threaded process.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    check(pid)?;
    if pid == 0 {
        carry_namespace(parent);
    }
    let opened = write_id_maps(pid, map)?;
    // When something before this fails, this process leaves, and the other one with it.
    let child = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap_or(-1));
    if let Some(child) = child {
        rustix::process::kill_process(child, rustix::process::Signal::KILL)?;
    }
    rustix::process::waitpid(child, rustix::process::WaitOptions::empty())?;
    Ok(opened)
}

/// Stays until it is killed, at the latest when its parent ends.
fn carry_namespace(parent: rustix::process::Pid) -> ! {
    let ends = prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as _, 0);
    // The parent may have ended before that was said.
    if ends.is_err() || rustix::process::getppid() != Some(parent) {
        exit_now(1);
    }
    loop {
        // SAFETY: waits for a signal, whatever it is.
        unsafe { libc::pause() };
    }
}

fn write_id_maps(pid: libc::c_long, map: IdMap) -> io::Result<OwnedFd> {
    std::fs::write(format!("/proc/{pid}/uid_map"), id_map_lines(map.disk_uid, map.shown_uid))?;
    std::fs::write(format!("/proc/{pid}/gid_map"), id_map_lines(map.disk_gid, map.shown_gid))?;
    Ok(File::open(format!("/proc/{pid}/ns/user"))?.into())
}

/// Writes a map that shows `disk` as `shown`, leaves every other id as it is, and shows nothing as `disk`.
fn id_map_lines(disk: u32, shown: u32) -> String {
    let (low, high) = (disk.min(shown), disk.max(shown));
    let mut lines = format!("{disk} {shown} 1\n");
    let mut same = |from: u32, to: u32| {
        if from < to {
            lines.push_str(&format!("{from} {from} {}\n", to - from));
        }
    };
    same(0, low);
    same(low + 1, high);
    same(high + 1, u32::MAX);
    lines
}

/// Empties all capability sets of this thread (`capset(2)`).
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // Version 3 takes two words for each of the three sets.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let sets = [[0u32; 3]; 2];
    // SAFETY: both pointers are to values of the layout that version 3 asks for, and live longer than the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) })
}

/// Calls `prctl(2)` with numbers alone.
pub(crate) fn prctl(option: i32, two: u64, three: u64) -> io::Result<i32> {
    // SAFETY: the options used here take numbers, none is a pointer.
    let result = unsafe { libc::prctl(option, two, three, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Loads a filter. With `listen`, returns the descriptor that gets its notifications (`seccomp(2)`).
pub(crate) fn load_filter(program: &[Instruction], listen: bool) -> io::Result<Option<OwnedFd>> {
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|i| libc::sock_filter { code: i.code, jt: i.jump_true, jf: i.jump_false, k: i.k })
        .collect();
    let length = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
    if !listen {
        seccomp(0, &program)?;
        return Ok(None);
    }
    let killable = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // Kernels before 5.19 do not know the second flag; without it a signal can interrupt a notified call.
    let listener = match seccomp(killable, &program) {
        // A kernel that does not know the flag (before 5.19) is no reason to give up; every other error is.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            seccomp(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)?
        }
        loaded => loaded?,
    };
    // SAFETY: with NEW_LISTENER the call returns a new descriptor that nobody else owns.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

fn seccomp(flags: libc::c_ulong, program: &libc::sock_fprog) -> io::Result<RawFd> {
    // SAFETY: `program` points to as many instructions as it says, and both live longer than the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(program))
    };
    check(result)?;
    Ok(RawFd::try_from(result).unwrap_or(-1))
}

/// Lets the kernel run the receiver of a notification at once on the same processor (Linux 6.6).
pub(crate) fn wake_up_in_place(listener: BorrowedFd<'_>) {
    const SET_FLAGS: libc::c_ulong = 0x4008_2104;
    // SAFETY: this request takes a number. It only makes things faster, so a kernel that lacks it is no error.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, 1u64) };
}

/// A notification: which process, which call, which arguments.
pub(crate) struct Notification {
    /// Names the notification in the answer.
    pub(crate) id: u64,
    /// The process, by its number here.
    pub(crate) pid: i32,
    /// The number of the system call.
    pub(crate) call: i64,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
}

/// Receives one notification; `None` when its process is gone already.
pub(crate) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    const RECEIVE: libc::c_ulong = 0xc050_2100;
    // SAFETY: `seccomp_notif` is plain numbers, and the kernel wants it zeroed.
    let mut notification: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: the request writes one `seccomp_notif`, which lives longer than the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut notification) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    Ok(Some(Notification {
        id: notification.id,
        pid: notification.pid.cast_signed(),
        call: notification.data.nr.into(),
        arguments: notification.data.args,
    }))
}

/// Answers a notification: `Ok` lets the kernel carry the call out, `Err` makes it return that error number, and
/// zero that it was done.
pub(crate) fn answer_notification(listener: BorrowedFd<'_>, id: u64, answer: Result<(), i32>) {
    const SEND: libc::c_ulong = 0xc018_2101;
    const CONTINUE: u32 = 1;
    let (error, flags) = match answer {
        Ok(()) => (0, CONTINUE),
        Err(errno) => (-errno, 0),
    };
    let response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: the request reads one `seccomp_notif_resp`. It fails when the process is gone: nobody waits then.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) };
}

/// Reads memory of another process; returns how many bytes could be read.
pub(crate) fn read_memory(pid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`; the remote address is never touched
    // in this process.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Sets one resource limit, soft and hard.
pub(crate) fn set_rlimit(resource: u32, value: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` lives longer than the call, which only reads it.
    check(unsafe { libc::setrlimit(resource as _, &raw const limit) }.into())
}

/// Reads a soft resource limit.
pub(crate) fn rlimit(resource: u32) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives longer than the call, which writes one `rlimit`.
    check(unsafe { libc::getrlimit(resource as _, &raw mut limit) }.into())?;
    Ok(limit.rlim_cur)
}

/// Joins a new, empty session keyring (`keyctl(2)`).
pub(crate) fn join_own_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for a keyring without a name.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0usize, 0, 0, 0) };
    match check(result) {
        // A kernel without keyrings has none to share.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        result => result,
    }
}

/// Brings the loopback interface up.
pub(crate) fn loopback_up() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `ifreq` is plain bytes, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request reads one `ifreq`, which lives longer than the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    check(result.into())
}

/// Blocks the signals that the first process reads from a descriptor, and returns that descriptor.
pub(crate) fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: `sigset_t` is plain bytes; `sigemptyset` sets all of it.
    let mut set: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: `set` is a set that we own.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: `set` is an initialised set that we own.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    // SAFETY: both sets are valid; the old one is not wanted.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) }.into())?;
    // SAFETY: -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    check(fd.into())?;
    // SAFETY: the call succeeded, so the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives every signal its default disposition and lets all of them through, as a new program expects.
pub(crate) fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is no function of ours.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            let error = io::Error::last_os_error();
            // SIGKILL, SIGSTOP and what the C library keeps for itself cannot be set, and need not be.
            if error.raw_os_error() != Some(libc::EINVAL) {
                return Err(error);
            }
        }
    }
    // SAFETY: `sigset_t` is plain bytes, and all zeros is the empty set on Linux.
    let empty: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: the set is valid; the old one is not wanted.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, std::ptr::null_mut()) }.into())
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: the caller keeps no owner of a descriptor at or above `first`.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) })
}

/// Makes `to` another number for `from`, which stays open across `execve` unless `close_on_exec`.
pub(crate) fn duplicate_to(from: BorrowedFd<'_>, to: RawFd, close_on_exec: bool) -> io::Result<()> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    if from.as_raw_fd() == to {
        let flag = if close_on_exec { libc::FD_CLOEXEC } else { 0 };
        // SAFETY: sets a flag of a descriptor that is open.
        return check(unsafe { libc::fcntl(to, libc::F_SETFD, flag) }.into());
    }
    // SAFETY: `to` is a standard stream or the runner's socket, which have no other owner here.
    check(unsafe { libc::dup3(from.as_raw_fd(), to, flags) }.into())
}

/// Takes ownership of a descriptor that [`duplicate_to`] has just put at this number.
pub(crate) fn adopt(number: RawFd) -> OwnedFd {
    // SAFETY: the caller has just made this number, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Replaces this process by a program; returns only the error.
pub(crate) fn execute(file: &CString, argv: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
    };
    let (argv, environment) = (pointers(argv), pointers(environment));
    // SAFETY: all three are C strings or arrays of them that end in null, and live longer than the call.
    unsafe { libc::execve(file.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends every other process of this process namespace at once.
pub(crate) fn kill_all_others() -> io::Result<()> {
    // SAFETY: sends a signal. For the first process of a namespace, -1 is all others in it.
    match check(unsafe { libc::kill(-1, libc::SIGKILL) }.into()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        result => result,
    }
}

/// Ends this process without running anything on the way out.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: ends the process; nothing follows.
    unsafe { libc::_exit(status) }
}

/// Returns the processor time in microseconds, and the largest resident size in KiB, of children waited for.
pub(crate) fn usage_of_children() -> (u64, u64) {
    // SAFETY: `rusage` is plain numbers.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: the call writes one `rusage`, which lives longer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    (micros(usage.ru_utime) + micros(usage.ru_stime), u64::try_from(usage.ru_maxrss).unwrap_or(0))
}

/// Makes a system call with useless or forbidden arguments, to see whether the kernel lets it through.
///
/// Only the prober calls this: in a process of its own, which ends right after.
pub(crate) fn try_call(number: i64, arguments: [u64; 6]) -> io::Result<i64> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the prober gives pointers only to values that live longer than the call, or addresses that the
    // kernel refuses to read. It is a process of its own that shares no memory.
    let result = unsafe { libc::syscall(number as libc::c_long, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a harmless call (`getpid`) through the 32-bit table of system calls, where the machine has one.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call_through_32_bit_table() -> i32 {
    const GETPID: i32 = 20;
    let mut result = GETPID;
    // SAFETY: the interrupt enters the kernel and comes back with only `eax` (and flags) changed; `r8` to `r11` are
    // zeroed by some kernels on this way and are named as clobbered.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("eax") result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    i32::from(result <= 0)
}

/// On other machines there is no such table to reach from a 64-bit program; ends as the filter would end it.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn call_through_32_bit_table() -> i32 {
    // SAFETY: sends a signal to this very process, which is a copy that ends here in any case.
    unsafe { libc::raise(libc::SIGSYS) };
    1
}

/// Makes the terminal of this descriptor the controlling one of this session.
pub(crate) fn take_terminal(terminal: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes a number.
    check(unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSCTTY, 0) }.into())
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
