//! Requests to a running command from other threads: signals, stops and window sizes.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// How far the command is that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is not even sure that there will be one.
    Waiting,
    /// It runs, or is about to: requests wait for its start.
    Running,
    /// It has ended: nobody hears a request any more.
    Over,
}

/// The end that the supervisor listens to.
pub struct Controller {
    requests: Receiver<Request>,
    shared: Arc<Shared>,
    on_start: Option<Box<dyn FnOnce() + Send>>,
}

/// The end that asks.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: Sender<Request>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wake_up: OwnedFd,
    /// The phase, as its number.
    phase: AtomicU8,
}

/// Makes both ends.
///
/// # Errors
/// When no descriptor can be had.
pub fn controller() -> std::io::Result<(Handle, Controller)> {
    let wake_up = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let shared = Arc::new(Shared { wake_up, phase: AtomicU8::new(Phase::Waiting as u8) });
    let (sender, receiver) = channel();
    let handle = Handle { requests: sender, shared: Arc::clone(&shared) };
    Ok((handle, Controller { requests: receiver, shared, on_start: None }))
}

impl Handle {
    /// Asks. When the command has ended already, nobody hears it, and that is fine.
    pub fn ask(&self, request: Request) {
        if self.requests.send(request).is_ok() {
            // A full counter is awake already.
            let _ = rustix::io::write(&self.shared.wake_up, &1u64.to_ne_bytes());
        }
    }

    /// Tells how far the command is.
    pub fn phase(&self) -> Phase {
        match self.shared.phase.load(Ordering::Acquire) {
            phase if phase == Phase::Waiting as u8 => Phase::Waiting,
            phase if phase == Phase::Running as u8 => Phase::Running,
            _ => Phase::Over,
        }
    }
}

impl Controller {
    /// Has something done when the command is about to be started.
    #[must_use]
    pub fn on_start(mut self, work: impl FnOnce() + Send + 'static) -> Self {
        self.on_start = Some(Box::new(work));
        self
    }

    /// Notes that the command is about to be started: from here on it is what requests are for.
    pub fn begin(&mut self) {
        self.shared.phase.store(Phase::Running as u8, Ordering::Release);
        if let Some(work) = self.on_start.take() {
            work();
        }
    }

    pub(crate) fn wake_up(&self) -> BorrowedFd<'_> {
        self.shared.wake_up.as_fd()
    }

    /// Returns what was asked since the last time.
    pub(crate) fn requests(&self) -> Vec<Request> {
        // Only says that there is something to hear.
        let _ = rustix::io::read(&self.shared.wake_up, &mut [0; 8]);
        self.requests.try_iter().collect()
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.shared.phase.store(Phase::Over as u8, Ordering::Release);
    }
}
