//! Follows the launcher and everything that it starts, and makes one system call of one of them fail.
//!
//! Each process has a role, by how it came to be, and calls are counted for each role: within one process they always
//! come in the same order. What the command does after its own `execve` is not looked at.

use std::collections::HashMap;
use std::io;
use std::mem::zeroed;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long what ends together with the program may take on a busy machine; what is still there then goes on.
const REST: Duration = Duration::from_secs(10);

/// A process of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Still in the host's namespaces.
    FirstStage,
    /// Carries the user namespace of an id-mapped mount.
    IdMap,
    /// Builds the sandbox and stays.
    FirstProcess,
    /// Becomes the command.
    Runner,
    /// Tries what must fail.
    Prober,
    /// A copy of the prober.
    ProberCopy,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FirstStage => "first-stage",
            Self::IdMap => "id-map",
            Self::FirstProcess => "first-process",
            Self::Runner => "runner",
            Self::Prober => "prober",
            Self::ProberCopy => "prober-copy",
        }
    }

    /// Returns the role of a child that is made by this call.
    fn child(self, call: u64) -> Self {
        match self {
            Self::FirstStage if call == libc::SYS_clone3.cast_unsigned() => Self::FirstProcess,
            Self::FirstStage | Self::IdMap => Self::IdMap,
            Self::FirstProcess => Self::Runner,
            Self::Runner => Self::Prober,
            Self::Prober | Self::ProberCopy => Self::ProberCopy,
        }
    }
}

/// One system call of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) role: Role,
    /// Which of the calls of its role it is.
    pub(crate) at: usize,
    pub(crate) call: u64,
    /// What it returned; nothing when it did not return.
    pub(crate) result: Option<i64>,
}

/// The call that is to fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) role: Role,
    pub(crate) at: usize,
    pub(crate) errno: i32,
}

/// What was seen of one start.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The calls that were made before the command was executed; with a fault, those of its role up to it.
    pub(crate) made: Vec<Made>,
    /// The call that was made to fail.
    pub(crate) failed: Option<u64>,
    /// Processes that were there when the program had ended.
    pub(crate) left: Vec<i32>,
}

/// One process or thread that is followed.
#[derive(Debug, Default)]
struct Task {
    role: Option<Role>,
    /// The call that it is in, as it was entered.
    inside: Option<usize>,
    /// Whether it is in an `execve` that was not seen to begin: what comes next is the end of that.
    executes: bool,
    /// Whether its call is to return our error.
    injects: bool,
    /// It stopped before the event of its parent said who it is, and waits for that.
    waits: bool,
}

/// Starts a program and follows it to its end.
pub(crate) fn follow(command: &mut Command, fault: Option<Fault>) -> io::Result<Seen> {
    // SAFETY: takes numbers only.
    let trace_me = || check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) });
    // SAFETY: the closure runs between fork and exec and makes one system call; it allocates nothing.
    unsafe { command.pre_exec(trace_me) };
    let child = command.spawn()?;
    let watchdog = Watchdog::start(&child);
    let mut tracer =
        Tracer { fault, tasks: HashMap::new(), seen: Seen::default(), counts: HashMap::new(), done: false };
    let followed = tracer.run(pid_of(&child));
    drop(watchdog);
    followed?;
    tracer.seen.left = tracer.tasks.keys().copied().filter(|pid| *pid != pid_of(&child)).collect();
    Ok(tracer.seen)
}

fn pid_of(child: &Child) -> i32 {
    child.id().cast_signed()
}

struct Tracer {
    fault: Option<Fault>,
    tasks: HashMap<i32, Task>,
    seen: Seen,
    counts: HashMap<Role, usize>,
    /// The command was executed, or the fault was made: from here everything runs freely.
    done: bool,
}

