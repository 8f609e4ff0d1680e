//! What of this module reads bytes that somebody else wrote, for the fuzz targets.

use std::path::{Path, PathBuf};

use super::clean::Format;
use super::elf;

/// Returns the copy of a settings file that is shown, by the name of its format.
pub fn cleaned(format: &str, file: &[u8]) -> Option<String> {
    Some(Format::named(format)?.clean(file)?.text)
}

/// Returns where the cache of the dynamic loader says that a library is.
pub fn in_loader_cache(cache: &[u8], library: &str) -> Vec<PathBuf> {
    elf::find_in_cache(cache, library)
}

/// Says what kind of program a file is, and what it needs.
///
/// # Errors
/// When it cannot be read.
pub fn program(path: &Path) -> std::io::Result<String> {
    elf::program(path).map(|program| format!("{program:?}"))
}
