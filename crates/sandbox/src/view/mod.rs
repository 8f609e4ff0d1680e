//! What of the host a sandbox sees, as plain data: an ordered list of pieces, and an environment.
//!
//! Guarantees: everything in a [`View`] is named by a rule with a reason (the files in `data/`), is readable by its
//! owner or by everyone (never only through a supplementary group), and holds no known credential file that is not
//! masked. Of a home, only tools and their caches are in it. Nothing here starts a process, mounts or writes.
//!
//! Leaves to others: the launcher mounts the pieces in order, adds `/dev`, `/proc`, `/inputs`, `/artifacts`, `/cache`
//! and the workspace (after the pieces, over them), and then makes the root read-only. It opens sources without
//! following links: they are resolved here. Credential files inside the workspace are found by `inspect`.

mod assembly;
mod checks;
mod clean;
mod clean_maven;
mod credentials;
mod data;
mod elf;
mod environment;
mod error;
mod etc;
mod files;
#[doc(hidden)]
pub mod foreign;
mod host;
mod piece;
mod programs;
mod reach;
mod repository;
mod search_path;
mod tools;

pub use data::{Entry, PROC_MASKED, PROC_READ_ONLY};
pub use environment::wanted_variables;
pub use error::ViewError;
pub use etc::HOSTNAME;
pub use files::mount_points;
pub use host::{Host, Identity};
pub use piece::{Hidden, Kind, Piece};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use model::OsText;
use model::grant::{GrantedProgram, Programs};

use assembly::{Assembly, Manner, Shown};
use clean::Format;
use data::{INTERPRETERS, PRIVATE, SYSTEM, rows};
use environment::{Sources, XDG};
use tools::Found;

/// What of the host one sandbox sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The pieces of the root, parents before children.
    pub pieces: Vec<Piece>,
    /// The environment of the command: nothing is copied from the caller but what is listed in `data/`.
    pub environment: BTreeMap<String, OsText>,
    /// What was found and is not shown, or not as it is, for `doctor` and `why`.
    pub hidden: Vec<Hidden>,
    /// Which files may be executed.
    pub executables: Executables,
}

/// Which files of the view may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executables {
    /// All of them, and what the command builds itself.
    Any,
    /// These files and no others. Every [`Piece::Private`], the workspace and all other writable places are to be
    /// mounted noexec.
    Only(Listed),
}

/// What a list of programs came to, by the resolved places inside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The listed programs, and the interpreters of those that are scripts.
    pub programs: Vec<PathBuf>,
    /// The dynamic loaders, which the kernel executes for a program.
    pub loaders: Vec<PathBuf>,
    /// Libraries, and directories with libraries: they are mapped as code and not executed.
    pub libraries: Vec<PathBuf>,
    /// The names under which the programs stand on PATH.
    pub names: Vec<OsString>,
}

impl Listed {
    /// Tells whether code in this piece of the root is needed: all others are to be mounted noexec.
    pub fn needs_code_of(&self, target: &Path) -> bool {
        let all = self.programs.iter().chain(&self.loaders).chain(&self.libraries);
        all.into_iter().any(|path| path.starts_with(target))
    }

    /// Returns the programs that do whatever a text tells them, each with the reason.
    pub fn interpreters(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        self.programs.iter().filter_map(|path| Some((path.as_path(), interpreter(path)?)))
    }
}

/// Says why a program is an interpreter, by its name: listing it grants all that it can do.
pub fn interpreter(program: &Path) -> Option<&'static str> {
    let name = program.file_name()?;
    rows::<2>(INTERPRETERS).find(|[pattern, _]| files::is_like(name, pattern)).map(|[_, why]| why)
}

