//! Preparing everything before the host is touched: what can run out of room or permission does so here.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use inspect::Node;
use inspect::copy::{Like, copy, copy_content, make_file, make_link};
use inspect::tree::{Entry, look_up, open_file};
use model::FileKind;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{Place, Workspace};
use super::error::ApplyError;
use super::journal::{Act, FORMAT, Journal, Phase, Step};
use super::plan::{Plan, Source};
use super::settle::settle;
use crate::fail_point;

/// Prepares each file of a plan in a directory at the top of the workspace, captures what will be replaced, and writes
/// the journal. When something cannot be prepared, everything that was is removed.
pub(super) fn stage(
    workspace: &Workspace,
    captured: &Path,
    name: &'static str,
    plan: Plan,
) -> Result<Journal, ApplyError> {
    let capture = |source| ApplyError::Capture { step: "make a place for", source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(captured).map_err(capture)?;
    let (steps, sources): (Vec<Step>, Vec<Source>) = plan.steps.into_iter().unzip();
    let mut journal = Journal {
        format: FORMAT,
        device: workspace.node.device,
        inode: workspace.node.inode,
        staging: staging_name(captured, name),
        phase: Phase::Staging,
        steps,
        changes: plan.changes,
        already: plan.already,
        merged: plan.merged,
        conflicts: plan.conflicts,
        place: captured.to_owned(),
        name,
    };
    journal.save()?;
    let staged = stage_all(workspace, &mut journal, &sources).and_then(|()| {
        journal.phase = Phase::Committing;
        journal.save()
    });
    match staged {
        Ok(()) => Ok(journal),
        Err(error) => {
            roll_back(workspace, &journal)?;
            Err(error)
        }
    }
}

/// Removes everything that was prepared. The host is as it was.
pub(super) fn roll_back(workspace: &Workspace, journal: &Journal) -> Result<(), ApplyError> {
    remove_staging(workspace, journal)?;
    for slot in 0..journal.steps.len() {
        match fs::remove_file(journal.place.join(as_path(&captured_name(journal.name, slot)))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ApplyError::Capture { step: "remove", source: error });
            }
            _ => {}
        }
    }
    fail_point::reached("what was prepared is removed and the journal is there");
    journal.remove()
}

/// Removes the directory in which files were prepared, with what is left in it.
pub(super) fn remove_staging(workspace: &Workspace, journal: &Journal) -> Result<(), ApplyError> {
    let fail =
        |errno: Errno| ApplyError::Workspace { step: "remove the prepared files in", source: errno.into() };
    let staging = match open_staging(workspace, journal) {
        Ok(staging) => staging,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(fail(errno)),
    };
    let names = (0..journal.steps.len()).flat_map(|slot| [slot_name(slot), out_name(slot)]);
    for name in names.chain([TRIAL.to_owned()]) {
        match rustix::fs::unlinkat(&staging, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
    }
    rustix::fs::unlinkat(workspace.top(), journal.staging.as_str(), AtFlags::REMOVEDIR).map_err(fail)
}

/// Opens the directory in which files are prepared.
pub(super) fn open_staging(workspace: &Workspace, journal: &Journal) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(workspace.top(), journal.staging.as_str(), flags, Mode::empty())
}

/// Returns the name of a prepared file.
pub(super) fn slot_name(slot: usize) -> CString {
    CString::new(slot.to_string()).unwrap_or_default()
}

/// Returns the name of a file that came out of the host's directory and had been copied before.
pub(super) fn out_name(slot: usize) -> CString {
    CString::new(format!("{slot}.out")).unwrap_or_default()
}

/// Returns the name of a captured file.
pub(super) fn captured_name(journal: &str, slot: usize) -> CString {
    CString::new(format!("{}-{slot}", journal.trim_end_matches(".json"))).unwrap_or_default()
}

/// Returns the name of a file as a path.
pub(super) fn as_path(name: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(name.to_bytes()))
}

