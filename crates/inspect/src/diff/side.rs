//! One side of a difference: what a file is, and what it holds.

use std::io::ErrorKind;

use model::{FileKind, OsText, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::credentials::is_credential;
use crate::error::InspectError;
use crate::tree::{Entry, Finder};

/// What a path stands for on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// What kind of thing it is.
    pub file: FileKind,
    /// Its permission bits.
    pub mode: u32,
    /// Its bytes, when it is an ordinary file.
    pub size: u64,
}

/// What it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing that could be compared.
    Nothing,
    Bytes(Vec<u8>),
    /// A credential, which is not repeated.
    Credential,
    Target(OsText),
    TooLarge,
    Unreadable,
}

pub(super) struct Content {
    pub(super) side: Side,
    pub(super) held: Held,
}

impl Content {
    /// Reads one side, when there is one.
    pub(super) fn read(
        finder: &mut Finder,
        path: &WorkspacePath,
        limit: u64,
    ) -> Result<Option<Self>, InspectError> {
        let Some(entry) = finder.find(path)? else { return Ok(None) };
        let node = &entry.node;
        let size = if node.kind == FileKind::File { node.size } else { 0 };
        let side = Side { file: node.kind, mode: node.mode(), size };
        let held = match held(&entry, limit)? {
            Held::Bytes(bytes) if is_credential(path, &bytes) => Held::Credential,
            held => held,
        };
        Ok(Some(Self { side, held }))
    }
}

fn held(entry: &Entry, limit: u64) -> Result<Held, InspectError> {
    let read = match entry.node.kind {
        FileKind::File if entry.node.size > limit => return Ok(Held::TooLarge),
        FileKind::File => entry.read(limit).map(Held::Bytes),
        FileKind::Symlink => entry.link_target().map(Held::Target),
        _ => return Ok(Held::Nothing),
    };
    match read {
        Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied) => {
            Ok(Held::Unreadable)
        }
        read => read,
    }
}

impl Held {
    pub(super) fn bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => Vec::new(),
        }
    }
}
