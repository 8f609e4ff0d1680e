//! Finds a place for scratch files where layers can be kept.
//!
//! The kernel makes no layer of an overlay on another overlay, and refuses its whiteouts there. Where the usual
//! places are themselves an overlay, as in containers, memory is the place that is left.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use crate::run;

/// The places in the order in which they are tried.
const PLACES: [&str; 3] = ["/var/tmp", "/tmp", "/dev/shm"];

/// Returns a directory for scratch files: what TMPDIR names, else the first usual place that can hold layers.
pub fn place() -> PathBuf {
    let wanted = run::variable("TMPDIR").map(PathBuf::from);
    let usual = || PLACES.iter().map(PathBuf::from).find(|place| holds_layers(place));
    wanted.or_else(usual).unwrap_or_else(std::env::temp_dir)
}

/// Makes a directory there that is removed at the end.
///
/// # Errors
/// When the file system refuses.
pub fn directory(prefix: &str) -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix(prefix).tempdir_in(place())?)
}

fn holds_layers(place: &Path) -> bool {
    let kind =
        run::output("ask for the file system", run::command("stat").args(["-f", "-c", "%T"]).arg(place));
    kind.is_ok_and(|kind| String::from_utf8_lossy(&kind).trim() != "overlayfs")
        && tempfile::tempfile_in(place).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_holds_nothing() {
        assert!(!holds_layers(Path::new("/no/such/place")));
    }

    #[test]
    fn a_directory_is_made_and_removed() {
        let made = directory("fumehood-xtask.").expect("some place is writable");
        let path = made.path().to_owned();
        assert!(path.is_dir());
        drop(made);
        assert!(!path.exists());
    }
}
