//! Makes a fresh Debian or Ubuntu machine ready: finds which packages are missing and installs them where that is
//! allowed.
//!
//! Guarantees: nothing is installed that is there already, and where nothing may be installed the exact command is
//! said.
//! Leaves to others: the Rust toolchain, git and a C compiler, which the README asks for.

use std::process::Command;

use anyhow::{Result, bail};

use crate::account::is_root;
use crate::{run, say};

/// A package of Debian that some task cannot do without.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// The package.
    pub name: &'static str,
    /// The program that shows that it is there.
    pub program: &'static str,
    /// Why it is needed.
    pub why: &'static str,
}

/// What the tests need.
pub const FOR_TESTS: &[Package] = &[
    Package { name: "python3", program: "python3", why: "the case runner listens and judges with it" },
    Package { name: "gcc", program: "gcc", why: "a case compiles a C program in the sandbox" },
    Package { name: "git", program: "git", why: "workspaces of cases and tests are git repositories" },
    Package {
        name: "passwd",
        program: "useradd",
        why: "privileged tests run again as a throw-away ordinary user",
    },
    Package {
        name: "mount",
        program: "mount",
        why: "that user reaches a closed repository by a mount of its own",
    },
];

/// What the demonstration needs.
pub const FOR_DEMO: &[Package] =
    &[Package { name: "git", program: "git", why: "the demonstration works on a git repository" }];

/// What the benchmarks compare with. A missing one is said in the table; these are installed where that is allowed.
pub const FOR_BENCH: &[Package] = &[
    Package { name: "bubblewrap", program: "bwrap", why: "the yardstick for starting a sandbox" },
    Package { name: "runc", program: "runc", why: "the usual container runtime" },
    Package { name: "crun", program: "crun", why: "the quickest container runtime" },
    Package { name: "time", program: "time", why: "reports the peak memory of another program" },
    Package { name: "git", program: "git", why: "`git worktree add` is what a fork is compared with" },
];

/// Installs what is missing.
///
/// # Errors
/// When packages are missing and cannot be installed from here; the error is the command to type.
pub fn ensure(packages: &[Package]) -> Result<()> {
    let missing: Vec<&Package> = packages.iter().filter(|package| is_missing(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        say::note(&format!("missing: {} ({})", package.name, package.why));
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let Some(mut as_root) = root_prefix() else {
        bail!("packages are missing; type this and try again:\n\n    {}\n", install_line(&names));
    };
    say::step(&format!("install {}", names.join(", ")));
    run::output("read the package lists", as_root().args(["apt-get", "update", "-qq"]))?;
    let mut install = as_root();
    install.args([
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "-y",
        "-qq",
        "--no-install-recommends",
    ]);
    run::output("install packages", install.args(&names))?;
    match missing.iter().find(|package| is_missing(package)) {
        Some(package) => bail!("`{}` was installed but there is no `{}`", package.name, package.program),
        None => Ok(()),
    }
}

/// Installs what is missing where that is allowed, and only says what it could not.
pub fn try_to_ensure(packages: &[Package]) {
    if let Err(error) = ensure(packages) {
        say::note(&format!("going on without: {error}"));
    }
}

fn is_missing(package: &Package) -> bool {
    run::system_program(package.program).is_none()
}

/// Returns what makes a command run as root, if anything does without asking for a password.
pub fn root_prefix() -> Option<impl FnMut() -> Command> {
    run::system_program("apt-get")?;
    let sudo = !is_root();
    if sudo && !run::command("sudo").args(["-n", "true"]).output().is_ok_and(|done| done.status.success()) {
        return None;
    }
    Some(move || match sudo {
        true => {
            let mut command = run::command("sudo");
            command.arg("-n");
            command
        }
        false => run::command("env"),
    })
}

fn install_line(names: &[&str]) -> String {
    format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {}", names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_missing() {
        assert!(!is_missing(&Package { name: "coreutils", program: "ls", why: "it is everywhere" }));
        assert!(is_missing(&Package { name: "none", program: "no-such-program", why: "it is nowhere" }));
    }

    #[test]
    fn the_command_to_type_names_every_package() {
        let line = install_line(&["one", "two"]);
        assert!(line.starts_with("sudo apt-get update && "), "{line}");
        assert!(line.ends_with(" one two"), "{line}");
    }

    #[test]
    fn every_package_says_why_it_is_needed() {
        for package in FOR_TESTS.iter().chain(FOR_DEMO).chain(FOR_BENCH) {
            assert!(package.why.len() > 10, "{}", package.name);
        }
    }
}
