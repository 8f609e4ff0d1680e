//! Credential files of a workspace, found once and remembered in the store.

use std::collections::HashMap;
use std::path::Path;

use inspect::Tree;
use inspect::credentials::{BaseScan, CacheKey, ScanCache, Verdict, rules_digest, scan};

use crate::Engine;
use crate::error::EngineError;
use crate::store::FileKey;

impl Engine {
    /// Looks for credentials in a base. What the store remembers of a file is not read again.
    pub(crate) fn scan_base(&self, base: &Path) -> Result<BaseScan, EngineError> {
        let mut cache = StoreCache { engine: self, fresh: HashMap::new() };
        let found = scan(&Tree::open(base)?, &mut cache)?;
        let fresh = std::mem::take(&mut cache.fresh);
        if !fresh.is_empty() {
            self.remember(fresh)?;
        }
        Ok(found)
    }

    fn remember(&self, fresh: HashMap<CacheKey, Verdict>) -> Result<(), EngineError> {
        let rows: Vec<(FileKey, Vec<u8>)> = fresh
            .into_iter()
            .filter_map(|(key, verdict)| Some((file_key(&key), serde_json::to_vec(&verdict).ok()?)))
            .collect();
        let now = crate::clock::now();
        self.store().write(|writer| writer.keep_scans(&rules_digest(), &rows, now))?;
        Ok(())
    }
}

struct StoreCache<'a> {
    engine: &'a Engine,
    fresh: HashMap<CacheKey, Verdict>,
}

impl ScanCache for StoreCache<'_> {
    fn get(&self, key: &CacheKey) -> Option<Verdict> {
        if let Some(verdict) = self.fresh.get(key) {
            return Some(verdict.clone());
        }
        let rows = self.engine.store().read(|reader| reader.scans(&rules_digest(), &[file_key(key)]));
        // What cannot be read is looked at again: the cache only saves time.
        let bytes = rows.ok()?.pop()??;
        serde_json::from_slice(&bytes).ok()
    }

    fn put(&mut self, key: CacheKey, verdict: Verdict) {
        self.fresh.insert(key, verdict);
    }
}

fn file_key(key: &CacheKey) -> FileKey {
    FileKey { device: key.device, inode: key.inode, ctime_ns: ctime_ns(key), size: key.size }
}

fn ctime_ns(key: &CacheKey) -> i64 {
    key.changed.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(key.changed.nanos))
}
