//! Requests to a running command from other threads: signals, stops and window sizes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};

/// What a running command is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Send this signal to its process group.
    Signal(i32),
    /// End it: first by SIGTERM, after a grace by force.
    Stop,
    /// End everything now.
    Kill,
    /// The user's terminal has another size.
    Resize {
        /// Lines.
        rows: u16,
        /// Columns.
        columns: u16,
    },
}

/// The end that the supervisor listens to.
#[derive(Debug)]
pub struct Controller {
    requests: Receiver<Request>,
    wake_up: Arc<OwnedFd>,
}

/// The end that asks.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: Sender<Request>,
    wake_up: Arc<OwnedFd>,
}

/// Makes both ends.
///
/// # Errors
/// When no descriptor can be had.
pub fn controller() -> std::io::Result<(Handle, Controller)> {
    let wake_up = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = channel();
    let handle = Handle { requests: sender, wake_up: Arc::clone(&wake_up) };
    Ok((handle, Controller { requests: receiver, wake_up }))
}

impl Handle {
    /// Asks. When the command has ended already, nobody hears it, and that is fine.
    pub fn ask(&self, request: Request) {
        if self.requests.send(request).is_ok() {
            // A full counter is awake already.
            let _ = rustix::io::write(&*self.wake_up, &1u64.to_ne_bytes());
        }
    }
}

impl Controller {
    pub(crate) fn wake_up(&self) -> BorrowedFd<'_> {
        self.wake_up.as_fd()
    }

    /// Returns what was asked since the last time.
    pub(crate) fn requests(&self) -> Vec<Request> {
        // Only says that there is something to hear.
        let _ = rustix::io::read(&*self.wake_up, &mut [0; 8]);
        self.requests.try_iter().collect()
    }
}
