//! Starting one of our own processes.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, kill_process_group};

/// How often a tool that has written its last is looked for.
const ENDS_SOON: Duration = Duration::from_millis(1);

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

/// Starts the gateway of a sandbox: `program` (our own file) with these arguments, an empty environment, a process group
/// of its own, and one end of a socket as its standard input; what it prints is dropped. Returns our end with it.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn spawn_gateway(program: &Path, arguments: &[OsString]) -> io::Result<(Child, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    #[allow(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let child = Command::new(program)
        .arg0("fumehood-gateway")
        .args(arguments)
        .env_clear()
        .process_group(0)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((child, ours))
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

/// Asks a tool of the host that reads a question and answers it: this file, these arguments, no variables, `question` on
/// standard input. Returns what it writes, at most `most` bytes, however it ends; it is ended when it takes longer than
/// `within`, with all that it started.
///
/// # Errors
/// When it cannot be started, takes too long, writes too much, or writes no text.
pub fn ask_tool(
    program: &Path,
    arguments: &[&str],
    question: &[u8],
    within: Duration,
    most: u64,
) -> io::Result<String> {
    ask(program, arguments, &[], question, (within, most)).map(|(text, _)| text)
}

/// Asks a tool of the host for something that it prints: this file, these arguments, these variables and no others. Returns what
/// it prints, at most `most` bytes; it is ended when it takes longer than `within`, with all that it started.
///
/// # Errors
/// When it cannot be started, does not succeed, takes too long, prints too much, or no text.
pub fn ask_provider(
    program: &Path,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
    within: Duration,
    most: u64,
) -> io::Result<String> {
    let (text, status) = ask(program, arguments, environment, b"", (within, most))?;
    match status {
        Some(status) if status.success() => Ok(text),
        Some(status) => Err(io::Error::other(format!("it ended with {status}"))),
        None => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
    }
}

/// Asks a tool, and returns what it writes, and how it ended if it did within the time by itself.
fn ask(
    program: &Path,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
    question: &[u8],
    (within, most): (Duration, u64),
) -> io::Result<(String, Option<ExitStatus>)> {
    let by = Instant::now() + within;
    #[allow(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("its standard streams are missing"));
    };
    let (sender, receiver) = mpsc::channel();
    let (answer, status) = std::thread::scope(|scope| {
        // One that reads nothing answers nothing, which is told below.
        scope.spawn(move || _ = stdin.write_all(question));
        scope.spawn(move || {
            let mut text = Vec::new();
            let read = stdout.take(most + 1).read_to_end(&mut text);
            _ = sender.send(read.map(|_| text));
        });
        let answer = receiver.recv_timeout(within);
        // One that has written its last is about to end.
        let written =
            answer.as_ref().is_ok_and(|text| text.as_ref().is_ok_and(|text| text.len() as u64 <= most));
        while written && Instant::now() < by && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(ENDS_SOON);
        }
        let status = child.try_wait().ok().flatten();
        // Ends what it started, too; both threads end with it.
        _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        (answer, status)
    });
    child.wait()?;
    let text = answer.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it took too long"))??;
    if text.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it wrote too much"));
    }
    let text = String::from_utf8(text);
    let text = text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it wrote no text"))?;
    Ok((text, status))
}
