//! The walk that finds credentials, and with it what else must be known of a base.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::{ChangeKind, FileKind, OsText, WorkspacePath};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::cache::{CacheKey, ScanCache, Verdict};
use super::names::{Around, Name, When};
use super::{Found, FoundKind, contents, git_config, values};
use crate::error::{InspectError, shown};
use crate::layer::{Finding, Report, foreign_names};
use crate::tree::{Attributes, Cursor, Node, Stack, Time, Tree, list, open_file, stat};

/// Files larger than this are looked at by name only.
const CONTENT_MAX: u64 = 1 << 20;
/// Files whose name says that they may hold a secret are read up to this size.
const NAMED_MAX: u64 = 16 << 20;
/// As much of a file as shows whether it is text.
const TEXT_HEAD: u64 = 8000;
/// The names of git's configuration.
const CONFIGURATIONS: [&[u8]; 2] = [b"config", b"config.worktree"];
/// A file that changed so recently may change again within one tick of the kernel's clock without a trace.
const SETTLED: std::time::Duration = std::time::Duration::from_millis(100);

/// What was found in a base.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BaseScan {
    /// Files that hold credentials, sorted by path.
    pub found: Vec<Found>,
    /// Attributes that a mount would obey; a base that has any is refused.
    pub foreign: Vec<Finding>,
    /// Directories where something else is mounted; what is in them was not looked at.
    pub mount_points: Vec<OsText>,
    /// Files and directories that we may not read.
    pub unreadable: Vec<OsText>,
    /// How many names were looked at.
    pub names: u64,
    /// How many files were read, and not known from the cache.
    pub files_read: u64,
}

/// Looks at a whole base. What the cache knows is not read again.
///
/// # Errors
/// When the kernel refuses a step for another reason than permission.
pub fn scan(base: &Tree, cache: &mut dyn ScanCache) -> Result<BaseScan, InspectError> {
    let mut scan = Scan { cache, now: now(), out: BaseScan::default() };
    let mut cursor = Cursor::new(&[], std::slice::from_ref(base));
    let mut around = Around::default();
    let mut pending = vec![scan.directory(&cursor, &mut around)?];
    while let Some(level) = pending.last_mut() {
        match level.pop() {
            Some(name) => match cursor.enter(&name) {
                Ok(()) => {
                    around.enter(name.to_bytes());
                    pending.push(scan.directory(&cursor, &mut around)?);
                }
                Err(error) => scan.refused(error, &cursor.path_of(&name))?,
            },
            None => {
                pending.pop();
                around.leave();
                cursor.leave()?;
            }
        }
    }
    scan.out.found.sort_unstable();
    scan.out.foreign.sort_unstable();
    Ok(scan.out)
}

/// Looks at the files that layers made or changed, for credentials that came up during a run.
///
/// # Errors
/// Like [`scan`].
pub fn scan_layer(
    stack: &Stack,
    report: &Report,
    cache: &mut dyn ScanCache,
) -> Result<Vec<Found>, InspectError> {
    let changed =
        |change: &&model::Change| change.kind != ChangeKind::Deleted && change.file == FileKind::File;
    let paths = report.changes.iter().filter(changed).map(|change| &change.path);
    Ok(scan_paths(stack, paths, cache)?.found)
}

/// Looks at some paths as they are with the uppers of a stack.
///
/// # Errors
/// Like [`scan`].
pub fn scan_paths<'p>(
    stack: &Stack,
    paths: impl IntoIterator<Item = &'p WorkspacePath>,
    cache: &mut dyn ScanCache,
) -> Result<BaseScan, InspectError> {
    let mut scan = Scan { cache, now: now(), out: BaseScan::default() };
    let mut after = stack.after();
    for path in paths {
        let entry = match after.find(path) {
            Ok(Some(entry)) if entry.node.kind == FileKind::File => entry,
            Ok(_) => continue,
            Err(error) => {
                scan.refused(error, path.as_bytes())?;
                continue;
            }
        };
        scan.out.names += 1;
        let mut around = around(path);
        let file = File { directory: entry.directory.as_fd(), name: &entry.name, node: &entry.node };
        scan.file(&file, &mut around, &|| path.as_bytes().to_vec())?;
    }
    Ok(scan.out)
}

