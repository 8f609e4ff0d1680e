//! Starts the launcher that is carried inside this library.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use launcher::plan::Plan;
use launcher::wire;
use model::Digest;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// The launcher, as the build script made it.
static LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher.bin"));
/// Its digest, taken when it was built.
const LAUNCHER_DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/launcher.sha256"));
/// What one socket message can carry beside the plan, the three streams, a network and an image.
const CGROUPS_MAX: usize = 4;

/// The launcher, started, with our end of the socket to it.
pub(crate) struct Launched {
    /// The socket. When it closes, everything inside ends.
    pub(crate) control: OwnedFd,
    /// The first stage; it leaves as soon as the first process exists.
    pub(crate) first_stage: Child,
}

/// What comes along with a plan.
pub(crate) struct Along<'a> {
    /// The command's streams.
    pub(crate) streams: &'a [OwnedFd; 3],
    /// The network to join, when there is one.
    pub(crate) network: Option<&'a OwnedFd>,
    /// The mount of the image behind all that is writable, when there is one.
    pub(crate) image: Option<BorrowedFd<'a>>,
    /// The control groups to enter.
    pub(crate) cgroups: &'a [OwnedFd],
}

/// Starts the launcher with a plan and what comes along with it.
///
/// The engine is never forked: without a closure to run in between, the standard library starts a program with
/// `posix_spawn(3)`, whose cost does not grow with our memory.
pub(crate) fn launch(plan: &Plan, along: &Along<'_>) -> io::Result<Launched> {
    let program = launcher_file()?;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    #[allow(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.env_clear();
    let mutant = plan.mutant.as_deref().filter(|_| cfg!(feature = "mutants"));
    if mutant == Some("environment") {
        command.env(crate::canary::VARIABLE, "seen");
    }
    // A duplicate that the child inherits: without one, leaving out the closing of descriptors would leave nothing open.
    let _inherited = if mutant == Some("descriptors") { Some(rustix::io::dup(program)?) } else { None };
    // A group of their own, so that all of them can be ended and waited for, and no terminal signals them.
    let first_stage = command
        .process_group(0)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let plan = sealed_file("fumehood-plan", &postcard::to_allocvec(plan).map_err(io::Error::other)?)?;
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![plan.as_fd()];
    descriptors.extend(along.streams.iter().chain(along.network).map(AsFd::as_fd));
    descriptors.extend(along.image);
    descriptors.extend(along.cgroups.iter().take(CGROUPS_MAX).map(AsFd::as_fd));
    let count = u32::try_from(descriptors.len()).map_err(io::Error::other)?;
    wire::send(&ours, &count, &descriptors)?;
    Ok(Launched { control: ours, first_stage })
}

/// Returns the launcher as a sealed file in memory: what is started is what was built, and nothing that runs later
/// can write to it (CVE-2019-5736 was a program of the host rewritten through `/proc/PID/exe`).
fn launcher_file() -> io::Result<&'static File> {
    static FILE: OnceLock<File> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return Ok(file);
    }
    if Digest::of(LAUNCHER).to_string() != LAUNCHER_DIGEST {
        return Err(io::Error::other("the launcher inside this program is not the one that was built"));
    }
    let file = sealed_file("fumehood-launcher", LAUNCHER)?;
    Ok(FILE.get_or_init(|| file))
}

/// Makes a file in memory that can be read from its start and never be changed.
fn sealed_file(name: &str, contents: &[u8]) -> io::Result<File> {
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(fd);
    file.write_all(contents)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}
