//! What a request in bubblewrap's terms means here: one workspace, how it is given, and what was narrowed.

use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use model::text::escape;

use super::parse::{Access, BwrapRequest, Fresh, Operation};

/// What is known of the caller.
pub struct Caller<'a> {
    /// The current directory, resolved.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The effective user.
    pub uid: u32,
    /// The effective group.
    pub gid: u32,
    /// Resolves a path of the host; `None` when it does not exist.
    pub resolve: &'a dyn Fn(&Path) -> Option<PathBuf>,
}

/// What a request means here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The workspace.
    pub workspace: Workspace,
    /// Whether the workspace is read-only.
    pub read_only: bool,
    /// Where the command starts, as a path of the host inside the workspace.
    pub directory: PathBuf,
    /// Variables to set.
    pub environment: Vec<(String, OsString)>,
    /// The command and its arguments.
    pub argv: Vec<OsString>,
    /// What was asked for beyond policy, and what is given instead.
    pub narrowed: Vec<String>,
}

/// Which directory is the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// This one: it was named.
    Exactly(PathBuf),
    /// The one that this directory belongs to, as with `run`: everything was given, so none was named.
    Around(PathBuf),
}

/// Says why a request is not honoured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A part of the host was to stand in another place.
    #[error("`{}` cannot stand at `{}`: what is shown of the host stands at its own path", shown(.0), shown(.1))]
    Moved(PathBuf, PathBuf),
    /// A part of the host does not exist.
    #[error("`{}` does not exist", shown(.0))]
    Missing(PathBuf),
    /// Part of the workspace was to be something else than the workspace.
    #[error("`{}` is part of the workspace, which is given as a whole", shown(.0))]
    InsideWorkspace(PathBuf),
    /// Something was to stand where the sandbox has its own.
    #[error("nothing else can stand at `{}`: the sandbox has its own there", shown(.0))]
    Taken(PathBuf),
    /// There are several writable directories and none is where the command starts.
    #[error("`{}` and `{}` are both to be writable: a run has one workspace; start in it, with --chdir", shown(.0), shown(.1))]
    TwoWorkspaces(PathBuf, PathBuf),
    /// There is no directory to work in.
    #[error("no directory to work in is shown: add `--bind DIR DIR`, or `--ro-bind DIR DIR`")]
    NoWorkspace,
    /// The command was to start outside the workspace.
    #[error("the command cannot start in `{}`: it is outside the workspace `{}`", shown(.0), shown(.1))]
    StartsOutside(PathBuf, PathBuf),
    /// Another user was asked for.
    #[error("the command cannot run as {what} {asked}: inside, it has the id {own} of its own")]
    Identity {
        /// `user` or `group`.
        what: &'static str,
        /// The one that was asked for.
        asked: u32,
        /// The one that it has.
        own: u32,
    },
    /// A variable has a name that no shell can set.
    #[error("`{}` cannot be the name of an environment variable", escape(.0))]
    VariableName(String),
    /// A path is not absolute.
    #[error("`{}` is not an absolute path", shown(.0))]
    Relative(PathBuf),
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

/// What every sandbox shows of the host, read-only.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"];
/// What every sandbox has of its own and writable.
const PRIVATE: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/dev/shm", "/home", "/root"];

/// A part of the host that is to be shown, after everything that covers it was taken off.
#[derive(Debug, Clone)]
struct Shown {
    path: PathBuf,
    /// The path at which it was asked for: the same, or one that leads there by links.
    asked: PathBuf,
    writable: bool,
}

/// Works out what a request means here.
///
/// # Errors
/// When it asks for something that can neither be honoured nor narrowed without changing what the command sees.
pub fn map(request: &BwrapRequest, caller: &Caller<'_>) -> Result<Mapped, Refusal> {
    let mut narrowing = Narrowing::default();
    identity("user", request.uid, caller.uid)?;
    identity("group", request.gid, caller.gid)?;
    let parts = replay(request, caller, &mut narrowing)?;
    let start = request.chdir.as_ref().map(|dir| absolute(dir)).transpose()?;
    let start = start.map(|dir| (caller.resolve)(&dir).ok_or(Refusal::Missing(dir))).transpose()?;
    let start_or_cwd = start.clone().unwrap_or_else(|| caller.cwd.clone());
    let (workspace, read_only) = choose(&parts, &start_or_cwd, caller, &mut narrowing)?;
    inside_stays_whole(request, &workspace, caller)?;
    let directory = directory(start, &workspace, caller)?;
    let environment = environment(request, &mut narrowing)?;
    narrow_the_rest(request, &mut narrowing);
    let argv = request.argv.clone();
    Ok(Mapped { workspace, read_only, directory, environment, argv, narrowed: narrowing.0 })
}

