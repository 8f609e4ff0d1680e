//! Starting one of our own processes.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process of ours, with our ends of its standard streams. It ends when they are dropped.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub child: Child,
    /// Where it reads.
    pub stdin: ChildStdin,
    /// Where it writes.
    pub stdout: ChildStdout,
}

/// Starts the process that speaks with a model: `program` (our own file) with these arguments, an empty environment, a
/// process group of its own, and what it says as errors dropped or passed to `stderr`.
///
/// Our process is never forked: without a closure to run in between, the standard library uses `posix_spawn(3)`. The
/// own group keeps the signals of the user's terminal away from it: what a Ctrl-C means is decided here.
///
/// # Errors
/// When it cannot be started.
pub fn spawn_agent(program: &Path, arguments: &[&OsStr], stderr: Option<Stdio>) -> io::Result<Started> {
    #[allow(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut child = Command::new(program)
        .arg0("fumehood-agent")
        .args(arguments)
        .env_clear()
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr.unwrap_or_else(Stdio::null))
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("its standard streams are missing"));
    };
    Ok(Started { child, stdin, stdout })
}

/// Runs a tool of the host for ourselves and waits for its end: this file, these arguments, no other variable than these,
/// and what it says only in the error.
///
/// # Errors
/// When it cannot be started or does not succeed.
pub(crate) fn run_tool(
    program: &Path,
    arguments: &[&str],
    environment: &[(&'static str, &'static str)],
) -> io::Result<()> {
    #[allow(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .process_group(0)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(io::Error::other(format!("{} failed: {said}", program.display())))
}
