//! Who calls: the name, the account and the home, as the system's user database has them.

use std::collections::BTreeSet;
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
    /// The accounts through which they came to theirs, as far as the system tells.
    pub(super) through: BTreeSet<u32>,
}

/// Where the kernel keeps the account of the login (proc_pid_loginuid(5)); it stays through `su` and `sudo`.
const LOGIN: &str = "/proc/self/loginuid";
/// What stands there where nobody logged in.
const NO_LOGIN: u32 = u32::MAX;

impl User {
    /// Returns their account, and those through which they came to it: together they are one person.
    pub(super) fn accounts(&self) -> BTreeSet<u32> {
        self.through.iter().copied().chain([self.account]).collect()
    }
}

/// Returns the accounts through which the caller came to theirs. A caller can name others here, or make one go away: so
/// these may exclude somebody and never make somebody count.
fn through(login: &str, environment: &Environment, real: u32) -> BTreeSet<u32> {
    let login = login.trim().parse().ok().filter(|account| *account != NO_LOGIN);
    let sudo = environment.get("SUDO_UID").and_then(|account| account.to_str()?.parse().ok());
    login.into_iter().chain(sudo).chain([real]).collect()
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
    let login = std::fs::read_to_string(LOGIN).unwrap_or_default();
    let through = through(&login, environment, rustix::process::getuid().as_raw());
    Ok(User { name, account: uid, home, through })
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

    #[test]
    fn whoever_came_through_another_account_is_that_one_too() {
        let through = |login: &str, sudo: &str| -> Vec<u32> {
            super::through(login, &Environment::from([("SUDO_UID", sudo)]), 0).into_iter().collect()
        };
        assert_eq!(through("4294967295", ""), [0], "nobody logged in");
        assert_eq!(through("1000\n", "x"), [0, 1000]);
        assert_eq!(through("", "1001"), [0, 1001]);
        assert_eq!(through("1000", "1001"), [0, 1000, 1001]);
    }
}
