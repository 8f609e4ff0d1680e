//! Deciding what is to be done, given what the host has now. Nothing is written here.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use inspect::release::Reader;
use inspect::tree::{Entry, look_up, open_file};
use inspect::{Artifact, Artifacts, Node};
use model::{Change, ChangeKind, FileKind, TaskId, WorkspacePath};
use rustix::io::Errno;

use super::beneath::Workspace;
use super::drift::{Base, Below, is_as_seen, is_directory};
use super::error::ApplyError;
use super::journal::{Act, Step, StepState};
use super::report::Conflict;

/// Files larger than this are not read to find out whether the host made the same edit, or to merge.
const COMPARED_MAX: u64 = 1 << 20;

/// What a prepared file is made of.
#[derive(Debug)]
pub(super) enum Source {
    /// Nothing is prepared.
    None,
    /// A file or link of the layers.
    Layer(Box<Entry>),
    /// Text that was merged, with the permissions of the layer's file.
    Merged { text: String, mode: u32 },
    /// A file that was captured, by its number.
    Captured(usize),
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<(Step, Source)>,
    pub(super) changes: Vec<Change>,
    pub(super) already: Vec<Change>,
    pub(super) merged: Vec<WorkspacePath>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Decides what is to be done for each change.
pub(super) fn plan(
    workspace: &Workspace,
    artifacts: Artifacts,
    base: &dyn Base,
    task: &TaskId,
) -> Result<Plan, ApplyError> {
    let mut planner = Planner { workspace, base, task, reader: artifacts.reader(), plan: Plan::default() };
    for artifact in artifacts.items() {
        planner.change(artifact)?;
    }
    planner.plan.sort();
    Ok(planner.plan)
}

impl Plan {
    pub(super) fn push(&mut self, path: &WorkspacePath, act: Act, source: Source) {
        let step = Step { path: path.clone(), act, staged: None, copied: false, state: StepState::Planned };
        self.steps.push((step, source));
    }

    /// Puts the steps in an order in which each finds what it needs: files go before their directories, directories
    /// are made before what is in them, and get their permissions when everything is in them.
    pub(super) fn sort(&mut self) {
        self.steps.sort_by(|(a, _), (b, _)| {
            let (rank, same) = (rank(&a.act), rank(&a.act) == rank(&b.act));
            let deepest_first = same && matches!(rank, 1 | 4);
            let by_path = if deepest_first { b.path.cmp(&a.path) } else { a.path.cmp(&b.path) };
            rank.cmp(&self::rank(&b.act)).then(by_path)
        });
    }
}

fn rank(act: &Act) -> u8 {
    match act {
        Act::Delete { .. } => 0,
        Act::RemoveDirectory { .. } => 1,
        Act::MakeDirectory { .. } => 2,
        Act::Replace { .. } | Act::Create => 3,
        Act::FinishDirectory { .. } => 4,
    }
}

struct Planner<'a> {
    workspace: &'a Workspace,
    base: &'a dyn Base,
    task: &'a TaskId,
    reader: Reader,
    plan: Plan,
}