/// The name tells whose directory it is; it need not be secret, because it is made anew and never followed.
fn staging_name(captured: &Path, name: &str) -> String {
    let mark = model::Digest::of(captured.as_os_str().as_encoded_bytes()).to_string();
    format!(".fumehood-{}-{}", name.trim_end_matches(".json"), &mark[..16])
}

fn stage_all(workspace: &Workspace, journal: &mut Journal, sources: &[Source]) -> Result<(), ApplyError> {
    let fail = |source| ApplyError::Workspace { step: "prepare files in", source };
    rustix::fs::mkdirat(workspace.top(), journal.staging.as_str(), Mode::from_raw_mode(0o700))
        .map_err(|errno| fail(errno.into()))?;
    fail_point::reached("the directory for prepared files is made");
    let staging = open_staging(workspace, journal).map_err(|errno| fail(errno.into()))?;
    let tray = Tray::open(&journal.place)?;
    let moves = tray.takes_from(&staging).map_err(fail)?;
    let stage = Stage { workspace, staging, tray, moves, journal: journal.name };
    for (slot, (step, source)) in journal.steps.iter_mut().zip(sources).enumerate() {
        stage.step(slot, step, source)?;
        fail_point::reached("a step is prepared");
    }
    let staged = journal.steps.iter().enumerate().filter(|(_, step)| step.staged.is_some());
    let names: Vec<CString> = staged.map(|(slot, _)| slot_name(slot)).collect();
    settle(&stage.staging, &names).map_err(fail)?;
    let copied = journal.steps.iter().enumerate().filter(|(_, step)| step.copied);
    let names: Vec<CString> = copied.map(|(slot, _)| captured_name(journal.name, slot)).collect();
    settle(&stage.tray.0, &names).map_err(|source| ApplyError::Capture { step: "keep", source })
}

/// Where files are prepared, and where captured ones go.
struct Stage<'a> {
    workspace: &'a Workspace,
    staging: OwnedFd,
    tray: Tray,
    /// Whether files can be moved from the workspace into the tray.
    moves: bool,
    journal: &'static str,
}

