//! Changing the host, one name at a time. Each step can be told to be done or not from what is on the disk, so that the
//! same loop carries out a plan and completes one that a crash cut off.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};

use inspect::Node;
use inspect::copy::times;
use inspect::tree::look_up;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::beneath::{Place, Workspace};
use super::drift::{is_directory, is_same_but_renamed};
use super::error::ApplyError;
use super::journal::{Act, Journal, Phase, Step, StepState};
use super::stage::{Tray, captured_name, open_staging, out_name, remove_staging, slot_name};
use crate::fail_point;

/// Why a step could not be done.
enum Refusal {
    /// The host changed the name after the plan was made.
    Changed,
    /// Something is in a directory that is to go.
    NotEmpty,
    /// The kernel says no.
    Kernel(Errno),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EXIST => Self::Changed,
            Errno::NOTEMPTY => Self::NotEmpty,
            errno => Self::Kernel(errno),
        }
    }
}

/// Carries out the steps of a journal and closes it.
pub(super) fn commit(workspace: &Workspace, journal: &mut Journal) -> Result<(), ApplyError> {
    let staging = match open_staging(workspace, journal) {
        Ok(staging) => Some(staging),
        // A crash after the last step, or before the journal was closed.
        Err(Errno::NOENT) => None,
        Err(errno) => {
            return Err(ApplyError::Workspace { step: "open the prepared files in", source: errno.into() });
        }
    };
    let tray = Tray::open(&journal.place)?;
    for (slot, step) in journal.steps.iter_mut().enumerate() {
        if let (Some(staging), StepState::Planned) = (&staging, &step.state) {
            let (out, kept) = (out_name(slot), captured_name(journal.name, slot));
            let slot = slot_name(slot);
            step.state =
                state_after(Work { workspace, staging, tray: &tray, slot, out, kept, step }.perform());
            fail_point::reached("a step is done");
        } else if step.state == StepState::Planned {
            step.state = state_after(already_done(workspace, step));
        }
    }
    // A failed step keeps nothing there that is not in the layer or captured.
    remove_staging(workspace, journal)?;
    fail_point::reached("the prepared files are removed and the journal is open");
    settle(workspace)
        .map_err(|errno| ApplyError::Workspace { step: "bring to the disk", source: errno.into() })?;
    journal.phase = Phase::Done;
    journal.save()
}

/// Brings the names to the disk. Taking the prepared files away was the last change, and file systems with a journal
/// write changes in their order.
fn settle(workspace: &Workspace) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(workspace.top(), c".", flags, Mode::empty()) {
        Ok(top) => rustix::fs::fsync(top),
        // A directory that may be written and not read.
        Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn state_after(done: Result<Option<Node>, Refusal>) -> StepState {
    let failed = |reason: &str, why: String| StepState::Failed { reason: reason.to_owned(), why };
    match done {
        Ok(left) => StepState::Done { left: left.map(Box::new) },
        Err(Refusal::Changed) => {
            failed("changed", "the host changed it at this moment; it is as the host left it".to_owned())
        }
        Err(Refusal::NotEmpty) => {
            failed("not-empty", "the host has something in it, so the directory stays".to_owned())
        }
        Err(Refusal::Kernel(errno)) => failed(code(errno), std::io::Error::from(errno).to_string()),
    }
}

fn code(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS | Errno::PERM => "no-permission",
        Errno::NOSPC | Errno::DQUOT => "disk-full",
        Errno::ROFS => "read-only",
        Errno::LOOP | Errno::NOTDIR => "link-on-the-way",
        Errno::XDEV => "other-file-system",
        Errno::NOENT => "directory-missing",
        _ => "refused",
    }
}

/// One step, with everything that it needs.
struct Work<'a> {
    workspace: &'a Workspace,
    staging: &'a OwnedFd,
    tray: &'a Tray,
    /// The prepared file.
    slot: CString,
    /// What went, when it had been copied before.
    out: CString,
    /// What went, when it is captured by moving it.
    kept: CString,
    step: &'a Step,
}

