//! The first process of the sandbox: builds it, starts the runner, answers notifications, and ends everything when
//! the command ends or the supervisor is gone.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use launcher::message::{FromSandbox, LandlockReport, Observation, ToSandbox};
use launcher::plan::Plan;
use launcher::wire;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::failure::{Context, Done, Failure};
use crate::listed::Listed;
use crate::mutant::leaves_out;
use crate::notify::Notifier;
use crate::runner::{self, RunnerSays};
use crate::steps::{Built, Steps};
use crate::watch::Watcher;
use crate::{confine, identity, network, root, sys};

/// What the first stage hands over.
pub(crate) struct Given {
    /// The plan.
    pub(crate) plan: Plan,
    /// The socket to the supervisor.
    pub(crate) control: OwnedFd,
    /// The standard streams of the command.
    pub(crate) stdio: Vec<OwnedFd>,
    /// The places of the host, when the first stage had to open them.
    pub(crate) sources: Option<Vec<OwnedFd>>,
    /// The mount of the image behind all that is writable, when there is one.
    pub(crate) image: Option<OwnedFd>,
}

/// Builds the sandbox and stays until it ends.
pub(crate) fn run(given: Given) -> Done {
    let control = given.control.try_clone().during("control socket", "")?;
    build_and_supervise(given).inspect_err(|failure| {
        // The supervisor may be gone; then nobody is left to tell.
        let _ = wire::send(&control, &failure.message(), &[]);
    })
}

fn build_and_supervise(given: Given) -> Done {
    let Given { plan, control, stdio, sources, image } = given;
    let start = Instant::now();
    // The command must not be able to see the launcher's own file, nor the descriptors of the supervisor.
    identity::map(plan.identity)?;
    sys::unshare(sys::late_namespace_flags(&plan)).during("namespaces", "control groups and queues")?;
    root::detach_propagation()?;
    let sources = match sources {
        Some(sources) => sources,
        None => root::open_sources(&plan)?,
    };
    let opened = start.elapsed();
    let Built { root, store, mut times } = Steps::new(&plan, sources, image).run()?;
    times.insert(0, ("sources".to_owned(), u64::try_from(opened.as_nanos()).unwrap_or(u64::MAX)));
    root::enter(root, !leaves_out(&plan, "root"))?;
    if !leaves_out(&plan, "uts-namespace") {
        rustix::system::sethostname(plan.hostname.as_bytes()).during("host name", &plan.hostname)?;
    }
    let outside_landlock = network::listen_outside_landlock(&plan)?;
    let terminal = if plan.terminal { Some(open_terminal()?) } else { None };
    let workspace_options = workspace_options(&plan)?;
    confine::drop_privileges(&plan)?;
    let landlock = confine::enter_landlock(&plan)?;
    let total = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    times.push(("built".to_owned(), total));
    let (master, slave) = terminal.unzip();
    let (socket, runner) = start_runner(&plan, stdio, slave)?;
    let keep = Keep {
        plan: &plan,
        control,
        socket,
        store,
        master,
        outside_landlock,
        times,
        landlock,
        workspace_options,
    };
    First::new(keep, runner)?.supervise()
}

/// Opens a terminal of the sandbox's own: the end for the supervisor, and the end for the command.
fn open_terminal() -> Done<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::open("/dev/ptmx", flags, Mode::empty()).during("terminal", "/dev/ptmx")?;
    rustix::pty::unlockpt(&master).during("terminal", "unlock")?;
    let name = rustix::pty::ptsname(&master, Vec::new()).during("terminal", "name")?;
    let slave = rustix::fs::open(name, flags, Mode::empty()).during("terminal", "/dev/pts")?;
    Ok((master, slave))
}

/// Reads back how the kernel mounted the workspace; some options are dropped without an error.
fn workspace_options(plan: &Plan) -> Done<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").during("workspace", "mountinfo")?;
    let workspace = String::from_utf8_lossy(&plan.probe.workspace).into_owned();
    let line = table.lines().find(|line| line.split(' ').nth(4) == Some(&escape_mountinfo(&workspace)));
    Ok(line.and_then(|line| line.rsplit(' ').next()).unwrap_or_default().to_owned())
}

