//! Which files git tracks: their names in the index of a workspace, read without starting git. What is tracked is not
//! ignored, whatever the ignore files say.
//!
//! Guarantees: an index that is damaged, cut or of a form that is not known names no more than was read up to there.
//! Format: `gitformat-index(5)`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// An index larger than this is not read: 256 MiB are some two million files.
const LARGEST: u64 = 256 << 20;
/// What stands before the id of the object in an entry: ten numbers of four bytes.
const STAT: usize = 40;
/// The bit of the flags that says that two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;

/// The files that git tracks.
#[derive(Debug, Default)]
pub(crate) struct Tracked(HashSet<Vec<u8>>);

impl Tracked {
    /// Reads the index of a repository by its git directory.
    pub(crate) fn of(git_directory: &Path) -> Self {
        let index = git_directory.join("index");
        let is_read = fs::metadata(&index).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let bytes = if is_read { fs::read(&index).unwrap_or_default() } else { Vec::new() };
        let config = fs::read_to_string(git_directory.join("config")).unwrap_or_default();
        let config = config.to_ascii_lowercase();
        let is_sha256 = config.lines().any(|line| {
            let (name, value) = line.split_once('=').unwrap_or_default();
            (name.trim(), value.trim()) == ("objectformat", "sha256")
        });
        let mut names = HashSet::new();
        let _ = read(&bytes, if is_sha256 { 32 } else { 20 }, &mut names);
        Self(names)
    }

    /// Tells whether git tracks the file.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.0.contains(path)
    }
}

/// Reads the names of the entries; nothing when the index ends too early or is none.
fn read(index: &[u8], id: usize, names: &mut HashSet<Vec<u8>>) -> Option<()> {
    let mut rest = index.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    for _ in 0..count {
        let entry = rest;
        take(&mut rest, STAT + id)?;
        let flags = u16::from_be_bytes(take(&mut rest, 2)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            take(&mut rest, 2)?;
        }
        if version == 4 {
            // What the name shares with the one before it is not written again.
            let cut = variable(&mut rest)?;
            name.truncate(name.len().checked_sub(cut)?);
        } else {
            name.clear();
        }
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(take(&mut rest, length)?);
        let padding = if version == 4 { 1 } else { 8 - (entry.len() - rest.len()) % 8 };
        take(&mut rest, padding)?;
        names.insert(name.clone());
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

/// Reads a number as git packs it: seven bits a byte, the highest first, and one added for each byte that follows.
fn variable(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = take(rest, 1)?[0];
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An index as git writes it, entry by entry.
    fn index(version: u32, entries: &[(&str, bool)]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).expect("few").to_be_bytes());
        let mut before = "";
        for (name, extended) in entries {
            let start = bytes.len();
            bytes.extend([7; STAT + 20]);
            bytes.extend(if *extended { [0x40, 0, 0x20, 0].as_slice() } else { &[0, 0] });
            if version == 4 {
                let shared = name.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
                let cut = before.len() - shared;
                assert!(cut < 128, "one byte is enough here");
                bytes.push(u8::try_from(cut).expect("small"));
                bytes.extend(name[shared..].bytes().chain([0]));
            } else {
                bytes.extend(name.bytes());
                let length = bytes.len() - start;
                bytes.resize(start + (length / 8 + 1) * 8, 0);
            }
            before = name;
        }
        bytes
    }

    fn names(bytes: &[u8]) -> Vec<String> {
        let mut names = HashSet::new();
        let _ = read(bytes, 20, &mut names);
        let mut names: Vec<_> = names.into_iter().map(|name| String::from_utf8_lossy(&name).into()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_version_of_the_index_is_read() {
        let entries = [("a", false), ("dist/app.js", true), ("dist/app.min.js", false), ("z/é", true)];
        for version in 2..=4 {
            let expected: Vec<_> = entries.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(names(&index(version, &entries)), expected, "version {version}");
        }
    }

    #[test]
    fn an_index_that_is_cut_names_what_was_read() {
        let whole = index(2, &[("a", false), ("b", false)]);
        assert_eq!(names(&whole[..whole.len() - 1]), ["a"]);
        assert!(
            names(b"DIRC").is_empty()
                && names(b"").is_empty()
                && names(&index(5, &[("a", false)])).is_empty()
        );
    }

    #[test]
    fn packed_numbers_are_those_of_git() {
        for (bytes, value) in [(&[5][..], 5), (&[0x80, 0][..], 128), (&[0x80, 0x80, 0][..], 16512)] {
            assert_eq!(variable(&mut &*bytes), Some(value));
        }
        assert_eq!(variable(&mut [0xff; 12].as_slice()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_crash(version in 2_u8..5, tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = b"DIRC\0\0\0".to_vec();
            bytes.push(version);
            bytes.extend(tail);
            names(&bytes);
        }
    }
}
