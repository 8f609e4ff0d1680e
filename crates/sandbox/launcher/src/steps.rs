//! Carries out the steps of a plan, one after the other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use launcher::plan::{Plan, SourceIndex, Step, Upper};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use crate::failure::{Context, Done};
use crate::mutant::leaves_out;
use crate::root::{
    STAGE, attach, copy_mount, make_directories, make_file, make_filesystem, make_stage, missing,
    open_target, path_of, relative,
};
use crate::sys;

/// Flags that everything but devices has.
const PLAIN: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Carries out the steps; it holds the root while it is put together.
pub(crate) struct Steps<'a> {
    plan: &'a Plan,
    sources: Vec<Option<OwnedFd>>,
    image: Option<OwnedFd>,
    root: Option<OwnedFd>,
    store: Option<OwnedFd>,
    executable_store: bool,
    /// Files of ours that were made to cover others; each has contents of its own.
    covers: usize,
    times: Vec<(String, u64)>,
}

/// What is left when all steps are done.
pub(crate) struct Built {
    /// The new root.
    pub(crate) root: OwnedFd,
    /// The place behind all that is writable.
    pub(crate) store: Option<OwnedFd>,
    /// How long each kind of step took, in nanoseconds.
    pub(crate) times: Vec<(String, u64)>,
}

impl<'a> Steps<'a> {
    /// Starts with the opened places of the host, and the mount of the image when there is one.
    pub(crate) fn new(plan: &'a Plan, sources: Vec<OwnedFd>, image: Option<OwnedFd>) -> Self {
        let sources = sources.into_iter().map(Some).collect();
        Self {
            plan,
            sources,
            image,
            root: None,
            store: None,
            executable_store: true,
            covers: 0,
            times: Vec::new(),
        }
    }

    /// Carries out all steps.
    pub(crate) fn run(mut self) -> Done<Built> {
        for step in &self.plan.steps {
            let start = Instant::now();
            self.step(step)?;
            self.note(step_name(step), start);
        }
        let root = self.root.ok_or_else(|| missing("the root"))?;
        Ok(Built { root, store: self.store, times: self.times })
    }

