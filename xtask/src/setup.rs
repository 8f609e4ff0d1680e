//! Makes a fresh Debian or Ubuntu machine ready: finds which packages are missing and installs them where that is
//! allowed.
//!
//! Guarantees: nothing is installed that is there already, and where nothing may be installed the exact command is
//! said.
//! Leaves to others: the Rust toolchain, git and a C compiler, which the README asks for.

use std::process::Command;

use anyhow::{Result, bail};

use Sign::{Program, PythonModule};

use crate::account::is_root;
use crate::{run, say};

/// A package of Debian that some task cannot do without.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// The package.
    pub name: &'static str,
    /// What shows that it is there.
    pub sign: Sign,
    /// Why it is needed.
    pub why: &'static str,
}

/// What shows that a package is there, whoever installed it.
#[derive(Debug, PartialEq, Eq)]
pub enum Sign {
    /// A program in a system directory.
    Program(&'static str),
    /// A module of the system's Python.
    PythonModule(&'static str),
}

/// What the tests need.
pub const FOR_TESTS: &[Package] = &[
    package("python3", Program("python3"), "the case runner listens and judges with it"),
    package("git", Program("git"), "workspaces of cases and tests are git repositories"),
    package("gcc", Program("gcc"), "cases and tests compile C programs inside"),
    package("make", Program("make"), "tests build with it inside, in parallel"),
    package("gdb", Program("gdb"), "tests debug a child of their own inside"),
    package("nodejs", Program("node"), "tests run Node inside"),
    package("npm", Program("npm"), "tests run the tests of a Node project inside"),
    package("python3-venv", PythonModule("ensurepip"), "tests run pytest in a virtual environment inside"),
    package("default-jdk-headless", Program("javac"), "tests compile and run a Java program inside"),
    package("cvc5", Program("cvc5"), "tests prove what policies never allow with it"),
    package(
        "ca-certificates",
        Program("update-ca-certificates"),
        "the gateway verifies servers by its roots",
    ),
    package("passwd", Program("useradd"), "privileged tests run again as a throw-away ordinary user"),
    package("mount", Program("mount"), "that user reaches a closed repository by a mount of its own"),
];

/// What the demonstration needs.
pub const FOR_DEMO: &[Package] =
    &[package("git", Program("git"), "the demonstration works on a git repository")];

/// What the benchmarks compare with. A missing one is said in the table; these are installed where that is allowed.
pub const FOR_BENCH: &[Package] = &[
    package("bubblewrap", Program("bwrap"), "the yardstick for starting a sandbox"),
    package("runc", Program("runc"), "the usual container runtime"),
    package("crun", Program("crun"), "the quickest container runtime"),
    package("time", Program("time"), "reports the peak memory of another program"),
    package("git", Program("git"), "`git worktree add` is what a fork is compared with"),
    package("squid", Program("squid"), "a forward proxy, which the gateway is compared with"),
    package("tinyproxy", Program("tinyproxy"), "a small forward proxy, which the gateway is compared with"),
    package(
        "slirp4netns",
        Program("slirp4netns"),
        "a network for containers, which the gateway is compared with",
    ),
];

/// What the virtual machine needs. Its kernel is downloaded and only unpacked.
pub const FOR_GUEST: &[Package] = &[
    package("qemu-system-x86", Program("qemu-system-x86_64"), "emulates the virtual machine"),
    package("busybox-static", Program("busybox"), "is all that the virtual machine has beside the tests"),
];

const fn package(name: &'static str, sign: Sign, why: &'static str) -> Package {
    Package { name, sign, why }
}

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
    // One source that does not answer is no reason to give up: the packages may be in another one.
    if let Err(error) = run::output("read the package lists", as_root().args(["apt-get", "update", "-qq"])) {
        say::note(&format!("{error}"));
    }
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
        Some(package) => bail!("`{}` was installed but there is no {:?}", package.name, package.sign),
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
    match package.sign {
        Program(name) => run::system_program(name).is_none(),
        PythonModule(name) => {
            let mut python = run::command("/usr/bin/python3");
            !python.args(["-c", &format!("import {name}")]).output().is_ok_and(|done| done.status.success())
        }
    }
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
        assert!(!is_missing(&package("coreutils", Program("ls"), "it is everywhere")));
        assert!(is_missing(&package("none", Program("no-such-program"), "it is nowhere")));
    }

    #[test]
    fn the_command_to_type_names_every_package() {
        let line = install_line(&["one", "two"]);
        assert!(line.starts_with("sudo apt-get update && "), "{line}");
        assert!(line.ends_with(" one two"), "{line}");
    }

    #[test]
    fn every_package_says_why_it_is_needed() {
        for package in FOR_TESTS.iter().chain(FOR_DEMO).chain(FOR_BENCH).chain(FOR_GUEST) {
            assert!(package.why.len() > 10, "{}", package.name);
        }
    }
}
