//! Credential files of a workspace: of its base, found once and remembered in the store, and of its layers, found when
//! each is read.
//!
//! Guarantees: a file that was found is covered in every later action, as long as it is there and holds a credential, unless
//! policy lets that action see it. Leaves to others: which files those are (`inspect`), and covering them (`sandbox`).

use std::collections::HashMap;
use std::path::Path;

use inspect::credentials::{
    BaseScan, CacheKey, Found, FoundKind, MemoryCache, ScanCache, Verdict, rules_digest, scan, scan_layer,
    scan_paths, values_of_file,
};
use inspect::{Finding, Report, Stack, Tree};
use model::{OsText, TaskId, WorkspacePath};

use crate::Engine;
use crate::error::EngineError;
use crate::ignore_rules::in_ignored_directory;
use crate::store::FileKey;

/// The most credential files whose values are made known.
const LEARNED_MAX: usize = 256;
/// The most that is read of each: credentials are small.
const LEARNED_BYTES: u64 = 64 << 10;

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

    /// Finds the credentials of a workspace as a task has it now: those of its base that are still there, and those that
    /// came up in its layers. Of the latter, not those in directories that git ignores: what a build or an installation
    /// made there, another one must be able to remove, and a covered file would keep it from that.
    pub(crate) fn credentials(
        &self,
        task: &TaskId,
        base: &Path,
        scan: BaseScan,
        now: &Stack,
    ) -> Result<Vec<Found>, EngineError> {
        let mut finder = now.after();
        let mut found = scan.found;
        // What may not be looked at may be there.
        found.retain(|found| finder.find(&found.path).map_or(true, |entry| entry.is_some()));
        let known: std::collections::BTreeSet<WorkspacePath> =
            found.iter().map(|found| found.path.clone()).collect();
        let made = self.made_credentials(task, now)?;
        let is_covered =
            |made: &Found| !known.contains(&made.path) && !in_ignored_directory(&made.path, base, now);
        found.extend(made.into_iter().filter(is_covered));
        Ok(found)
    }

    /// Finds those that came up in the layers of a task and are still there.
    pub(crate) fn made_credentials(&self, task: &TaskId, now: &Stack) -> Result<Vec<Found>, EngineError> {
        let once = self.store().read(|reader| reader.made_credentials(task))?;
        if once.is_empty() {
            return Ok(Vec::new());
        }
        let scanned = scan_paths(now, &once, &mut MemoryCache::default())?;
        let unreadable = scanned.unreadable.iter().filter_map(|path| {
            let path = WorkspacePath::parse(path.as_path()).ok()?;
            Some(Found { path, kind: FoundKind::File, why: "it cannot be read now".to_owned() })
        });
        Ok(scanned.found.into_iter().chain(unreadable).collect())
    }

    /// Makes known what the credential files of a workspace hold, also those that are shown: neither what a command prints nor
    /// what somebody asks for is kept with it. A file that cannot be read now is covered all the same.
    pub(crate) fn learn_files(&self, found: &[Found], now: &Stack) {
        let mut finder = now.after();
        let mut secrets = Vec::new();
        for found in found.iter().take(LEARNED_MAX) {
            let entry = finder.find(&found.path).ok().flatten();
            let text = entry.and_then(|entry| entry.read(LEARNED_BYTES).ok()).unwrap_or_default();
            secrets.extend(values_of_file(&text));
        }
        self.store().learn_secrets(secrets);
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

/// Adds the credentials to a report that came up in the layer that it is about.
pub(crate) fn report_credentials(report: &mut Report, stack: &Stack) -> Result<(), EngineError> {
    let found = scan_layer(stack, report, &mut MemoryCache::default())?;
    add(report, found);
    Ok(())
}

/// Adds credentials to a report.
pub(crate) fn add(report: &mut Report, found: Vec<Found>) {
    let finding = |found: Found| Finding::Credential { path: OsText::from(found.path), why: found.why };
    report.findings.extend(found.into_iter().map(finding));
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
