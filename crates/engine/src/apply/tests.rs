//! Applying to real directories, and everything that can come in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod attack;
mod crash;
mod drift;
mod limits;
mod plain;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use inspect::layer::{self, Bounds};
use inspect::tree::{Stack, Time, Tree};
use inspect::{Artifacts, Consent, Inspection, Rules};
use model::{TaskId, WorkspacePath};

use super::{Applied, ApplyError, Base, BaseStats, Below, Target, Work, apply, complete, undo};

/// A host directory, a layer over it, and a place for what is overwritten.
struct Bench {
    dir: tempfile::TempDir,
    task: TaskId,
    known: RefCell<Known>,
}

/// What is known of the base: what the kernel said, and contents where a test gives them.
#[derive(Default)]
struct Known {
    below: BTreeMap<WorkspacePath, Below>,
    contents: BTreeMap<WorkspacePath, Vec<u8>>,
}

impl Base for Known {
    fn below(&self, path: &WorkspacePath) -> Below {
        self.below.below(path)
    }

    fn content(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        self.contents.get(path).cloned()
    }
}

impl Bench {
    fn new() -> Self {
        Self::in_directory(tempfile::tempdir().expect("a temporary directory"))
    }

    fn in_directory(dir: tempfile::TempDir) -> Self {
        for name in ["host", "upper", "outside"] {
            fs::create_dir(dir.path().join(name)).expect("made");
        }
        Self { dir, task: TaskId::from_random([7; 10]), known: RefCell::default() }
    }

    fn host(&self, name: &str) -> PathBuf {
        self.dir.path().join("host").join(name)
    }

    fn upper(&self, name: &str) -> PathBuf {
        self.dir.path().join("upper").join(name)
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    /// Puts a file into the host's directory, before the run.
    fn base(&self, name: &str, content: &str) -> &Self {
        write(&self.host(name), content);
        self
    }

    /// Puts a file into the layer.
    fn made(&self, name: &str, content: &str) -> &Self {
        self.parents(name);
        fs::write(self.upper(name), content).expect("written");
        self
    }

    /// Puts a link into the layer.
    fn linked(&self, name: &str, target: &str) -> &Self {
        self.parents(name);
        symlink(target, self.upper(name)).expect("linked");
        self
    }

    /// Puts a mark into the layer that a name is gone.
    fn gone(&self, name: &str) -> &Self {
        self.parents(name);
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, self.upper(name), kind, 0.into(), 0).expect("made");
        self
    }

    /// Makes the directories of a path in the layer, like the host's where it has them.
    fn parents(&self, name: &str) {
        let mut path = PathBuf::new();
        for part in Path::new(name).parent().expect("relative").components() {
            path.push(part);
            let upper = self.upper("").join(&path);
            if fs::symlink_metadata(&upper).is_err() {
                fs::create_dir(&upper).expect("made");
                let host = fs::metadata(self.host("").join(&path));
                if let Some(host) = host.ok().filter(fs::Metadata::is_dir) {
                    fs::set_permissions(&upper, host.permissions()).expect("set");
                }
            }
        }
    }

    fn stack(&self) -> Stack {
        let open = |path: PathBuf| Tree::open(&path).expect("a directory");
        Stack::new(vec![open(self.upper(""))], vec![open(self.host(""))])
    }

    /// Remembers what the run saw below, as the engine does when it reads the layer.
    fn ran(&self) -> &Self {
        let report = layer::read(&self.stack(), Bounds::default()).expect("is read");
        let stats = BaseStats::take(&report, &self.stack(), now()).expect("looked at");
        assert_eq!(stats.edited().count(), 0);
        self.known.borrow_mut().below = BaseStats::of_task([stats]);
        self
    }

    /// Lets everything out that a person may let out.
    fn artifacts(&self) -> Artifacts {
        self.try_artifacts().expect("is read")
    }

    fn try_artifacts(&self) -> Result<Artifacts, inspect::InspectError> {
        let report = layer::read(&self.stack(), Bounds::default())?;
        match inspect::inspect(self.stack(), &report, Rules::built_in())? {
            Inspection::Clean(artifacts) => Ok(artifacts),
            Inspection::Held(quarantine) => {
                let paths = quarantine.held().iter().map(|held| held.change.path.clone()).collect();
                Ok(quarantine.released_by(&Consent { person: "ada".to_owned(), paths })?.0)
            }
        }
    }

    fn captured(&self) -> PathBuf {
        self.dir.path().join("captured")
    }

    fn apply(&self) -> Result<Applied, ApplyError> {
        self.with_target(|target| apply(self.artifacts(), &*self.known.borrow(), target))
    }

    fn undo(&self) -> Result<Applied, ApplyError> {
        self.with_target(undo)
    }

    fn with_target<T>(&self, act: impl FnOnce(&Target<'_>) -> T) -> T {
        let (workspace, captured) = (self.host(""), self.captured());
        act(&Target { workspace: &workspace, captured: &captured, task: &self.task })
    }

    /// Returns everything in the host's directory: path, kind and permissions, and what it holds.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        tree(&self.host(""))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.host(name)).expect("is read")
    }
}

fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(root.join(&directory)).expect("is listed") {
            let path = directory.join(entry.expect("an entry").file_name());
            let metadata = fs::symlink_metadata(root.join(&path)).expect("is there");
            let content = match metadata.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(root.join(&path)).expect("a link").as_os_str().as_bytes().to_vec()
                }
                kind if kind.is_file() => fs::read(root.join(&path)).expect("is read"),
                _ => Vec::new(),
            };
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            all.insert(path, (metadata.mode(), content));
        }
    }
    all
}

/// Brings an apply that was cut off to its end.
fn completed(target: &Target<'_>) -> Result<Option<Applied>, ApplyError> {
    complete(target, Work::Apply)
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("in a directory")).expect("made");
    fs::write(path, content).expect("written");
}

fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).expect("below a second") }
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("inside")
}

fn paths(changes: &[model::Change]) -> Vec<String> {
    changes.iter().map(|change| change.path.to_string()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("is there").permissions().mode() & 0o7777
}
