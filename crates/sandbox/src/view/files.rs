//! Looks at the host's files below a root, one link at a time, without opening anything that could block.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags};

use super::host::Host;
use super::reach::may_search;

/// The kernel follows at most 40 links in one path (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// What stands at a path, itself and not what it links to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) what: What,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// What kind of thing stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    Directory,
    File,
    Link(PathBuf),
    Other,
}

/// What was met on the way along a path.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// The path without links, as far as it was followed.
    pub(crate) real: PathBuf,
    /// The links on the way: where each stands (without links in its own path), and what it holds.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// Whether the caller may search every directory on the way, without the help of a supplementary group.
    pub(crate) searchable: bool,
    /// What stands at the end; nothing when the path leads nowhere.
    pub(crate) end: Option<Rc<Node>>,
    /// Whether the walk stopped because it entered the workspace.
    pub(crate) stopped: bool,
}

impl Walk {
    /// Tells whether a directory stands at the end.
    pub(crate) fn is_directory(&self) -> bool {
        self.end.as_ref().is_some_and(|node| node.what == What::Directory)
    }

    /// Tells whether an ordinary file stands at the end.
    pub(crate) fn is_file(&self) -> bool {
        self.end.as_ref().is_some_and(|node| node.what == What::File)
    }
}

/// The host's files. What was looked at is remembered: a view is of one moment.
pub(crate) struct Files<'a> {
    host: &'a Host,
    nodes: RefCell<HashMap<OsString, Option<Rc<Node>>>>,
    walks: RefCell<HashMap<OsString, Rc<Walk>>>,
    names: RefCell<HashMap<OsString, Rc<[OsString]>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn of(host: &'a Host) -> Self {
        Self { host, nodes: RefCell::default(), walks: RefCell::default(), names: RefCell::default() }
    }

    /// Returns where a path of the host really is: below the root.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        self.host.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns what stands at a path whose parents hold no links.
    pub(crate) fn node(&self, path: &Path) -> Option<Rc<Node>> {
        if let Some(known) = self.nodes.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let node = look(&self.outside(path)).map(Rc::new);
        self.nodes.borrow_mut().insert(path.into(), node.clone());
        node
    }

    /// Tells whether a directory stands at a path whose parents hold no links.
    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        self.node(path).is_some_and(|node| node.what == What::Directory)
    }

    /// Follows a path to its end, or up to the workspace, which is not looked into.
    ///
    /// What lies in the workspace was perhaps written by the agent: a link there must not choose what is shown.
    pub(crate) fn walk(&self, path: &Path) -> Rc<Walk> {
        self.walk_on(path, MAX_LINKS)
    }

    fn walk_on(&self, path: &Path, links_left: usize) -> Rc<Walk> {
        if let Some(known) = self.walks.borrow().get(path.as_os_str()) {
            return Rc::clone(known);
        }
        let walk = match path.components().next_back() {
            Some(Component::Normal(name)) => self.step(&self.walk_parent(path, links_left), name, links_left),
            Some(Component::ParentDir) => self.step_up(&self.walk_parent(path, links_left), links_left),
            _ => self.start(),
        };
        let walk = Rc::new(walk);
        self.walks.borrow_mut().insert(path.into(), Rc::clone(&walk));
        walk
    }

    fn walk_parent(&self, path: &Path, links_left: usize) -> Rc<Walk> {
        self.walk_on(path.parent().unwrap_or(Path::new("/")), links_left)
    }

    fn start(&self) -> Walk {
        let top = PathBuf::from("/");
        let end = self.node(&top);
        Walk { real: top, links: Vec::new(), searchable: true, end, stopped: false }
    }

    fn step_up(&self, from: &Walk, links_left: usize) -> Walk {
        let up = self.walk_on(from.real.parent().unwrap_or(Path::new("/")), links_left);
        Walk { links: from.links.clone(), stopped: from.stopped, ..(*up).clone() }
    }

    fn step(&self, from: &Walk, name: &OsStr, links_left: usize) -> Walk {
        let mut walk = from.clone();
        walk.real.push(name);
        if from.stopped {
            return walk;
        }
        walk.end = None;
        let Some(directory) = from.end.as_ref().filter(|_| from.is_directory()) else { return walk };
        walk.searchable &= may_search(directory, self.host.caller);
        if walk.real == self.host.workspace {
            walk.stopped = true;
            return walk;
        }
        walk.end = self.node(&walk.real);
        match walk.end.as_deref() {
            Some(Node { what: What::Link(to), .. }) => self.follow(&walk, &from.real, to, links_left),
            _ => walk,
        }
    }

    fn follow(&self, link: &Walk, directory: &Path, to: &Path, links_left: usize) -> Walk {
        let mut links = link.links.clone();
        links.push((link.real.clone(), to.to_owned()));
        if links_left == 0 {
            return Walk { links, end: None, ..link.clone() };
        }
        let target = self.walk_on(&directory.join(to), links_left - 1);
        links.extend(target.links.iter().cloned());
        let searchable = link.searchable && target.searchable;
        Walk { links, searchable, ..(*target).clone() }
    }

    /// Reads an ordinary file of at most `max` bytes; nothing when it is anything else.
    pub(crate) fn read(&self, path: &Path, max: u64) -> Option<Vec<u8>> {
        // A pipe or a device in the place of a settings file must neither block us nor be touched.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, self.outside(path), flags, Mode::empty()).ok()?;
        let file = std::fs::File::from(file);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > max {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        file.take(max + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= max).then_some(bytes)
    }

    /// Returns the names in a directory, sorted; none when it cannot be read.
    pub(crate) fn names(&self, directory: &Path) -> Rc<[OsString]> {
        if let Some(known) = self.names.borrow().get(directory.as_os_str()) {
            return Rc::clone(known);
        }
        let entries = std::fs::read_dir(self.outside(directory)).into_iter().flatten();
        let mut names: Vec<OsString> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        let names: Rc<[OsString]> = names.into();
        self.names.borrow_mut().insert(directory.into(), Rc::clone(&names));
        names
    }

    /// Returns the paths that match a pattern, in which `*` stands for any part of one name.
    pub(crate) fn matching(&self, pattern: &Path) -> Vec<PathBuf> {
        if !pattern.as_os_str().as_encoded_bytes().contains(&b'*') {
            return vec![pattern.to_owned()];
        }
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.iter().skip(1) {
            let has_star = part.as_encoded_bytes().contains(&b'*');
            found = if has_star {
                found.iter().flat_map(|directory| self.children_like(directory, part)).collect()
            } else {
                found.into_iter().map(|directory| directory.join(part)).collect()
            };
        }
        found
    }

    fn children_like(&self, directory: &Path, pattern: &OsStr) -> Vec<PathBuf> {
        let names = self.names(directory);
        names.iter().filter(|name| is_like(name, pattern)).map(|name| directory.join(name)).collect()
    }
}

