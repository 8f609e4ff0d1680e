//! Answers the notifications of the command's filter: programs and connections are recorded, and directories that
//! the overlay cannot rename are renamed by hand.
//!
//! What is recorded was read from memory that the command can change: it is evidence, never a control.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use launcher::message::FromSandbox;
use launcher::wire;

use crate::failure::{Context, Done};
use crate::listed::Listed;
use crate::rename::{self, Outcome, Request};
use crate::sys::{self, Notification};

/// Bytes of arguments that are recorded of one program.
const ARGV_MAX: usize = 4096;
/// Arguments that are looked at.
const ARGC_MAX: usize = 256;
/// The longest path of the kernel, with its NUL (`PATH_MAX`).
const PATH_MAX: usize = 4096;
/// Bytes of an address that are recorded: the largest is `sockaddr_un` with 110.
const ADDRESS_MAX: usize = 128;

/// Holds the listener of the command's filter.
pub(crate) struct Notifier {
    listener: OwnedFd,
    /// What the grant lists, when it lists programs.
    listed: Option<Listed>,
}

impl Notifier {
    /// Takes the listener.
    pub(crate) fn new(listener: OwnedFd, listed: Option<Listed>) -> Self {
        sys::wake_up_in_place(listener.as_fd());
        Self { listener, listed }
    }

    /// Returns the descriptor to wait on.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one notification, and says whether everything inside must end; then its process waits for no answer.
    /// Nothing is recorded before the command was started: that is the prober.
    pub(crate) fn handle(&mut self, control: &OwnedFd, record: bool) -> Done<bool> {
        let received = sys::receive_notification(self.listener.as_fd()).during("notification", "receive")?;
        let Some(notification) = received else { return Ok(false) };
        let answer = match notification.call {
            libc::SYS_execve | libc::SYS_execveat if record => {
                if self.program(control, &notification)? {
                    return Ok(true);
                }
                Ok(())
            }
            libc::SYS_connect if record => connection(control, &notification).map(|()| Ok(()))?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(control, &notification)?,
            libc::SYS_renameat | libc::SYS_renameat2 => self.rename(control, &notification)?,
            _ => Ok(()),
        };
        sys::answer_notification(self.listener.as_fd(), notification.id, answer);
        Ok(false)
    }

    /// Records a program, and says whether it must end everything.
    fn program(&self, control: &OwnedFd, notification: &Notification) -> Done<bool> {
        let Notification { pid, call, arguments, .. } = *notification;
        let (start, first) = if call == libc::SYS_execve {
            (libc::AT_FDCWD, 0)
        } else {
            // The kernel takes the descriptor as an `int`.
            (arguments[0] as u32 as i32, 1)
        };
        let file = read_text(pid, arguments[first], PATH_MAX).unwrap_or_default();
        let argv = read_argv(pid, arguments[first + 1]);
        let unlisted = self.listed.as_ref().and_then(|listed| listed.judge(pid, start, &file));
        let message = FromSandbox::Program { pid, file, argv, unlisted };
        wire::send(control, &message, &[]).during("control socket", "program")?;
        Ok(unlisted.is_some() && self.listed.as_ref().is_some_and(|listed| listed.ends))
    }

    fn rename(&self, control: &OwnedFd, notification: &Notification) -> Done<Result<(), i32>> {
        match rename::carry_out(&read_rename(notification)) {
            Outcome::LeaveToKernel => Ok(Ok(())),
            Outcome::Done => Ok(Err(0)),
            Outcome::Refused(errno) => Ok(Err(errno)),
            Outcome::Healed => {
                wire::send(control, &FromSandbox::Healed, &[]).during("control socket", "healed")?;
                Ok(Err(0))
            }
        }
    }
}

fn connection(control: &OwnedFd, notification: &Notification) -> Done {
    let Notification { pid, arguments, .. } = *notification;
    let length = usize::try_from(arguments[2]).unwrap_or(usize::MAX).min(ADDRESS_MAX);
    let mut address = vec![0; length];
    let read = sys::read_memory(pid, arguments[1], &mut address);
    address.truncate(read);
    let message = FromSandbox::Connection { pid, address };
    wire::send(control, &message, &[]).during("control socket", "connection")
}

fn read_rename(notification: &Notification) -> Request {
    let Notification { pid, call, arguments, .. } = *notification;
    #[cfg(target_arch = "x86_64")]
    let plain = call == libc::SYS_rename;
    #[cfg(not(target_arch = "x86_64"))]
    let plain = false;
    // The kernel takes the descriptor as an `int`.
    let directory = |argument: u64| argument as u32 as i32;
    let (from_dir, from, to_dir, to) = if plain {
        (libc::AT_FDCWD, arguments[0], libc::AT_FDCWD, arguments[1])
    } else {
        (directory(arguments[0]), arguments[1], directory(arguments[2]), arguments[3])
    };
    let flags = if call == libc::SYS_renameat2 { arguments[4] as u32 } else { 0 };
    Request {
        pid,
        from_dir,
        from: read_text(pid, from, PATH_MAX),
        to_dir,
        to: read_text(pid, to, PATH_MAX),
        flags,
    }
}

/// Reads the arguments of a program, as far as they can be read.
fn read_argv(pid: i32, address: u64) -> Vec<Vec<u8>> {
    let mut argv = Vec::new();
    let mut left = ARGV_MAX;
    for at in 0..ARGC_MAX {
        let mut pointer = [0; 8];
        let place = address.wrapping_add(8 * at as u64);
        if sys::read_memory(pid, place, &mut pointer) < pointer.len() {
            break;
        }
        let pointer = u64::from_ne_bytes(pointer);
        if pointer == 0 || left == 0 {
            break;
        }
        let Some(text) = read_text(pid, pointer, left) else { break };
        left = left.saturating_sub(text.len() + 1);
        argv.push(text);
    }
    argv
}

/// Reads a text up to its NUL, at most `most` bytes; `None` when the memory cannot be read.
fn read_text(pid: i32, address: u64, most: usize) -> Option<Vec<u8>> {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < most {
        // A read never crosses a page: the next one may not be there.
        let place = address.checked_add(text.len() as u64)?;
        let to_page_end = usize::try_from(PAGE - place % PAGE).unwrap_or(1);
        let mut piece = vec![0; to_page_end.min(most - text.len())];
        let read = sys::read_memory(pid, place, &mut piece);
        if read == 0 {
            return None;
        }
        piece.truncate(read);
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Some(text);
        }
        text.extend_from_slice(&piece);
    }
    Some(text)
}
