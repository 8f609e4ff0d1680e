//! Runs one command in a prepared sandbox, and sees it to its end: time, output, signals, teardown.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gate::Permit;
use launcher::message::{FromSandbox, ToSandbox};
use launcher::wire;
use model::egress::NetworkUse;
use model::evidence::{Observed, Reads, StepTime, Teardown};
use model::{Action, Bytes, Ending, Grant, LimitKind, UnlistedProgram, Usage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::control::{Controller, Request};
use crate::disk::DiskWatch;
use crate::error::SandboxError;
use crate::gateway::{Gateway, Record, Watch, Watched};
use crate::image::Image;
use crate::native::Prepared;
use crate::observe::Recorder;
use crate::output::{Printed, Sink, Stream, collect};
use crate::reads::ReadWatch;
use crate::start::Started;
use crate::{fail_point, store, teardown};

/// How long a command has to end after it was asked to, before it is ended.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// What the caller brings to a run.
pub struct Io {
    /// What the command reads; nothing when missing. A tool that brings its own input does not read this.
    pub stdin: Option<File>,
    /// Takes standard output while it is printed (or the terminal's).
    pub stdout: Box<dyn Sink>,
    /// Takes standard error while it is printed.
    pub stderr: Box<dyn Sink>,
    /// Signals, stops and window sizes from outside.
    pub controller: Option<Controller>,
}

impl Io {
    /// Notes that the command is about to be started, for whoever steers it.
    pub fn about_to_start(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.begin();
        }
    }
}

/// What came out of a run. Nothing in it is trusted: `inspect` is the only reader of its files.
#[derive(Debug)]
pub struct Execution {
    action: Action,
    grant: Grant,
    /// How the command ended.
    pub ending: Ending,
    /// What it used.
    pub usage: Usage,
    /// What was seen.
    pub observed: Observed,
    /// What it printed, stream by stream.
    pub printed: Vec<(Stream, Printed)>,
    /// How long each step took.
    pub steps: Vec<StepTime>,
    /// What was found when the sandbox was gone.
    pub teardown: Teardown,
    layer: PathBuf,
}

impl Execution {
    /// Returns the action that ran.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// Returns the grant that it ran with.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns the directory of its layer, with `upper` in it.
    pub fn layer(&self) -> &std::path::Path {
        &self.layer
    }
}

impl Started {
    /// Waits for the end of the command, and takes the sandbox down. What its gateway tells is kept by `record` when it is
    /// told; a gateway whose words cannot be kept lets nobody out any longer.
    ///
    /// # Errors
    /// When the sandbox is lost.
    pub fn follow(self, io: Io, record: Record<'_>) -> Result<Execution, SandboxError> {
        self.follow_watched(io, record, &mut Watched::default)
    }

    /// Does the same, and asks again and again what became of the credentials of the run.
    ///
    /// # Errors
    /// When the sandbox is lost.
    pub fn follow_watched(
        self,
        io: Io,
        record: Record<'_>,
        watch: Watch<'_>,
    ) -> Result<Execution, SandboxError> {
        let Self { mut prepared, action, grant, input, at } = self;
        let pumps = Pumps::start(&mut prepared, io.stdout, io.stderr, input, io.stdin);
        let gateway = prepared.gateway.take();
        let mut running = Running::new(&prepared, io.controller, gateway);
        let ended = running.until_the_end(record, watch);
        fail_point::reached("run: the command has ended");
        let (ending, recorder, wall_time, gateway) = running.finish(at.elapsed());
        prepared.first_process.end();
        let network = gateway.map(|gateway| Box::new(gateway.finish(record)));
        fail_point::reached("run: everything inside has ended");
        let printed = pumps.finish();
        // An event that nobody took yet keeps the workspace mounted.
        let reads = prepared.reads.take().map(ReadWatch::finish);
        let ending = ended.map(|()| ending)?;
        prepared.close(action, grant, ending, Seen { recorder, reads, network }, printed, wall_time)
    }
}

impl Prepared {
    /// Spends the permit: starts the command, waits for its end, and takes the sandbox down. What a gateway tells is kept
    /// with the end alone.
    ///
    /// # Errors
    /// When the permit grants something else than the sandbox was built for, or the sandbox is lost.
    pub fn run(self, permit: Permit, mut io: Io) -> Result<Execution, SandboxError> {
        io.about_to_start();
        self.start(permit, io.controller.as_ref())?.follow(io, &mut |_| Ok(()))
    }

