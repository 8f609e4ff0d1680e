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

/// What `LOOP_CONFIGURE` takes (`struct loop_config` and `struct loop_info64` in `linux/loop.h`).
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    /// Device, inode, real device, offset and size limit.
    places: [u64; 5],
    /// Number, and the kind and size of a key that no kernel takes any longer.
    numbers: [u32; 3],
    flags: u32,
    /// Names and key.
    texts: [u8; 160],
    init: [u64; 2],
    reserved: [u64; 8],
}

/// Returns the number of a loop device that nobody uses at this moment; it is made when there is none.
pub(crate) fn free_loop_device(control: BorrowedFd<'_>) -> io::Result<u32> {
    const GET_FREE: libc::c_ulong = 0x4c82;
    // SAFETY: this request takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Puts a file behind a loop device, from which the kernel takes it when the last user of the device is gone: a crash at
/// any moment leaves nothing attached (Linux 5.8, before which the two were separate calls).
pub(crate) fn attach_to_loop(device: BorrowedFd<'_>, file: BorrowedFd<'_>) -> io::Result<()> {
    const CONFIGURE: libc::c_ulong = 0x4c0a;
    const AUTOCLEAR: u32 = 4;
    let config = LoopConfig {
        fd: file.as_raw_fd().cast_unsigned(),
        block_size: 4096,
        places: [0; 5],
        numbers: [0; 3],
        flags: AUTOCLEAR,
        texts: [0; 160],
        init: [0; 2],
        reserved: [0; 8],
    };
    // SAFETY: the request reads one `loop_config`, whose layout is the kernel's and which lives longer than the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE as _, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Stops an ext4 file system: what was not written out yet never is. The caller has made sure which one it is.
pub(crate) fn stop_file_system(top: BorrowedFd<'_>) -> io::Result<()> {
    const SHUTDOWN: libc::c_ulong = 0x8004_587d;
    let without_flushing: u32 = 2;
    // SAFETY: the request reads one number, which lives longer than the call.
    let result = unsafe { libc::ioctl(top.as_raw_fd(), SHUTDOWN as _, &raw const without_flushing) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
