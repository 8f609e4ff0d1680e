//! What the person who waits sees: one line on the terminal that says what goes on and since when.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::text::escape;

/// Says on one line of standard error what goes on, until it is dropped. Nothing is shown for what ends soon.
#[derive(Debug)]
pub struct Progress {
    shared: Arc<Shared>,
    line: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Shared {
    what: Mutex<String>,
    done: AtomicU64,
    total: AtomicU64,
}

const TICK: Duration = Duration::from_millis(120);
const FRAMES: [char; 4] = ['|', '/', '-', '\\'];

impl Progress {
    /// Starts telling after `patience`; tells nothing when nobody watches.
    pub(super) fn start(what: &str, watched: bool, patience: Duration) -> Self {
        let what = Mutex::new(what.to_owned());
        let shared = Arc::new(Shared { what, done: AtomicU64::new(0), total: AtomicU64::new(0) });
        let line = watched.then(|| {
            let (stop, stopped) = mpsc::channel();
            let shared = Arc::clone(&shared);
            let thread = std::thread::spawn(move || {
                let begin = Instant::now();
                if stopped.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                for frame in FRAMES.iter().cycle() {
                    draw(&format!("{frame} {}", shared.line(begin.elapsed())));
                    if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                        break;
                    }
                }
                draw("");
            });
            (stop, thread)
        });
        Self { shared, line }
    }

    /// Says that something else goes on now.
    pub fn set(&self, what: &str) {
        what.clone_into(&mut self.shared.what.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Says how much of it is done.
    pub fn count(&self, done: u64, total: u64) {
        self.shared.done.store(done, Ordering::Relaxed);
        self.shared.total.store(total, Ordering::Relaxed);
    }
}

impl Shared {
    fn line(&self, time: Duration) -> String {
        let what = escape(&self.what.lock().unwrap_or_else(PoisonError::into_inner)).into_owned();
        let seconds = time.as_secs();
        match (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed)) {
            (_, 0) => format!("{what} ({seconds} s)"),
            (done, total) => format!("{what} {done} of {total} ({seconds} s)"),
        }
    }
}

/// Draws over the line that is there.
fn draw(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[2K{line}").and_then(|()| stderr.flush());
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.line.take() {
            drop(stop);
            // The thread only draws; when it panicked there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_how_much_and_since_when() {
        let progress = Progress::start("reading \u{1b}[2J", false, Duration::ZERO);
        assert_eq!(progress.shared.line(Duration::from_secs(2)), "reading \\u{1b}[2J (2 s)");
        progress.set("verifying");
        progress.count(3, 10);
        assert_eq!(progress.shared.line(Duration::from_millis(61_400)), "verifying 3 of 10 (61 s)");
    }

    #[test]
    fn what_ends_soon_shows_nothing_and_ends_at_once() {
        let begin = Instant::now();
        drop(Progress::start("x", true, Duration::from_secs(60)));
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
