//! Things outside that the prober must not reach, each of which really is there: the positive controls of the proof.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use launcher::plan::ProbeFacts;

use crate::network;
use crate::sys::SharedSegment;

/// A variable that the launcher would have, if it were started with an environment.
pub(crate) const VARIABLE: &str = "FUMEHOOD_CANARY";

/// The canaries of one run.
pub(crate) struct Canaries {
    file: PathBuf,
    tcp: TcpListener,
    abstract_socket: UnixListener,
    abstract_name: Vec<u8>,
    path_socket: UnixListener,
    path: PathBuf,
    segment: Option<SharedSegment>,
}

impl Canaries {
    /// Puts the canaries into the directory of this run and onto the host's loopback.
    pub(crate) fn plant(run_directory: &Path) -> io::Result<Self> {
        let file = run_directory.join("canary");
        fs::write(&file, "not for the sandbox\n")?;
        let path = run_directory.join("canary.sock");
        let abstract_name = [b"fumehood-canary-", run_directory.as_os_str().as_bytes()].concat();
        // An abstract name has at most 107 bytes; the end of the directory is what tells runs apart.
        let abstract_name = abstract_name[abstract_name.len().saturating_sub(100)..].to_vec();
        let canaries = Self {
            tcp: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
            abstract_socket: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?,
            path_socket: bind_below(run_directory, &path)?,
            segment: SharedSegment::new().ok(),
            file,
            abstract_name,
            path,
        };
        canaries.tcp.set_nonblocking(true)?;
        canaries.abstract_socket.set_nonblocking(true)?;
        canaries.path_socket.set_nonblocking(true)?;
        Ok(canaries)
    }

    /// Returns what the prober needs to know.
    pub(crate) fn facts(&self) -> io::Result<ProbeFacts> {
        Ok(ProbeFacts {
            canary_file: self.file.as_os_str().as_bytes().to_vec(),
            canary_process: std::process::id().cast_signed(),
            listener_v4: self.tcp.local_addr()?.port(),
            listener_abstract: self.abstract_name.clone(),
            listener_path: self.path.as_os_str().as_bytes().to_vec(),
            canary_variable: VARIABLE.to_owned(),
            host_cgroup_namespace: rustix::fs::stat("/proc/self/ns/cgroup")?.st_ino,
            host_network_namespace: network::host_namespace()?,
            canary_segment: self.segment.as_ref().map(SharedSegment::id),
            ..ProbeFacts::default()
        })
    }

    /// Shows that a canary is really there, and that nobody from inside was at it; says what was seen.
    ///
    /// The listeners are asked from outside after the prober is done: the first to be heard must be ourselves.
    pub(crate) fn control(&self, probe: &str) -> Option<Result<String, String>> {
        let seen = match probe {
            "canary-file" => fs::read(&self.file).map(|_| "the file is there".to_owned()),
            "host-process" => Ok("the supervisor lives".to_owned()),
            "host-loopback" => self.tcp_answers(),
            "abstract-socket" => self.abstract_answers(),
            "path-socket" => self.path_answers(),
            "host-segment" => Ok("the segment is there".to_owned()),
            _ => return None,
        };
        Some(seen.map_err(|error| error.to_string()))
    }

    fn tcp_answers(&self) -> io::Result<String> {
        nobody_came(self.tcp.accept().map(|_| ()))?;
        let _us = TcpStream::connect(self.tcp.local_addr()?)?;
        self.tcp.accept().map(|_| "the listener answers outside and saw nothing from inside".to_owned())
    }

    fn abstract_answers(&self) -> io::Result<String> {
        nobody_came(self.abstract_socket.accept().map(|_| ()))?;
        let _us = UnixStream::connect_addr(&self.abstract_socket.local_addr()?)?;
        self.abstract_socket
            .accept()
            .map(|_| "the listener answers outside and saw nothing from inside".to_owned())
    }

    fn path_answers(&self) -> io::Result<String> {
        nobody_came(self.path_socket.accept().map(|_| ()))?;
        Ok("the listener is there and saw nothing from inside".to_owned())
    }
}

/// Says that nobody connected; anybody who did came from inside.
fn nobody_came(accepted: io::Result<()>) -> io::Result<()> {
    match accepted {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(io::Error::other("somebody connected from inside")),
    }
}

/// Binds a socket by path, also where the path is longer than the 107 bytes that an address can hold.
fn bind_below(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(path).or_else(|_| {
        let directory = fs::File::open(directory)?;
        let name = path.file_name().unwrap_or_default();
        let short = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&directory));
        UnixListener::bind(Path::new(&short).join(name))
    })
}