    /// Takes out what has to be kept, and looks whether anything is left of the sandbox.
    fn close(
        self,
        action: Action,
        grant: Grant,
        ending: Ending,
        Seen { recorder, reads, network }: Seen,
        printed: Vec<(Stream, Printed)>,
        wall_time: Duration,
    ) -> Result<Execution, SandboxError> {
        let start = Instant::now();
        let in_store = store::measure(self.store.as_ref(), &self.spec, &self.quota);
        if self.quota.is_store()
            && let Some(from) = &self.store
        {
            store::take_out(from, &self.spec, &self.quota)
                .map_err(SandboxError::lost("copying the layer out"))?;
        }
        fail_point::reached("teardown: the layer is kept");
        let mut steps = self.report.steps.clone();
        steps.push(StepTime { step: "command".to_owned(), time: wall_time });
        steps.push(StepTime { step: "layer".to_owned(), time: start.elapsed() });
        let counted = self.groups.usage();
        let mut usage = recorder.usage(wall_time, &printed);
        (usage.disk, usage.files) = in_store;
        usage.cpu_time = counted.cpu_time.unwrap_or(usage.cpu_time);
        usage.memory_peak = counted.memory_peak.unwrap_or(usage.memory_peak);
        let ending = out_of_memory(ending, &counted);
        let mut observed = recorder.observed();
        observed.reads = reads;
        observed.network = network;
        observed.limits_touched = touched(&grant, &usage, &printed, &ending, self.quota.image());
        if counted.pids_refused.is_some_and(|refused| refused > 0) {
            observed.limits_touched.push(LimitKind::Processes);
            observed.limits_touched.sort_unstable();
            observed.limits_touched.dedup();
        }
        let layer = self.spec.workspace.layer.clone();
        let teardown = teardown::tear_down(self);
        steps.push(StepTime { step: "teardown".to_owned(), time: start.elapsed() });
        Ok(Execution { action, grant, ending, usage, observed, printed, steps, teardown, layer })
    }
}

/// The kernel ends the largest process when a group is out of memory. When that ended the command, the limit did.
fn out_of_memory(ending: Ending, counted: &crate::cgroup::Usage) -> Ending {
    let killed =
        matches!(ending, Ending::Signaled { signal: libc::SIGKILL } | Ending::Exited { status: 137 });
    if killed && counted.oom_kills.is_some_and(|kills| kills > 0) {
        return Ending::Limit { limit: LimitKind::Memory };
    }
    ending
}

/// Names the limits that the action came up against.
fn touched(
    grant: &Grant,
    usage: &Usage,
    printed: &[(Stream, Printed)],
    ending: &Ending,
    image: Option<&Image>,
) -> Vec<LimitKind> {
    let limits = &grant.profile.limits;
    let disk = image.map_or(limits.disk, Image::reached_at);
    let ended = |kind| matches!(ending, Ending::Limit { limit } if *limit == kind);
    let touches = |kind: &LimitKind| match kind {
        LimitKind::Memory => ended(LimitKind::Memory) || usage.memory_peak >= limits.memory,
        LimitKind::Processes => usage.processes_peak >= limits.processes,
        LimitKind::Disk => ended(LimitKind::Disk) || usage.disk >= disk,
        LimitKind::Files => ended(LimitKind::Files) || usage.files >= limits.files,
        LimitKind::Output => printed.iter().any(|(_, printed)| printed.dropped > 0),
        kind => ended(*kind),
    };
    LimitKind::ALL.into_iter().filter(touches).collect()
}

/// The threads that carry the command's streams.
struct Pumps {
    readers: Vec<(Stream, JoinHandle<Printed>)>,
}

impl Pumps {
    fn start(
        prepared: &mut Prepared,
        stdout: Box<dyn Sink>,
        stderr: Box<dyn Sink>,
        input: Option<Vec<u8>>,
        stdin: Option<File>,
    ) -> Self {
        let limit = prepared.grant.profile.limits.output;
        let streams = &mut prepared.streams;
        let mut readers = Vec::new();
        if let Some(terminal) = &streams.terminal
            && let Ok(for_reading) = terminal.try_clone()
        {
            readers.push((Stream::Terminal, collect(for_reading, Stream::Terminal, limit, stdout)));
        } else if let Some(out) = streams.stdout.take() {
            readers.push((Stream::Out, collect(out, Stream::Out, limit, stdout)));
        }
        if let Some(err) = streams.stderr.take() {
            readers.push((Stream::Err, collect(err, Stream::Err, limit, stderr)));
        }
        let into = streams.terminal.as_ref().and_then(|t| t.try_clone().ok()).or(streams.stdin.take());
        feed(into, input, stdin);
        Self { readers }
    }