impl View {
    /// Decides what a sandbox sees.
    ///
    /// # Errors
    /// When the workspace holds a home, the system or the record, when the system cannot be read, and when a listed
    /// program cannot be granted. Each error says what to do.
    pub fn of(host: &Host, programs: &Programs) -> Result<Self, ViewError> {
        checks::check(host)?;
        let mut assembly = Assembly::new(host);
        match programs {
            Programs::Any => Self::whole(&mut assembly).map(|view| view.finish(assembly)),
            Programs::Only(list) => Self::reduced(&mut assembly, list).map(|view| view.finish(assembly)),
        }
    }

    fn whole(assembly: &mut Assembly<'_>) -> Result<Unfinished, ViewError> {
        show_system(assembly)?;
        let shell = shell(assembly);
        let place = add_places(assembly, shell);
        let mut found = tools::show_tools(assembly);
        keep_xdg_places(assembly, &mut found);
        add_git_settings(assembly);
        repository::show_repository(assembly);
        let path = search_path::show_path(assembly);
        mask_credentials(assembly);
        checks::check_state(assembly)?;
        let sources =
            Sources { home: &place.home, path: &path, found: &found, runtime_dir: &place.runtime_dir, shell };
        let environment = environment::environment(assembly, &sources)?;
        Ok(Unfinished { environment, executables: Executables::Any })
    }

    /// A view in which only the listed programs and what they need is there, and no tool of the home.
    fn reduced(assembly: &mut Assembly<'_>, list: &[GrantedProgram]) -> Result<Unfinished, ViewError> {
        let shell = shell(assembly);
        let place = add_places(assembly, shell);
        let (listed, path) = programs::show_programs(assembly, list)?;
        add_git_settings(assembly);
        repository::show_repository(assembly);
        mask_credentials(assembly);
        checks::check_state(assembly)?;
        let sources = Sources {
            home: &place.home,
            path: &path,
            found: &Found::default(),
            runtime_dir: &place.runtime_dir,
            shell,
        };
        let environment = environment::environment(assembly, &sources)?;
        Ok(Unfinished { environment, executables: Executables::Only(listed) })
    }
}

/// A view whose pieces are still being put together.
struct Unfinished {
    environment: BTreeMap<String, OsText>,
    executables: Executables,
}

impl Unfinished {
    fn finish(self, assembly: Assembly<'_>) -> View {
        let (pieces, hidden) = assembly.finish();
        View { pieces, environment: self.environment, hidden, executables: self.executables }
    }
}

/// The command's own places.
struct Places {
    /// The home, as `HOME` names it.
    home: PathBuf,
    runtime_dir: PathBuf,
}

fn show_system(assembly: &mut Assembly<'_>) -> Result<(), ViewError> {
    for [path, _] in rows::<2>(SYSTEM) {
        let shown = assembly.show(Path::new(path), Manner::System);
        if path == "/usr" && !matches!(shown, Shown::At(_)) {
            return Err(ViewError::NoSystem);
        }
    }
    Ok(())
}

/// Adds everything that is the same with and without a list of programs: writable places, the home and `/etc`.
fn add_places(assembly: &mut Assembly<'_>, shell: &str) -> Places {
    for [path, mode, _] in rows::<3>(PRIVATE) {
        let walk = assembly.files.walk(Path::new(path));
        assembly.add_links(&walk);
        let mode = u32::from_str_radix(mode, 8).unwrap_or(0o700);
        assembly.insert(Piece::Private { target: walk.real.clone(), mode });
    }
    let home = add_home(assembly);
    let runtime_dir = PathBuf::from(format!("/run/user/{}", assembly.host.inside.uid));
    assembly.insert(Piece::Directory { target: runtime_dir.clone(), mode: 0o700 });
    etc::add_etc(assembly, &home, shell);
    Places { home, runtime_dir }
}

