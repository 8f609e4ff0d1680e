//! The walk over the uppers of a stack.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::{Change, ChangeKind, FileKind, WorkspacePath};
use rustix::io::Errno;

use super::compare::{Comparison, Side, compare};
use super::strip::foreign_names;
use super::{Bounds, Finding, Report};
use crate::error::{InspectError, shown};
use crate::tree::{Cursor, Hit, Node, Pair, Stack, list};

/// A walk in progress. Directories that are still to be entered are kept by name, level by level, so that neither
/// the program's stack nor its descriptors grow with the depth of a tree.
pub(super) struct Walk {
    cursor: Cursor,
    bounds: Bounds,
    pending: Vec<Vec<CString>>,
    paths: usize,
    links: HashMap<(u64, u64), Vec<WorkspacePath>>,
    report: Report,
}

impl Walk {
    pub(super) fn new(stack: &Stack, bounds: Bounds) -> Self {
        Self {
            cursor: stack.cursor(),
            bounds,
            pending: Vec::new(),
            paths: 0,
            links: HashMap::new(),
            report: Report::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<Report, InspectError> {
        self.visit()?;
        while let Some(level) = self.pending.last_mut() {
            match level.pop() {
                Some(name) => self.descend(&name)?,
                None => {
                    self.pending.pop();
                    self.cursor.leave()?;
                }
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Report {
        self.report.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.report.findings.sort_unstable();
        let mut groups: Vec<_> = self.links.into_values().filter(|group| group.len() > 1).collect();
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups.sort_unstable();
        self.report.link_groups = groups;
        self.report
    }

    fn descend(&mut self, name: &CStr) -> Result<(), InspectError> {
        match self.cursor.enter(name) {
            Ok(()) => self.visit(),
            Err(error) if is_refusal(&error) => {
                self.find(Finding::Unreadable { path: shown(&self.cursor.path_of(name)) });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at each name of the directory where we are.
    fn visit(&mut self) -> Result<(), InspectError> {
        self.pending.push(Vec::new());
        self.report_directory_attributes()?;
        let mut sources = self.cursor.uppers().to_vec();
        if !self.cursor.lowers_show() {
            // What is hidden here is gone: names that only the lowers have count too.
            sources.extend_from_slice(self.cursor.lowers());
        }
        // One source cannot hold a name twice, so a directory of any size is streamed.
        let mut met = (sources.len() > 1).then(HashSet::new);
        for tree in sources {
            self.visit_names(tree, &mut met)?;
        }
        Ok(())
    }

    fn visit_names(&mut self, tree: usize, met: &mut Option<HashSet<CString>>) -> Result<(), InspectError> {
        let entries = match list(self.cursor.directory(tree)) {
            Ok(entries) => entries,
            Err(Errno::ACCESS | Errno::PERM) => {
                self.find(Finding::Unreadable { path: shown(self.cursor.path()) });
                return Ok(());
            }
            Err(errno) => return Err(InspectError::at("list", self.cursor.path(), errno)),
        };
        for entry in entries {
            let entry = entry.map_err(|errno| InspectError::at("list", self.cursor.path(), errno))?;
            let name = entry.file_name();
            let is_new = met.as_mut().is_none_or(|met| met.insert(name.to_owned()));
            if is_new && !matches!(name.to_bytes(), b"." | b"..") {
                self.visit_name(name)?;
            }
        }
        Ok(())
    }

    fn visit_name(&mut self, name: &CStr) -> Result<(), InspectError> {
        let pair = match self.cursor.look(name) {
            Ok(pair) => pair,
            Err(error) if is_refusal(&error) => {
                self.find(Finding::Unreadable { path: shown(&self.cursor.path_of(name)) });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(path) = self.listable(name) else { return Ok(()) };
        if let Some(hit) = pair.after.as_ref().filter(|_| pair.from_upper) {
            self.report_file(name, hit, &path)?;
        }
        self.compare(name, &pair, path)?;
        if needs_a_look_inside(&pair) {
            self.pending.last_mut().into_iter().for_each(|level| level.push(name.to_owned()));
        }
        Ok(())
    }

    /// Returns the path of a name, unless it is beyond the bounds; then it is counted.
    fn listable(&mut self, name: &CStr) -> Option<WorkspacePath> {
        let path = self.cursor.path_of(name);
        self.paths = self.paths.saturating_add(path.len());
        if path.len() > self.bounds.path || self.paths > self.bounds.all_paths {
            if self.report.unlisted == 0 {
                self.find(Finding::PathTooLong { path: shown(self.cursor.path()) });
            }
            self.report.unlisted += 1;
            return None;
        }
        // INVARIANT: names from the kernel are not empty and hold no slash, and `.` and `..` were left out.
        WorkspacePath::parse(Path::new(std::ffi::OsStr::from_bytes(&path))).ok()
    }

    fn compare(&mut self, name: &CStr, pair: &Pair, path: WorkspacePath) -> Result<(), InspectError> {
        match (&pair.before, &pair.after) {
            (None, None) => {}
            (None, Some(new)) => self.changed(path, ChangeKind::Created, &new.node),
            (Some(old), None) => {
                let gone = Change { mode: 0, size: 0, ..change(path, ChangeKind::Deleted, &old.node) };
                self.report.changes.push(gone);
            }
            (Some(old), Some(new)) => match self.compare_both(name, old, new)? {
                Comparison::Same => {}
                outcome => {
                    if outcome == Comparison::Unreadable {
                        self.find(Finding::Unreadable { path: shown(path.as_bytes()) });
                    }
                    // Files of earlier layers have other names in checkpoints; only those of the base mean anything.
                    if old.node.kind == FileKind::File && old.node.links > 1 && self.cursor.is_base(old.tree)
                    {
                        self.find(Finding::LinkSplit { path: shown(path.as_bytes()) });
                    }
                    self.changed(path, ChangeKind::Modified, &new.node);
                }
            },
        }
        Ok(())
    }

    fn compare_both(&self, name: &CStr, old: &Hit, new: &Hit) -> Result<Comparison, InspectError> {
        let before = Side { directory: self.cursor.directory(old.tree), node: &old.node };
        let after = Side { directory: self.cursor.directory(new.tree), node: &new.node };
        compare(name, &before, &after)
            .map_err(|errno| InspectError::at("compare", &self.cursor.path_of(name), errno))
    }

    fn changed(&mut self, path: WorkspacePath, kind: ChangeKind, node: &Node) {
        self.report.changes.push(change(path, kind, node));
    }

    /// Reports what is odd about a file that one of the uppers holds, and remembers its other names.
    fn report_file(&mut self, name: &CStr, hit: &Hit, path: &WorkspacePath) -> Result<(), InspectError> {
        if hit.node.kind != FileKind::File {
            return Ok(());
        }
        if hit.node.links > 1 {
            let group = self.links.entry((hit.node.device, hit.node.inode)).or_default();
            group.push(path.clone());
        }
        let marked = self.cursor.attributes(hit.tree);
        let foreign = foreign_names(self.cursor.directory(hit.tree), name, &hit.node, marked);
        self.report_attributes(path.as_bytes(), foreign)
    }

    fn report_directory_attributes(&mut self) -> Result<(), InspectError> {
        for tree in self.cursor.uppers().to_vec() {
            let foreign = crate::tree::stat(self.cursor.directory(tree), c"").and_then(|node| {
                foreign_names(self.cursor.directory(tree), c"", &node, self.cursor.attributes(tree))
            });
            let path = self.cursor.path().to_vec();
            self.report_attributes(&path, foreign)?;
        }
        Ok(())
    }

    fn report_attributes(
        &mut self,
        path: &[u8],
        foreign: Result<Vec<Vec<u8>>, Errno>,
    ) -> Result<(), InspectError> {
        let foreign = foreign.map_err(|errno| InspectError::at("list the attributes of", path, errno))?;
        for name in foreign {
            self.find(Finding::ForeignAttribute { path: shown(path), name: shown(&name) });
        }
        Ok(())
    }

    fn find(&mut self, finding: Finding) {
        if self.report.findings.len() < self.bounds.findings {
            self.report.findings.push(finding);
        } else {
            self.report.findings_dropped += 1;
        }
    }
}

fn change(path: WorkspacePath, kind: ChangeKind, node: &Node) -> Change {
    let size = if node.kind == FileKind::File { node.size } else { 0 };
    Change { path, kind, file: node.kind, mode: node.mode(), size, ignored: false }
}

/// Tells whether names below may be different: an upper has a directory there, or what was one is gone.
fn needs_a_look_inside(pair: &Pair) -> bool {
    let is_directory =
        |hit: &Option<Hit>| hit.as_ref().is_some_and(|hit| hit.node.kind == FileKind::Directory);
    (pair.from_upper && is_directory(&pair.after))
        || (is_directory(&pair.before) && pair.before != pair.after)
}

fn is_refusal(error: &InspectError) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}