impl Planner<'_> {
    fn change(&mut self, artifact: &Artifact) -> Result<(), ApplyError> {
        let change = artifact.change();
        let host = match self.workspace.look(&change.path) {
            Ok(host) => host,
            Err(Errno::LOOP | Errno::XDEV) => {
                return self.conflict(artifact, "a directory on the way is a link or a mount point now");
            }
            Err(errno) => {
                let (step, path) = ("look at", change.path.clone().into());
                return Err(ApplyError::Prepare { step, path, source: errno.into() });
            }
        };
        let below = self.base.below(&change.path);
        let as_seen = is_as_seen(&below, host.as_ref()) || self.has_base_content(&change.path, host.as_ref());
        match (artifact.node(), host) {
            (None, None) => self.plan.already.push(change.clone()),
            // A directory goes only when it is empty, so that nothing of the host is lost with it.
            (None, Some(host)) if as_seen || change.file == FileKind::Directory && is_directory(&host) => {
                self.remove(change, host);
            }
            (None, Some(_)) => return self.conflict(artifact, "the host changed it, so it was not deleted"),
            (Some(new), host) if is_directory(new) => return self.directory(artifact, new, host, as_seen),
            (Some(_), host) => return self.file(artifact, host, &below, as_seen),
        }
        Ok(())
    }

    fn remove(&mut self, change: &Change, host: Node) {
        let host = Box::new(host);
        let act = if is_directory(&host) { Act::RemoveDirectory { host } } else { Act::Delete { host } };
        self.plan.push(&change.path, act, Source::None);
        self.plan.changes.push(change.clone());
    }

    fn directory(
        &mut self,
        artifact: &Artifact,
        new: &Node,
        host: Option<Node>,
        as_seen: bool,
    ) -> Result<(), ApplyError> {
        let change = artifact.change();
        let mode = new.mode() & 0o2777;
        match host {
            Some(host) if is_directory(&host) => {
                if change.kind == ChangeKind::Created || host.mode() == mode {
                    self.plan.already.push(change.clone());
                    return Ok(());
                }
                let finish = Act::FinishDirectory { mode, host: Some(Box::new(host)), times: None };
                self.plan.push(&change.path, finish, Source::None);
            }
            Some(_) if !as_seen => {
                return self
                    .conflict(artifact, "the host has something else there, so the directory was not made");
            }
            host => {
                if let Some(host) = host {
                    self.plan.push(&change.path, Act::Delete { host: Box::new(host) }, Source::None);
                }
                let make = Act::MakeDirectory { mode, owner: None };
                self.plan.push(&change.path, make, Source::None);
                let finish = Act::FinishDirectory { mode, host: None, times: Some(Box::new(new.clone())) };
                self.plan.push(&change.path, finish, Source::None);
            }
        }
        self.plan.changes.push(change.clone());
        Ok(())
    }

    fn file(
        &mut self,
        artifact: &Artifact,
        host: Option<Node>,
        below: &Below,
        as_seen: bool,
    ) -> Result<(), ApplyError> {
        let change = artifact.change();
        let entry = self.reader.find(artifact)?;
        let act = match host {
            None if as_seen || *below == Below::Unknown && change.kind == ChangeKind::Created => Act::Create,
            None => return self.conflict(artifact, "the host deleted it"),
            Some(host) if is_directory(&host) && (as_seen || *below == Below::Unknown) => {
                self.plan.push(&change.path, Act::RemoveDirectory { host: Box::new(host) }, Source::None);
                Act::Create
            }
            Some(host) if as_seen => Act::Replace { host: Box::new(host) },
            Some(host) => return self.drifted(artifact, entry, host),
        };
        self.plan.push(&change.path, act, Source::Layer(Box::new(entry)));
        self.plan.changes.push(change.clone());
        Ok(())
    }

    /// The host changed the file, too: perhaps to the same, perhaps in other lines.
    fn drifted(&mut self, artifact: &Artifact, entry: Entry, host: Node) -> Result<(), ApplyError> {
        let change = artifact.change();
        if self.host_has_the_same(&change.path, &entry, &host) {
            self.plan.already.push(change.clone());
            return Ok(());
        }
        let Some(text) = self.merged(&change.path, &entry, &host) else {
            return self.conflict(artifact, "the host changed it, too");
        };
        let source = Source::Merged { text, mode: entry.node.mode() & 0o777 };
        self.plan.push(&change.path, Act::Replace { host: Box::new(host) }, source);
        self.plan.changes.push(change.clone());
        self.plan.merged.push(change.path.clone());
        Ok(())
    }

    fn host_has_the_same(&self, path: &WorkspacePath, entry: &Entry, host: &Node) -> bool {
        let wanted = match (entry.node.kind, host.kind) {
            (FileKind::Symlink, FileKind::Symlink) => {
                entry.link_target().map(|target| target.as_bytes().to_vec()).ok()
            }
            (FileKind::File, FileKind::File) if entry.node.mode() == host.mode() => {
                entry.read(COMPARED_MAX + 1).ok()
            }
            _ => None,
        };
        wanted.is_some_and(|wanted| self.host_content(path, host).is_some_and(|content| content == wanted))
    }

    fn merged(&self, path: &WorkspacePath, entry: &Entry, host: &Node) -> Option<String> {
        if (entry.node.kind, host.kind) != (FileKind::File, FileKind::File) {
            return None;
        }
        let (base, ours) = (self.base.content(path)?, self.host_content(path, host)?);
        inspect::diff::merge_texts(&base, &ours, &entry.read(COMPARED_MAX + 1).ok()?)
    }

    /// Tells whether the host has the very bytes that the run saw, although the kernel's facts are others.
    fn has_base_content(&self, path: &WorkspacePath, host: Option<&Node>) -> bool {
        let Some(host) = host.filter(|host| matches!(host.kind, FileKind::File | FileKind::Symlink)) else {
            return false;
        };
        let Some(base) = self.base.content(path) else { return false };
        self.host_content(path, host).is_some_and(|content| content == base)
    }

    /// Reads what a file of the host holds, or where a link points; nothing when it is too large or changes meanwhile.
    fn host_content(&self, path: &WorkspacePath, host: &Node) -> Option<Vec<u8>> {
        let place = self.workspace.place(path).ok()?;
        if host.kind == FileKind::Symlink {
            let target = rustix::fs::readlinkat(&place.directory, &place.name, Vec::new()).ok()?;
            return Some(target.into_bytes());
        }
        let file = open_file(&place.directory, &place.name).ok()?;
        let is_unchanged = look_up(&file, c"").is_ok_and(|opened| host.is_unchanged(&opened));
        if !is_unchanged || host.size > COMPARED_MAX {
            return None;
        }
        let mut content = Vec::new();
        file.take(COMPARED_MAX + 1).read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Keeps both: the host's file stays, and the layer's file comes to lie beside it.
    fn conflict(&mut self, artifact: &Artifact, why: &str) -> Result<(), ApplyError> {
        let path = &artifact.change().path;
        let is_file = artifact.node().is_some_and(|node| !is_directory(node));
        let beside = if is_file { self.free_name_beside(path) } else { None };
        if let Some(beside) = &beside {
            let entry = self.reader.find(artifact)?;
            self.plan.push(beside, Act::Create, Source::Layer(Box::new(entry)));
        }
        self.plan.conflicts.push(Conflict { path: path.clone(), beside, why: why.to_owned() });
        Ok(())
    }

    /// Finds a free name `NAME.fumehood-TASK` beside a path; where the directory itself is gone there is none.
    fn free_name_beside(&self, path: &WorkspacePath) -> Option<WorkspacePath> {
        let name = path.as_path().file_name()?.as_bytes();
        (1..100).find_map(|attempt| {
            let mark = match attempt {
                1 => format!(".fumehood-{}", self.task),
                _ => format!(".fumehood-{}.{attempt}", self.task),
            };
            let kept = &name[..name.len().min(255 - mark.len())];
            let beside = path.as_path().with_file_name(OsStr::from_bytes(&[kept, mark.as_bytes()].concat()));
            let beside = WorkspacePath::parse(Path::new(&beside)).ok()?;
            let place = self.workspace.place(&beside).ok()?;
            matches!(place.look(), Ok(None)).then_some(beside)
        })
    }
}
