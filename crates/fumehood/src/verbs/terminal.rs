//! The caller's terminal, while the command has one of its own: every key goes to the command.

use std::io::{self, IsTerminal};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// The caller's terminal in raw mode, until this is dropped.
pub(super) struct Raw {
    before: Termios,
}

impl Raw {
    /// Switches standard input to raw mode, where it is a terminal.
    pub(super) fn enter() -> Option<Self> {
        let stdin = io::stdin();
        let before = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // What the command left half-written is not waited for: the modes matter more.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns the lines and columns of the caller's terminal.
pub(super) fn size() -> Option<(u16, u16)> {
    let of = |size: rustix::termios::Winsize| (size.ws_row, size.ws_col);
    let out = tcgetwinsize(io::stdout()).map(of).ok();
    out.or_else(|| tcgetwinsize(io::stdin()).map(of).ok()).filter(|(rows, columns)| *rows > 0 && *columns > 0)
}
