//! The prober: a copy of the very process that will become the command, after its last wall, which tries what must
//! fail and says what it saw. It judges nothing.
//!
//! Every probe performs an act. The calls that show the filter have useless arguments: where the filter lets them
//! through, the kernel fails later, with another error.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use launcher::message::{Observation, Saw};
use launcher::plan::{PROXY_PORT, Plan};
use launcher::wire;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socketpair};
use rustix::process::WaitOptions;

use crate::failure::{Context, Done, Failure};
use crate::root::path_of;
use crate::{sys, way_out};

/// One probe: its name in `docs/sandbox.md`, and the act.
type Probe = (&'static str, fn(&Plan) -> Saw);

/// Where only Landlock forbids to write: the mount allows it.
const LANDLOCK_CANARY: &str = launcher::plan::LANDLOCK_CANARY;
/// An address that no packet may reach: the metadata service of clouds.
const METADATA: [u8; 4] = [169, 254, 169, 254];

const PROBES: &[Probe] = &[
    ("canary-file", |plan| open(&plan.probe.canary_file, OFlags::RDONLY)),
    ("root-write", |_| create(b"/.fumehood-probe")),
    ("system-write", |_| create(b"/usr/.fumehood-probe")),
    ("landlock-write", |_| create(format!("{LANDLOCK_CANARY}/probe").as_bytes())),
    ("masked-file", |plan| match &plan.probe.masked_file {
        Some(path) => open(path, OFlags::RDONLY),
        None => Saw::Text("nothing to mask".to_owned()),
    }),
    ("kernel-setting", |_| open(b"/proc/sys/kernel/core_pattern", OFlags::WRONLY)),
    ("kernel-settings-mount", |_| Saw::Number(u64::from(is_read_only("/proc/sys")))),
    ("kernel-memory", |_| open(b"/proc/kcore", OFlags::RDONLY)),
    // Everybody may read this one where it is not masked.
    ("kernel-keys", |_| open(b"/proc/keys", OFlags::RDONLY)),
    ("workspace-kind", |plan| {
        number(rustix::fs::statfs(path_of(&plan.probe.workspace)).map(|stat| stat.f_type as u64))
    }),
    ("user-namespaces-limit", |_| read_number("/proc/sys/user/max_user_namespaces")),
    ("control-groups", |_| number(rustix::fs::stat("/proc/self/ns/cgroup").map(|stat| stat.st_ino))),
    ("network", |_| number(rustix::fs::stat("/proc/self/ns/net").map(|stat| stat.st_ino))),
    ("host-process", |plan| call(libc::SYS_kill, [plan.probe.canary_process as u64, 0, 0, 0, 0, 0])),
    ("trace-first-process", |_| call(libc::SYS_ptrace, [PTRACE_SEIZE, 1, 0, 0, 0, 0])),
    ("read-first-process", |_| open(b"/proc/1/mem", OFlags::RDONLY)),
    ("descriptor-of-first-process", |_| take_descriptor_of_first()),
    ("host-loopback", |plan| connect_v4([127, 0, 0, 1], plan.probe.listener_v4, SocketFlags::empty())),
    ("metadata-address", |_| connect_v4(METADATA, 80, SocketFlags::NONBLOCK)),
    ("abstract-socket", |plan| connect_unix(&[b"\0", plan.probe.listener_abstract.as_slice()].concat())),
    ("foreign-abstract-socket", |plan| match &plan.probe.listener_outside_landlock {
        Some(name) => connect_unix(&[b"\0", name.as_slice()].concat()),
        None => Saw::Text("a network of its own".to_owned()),
    }),
    ("path-socket", |plan| connect_unix(&plan.probe.listener_path)),
    ("host-segment", |plan| match plan.probe.canary_segment {
        Some(id) => segment_status(id),
        None => Saw::Text("no segment could be made outside".to_owned()),
    }),
    ("host-name", |_| Saw::Text(host_name())),
    ("change-root", |_| change_root()),
    ("gain-privilege", |_| prctl(libc::PR_GET_NO_NEW_PRIVS)),
    ("capabilities", |_| Saw::Number(capabilities_left())),
    ("descriptors", |_| Saw::Number(descriptors_left())),
    ("environment", |plan| Saw::Number(u64::from(has_variable(&plan.probe.canary_variable)))),
    ("controlling-terminal", |_| open(b"/dev/tty", OFlags::RDWR | OFlags::NOCTTY)),
    ("own-session", |_| Saw::Number(u64::from(is_own_session()))),
    ("foreign-table", |_| foreign_call()),
    ("groups", |_| number(rustix::process::getgroups().map(|groups| groups.len() as u64))),
    ("processes-limit", |_| limit(libc::RLIMIT_NPROC)),
    ("open-files-limit", |_| limit(libc::RLIMIT_NOFILE)),
    ("file-size-limit", |_| limit(libc::RLIMIT_FSIZE)),
    ("core-limit", |_| limit(libc::RLIMIT_CORE)),
    ("unlisted-program", |plan| match &plan.probe.unlisted_file {
        Some(path) => execute(path),
        None => Saw::Text("everything that is shown may be executed".to_owned()),
    }),
    ("written-code", |plan| match plan.programs {
        Some(_) => Saw::Number(places_with_code(plan)),
        None => Saw::Text("no list of programs".to_owned()),
    }),
    ("file-in-memory", |plan| match plan.programs {
        Some(_) => call(libc::SYS_memfd_create, [c"probe".as_ptr() as u64, 0, 0, 0, 0, 0]),
        None => Saw::Text("no list of programs".to_owned()),
    }),
    ("store-bytes", |_| number(rustix::fs::statvfs("/tmp").map(|stat| stat.f_blocks * stat.f_frsize))),
    ("store-files", |_| number(rustix::fs::statvfs("/tmp").map(|stat| stat.f_files))),
];

/// What is tried in a network with a way out, beside all else.
const WAY_OUT_PROBES: &[Probe] = &[
    ("other-address", |plan| connect_other(plan, &OTHERS, SocketType::STREAM)),
    ("other-address-datagram", |plan| connect_other(plan, &OTHERS, SocketType::DGRAM)),
    ("other-address-v6", |plan| connect_other(plan, &OTHERS_V6, SocketType::STREAM)),
    ("other-address-v6-datagram", |plan| connect_other(plan, &OTHERS_V6, SocketType::DGRAM)),
    ("metadata-datagram", |plan| {
        connect_other(plan, &[IpAddr::V4(Ipv4Addr::from_octets(METADATA))], SocketType::DGRAM)
    }),
    ("change-routes", |_| saw(way_out::try_to_route(Ipv4Addr::from_octets(METADATA)))),
    ("low-port", |_| take_port(FREE_LOW_PORT)),
    ("proxy-port", |_| take_port(PROXY_PORT)),
];

/// Addresses of networks that exist in documents only (RFC 5737, RFC 3849); a rule that names one leaves the others.
const OTHERS: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
];
const OTHERS_V6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1)),
];
/// A port that nothing of ours listens at.
const FREE_LOW_PORT: u16 = 1;

