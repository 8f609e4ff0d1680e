//! The launcher: builds one sandbox from a plan, proves it, and is its first process until the command ends.
//!
//! It is started without an environment, with a socket to the supervisor as standard input. It guarantees that
//! the command runs only after every step was done and the supervisor said so, and that everything inside ends
//! with it. It leaves all judgement to the supervisor.

mod confine;
mod failure;
mod first;
mod identity;
mod listed;
mod mutant;
mod netlink;
mod network;
mod notify;
mod outer;
mod prober;
mod rename;
mod root;
mod runner;
mod steps;
mod sys;
mod turned;
mod watch;
mod way_out;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A first process cannot be ended by a signal that it sends itself, so an abort would spin; leaving ends the
    // sandbox, which is what a broken first process must do.
    std::panic::set_hook(Box::new(|_| sys::exit_now(125)));
    match outer::run() {
        Ok(()) => ExitCode::SUCCESS,
        // The supervisor has the reason already, when it was there to hear it.
        Err(_) => ExitCode::from(125),
    }
}