impl Work<'_> {
    /// Does the step, unless it is done. Returns what is there now, when nobody else has touched that.
    fn perform(&self) -> Result<Option<Node>, Refusal> {
        if self.is_done()? {
            return Ok(left(self.step, self.workspace.look(&self.step.path)?));
        }
        let place = match (self.workspace.place(&self.step.path), &self.step.act) {
            // The directory around it went after it.
            (Err(Errno::NOENT | Errno::NOTDIR), Act::RemoveDirectory { .. }) => return Ok(None),
            (place, _) => place?,
        };
        let now = place.look()?;
        match &self.step.act {
            Act::Replace { host } => self.replace(&place, host, now)?,
            Act::Create => self.put_in(&place, RenameFlags::NOREPLACE)?,
            Act::Delete { host } => self.delete(&place, host, now)?,
            Act::MakeDirectory { mode, owner } => make_directory(&place, *mode, *owner, now.as_ref())?,
            Act::RemoveDirectory { .. } => remove_directory(&place)?,
            Act::FinishDirectory { mode, times, .. } => finish_directory(&place, *mode, times.as_deref())?,
        }
        Ok(left(self.step, place.look()?))
    }

    /// Tells from the prepared and the captured files whether the step was done before a crash, whatever has become of
    /// the name since. Steps on directories can be done again.
    fn is_done(&self) -> Result<bool, Errno> {
        let there = |directory: &OwnedFd, name: &CStr| look_at(directory, name).map(|node| node.is_some());
        match &self.step.act {
            Act::Create => there(self.staging, &self.slot).map(|waits| !waits),
            Act::Replace { .. } | Act::Delete { .. } if self.step.copied => there(self.staging, &self.out),
            Act::Replace { .. } | Act::Delete { .. } => self.tray.has(&self.kept),
            Act::MakeDirectory { .. } | Act::RemoveDirectory { .. } | Act::FinishDirectory { .. } => {
                Ok(false)
            }
        }
    }

    /// Changes places with what is there, and looks at what came out: if that is not what was captured, it goes back.
    fn replace(&self, place: &Place, host: &Node, now: Option<Node>) -> Result<(), Refusal> {
        if !is_staged(self.step, now.as_ref()) {
            if !now.is_some_and(|now| host.is_unchanged(&now)) {
                return Err(Refusal::Changed);
            }
            fail_point::reached("a file was looked at and is about to be replaced");
            self.put_in(place, RenameFlags::EXCHANGE)?;
            fail_point::reached("a file has changed places with what it replaces");
        }
        match self.keep(host)? {
            true => Ok(()),
            false => self.put_in(place, RenameFlags::EXCHANGE).and(Err(Refusal::Changed)),
        }
    }

    /// Takes the name away, and looks at what it stood for: if that is not what was captured, it goes back.
    fn delete(&self, place: &Place, host: &Node, now: Option<Node>) -> Result<(), Refusal> {
        if let Some(now) = now {
            if !host.is_unchanged(&now) {
                return Err(Refusal::Changed);
            }
            fail_point::reached("a file was looked at and is about to be deleted");
            let free = RenameFlags::NOREPLACE;
            rustix::fs::renameat_with(&place.directory, &place.name, self.staging, &self.slot, free)?;
            fail_point::reached("a file has left its place");
        }
        match self.keep(host)? {
            true => Ok(()),
            false => self.put_in(place, RenameFlags::NOREPLACE).and(Err(Refusal::Changed)),
        }
    }

    fn put_in(&self, place: &Place, how: RenameFlags) -> Result<(), Refusal> {
        match rustix::fs::renameat_with(self.staging, &self.slot, &place.directory, &place.name, how) {
            Err(Errno::NOENT) if how == RenameFlags::EXCHANGE => Err(Refusal::Changed),
            renamed => Ok(renamed?),
        }
    }

    /// Keeps what came out of the host's directory, unless it is not what was to come out.
    fn keep(&self, host: &Node) -> Result<bool, Refusal> {
        let out = look_at(self.staging, &self.slot)?.ok_or(Refusal::Changed)?;
        if !is_same_but_renamed(host, &out) {
            return Ok(false);
        }
        if self.step.copied {
            rustix::fs::renameat(self.staging, &self.slot, self.staging, &self.out)?;
        } else {
            self.tray.take(self.staging, &self.slot, &self.kept)?;
        }
        Ok(true)
    }
}

fn remove_directory(place: &Place) -> Result<(), Refusal> {
    match rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::REMOVEDIR) {
        // Something else in its place is of a later step, or of the host; the directory is gone in any case.
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// When the prepared files are gone every step was tried before the crash; this finds out how each ended.
fn already_done(workspace: &Workspace, step: &Step) -> Result<Option<Node>, Refusal> {
    let now = workspace.look(&step.path)?;
    let done = match &step.act {
        Act::Replace { .. } | Act::Create => is_staged(step, now.as_ref()),
        Act::Delete { host } | Act::RemoveDirectory { host } => {
            !now.as_ref().is_some_and(|now| host.is_same_file(now))
        }
        Act::MakeDirectory { .. } => now.as_ref().is_some_and(is_directory),
        Act::FinishDirectory { mode, .. } => now.as_ref().is_some_and(|now| now.mode() == *mode),
    };
    if done { Ok(left(step, now)) } else { Err(Refusal::Changed) }
}

/// Returns what a step left, unless somebody changed it in between.
fn left(step: &Step, now: Option<Node>) -> Option<Node> {
    match &step.staged {
        Some(staged) => now.filter(|now| is_same_but_renamed(staged, now)),
        None => now,
    }
}

fn is_staged(step: &Step, now: Option<&Node>) -> bool {
    matches!((&step.staged, now), (Some(staged), Some(now)) if staged.is_same_file(now))
}

fn look_at(directory: &OwnedFd, name: &CStr) -> Result<Option<Node>, Errno> {
    match look_up(directory, name) {
        Ok(node) => Ok(Some(node)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Ok(None),
            other => Err(other.unwrap_or(Errno::IO)),
        },
    }
}

fn make_directory(
    place: &Place,
    mode: u32,
    owner: Option<(u32, u32)>,
    now: Option<&Node>,
) -> Result<(), Refusal> {
    match now {
        Some(now) if is_directory(now) => return Ok(()),
        Some(_) => return Err(Refusal::Changed),
        None => {
            rustix::fs::mkdirat(&place.directory, &place.name, Mode::from_raw_mode(mode & 0o777 | 0o700))?
        }
    }
    if let Some((owner, group)) = owner {
        let (owner, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
        rustix::fs::chownat(&place.directory, &place.name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Gives a directory its permissions by a descriptor of itself, so that nothing can come in between; it need not be
/// readable for that.
fn finish_directory(place: &Place, mode: u32, like: Option<&Node>) -> Result<(), Refusal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::openat(&place.directory, &place.name, flags, Mode::empty())?;
    let link = format!("/proc/self/fd/{}", open.as_raw_fd());
    rustix::fs::chmod(&link, Mode::from_raw_mode(mode))?;
    if let Some(like) = like {
        rustix::fs::utimensat(rustix::fs::CWD, &link, &times(like), AtFlags::empty())?;
    }
    Ok(())
}
