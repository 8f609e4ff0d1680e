//! Who calls: the name, the account and the home, as the system's user database has them.

use std::path::PathBuf;

use crate::error::CliError;
use crate::settings::Environment;

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    /// The number of the account.
    pub(super) account: u32,
    pub(super) home: PathBuf,
}

/// Looks up the caller. `HOME` goes before the database, as it does for every other program; the name does not come
/// from the environment, because the record says who asked.
pub(super) fn caller(environment: &Environment) -> Result<User, CliError> {
    let uid = rustix::process::geteuid().as_raw();
    let database = std::fs::read("/etc/passwd").unwrap_or_default();
    let entry = entry(&String::from_utf8_lossy(&database), uid);
    let (name, home) = match entry {
        Some((name, home)) => (name, Some(home)),
        None => (format!("uid-{uid}"), None),
    };
    let home = environment.directory("HOME").map(PathBuf::from).or(home);
    let home = home.ok_or_else(|| CliError::Cannot("your home is not known: set HOME".to_owned()))?;
    Ok(User { name, account: uid, home })
}

/// Returns the name and the home of a user in the format of `/etc/passwd`.
fn entry(database: &str, uid: u32) -> Option<(String, PathBuf)> {
    database.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, _, _, home, ..] = fields[..] else { return None };
        let known = id.parse() == Ok(uid) && !name.is_empty() && home.starts_with('/');
        known.then(|| (name.to_owned(), PathBuf::from(home)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let database = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000:Ada,,,:/home/ada:/bin/bash\n";
        assert_eq!(entry(database, 1000), Some(("ada".to_owned(), "/home/ada".into())));
        assert_eq!(entry(database, 7), None);
    }
}
