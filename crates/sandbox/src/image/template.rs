//! A freshly made file system, kept as the few bytes of it that are not zero: copying those takes less than a millisecond,
//! where `mke2fs` takes ten.
//!
//! Guarantees: what is returned is whole, by its digest, and is for exactly the limits asked for; a file that is odd is made
//! again; it is put in its place by a rename, so two that make it at once do not disturb each other.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use model::Digest;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::ext4::{BLOCK, Ext4, GROUP, INODE, INODES, kept_back};
use crate::service;

/// What the form of templates, and the way in which they are made, is called.
const FORM: &str = "fumehood image 1";
/// Where `mke2fs` is looked for: never on a search path, since it is run as root.
const MKE2FS: [&str; 3] = ["/usr/sbin/mke2fs", "/sbin/mke2fs", "/usr/bin/mke2fs"];
/// Neither a journal nor checksums: nothing in it outlives its action.
const FEATURES: &str =
    "none,extent,filetype,sparse_super,large_file,flex_bg,extra_isize,dir_nlink,dir_index,ext_attr";
/// Bytes that are looked at together when the zeros are left out.
const GRAIN: usize = 64;
/// How often a size is tried: `mke2fs` leaves out a last group that is too small.
const TRIES: u32 = 5;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file system that is as large as its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Template {
    form: String,
    blocks: u64,
    inodes: u64,
    /// Bytes of the whole, nearly all of them a hole.
    size: u64,
    pieces: Vec<(u64, Piece)>,
}

/// What stands at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Piece {
    Bytes(Vec<u8>),
    /// The end of a bitmap is all ones.
    Same(u8, u32),
}

impl Template {
    /// Returns the template for so many blocks and inodes, out of this directory; it is made when it is not there.
    pub(super) fn of(directory: &Path, blocks: u64, inodes: u64) -> io::Result<Self> {
        let path = directory.join(format!("{blocks}-{inodes}.template"));
        if let Some(template) = Self::read(&path, blocks, inodes) {
            return Ok(template);
        }
        fs::create_dir_all(directory)?;
        let name = format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (image, kept) = (directory.join(format!("{name}.image")), directory.join(format!("{name}.new")));
        let template = Self::make(&image, blocks, inodes);
        let _ = fs::remove_file(&image);
        let template = template?;
        fs::write(&kept, template.sealed()?)?;
        fs::rename(&kept, &path)?;
        Ok(template)
    }

    /// Writes it into an empty file.
    pub(super) fn write_to(&self, file: &File) -> io::Result<()> {
        file.set_len(self.size)?;
        for (at, piece) in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => file.write_all_at(bytes, *at)?,
                Piece::Same(byte, length) => file.write_all_at(&vec![*byte; *length as usize], *at)?,
            }
        }
        Ok(())
    }

    fn read(path: &Path, blocks: u64, inodes: u64) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let (digest, body) = bytes.split_at_checked(32)?;
        if Digest::of(body).as_bytes() != digest {
            return None;
        }
        let template: Self = postcard::from_bytes(body).ok()?;
        (template.form == FORM && template.blocks == blocks && template.inodes == inodes).then_some(template)
    }

    fn sealed(&self) -> io::Result<Vec<u8>> {
        let body = postcard::to_allocvec(self).map_err(io::Error::other)?;
        Ok([Digest::of(&body).as_bytes().as_slice(), &body].concat())
    }

    fn make(image: &Path, blocks: u64, inodes: u64) -> io::Result<Self> {
        let mut size = size_for(blocks, inodes);
        for _ in 0..TRIES {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(image)?;
            file.set_len(size * BLOCK)?;
            format(image, inodes)?;
            let ext4 = Ext4::read(&file)?;
            let (usable, usable_inodes) = (ext4.usable_blocks()?, ext4.usable_inodes()?);
            if usable >= blocks && usable_inodes >= inodes {
                ext4.limit(blocks, inodes)?;
                let pieces = pieces(&file, size * BLOCK)?;
                return Ok(Self { form: FORM.to_owned(), blocks, inodes, size: size * BLOCK, pieces });
            }
            size += blocks.saturating_sub(usable) + GROUP / 64;
        }
        Err(io::Error::other("mke2fs makes no file system of the size that is wanted"))
    }
}

