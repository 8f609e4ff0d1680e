//! What was found out about a file before, so that it need not be read again.

use std::collections::HashMap;

use model::OsText;
use serde::{Deserialize, Serialize};

use crate::tree::{Node, Time};

/// One state of one file. Any change to it gives it another time of change, which programs cannot set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CacheKey {
    /// The device that holds it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// When anything about it changed.
    pub changed: Time,
    /// Its size in bytes.
    pub size: u64,
}

impl CacheKey {
    /// Returns the key of a file as it was looked up.
    pub fn of(node: &Node) -> Self {
        Self { device: node.device, inode: node.inode, changed: node.changed, size: node.size }
    }
}

/// What is known about one state of one file, whatever its name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// What kind of credential its content shows, by the list of shapes; nothing when it shows none.
    pub shape: Option<String>,
    /// Whether it gives a variable a value that is not obviously harmless; nothing when nobody asked yet.
    pub has_values: Option<bool>,
    /// Whether it gives a password, a token or a key a value; nothing when nobody asked yet.
    pub has_token: Option<bool>,
    /// Attributes of overlay that somebody planted on it.
    pub foreign: Vec<OsText>,
}

/// Remembers verdicts from one scan to the next.
pub trait ScanCache {
    /// Returns what is known about a state of a file.
    fn get(&self, key: &CacheKey) -> Option<Verdict>;
    /// Remembers what was found out.
    fn put(&mut self, key: CacheKey, verdict: Verdict);
}

/// A cache that lives as long as the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryCache(HashMap<CacheKey, Verdict>);

impl ScanCache for MemoryCache {
    fn get(&self, key: &CacheKey) -> Option<Verdict> {
        self.0.get(key).cloned()
    }

    fn put(&mut self, key: CacheKey, verdict: Verdict) {
        self.0.insert(key, verdict);
    }
}