/// What was narrowed, each thing once.
#[derive(Default)]
struct Narrowing(Vec<String>);

impl Narrowing {
    fn say(&mut self, what: impl fmt::Display, instead: &str) {
        let text = format!("{what} ({instead})");
        if !self.0.contains(&text) {
            self.0.push(text);
        }
    }
}

fn identity(what: &'static str, asked: Option<u32>, own: u32) -> Result<(), Refusal> {
    match asked {
        Some(asked) if asked != own => Err(Refusal::Identity { what, asked, own }),
        _ => Ok(()),
    }
}

/// Replays the operations in order, so that a later one covers earlier ones, and returns what is left of the host.
fn replay(
    request: &BwrapRequest,
    caller: &Caller<'_>,
    narrowing: &mut Narrowing,
) -> Result<Vec<Shown>, Refusal> {
    let mut parts: Vec<Shown> = Vec::new();
    for operation in &request.operations {
        match operation {
            Operation::Bind { source, destination, access, optional } => {
                let Some(path) = bound(source, destination, *optional, caller)? else { continue };
                parts.retain(|part| !part.path.starts_with(&path));
                if *access == Access::Devices && path != Path::new("/dev") {
                    narrowing.say(shown(&path), "no device files but the harmless ones");
                }
                let asked = absolute(destination)?;
                parts.push(Shown { path, asked, writable: *access != Access::ReadOnly });
            }
            Operation::Fresh { kind, destination } => {
                let destination = absolute(destination)?;
                fresh(*kind, &destination)?;
                parts.retain(|part| !part.path.starts_with(&destination));
            }
            Operation::ReadOnly { destination } => {
                let destination = absolute(destination)?;
                parts
                    .iter_mut()
                    .filter(|part| part.path == destination)
                    .for_each(|part| part.writable = false);
            }
            Operation::Symlink { destination, .. } => {
                let destination = absolute(destination)?;
                if !SYSTEM.iter().any(|system| destination == Path::new(system)) {
                    return Err(Refusal::Taken(destination));
                }
            }
        }
    }
    Ok(parts)
}

/// Returns the resolved path of a part of the host, which must stand at its own path.
fn bound(
    source: &Path,
    destination: &Path,
    optional: bool,
    caller: &Caller<'_>,
) -> Result<Option<PathBuf>, Refusal> {
    let (source, destination) = (absolute(source)?, absolute(destination)?);
    let Some(real) = (caller.resolve)(&source) else {
        return if optional { Ok(None) } else { Err(Refusal::Missing(source)) };
    };
    let same = source == destination || (caller.resolve)(&destination).as_ref() == Some(&real);
    if same { Ok(Some(real)) } else { Err(Refusal::Moved(source, destination)) }
}

fn fresh(kind: Fresh, destination: &Path) -> Result<(), Refusal> {
    let is = |place: &str| destination == Path::new(place);
    let taken = match kind {
        Fresh::Proc => !is("/proc"),
        Fresh::Dev => !is("/dev"),
        Fresh::Tmpfs => !is("/") && is_system(destination),
        Fresh::Directory => false,
    };
    if taken { Err(Refusal::Taken(destination.to_owned())) } else { Ok(()) }
}

/// Tells whether a path is the system's: what the sandbox has of its own below `/dev` is not.
fn is_system(path: &Path) -> bool {
    let is_below = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    (is_below(&SYSTEM) || is_below(&["/proc", "/dev", "/sys"])) && !is_below(&PRIVATE)
}

/// Chooses the workspace among what is to be shown; everything else of it is narrowed.
fn choose(
    parts: &[Shown],
    start: &Path,
    caller: &Caller<'_>,
    narrowing: &mut Narrowing,
) -> Result<(Workspace, bool), Refusal> {
    let can_be = |part: &&Shown| can_be_workspace(&part.path, caller);
    let around_start = |part: &&Shown| start.starts_with(&part.path);
    let writable: Vec<&Shown> = parts.iter().filter(|part| part.writable).filter(can_be).collect();
    let readable: Vec<&Shown> = parts.iter().filter(|part| !part.writable).filter(can_be).collect();
    let chosen = match writable.as_slice() {
        [only] => Some(*only),
        several => deepest(several.iter().copied().filter(around_start)),
    };
    if let (None, [one, two, ..]) = (chosen, writable.as_slice()) {
        return Err(Refusal::TwoWorkspaces(one.path.clone(), two.path.clone()));
    }
    let chosen = chosen.or_else(|| deepest(readable.into_iter().filter(around_start)));
    narrow_parts(parts, chosen, caller, narrowing);
    if let Some(part) = chosen {
        if part.asked != part.path {
            return Err(Refusal::Moved(part.path.clone(), part.asked.clone()));
        }
        return Ok((Workspace::Exactly(part.path.clone()), !part.writable));
    }
    let cover = deepest(parts.iter().filter(around_start)).filter(|_| can_be_workspace(start, caller));
    let cover = cover.ok_or(Refusal::NoWorkspace)?;
    Ok((Workspace::Around(start.to_owned()), !cover.writable))
}