/// Writes a path as `mountinfo` does: white space and the backslash in octal.
fn escape_mountinfo(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

fn start_runner(plan: &Plan, stdio: Vec<OwnedFd>, terminal: Option<OwnedFd>) -> Done<(OwnedFd, Pid)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .during("runner socket", "")?;
    // Before there is anybody who could trace this process. The runner makes itself an ordinary one again.
    if !leaves_out(plan, "supervisor") {
        sys::prctl(libc::PR_SET_DUMPABLE, 0, 0).during("supervisor", "dumpable")?;
    }
    match sys::fork().during("runner", "fork")? {
        0 => {
            drop(ours);
            runner::run(plan, runner::Given { socket: theirs, stdio, terminal })
        }
        pid => {
            let pid = Pid::from_raw(pid).ok_or_else(|| Failure::new("runner", "no process number"))?;
            Ok((ours, pid))
        }
    }
}

/// What the first process keeps when the sandbox is built.
struct Keep<'a> {
    plan: &'a Plan,
    control: OwnedFd,
    socket: OwnedFd,
    store: Option<OwnedFd>,
    master: Option<OwnedFd>,
    /// What the prober must not reach, until it has tried.
    outside_landlock: Option<OwnedFd>,
    times: Vec<(String, u64)>,
    landlock: LandlockReport,
    workspace_options: String,
}

/// The first process, once the runner exists.
struct First<'a> {
    keep: Keep<'a>,
    runner: Pid,
    signals: OwnedFd,
    notifier: Option<Notifier>,
    watcher: Watcher,
    started: bool,
    runner_talks: bool,
    status: Option<i32>,
}

/// What woke the first process up.
struct Ready {
    control: bool,
    runner: bool,
    signal: bool,
    notification: bool,
    /// Nobody is left whom the command's filter holds.
    deserted: bool,
}

