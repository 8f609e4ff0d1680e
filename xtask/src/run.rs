//! Starts other programs. The only place of this crate that does, and that reads the environment.
//!
//! Guarantees: a program that fails is an error that names it and shows the end of what it said.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::say;

/// The end of a failed program's output that an error shows, in bytes.
const SHOWN: usize = 4000;

/// Returns a command for `program`.
#[allow(
    clippy::disallowed_methods,
    reason = "the tasks of the repository drive cargo and git; no agent is involved"
)]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Returns a variable of the environment that this task was started with.
#[allow(
    clippy::disallowed_methods,
    reason = "the tasks of the repository are steered by cargo's and CI's variables"
)]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns the cargo that started this task, else the one on PATH.
pub fn cargo() -> Command {
    let mut cargo = command(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    // The variables of the package `xtask` would reach build scripts and tests of other packages.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        cargo.env_remove(name);
    }
    cargo
}

/// Finds a program in the directories where Debian puts programs, and nowhere else: what is only in the home of
/// one user is of no use to another one, and a sandbox does not show it.
pub fn system_program(name: &str) -> Option<PathBuf> {
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]
        .iter()
        .map(|directory| PathBuf::from(directory).join(name))
        .find(|path| path.is_file())
}

/// Runs a command whose output goes to the terminal.
///
/// # Errors
/// When it cannot be started, or ends with anything but zero.
pub fn succeed(what: &str, command: &mut Command) -> Result<()> {
    say::step(what);
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("{what}: `{}` ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command quietly and returns what it printed on standard output.
///
/// # Errors
/// When it cannot be started, or ends with anything but zero; the error then has the end of its standard error.
pub fn output(what: &str, command: &mut Command) -> Result<Vec<u8>> {
    let Output { status, stdout, stderr } =
        say::while_working(what, || command.stdin(Stdio::null()).output())
            .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("{what}: `{}` ended with {status}\n{}", shown(command), tail(&stderr));
    }
    Ok(stdout)
}

/// Runs a command whose output is both shown and kept; both streams are kept as one text.
///
/// # Errors
/// When it cannot be started or waited for. How it ended is part of the answer.
pub fn tee(command: &mut Command) -> Result<(ExitStatus, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let stdout = child.stdout.take().context("the child has no standard output")?;
    let stderr = child.stderr.take().context("the child has no standard error")?;
    let (out, err) = thread::scope(|scope| {
        let out = scope.spawn(|| copy(stdout, &mut std::io::stdout()));
        let err = scope.spawn(|| copy(stderr, &mut std::io::stderr()));
        (out.join().unwrap_or_default(), err.join().unwrap_or_default())
    });
    let status = child.wait().context("cannot wait for the child")?;
    Ok((status, format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err))))
}

/// Copies a stream to where a person sees it, and returns what it was.
fn copy(mut from: impl Read, to: &mut impl Write) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        // The terminal may go away; what was read is still needed for the tally.
        let _ = to.write_all(&buffer[..count]).and_then(|()| to.flush());
    }
    kept
}

/// Returns a command as a person would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_an_error_with_its_last_words() {
        let error = output("asking", command("sh").args(["-c", "echo so it is >&2; exit 3"]))
            .expect_err("it exits with 3");
        assert!(error.to_string().contains("so it is"), "{error}");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[test]
    fn both_streams_are_kept() {
        let (status, text) = tee(command("sh").args(["-c", "echo one; echo two >&2"])).expect("sh starts");
        assert!(status.success());
        assert_eq!(text, "one\ntwo\n");
    }
}
