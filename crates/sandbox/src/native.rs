//! The native backend: builds a sandbox with the kernel's own means, and proves it before anything runs in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use launcher::message::{FromSandbox, Observation};
use launcher::wire;
use model::enforcement::{Held, Shortfall};
use model::evidence::{Probe, StepTime};
use model::{Event, Grant, OsText};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};

use crate::canary::Canaries;
use crate::error::SandboxError;
use crate::gateway::Gateway;
use crate::groups::Groups;
use crate::held::{self, Facts};
use crate::launch::Along;
use crate::network::Door;
use crate::quota::Quota;
use crate::reads::ReadWatch;
use crate::spec::Spec;
use crate::{fail_point, launch, network, plan, proof, wait};

/// How long building and proving may take. It takes milliseconds; only a stuck file system takes longer.
const BUILD_TIMEOUT: Duration = Duration::from_secs(60);

/// A sandbox that is built and proved, and in which nothing has run yet. Dropping it ends it.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) control: OwnedFd,
    pub(crate) first_process: FirstProcess,
    pub(crate) streams: Streams,
    pub(crate) store: Option<OwnedFd>,
    pub(crate) spec: Spec,
    pub(crate) grant: Grant,
    pub(crate) environment: BTreeMap<String, OsText>,
    pub(crate) report: Report,
    pub(crate) groups: Groups,
    /// What holds the limits for bytes and files.
    pub(crate) quota: Quota,
    /// Watches the files that are opened, where that can be had.
    pub(crate) reads: Option<ReadWatch>,
    /// Where others get its network, when that is its own.
    pub(crate) door: Option<Door>,
    /// The way out of its network, when it has one.
    pub(crate) gateway: Option<Gateway>,
}

/// Our ends of the command's streams.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Where to write what the command reads.
    pub(crate) stdin: Option<OwnedFd>,
    /// Where to read what it prints.
    pub(crate) stdout: Option<OwnedFd>,
    /// Where to read what it prints as errors.
    pub(crate) stderr: Option<OwnedFd>,
    /// The terminal, which takes the place of all three.
    pub(crate) terminal: Option<OwnedFd>,
}

/// What is known of a sandbox before anything runs in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How each layer is held.
    pub held: Vec<Held>,
    /// What the prober tried and saw.
    pub probes: Vec<Probe>,
    /// How long each step of building took.
    pub steps: Vec<StepTime>,
    /// That its gateway serves, when it has one.
    pub gateway: Option<Event>,
}

