//! Places: which file a path means.

use std::path::{Component, Path, PathBuf};

use model::{OsText, Place, WorkspacePath};

use crate::arg::{Arg, Known};

/// Devices that hold nothing: reading them shows nothing that a command has not been given.
const READ_NOTHING: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// Those where writing changes nothing. By the name of a descriptor, a file that was opened to be read can be written.
const WRITE_NOTHING: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd/1",
    "/dev/fd/2",
];

/// What stands for the pipe of a process substitution. No argument can hold a NUL, so nobody else can name it.
pub(crate) const PROCESS: &str = "\0process";

/// What is done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
    Delete,
}

/// A directory that a command may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Where it surely is: the engine has resolved it.
    start: PathBuf,
    /// What the command added to it. A link can be among these, so climbing out of them leads who knows where.
    added: PathBuf,
}

impl Directory {
    pub(crate) fn new(start: PathBuf) -> Self {
        Self { start, added: PathBuf::new() }
    }

    /// Returns the directory that `path` names from here, or nothing where that is not known.
    pub(crate) fn join(&self, path: &Path) -> Option<Self> {
        let mut joined = self.clone();
        for part in path.components() {
            match part {
                Component::RootDir => joined = Self { start: PathBuf::from("/"), added: PathBuf::new() },
                Component::CurDir | Component::Prefix(_) => {}
                Component::Normal(name) => joined.added.push(name),
                Component::ParentDir if joined.added.as_os_str().is_empty() => {
                    joined.start.pop();
                }
                Component::ParentDir => return None,
            }
        }
        Some(joined)
    }

    fn path(&self) -> PathBuf {
        self.start.join(&self.added)
    }
}

/// Returns the places that an argument names from some directories; none when it names no file at all.
pub(crate) fn places(arg: &Arg, act: Act, directories: &[Directory], workspace: &Path) -> Vec<Place> {
    let text = match arg.known {
        Known::Not | Known::Beginning => return vec![Place::Anywhere],
        Known::Exactly => arg.text.as_str(),
        Known::Pattern => match before_wildcards(&arg.text) {
            Some(text) => text,
            None => return vec![Place::Anywhere],
        },
    };
    if is_no_file(text, act) {
        return Vec::new();
    }
    if text.starts_with('~') {
        return at_home(text, workspace);
    }
    if directories.is_empty() && !text.starts_with('/') {
        return vec![Place::Anywhere];
    }
    let root = [Directory::new(PathBuf::from("/"))];
    let from = if text.starts_with('/') { &root } else { directories };
    from.iter().map(|directory| place(directory.join(Path::new(text)), workspace)).collect()
}

/// Returns what a path from a home means. Which home that is is not known, and the workspace may lie in it: then it can be a
/// path of the workspace as well.
fn at_home(text: &str, workspace: &Path) -> Vec<Place> {
    let path: PathBuf = Path::new(text).components().collect();
    let Ok(outside) = OsText::try_from(path.as_path()) else { return vec![Place::Anywhere] };
    if path.components().any(|part| part == Component::ParentDir) {
        return vec![Place::Anywhere];
    }
    let from_home: PathBuf = path.components().skip(1).collect();
    let homes = workspace.ancestors().skip(1);
    let inside = homes.filter_map(|home| {
        let found = home.join(&from_home);
        found.strip_prefix(workspace).ok().map(Path::to_owned)
    });
    let inside = inside.map(|path| WorkspacePath::parse(&path).map_or(Place::Workspace, Place::Path));
    std::iter::once(Place::Outside(outside)).chain(inside).collect()
}

fn place(found: Option<Directory>, workspace: &Path) -> Place {
    let Some(path) = found.map(|directory| directory.path()) else { return Place::Anywhere };
    match path.strip_prefix(workspace).map(WorkspacePath::parse) {
        Ok(Ok(inside)) => Place::Path(inside),
        Ok(Err(_)) => Place::Workspace,
        Err(_) => OsText::try_from(path.as_path()).map_or(Place::Anywhere, Place::Outside),
    }
}

fn is_no_file(path: &str, act: Act) -> bool {
    let descriptor =
        path.strip_prefix("/dev/fd/").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    path == PROCESS
        || match act {
            Act::Read => READ_NOTHING.contains(&path) || descriptor,
            Act::Write => WRITE_NOTHING.contains(&path),
            Act::Delete => false,
        }
}

/// Returns the part of a pattern that is surely the same for all that matches, whole directories; nothing where a match
/// can climb out of it. Some shells let `.*` match the directory above.
fn before_wildcards(pattern: &str) -> Option<&str> {
    let is_wild = |part: &str| part.contains(['*', '?', '[', '(']);
    let mut end = 0;
    for part in pattern.split('/') {
        if is_wild(part) {
            break;
        }
        end += part.len() + 1;
    }
    let climbs = |part: &str| part == ".." || part.starts_with('.') && is_wild(part);
    if pattern.get(end..).unwrap_or_default().split('/').any(climbs) {
        return None;
    }
    match end {
        0 => Some("."),
        1 => Some("/"),
        end => Some(&pattern[..end - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let directory = Directory::new(PathBuf::from("/ws/sub"));
        let found = places(&Arg::exactly(text), Act::Read, &[directory], Path::new("/ws"));
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_path_is_followed_from_the_directory() {
        for (text, place) in [
            ("a/b", "`sub/a/b`"),
            ("./a", "`sub/a`"),
            ("../a", "`a`"),
            ("..", "the workspace"),
            ("../../x", "`/x`"),
            ("/ws/x", "`x`"),
            ("/etc/passwd", "`/etc/passwd`"),
            ("~/x", "`~/x`"),
            ("~/a..b", "`~/a..b`"),
            ("~//.aws/./x", "`~/.aws/x`"),
            ("~/ws/x", "`~/ws/x` `x`"),
            ("~root/ws", "`~root/ws` the workspace"),
            ("/dev/null", ""),
            ("/dev/fd/3", ""),
            ("/dev/sda", "`/dev/sda`"),
        ] {
            assert_eq!(one(text), place, "{text}");
        }
    }

    #[test]
    fn climbing_out_of_what_may_be_a_link_is_not_followed() {
        let run_time = Place::Anywhere.to_string();
        for text in ["a/../b", "/ws/a/../b", "/usr/../ws/x", "~/../x"] {
            assert_eq!(one(text), run_time, "{text}");
        }
    }

    #[test]
    fn a_pattern_is_as_wide_as_the_directory_before_it() {
        let at = |text: &str| {
            let arg = Arg { text: text.to_owned(), known: Known::Pattern };
            places(&arg, Act::Read, &[Directory::new(PathBuf::from("/ws"))], Path::new("/ws"))[0].to_string()
        };
        assert_eq!(at("src/*.rs"), "`src`");
        assert_eq!(at("*.rs"), "the workspace");
        assert_eq!(at("/*"), "`/`");
        assert_eq!(at("../*"), "`/`");
        assert_eq!(at("a/b/*/c"), "`a/b`");
        let run_time = Place::Anywhere.to_string();
        for climbing in ["*/../../x", "src/*/..", ".*", ".?", "a/.*/x", ".[.]/x"] {
            assert_eq!(at(climbing), run_time, "{climbing}");
        }
    }
}
