//! Puts pieces together and refuses what must not be shown.
//!
//! Every piece of a view passes here, so the rules stand in one place: nothing that only a group can reach, nothing of
//! the state directory, no place of credentials, no directory that holds a home. Whatever lies in the workspace is
//! left to the workspace: links there are never followed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::credentials::Credentials;
use super::files::{Files, Walk};
use super::host::Host;
use super::piece::{Hidden, Kind, Piece};
use super::reach::{Reach, reach};

/// Files up to this size are copied instead of bound: writing them costs less than a mount.
const COPY_MAX: u64 = 16 * 1024;

/// The pieces so far.
pub(crate) struct Assembly<'a> {
    pub(crate) host: &'a Host,
    pub(crate) files: Files<'a>,
    /// The caller's home, without links.
    pub(crate) home: PathBuf,
    pub(crate) credentials: Credentials,
    /// The pieces by target. The key is plain bytes, because taking paths apart for each comparison costs too much.
    pieces: HashMap<OsString, Piece>,
    /// Directories of tools that are shown: they may hold credentials among other things.
    of_tools: Vec<PathBuf>,
    hidden: Vec<Hidden>,
}

/// What became of a path that was to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is shown at this place, which has no links.
    At(PathBuf),
    /// It lies in the workspace and appears with it.
    InWorkspace,
    /// There is nothing.
    Missing,
    /// It is not shown; the reason is written down.
    Hidden,
}

/// How something of the host is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A directory of the system, which may hold other places.
    System,
    /// Settings of the system.
    Settings,
    /// Something of a tool, read-only.
    ReadOnly,
    /// A directory of a tool, with a private layer above.
    Overlay,
}

impl<'a> Assembly<'a> {
    pub(crate) fn new(host: &'a Host) -> Self {
        let files = Files::of(host);
        let home = files.walk(&host.home).real.clone();
        let credentials = Credentials::of(&home);
        let (pieces, of_tools, hidden) = (HashMap::new(), Vec::new(), Vec::new());
        Self { host, files, home, credentials, pieces, of_tools, hidden }
    }

    /// Shows a path of the host at its own place, with the links that lead to it.
    pub(crate) fn show(&mut self, path: &Path, manner: Manner) -> Shown {
        let walk = self.files.walk(path);
        if walk.end.is_none() {
            if !walk.stopped {
                return Shown::Missing;
            }
            self.add_links(&walk);
            return Shown::InWorkspace;
        }
        if manner != Manner::Overlay && self.is_seen(&walk.real) {
            self.add_links(&walk);
            return Shown::At(walk.real.clone());
        }
        if let Some(why) = self.objection(&walk.real, manner) {
            return self.hide(path, why);
        }
        let map_owner = match reach(&walk, self.host.caller, self.host.inside) {
            Reach::Not => return self.hide(path, "neither its owner nor everyone can read it"),
            Reach::Mapped => true,
            Reach::Plainly => false,
        };
        self.add_links(&walk);
        self.add_source(&walk, manner, map_owner);
        Shown::At(walk.real.clone())
    }

    fn add_source(&mut self, walk: &Walk, manner: Manner, map_owner: bool) {
        let source = self.files.outside(&walk.real);
        let target = walk.real.clone();
        let recursive = self.host.mount_points.iter().any(|point| lies_below(point, &source));
        if walk.is_directory() && matches!(manner, Manner::ReadOnly | Manner::Overlay) {
            self.of_tools.push(target.clone());
        }
        // The kernel refuses an overlay whose lower directory has mounts below it in a user namespace.
        let piece = if manner == Manner::Overlay && walk.is_directory() && !recursive {
            let is_callers = walk.end.as_ref().is_some_and(|end| end.uid == self.host.caller.uid);
            let map_owner = self.host.caller != self.host.inside && is_callers;
            Piece::Overlay { lower: source, target, map_owner }
        } else {
            let kind = if walk.is_directory() { Kind::Directory } else { Kind::File };
            Piece::ReadOnly { source, target, kind, recursive, map_owner }
        };
        self.insert(piece);
    }

    /// Shows a file or directory of the system's settings: small files as copies, because a mount costs more.
    pub(crate) fn show_settings(&mut self, path: &Path) {
        let walk = self.files.walk(path);
        let is_plain = walk.is_file() && !self.is_seen(&walk.real);
        let is_readable = reach(&walk, self.host.caller, self.host.inside) == Reach::Plainly;
        let contents = (is_plain && is_readable).then(|| self.files.read(&walk.real, COPY_MAX)).flatten();
        match contents {
            Some(contents) => {
                self.add_links(&walk);
                self.insert(Piece::Generated { target: walk.real.clone(), contents, mode: 0o644 });
            }
            None => {
                self.show(path, Manner::Settings);
            }
        }
    }

    /// Returns why a place must not be shown, when it must not.
    fn objection(&self, real: &Path, manner: Manner) -> Option<String> {
        if real.starts_with(&self.host.state_dir) {
            return Some("it belongs to the state directory".to_owned());
        }
        if let Some(why) = self.credentials.place_of(real) {
            return Some(format!("it is a place of credentials: {why}"));
        }
        if manner == Manner::System {
            return None;
        }
        let holds = |place: &Path| place.starts_with(real);
        match () {
            () if holds(&self.home) => Some("it holds the home".to_owned()),
            () if holds(&self.host.state_dir) => Some("it holds the state directory".to_owned()),
            () if holds(&self.host.workspace) => Some("it holds the workspace".to_owned()),
            () if matches!(self.pieces.get(real.as_os_str()), Some(Piece::Private { .. })) => {
                Some("it is a private place of the command and empty inside".to_owned())
            }
            () => None,
        }
    }

