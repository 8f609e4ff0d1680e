//! What other threads ask of a running command: signals and stops; and the size of the user's terminal.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
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
    /// The size of the user's terminal: lines in the upper half, columns in the lower; 0 is none.
    size: AtomicU32,
}

/// Makes both ends.
///
/// # Errors
/// When no descriptor can be had.
pub fn controller() -> std::io::Result<(Handle, Controller)> {
    let wake_up = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let shared =
        Arc::new(Shared { wake_up, phase: AtomicU8::new(Phase::Waiting as u8), size: AtomicU32::new(0) });
    let (sender, receiver) = channel();
    let handle = Handle { requests: sender, shared: Arc::clone(&shared) };
    Ok((handle, Controller { requests: receiver, shared, on_start: None }))
}

impl Handle {
    /// Asks. When the command has ended already, nobody hears it, and that is fine.
    pub fn ask(&self, request: Request) {
        if self.requests.send(request).is_ok() {
            self.wake();
        }
    }

    /// Says how many lines and columns the user's terminal has. The command's has as many when it starts, and is changed
    /// while it runs.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.shared.size.store(u32::from(rows) << 16 | u32::from(columns), Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // A full counter is awake already.
        let _ = rustix::io::write(&self.shared.wake_up, &1u64.to_ne_bytes());
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

    /// Returns the lines and columns of the user's terminal, when they are known.
    pub(crate) fn size(&self) -> Option<(u16, u16)> {
        let size = self.shared.size.load(Ordering::Acquire);
        let half = |bits: u32| u16::try_from(bits & 0xffff).unwrap_or(u16::MAX);
        (size != 0).then(|| (half(size >> 16), half(size)))
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
