//! System calls of our own processes that `rustix` has no safe form of. The only `unsafe` of this module is here.

use std::ffi::CStr;
use std::io;

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor but the standard streams.
///
/// The caller must have no owner of another one: it would close, later, whatever has its number by then.
pub(super) fn close_all_but_streams() -> io::Result<()> {
    // SAFETY: closing a descriptor touches no memory. That nobody owns one is shown by the only caller: it has just been
    // started, has one thread, and holds nothing but its standard streams.
    check(unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) })
}

/// Tells whether this descriptor is open.
pub(super) fn is_open(fd: i32) -> bool {
    // SAFETY: asks for a flag of a descriptor, whether or not there is one.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Tries to become another program. When that works, it does not return.
pub(super) fn try_to_execute(program: &CStr) -> io::Result<()> {
    let arguments = [program.as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: a C string and two arrays that end in null, all of which live longer than the call.
    check(unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) }.into())
}

/// Tries to make a process. When that works, the new one ends at once.
pub(super) fn try_to_fork() -> io::Result<()> {
    // SAFETY: a raw clone with a null stack is a fork: the copy has memory of its own, in which this thread goes on.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        // SAFETY: ends the copy without running anything of ours on the way out.
        unsafe { libc::_exit(0) };
    }
    check(child)?;
    let child = libc::pid_t::try_from(child).unwrap_or(-1);
    // SAFETY: a null status is allowed.
    check(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }.into())
}

/// Asks to trace a process that cannot exist: what answers is the filter, or else the kernel with "no such process".
pub(super) fn try_to_trace() -> io::Result<()> {
    const PTRACE_SEIZE: libc::c_long = 0x4206; // linux/ptrace.h
    // SAFETY: this request takes numbers, and there is no process -1.
    check(unsafe { libc::syscall(libc::SYS_ptrace, PTRACE_SEIZE, -1, 0, 0) })
}

/// Asks whether a process that cannot exist may be signalled.
pub(super) fn try_to_signal() -> io::Result<()> {
    // SAFETY: signal 0 is none, and no process has this number (`pid_max` is at most 2^22).
    check(unsafe { libc::kill(libc::pid_t::MAX, 0) }.into())
}