/// `PTRACE_SEIZE` (`linux/ptrace.h`): attaches without stopping.
const PTRACE_SEIZE: u64 = 0x4206;

/// Lets a copy of this process try everything, and returns what it saw.
pub(crate) fn run(plan: &Plan) -> Done<Vec<Observation>> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .during("prober", "socket")?;
    let child = sys::fork().during("prober", "fork")?;
    if child == 0 {
        drop(ours);
        let sent = wire::send(&theirs, &observe(plan), &[]);
        sys::exit_now(i32::from(sent.is_err()))
    }
    drop(theirs);
    let received = wire::receive::<Vec<Observation>>(&ours).during("prober", "receive")?;
    rustix::process::waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty())
        .during("prober", "wait")?;
    received
        .map(|(observations, _)| observations)
        .ok_or_else(|| Failure::new("prober", "it ended without a word"))
}

fn observe(plan: &Plan) -> Vec<Observation> {
    let try_one = |(name, act): &Probe| Observation { probe: (*name).to_owned(), saw: act(plan) };
    let filter = plan.filter_probes.iter().map(|probe| Observation {
        probe: probe.name.clone(),
        saw: call(probe.call.into(), probe.arguments),
    });
    let way_out = WAY_OUT_PROBES.iter().filter(|_| plan.way_out.is_some());
    PROBES.iter().chain(way_out).map(try_one).chain(filter).collect()
}

fn saw<T>(result: Result<T, impl Into<std::io::Error>>) -> Saw {
    match result {
        Ok(_) => Saw::Done,
        Err(error) => Saw::Errno(error.into().raw_os_error().unwrap_or(0)),
    }
}

fn number(result: Result<u64, rustix::io::Errno>) -> Saw {
    result.map_or_else(|error| Saw::Errno(error.raw_os_error()), Saw::Number)
}

fn call(number: libc::c_long, arguments: [u64; 6]) -> Saw {
    saw(sys::try_call(number, arguments))
}