/// Returns how many blocks it takes for so many to be usable.
fn size_for(blocks: u64, inodes: u64) -> u64 {
    let tables = inodes.div_ceil(INODES) + 2;
    let least = blocks + tables;
    let groups = least.div_ceil(GROUP) + 1;
    let descriptors = 1 + groups / 128;
    let rest = 4 * groups + 12 * (1 + descriptors) + 64;
    let without = least + rest;
    without + kept_back(without) + kept_back(without) / 40
}

fn format(image: &Path, inodes: u64) -> io::Result<()> {
    let there = |path: &&&str| Path::new(path).exists();
    let mke2fs = MKE2FS.iter().find(there).ok_or_else(|| {
        io::Error::other("there is no mke2fs; install e2fsprogs, with which the image is made")
    })?;
    // A few more inodes than are wanted: ten are the file system's own.
    let (inodes, inode) = ((inodes + 16).to_string(), INODE.to_string());
    let image = image.to_string_lossy();
    let block = BLOCK.to_string();
    let arguments = [
        "-q", "-F", "-m", "0", "-b", &block, "-I", &inode, "-N", &inodes, "-O", FEATURES, "-G", "512", &image,
    ];
    // The settings of the host are not asked.
    service::run_tool(&PathBuf::from(mke2fs), &arguments, &[("MKE2FS_CONFIG", "/dev/null")])
}

/// Returns what is not zero.
fn pieces(file: &File, size: u64) -> io::Result<Vec<(u64, Piece)>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(file, SeekFrom::Hole(data))?;
        let mut bytes = vec![0; usize::try_from(at - data).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, data)?;
        for (number, grain) in bytes.chunks(GRAIN).enumerate() {
            add(&mut pieces, data + (number * GRAIN) as u64, grain);
        }
    }
    Ok(pieces)
}

/// Adds some bytes to the piece before them when they continue it.
fn add(pieces: &mut Vec<(u64, Piece)>, at: u64, grain: &[u8]) {
    let first = grain[0];
    let same = grain.iter().all(|byte| *byte == first);
    if same && first == 0 {
        return;
    }
    let length = grain.len() as u32;
    match (pieces.last_mut(), same) {
        (Some((start, Piece::Same(byte, before))), true)
            if *byte == first && *start + u64::from(*before) == at =>
        {
            *before += length;
        }
        (Some((start, Piece::Bytes(bytes))), false) if *start + bytes.len() as u64 == at => {
            bytes.extend_from_slice(grain);
        }
        (_, true) => pieces.push((at, Piece::Same(first, length))),
        (_, false) => pieces.push((at, Piece::Bytes(grain.to_vec()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory")
    }

    /// The limits of the built-in profiles, and odd ones.
    const LIMITS: [(u64, u64); 5] =
        [(2 << 20, 1_000_064), (8192, 4160), (4096, 65), (32_768 * 3 + 17, 100), (1 << 18, 70_000)];

    #[test]
    fn as_much_is_usable_as_was_asked_for() {
        for (blocks, inodes) in LIMITS {
            let directory = directory();
            let template = Template::of(directory.path(), blocks, inodes).expect("a template");
            let path = directory.path().join("image");
            let file = File::options().read(true).write(true).create_new(true).open(path).expect("a file");
            template.write_to(&file).expect("written");
            let ext4 = Ext4::read(&file).expect("an ext4");
            let usable = (ext4.usable_blocks().expect("read"), ext4.usable_inodes().expect("read"));
            assert_eq!(usable, (blocks, inodes));
        }
    }

    #[test]
    fn a_template_is_kept_and_an_odd_one_is_made_again() {
        let directory = directory();
        let first = Template::of(directory.path(), 8192, 4160).expect("a template");
        assert_eq!(Template::of(directory.path(), 8192, 4160).expect("a template"), first);
        let path = directory.path().join("8192-4160.template");
        let whole = fs::read(&path).expect("read");
        assert!(whole.len() < 64 << 10, "{} bytes", whole.len());
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for odd in [&whole[..whole.len() - 1], &flipped, b""] {
            fs::write(&path, odd).expect("written");
            assert_eq!(Template::read(&path, 8192, 4160), None);
            let again = Template::of(directory.path(), 8192, 4160).expect("a template");
            assert_eq!(Template::read(&path, 8192, 4160), Some(again));
        }
        // One that is whole, and of another size.
        fs::write(directory.path().join("4096-65.template"), &whole).expect("written");
        assert_eq!(Template::of(directory.path(), 4096, 65).expect("a template").blocks, 4096);
        assert_eq!(fs::read_dir(directory.path()).expect("read").count(), 2);
    }
}
