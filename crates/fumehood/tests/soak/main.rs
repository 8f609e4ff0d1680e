//! Many runs of the real program in a row, and many that are killed: nothing is left, nothing grows, and every action
//! comes to a recorded state. Works as root and as an ordinary user.
//!
//! What is compared are sets of identities and not counts: one thing that went and another that stayed would have the
//! same number. The small form runs with every change; `cargo xtask soak` asks for more through `FUMEHOOD_SOAK_RUNS` and
//! `FUMEHOOD_SOAK_KILLS`. Lines that begin with `soak: ` are the result.
#![allow(clippy::disallowed_methods, reason = "the tests start the program")]
#![allow(clippy::print_stdout, reason = "`cargo xtask soak` reads the result from there")]

mod applies;
mod bench;
mod identities;
mod kills;
mod memory;
mod runs;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The small form.
const RUNS: u32 = 200;
const KILLS: u32 = 30;

/// The tests look at all children of this process, so they take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // What outlives its parent becomes our child, wherever it is in the tree: nothing gets away unseen.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("the kernel can do that");
    turn
}

/// Returns how often something is done.
fn rounds(variable: &str, small: u32) -> u32 {
    let asked = std::env::var(variable).ok();
    asked.map_or(small, |number| number.parse().unwrap_or_else(|_| panic!("{variable} is no number")))
}

/// Says a line of the result.
fn say(line: &str) {
    println!("soak: {line}");
}