fn deepest<'a>(parts: impl Iterator<Item = &'a Shown>) -> Option<&'a Shown> {
    parts.max_by_key(|part| part.path.components().count())
}

/// Tells whether a directory can be the workspace: neither the whole host, nor its system, nor a whole home.
fn can_be_workspace(path: &Path, caller: &Caller<'_>) -> bool {
    let whole = PRIVATE.iter().any(|place| path == Path::new(place)) || path == Path::new("/");
    let home = caller.home.as_deref().is_some_and(|home| path == home);
    !whole && !home && !is_system(path)
}

/// Says of everything but the workspace what is shown of it instead.
fn narrow_parts(parts: &[Shown], workspace: Option<&Shown>, caller: &Caller<'_>, narrowing: &mut Narrowing) {
    for part in parts.iter().filter(|part| workspace.is_none_or(|workspace| workspace.path != part.path)) {
        let path = shown(&part.path);
        let home = caller.home.as_deref().is_some_and(|home| part.path == home);
        let private = PRIVATE.iter().any(|place| part.path == Path::new(place));
        match () {
            () if part.path == Path::new("/") => {
                narrowing.say(path, "system directories and the workspace only")
            }
            () if is_system(&part.path) && part.writable => narrowing.say(path, "cannot be written"),
            () if is_system(&part.path) => {}
            () if private || home => narrowing.say(path, "a private one"),
            () if workspace.is_some_and(|workspace| part.path.starts_with(&workspace.path)) => {}
            () => narrowing.say(path, "not shown"),
        }
    }
}

/// Refuses what would stand inside the workspace: it is one overlay, and no part of it can be something else.
fn inside_stays_whole(
    request: &BwrapRequest,
    workspace: &Workspace,
    caller: &Caller<'_>,
) -> Result<(), Refusal> {
    let Workspace::Exactly(workspace) = workspace else { return Ok(()) };
    let mut seen = false;
    for operation in &request.operations {
        let (destination, writable) = match operation {
            Operation::Bind { destination, access, .. } => (destination, *access != Access::ReadOnly),
            Operation::Fresh { kind: Fresh::Directory, .. } => continue,
            Operation::Fresh { destination, .. }
            | Operation::ReadOnly { destination }
            | Operation::Symlink { destination, .. } => (destination, false),
        };
        let destination = absolute(destination)?;
        let destination = (caller.resolve)(&destination).unwrap_or(destination);
        if seen && !writable && destination.starts_with(workspace) && destination != *workspace {
            return Err(Refusal::InsideWorkspace(destination));
        }
        seen |= destination == *workspace;
    }
    Ok(())
}

fn directory(start: Option<PathBuf>, workspace: &Workspace, caller: &Caller<'_>) -> Result<PathBuf, Refusal> {
    match (workspace, start) {
        (Workspace::Around(directory), _) => Ok(directory.clone()),
        (Workspace::Exactly(top), Some(start)) if start.starts_with(top) => Ok(start),
        (Workspace::Exactly(top), Some(start)) => Err(Refusal::StartsOutside(start, top.clone())),
        (Workspace::Exactly(top), None) if caller.cwd.starts_with(top) => Ok(caller.cwd.clone()),
        (Workspace::Exactly(top), None) => Ok(top.clone()),
    }
}

fn environment(
    request: &BwrapRequest,
    narrowing: &mut Narrowing,
) -> Result<Vec<(String, OsString)>, Refusal> {
    if !request.clear_environment {
        narrowing.say("environment", "only what --setenv gives");
    }
    let name = |name: OsString| match name.into_string() {
        Ok(name) if crate::args::value::is_variable_name(&name) => Ok(name),
        Ok(name) => Err(Refusal::VariableName(name)),
        Err(name) => Err(Refusal::VariableName(name.to_string_lossy().into_owned())),
    };
    request.variables().into_iter().map(|(key, value)| Ok((name(key)?, value))).collect()
}

fn narrow_the_rest(request: &BwrapRequest, narrowing: &mut Narrowing) {
    if !request.own_network {
        narrowing.say("network", "own loopback only");
    }
    if request.hostname.is_some() {
        narrowing.say("host name", "the sandbox's own");
    }
    if !request.capabilities.is_empty() {
        narrowing.say("capabilities", "none");
    }
}

/// Takes a path without `.` and `..`, as the kernel would with no links on the way.
fn absolute(path: &Path) -> Result<PathBuf, Refusal> {
    if !path.is_absolute() {
        return Err(Refusal::Relative(path.to_owned()));
    }
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests;
