//! The reduced view of a grant that lists programs: these files, what they need to start, and nothing else to execute.
//!
//! Naming an interpreter shows its standard library, and grants all that the interpreter can do.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use model::Digest;
use model::grant::GrantedProgram;

use super::Listed;
use super::assembly::{Assembly, Manner, Shown};
use super::data::{RUNTIMES, rows};
use super::elf::{Needs, Program, find_in_cache, program};
use super::error::ViewError;
use super::files::{What, is_like};

/// A script's interpreter may be a script; the kernel follows four of them (`exec_binprm`).
const MAX_SCRIPTS: usize = 4;

/// A standard library is searched for objects to this depth.
const MAX_DEPTH: usize = 8;

/// Where loaders look when nothing else names a place; `*` is the directory of a machine's kind.
const LIBRARIES: [&str; 7] =
    ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/lib/*-linux-*", "/usr/lib/*-linux-*", "/usr/local/lib"];

/// Shows the listed programs with all that they need; returns what they came to, and the directories in which they
/// stand, as the caller names them.
pub(crate) fn show_programs(
    assembly: &mut Assembly<'_>,
    list: &[GrantedProgram],
) -> Result<(Listed, Vec<PathBuf>), ViewError> {
    let cache = assembly.files.read(Path::new("/etc/ld.so.cache"), 16 * 1024 * 1024).unwrap_or_default();
    let (seen, listed, path) = (HashSet::new(), Listed::default(), Vec::new());
    let mut shower = Shower { assembly, cache, seen, listed, path };
    for GrantedProgram { file, digest } in list {
        let path = shower.find(file.as_os_str())?;
        shower.show_program(&path, MAX_SCRIPTS)?;
        shower.compare(&path, *digest)?;
    }
    shower.show_names();
    Ok((shower.listed, shower.path))
}

struct Shower<'s, 'a> {
    assembly: &'s mut Assembly<'a>,
    cache: Vec<u8>,
    seen: HashSet<PathBuf>,
    listed: Listed,
    path: Vec<PathBuf>,
}

impl Shower<'_, '_> {
    /// Finds a program by its path, or by its name on the caller's PATH.
    fn find(&self, program: &OsStr) -> Result<PathBuf, ViewError> {
        let missing = || ViewError::ProgramMissing { program: program.into() };
        if program.as_encoded_bytes().contains(&b'/') {
            return if Path::new(program).is_absolute() { Ok(program.into()) } else { Err(missing()) };
        }
        let path = self.assembly.host.environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let candidates =
            std::env::split_paths(&path).filter(|it| it.is_absolute()).map(|it| it.join(program));
        let stands = |path: &PathBuf| {
            let walk = self.assembly.files.walk(path);
            walk.is_file() && walk.end.as_ref().is_some_and(|end| end.mode & 0o111 != 0)
        };
        candidates.into_iter().find(stands).ok_or_else(missing)
    }

    fn show_program(&mut self, path: &Path, scripts_left: usize) -> Result<(), ViewError> {
        let refused = |why: &str| ViewError::ProgramRefused { program: path.to_owned(), why: why.to_owned() };
        let walk = self.assembly.files.walk(path);
        if walk.stopped {
            return Err(refused(
                "it lies in the workspace, where a list of programs lets nothing be executed",
            ));
        }
        if walk.end.is_none() {
            return Err(ViewError::ProgramMissing { program: path.to_owned() });
        }
        if !walk.is_file() || walk.end.as_ref().is_none_or(|end| end.mode & 0o111 == 0) {
            return Err(refused("it is no file that may be executed"));
        }
        let real = self.show_file(path)?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        if !self.path.contains(&directory) {
            self.path.push(directory);
        }
        self.listed.names.extend(path.file_name().map(OsStr::to_owned));
        if !add(&mut self.listed.programs, &real) {
            return Ok(());
        }
        self.show_runtimes(&real);
        match program(&self.assembly.files.outside(&real)) {
            Ok(Program::Machine(needs)) => self.show_needs(&real, &needs, true),
            Ok(Program::Script { interpreter, argument }) if scripts_left > 0 => {
                self.show_interpreter(&interpreter, argument.as_deref(), scripts_left - 1)
            }
            Ok(Program::Script { .. }) => Err(refused("its interpreter is a script of a script of a script")),
            Ok(Program::Unknown) => {
                Err(refused("it is neither machine code nor a script that names its interpreter"))
            }
            Err(error) => Err(refused(&format!("it cannot be read ({error})"))),
        }
    }

    /// Refuses a program that is not what was granted.
    fn compare(&self, path: &Path, granted: Option<Digest>) -> Result<(), ViewError> {
        let Some(granted) = granted else { return Ok(()) };
        let real = self.assembly.files.walk(path).real.clone();
        let refused = |why: String| ViewError::ProgramRefused { program: real.clone(), why };
        let held = File::open(self.assembly.files.outside(&real)).and_then(Digest::of_all);
        let held = held.map_err(|error| refused(format!("it cannot be read ({error})")))?;
        if held == granted {
            return Ok(());
        }
        Err(refused(format!(
            "its content is another than what was granted ({granted}): look at it, and grant it anew"
        )))
    }

    /// Shows the other names of the listed programs: a list that names a file means it under its usual names as well,
    /// as `sh` for `dash`.
    fn show_names(&mut self) {
        let path = self.assembly.host.environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&path).filter(|it| it.is_absolute()).collect();
        // Scripts name their interpreter by these, whatever PATH is.
        for directory in directories.into_iter().chain(["/usr/bin", "/bin"].map(PathBuf::from)) {
            let walk = self.assembly.files.walk(&directory);
            let names = if walk.stopped { [].into() } else { self.assembly.files.names(&walk.real) };
            for name in names.iter() {
                self.show_name(&directory, name);
            }
        }
    }

    fn show_name(&mut self, directory: &Path, name: &OsStr) {
        let walk = self.assembly.files.walk(&directory.join(name));
        if walk.links.is_empty() || !walk.is_file() || !self.listed.programs.contains(&walk.real) {
            return;
        }
        self.assembly.add_links(&walk);
        self.listed.names.push(name.to_owned());
        if !self.path.iter().any(|known| known == directory) {
            self.path.push(directory.to_owned());
        }
    }

    fn show_interpreter(
        &mut self,
        interpreter: &Path,
        argument: Option<&str>,
        left: usize,
    ) -> Result<(), ViewError> {
        self.show_program(interpreter, left)?;
        if interpreter.file_name() != Some(OsStr::new("env")) {
            return Ok(());
        }
        // `env -S python3 -u` and `env python3`: the first word that is no option and sets no variable.
        let words = argument.unwrap_or_default().split_whitespace();
        match words.into_iter().find(|word| !word.starts_with('-') && !word.contains('=')) {
            Some(program) => {
                let path = self.find(OsStr::new(program))?;
                self.show_program(&path, left)
            }
            None => Ok(()),
        }
    }

    fn show_file(&mut self, path: &Path) -> Result<PathBuf, ViewError> {
        match self.assembly.show(path, Manner::ReadOnly) {
            Shown::At(real) => Ok(real),
            Shown::Missing => Err(ViewError::ProgramMissing { program: path.to_owned() }),
            Shown::InWorkspace | Shown::Hidden => {
                let why = "it stands where sandboxes must not look, or only a group can read it".to_owned();
                Err(ViewError::ProgramRefused { program: path.to_owned(), why })
            }
        }
    }

    /// Shows the loader and the libraries of an ELF file, and the libraries of those.
    fn show_needs(&mut self, real: &Path, needs: &Needs, must_be_there: bool) -> Result<(), ViewError> {
        if let Some(loader) = &needs.loader {
            let loader = self.show_file(loader)?;
            add(&mut self.listed.loaders, &loader);
        }
        for library in &needs.libraries {
            let found = self.show_library(library, needs)?;
            if !found && must_be_there {
                return Err(ViewError::LibraryMissing { program: real.to_owned(), library: library.clone() });
            }
        }
        Ok(())
    }

    fn show_library(&mut self, library: &str, needs: &Needs) -> Result<bool, ViewError> {
        let mut candidates: Vec<PathBuf> = match library.contains('/') {
            true => vec![library.into()],
            false => needs.search.iter().map(|directory| directory.join(library)).collect(),
        };
        candidates.extend(find_in_cache(&self.cache, library));
        if !candidates.iter().any(|path| self.assembly.files.walk(path).is_file()) {
            let directories =
                LIBRARIES.iter().flat_map(|place| self.assembly.files.matching(Path::new(place)));
            candidates.extend(directories.map(|directory| directory.join(library)));
        }
        let mut found = false;
        for candidate in candidates {
            found |= self.show_candidate(&candidate, needs)?;
        }
        Ok(found)
    }

    /// Shows one library when it stands there and is of the right kind. The loader may choose among several, so all
    /// that fit are shown.
    fn show_candidate(&mut self, candidate: &Path, needs: &Needs) -> Result<bool, ViewError> {
        let walk = self.assembly.files.walk(candidate);
        if !walk.is_file() {
            return Ok(false);
        }
        let Ok(Program::Machine(own)) = program(&self.assembly.files.outside(&walk.real)) else {
            return Ok(false);
        };
        if own.machine != needs.machine {
            return Ok(false);
        }
        let library = self.show_file(candidate)?;
        add(&mut self.listed.libraries, &library);
        if self.seen.insert(walk.real.clone()) {
            self.show_needs(&walk.real, &own, true)?;
        }
        Ok(true)
    }

    /// Shows what the table says that a program of this name needs.
    fn show_runtimes(&mut self, real: &Path) {
        let name = real.file_name().unwrap_or_default();
        let Some(prefix) = real.parent().and_then(Path::parent) else { return };
        for [pattern, place, how, _] in rows::<4>(RUNTIMES) {
            if !is_like(name, pattern) {
                continue;
            }
            for path in self.assembly.files.matching(&prefix.join(place)) {
                let Shown::At(shown) = self.assembly.show(&path, Manner::ReadOnly) else { continue };
                if how == "libraries" {
                    add(&mut self.listed.libraries, &shown);
                    self.show_objects(&shown, MAX_DEPTH);
                }
            }
        }
    }

    /// Shows what the objects in a directory need. One that lacks a library is an optional part, and stays unusable.
    fn show_objects(&mut self, directory: &Path, depth: usize) {
        for name in self.assembly.files.names(directory).iter() {
            let path = directory.join(name);
            let Some(node) = self.assembly.files.node(&path) else { continue };
            let is_object = || is_like(name, "*.so") || is_like(name, "*.so.*");
            if node.what == What::Directory && depth > 0 {
                self.show_objects(&path, depth - 1);
            } else if node.what == What::File && is_object() && self.seen.insert(path.clone()) {
                self.show_object(&path);
            }
        }
    }

    fn show_object(&mut self, path: &Path) {
        let Ok(Program::Machine(needs)) = program(&self.assembly.files.outside(path)) else { return };
        if let Err(error) = self.show_needs(path, &needs, false) {
            self.assembly.hide(path, error.to_string());
        }
    }
}

/// Adds a path to a list; tells whether it is a new one.
fn add(list: &mut Vec<PathBuf>, path: &Path) -> bool {
    let is_new = !list.iter().any(|known| known == path);
    if is_new {
        list.push(path.to_owned());
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood() {
        for row @ [_, place, how, _] in rows::<4>(RUNTIMES) {
            assert!(matches!(how, "data" | "libraries") && !place.starts_with('/'), "{row:?}");
        }
    }
}