    fn note(&mut self, name: &str, start: Instant) {
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match self.times.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += nanos,
            None => self.times.push((name.to_owned(), nanos)),
        }
    }

    fn step(&mut self, step: &Step) -> Done {
        match step {
            Step::Root { bytes, inodes } => self.make_root(*bytes, *inodes),
            Step::MemoryStore { bytes, inodes, executable } => {
                self.memory_store(*bytes, *inodes, *executable)
            }
            Step::ImageStore { executable, .. } => self.image_store(*executable),
            Step::DiskStore { source, executable } => self.disk_store(*source, *executable),
            Step::Directory { target, mode } => make_directories(self.root()?, target, *mode),
            Step::File { target, contents, mode } => self.file(target, contents, *mode),
            Step::Symlink { target, points_to } => self.symlink(target, points_to),
            Step::ReadOnly { source, target, executable } => self.read_only(*source, target, *executable),
            Step::ReadWrite { source, target } => self.read_write(*source, target),
            Step::Private { name, target, mode } => self.private(name, target, *mode),
            Step::PrivateOverlay { lower, name, target } => self.private_overlay(*lower, name, target),
            Step::GitDirectory { lowers, upper, mode, target } => {
                self.git_directory(lowers, *upper, *mode, target)
            }
            Step::Workspace { lowers, upper, target, executable } => {
                self.workspace(lowers, upper.as_ref(), target, *executable)
            }
            Step::Device { name } => self.device(name),
            Step::Terminals => self.terminals(),
            Step::Queues => self.queues(),
            Step::Proc => self.proc(),
            Step::Mask { target } => self.mask(target),
            Step::Cover { target, contents } => self.cover_with(target, contents),
            Step::Freeze { target } => self.freeze(target),
        }
    }

    fn root(&self) -> Done<BorrowedFd<'_>> {
        self.root.as_ref().map(AsFd::as_fd).ok_or_else(|| missing("the root"))
    }

    fn store(&self) -> Done<BorrowedFd<'_>> {
        self.store.as_ref().map(AsFd::as_fd).ok_or_else(|| missing("the store"))
    }

    fn take(&mut self, source: SourceIndex) -> Done<OwnedFd> {
        self.sources.get_mut(source).and_then(Option::take).ok_or_else(|| missing("a source"))
    }

    fn make_root(&mut self, bytes: u64, inodes: u64) -> Done {
        let (bytes, inodes) = (bytes.to_string(), inodes.to_string());
        let options =
            [("size", Some(bytes.as_str())), ("nr_inodes", Some(inodes.as_str())), ("mode", Some("0755"))];
        let root = make_filesystem("tmpfs", &options, PLAIN)?;
        // The new root hangs here only until pivot_root; every place of the host is open already.
        let here =
            rustix::fs::open("/tmp", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).during("root", "/tmp")?;
        attach(root.as_fd(), here.as_fd(), b"/tmp")?;
        make_stage(root.as_fd())?;
        make_directories(root.as_fd(), format!("/{STAGE}/empty").as_bytes(), 0o000)?;
        make_file(root.as_fd(), format!("/{STAGE}/nothing").as_bytes(), 0o000)?;
        self.root = Some(root);
        Ok(())
    }

    fn memory_store(&mut self, bytes: u64, inodes: u64, executable: bool) -> Done {
        let (bytes, inodes) = (bytes.to_string(), inodes.to_string());
        let mut options = vec![
            ("size", Some(bytes.as_str())),
            ("nr_inodes", Some(inodes.as_str())),
            ("mode", Some("0755")),
        ];
        if leaves_out(self.plan, "disk") {
            options.drain(..2);
        }
        let store = make_filesystem("tmpfs", &options, PLAIN)?;
        self.keep_store(store, executable)
    }

    fn image_store(&mut self, executable: bool) -> Done {
        let mut store = self.image.take().ok_or_else(|| missing("the image"))?;
        if leaves_out(self.plan, "disk") {
            store = make_filesystem("tmpfs", &[("mode", Some("0755"))], PLAIN)?;
        }
        self.keep_store(store, executable)
    }

    fn disk_store(&mut self, source: SourceIndex, executable: bool) -> Done {
        let store = self.take(source)?;
        sys::set_mount_attributes(store.as_fd(), PLAIN, false).during("disk store", "")?;
        self.keep_store(store, executable)
    }

    fn keep_store(&mut self, store: OwnedFd, executable: bool) -> Done {
        let target = format!("/{STAGE}/store");
        make_directories(self.root()?, target.as_bytes(), 0o755)?;
        self.attach_at(&store, target.as_bytes())?;
        let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&store, ".", open, Mode::empty()).during("store", "")?;
        self.store = Some(held);
        self.executable_store = executable || leaves_out(self.plan, "noexec");
        Ok(())
    }

    fn attach_at(&self, mount: &OwnedFd, target: &[u8]) -> Done {
        let place = open_target(self.root()?, target).during("target", target)?;
        attach(mount.as_fd(), place.as_fd(), target)
    }

    fn file(&self, target: &[u8], contents: &[u8], mode: u32) -> Done {
        let mut file = std::fs::File::from(make_file(self.root()?, target, mode)?);
        std::io::Write::write_all(&mut file, contents).during("file", target)
    }

    fn symlink(&self, target: &[u8], points_to: &[u8]) -> Done {
        let at = target.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        make_directories(self.root()?, &target[..at], 0o755)?;
        rustix::fs::symlinkat(path_of(points_to), self.root()?, relative(target)).during("symlink", target)
    }

    fn read_only(&mut self, source: SourceIndex, target: &[u8], executable: bool) -> Done {
        let mount = self.take(source)?;
        let mut attributes = PLAIN | MountAttrFlags::MOUNT_ATTR_RDONLY;
        if leaves_out(self.plan, "read-only") {
            attributes = PLAIN;
        }
        if !executable {
            attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
        }
        sys::set_mount_attributes(mount.as_fd(), attributes, true).during("read-only", target)?;
        self.place(&mount, target)
    }

    fn read_write(&mut self, source: SourceIndex, target: &[u8]) -> Done {
        let mount = self.take(source)?;
        sys::set_mount_attributes(mount.as_fd(), self.of_store(), false).during("read-write", target)?;
        self.place(&mount, target)
    }

    /// Makes what the mount needs to hang on, by the kind of thing that it is, and hangs it there.
    fn place(&self, mount: &OwnedFd, target: &[u8]) -> Done {
        let stat = rustix::fs::fstat(mount).during("target", target)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            make_directories(self.root()?, target, 0o755)?;
        } else {
            make_file(self.root()?, target, 0o644)?;
        }
        self.attach_at(mount, target)
    }

    fn private(&self, name: &str, target: &[u8], mode: u32) -> Done {
        let mount = self.store_directory(name, mode)?;
        make_directories(self.root()?, target, 0o755)?;
        self.attach_at(&mount, target)
    }

    /// Makes a directory of the store, as a mount of its own.
    fn store_directory(&self, name: &str, mode: u32) -> Done<OwnedFd> {
        let store = self.store()?;
        rustix::fs::mkdirat(store, name, Mode::from_raw_mode(mode)).during("private directory", name)?;
        let mount = copy_mount(store, Path::new(name), false)?;
        sys::set_mount_attributes(mount.as_fd(), self.of_store(), false).during("private directory", name)?;
        Ok(mount)
    }

    /// Returns the attributes of a place that can be written.
    fn of_store(&self) -> MountAttrFlags {
        if self.executable_store { PLAIN } else { PLAIN | MountAttrFlags::MOUNT_ATTR_NOEXEC }
    }

    fn private_overlay(&mut self, lower: SourceIndex, name: &str, target: &[u8]) -> Done {
        let lower = self.stage(lower)?;
        let directory = self.private_layer(name, 0o755)?;
        self.overlay(&[lower], Some(&directory), self.of_store(), target)
    }

    /// Makes a place in the store for what is written to an overlay; returns its name in the staging directory.
    fn private_layer(&self, name: &str, mode: u32) -> Done<String> {
        let store = self.store()?;
        rustix::fs::mkdirat(store, name, Mode::from_raw_mode(0o755)).during("private overlay", name)?;
        self.make_overlay_directories(store, Path::new(name), mode)
    }

    fn git_directory(
        &mut self,
        lowers: &[SourceIndex],
        upper: Option<SourceIndex>,
        mode: u32,
        target: &[u8],
    ) -> Done {
        let lowers: Vec<String> = lowers.iter().map(|lower| self.stage(*lower)).collect::<Done<_>>()?;
        let directory = match upper {
            Some(source) => self.stage(source)?,
            None => self.private_layer("git", mode)?,
        };
        self.overlay(&lowers, Some(&directory), self.of_store(), target)
    }

    fn workspace(
        &mut self,
        lowers: &[SourceIndex],
        upper: Option<&Upper>,
        target: &[u8],
        executable: bool,
    ) -> Done {
        let lowers: Vec<String> = lowers.iter().map(|lower| self.stage(*lower)).collect::<Done<_>>()?;
        let upper = match upper {
            None => None,
            Some(Upper::Store { mode }) => {
                Some(self.make_overlay_directories(self.store()?, Path::new("."), *mode)?)
            }
            Some(Upper::Host(source)) => Some(self.stage(*source)?),
        };
        if leaves_out(self.plan, "workspace") {
            return self.workspace_without_layer(&lowers, target);
        }
        let mut attributes = PLAIN;
        if upper.is_none() {
            attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
        }
        if !executable && !self.executable_store {
            attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
        }
        self.overlay(&lowers, upper.as_deref(), attributes, target)
    }

    /// What a mutant does: the host's own directory, writable, instead of an overlay over it.
    fn workspace_without_layer(&self, lowers: &[String], target: &[u8]) -> Done {
        let base = lowers.last().ok_or_else(|| missing("the base"))?;
        let mount = copy_mount(self.root()?, &Path::new(STAGE).join(base), false)?;
        self.place(&mount, target)
    }

    /// Hangs a place in the staging directory, where the overlay can take it from; returns its name there.
    fn stage(&mut self, source: SourceIndex) -> Done<String> {
        let mount = self.take(source)?;
        let name = format!("{source}");
        let target = format!("/{STAGE}/{name}");
        make_directories(self.root()?, target.as_bytes(), 0o755)?;
        self.attach_at(&mount, target.as_bytes())?;
        Ok(name)
    }

    /// Makes `upper`, with this mode, and `work` in a directory of the store; returns its name in the staging directory.
    fn make_overlay_directories(&self, store: BorrowedFd<'_>, below: &Path, mode: u32) -> Done<String> {
        for name in ["upper", "work"] {
            let path = below.join(name);
            rustix::fs::mkdirat(store, &path, Mode::from_raw_mode(0o755))
                .during("overlay directories", name)?;
        }
        // The top of an overlay is shown with the mode of this one.
        rustix::fs::chmodat(store, below.join("upper"), Mode::from_raw_mode(mode), AtFlags::empty())
            .during("overlay directories", "mode")?;
        Ok(format!("store/{}", below.display()))
    }

    /// Mounts an overlay. Names are relative to the staging directory, which keeps the option short: the kernel
    /// takes at most 256 bytes for one (`fsconfig(2)`).
    fn overlay(
        &self,
        lowers: &[String],
        upper: Option<&str>,
        attributes: MountAttrFlags,
        target: &[u8],
    ) -> Done {
        let root = self.root()?;
        let stage = rustix::fs::openat(root, STAGE, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        rustix::process::fchdir(stage.during("overlay", STAGE)?).during("overlay", STAGE)?;
        let mut lowers = lowers.join(":");
        if upper.is_none() && !lowers.contains(':') {
            // An overlay without an upper directory needs two lower ones; the second is empty. It lies in the store,
            // because the kernel lists nothing at all of an overlay one of whose directories was removed.
            let name = "no-layer";
            rustix::fs::mkdirat(self.store()?, name, Mode::from_raw_mode(0o755)).during("overlay", name)?;
            lowers.push_str(":store/no-layer");
        }
        let upper_path = upper.map(|directory| format!("{directory}/upper"));
        let work_path = upper.map(|directory| format!("{directory}/work"));
        let mut options = vec![("source", Some("fumehood")), ("lowerdir", Some(lowers.as_str()))];
        if let (Some(upper), Some(work)) = (&upper_path, &work_path) {
            options.push(("upperdir", Some(upper)));
            options.push(("workdir", Some(work)));
            // Unmounting an overlay otherwise writes out everything that waits on the file system below it, whoever wrote
            // it. What is kept of a layer is written out by those who keep it.
            options.push(("volatile", None));
        }
        options.push(("userxattr", None));
        let mount = make_filesystem("overlay", &options, attributes)?;
        make_directories(root, target, 0o755)?;
        self.attach_at(&mount, target)
    }

    fn device(&mut self, name: &str) -> Done {
        let source = format!("/dev/{name}");
        let wanted = source.as_bytes();
        let index = self.plan.sources.iter().position(|known| known.path == wanted);
        let mount = self.take(index.ok_or_else(|| missing(name))?)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        sys::set_mount_attributes(mount.as_fd(), attributes, false).during("device", name)?;
        self.place(&mount, wanted)
    }

    fn terminals(&self) -> Done {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let options = [("ptmxmode", Some("0666")), ("mode", Some("0620"))];
        let mount = make_filesystem("devpts", &options, attributes)?;
        make_directories(self.root()?, b"/dev/pts", 0o755)?;
        self.attach_at(&mount, b"/dev/pts")?;
        self.symlink(b"/dev/ptmx", b"pts/ptmx")
    }

    fn queues(&self) -> Done {
        make_directories(self.root()?, b"/dev/mqueue", 0o755)?;
        match make_filesystem("mqueue", &[], PLAIN | MountAttrFlags::MOUNT_ATTR_NOEXEC) {
            // A kernel without POSIX message queues.
            Err(failure) if failure.errno == libc::ENODEV => Ok(()),
            mount => self.attach_at(&mount?, b"/dev/mqueue"),
        }
    }

    fn proc(&self) -> Done {
        let mount = make_filesystem("proc", &[], PLAIN | MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
        make_directories(self.root()?, b"/proc", 0o555)?;
        self.attach_at(&mount, b"/proc")?;
        if self.plan.nested_user_namespaces || leaves_out(self.plan, "namespaces") {
            return Ok(());
        }
        let path = "proc/sys/user/max_user_namespaces";
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(self.root()?, path, flags, Mode::empty()).during("user namespaces", path)?;
        std::io::Write::write_all(&mut std::fs::File::from(file), b"0").during("user namespaces", path)
    }

    fn mask(&self, target: &[u8]) -> Done {
        if leaves_out(self.plan, "masks") {
            return Ok(());
        }
        let Some((place, kind)) = self.existing(target)? else { return Ok(()) };
        let cover = match kind {
            FileType::Directory => "empty",
            // What a link points to is masked under its own name, or is not shown at all.
            FileType::Symlink => return Ok(()),
            _ => "nothing",
        };
        self.hang_over(&place, cover, target)
    }

    /// Covers a file with one of ours that holds something else.
    fn cover_with(&mut self, target: &[u8], contents: &[u8]) -> Done {
        let Some((place, FileType::RegularFile)) = self.existing(target)? else { return Ok(()) };
        self.covers += 1;
        let name = format!("cover-{}", self.covers);
        self.file(format!("/{STAGE}/{name}").as_bytes(), contents, 0o444)?;
        self.hang_over(&place, &name, target)
    }

    /// Opens a target when it is there and no link is on the way.
    fn existing(&self, target: &[u8]) -> Done<Option<(OwnedFd, FileType)>> {
        let place = match open_target(self.root()?, target) {
            Ok(place) => place,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error).during("mask", target),
        };
        let stat = rustix::fs::fstat(&place).during("mask", target)?;
        Ok(Some((place, FileType::from_raw_mode(stat.st_mode))))
    }

    /// Hangs something out of the staging directory over a target, read-only.
    fn hang_over(&self, place: &OwnedFd, cover: &str, target: &[u8]) -> Done {
        let mount = copy_mount(self.root()?, &Path::new(STAGE).join(cover), false)?;
        let attributes = PLAIN | MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        sys::set_mount_attributes(mount.as_fd(), attributes, false).during("mask", target)?;
        attach(mount.as_fd(), place.as_fd(), target)
    }

    fn freeze(&self, target: &[u8]) -> Done {
        if leaves_out(self.plan, "proc") {
            return Ok(());
        }
        let root = self.root()?;
        match rustix::fs::statat(root, relative(target), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error).during("freeze", target),
        }
        let mount = copy_mount(root, relative(target), true)?;
        sys::set_mount_attributes(mount.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, true)
            .during("freeze", target)?;
        self.attach_at(&mount, target)
    }
}

/// Returns the name by which the times of a step are added up.
fn step_name(step: &Step) -> &'static str {
    match step {
        Step::Root { .. } => "root",
        Step::MemoryStore { .. } | Step::ImageStore { .. } | Step::DiskStore { .. } => "store",
        Step::Directory { .. } | Step::File { .. } | Step::Symlink { .. } => "files",
        Step::ReadOnly { .. } | Step::ReadWrite { .. } => "binds",
        Step::Private { .. } | Step::PrivateOverlay { .. } | Step::GitDirectory { .. } => "private",
        Step::Workspace { .. } => "workspace",
        Step::Device { .. } | Step::Terminals | Step::Queues => "devices",
        Step::Proc => "proc",
        Step::Mask { .. } | Step::Cover { .. } | Step::Freeze { .. } => "masks",
    }
}
