//! System calls that `rustix` has no safe form of. The only `unsafe` of this library is in this file and in
//! `seccomp` tests.

use std::io;

/// A System V shared memory segment that the kernel removes when this value, or the process, is gone.
pub(crate) struct SharedSegment {
    id: i32,
    address: *mut libc::c_void,
}

// SAFETY: the address is only handed back to `shmdt`, never read through, so any thread may do that.
unsafe impl Send for SharedSegment {}
// SAFETY: a shared reference gives out the id only.
unsafe impl Sync for SharedSegment {}

impl SharedSegment {
    /// Makes a segment of one page.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a null address lets the kernel choose one that nothing else uses.
        let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let attached = if address as isize == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
        // Marked for removal at once: the kernel keeps it until the last process that is attached is gone.
        // SAFETY: IPC_RMID takes no buffer.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        attached.map(|()| Self { id, address })
    }

    /// Returns the number by which anybody in the same namespace can ask for it.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }
}

impl Drop for SharedSegment {
    fn drop(&mut self) {
        // SAFETY: the address came from `shmat` and is detached once.
        unsafe { libc::shmdt(self.address) };
    }
}
