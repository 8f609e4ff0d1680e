//! What an action is shown beside its workspace: what may be shown, and what of it is covered.

use std::path::{Path, PathBuf};

use inspect::credentials::{FoundKind, MemoryCache, scan_paths};
use inspect::{Stack, Tree};
use model::WorkspacePath;
use model::grant::Input;

use crate::Engine;
use crate::error::EngineError;
use crate::git_dirs;

/// Refuses as an input what shows more than data: the whole host, what belongs to the kernel, and the state directory,
/// in which the record and every layer lie.
///
/// # Errors
/// When `path`, which is resolved, is such a place.
pub fn check_input(path: &Path, state: &Path) -> Result<(), EngineError> {
    // People keep data in memory there, like on any disk.
    let in_memory = path.starts_with("/dev/shm") && path != Path::new("/dev/shm");
    let of_the_kernel = ["/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place));
    if path == Path::new("/") || of_the_kernel && !in_memory {
        return Err(refuse(path, "it belongs to the system; name the files that are needed"));
    }
    if path.starts_with(state) || state.starts_with(path) {
        let why = "it overlaps the state directory, which no sandbox may see; name what is needed of it";
        return Err(refuse(path, why));
    }
    Ok(())
}

impl Engine {
    /// Returns what covers the credentials that lie in inputs, by its path inside. A file that is nothing but a
    /// credential is no input: what a sandbox holds, everything in it can read.
    pub(crate) fn covers_of_inputs(&self, inputs: &[Input]) -> Result<Vec<(PathBuf, Vec<u8>)>, EngineError> {
        let mut covers = Vec::new();
        for input in inputs {
            let (source, shown) = (input.source.as_path(), place_of(input));
            if !source.is_dir() {
                refuse_credential(source)?;
                continue;
            }
            let found = self.scan_base(source)?.found;
            let now = Stack::new(Vec::new(), vec![Tree::open(source)?]);
            covers.extend(git_dirs::covers(&found, &now, &shown));
            let files = found.into_iter().filter(|found| found.kind == FoundKind::File);
            covers.extend(files.map(|found| (shown.join(found.path.as_path()), Vec::new())));
        }
        Ok(covers)
    }
}

/// Tells whether a path inside is one of an input.
pub(crate) fn is_in_an_input(path: &Path, inputs: &[Input]) -> bool {
    inputs.iter().any(|input| path.starts_with(place_of(input)))
}

fn place_of(input: &Input) -> PathBuf {
    Path::new("/inputs").join(&input.name)
}

fn refuse_credential(file: &Path) -> Result<(), EngineError> {
    let (Some(around), Some(name)) = (file.parent(), file.file_name()) else { return Ok(()) };
    let Ok(name) = WorkspacePath::parse(name) else { return Ok(()) };
    let stack = Stack::new(Vec::new(), vec![Tree::open(around)?]);
    let scan = scan_paths(&stack, [&name], &mut MemoryCache::default())?;
    match scan.found.first() {
        Some(found) => Err(refuse(file, format!("it is a credential ({})", found.why))),
        None => Ok(()),
    }
}

fn refuse(path: &Path, why: impl Into<String>) -> EngineError {
    EngineError::Input { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_in_memory_may_be_an_input_and_what_is_the_kernel_s_may_not() {
        let check = |path: &str| check_input(Path::new(path), Path::new("/var/state")).is_ok();
        assert!(check("/dev/shm/data") && check("/data") && check("/process"));
        for path in ["/", "/dev", "/dev/shm", "/dev/sda", "/proc/1", "/sys/kernel", "/var", "/var/state/key"]
        {
            assert!(!check(path), "{path}");
        }
    }
}