fn open(path: &[u8], flags: OFlags) -> Saw {
    saw(rustix::fs::open(path_of(path), flags | OFlags::CLOEXEC, Mode::empty()))
}

fn create(path: &[u8]) -> Saw {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    saw(rustix::fs::open(path_of(path), flags, Mode::from_raw_mode(0o600)))
}

fn prctl(option: i32) -> Saw {
    sys::prctl(option, 0, 0)
        .map_or_else(|error| Saw::Errno(error.raw_os_error().unwrap_or(0)), |value| Saw::Number(value as u64))
}

fn limit(resource: impl TryInto<u32>) -> Saw {
    let value = sys::rlimit(resource.try_into().unwrap_or(u32::MAX));
    value.map_or_else(|error| Saw::Errno(error.raw_os_error().unwrap_or(0)), Saw::Number)
}

fn is_read_only(path: &str) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

fn read_number(path: &str) -> Saw {
    match std::fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map_or(Saw::Text(text), Saw::Number),
        Err(error) => Saw::Errno(error.raw_os_error().unwrap_or(0)),
    }
}

fn take_descriptor_of_first() -> Saw {
    match sys::try_call(libc::SYS_pidfd_open, [1, 0, 0, 0, 0, 0]) {
        Ok(pidfd) => call(libc::SYS_pidfd_getfd, [pidfd as u64, 0, 0, 0, 0, 0]),
        // Then nothing was tried, whatever the error is.
        Err(error) => Saw::Text(format!("no descriptor of the process: {error}")),
    }
}

/// Connects to an address. On the loopback the answer comes at once; elsewhere nobody waits for one.
fn connect_v4(address: [u8; 4], port: u16, flags: SocketFlags) -> Saw {
    let connect = || {
        let flags = SocketFlags::CLOEXEC | flags;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddr::from((address, port)))
    };
    saw(connect())
}

/// Connects to the first of these that is no destination of the plan; nobody waits for an answer.
fn connect_other(plan: &Plan, addresses: &[IpAddr], kind: SocketType) -> Saw {
    let is_other = |address: &&IpAddr| plan.way_out.as_ref().is_none_or(|way| !way.leads_to(**address));
    let Some(address) = addresses.iter().find(is_other) else {
        return Saw::Text("rules name each of these addresses".to_owned());
    };
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None);
    saw(socket.and_then(|socket| connect(&socket, &SocketAddr::from((*address, 443)))))
}

/// Takes a port of the loopback.
fn take_port(port: u16) -> Saw {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
    saw(socket.and_then(|socket| rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))))
}

fn connect_unix(name: &[u8]) -> Saw {
    let connect_any = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match name {
            [0, name @ ..] => connect(&socket, &SocketAddrUnix::new_abstract_name(name)?),
            path => connect_by_path(&socket, path_of(path)),
        }
    };
    saw(connect_any())
}

/// Connects by a path. An address holds 107 bytes of it, so a longer one is gone through its directory.
fn connect_by_path(socket: &OwnedFd, path: &Path) -> Result<(), Errno> {
    match (SocketAddrUnix::new(path), path.parent(), path.file_name()) {
        (Err(Errno::NAMETOOLONG), Some(parent), Some(name)) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let parent = rustix::fs::open(parent, flags, Mode::empty())?;
            let short = Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name);
            connect(socket, &SocketAddrUnix::new(short)?)
        }
        (address, ..) => connect(socket, &address?),
    }
}