/// Builds a sandbox and proves it.
///
/// # Errors
/// When the host cannot hold what the profile demands, a step fails or a probe does not hold. Nothing ran then.
pub fn prepare(spec: Spec) -> Result<Prepared, SandboxError> {
    let start = Instant::now();
    if spec.grant.network.joined() != spec.joined.as_ref().map(|joined| &joined.action) {
        return Err(SandboxError::OtherGrant);
    }
    let mut gateway = Gateway::start(&spec)?;
    let mut quota = Quota::of(&spec)?;
    fail_point::reached("build: its store is made");
    make_directories(&spec, &quota)?;
    fail_point::reached("build: its directories are made");
    let joined = network::granted(&spec)?;
    let canaries = Canaries::plant(&spec.run_directory).map_err(SandboxError::prepare("canaries"))?;
    let facts = canaries.facts().map_err(SandboxError::prepare("canaries"))?;
    let groups = Groups::make(&spec.grant.profile, spec.service_manager.as_deref())?;
    fail_point::reached("build: its control groups are made");
    let facts = network::add_facts(facts, joined.as_ref()).map_err(SandboxError::prepare("network"))?;
    let plan = plan::plan(&spec, facts, &groups, &quota);
    let (theirs, ours) = streams(&spec).map_err(SandboxError::prepare("streams"))?;
    let planned = start.elapsed();
    let without = without_image(&spec).map_err(SandboxError::prepare("launcher"))?;
    let along = Along {
        streams: &theirs,
        network: joined.as_ref(),
        image: without.as_ref().map(AsFd::as_fd).or(quota.mount()),
        cgroups: &entries(&spec, &groups)?,
    };
    let launched = launch::launch(&plan, &along).map_err(SandboxError::prepare("launcher"))?;
    drop((theirs, joined, without));
    fail_point::reached("build: the launcher is started");
    let mut first_stage = FirstStage { child: launched.first_stage, proved: false };
    let (first_process, proved) = first_stage.proof(&launched.control, gateway.as_mut())?;
    let files = spec.grant.profile.limits.files;
    quota.handed_over(files).map_err(SandboxError::prepare("image"))?;
    fail_point::reached("build: the prober has tried everything");
    let reads = ReadWatch::start(&spec, proved.first_process);
    let missing = reads.as_ref().err().map(ToString::to_string);
    let facts = Facts {
        landlock: proved.landlock,
        groups: &groups,
        quota: &quota,
        reads: missing,
        way_out: proved.way_out,
    };
    let held = held::held(&spec, &facts);
    refuse_shortfalls(&spec, &held)?;
    let mut probes = proof::judge(&proved.observations, &plan, &canaries);
    probes.extend(groups.proof());
    refuse_unproved(&probes)?;
    held::check_workspace_options(&proved.workspace_options)?;
    let serves = gateway.as_mut().map(|gateway| gateway.ready().map(|probes| gateway.started(probes)));
    let serves = serves.transpose()?;
    let door = Door::of(&spec, proved.network).map_err(SandboxError::prepare("network"))?;
    let mut steps = vec![StepTime { step: "plan".to_owned(), time: planned }];
    steps.extend(
        proved.steps.into_iter().map(|(step, nanos)| StepTime { step, time: Duration::from_nanos(nanos) }),
    );
    steps.push(StepTime { step: "proved".to_owned(), time: start.elapsed() });
    Ok(Prepared {
        control: launched.control,
        first_process,
        streams: Streams { terminal: proved.terminal, ..ours },
        store: proved.store,
        grant: spec.grant.clone(),
        environment: spec.view.environment.clone(),
        spec,
        report: Report { held, probes, steps, gateway: serves },
        groups,
        quota,
        reads: reads.ok(),
        door,
        gateway,
    })
}

/// Opens what the launcher writes to, to enter the control groups.
fn entries(spec: &Spec, groups: &Groups) -> Result<Vec<OwnedFd>, SandboxError> {
    let is_left_out = cfg!(feature = "mutants") && spec.mutant.as_deref() == Some("control-groups");
    if is_left_out { Ok(Vec::new()) } else { groups.entries() }
}

/// What a mutant does: a directory of the host in place of the image, which holds nothing.
fn without_image(spec: &Spec) -> std::io::Result<Option<OwnedFd>> {
    if !cfg!(feature = "mutants") || spec.mutant.as_deref() != Some("disk-image") {
        return Ok(None);
    }
    let directory = spec.run_directory.join("store");
    fs::create_dir_all(&directory)?;
    std::os::unix::fs::chown(&directory, Some(spec.identity.uid), Some(spec.identity.gid))?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(Some(open_tree(CWD, &directory, flags)?))
}

impl Prepared {
    /// Returns what is known before anything runs.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Notes how long it waited for its action.
    pub fn waited(&mut self, time: Duration) {
        self.report.steps.push(StepTime { step: "waited".to_owned(), time });
    }

    /// Tells whether its first process is still there: somebody outside may have ended it.
    pub fn is_alive(&self) -> bool {
        !wait::has_ended(self.first_process.pidfd())
    }
}