impl<'a> First<'a> {
    fn new(keep: Keep<'a>, runner: Pid) -> Done<Self> {
        let signals = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE];
        let signals = sys::signal_descriptor(&signals).during("signals", "signalfd")?;
        let watcher = Watcher::new(keep.plan.watch);
        sys::load_filter(&keep.plan.first_process_filter, false).during("seccomp", "first process")?;
        Ok(Self {
            keep,
            runner,
            signals,
            notifier: None,
            watcher,
            started: false,
            runner_talks: true,
            status: None,
        })
    }

    /// Stays until the command ends or the supervisor is gone. When this process leaves, the kernel ends all others.
    fn supervise(mut self) -> Done {
        loop {
            let ready = self.wait()?;
            if ready.deserted {
                // It would be ready at every turn from now on, until the last of them can be waited for.
                self.notifier = None;
            }
            if ready.notification
                && let Some(notifier) = &mut self.notifier
                && notifier.handle(&self.keep.control, self.started)?
            {
                // The end of this process closes the listener before it ends the others; they would see an answer.
                sys::kill_all_others().during("supervise", "kill")?;
                return Ok(());
            }
            if ready.runner && self.runner_talks {
                self.hear_runner()?;
            }
            if ready.control && !self.hear_supervisor()? {
                return Ok(());
            }
            if ready.signal {
                self.reap()?;
            }
            if let Some(status) = self.status {
                return self.report_end(status);
            }
            if self.started && self.watcher.passed(&self.keep.control)? {
                return Ok(());
            }
        }
    }

    fn wait(&self) -> Done<Ready> {
        let mut fds =
            vec![PollFd::new(&self.keep.control, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
        let runner = self.runner_talks.then(|| {
            fds.push(PollFd::new(&self.keep.socket, PollFlags::IN));
            fds.len() - 1
        });
        let notifier = self.notifier.as_ref().map(|notifier| {
            fds.push(PollFd::from_borrowed_fd(notifier.listener(), PollFlags::IN));
            fds.len() - 1
        });
        let timeout = if self.started { self.watcher.interval() } else { None };
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).during("supervise", "poll"),
        }
        let ready = |at: usize| !fds[at].revents().is_empty();
        Ok(Ready {
            control: ready(0),
            signal: ready(1),
            runner: runner.is_some_and(ready),
            notification: notifier.is_some_and(|at| fds[at].revents().contains(PollFlags::IN)),
            // The kernel says so once no task has the filter (`seccomp_notify_poll`), and none can get it again.
            deserted: notifier.is_some_and(|at| fds[at].revents() == PollFlags::HUP),
        })
    }

    fn hear_runner(&mut self) -> Done {
        match wire::receive::<RunnerSays>(&self.keep.socket).during("runner socket", "receive")? {
            Some((RunnerSays::Filtered, fds)) => {
                let listed = self.keep.plan.programs.as_ref().map(Listed::new);
                self.notifier = fds.into_iter().next().map(|listener| Notifier::new(listener, listed));
                Ok(())
            }
            Some((RunnerSays::Proof(observations), _)) => self.report_proof(observations),
            Some((RunnerSays::Failed { step, errno, about }, _)) => Err(Failure { step, errno, about }),
            Some((RunnerSays::ExecFailed { errno, directory }, _)) => {
                self.tell(&FromSandbox::ExecFailed { errno, directory })?;
                std::process::exit(0)
            }
            // The socket closes on a successful execve.
            None => {
                self.runner_talks = false;
                if self.started { self.tell(&FromSandbox::Started) } else { Ok(()) }
            }
        }
    }

    fn report_proof(&mut self, observations: Vec<Observation>) -> Done {
        drop(self.keep.outside_landlock.take());
        let message = FromSandbox::Proved {
            observations,
            steps: std::mem::take(&mut self.keep.times),
            landlock: self.keep.landlock.clone(),
            workspace_options: std::mem::take(&mut self.keep.workspace_options),
        };
        let store = self.keep.store.take();
        let master = self.keep.master.take();
        let fds: Vec<_> = store.iter().chain(master.iter()).map(AsFd::as_fd).collect();
        wire::send(&self.keep.control, &message, &fds).during("control socket", "proof")
    }

    /// Hears the supervisor; says false when it is gone.
    fn hear_supervisor(&mut self) -> Done<bool> {
        match wire::receive::<ToSandbox>(&self.keep.control) {
            Ok(Some((start @ ToSandbox::Start { .. }, _))) => {
                self.started = true;
                wire::send(&self.keep.socket, &start, &[]).during("runner socket", "start")?;
                Ok(true)
            }
            Ok(Some((ToSandbox::Signal(signal), _))) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    // The group may have ended in the meantime.
                    let _ = rustix::process::kill_process_group(self.runner, signal);
                }
                Ok(true)
            }
            Ok(None) | Err(_) => Ok(false),
        }
    }

    fn reap(&mut self) -> Done {
        // What is read only says that there is something to wait for.
        while rustix::io::read(&self.signals, &mut [0; 1024]).is_ok_and(|bytes| bytes == 1024) {}
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.runner => self.status = Some(status.as_raw()),
                Ok(Some(_)) => {}
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error).during("reap", "waitpid"),
            }
        }
    }

    fn report_end(&mut self, status: i32) -> Done {
        // Its last words may still be there, for example that it could not be started.
        if self.runner_talks {
            self.hear_runner()?;
        }
        self.watcher.sample(&self.keep.control)?;
        let (cpu_us, max_rss_kib) = sys::usage_of_children();
        self.tell(&FromSandbox::Exited { status, cpu_us, max_rss_kib })
    }

    fn tell(&self, message: &FromSandbox) -> Done {
        wire::send(&self.keep.control, message, &[]).during("control socket", "send")
    }
}