    /// Adds the links that a walk went through, where they are not there already.
    pub(crate) fn add_links(&mut self, walk: &Walk) {
        for (at, to) in &walk.links {
            if !self.is_seen(at) && self.credentials.place_of(at).is_none() {
                self.insert(Piece::Symlink { target: at.clone(), points_to: to.clone() });
            }
        }
    }

    /// Adds a piece; an earlier one at the same place stays.
    pub(crate) fn insert(&mut self, piece: Piece) {
        self.pieces.entry(piece.target().into()).or_insert(piece);
    }

    /// Writes a file inside anew from what was generated for it so far.
    pub(crate) fn replace_text(&mut self, target: &Path, write: impl FnOnce(Option<String>) -> String) {
        let earlier = match self.pieces.remove(target.as_os_str()) {
            Some(Piece::Generated { contents, .. }) => String::from_utf8(contents).ok(),
            _ => None,
        };
        let contents = write(earlier).into_bytes();
        self.insert(Piece::Generated { target: target.to_owned(), contents, mode: 0o644 });
    }

    /// Writes down what is not shown.
    pub(crate) fn hide(&mut self, path: &Path, why: impl Into<String>) -> Shown {
        let hidden = Hidden { path: path.to_owned(), why: why.into() };
        if !self.hidden.contains(&hidden) {
            self.hidden.push(hidden);
        }
        Shown::Hidden
    }

    /// Covers something that an earlier piece shows.
    pub(crate) fn mask(&mut self, path: &Path, why: &str) {
        let kind = if self.files.is_directory(path) { Kind::Directory } else { Kind::File };
        self.pieces.insert(path.into(), Piece::Mask { target: path.to_owned(), kind });
        self.hide(path, format!("it is masked: {why}"));
    }

    /// Tells whether a path without links that stands on the host is seen through the pieces so far.
    pub(crate) fn is_seen(&self, real: &Path) -> bool {
        matches!(
            self.covering(real),
            Some(
                Piece::ReadOnly { .. }
                    | Piece::Overlay { .. }
                    | Piece::Generated { .. }
                    | Piece::Symlink { .. }
            )
        )
    }

    /// Tells whether a path lies in a private writable place.
    pub(crate) fn is_private(&self, real: &Path) -> bool {
        matches!(self.covering(real), Some(Piece::Private { .. } | Piece::Directory { .. }))
    }

    /// Returns the innermost piece that a path lies in.
    pub(crate) fn covering(&self, real: &Path) -> Option<&Piece> {
        real.ancestors().find_map(|ancestor| self.pieces.get(ancestor.as_os_str()))
    }

    /// Returns the directories of tools that are shown.
    pub(crate) fn directories_of_tools(&self) -> Vec<PathBuf> {
        self.of_tools.clone()
    }

    /// Returns the pieces in order, with the directories between them, and what is hidden.
    pub(crate) fn finish(mut self) -> (Vec<Piece>, Vec<Hidden>) {
        let covered: Vec<OsString> =
            self.pieces.values().filter(|piece| self.is_covered(piece)).map(key).collect();
        covered.iter().for_each(|target| drop(self.pieces.remove(target)));
        let between: Vec<PathBuf> =
            self.pieces.keys().flat_map(|target| self.missing_parents(Path::new(target))).collect();
        for target in between {
            self.insert(Piece::Directory { target, mode: 0o755 });
        }
        let mut pieces: Vec<Piece> = self.pieces.into_values().collect();
        // With the separator as the least of bytes, a parent always comes before what is below it.
        pieces.sort_by_cached_key(|piece| {
            piece
                .target()
                .as_os_str()
                .as_encoded_bytes()
                .split(|b| *b == b'/')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        });
        (pieces, self.hidden)
    }

    /// Tells whether a piece shows only what a directory that came after it shows as well. Nothing could be made there:
    /// the directory is read-only.
    fn is_covered(&self, piece: &Piece) -> bool {
        let shows_host =
            matches!(piece, Piece::ReadOnly { .. } | Piece::Generated { .. } | Piece::Symlink { .. });
        let around = piece.target().parent().and_then(|parent| self.covering(parent));
        shows_host && matches!(around, Some(Piece::ReadOnly { .. }))
    }

    fn missing_parents(&self, target: &Path) -> Vec<PathBuf> {
        let parents = target.ancestors().skip(1).filter(|parent| parent.parent().is_some());
        parents.take_while(|parent| !self.is_seen(parent)).map(Path::to_owned).collect()
    }
}

fn key(piece: &Piece) -> OsString {
    piece.target().into()
}

fn lies_below(path: &Path, directory: &Path) -> bool {
    let directory = directory.as_os_str().as_encoded_bytes();
    let rest = path.as_os_str().as_encoded_bytes().strip_prefix(directory);
    rest.is_some_and(|rest| directory.ends_with(b"/") || rest.starts_with(b"/"))
}