/// Tells whether a name matches a pattern in which `*` stands for anything.
pub(crate) fn is_like(name: impl AsRef<std::ffi::OsStr>, pattern: impl AsRef<std::ffi::OsStr>) -> bool {
    let (name, pattern) = (name.as_ref().as_encoded_bytes(), pattern.as_ref().as_encoded_bytes());
    let mut pieces = pattern.split(|byte| *byte == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let pieces: Vec<&[u8]> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle.iter().filter(|piece| !piece.is_empty()) {
        match rest.windows(piece.len()).position(|window| window == *piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns where file systems are mounted on this host.
///
/// # Errors
/// When `/proc/self/mountinfo` cannot be read.
pub fn mount_points() -> std::io::Result<Vec<PathBuf>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    // The fifth field is the mount point, with blanks and backslashes as octal escapes: proc_pid_mountinfo(5).
    let lines = table.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescape).collect())
}

fn unescape(field: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn look(path: &Path) -> Option<Node> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let what = match metadata.file_type() {
        kind if kind.is_dir() => What::Directory,
        kind if kind.is_file() => What::File,
        kind if kind.is_symlink() => What::Link(std::fs::read_link(path).ok()?),
        _ => What::Other,
    };
    Some(Node { what, mode: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn fixture() -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir_all(top.path().join("data/home/ada/.cargo")).expect("directories");
        std::fs::write(top.path().join("data/home/ada/.cargo/config.toml"), "x").expect("a file");
        symlink("data/home", top.path().join("home")).expect("a link");
        symlink("/home/ada/../ada/.cargo", top.path().join("tools")).expect("a link");
        symlink("loop", top.path().join("loop")).expect("a link");
        top
    }

    fn host(top: &tempfile::TempDir, workspace: &str) -> Host {
        Host { workspace: workspace.into(), ..Host::fixture(top.path()) }
    }

    #[test]
    fn links_are_followed_below_the_root_and_remembered() {
        let top = fixture();
        let host = host(&top, "/none");
        let walk = Files::of(&host).walk(Path::new("/tools/config.toml"));
        assert_eq!(walk.real, Path::new("/data/home/ada/.cargo/config.toml"));
        assert!(walk.is_file() && walk.searchable);
        let links: Vec<_> = walk.links.iter().map(|(at, to)| (at.to_str(), to.to_str())).collect();
        let expected =
            [(Some("/tools"), Some("/home/ada/../ada/.cargo")), (Some("/home"), Some("data/home"))];
        assert_eq!(links, expected);
    }

    #[test]
    fn what_leads_nowhere_or_round_in_circles_has_no_end() {
        let top = fixture();
        let host = host(&top, "/none");
        let files = Files::of(&host);
        for path in ["/loop", "/loop/x", "/none", "/data/home/ada/.cargo/config.toml/x"] {
            assert_eq!(files.walk(Path::new(path)).end, None, "{path}");
        }
    }

    #[test]
    fn a_walk_does_not_look_into_the_workspace() {
        let top = fixture();
        let host = host(&top, "/data/home/ada");
        let walk = Files::of(&host).walk(Path::new("/tools/config.toml"));
        assert!(walk.stopped);
        assert_eq!(walk.real, Path::new("/data/home/ada/.cargo/config.toml"));
    }

    #[test]
    fn a_pipe_is_not_read() {
        let top = fixture();
        let pipe = top.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        assert_eq!(Files::of(&host(&top, "/none")).read(Path::new("/pipe"), 100), None);
    }

    #[test]
    fn a_star_stands_for_anything_within_a_name() {
        for (name, pattern) in
            [("python3.11", "python3*"), ("a-library", "*-library"), ("abcbd", "a*b*d"), ("x", "*")]
        {
            assert!(is_like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("python2", "python3*"), ("ab", "a"), ("ad", "a*b*d"), ("aba", "ab*ba")] {
            assert!(!is_like(name, pattern), "{name} {pattern}");
        }
    }

    #[test]
    fn a_mount_point_with_a_blank_is_read_rightly() {
        assert_eq!(unescape(b"/mnt/a\\040b\\134c"), Path::new("/mnt/a b\\c"));
        assert!(mount_points().expect("a mount table").contains(&PathBuf::from("/")));
    }
}
