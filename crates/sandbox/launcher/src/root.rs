//! The new root: opening what is shown of the host, mounting it, and leaving the host's root behind.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use launcher::plan::{IdMap, Plan, Source};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change,
    move_mount, open_tree, unmount,
};

use crate::failure::{Context, Done, Failure};
use crate::sys;

/// Where pieces stand while the root is being put together; it is gone before the command starts.
pub(crate) const STAGE: &str = ".stage";

/// Opens every place that the plan shows, each as a mount of its own that hangs nowhere yet.
pub(crate) fn open_sources(plan: &Plan) -> Done<Vec<OwnedFd>> {
    let mut maps = IdMaps::default();
    plan.sources.iter().map(|source| open_source(source, &mut maps)).collect()
}

/// The maps of ids that were needed so far, each carried by a user namespace.
#[derive(Default)]
struct IdMaps(Vec<(IdMap, OwnedFd)>);

impl IdMaps {
    fn namespace(&mut self, map: IdMap) -> io::Result<BorrowedFd<'_>> {
        let at = match self.0.iter().position(|(known, _)| *known == map) {
            Some(at) => at,
            None => {
                self.0.push((map, sys::user_namespace_with(map)?));
                self.0.len() - 1
            }
        };
        Ok(self.0[at].1.as_fd())
    }
}

fn open_source(source: &Source, maps: &mut IdMaps) -> Done<OwnedFd> {
    let path = path_of(&source.path);
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if source.recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let mount = open_tree(rustix::fs::CWD, path, flags).during("open source", &source.path)?;
    let Some(map) = source.id_map else { return Ok(mount) };
    let namespace = maps.namespace(map).during("id map", "user namespace")?;
    match sys::set_id_map(mount.as_fd(), namespace) {
        // The file system has no such maps (an overlay, for example). Then the files show their owners.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !source.map_required => Ok(mount),
        mapped => mapped.during("id map", &source.path).map(|()| mount),
    }
}

/// Makes sure that nothing mounted here is seen outside.
pub(crate) fn detach_propagation() -> Done {
    let flags = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", flags).during("mount propagation", "/")
}

/// Makes a file system that hangs nowhere yet. Options without a value are flags.
pub(crate) fn make_filesystem(
    kind: &str,
    options: &[(&str, Option<&str>)],
    attributes: MountAttrFlags,
) -> Done<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).during("open file system", kind)?;
    for (name, value) in options {
        match value {
            Some(value) => fsconfig_set_string(context.as_fd(), *name, *value),
            None => fsconfig_set_flag(context.as_fd(), *name),
        }
        .during("file system option", format!("{kind} {name}={}", value.unwrap_or("")))?;
    }
    fsconfig_create(context.as_fd()).during("create file system", kind)?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).during("mount file system", kind)
}

/// Copies a mount, or a directory below it, into a mount of its own that hangs nowhere yet.
pub(crate) fn copy_mount(directory: BorrowedFd<'_>, path: &Path, recursive: bool) -> Done<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    open_tree(directory, path, flags).during("copy mount", path.as_os_str().as_bytes())
}

/// Hangs a mount on a target.
pub(crate) fn attach(mount: BorrowedFd<'_>, target: BorrowedFd<'_>, about: &[u8]) -> Done {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", target, "", flags).during("attach mount", about)
}

/// Leaves the host's root behind, takes the staging place away and turns the root read-only (`freeze`, which only a
/// mutant leaves out).
pub(crate) fn enter(root: OwnedFd, freeze: bool) -> Done {
    rustix::process::fchdir(&root).during("pivot root", "fchdir")?;
    rustix::process::pivot_root(".", ".").during("pivot root", "pivot_root")?;
    unmount(".", UnmountFlags::DETACH).during("pivot root", "old root")?;
    rustix::process::chdir("/").during("pivot root", "chdir")?;
    drop(root);
    remove_stage()?;
    if !freeze {
        return Ok(());
    }
    let top = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let top = top.during("freeze root", "/")?;
    sys::set_mount_attributes(top.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
        .during("freeze root", "/")
}

/// Makes the staging place a mount of its own, so that all that will hang in it goes with it at once.
pub(crate) fn make_stage(root: BorrowedFd<'_>) -> Done {
    make_directories(root, STAGE.as_bytes(), 0o755)?;
    let mount = copy_mount(root, Path::new(STAGE), false)?;
    let place = open_target(root, STAGE.as_bytes()).during("staging", STAGE)?;
    attach(mount.as_fd(), place.as_fd(), STAGE.as_bytes())
}

/// Takes away what hangs in the staging place. What was mounted out of it holds it by itself.
fn remove_stage() -> Done {
    let stage = Path::new("/").join(STAGE);
    unmount(&stage, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).during("staging", STAGE)?;
    std::fs::remove_dir_all(&stage).during("staging", STAGE)
}

/// Opens a target inside the new root without following any link, so that a link in a shown directory can
/// never move what is mounted somewhere else.
pub(crate) fn open_target(root: BorrowedFd<'_>, target: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(
        root,
        relative(target),
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH,
    )
}

/// Makes the directories on the way to a target, and says whether the target was made too.
pub(crate) fn make_directories(root: BorrowedFd<'_>, target: &[u8], mode: u32) -> Done {
    let mut made = Vec::new();
    let parts: Vec<&[u8]> = target.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    for (at, part) in parts.iter().enumerate() {
        let parent = open_target(root, &made).during("target", target)?;
        let last = at + 1 == parts.len();
        let mode = Mode::from_raw_mode(if last { mode } else { 0o755 });
        match rustix::fs::mkdirat(&parent, *part, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error).during("target", target),
        }
        made.push(b'/');
        made.extend_from_slice(part);
    }
    Ok(())
}

/// Makes an empty file for something to be mounted on, with the directories on the way.
pub(crate) fn make_file(root: BorrowedFd<'_>, target: &[u8], mode: u32) -> Done<OwnedFd> {
    let at = target.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    make_directories(root, &target[..at], 0o755)?;
    let parent = open_target(root, &target[..at]).during("target", target)?;
    let name = path_of(target.get(at + 1..).unwrap_or_default());
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(mode)).during("target", target)
}

/// Returns the path without its leading slashes; the root itself is `.`.
pub(crate) fn relative(target: &[u8]) -> &Path {
    let start = target.iter().position(|byte| *byte != b'/').unwrap_or(target.len());
    match &target[start..] {
        b"" => Path::new("."),
        rest => path_of(rest),
    }
}

/// Takes bytes as a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Says that a plan refers to something that it does not hold.
pub(crate) fn missing(what: &str) -> Failure {
    Failure::new("plan", format!("{what} is missing"))
}
