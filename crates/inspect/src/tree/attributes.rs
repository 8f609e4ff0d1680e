//! Extended attributes that mean something to overlay.
//!
//! They are read by way of `/proc/self/fd`, because the calls that take a descriptor refuse one opened with `O_PATH`,
//! and the ones that take a path would follow links on the way.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use super::node::Node;
use model::FileKind;

const OPAQUE: &str = "user.overlay.opaque";
const WHITEOUT: &str = "user.overlay.whiteout";

/// The longest list of attribute names that Linux hands out (XATTR_LIST_MAX).
const LIST_MAX: usize = 65_536;

/// What a directory's attributes say to overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// Nothing: it is merged with what is below.
    Merged,
    /// `y`: it hides what is below.
    Opaque,
    /// `x`: it is merged, and empty files in it with a whiteout attribute stand for names that are gone.
    Whiteouts,
}

impl Attributes {
    /// Reads what a directory says, given a descriptor of it.
    pub(crate) fn of_directory<Fd: AsFd>(directory: Fd) -> Result<Self, Errno> {
        let mut value = Vec::with_capacity(8);
        match rustix::fs::getxattr(link_to(&directory, c""), OPAQUE, spare_capacity(&mut value)) {
            Ok(_) if value == b"y" => Ok(Self::Opaque),
            Ok(_) if value == b"x" => Ok(Self::Whiteouts),
            // The kernel looks at the first byte of a value of one byte only.
            Ok(_) | Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(Self::Merged),
            Err(errno) => Err(errno),
        }
    }
}

/// Tells whether an empty file in a directory marked `x` stands for a name that is gone.
pub(crate) fn is_whiteout_file<Fd: AsFd>(directory: Fd, name: &CStr, node: &Node) -> Result<bool, Errno> {
    if node.kind != FileKind::File || node.size != 0 {
        return Ok(false);
    }
    match rustix::fs::lgetxattr(link_to(&directory, name), WHITEOUT, &mut [0u8; 0]) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Lists the names of all attributes of one file that overlay would look at, its own ones included.
pub(crate) fn overlay_names<Fd: AsFd>(directory: Fd, name: &CStr) -> Result<Vec<Vec<u8>>, Errno> {
    let path = link_to(&directory, name);
    let mut list = Vec::with_capacity(512);
    let listed = match rustix::fs::llistxattr(&path, spare_capacity(&mut list)) {
        Err(Errno::RANGE) => {
            list = Vec::with_capacity(LIST_MAX);
            rustix::fs::llistxattr(&path, spare_capacity(&mut list))
        }
        listed => listed,
    };
    match listed {
        Ok(_) => {
            Ok(list.split(|byte| *byte == 0).filter(|name| of_overlay(name)).map(<[u8]>::to_vec).collect())
        }
        Err(Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(errno) => Err(errno),
    }
}

/// Takes one attribute off a file.
pub(crate) fn remove_attribute<Fd: AsFd>(directory: Fd, name: &CStr, attribute: &[u8]) -> Result<(), Errno> {
    rustix::fs::lremovexattr(link_to(&directory, name), attribute)
}

/// Tells whether an attribute belongs to overlay, in any of the namespaces that a mount may obey.
pub(crate) fn of_overlay(attribute: &[u8]) -> bool {
    [b"user.overlay.".as_slice(), b"trusted.overlay."].iter().any(|prefix| attribute.starts_with(prefix))
}

/// Returns a path to a name in an open directory, or to the directory itself when the name is empty.
fn link_to<Fd: AsFd>(directory: &Fd, name: &CStr) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd()).into_bytes();
    // Without a last part the calls that do not follow links would look at the link in /proc itself.
    path.extend_from_slice(if name.is_empty() { b"." } else { name.to_bytes() });
    path
}
