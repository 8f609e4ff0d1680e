//! What a person at the terminal reads while a task runs: one line when a step starts, and one now and then
//! while it goes on. The only place of this crate that prints.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this module is for")]

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a step may be silent. Shorter fills a log, longer looks like a hang.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Announces a step on standard error.
pub fn step(text: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("\x1b[1m==> {text}\x1b[0m");
    } else {
        eprintln!("==> {text}");
    }
}

/// Adds a remark to the step that was announced last, on standard error.
pub fn note(text: &str) {
    eprintln!("    {text}");
}

/// Prints a line on standard output: a result, not progress.
pub fn result(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A reader that went away is no reason to fail: the exit code tells the result too.
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Runs `work`, and says every fifteen seconds that `what` still goes on.
pub fn while_working<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    thread::scope(|scope| {
        let (done, waiting) = channel::<()>();
        scope.spawn(move || {
            while waiting.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                note(&format!("still at it after {} s: {what}", started.elapsed().as_secs()));
            }
        });
        let value = work();
        drop(done);
        value
    })
}