/// Asks for the status of a System V shared memory segment of the host.
fn segment_status(id: i32) -> Saw {
    // The kernel's `shmid64_ds` has 112 bytes on 64-bit machines.
    let mut status = [0u64; 32];
    call(libc::SYS_shmctl, [id as u64, libc::IPC_STAT as u64, status.as_mut_ptr() as u64, 0, 0, 0])
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn change_root() -> Saw {
    let root = c"/tmp";
    call(libc::SYS_chroot, [root.as_ptr() as u64, 0, 0, 0, 0, 0])
}

/// Counts the capabilities in the effective, permitted, inheritable and bounding sets.
fn capabilities_left() -> u64 {
    // What cannot be read is not taken for empty; the kernel answers EINVAL to a number that it does not know.
    let is_gone = |capability: &_| match sys::prctl(libc::PR_CAPBSET_READ, *capability, 0) {
        Ok(set) => set == 0,
        Err(error) => error.raw_os_error() == Some(libc::EINVAL),
    };
    let bounding = (0..64).filter(|capability| !is_gone(capability)).count();
    let sets = rustix::thread::capabilities(None);
    let held = sets.map_or(u32::MAX, |sets| {
        [sets.effective, sets.permitted, sets.inheritable].iter().map(|set| set.bits().count_ones()).sum()
    });
    bounding as u64 + u64::from(held)
}

/// Counts descriptors above the standard streams that `execve` would leave open.
fn descriptors_left() -> u64 {
    let stays = |fd: &u64| {
        match sys::try_call(libc::SYS_fcntl, [*fd, libc::F_GETFD as u64, 0, 0, 0, 0]) {
            Ok(flags) => flags & i64::from(libc::FD_CLOEXEC) == 0,
            // What cannot be looked at is not taken for closed.
            Err(error) => error.raw_os_error() != Some(libc::EBADF),
        }
    };
    let inherited = (3..1024).filter(stays).count() as u64;
    // The streams themselves must be there: an empty place could be filled by the next file that is opened.
    inherited + (0..3).filter(|fd| !is_open(*fd)).count() as u64
}

fn is_open(fd: u64) -> bool {
    sys::try_call(libc::SYS_fcntl, [fd, libc::F_GETFD as u64, 0, 0, 0, 0]).is_ok()
}

/// Tells whether the session began with the process that becomes the command, which is the parent here.
fn is_own_session() -> bool {
    rustix::process::getsid(None).ok() == rustix::process::getppid()
}

/// Lets a copy of this process make a call through the 32-bit table; the filter must end it with SIGSYS.
fn foreign_call() -> Saw {
    let tried = || {
        let child = sys::fork()?;
        if child == 0 {
            sys::exit_now(sys::call_through_32_bit_table());
        }
        let ended = rustix::process::waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty())?;
        Ok::<_, std::io::Error>(ended.and_then(|(_, status)| status.terminating_signal()))
    };
    match tried() {
        Ok(Some(signal)) => Saw::Number(u64::try_from(signal).unwrap_or(0)),
        Ok(None) => Saw::Done,
        Err(error) => Saw::Errno(error.raw_os_error().unwrap_or(0)),
    }
}

/// Lets a copy of this process become a program; its standard output goes nowhere.
fn execute(path: &[u8]) -> Saw {
    let tried = || {
        let child = sys::fork()?;
        if child == 0 {
            sys::exit_now(execute_in_silence(path));
        }
        let ended = rustix::process::waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty())?;
        Ok::<_, std::io::Error>(ended.and_then(|(_, status)| status.exit_status()))
    };
    match tried() {
        Ok(Some(errno)) if errno != 0 => Saw::Errno(errno),
        Ok(_) => Saw::Done,
        Err(error) => Saw::Errno(error.raw_os_error().unwrap_or(0)),
    }
}

fn execute_in_silence(path: &[u8]) -> i32 {
    let Ok(file) = std::ffi::CString::new(path) else { return libc::EINVAL };
    if let Ok(nowhere) = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()) {
        let _ = sys::duplicate_to(std::os::fd::AsFd::as_fd(&nowhere), 1, false);
    }
    sys::execute(&file, std::slice::from_ref(&file), &[]).raw_os_error().unwrap_or(libc::EIO)
}

/// Counts the places that can be written and out of which code could be mapped. In `/tmp` that is tried; elsewhere a
/// try would leave a trace, and the mount says it.
fn places_with_code(plan: &Plan) -> u64 {
    let of_kernel = |place: &&Vec<u8>| [&b"/dev"[..], b"/proc"].contains(&place.as_slice());
    let runs_code = |place: &&Vec<u8>| {
        let flags = rustix::fs::statvfs(path_of(place)).map(|stat| stat.f_flag);
        !flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC))
    };
    let places = plan.writable.iter().filter(|place| !of_kernel(place)).filter(runs_code).count() as u64;
    places + u64::from(maps_code("/tmp/.fumehood-probe"))
}

/// Writes a file and tries to map it as code.
fn maps_code(path: &str) -> bool {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::RWXU) else { return true };
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let arguments = [0, 4096, protection, libc::MAP_PRIVATE as u64, file.as_raw_fd() as u64, 0];
    let mapped = sys::try_call(libc::SYS_mmap, arguments).is_ok();
    rustix::fs::unlink(path).is_err() || mapped
}

fn has_variable(name: &str) -> bool {
    #[allow(clippy::disallowed_methods, reason = "the probe is about the environment")]
    let own = std::env::var_os(name).is_some();
    let first = std::fs::read("/proc/1/environ").unwrap_or_default();
    let needle = format!("{name}=");
    own || first.windows(needle.len().max(1)).any(|window| window == needle.as_bytes())
}
