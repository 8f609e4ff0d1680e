//! Finding credential files, in a base and in layers.
//!
//! Guarantees: the names of all ordinary files are looked at, the contents of all that are small enough and not
//! compressed by git; no link is followed; a found secret is named by its kind and place and never repeated. The lists are
//! `data/credential-names.txt` and `data/credential-contents.txt`. Leaves to others: covering what was found.

mod cache;
mod contents;
mod expression;
mod git_config;
mod judge;
mod names;
mod scan;
mod text;
mod values;

use std::sync::LazyLock;

use model::{Digest, WorkspacePath};
use serde::{Deserialize, Serialize};

pub use cache::{CacheKey, MemoryCache, ScanCache, Verdict};
pub use contents::{Shaped, shape_of};
pub use git_config::{hooks_path, without_credentials};
pub use scan::{BaseScan, scan, scan_layer, scan_paths};

pub use text::{values_in, values_of_file};
pub use values::is_secret_variable;

pub(crate) use scan::is_credential;

/// A file that holds a credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Found {
    /// Where it is.
    pub path: WorkspacePath,
    /// How it can be covered.
    pub kind: FoundKind,
    /// What it holds, and how that was seen.
    pub why: String,
}

/// How a found file can be covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundKind {
    /// By an empty file.
    File,
    /// Git's configuration: git does not work without it. [`without_credentials`] makes a copy that can stand in.
    InGitConfig,
    /// Another file that git writes; an empty or read-only one in its place makes git fail.
    InGit,
}

/// Returns a digest of the lists. What a cache remembers holds only as long as it stays the same.
pub fn rules_digest() -> Digest {
    static DIGEST: LazyLock<Digest> = LazyLock::new(|| {
        let (names, contents) = (names::LIST, contents::LIST);
        model::Canonical::new("credential rules 2")
            .field(names.as_bytes())
            .field(contents.as_bytes())
            .digest()
    });
    *DIGEST
}
