//! System calls that `rustix` has no safe form of. The only `unsafe` of this library is in this file and in
//! `seccomp` tests.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

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

/// Makes a group that takes notifications of files (`fanotify_init(2)`). Needs root.
pub(crate) fn file_notifications() -> io::Result<OwnedFd> {
    let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_UNLIMITED_MARKS;
    let events = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::fanotify_init(flags, events.cast_unsigned()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Asks for every opening of a file in a mount.
pub(crate) fn notify_of_opens(group: BorrowedFd<'_>, place: &CStr) -> io::Result<()> {
    mark(group, libc::FAN_MARK_ADD | libc::FAN_MARK_MOUNT, libc::AT_FDCWD, Some(place))
}

/// Asks for no more openings of this file.
pub(crate) fn forget_opens(group: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_IGNORED_MASK | libc::FAN_MARK_IGNORED_SURV_MODIFY;
    mark(group, flags | libc::FAN_MARK_EVICTABLE, file.as_raw_fd(), None)
}

/// Asks for nothing any more.
pub(crate) fn forget_mounts(group: BorrowedFd<'_>) -> io::Result<()> {
    mark(group, libc::FAN_MARK_FLUSH | libc::FAN_MARK_MOUNT, libc::AT_FDCWD, Some(c"/"))
}

fn mark(group: BorrowedFd<'_>, flags: libc::c_uint, directory: RawFd, path: Option<&CStr>) -> io::Result<()> {
    let path = path.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the path is null or a C string that lives longer than the call.
    let result = unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, libc::FAN_OPEN, directory, path) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads the events that are there: each is a file that was opened, or nothing where events were lost.
pub(crate) fn opened_files(group: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Vec<Option<OwnedFd>>> {
    const EVENT: usize = size_of::<libc::fanotify_event_metadata>();
    let length = rustix::io::read(group, &mut *buffer)?;
    let mut events = Vec::new();
    let mut left = &buffer[..length];
    while left.len() >= EVENT {
        // SAFETY: there are as many bytes as the plain numbers of one event, and they need not be aligned.
        let event = unsafe { left.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
        if event.vers != libc::FANOTIFY_METADATA_VERSION {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        // SAFETY: the kernel made the descriptor for this event, and nobody else owns it.
        events.push((event.fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(event.fd) }));
        left = left.get(usize::try_from(event.event_len).unwrap_or(EVENT).max(EVENT)..).unwrap_or_default();
    }
    Ok(events)
}

impl Drop for SharedSegment {
    fn drop(&mut self) {
        // SAFETY: the address came from `shmat` and is detached once.
        unsafe { libc::shmdt(self.address) };
    }
}