/// Tells whether a file of this name with this content is a credential.
pub(crate) fn is_credential(path: &WorkspacePath, text: &[u8]) -> bool {
    let mut around = around(path);
    let name = path.as_path().file_name().unwrap_or_default().as_bytes();
    let line = around.line_for(name);
    let is_config = around.in_git() && CONFIGURATIONS.contains(&name);
    why(&judge(text, is_config, line, Verdict::default()), line).is_some()
}

fn around(path: &WorkspacePath) -> Around {
    Around::of(path.as_path().parent().unwrap_or(Path::new("")).as_os_str().as_bytes())
}

/// One file that is looked at.
struct File<'a> {
    directory: BorrowedFd<'a>,
    name: &'a CStr,
    node: &'a Node,
}

struct Scan<'a> {
    cache: &'a mut dyn ScanCache,
    now: Time,
    out: BaseScan,
}

impl Scan<'_> {
    /// Looks at the names of one directory; returns the directories in it.
    fn directory(&mut self, cursor: &Cursor, around: &mut Around) -> Result<Vec<CString>, InspectError> {
        let mut below = Vec::new();
        let Some(&tree) = cursor.lowers().first() else { return Ok(below) };
        let directory = cursor.directory(tree);
        let entries = match list(directory) {
            Ok(entries) => entries,
            Err(errno) => {
                self.refused(InspectError::at("list", cursor.path(), errno), cursor.path())?;
                return Ok(below);
            }
        };
        self.attributes(directory, c"", cursor.path())?;
        for entry in entries {
            let entry = entry.map_err(|errno| InspectError::at("list", cursor.path(), errno))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.out.names += 1;
            // A base may be alive: what is gone between two steps is gone.
            let node = match stat(directory, name) {
                Ok(node) => node,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(InspectError::at("look up", &cursor.path_of(name), errno)),
            };
            match node.kind {
                FileKind::Directory if node.mount_point => {
                    self.out.mount_points.push(shown(&cursor.path_of(name)))
                }
                FileKind::Directory => below.push(name.to_owned()),
                FileKind::File => {
                    let file = File { directory, name, node: &node };
                    self.file(&file, around, &|| cursor.path_of(name))?;
                }
                _ => {}
            }
        }
        Ok(below)
    }

    /// Looks at one file. Its path is written only when something is to be said about it.
    fn file(
        &mut self,
        file: &File<'_>,
        around: &mut Around,
        path: &dyn Fn() -> Vec<u8>,
    ) -> Result<(), InspectError> {
        let line = around.line_for(file.name.to_bytes());
        let key = CacheKey::of(file.node);
        let known = self.cache.get(&key).filter(|known| answers(known, line));
        let verdict = match known {
            Some(known) => known,
            None => match self.look(file, around, path, line)? {
                Some(verdict) => verdict,
                None => return Ok(()),
            },
        };
        for attribute in &verdict.foreign {
            self.out
                .foreign
                .push(Finding::ForeignAttribute { path: shown(&path()), name: attribute.clone() });
        }
        if let Some(why) = why(&verdict, line) {
            let kind = kind_of(around, file.name);
            let path = WorkspacePath::parse(shown(&path()).as_path());
            self.out.found.extend(path.ok().map(|path| Found { path, kind, why }));
        }
        Ok(())
    }

    /// Reads what is not known yet. Nothing comes of a file that is gone or may not be read.
    fn look(
        &mut self,
        file: &File<'_>,
        around: &Around,
        path: &dyn Fn() -> Vec<u8>,
        line: Option<&Name>,
    ) -> Result<Option<Verdict>, InspectError> {
        let foreign = match foreign_names(file.directory, file.name, file.node, Attributes::Merged) {
            Ok(foreign) => foreign.iter().map(|name| shown(name)).collect(),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(InspectError::at("list the attributes of", &path(), errno)),
        };
        let Some(text) = self.text(file, around, path, line)? else { return Ok(None) };
        let verdict =
            judge(&text, is_git_config(around, file.name), line, Verdict { foreign, ..Verdict::default() });
        if self.has_settled(file.node) {
            self.cache.put(CacheKey::of(file.node), verdict.clone());
        }
        Ok(Some(verdict))
    }

    /// Reads a file when its content could tell something.
    fn text(
        &mut self,
        file: &File<'_>,
        around: &Around,
        path: &dyn Fn() -> Vec<u8>,
        line: Option<&Name>,
    ) -> Result<Option<Vec<u8>>, InspectError> {
        let named = line.is_some_and(|line| matches!(line.when, When::Values | When::Token));
        let limit = if named { NAMED_MAX } else { CONTENT_MAX };
        if file.node.size == 0 || file.node.size > limit || around.in_objects() {
            return Ok(Some(Vec::new()));
        }
        let size = usize::try_from(file.node.size).unwrap_or_default();
        let mut text = Vec::new();
        let read = open_file(file.directory, file.name).map_err(std::io::Error::from).and_then(|file| {
            // Most of what a build makes is no text: its beginning is enough.
            let mut file = file.take(TEXT_HEAD);
            file.read_to_end(&mut text)?;
            if is_text(&text) {
                text.reserve(size.saturating_sub(text.len()));
                file.set_limit(limit.saturating_sub(text.len() as u64));
                file.read_to_end(&mut text)?;
            }
            Ok(())
        });
        self.out.files_read += 1;
        match read {
            Ok(()) => Ok(Some(text)),
            Err(error) => self.refused(InspectError::at("read", &path(), error), &path()).map(|()| None),
        }
    }

    fn attributes<Fd: AsFd>(&mut self, directory: Fd, name: &CStr, path: &[u8]) -> Result<(), InspectError> {
        let fail = |errno| InspectError::at("list the attributes of", path, errno);
        for attribute in crate::tree::overlay_names(directory, name).map_err(fail)? {
            self.out.foreign.push(Finding::ForeignAttribute { path: shown(path), name: shown(&attribute) });
        }
        Ok(())
    }

    fn refused(&mut self, error: InspectError, path: &[u8]) -> Result<(), InspectError> {
        match error.io_error().map(std::io::Error::kind) {
            Some(std::io::ErrorKind::PermissionDenied) => {
                self.out.unreadable.push(shown(path));
                Ok(())
            }
            Some(std::io::ErrorKind::NotFound) => Ok(()),
            _ => Err(error),
        }
    }

    fn has_settled(&self, node: &Node) -> bool {
        let age = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        age(self.now) - age(node.changed) > SETTLED.as_nanos() as i128
    }
}

fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or_default() }
}

/// Tells whether what is known answers what the name asks.
fn answers(known: &Verdict, line: Option<&Name>) -> bool {
    match line.map(|line| line.when) {
        Some(When::Values) => known.has_values.is_some(),
        Some(When::Token) => known.has_token.is_some(),
        Some(When::Public | When::Never | When::Always) | None => true,
    }
}

/// Programs and pictures hold bytes that look like anything.
fn is_text(text: &[u8]) -> bool {
    !text.iter().take(TEXT_HEAD as usize).any(|byte| *byte == 0)
}

/// Finds out what a text shows.
fn judge(text: &[u8], is_git_config: bool, line: Option<&Name>, mut verdict: Verdict) -> Verdict {
    let is_text = is_text(text);
    verdict.shape = is_text.then(|| contents::shape_of(text).map(str::to_owned)).flatten();
    if is_git_config && git_config::has_credentials(text) {
        verdict.shape = Some("a password or token in an address or header".to_owned());
    }
    match line.map(|line| line.when) {
        Some(When::Values) => verdict.has_values = Some(is_text && values::gives_a_value(text)),
        Some(When::Token) => verdict.has_token = Some(is_text && values::gives_a_secret(text)),
        Some(When::Public | When::Never | When::Always) | None => {}
    }
    verdict
}

/// Says why a file is a credential, when it is one.
fn why(verdict: &Verdict, line: Option<&Name>) -> Option<String> {
    let by_content = verdict.shape.as_ref().map(|shape| format!("it holds {shape}"));
    let by_name = line.and_then(|line| match line.when {
        When::Always => Some(format!("by its name: {}", line.reason)),
        When::Values if verdict.has_values == Some(true) => {
            Some(format!("by its name and values: {}", line.reason))
        }
        When::Token if verdict.has_token == Some(true) => {
            Some(format!("by its name and a value: {}", line.reason))
        }
        When::Public | When::Never | When::Values | When::Token => None,
    });
    if line.is_some_and(|line| line.when == When::Public) {
        return None;
    }
    by_content.or(by_name)
}

fn kind_of(around: &Around, name: &CStr) -> FoundKind {
    match () {
        () if is_git_config(around, name) => FoundKind::InGitConfig,
        () if around.in_git() => FoundKind::InGit,
        () => FoundKind::File,
    }
}

/// Tells whether a file is a configuration of git: `config` or `config.worktree` somewhere in a `.git`.
fn is_git_config(around: &Around, name: &CStr) -> bool {
    around.in_git() && CONFIGURATIONS.contains(&name.to_bytes())
}
