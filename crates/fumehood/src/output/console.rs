//! The two streams, and what goes to which.
//!
//! Guarantees: what was asked for goes to standard output and nothing else does; everything that we have to say goes
//! to standard error, on lines of its own. A reader that closes the pipe ends the output, not the program.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::lines::{Lines, To};
use super::progress::Progress;
use super::style::Paint;
use crate::args::Global;
use crate::settings::Environment;

/// The two streams, with how they are to be used.
#[derive(Debug, Default)]
pub struct Console {
    /// Whether JSON was asked for.
    pub json: bool,
    /// Whether we are to say only what went wrong.
    pub quiet: bool,
    /// Paints for standard output.
    pub out: Paint,
    /// Paints for standard error.
    pub err: Paint,
    /// Whether somebody watches standard error.
    pub watched: bool,
    /// Where everything is written, what a command prints too.
    pub lines: Arc<Lines>,
    closed: AtomicBool,
    lost: AtomicBool,
}

/// How long something may take before the person who waits is told that it goes on.
const PATIENCE: Duration = Duration::from_secs(1);

impl Console {
    /// Looks at the streams, the options and the environment.
    pub fn new(global: &Global, environment: &Environment) -> Self {
        let choice = if global.no_color { Some(crate::args::ColorChoice::Never) } else { global.color };
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            json: global.json,
            quiet: global.quiet,
            out: Paint::decide(choice, environment, out),
            err: Paint::decide(choice, environment, err),
            watched: err,
            lines: Arc::new(Lines::of_this_process()),
            ..Self::default()
        }
    }

    /// Writes what was asked for, and tells whether somebody still reads.
    pub fn print(&self, text: &str) -> bool {
        self.print_bytes(text.as_bytes())
    }

    /// Writes what was asked for, byte by byte: somebody's file, say. Tells whether somebody still reads.
    pub fn print_bytes(&self, bytes: &[u8]) -> bool {
        match self.lines.pass(To::Out, bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.store(true, Ordering::Relaxed)
            }
            Err(_) => self.lost.store(true, Ordering::Relaxed),
        }
        !self.closed.load(Ordering::Relaxed) && !self.is_lost()
    }

    /// Tells whether something that was asked for could not be written, on a full disk for example.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes a JSON document that was asked for, on one line. Tells whether somebody still reads.
    pub fn print_json(&self, value: &impl Serialize) -> bool {
        self.print(&json_line(value))
    }

    /// Writes the answer to a verb: as JSON where that was asked for, else as text.
    pub fn answer(&self, value: &impl Serialize, text: impl FnOnce(Paint) -> String) {
        if self.json {
            self.print_json(value);
        } else {
            self.print(&text(self.out));
        }
    }

    /// Says something to the person, unless they want to hear only what went wrong.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.say_always(text);
        }
    }

    /// Says something that went wrong.
    pub fn say_always(&self, text: &str) {
        let line = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
        // When standard error is gone, there is nobody to tell.
        let _ = self.lines.say(&line);
    }

    /// Tells whether a person sees what is said and can answer.
    pub fn is_watched(&self) -> bool {
        self.watched && io::stdin().is_terminal() && !self.json
    }

    /// Tells whether there is a person at a terminal to ask.
    pub fn can_ask(&self) -> bool {
        !self.json && self.watched && io::stdin().is_terminal()
    }

    /// Asks the person at the terminal; where there is none, nobody objects.
    pub fn agrees(&self, question: &str) -> bool {
        !self.can_ask() || self.ask(question)
    }

    /// Asks the person at the terminal. Only a plain yes is one.
    pub fn ask(&self, question: &str) -> bool {
        let _ = self.lines.say(&format!("fumehood: {question} [y/N] "));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        if read.as_ref().is_ok_and(|bytes| *bytes > 0) {
            self.lines.answered();
        }
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// Tells the person who waits what is going on, once it takes longer than a second. It ends when it is dropped.
    pub fn progress(&self, what: &str) -> Progress {
        Progress::start(what, self.watched && !self.quiet && !self.json, PATIENCE)
    }
}

/// Returns a value as JSON on one line.
pub fn json_line(value: &impl Serialize) -> String {
    // Our shapes hold no map with keys that are not strings, so this cannot fail; if it ever does, say so as JSON.
    let text = serde_json::to_string(value);
    text.unwrap_or_else(|error| serde_json::json!({"error": {"message": error.to_string()}}).to_string())
        + "\n"
}
