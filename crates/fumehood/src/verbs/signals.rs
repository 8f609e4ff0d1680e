//! Signals that are meant for the command: what people and supervisors send us reaches it, or ends it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use engine::{Handle, Request};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::terminal;
use crate::error::CliError;

/// Passes signals on to the running command until it is dropped.
pub(super) struct Forwarding {
    handle: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

impl Forwarding {
    /// Starts passing on.
    pub(super) fn start(to: Handle) -> Result<Self, CliError> {
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH]);
        let mut signals = signals.map_err(CliError::system("listen for signals"))?;
        let handle = signals.handle();
        let thread = std::thread::spawn(move || {
            let interrupts = AtomicU32::new(0);
            for signal in signals.forever() {
                if let Some(request) = request(signal, &interrupts) {
                    to.ask(request);
                }
            }
        });
        Ok(Self { handle, thread: Some(thread) })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It only passes signals on; when it panicked there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

/// Returns what a signal asks of the command. A person who interrupts again wants it to end, and then to end now.
fn request(signal: i32, interrupts: &AtomicU32) -> Option<Request> {
    match signal {
        SIGWINCH => terminal::size().map(|(rows, columns)| Request::Resize { rows, columns }),
        SIGINT => Some(match interrupts.fetch_add(1, Ordering::Relaxed) {
            0 => Request::Signal(SIGINT),
            1 => Request::Stop,
            _ => Request::Kill,
        }),
        SIGQUIT => Some(Request::Signal(SIGQUIT)),
        _ => Some(Request::Stop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_again_is_more_in_earnest() {
        let interrupts = AtomicU32::new(0);
        let asked = [(); 4].map(|()| request(SIGINT, &interrupts));
        assert_eq!(asked, [Request::Signal(SIGINT), Request::Stop, Request::Kill, Request::Kill].map(Some));
        assert_eq!(request(SIGTERM, &interrupts), Some(Request::Stop));
    }
}
