//! The process that becomes the command: it takes the last steps on itself, lets a copy of itself try what must
//! fail, and executes the command when it is told to.

use std::ffi::CString;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd, RawFd};

use launcher::message::{Observation, ToSandbox};
use launcher::plan::Plan;
use launcher::wire;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::failure::{Context, Done, Failure};
use crate::mutant::leaves_out;
use crate::{prober, sys};

/// Where the socket to the first process is; everything above it is closed.
const SOCKET: RawFd = 3;
/// The command goes first when memory runs out, before the first process and everything outside.
const OOM_SCORE: &str = "500";

/// What the runner says to the first process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum RunnerSays {
    /// A step could not be done.
    Failed {
        /// The step.
        step: String,
        /// The error number, or zero.
        errno: i32,
        /// What it was about.
        about: String,
    },
    /// The filter is loaded; its listener comes along.
    Filtered,
    /// What the prober observed.
    Proof(Vec<Observation>),
    /// The command could not be started.
    ExecFailed {
        /// The error number.
        errno: i32,
        /// Whether it was the directory that could not be entered.
        directory: bool,
    },
}

/// What the runner is given.
pub(crate) struct Given {
    /// The socket to the first process.
    pub(crate) socket: OwnedFd,
    /// The standard streams, when there is no terminal.
    pub(crate) stdio: Vec<OwnedFd>,
    /// The terminal, when there is one.
    pub(crate) terminal: Option<OwnedFd>,
}

/// Becomes the command. Never returns.
pub(crate) fn run(plan: &Plan, given: Given) -> ! {
    let socket = match prepare(plan, given) {
        Ok(socket) => socket,
        Err(_) => sys::exit_now(125),
    };
    if let Err(Failure { step, errno, about }) = prove(plan, &socket).and_then(|()| start(&socket)) {
        // The first process sees the end of the socket when it cannot be told.
        let _ = wire::send(&socket, &RunnerSays::Failed { step, errno, about }, &[]);
    }
    sys::exit_now(125)
}

/// Takes the last steps before the filter: a session, the streams, and no other descriptor.
fn prepare(plan: &Plan, given: Given) -> Done<OwnedFd> {
    sys::reset_signals().during("signals", "reset")?;
    if !leaves_out(plan, "session") {
        rustix::process::setsid().during("session", "setsid")?;
    }
    match &given.terminal {
        Some(terminal) => {
            sys::take_terminal(terminal).during("terminal", "controlling terminal")?;
            for stream in 0..3 {
                sys::duplicate_to(terminal.as_fd(), stream, false).during("terminal", "standard streams")?;
            }
        }
        None => {
            for (stream, file) in (0..3).zip(&given.stdio) {
                sys::duplicate_to(file.as_fd(), stream, false).during("descriptors", "standard streams")?;
            }
        }
    }
    sys::duplicate_to(given.socket.as_fd(), SOCKET, true).during("descriptors", "socket")?;
    // From here on the numbers have no owner: everything above the socket is closed below.
    for file in given.stdio.into_iter().chain(given.terminal).chain([given.socket]) {
        let _ = file.into_raw_fd();
    }
    if !leaves_out(plan, "descriptors") {
        sys::close_from(SOCKET.cast_unsigned() + 1).during("descriptors", "close")?;
    }
    let socket = sys::adopt(SOCKET);
    raise_oom_score()?;
    for limit in plan.rlimits.iter().filter(|limit| !leaves_out(plan, limit_name(limit.resource))) {
        sys::set_rlimit(limit.resource, limit.value).during("limits", limit.resource.to_string())?;
    }
    sys::join_own_keyring().during("keyring", "join")?;
    Ok(socket)
}

/// Returns the name by which a mutant leaves a limit out.
fn limit_name(resource: u32) -> &'static str {
    const NAMES: [(u32, &str); 4] = [
        (libc::RLIMIT_NPROC, "processes"),
        (libc::RLIMIT_NOFILE, "open-files"),
        (libc::RLIMIT_FSIZE, "file-size"),
        (libc::RLIMIT_CORE, "core"),
    ];
    NAMES.iter().find(|(number, _)| *number == resource).map_or("", |(_, name)| name)
}