    /// Waits for the ends of the streams: everything that could write to them is gone.
    fn finish(self) -> Vec<(Stream, Printed)> {
        self.readers.into_iter().map(|(stream, reader)| (stream, reader.join().unwrap_or_default())).collect()
    }
}

/// Gives the command what it reads, in a thread that ends when there is no more or nobody reads any longer.
fn feed(into: Option<OwnedFd>, input: Option<Vec<u8>>, stdin: Option<File>) {
    let Some(into) = into else { return };
    if input.is_none() && stdin.is_none() {
        return;
    }
    std::thread::spawn(move || {
        let mut into = File::from(into);
        match (input, stdin) {
            (Some(input), _) => drop(into.write_all(&input)),
            (None, Some(mut stdin)) => drop(copy_at_once(&mut stdin, &mut into)),
            (None, None) => {}
        }
    });
}

/// Copies what comes as it comes. An error ends it: the command does not read any longer.
fn copy_at_once(from: &mut File, to: &mut File) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// What was seen of a run.
struct Seen {
    recorder: Recorder,
    reads: Option<Reads>,
    network: Option<Box<NetworkUse>>,
}

/// What woke the supervisor up.
struct Woken {
    /// The sandbox says something.
    said: bool,
    /// The first process has ended.
    gone: bool,
    /// The gateway tells something, or has ended.
    told: bool,
}

/// A command that runs.
struct Running<'a> {
    prepared: &'a Prepared,
    controller: Option<Controller>,
    gateway: Option<Gateway>,
    recorder: Recorder,
    disk: Option<DiskWatch>,
    deadline: Instant,
    ending: Option<Ending>,
    wall_time: Option<Duration>,
    began: Instant,
}

impl<'a> Running<'a> {
    fn new(prepared: &'a Prepared, controller: Option<Controller>, gateway: Option<Gateway>) -> Self {
        let limits = &prepared.grant.profile.limits;
        let began = Instant::now();
        Self {
            prepared,
            controller,
            gateway,
            recorder: Recorder::default(),
            disk: DiskWatch::new(&prepared.spec, &prepared.quota),
            deadline: began + limits.wall_time,
            ending: None,
            wall_time: None,
            began,
        }
    }

    fn until_the_end(&mut self, record: Record<'_>, watch: Watch<'_>) -> Result<(), SandboxError> {
        while self.ending.is_none() {
            let Woken { said, gone, told } = self.wait().map_err(SandboxError::lost("waiting"))?;
            if self.look_after_gateway(told, record, watch) {
                self.end(Ending::Stopped);
            }
            if said {
                self.hear()?;
            } else if gone {
                // The first process itself was ended: out of memory, or by somebody outside.
                self.ending = Some(Ending::Signaled { signal: libc::SIGKILL });
            }
            self.obey_requests()?;
            self.look_at_limits();
        }
        Ok(())
    }

    /// Hears the gateway, and tells whether the run is to end.
    fn look_after_gateway(&mut self, told: bool, record: Record<'_>, watch: Watch<'_>) -> bool {
        let Some(gateway) = &mut self.gateway else { return false };
        if told {
            gateway.hear(record);
        }
        gateway.look(record);
        gateway.watch(watch, record)
    }

