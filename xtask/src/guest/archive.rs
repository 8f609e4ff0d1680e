//! Writes the archive that a kernel unpacks into memory when it starts (`cpio`, the format `newc`): see
//! `Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel.
//!
//! Guarantees: everything in it belongs to root, whoever writes it; a directory stands before what is in it.

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTERS: u32 = 0o020_000;

/// An archive in the making.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory, and those above it.
    pub(super) fn directory(&mut self, path: &str) {
        let mut above = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            above = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
            if self.directories.insert(above.clone()) {
                self.entry(&above, DIRECTORY | 0o755, &[], (0, 0));
            }
        }
    }

    /// Adds a file, and the directories above it.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.directory_of(path);
        self.entry(path.trim_start_matches('/'), FILE | mode, content, (0, 0));
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.directory_of(path);
        self.entry(path.trim_start_matches('/'), LINK | 0o777, target.as_bytes(), (0, 0));
    }

    /// Adds a character device.
    pub(super) fn device(&mut self, path: &str, number: (u32, u32)) {
        self.directory_of(path);
        self.entry(path.trim_start_matches('/'), CHARACTERS | 0o600, &[], number);
    }

    /// Returns the archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }

    fn directory_of(&mut self, path: &str) {
        let above = Path::new(path).parent().map(|above| above.to_string_lossy().into_owned());
        self.directory(&above.unwrap_or_default());
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let (links, time, owner) = (1, 0, 0);
        let numbers = [
            self.entries,
            mode,
            owner,
            owner,
            links,
            time,
            size(content.len()),
            0,
            0,
            device.0,
            device.1,
            size(name.len() + 1),
            0,
        ];
        self.bytes.extend(b"070701");
        numbers.iter().for_each(|number| self.bytes.extend(format!("{number:08X}").into_bytes()));
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_first_and_once_and_every_part_is_padded() {
        let mut archive = Archive::default();
        archive.file("/a/b/one", 0o755, b"12345");
        archive.file("/a/b/two", 0o644, b"");
        archive.link("/a/c", "b");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let at: Vec<usize> = ["a\0", "a/b\0", "a/b/one\0", "12345\0", "a/b/two\0", "a/c\0", "TRAILER!!!\0"]
            .iter()
            .map(|part| text.find(part).unwrap_or_else(|| panic!("no {part:?}")))
            .collect();
        assert!(at.is_sorted(), "{at:?}");
        assert_eq!(text.matches("070701").count(), 6, "two directories, two files, a link and the end");
        // The header of the first file: the mode, and the size of its content.
        let header = &text[at[2] - 110..at[2]];
        assert_eq!((&header[14..22], &header[54..62]), ("000081ED", "00000005"));
    }
}