fn raise_oom_score() -> Done {
    // A process that was undumpable cannot write here, and the first process could not read what this one executes.
    sys::prctl(libc::PR_SET_DUMPABLE, 1, 0).during("oom score", "dumpable")?;
    std::fs::write("/proc/self/oom_score_adj", OOM_SCORE).during("oom score", OOM_SCORE)
}

/// Loads the filter, and lets a copy of this very process try what must fail.
fn prove(plan: &Plan, socket: &OwnedFd) -> Done {
    if leaves_out(plan, "seccomp") {
        wire::send(socket, &RunnerSays::Filtered, &[]).during("runner socket", "filtered")?;
    } else {
        let listener = sys::load_filter(&plan.command_filter, true).during("seccomp", "command filter")?;
        let listener = listener.ok_or_else(|| Failure::new("seccomp", "no listener"))?;
        wire::send(socket, &RunnerSays::Filtered, &[listener.as_fd()]).during("runner socket", "filtered")?;
    }
    let observations = prober::run(plan)?;
    wire::send(socket, &RunnerSays::Proof(observations), &[]).during("runner socket", "proof")
}

/// Waits for the word to start, and executes the command.
fn start(socket: &OwnedFd) -> Done {
    let message = wire::receive::<ToSandbox>(socket).during("runner socket", "start")?;
    let Some((ToSandbox::Start { argv, environment, directory }, _)) = message else {
        // The first process is gone, or the run was given up before it began.
        sys::exit_now(125)
    };
    let text = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| Failure::new("start", "a NUL byte"));
    let argv = argv.into_iter().map(text).collect::<Done<Vec<_>>>()?;
    let environment = environment.into_iter().map(text).collect::<Done<Vec<_>>>()?;
    // The command sets its own mask for new files from the usual one.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let failed = match rustix::process::chdir(crate::root::path_of(&directory)) {
        Err(error) => RunnerSays::ExecFailed { errno: error.raw_os_error(), directory: true },
        Ok(()) => RunnerSays::ExecFailed { errno: execute(&argv, &environment), directory: false },
    };
    wire::send(socket, &failed, &[]).during("runner socket", "exec failed")?;
    sys::exit_now(127)
}

/// Searches the program as `execvp(3)` does, but in the PATH of the new environment; returns the error number.
fn execute(argv: &[CString], environment: &[CString]) -> i32 {
    let Some(program) = argv.first() else { return libc::ENOENT };
    if program.as_bytes().contains(&b'/') {
        return execute_file(program, argv, environment);
    }
    let path = environment.iter().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    let mut best = libc::ENOENT;
    for directory in path.unwrap_or(b"/usr/bin:/bin").split(|byte| *byte == b':') {
        let directory = if directory.is_empty() { b"." } else { directory };
        let Ok(file) = CString::new([directory, b"/", program.as_bytes()].concat()) else { continue };
        // The record lists what is executed, not where it was looked for.
        match rustix::fs::stat(file.as_c_str()) {
            Ok(_) => {}
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => continue,
            Err(error) => return error.raw_os_error(),
        }
        match execute_file(&file, argv, environment) {
            libc::ENOENT | libc::ENOTDIR => {}
            libc::EACCES => best = libc::EACCES,
            errno => return errno,
        }
    }
    best
}

/// Executes one file; a text without `#!` is given to the shell, as `execvp(3)` does.
fn execute_file(file: &CString, argv: &[CString], environment: &[CString]) -> i32 {
    let errno = sys::execute(file, argv, environment).raw_os_error().unwrap_or(libc::EIO);
    if errno != libc::ENOEXEC {
        return errno;
    }
    let shell = c"/bin/sh".to_owned();
    let mut with_shell = vec![shell.clone(), file.clone()];
    with_shell.extend(argv.iter().skip(1).cloned());
    sys::execute(&shell, &with_shell, environment).raw_os_error().unwrap_or(libc::EIO)
}
