//! The few fields of an ext4 file system that a limit is set in (`Documentation/filesystems/ext4` of Linux).
//!
//! Guarantees: after [`Ext4::limit`] no more blocks and inodes are free than was asked for; the rest counts as used, in the
//! bitmaps and in every count, so that the kernel finds nothing to complain of.
//! Leaves to others: making the file system, with exactly the features of `template.rs`, none of which has checksums.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a block.
pub(super) const BLOCK: u64 = 4096;
/// Blocks of a group: as many as one block has bits.
pub(super) const GROUP: u64 = 8 * BLOCK;
/// Inodes of a block of an inode table.
pub(super) const INODES: u64 = BLOCK / INODE;
/// The size of an inode: room for times to the nanosecond, and for the marks of an overlay.
pub(super) const INODE: u64 = 256;
/// Blocks of `lost+found` as it is made; they are free again when it is removed.
const LOST_AND_FOUND: u64 = 4;
/// Where the superblock begins.
const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xef53;
/// Bytes of a group's descriptor.
const DESCRIPTOR: u64 = 32;

/// Blocks that the kernel keeps back for itself, in a file system of so many (`ext4_calculate_resv_clusters`).
pub(super) fn kept_back(blocks: u64) -> u64 {
    (blocks / 50).min(4096)
}

/// A file system in a file.
pub(super) struct Ext4<'a> {
    file: &'a File,
    blocks: u64,
    inodes: u64,
    inodes_per_group: u64,
}

impl<'a> Ext4<'a> {
    /// Reads the superblock.
    pub(super) fn read(file: &'a File) -> io::Result<Self> {
        let ext4 = Self { file, blocks: 0, inodes: 0, inodes_per_group: 0 };
        if ext4.short(SUPERBLOCK + 0x38)? != MAGIC || ext4.number(SUPERBLOCK + 0x18)? != 2 {
            return Err(io::Error::other("mke2fs made something else than an ext4 with blocks of 4 KiB"));
        }
        let (blocks, inodes) = (ext4.number(SUPERBLOCK + 4)?, ext4.number(SUPERBLOCK)?);
        let inodes_per_group = ext4.number(SUPERBLOCK + 0x28)?;
        Ok(Self {
            blocks: blocks.into(),
            inodes: inodes.into(),
            inodes_per_group: inodes_per_group.into(),
            file,
        })
    }

    /// Returns how many blocks can be written when `lost+found` is gone.
    pub(super) fn usable_blocks(&self) -> io::Result<u64> {
        let free = u64::from(self.number(SUPERBLOCK + 0xc)?) + LOST_AND_FOUND;
        Ok(free.saturating_sub(kept_back(self.blocks)))
    }

    /// Returns how many inodes are free when `lost+found` is gone.
    pub(super) fn usable_inodes(&self) -> io::Result<u64> {
        Ok(u64::from(self.number(SUPERBLOCK + 0x10)?) + 1)
    }

    /// Marks blocks and inodes as used until only so many of both can be.
    pub(super) fn limit(&self, blocks: u64, inodes: u64) -> io::Result<()> {
        let surplus = self.usable_blocks()?.saturating_sub(blocks);
        self.use_up(&Kind { bitmap: 0, free: 12, total: 0xc, per_group: GROUP, all: self.blocks }, surplus)?;
        let surplus = self.usable_inodes()?.saturating_sub(inodes);
        let kind =
            Kind { bitmap: 4, free: 14, total: 0x10, per_group: self.inodes_per_group, all: self.inodes };
        self.use_up(&kind, surplus)
    }

    fn use_up(&self, kind: &Kind, surplus: u64) -> io::Result<()> {
        let mut left = surplus;
        let groups = kind.all.div_ceil(kind.per_group);
        for group in (0..groups).rev() {
            if left == 0 {
                break;
            }
            let descriptor = BLOCK + group * DESCRIPTOR;
            let bitmap = u64::from(self.number(descriptor + kind.bitmap)?) * BLOCK;
            let mut bits = vec![0; BLOCK as usize];
            self.file.read_exact_at(&mut bits, bitmap)?;
            let here = kind.per_group.min(kind.all - group * kind.per_group);
            let mut used = 0;
            for at in (0..here).rev() {
                let (byte, bit) = ((at / 8) as usize, 1 << (at % 8));
                if used < left && bits[byte] & bit == 0 {
                    bits[byte] |= bit;
                    used += 1;
                }
            }
            self.file.write_all_at(&bits, bitmap)?;
            let free = u64::from(self.short(descriptor + kind.free)?).saturating_sub(used);
            self.file.write_all_at(&(free as u16).to_le_bytes(), descriptor + kind.free)?;
            left -= used;
        }
        let total = u64::from(self.number(SUPERBLOCK + kind.total)?).saturating_sub(surplus - left);
        self.file.write_all_at(&(total as u32).to_le_bytes(), SUPERBLOCK + kind.total)
    }

    fn number(&self, at: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn short(&self, at: u64) -> io::Result<u16> {
        let mut bytes = [0; 2];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u16::from_le_bytes(bytes))
    }
}

/// Where blocks, or inodes, are counted.
struct Kind {
    /// Where a descriptor has the number of the bitmap's block.
    bitmap: u64,
    /// Where a descriptor counts the free ones.
    free: u64,
    /// Where the superblock counts the free ones.
    total: u64,
    /// How many a group has.
    per_group: u64,
    /// How many there are.
    all: u64,
}
