//! Attributes that a program planted so that a later mount would obey them.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use model::FileKind;
use rustix::io::Errno;

use super::Finding;
use crate::error::{InspectError, shown};
use crate::tree::{Attributes, Cursor, Node, Tree, list, overlay_names, remove_attribute, stat};

/// Lists the attributes of one file that overlay looks at and did not write itself.
///
/// Its own ones in a `userxattr` layer: where a copy came from (`origin`), marks on directories (`opaque`, `impure`)
/// and the name of a file system (`uuid`, at the top). A whiteout attribute counts only where the directory says so.
pub(crate) fn foreign_names<Fd: AsFd>(
    directory: Fd,
    name: &CStr,
    node: &Node,
    around: Attributes,
) -> Result<Vec<Vec<u8>>, Errno> {
    let own = |attribute: &[u8]| match attribute {
        b"user.overlay.origin" => true,
        b"user.overlay.opaque" | b"user.overlay.impure" | b"user.overlay.uuid" => {
            node.kind == FileKind::Directory
        }
        b"user.overlay.whiteout" => {
            around == Attributes::Whiteouts && node.kind == FileKind::File && node.size == 0
        }
        _ => false,
    };
    let mut names = overlay_names(directory, name)?;
    names.retain(|attribute| !own(attribute));
    Ok(names)
}

/// Takes away every attribute of a layer that overlay would obey and did not write itself. Returns what was there.
///
/// # Errors
/// When a directory cannot be read or an attribute cannot be removed; then the layer must not be mounted again.
pub fn strip_foreign_attributes(upper: &Tree) -> Result<Vec<Finding>, InspectError> {
    let mut cursor = Cursor::new(std::slice::from_ref(upper), &[]);
    let mut found = Vec::new();
    let mut pending = vec![strip_directory(&cursor, &mut found)?];
    while let Some(level) = pending.last_mut() {
        match level.pop() {
            Some(name) => {
                cursor.enter(&name)?;
                pending.push(strip_directory(&cursor, &mut found)?);
            }
            None => {
                pending.pop();
                cursor.leave()?;
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Strips a directory and the files in it; returns the directories in it.
fn strip_directory(cursor: &Cursor, found: &mut Vec<Finding>) -> Result<Vec<CString>, InspectError> {
    let Some(&tree) = cursor.uppers().first() else { return Ok(Vec::new()) };
    let directory = cursor.directory(tree);
    let fail = |errno: Errno| InspectError::at("list", cursor.path(), errno);
    strip_file(cursor, c"", &stat(directory, c"").map_err(fail)?, found)?;
    let mut below = Vec::new();
    for entry in list(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let node = stat(directory, name)
            .map_err(|errno| InspectError::at("look up", &cursor.path_of(name), errno))?;
        match node.kind {
            FileKind::Directory => below.push(name.to_owned()),
            _ => strip_file(cursor, name, &node, found)?,
        }
    }
    Ok(below)
}

fn strip_file(
    cursor: &Cursor,
    name: &CStr,
    node: &Node,
    found: &mut Vec<Finding>,
) -> Result<(), InspectError> {
    let Some(&tree) = cursor.uppers().first() else { return Ok(()) };
    let directory = cursor.directory(tree);
    let path = if name.is_empty() { cursor.path().to_vec() } else { cursor.path_of(name) };
    let fail = |errno: Errno| InspectError::at("strip the attributes of", &path, errno);
    for attribute in foreign_names(directory, name, node, cursor.attributes(tree)).map_err(fail)? {
        remove_attribute(directory, name, &attribute).map_err(fail)?;
        found.push(Finding::ForeignAttribute { path: shown(&path), name: shown(&attribute) });
    }
    Ok(())
}