/// Makes the directories that the sandbox writes to, each owned by the run identity.
fn make_directories(spec: &Spec, quota: &Quota) -> Result<(), SandboxError> {
    let make = || {
        let layer = &spec.workspace.layer;
        let mut wanted = vec![spec.artifacts.clone(), spec.cache.clone(), layer.clone()];
        if !quota.is_store() {
            wanted.extend([layer.join("upper"), layer.join("work"), spec.run_directory.join("store")]);
            let git = spec.git_layer();
            wanted.extend(git.into_iter().flat_map(|git| [git.clone(), git.join("upper"), git.join("work")]));
        }
        for directory in wanted {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
            std::os::unix::fs::chown(&directory, Some(spec.identity.uid), Some(spec.identity.gid))?;
        }
        show_as(&layer.join("upper"), &spec.workspace.base)?;
        let git = spec.git_layer().zip(spec.git_directory.as_ref());
        git.map_or(Ok(()), |(layer, git)| show_as(&layer.join("upper"), &git.path))
    };
    make().map_err(SandboxError::prepare("directories of the run"))
}

/// Gives an upper directory the mode of what it lies over: the top of an overlay is shown with it.
fn show_as(upper: &Path, base: &Path) -> std::io::Result<()> {
    let top = fs::metadata(base)?.permissions().mode() & 0o7777;
    if upper.exists() { fs::set_permissions(upper, fs::Permissions::from_mode(top)) } else { Ok(()) }
}

/// Makes the command's streams: the launcher's ends, and ours.
fn streams(spec: &Spec) -> std::io::Result<([OwnedFd; 3], Streams)> {
    let none = || rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    if spec.grant.terminal {
        let ours = Streams { stdin: None, stdout: None, stderr: None, terminal: None };
        return Ok(([none()?, none()?, none()?], ours));
    }
    let (stdin, stdin_write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout_read, stdout) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr_read, stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // Opened by name, as `/dev/stderr`, a pipe asks for its owner like any file.
    if rustix::process::geteuid().is_root() {
        let (uid, gid) =
            (rustix::fs::Uid::from_raw(spec.identity.uid), rustix::fs::Gid::from_raw(spec.identity.gid));
        [&stdin, &stdout, &stderr]
            .into_iter()
            .try_for_each(|pipe| rustix::fs::fchown(pipe, Some(uid), Some(gid)))?;
    }
    let ours = Streams {
        stdin: Some(stdin_write),
        stdout: Some(stdout_read),
        stderr: Some(stderr_read),
        terminal: None,
    };
    Ok(([stdin, stdout, stderr], ours))
}

/// What the first process said when it was done.
struct Proved {
    observations: Vec<Observation>,
    steps: Vec<(String, u64)>,
    landlock: launcher::message::LandlockReport,
    workspace_options: String,
    store: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
    /// The number of the first process outside.
    first_process: i32,
    network: Option<OwnedFd>,
    /// Whether the way out of its network has IPv6, when there is one.
    way_out: Option<bool>,
}

/// The first process, as the first stage tells of it.
struct Born {
    process: FirstProcess,
    number: i32,
    network: OwnedFd,
}

/// The first stage of the launcher: a child that leaves as soon as the first process exists. Both are children of ours,
/// in a process group of their own.
struct FirstStage {
    child: Child,
    proved: bool,
}

