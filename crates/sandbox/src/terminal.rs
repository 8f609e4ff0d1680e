//! The size of a terminal.

use std::os::fd::OwnedFd;

use rustix::termios::{Winsize, tcsetwinsize};

/// Gives the command's terminal another size; the kernel tells the command by SIGWINCH.
pub(crate) fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    // A terminal whose command has just ended takes no size.
    let _ = tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 });
}