/// Adds an empty home at the caller's place, and returns the place as `HOME` names it.
fn add_home(assembly: &mut Assembly<'_>) -> PathBuf {
    let host = assembly.host;
    let walk = assembly.files.walk(&host.home);
    // Users of services have no home, or `/` or `/usr/sbin` for one: they get an ordinary one.
    let is_none = walk.end.is_none() || walk.stopped || walk.real.parent().is_none();
    if is_none || checks::is_system(&walk.real) {
        let target = Path::new("/home").join(etc::user_name(host));
        assembly.insert(Piece::Private { target: target.clone(), mode: 0o700 });
        return target;
    }
    assembly.add_links(&walk);
    assembly.insert(Piece::Private { target: walk.real.clone(), mode: 0o700 });
    host.home.clone()
}

fn shell(assembly: &Assembly<'_>) -> &'static str {
    let bash = assembly.files.walk(Path::new("/bin/bash"));
    if bash.end.is_some() { "/bin/bash" } else { "/bin/sh" }
}

/// Makes the caller's XDG places writable where they are not in the home, and keeps the variables that name them.
fn keep_xdg_places(assembly: &mut Assembly<'_>, found: &mut Found) {
    for (name, _) in XDG {
        let Some(value) = assembly.host.environment.get(std::ffi::OsStr::new(name)).cloned() else {
            continue;
        };
        let place = PathBuf::from(&value);
        let walk = assembly.files.walk(&place);
        if !place.is_absolute() || walk.end.is_none() && !walk.stopped {
            continue;
        }
        tools::make_writable(assembly, &place);
        if walk.stopped || assembly.is_private(&walk.real) {
            found.variables.insert(name, value);
        }
    }
}

/// Writes git's settings: the caller's name and line ends, and that the workspace belongs to the command.
///
/// A file and not variables, because variables would win over what a repository says of itself. The caller's own file
/// is not shown: addresses, headers and credential helpers in it may hold passwords.
fn add_git_settings(assembly: &mut Assembly<'_>) {
    let home = assembly.home.clone();
    let config = assembly.host.environment.get(std::ffi::OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from);
    let config = config.unwrap_or_else(|| home.join(".config"));
    let mut text = String::new();
    for path in [config.join("git/config"), home.join(".gitconfig")] {
        let walk = assembly.files.walk(&path);
        let file = assembly.files.read(&walk.real, 64 * 1024).filter(|_| walk.end.is_some());
        let cleaned = file.and_then(|file| Format::Git.clean(&file));
        text.push_str(&cleaned.unwrap_or_default().text);
    }
    let workspace = assembly.host.workspace.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    text.push_str(&format!("[safe]\n\tdirectory = \"{workspace}\"\n"));
    let target = home.join(".gitconfig");
    if assembly.is_private(&target) {
        assembly.insert(Piece::Generated { target, contents: text.into_bytes(), mode: 0o644 });
    }
}

/// Masks the places and names of credentials inside what is shown of tools.
fn mask_credentials(assembly: &mut Assembly<'_>) {
    for directory in assembly.directories_of_tools() {
        for (pattern, why) in assembly.credentials.places_inside(&directory) {
            for path in assembly.files.matching(&pattern) {
                mask_if_seen(assembly, &path, why);
            }
        }
        if checks::is_system(&directory) {
            continue;
        }
        mask_names(assembly, &directory);
        if assembly.files.names(&directory).iter().any(|name| name == "etc") {
            mask_names(assembly, &directory.join("etc"));
        }
    }
}

fn mask_names(assembly: &mut Assembly<'_>, directory: &Path) {
    for name in assembly.files.names(directory).iter() {
        for is_directory in [false, true] {
            let Some(why) = assembly.credentials.name_of(name, is_directory) else { continue };
            let path = directory.join(name);
            if assembly.files.is_directory(&path) == is_directory {
                mask_if_seen(assembly, &path, why);
            }
        }
    }
}

fn mask_if_seen(assembly: &mut Assembly<'_>, path: &Path, why: &str) {
    if assembly.files.node(path).is_some() && assembly.is_seen(path) {
        assembly.mask(path, why);
    }
}
