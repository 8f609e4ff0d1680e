//! Being the gateway of a sandbox: the internal verb that a supervisor starts.

use std::fs;

use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use crate::exit::Exit;
use crate::output::Console;

/// Where the machine says which servers know names, and which it knows by itself.
const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// Is the gateway of a sandbox: standard input is the socket to its supervisor.
pub(super) fn process(console: &Console) -> Exit {
    let stdin = rustix::stdio::stdin();
    if socket_type(stdin) != Ok(SocketType::SEQPACKET) {
        console
            .say("fumehood: this is started by `run`, `shell` and `agent`, for what may reach the network");
        return Exit::Failed;
    }
    // One that is missing says nothing.
    let machine = egress::Machine::read(
        &fs::read(RESOLV_CONF).unwrap_or_default(),
        &fs::read(HOSTS).unwrap_or_default(),
    );
    match egress::serve(stdin, &machine, sandbox::service::confine_gateway) {
        Ok(()) => Exit::Success,
        Err(_) => Exit::Failed,
    }
}