    fn wait(&self) -> io::Result<Woken> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.prepared.control.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.prepared.first_process.pidfd(), PollFlags::IN),
        ];
        let door = self.prepared.door.as_ref();
        fds.extend(door.map(|door| PollFd::from_borrowed_fd(door.listener(), PollFlags::IN)));
        let gateway = self.gateway.as_ref().and_then(Gateway::socket).map(|socket| {
            fds.push(PollFd::from_borrowed_fd(socket, PollFlags::IN));
            fds.len() - 1
        });
        if let Some(controller) = &self.controller {
            fds.push(PollFd::from_borrowed_fd(controller.wake_up(), PollFlags::IN));
        }
        let next = self.disk.as_ref().map_or(self.deadline, |disk| self.deadline.min(disk.next()));
        let next = self.gateway.as_ref().and_then(Gateway::next).map_or(next, |back_by| next.min(back_by));
        let left =
            Timespec::try_from(next.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(door) = door.filter(|_| !fds[2].revents().is_empty()) {
            door.serve();
        }
        let ready = |at: usize| !fds[at].revents().is_empty();
        Ok(Woken { said: ready(0), gone: ready(1), told: gateway.is_some_and(ready) })
    }

    fn hear(&mut self) -> Result<(), SandboxError> {
        let message = wire::receive::<FromSandbox>(&self.prepared.control);
        let Some((message, _)) = message.map_err(SandboxError::lost("the sandbox's messages"))? else {
            self.end(Ending::Signaled { signal: libc::SIGKILL });
            return Ok(());
        };
        match message {
            FromSandbox::Exited { status, cpu_us, max_rss_kib } => {
                self.recorder.used(Duration::from_micros(cpu_us), Bytes::new(max_rss_kib << 10));
                self.end(ending_of(status));
            }
            FromSandbox::ExecFailed { errno, directory: true } => self.end(Ending::NoDirectory { errno }),
            FromSandbox::ExecFailed { errno, directory: false } => self.end(match errno {
                libc::ENOENT | libc::ENOTDIR => Ending::NotFound,
                errno => Ending::NotExecutable { errno },
            }),
            FromSandbox::MemoryPassed { memory } => {
                self.recorder.used(Duration::ZERO, Bytes::new(memory));
                self.end(Ending::Limit { limit: LimitKind::Memory });
            }
            FromSandbox::Failed { step, errno, about } => {
                let source = io::Error::from_raw_os_error(errno);
                return Err(SandboxError::Setup { step, errno, about, source });
            }
            evidence => {
                self.recorder.take(evidence);
                self.end_on_unlisted();
            }
        }
        Ok(())
    }

    /// Notes the end of a run that tried a program that is not listed, where its profile says so: the first process ends
    /// everything before the program gets an answer. The kernel refuses it in any case, since what decides here was read
    /// from memory that the command can change.
    fn end_on_unlisted(&mut self) {
        let ends = self.prepared.grant.profile.unlisted_program == UnlistedProgram::End;
        if let Some(file) = self.recorder.first_unlisted.clone().filter(|_| ends) {
            self.end(Ending::UnlistedProgram { file });
        }
    }

    fn end(&mut self, ending: Ending) {
        self.wall_time.get_or_insert(self.began.elapsed());
        self.ending.get_or_insert(ending);
    }

    fn obey_requests(&mut self) -> Result<(), SandboxError> {
        let Some(controller) = &self.controller else { return Ok(()) };
        self.prepared.size_terminal(controller);
        for request in controller.requests() {
            match request {
                Request::Signal(signal) => {
                    let sent = wire::send(&self.prepared.control, &ToSandbox::Signal(signal), &[]);
                    sent.map_err(SandboxError::lost("forwarding a signal"))?;
                }
                Request::Stop => {
                    let asked = wire::send(&self.prepared.control, &ToSandbox::Signal(libc::SIGTERM), &[]);
                    asked.map_err(SandboxError::lost("stopping"))?;
                    self.recorder.stopped = true;
                    self.deadline = self.deadline.min(Instant::now() + TERM_GRACE);
                }
                Request::Kill => {
                    self.end(Ending::Stopped);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn look_at_limits(&mut self) {
        if self.ending.is_some() {
            return;
        }
        if Instant::now() >= self.deadline {
            let stopped = self.recorder.stopped;
            self.end(if stopped { Ending::Stopped } else { Ending::Limit { limit: LimitKind::WallTime } });
        } else if let Some(limit) = self.disk.as_mut().and_then(|disk| disk.passed(&self.prepared.quota)) {
            self.end(Ending::Limit { limit });
        }
    }

    fn finish(self, elapsed: Duration) -> (Ending, Recorder, Duration, Option<Gateway>) {
        let stopped = self.recorder.stopped;
        let ending = match self.ending {
            // A command that ends on the signal of a stop was stopped, however it reports that.
            Some(Ending::Signaled { .. }) if stopped => Ending::Stopped,
            Some(ending) => ending,
            None => Ending::Stopped,
        };
        (ending, self.recorder, self.wall_time.unwrap_or(elapsed), self.gateway)
    }
}

/// Reads a status of `waitpid(2)`.
fn ending_of(status: i32) -> Ending {
    if libc::WIFEXITED(status) {
        Ending::Exited { status: u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX) }
    } else {
        Ending::Signaled { signal: libc::WTERMSIG(status) }
    }
}
