//! Packages that came from registries, whole and as they must be.

use model::egress::{Checksum, RegistryKind};
use model::{ActionId, TaskId, Timestamp};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::row::{Raw, Value, Word, time};
use super::{Reader, Writer};

/// One file of a package that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPackage {
    /// What its registry speaks.
    pub kind: RegistryKind,
    /// Its name, in the form that names are compared in.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name of the registry in the settings.
    pub registry: String,
    /// What came.
    pub digest: Checksum,
    /// Whether a lockfile named it.
    pub locked: bool,
    /// The task for which it came.
    pub task: TaskId,
    /// The action for which it came.
    pub action: ActionId,
    /// When that was recorded.
    pub at: Timestamp,
}

const COLUMNS: &str = "kind, name, version, registry, digest, locked, task, action, at";

impl Reader<'_> {
    /// Returns the names of a kind of which something came.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn package_names(&self, kind: RegistryKind) -> Result<Vec<String>, StoreError> {
        let mut select =
            self.connection.prepare_cached("SELECT DISTINCT name FROM packages WHERE kind = ?1")?;
        Ok(select.query_map([kind.as_str()], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Returns what came of a name, of one version or of all, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn packages_named(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<Vec<StoredPackage>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM packages WHERE name = ?1 AND (?2 IS NULL OR version = ?2) ORDER BY at, version, digest"
        );
        self.packages(&sql, params![name, version])
    }

    /// Returns what came for a task, or for all, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn packages_of_task(&self, task: Option<&TaskId>) -> Result<Vec<StoredPackage>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM packages WHERE (?1 IS NULL OR task = ?1) ORDER BY at, kind, name, version, digest"
        );
        self.packages(&sql, params![task.map(TaskId::as_str)])
    }

    /// Returns what came for an action, by kind, name and version.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn packages_of_action(&self, action: &ActionId) -> Result<Vec<StoredPackage>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM packages WHERE action = ?1 ORDER BY kind, name, version, digest");
        self.packages(&sql, params![action.as_str()])
    }

    fn packages(&self, sql: &str, of: impl rusqlite::Params) -> Result<Vec<StoredPackage>, StoreError> {
        let mut select = self.connection.prepare_cached(sql)?;
        let package = |row: &Row<'_>| {
            Ok(StoredPackage {
                kind: row.get::<_, Word<_>>(0)?.0,
                name: row.get(1)?,
                version: row.get(2)?,
                registry: row.get(3)?,
                digest: row.get::<_, Value<_>>(4)?.0,
                locked: row.get(5)?,
                task: row.get::<_, Value<_>>(6)?.0,
                action: row.get::<_, Value<_>>(7)?.0,
                at: row.get::<_, Raw<_>>(8)?.0,
            })
        };
        Ok(select.query_map(of, package)?.collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    /// Keeps that a file of a package came for an action.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_package(&self, package: &StoredPackage) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO packages (kind, name, version, registry, digest, locked, task, action, at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.connection.prepare_cached(sql)?.execute(params![
            package.kind.as_str(),
            package.name,
            package.version,
            package.registry,
            package.digest.to_string(),
            package.locked,
            package.task.as_str(),
            package.action.as_str(),
            time(package.at),
        ])?;
        Ok(())
    }
}