impl Stage<'_> {
    fn step(&self, slot: usize, step: &mut Step, source: &Source) -> Result<(), ApplyError> {
        let path = step.path.clone();
        let failed = |doing| {
            let path = path.clone().into();
            move |source| ApplyError::Prepare { step: doing, path, source }
        };
        let mut like = None;
        if let Act::Replace { host } | Act::Delete { host } = &step.act {
            let place =
                self.workspace.place(&path).map_err(|errno| failed("open the directory of")(errno.into()))?;
            // Another name would share later edits in place with what was captured.
            step.copied = !self.moves || host.links > 1;
            if step.copied {
                let kept = captured_name(self.journal, slot);
                self.tray.copy(&place, host, &kept).map_err(failed("capture"))?;
            }
            like = open_file(&place.directory, &place.name).ok();
        }
        let chooses_owner = rustix::process::geteuid().is_root();
        let owner = chooses_owner.then(|| self.owner_of(&step.act));
        if let Act::MakeDirectory { owner: of_directory, .. } = &mut step.act {
            *of_directory = owner;
        }
        let staged = self.prepare(slot, source, owner, like.as_ref()).map_err(failed("prepare"))?;
        step.staged = staged.map(Box::new);
        Ok(())
    }

    /// A new file belongs to whoever owned what it replaces, else to the owner of the workspace.
    fn owner_of(&self, act: &Act) -> (u32, u32) {
        match act {
            Act::Replace { host } => (host.owner, host.group),
            _ => (self.workspace.node.owner, self.workspace.node.group),
        }
    }

    /// Prepares one file, when there is one to prepare.
    fn prepare(
        &self,
        slot: usize,
        source: &Source,
        owner: Option<(u32, u32)>,
        like: Option<&File>,
    ) -> io::Result<Option<Node>> {
        let (directory, name) = (self.staging.as_fd(), slot_name(slot));
        match source {
            Source::None => return Ok(None),
            Source::Merged { text, mode } => {
                let new = Like { mode: *mode, times: None, owner };
                make_file(directory, &name, &new, like, |file| file.write_all(text.as_bytes()))?;
            }
            Source::Captured(slot) => {
                let kept = captured_name("apply.json", *slot);
                let node = look_up(&self.tray.0, &kept)?;
                let owner = owner.map(|_| (node.owner, node.group));
                copy((self.tray.0.as_fd(), &kept), &node, (directory, &name), owner)?;
            }
            Source::Layer(entry) => self.prepare_from_layer(entry, &name, owner, like)?,
        }
        look_up(&self.staging, &name).map(Some)
    }

    /// Copies a file or link of the layers. What was set on it beside content, permissions and times is not carried
    /// over, and no set-id bit ever is.
    fn prepare_from_layer(
        &self,
        entry: &Entry,
        name: &CString,
        owner: Option<(u32, u32)>,
        like: Option<&File>,
    ) -> io::Result<()> {
        let new = Like { mode: entry.node.mode() & 0o777, times: Some(&entry.node), owner };
        match entry.node.kind {
            FileKind::File => {
                let from = entry.open().map_err(io::Error::other)?;
                let size = entry.node.size;
                make_file(self.staging.as_fd(), name, &new, like, |file| copy_content(&from, file, size))?;
                fail_point::reached("a file of the layer is copied");
                let same = entry.node.is_unchanged(&look_up(&from, c"")?);
                if same { Ok(()) } else { Err(io::Error::other("the layer was changed while it was read")) }
            }
            FileKind::Symlink => {
                let target = entry.link_target().map_err(io::Error::other)?;
                let target = CString::new(target.as_bytes()).map_err(io::Error::other)?;
                make_link(self.staging.as_fd(), name, &target, &new)
            }
            _ => Err(io::Error::other("only files, directories and links are written")),
        }
    }
}

/// The name of a file that is moved to find out whether that is possible.
const TRIAL: &CStr = c"trial";

/// The directory of captured files.
pub(super) struct Tray(OwnedFd);

impl Tray {
    pub(super) fn open(path: &Path) -> Result<Self, ApplyError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
            .map(Self)
            .map_err(|errno| ApplyError::Capture { step: "open the place for", source: errno.into() })
    }

    /// Takes a file that was moved out of the way.
    pub(super) fn take(&self, staging: &OwnedFd, slot: &CStr, kept: &CStr) -> Result<(), Errno> {
        rustix::fs::renameat(staging, slot, &self.0, kept)
    }

    /// Tells whether a file was taken.
    pub(super) fn has(&self, kept: &CStr) -> Result<bool, Errno> {
        match look_up(&self.0, kept) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }

    /// Finds out whether files can be moved from the workspace into the tray: only where both are on one mount.
    fn takes_from(&self, staging: &OwnedFd) -> io::Result<bool> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(rustix::fs::openat(staging, TRIAL, flags, Mode::from_raw_mode(0o600))?);
        let moved = rustix::fs::renameat(staging, TRIAL, &self.0, TRIAL);
        let home = if moved.is_ok() { self.0.as_fd() } else { staging.as_fd() };
        rustix::fs::unlinkat(home, TRIAL, AtFlags::empty())?;
        match moved {
            Ok(()) => Ok(true),
            Err(Errno::XDEV) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Copies a file of the host, which must be the one that was looked at before and after.
    fn copy(&self, place: &Place, host: &Node, kept: &CStr) -> io::Result<()> {
        let owner = rustix::process::geteuid().is_root().then_some((host.owner, host.group));
        copy((place.directory.as_fd(), &place.name), host, (self.0.as_fd(), kept), owner)?;
        let same = place.look()?.is_some_and(|now| host.is_unchanged(&now));
        if same { Ok(()) } else { Err(io::Error::other("it was changed at this moment: try again")) }
    }
}
