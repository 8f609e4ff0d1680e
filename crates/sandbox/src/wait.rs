//! Waiting for descriptors, and for the first process of a sandbox.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};

/// Waits until a descriptor can be read, or has ended.
pub(crate) fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Tells whether a process has ended.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let now = Timespec::default();
    !matches!(poll(&mut [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)], Some(&now)), Ok(0))
}

/// Ends the first process, and with it everything inside; returns when the kernel has ended all of it.
///
/// The kernel ends every process of a namespace before its first one can be waited for (`pid_namespaces(7)`), and a
/// pidfd never names another process, so no stranger is hit.
pub(crate) fn end_first_process(pidfd: &OwnedFd) {
    // It may have ended by itself.
    let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
    reap(pidfd);
}

/// Waits for the first process, which is our child.
pub(crate) fn reap(pidfd: &OwnedFd) {
    while let Err(Errno::INTR) = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED)
    {
    }
}
