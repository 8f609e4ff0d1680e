//! The ordinary user as whom privileged parts are tested a second time when this task runs as root.
//!
//! Guarantees: the account is a throw-away one of our own (or the one that `FUMEHOOD_TEST_USER` names), its home is
//! a scratch directory, nothing of the host is changed so that it can reach the repository, and what it leaves
//! running is found.
//! Leaves to others: what is run.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::repo::Repo;
use crate::{run, say, scratch};

/// What the names of accounts that are made here begin with. The number of the process that made one follows, so that
/// two tasks at the same time never end each other's processes, and what a killed one left is known.
const OUR_ACCOUNTS: &str = "fumehood-test-";

/// Makes paths reachable in a mount namespace of its own, then becomes the user.
const REACH: &str = include_str!("reach.sh");

/// Tells whether this task runs as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// An ordinary user.
#[derive(Debug)]
pub struct Ordinary {
    name: String,
    uid: u32,
    gid: u32,
    /// Whether the account is one of ours, and nobody else's.
    ours: bool,
    scratch: TempDir,
    /// What the user must be able to read, wherever it is.
    needs: Vec<PathBuf>,
    sysroot: PathBuf,
}

/// A process of the user that is still there when everything should have ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

impl Ordinary {
    /// Finds or makes the account and its scratch home. Removes the accounts that killed tasks left.
    ///
    /// # Errors
    /// When this task is not root, or the account cannot be had.
    pub fn ready(repo: &Repo) -> Result<Self> {
        let wanted = run::variable("FUMEHOOD_TEST_USER").map(|name| name.to_string_lossy().into_owned());
        let ours = wanted.is_none();
        if ours {
            remove_forsaken()?;
        }
        let name = wanted.unwrap_or_else(|| format!("{OUR_ACCOUNTS}{}", std::process::id()));
        match find(&name)? {
            Some(_) => {}
            None if ours => make(&name)?,
            None => bail!("there is no user `{name}`, which FUMEHOOD_TEST_USER names"),
        }
        let (uid, gid) =
            find(&name)?.with_context(|| format!("the account `{name}` was made but is not there"))?;
        let scratch = scratch::directory("fumehood-user.")?;
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
        let sysroot = run::output("find the toolchain", run::command("rustc").args(["--print", "sysroot"]))?;
        let sysroot = PathBuf::from(String::from_utf8(sysroot)?.trim());
        let needs = vec![repo.root.clone(), repo.target.clone(), sysroot.clone()];
        let user = Self { name, uid, gid, ours, scratch, needs, sysroot };
        user.make_home()?;
        Ok(user)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a directory that belongs to the user.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::create_dir(&path)?;
        chown(&path, Some(self.uid), Some(self.gid))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(path)
    }