impl Tracer {
    fn run(&mut self, first: i32) -> io::Result<()> {
        let (pid, _) = wait(first)?;
        let options = libc::PTRACE_O_TRACESYSGOOD
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_EXITKILL;
        // SAFETY: the child is stopped and ours; the request takes numbers.
        check(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) })?;
        self.tasks.insert(pid, Task::default());
        self.resume(pid, 0);
        while let Some((pid, status)) = next()? {
            if libc::WIFSTOPPED(status) {
                if let Some(signal) = self.stopped(pid, status) {
                    self.resume(pid, signal);
                }
            } else {
                self.tasks.remove(&pid);
                if pid == first {
                    self.reap_the_rest();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes what ended together with the program; what goes on is left over.
    fn reap_the_rest(&mut self) {
        let patience = Instant::now() + REST;
        while Instant::now() < patience {
            let mut status = 0;
            // SAFETY: the call writes one number, which lives longer.
            match unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) } {
                0 => std::thread::sleep(Duration::from_millis(5)),
                pid if pid > 0 && libc::WIFSTOPPED(status) => self.resume(pid, 0),
                pid if pid > 0 => drop(self.tasks.remove(&pid)),
                _ => return self.tasks.clear(),
            }
        }
    }

    /// Looks at a stop, and returns the signal to pass on; nothing when the task has to wait.
    fn stopped(&mut self, pid: i32, status: i32) -> Option<i32> {
        let signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP | 0x80 {
            self.at_call(pid);
            return Some(0);
        }
        if signal == libc::SIGSTOP && !self.tasks.contains_key(&pid) {
            self.tasks.insert(pid, Task { waits: true, ..Task::default() });
            return None;
        }
        match status >> 16 {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.child_of(pid)
            }
            libc::PTRACE_EVENT_EXEC => self.executed(pid),
            0 if signal != libc::SIGTRAP && signal != libc::SIGSTOP => return Some(signal),
            _ => {}
        }
        Some(0)
    }

    fn child_of(&mut self, pid: i32) {
        let mut child: libc::c_ulong = 0;
        // SAFETY: the request writes one number, which lives longer than the call.
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut child) };
        let parent =
            self.tasks.get(&pid).map(|task| (task.role, registers(pid).map_or(0, |regs| regs.orig_rax)));
        let role = parent.and_then(|(role, call)| role.map(|role| role.child(call)));
        let child = i32::try_from(child).unwrap_or(-1);
        let task = self.tasks.entry(child).or_default();
        task.role = role;
        if std::mem::take(&mut task.waits) {
            self.resume(child, 0);
        }
    }

    fn executed(&mut self, pid: i32) {
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let is_launcher = program.to_string_lossy().contains("fumehood-launcher");
        let task = self.tasks.entry(pid).or_default();
        if is_launcher {
            *task = Task { role: Some(Role::FirstStage), executes: true, ..Task::default() };
        } else if task.role == Some(Role::Runner) {
            // The command. What follows is not the start any more.
            *task = Task::default();
            self.done = true;
        }
    }

    /// Looks at the beginning or the end of a system call.
    fn at_call(&mut self, pid: i32) {
        let Some(regs) = registers(pid) else { return };
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let Some(role) = task.role else { return };
        if std::mem::take(&mut task.executes) {
            return;
        }
        if let Some(entered) = task.inside.take() {
            if std::mem::take(&mut task.injects) {
                let errno = self.fault.map_or(libc::EPERM, |fault| fault.errno);
                set_registers(pid, libc::user_regs_struct { rax: i64::from(-errno).cast_unsigned(), ..regs });
                self.done = true;
            } else if let Some(made) = self.seen.made.get_mut(entered) {
                made.result = Some(regs.rax.cast_signed());
            }
            return;
        }
        let count = self.counts.entry(role).or_default();
        let made = Made { role, at: *count, call: regs.orig_rax, result: None };
        *count += 1;
        task.inside = Some(self.seen.made.len());
        self.seen.made.push(made);
        if self.fault.is_some_and(|fault| (fault.role, fault.at) == (role, made.at)) {
            task.injects = true;
            self.seen.failed = Some(regs.orig_rax);
            // No call has this number, so the kernel does nothing.
            set_registers(pid, libc::user_regs_struct { orig_rax: u64::MAX, ..regs });
        }
    }

    /// Lets a task go on, up to its next call where its calls are looked at.
    fn resume(&self, pid: i32, signal: i32) {
        let role = self.tasks.get(&pid).and_then(|task| task.role);
        let injects = self.tasks.get(&pid).is_some_and(|task| task.injects);
        let wanted = role.is_some_and(|role| self.fault.is_none_or(|fault| fault.role == role));
        let request = if injects || wanted && !self.done { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
        // SAFETY: the task is stopped and ours. It may have been killed meanwhile, and then nothing happens.
        unsafe { libc::ptrace(request, pid, 0, signal) };
    }
}

/// Ends a program that does not end by itself.
struct Watchdog(std::sync::mpsc::Sender<()>);

impl Watchdog {
    fn start(child: &Child) -> Self {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let pid = pid_of(child);
        std::thread::spawn(move || {
            let limit = std::time::Duration::from_secs(120);
            if stopped.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // SAFETY: the child was not waited for as long as this thread is not told to stop.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        });
        Self(stop)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The thread may have done its work already.
        let _ = self.0.send(());
    }
}

fn registers(pid: i32) -> Option<libc::user_regs_struct> {
    // SAFETY: the registers are plain numbers.
    let mut regs: libc::user_regs_struct = unsafe { zeroed() };
    // SAFETY: the request writes one `user_regs_struct`, which lives longer than the call.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut regs) };
    (done == 0).then_some(regs)
}

fn set_registers(pid: i32, regs: libc::user_regs_struct) {
    // SAFETY: the request reads one `user_regs_struct`, which lives longer than the call.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, &raw const regs) };
}

fn wait(pid: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    // SAFETY: the call writes one number, which lives longer.
    let pid = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok((pid, status)) }
}

/// Waits for any task; nothing when there is none.
fn next() -> io::Result<Option<(i32, i32)>> {
    match wait(-1) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EINTR) => next(),
        Err(error) => Err(error),
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
