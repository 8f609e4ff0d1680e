//! Putting a filter on this process.
//!
//! Guarantees: on success the filter holds for this thread and all that it will start (with [`Threads::All`]: for
//! every thread of the process), until the end. Nothing here allocates or takes a lock, so it may stand between
//! `fork` and `exec`. Leaves to others: what the filter says, and answering on the listener.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::program::{MAX_INSTRUCTIONS, SockFilter};

// linux/seccomp.h
const SECCOMP_SET_MODE_FILTER: libc::c_ulong = 1;
const FLAG_TSYNC: libc::c_ulong = 1 << 0;
const FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
const FLAG_WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;

/// The threads that a filter is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The calling one, and all that it starts.
    Calling,
    /// Every one of the process (Linux 3.17).
    All,
}

/// A listener, and how firmly a notified program waits.
#[derive(Debug)]
pub struct Listener {
    /// Where the notifications are read.
    pub fd: OwnedFd,
    /// Whether a program that waits for an answer can be interrupted by nothing but `SIGKILL` once the notification
    /// was read (Linux 5.19). Before that, a signal makes it call again, and the call is notified again.
    pub waits_killable: bool,
}

/// Gives up gaining privileges by `exec`, which the kernel demands before an unprivileged program loads a filter.
///
/// # Errors
/// What the kernel says; there is no ordinary reason.
pub fn set_no_new_privs() -> io::Result<()> {
    // SAFETY: this option takes numbers only and changes nothing but a flag of the calling thread.
    let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Loads a filter that notifies nobody.
///
/// # Errors
/// `EACCES` without [`set_no_new_privs`], `EINVAL` for a program that the kernel refuses or where it has no filters.
pub fn load(program: &[SockFilter], threads: Threads) -> io::Result<()> {
    let flags = if threads == Threads::All { FLAG_TSYNC } else { 0 };
    match seccomp(program, flags)? {
        0 => Ok(()),
        // The number of a thread that could not be brought along.
        _ => Err(io::ErrorKind::ResourceBusy.into()),
    }
}

/// Loads a filter with notifications on the calling thread, and returns where they are read.
///
/// # Errors
/// As [`load`]; `EBUSY` where a filter with a listener is on already.
pub fn load_with_listener(program: &[SockFilter]) -> io::Result<Listener> {
    let (fd, waits_killable) = match seccomp(program, FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            (seccomp(program, FLAG_NEW_LISTENER)?, false)
        }
        result => (result?, true),
    };
    // SAFETY: with this flag the kernel answers with a new descriptor, which nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Ok(Listener { fd, waits_killable })
}

fn seccomp(program: &[SockFilter], flags: libc::c_ulong) -> io::Result<RawFd> {
    #[repr(C)]
    struct SockFprog {
        len: libc::c_ushort,
        filter: *const SockFilter,
    }
    if program.is_empty() || program.len() > MAX_INSTRUCTIONS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let fprog = SockFprog { len: program.len() as libc::c_ushort, filter: program.as_ptr() };
    // SAFETY: `fprog` is laid out as the kernel's `struct sock_fprog` and names `len` instructions, which are laid out
    // as `struct sock_filter` and live until the call returns. The kernel copies and checks them.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw const fprog) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as RawFd) }
}