impl FirstStage {
    /// Waits until the sandbox is built and the prober has tried everything. The first stage tells of the first process,
    /// which tells of the rest: nobody says which of the two is heard first.
    fn proof(
        &mut self,
        control: &OwnedFd,
        mut gateway: Option<&mut Gateway>,
    ) -> Result<(FirstProcess, Proved), SandboxError> {
        let deadline = Instant::now() + BUILD_TIMEOUT;
        let mut way_out = None;
        let (mut born, mut proved): (Option<Born>, Option<Proved>) = (None, None);
        loop {
            (born, proved) = match (born, proved) {
                (Some(Born { process, number, network }), Some(said)) => {
                    self.proved = true;
                    if gateway.is_some() != way_out.is_some() {
                        return Err(gone("the way out of the network"));
                    }
                    let network = Some(network);
                    return Ok((process, Proved { first_process: number, network, way_out, ..said }));
                }
                waiting => waiting,
            };
            wait::readable(control.as_fd(), deadline).map_err(SandboxError::prepare("launcher"))?;
            let message = wire::receive::<FromSandbox>(control).map_err(SandboxError::prepare("launcher"))?;
            let (message, fds) = message.ok_or_else(|| gone("the launcher"))?;
            let mut fds = fds.into_iter();
            match message {
                FromSandbox::Born { pid } => {
                    let pidfd = fds.next().ok_or_else(|| gone("the first process"))?;
                    let process = FirstProcess::new(pidfd);
                    let network = fds.next().ok_or_else(|| gone("the network"))?;
                    born = Some(Born { process, number: pid, network });
                }
                FromSandbox::Entrances { entrances, v6, last } => {
                    let gateway =
                        gateway.as_mut().ok_or_else(|| gone("the order of the launcher's messages"))?;
                    gateway.take(entrances, fds.collect(), last)?;
                    way_out = last.then_some(v6);
                }
                FromSandbox::Proved { observations, steps, landlock, workspace_options } => {
                    let (store, terminal) = match (fds.next(), fds.next()) {
                        (store, None) => (store, None),
                        both => both,
                    };
                    proved = Some(Proved {
                        observations,
                        steps,
                        landlock,
                        workspace_options,
                        store,
                        terminal,
                        first_process: 0,
                        network: None,
                        way_out: None,
                    });
                }
                FromSandbox::Failed { step, errno, about } => {
                    let source = std::io::Error::from_raw_os_error(errno);
                    return Err(SandboxError::Setup { step, errno, about, source });
                }
                _ => return Err(gone("the order of the launcher's messages")),
            }
        }
    }
}

impl Drop for FirstStage {
    fn drop(&mut self) {
        if !self.proved
            && let Some(group) = Pid::from_raw(self.child.id().cast_signed())
        {
            // Whatever became of the two, nobody may have told us of the first process: it goes with the group.
            let _ = kill_process_group(group, Signal::KILL);
            while waitpgid(group, WaitOptions::empty()).is_ok_and(|ended| ended.is_some()) {}
        }
        // It left as soon as the first process existed. It must not stay as a zombie.
        let _ = self.child.wait();
    }
}

/// The first process of a sandbox. When this value goes, everything inside has ended.
#[derive(Debug)]
pub(crate) struct FirstProcess {
    pidfd: OwnedFd,
    ended: bool,
}

impl FirstProcess {
    fn new(pidfd: OwnedFd) -> Self {
        Self { pidfd, ended: false }
    }

    /// Ends it and waits, so that everything inside has ended too.
    pub(crate) fn end(&mut self) {
        if !self.ended {
            wait::end_first_process(&self.pidfd);
            self.ended = true;
        }
    }

    /// Returns the descriptor that can be read when the process has ended.
    pub(crate) fn pidfd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for FirstProcess {
    fn drop(&mut self) {
        self.end();
    }
}

fn refuse_shortfalls(spec: &Spec, held: &[Held]) -> Result<(), SandboxError> {
    let short: Vec<Shortfall> = held::shortfalls(&spec.grant.profile, held);
    if short.is_empty() { Ok(()) } else { Err(SandboxError::NotEnforceable(short)) }
}

fn refuse_unproved(probes: &[Probe]) -> Result<(), SandboxError> {
    let failed: Vec<Probe> = probes.iter().filter(|probe| !probe.held).cloned().collect();
    if failed.is_empty() { Ok(()) } else { Err(SandboxError::NotProved(failed)) }
}

fn gone(what: &'static str) -> SandboxError {
    SandboxError::Prepare { step: what, source: std::io::ErrorKind::UnexpectedEof.into() }
}
