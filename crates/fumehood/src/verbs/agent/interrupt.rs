//! Ctrl-C while an agent works: what runs is stopped, the agent's process ends, and the task stays as it is.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use engine::{Handle, Request};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::CliError;

/// Listens for signals that mean the end, until it is dropped.
pub(in crate::verbs) struct Interrupt {
    shared: Arc<Shared>,
    signals: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    times: AtomicU32,
    running: Mutex<Running>,
}

/// What has to be ended.
#[derive(Default)]
struct Running {
    action: Option<Handle>,
    agent: Option<OwnedFd>,
}

impl Interrupt {
    /// Starts listening.
    pub(in crate::verbs) fn start() -> Result<Self, CliError> {
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]);
        let mut signals = signals.map_err(CliError::system("listen for signals"))?;
        let handle = signals.handle();
        let shared = Arc::new(Shared::default());
        let to = Arc::clone(&shared);
        let thread = std::thread::spawn(move || signals.forever().for_each(|_| to.end()));
        Ok(Self { shared, signals: handle, thread: Some(thread) })
    }

    /// Tells whether somebody wants the end.
    pub(in crate::verbs) fn came(&self) -> bool {
        self.shared.times.load(Ordering::Acquire) > 0
    }

    /// Names the agent's process, which is ended on a signal.
    pub(super) fn ends(&self, child: &Child) -> Result<(), CliError> {
        // It has not been waited for, so the number cannot mean another process.
        let opened = pidfd_open(Pid::from_child(child), PidfdFlags::empty());
        let agent = opened.map_err(|error| CliError::system("watch the agent's process")(error.into()))?;
        self.shared.lock().agent = Some(agent);
        Ok(())
    }

    /// Does something during which a signal stops an action.
    pub(super) fn during<T>(&self, action: Handle, work: impl FnOnce() -> T) -> T {
        self.shared.lock().action = Some(action.clone());
        if self.came() {
            action.ask(Request::Stop);
        }
        let done = work();
        self.shared.lock().action = None;
        done
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first signal asks an action to end, the next ones end it.
    fn end(&self) {
        let first = self.times.fetch_add(1, Ordering::AcqRel) == 0;
        let running = self.lock();
        if let Some(action) = &running.action {
            action.ask(if first { Request::Stop } else { Request::Kill });
        }
        if let Some(agent) = &running.agent {
            // It may have ended by itself.
            let _ = pidfd_send_signal(agent, Signal::KILL);
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // It only passes signals on; when it panicked there is nothing to clean up.
            let _ = thread.join();
        }
    }
}
