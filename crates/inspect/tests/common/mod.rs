//! Real overlay mounts in a mount namespace of their own, and a plain comparison of trees to hold results against.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, unreachable_pub)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use inspect::tree::{Stack, Tree};
use model::{Change, ChangeKind, FileKind, WorkspacePath};

/// A base and the layers over it, in a directory that goes away at the end.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub layers: usize,
}

impl Bench {
    /// Makes an empty base.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("base")).expect("made");
        Self { dir, layers: 0 }
    }

    pub fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    pub fn upper(&self, layer: usize) -> PathBuf {
        self.dir.path().join(format!("upper{layer}"))
    }

    /// Adds an empty layer that the test fills by hand.
    pub fn empty_layer(&mut self) -> PathBuf {
        self.layers += 1;
        let upper = self.upper(self.layers);
        fs::create_dir(&upper).expect("made");
        fs::set_permissions(&upper, fs::metadata(self.base()).expect("there").permissions()).expect("set");
        upper
    }

    /// Runs a command of the shell on a mount of everything so far, with a new layer on top.
    pub fn run(&mut self, script: &str) {
        let lowers = self.lowers();
        let upper = self.empty_layer();
        let work = self.dir.path().join(format!("work{}", self.layers));
        fs::create_dir(&work).expect("made");
        let options =
            format!("lowerdir={lowers},upperdir={},workdir={},userxattr", upper.display(), work.display());
        self.in_namespace(&options, script);
    }

    /// Mounts with exactly these options and runs a command of the shell there.
    pub fn in_namespace(&self, options: &str, script: &str) {
        let mount = self.dir.path().join("merged");
        let _ = fs::create_dir(&mount);
        // The numbers of inodes of an overlay may be 64 bits wide; nothing here looks at them.
        let inside =
            format!("mount -t overlay overlay -o '{options}' \"$0\" && cd \"$0\" && {{ set -e; {script}\n}}");
        let root = rustix::process::geteuid().is_root();
        let mut command = Command::new("unshare");
        command.args(if root { ["-m"].as_slice() } else { &["-U", "-r", "-m"] });
        let status = command.args(["--propagation", "private", "bash", "-c", &inside]).arg(&mount).status();
        assert!(status.expect("unshare starts").success(), "in the mount of {options}: {script}");
    }

    /// Returns what `lowerdir=` takes for everything so far, newest first.
    pub fn lowers(&self) -> String {
        let layers = (1..=self.layers).rev().map(|layer| self.upper(layer));
        let all: Vec<String> = layers.chain([self.base()]).map(|path| path.display().to_string()).collect();
        all.join(":")
    }

    /// Copies what a mount of everything so far shows into a plain directory.
    pub fn flatten(&self, name: &str) -> PathBuf {
        let plain = self.dir.path().join(name);
        let target = format!("cp -a --sparse=always . {}", plain.display());
        self.in_namespace(
            &format!("lowerdir={}:{},userxattr", self.lowers(), self.spare().display()),
            &target,
        );
        plain
    }

    /// Returns an empty directory: an overlay mount wants two lowers at least.
    fn spare(&self) -> PathBuf {
        let spare = self.dir.path().join("spare");
        let _ = fs::create_dir(&spare);
        spare
    }

    /// Returns the newest `count` layers over the rest.
    pub fn stack(&self, count: usize) -> Stack {
        let layers = (1..=self.layers).rev().map(|layer| Tree::open(&self.upper(layer)).expect("a layer"));
        let mut uppers: Vec<Tree> = layers.collect();
        let mut lowers = uppers.split_off(count);
        lowers.push(Tree::open(&self.base()).expect("a base"));
        Stack::new(uppers, lowers)
    }

    /// Reads the newest layer back.
    pub fn read(&self) -> inspect::Report {
        inspect::layer::read(&self.stack(1), inspect::layer::Bounds::default()).expect("is read")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A test as an ordinary user may leave directories that cannot be entered.
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.dir.path()).output();
        // The standard library removes trees by recursion, and some of these are very deep.
        let _ = Command::new("rm").arg("-rf").arg(self.dir.path()).output();
    }
}

/// What a plain tree holds at one path, as far as a change would show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    pub kind: FileKind,
    pub mode: u32,
    pub size: u64,
    pub content: Vec<u8>,
}

/// Reads a whole tree, sorted by path.
pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, Plain> {
    let mut all = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("is listed") {
            let path = directory.join(entry.expect("an entry").file_name());
            let plain = look_at(&root.join(&path));
            if plain.kind == FileKind::Directory {
                pending.push(path.clone());
            }
            all.insert(path, plain);
        }
    }
    all
}

fn look_at(path: &Path) -> Plain {
    let metadata = fs::symlink_metadata(path).expect("is there");
    let file_type = metadata.file_type();
    let (kind, content) = if file_type.is_dir() {
        (FileKind::Directory, Vec::new())
    } else if file_type.is_symlink() {
        (FileKind::Symlink, fs::read_link(path).expect("a link").as_os_str().as_bytes().to_vec())
    } else if file_type.is_fifo() {
        (FileKind::Fifo, Vec::new())
    } else if file_type.is_socket() {
        (FileKind::Socket, Vec::new())
    } else if file_type.is_file() {
        (FileKind::File, fs::read(path).expect("is read"))
    } else {
        (FileKind::Device, metadata.rdev().to_be_bytes().to_vec())
    };
    let size = if kind == FileKind::File { metadata.len() } else { 0 };
    Plain { kind, mode: metadata.permissions().mode() & 0o7777, size, content }
}

/// Compares two trees the slow way.
pub fn naive_changes(before: &Path, after: &Path) -> Vec<Change> {
    let (before, after) = (snapshot(before), snapshot(after));
    let mut changes = Vec::new();
    for (path, old) in &before {
        match after.get(path) {
            None => changes.push(gone(path, old)),
            Some(new) if new != old => changes.push(now(path, ChangeKind::Modified, new)),
            Some(_) => {}
        }
    }
    let created = after.iter().filter(|(path, _)| !before.contains_key(*path));
    changes.extend(created.map(|(path, new)| now(path, ChangeKind::Created, new)));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn now(path: &Path, kind: ChangeKind, new: &Plain) -> Change {
    let path = WorkspacePath::parse(path).expect("inside");
    Change { path, kind, file: new.kind, mode: new.mode, size: new.size, ignored: false }
}

fn gone(path: &Path, old: &Plain) -> Change {
    let path = WorkspacePath::parse(path).expect("inside");
    Change { path, kind: ChangeKind::Deleted, file: old.kind, mode: 0, size: 0, ignored: false }
}

/// Writes changes the short way: `+path`, `~path`, `-path`.
pub fn short(changes: &[Change]) -> Vec<String> {
    let sign = |kind| match kind {
        ChangeKind::Created => '+',
        ChangeKind::Modified => '~',
        ChangeKind::Deleted => '-',
    };
    changes.iter().map(|change| format!("{}{}", sign(change.kind), change.path)).collect()
}

/// Makes a path out of bytes.
pub fn path(bytes: &[u8]) -> WorkspacePath {
    WorkspacePath::parse(Path::new(OsStr::from_bytes(bytes))).expect("inside")
}