    /// Returns a command that runs `argv` as the user.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, argv: impl IntoIterator<Item = S>) -> Command {
        let home = self.home();
        let path = run::variable("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut command = run::command("unshare");
        command.args(["--mount", "--propagation", "private", "bash", "-euc", REACH, "reach.sh"]);
        command.arg(self.scratch.path().join("hold")).arg(self.uid.to_string()).arg(self.gid.to_string());
        for (cover, keep) in covers(&self.needs, self.uid) {
            command.arg("--cover").arg(cover);
            keep.iter().for_each(|path| {
                command.arg("--keep").arg(path);
            });
        }
        command.arg("--").args(argv);
        command.env("PATH", format!("{}/bin:{}", self.sysroot.display(), path.to_string_lossy()));
        command.env("HOME", &home).env("USER", &self.name).env("LOGNAME", &self.name);
        command.env("CARGO_HOME", home.join(".cargo"));
        for inherited in
            ["RUSTUP_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
        {
            command.env_remove(inherited);
        }
        command
    }

    /// Ends what the user left running and removes the account, if it is one of ours. Returns what was left.
    ///
    /// # Errors
    /// When the account cannot be removed.
    pub fn leave(self) -> Result<Vec<Leftover>> {
        // An account of somebody else may have processes of its own; only ours is known to be ours alone.
        if self.ours { remove(&self.name, self.uid) } else { Ok(Vec::new()) }
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// Makes the home, with the registry settings that this task itself uses.
    fn make_home(&self) -> Result<()> {
        let home = self.directory("home")?;
        let cargo = home.join(".cargo");
        fs::create_dir(&cargo)?;
        chown(&cargo, Some(self.uid), Some(self.gid))?;
        let own = run::variable("CARGO_HOME")
            .map(PathBuf::from)
            .or_else(|| run::variable("HOME").map(|home| PathBuf::from(home).join(".cargo")));
        if let Some(settings) = own.map(|own| own.join("config.toml")).filter(|settings| settings.is_file()) {
            let copy = cargo.join("config.toml");
            fs::copy(settings, &copy)?;
            chown(&copy, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }
}

/// Looks an account up, and returns its user and group number.
fn find(name: &str) -> Result<Option<(u32, u32)>> {
    let answer = run::command("getent").args(["passwd", name]).output().context("cannot start `getent`")?;
    let line = String::from_utf8_lossy(&answer.stdout).into_owned();
    let fields: Vec<&str> = line.trim().split(':').collect();
    let [_, _, uid, gid, ..] = fields.as_slice() else { return Ok(None) };
    Ok(Some((uid.parse()?, gid.parse()?)))
}

/// Ends what runs as one of our accounts and removes it. Returns what ran.
fn remove(name: &str, uid: u32) -> Result<Vec<Leftover>> {
    let left = leftovers(uid)?;
    for process in &left {
        let _ = run::command("kill").args(["-KILL", &process.pid.to_string()]).status();
    }
    run::output("remove the account", run::command("userdel").arg("--force").arg(name))?;
    Ok(left)
}

/// Removes those of our accounts whose maker has ended.
fn remove_forsaken() -> Result<()> {
    let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    for name in accounts.lines().filter_map(|line| line.split(':').next()) {
        let Some(maker) = name.strip_prefix(OUR_ACCOUNTS).and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if Path::new("/proc").join(maker.to_string()).exists() {
            continue;
        }
        if let Some((uid, _)) = find(name)? {
            say::note(&format!("removing the account `{name}`, which a killed task left"));
            remove(name, uid)?;
        }
    }
    Ok(())
}

/// Makes a throw-away account.
fn make(name: &str) -> Result<()> {
    say::note(&format!("making the throw-away account `{name}` for the tests that must pass without root"));
    let mut useradd = run::command("useradd");
    useradd.args([
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
        "--shell",
        "/bin/sh",
        "--user-group",
        name,
    ]);
    run::output("make an account", &mut useradd)
        .context("set FUMEHOOD_TEST_USER to an ordinary account if none can be made here")?;
    Ok(())
}

/// Returns the processes of a user.
fn leftovers(uid: u32) -> Result<Vec<Leftover>> {
    let mut left = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end while we look.
        let Ok(owner) = entry.metadata() else { continue };
        if owner.uid() == uid && !is_zombie(&entry.path()) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            left.push(Leftover { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") });
        }
    }
    Ok(left)
}

/// Tells whether a process has ended and only waits for its parent to notice.
fn is_zombie(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name in parentheses may hold anything, also parentheses.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Groups the paths that a user cannot reach by the first directory in the way.
fn covers(needs: &[PathBuf], uid: u32) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let mut covers: Vec<(PathBuf, Vec<PathBuf>)> = Vec::new();
    for path in needs {
        let Some(closed) = first_closed(path, uid) else { continue };
        match covers.iter_mut().find(|(cover, _)| *cover == closed) {
            Some((_, keep)) => keep.push(path.clone()),
            None => covers.push((closed, vec![path.clone()])),
        }
    }
    covers
}

/// Returns the first directory on the way to `path` that others cannot pass. Groups are left out of account: that
/// errs on the side of covering.
fn first_closed(path: &Path, uid: u32) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
    ancestors.reverse();
    let closed = |directory: &&Path| {
        fs::metadata(directory).is_ok_and(|found| found.mode() & 0o001 == 0 && found.uid() != uid)
    };
    ancestors.into_iter().find(closed).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_directory_on_the_way_is_found_once() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let closed = scratch.path().join("closed");
        fs::create_dir_all(closed.join("a/b")).expect("it is ours");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let needs = [closed.join("a"), closed.join("a/b"), scratch.path().join("open")];
        let nobody = 65_534;
        let found = covers(&needs, nobody);
        assert_eq!(found, [(closed.clone(), vec![closed.join("a"), closed.join("a/b")])]);
    }

    #[test]
    fn the_own_directories_of_the_user_are_not_covered() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let owner = fs::metadata(scratch.path()).expect("it is there").uid();
        assert_eq!(first_closed(&scratch.path().join("x"), owner), None);
    }
}
