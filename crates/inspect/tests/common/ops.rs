//! Random acts on a directory, with the same visible result on a plain directory and on an overlay mount.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// One act. What fails does nothing, and fails on both.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Op {
    Write(String, u8),
    Append(String, u8),
    MakeDirectory(String),
    Remove(String),
    Recreate(String),
    Rename(String, String),
    Chmod(String, u32),
    Symlink(String, String),
    Link(String, String),
    Fifo(String),
    Touch(String),
}

/// Paths that meet often: three names, at most three deep.
fn a_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..=3).prop_map(|parts| parts.join("/"))
}

/// Makes one act.
pub(crate) fn an_op() -> impl Strategy<Value = Op> {
    let mode = prop::sample::select(vec![0o755, 0o700, 0o711, 0o644, 0o600, 0o444]);
    prop_oneof![
        4 => (a_path(), any::<u8>()).prop_map(|(path, byte)| Op::Write(path, byte)),
        1 => (a_path(), any::<u8>()).prop_map(|(path, byte)| Op::Append(path, byte)),
        4 => a_path().prop_map(Op::MakeDirectory),
        3 => a_path().prop_map(Op::Remove),
        2 => a_path().prop_map(Op::Recreate),
        3 => (a_path(), a_path()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => (a_path(), mode).prop_map(|(path, mode)| Op::Chmod(path, mode)),
        1 => (a_path(), a_path()).prop_map(|(target, path)| Op::Symlink(target, path)),
        2 => (a_path(), a_path()).prop_map(|(from, to)| Op::Link(from, to)),
        1 => a_path().prop_map(Op::Fifo),
        1 => a_path().prop_map(Op::Touch),
    ]
}

/// Does the acts in a directory.
pub(crate) fn perform(root: &Path, ops: &[Op]) {
    for op in ops {
        let _ = perform_one(root, op);
    }
}

fn perform_one(root: &Path, op: &Op) -> io::Result<()> {
    match op {
        Op::Write(path, byte) => write(&at(root, path)?, &[*byte; 3]),
        Op::Append(path, byte) => {
            let path = at(root, path)?;
            // Reading a pipe would wait for a writer.
            if !fs::symlink_metadata(&path)?.is_file() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let mut content = fs::read(&path)?;
            content.push(*byte);
            write(&path, &content)
        }
        Op::MakeDirectory(path) => fs::create_dir(at(root, path)?),
        Op::Remove(path) => remove(&at(root, path)?),
        Op::Recreate(path) => {
            let path = at(root, path)?;
            remove(&path)?;
            fs::create_dir(path)
        }
        Op::Rename(from, to) => rename(&at(root, from)?, &at(root, to)?),
        Op::Chmod(path, mode) => chmod(&at(root, path)?, *mode),
        Op::Symlink(target, path) => symlink(target, at(root, path)?),
        Op::Link(from, to) => {
            let from = at(root, from)?;
            if !fs::symlink_metadata(&from)?.is_file() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            fs::hard_link(from, at(root, to)?)
        }
        Op::Fifo(path) => {
            let path = at(root, path)?;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o644.into(), 0)?;
            Ok(())
        }
        Op::Touch(path) => {
            let path = at(root, path)?;
            let file = fs::symlink_metadata(&path)?.is_file().then(|| fs::File::open(&path)).transpose()?;
            file.map_or(Ok(()), |file| file.set_modified(std::time::SystemTime::UNIX_EPOCH))
        }
    }
}

/// Returns a path, unless a part of it on the way is a link.
fn at(root: &Path, path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        if !fs::symlink_metadata(root.join(above))?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    Ok(root.join(path))
}

/// Replaces a file with several names instead of writing to it: an overlay parts them when one is written.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(old) if !old.is_file() => Err(io::ErrorKind::InvalidInput.into()),
        Ok(old) if old.nlink() > 1 => {
            fs::remove_file(path)?;
            fs::write(path, content)?;
            fs::set_permissions(path, old.permissions())
        }
        // Root may write to a file without permission, and an ordinary user not; both are to do the same.
        Ok(old) if old.permissions().mode() & 0o200 == 0 => Err(io::ErrorKind::PermissionDenied.into()),
        _ => fs::write(path, content),
    }
}

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    let old = fs::symlink_metadata(path)?;
    if old.file_type().is_symlink() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    if old.is_file() && old.nlink() > 1 {
        let content = fs::read(path)?;
        fs::remove_file(path)?;
        fs::write(path, content)?;
    }
    // A directory stays one that its owner can enter and change.
    let mode = if old.is_dir() { mode | 0o700 } else { mode };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Renames; a directory of a lower layer is moved by hand, as the product's helper does.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let old = fs::symlink_metadata(from)?;
    if old.is_dir() && (to.starts_with(from) || fs::symlink_metadata(to).is_ok()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => move_by_hand(from, to, &old),
        renamed => renamed,
    }
}

fn move_by_hand(from: &Path, to: &Path, old: &fs::Metadata) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        rename(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, old.permissions())?;
    fs::remove_dir(from)
}
