//! The command `fumehood`: arguments, settings, output and exit codes.
//!
//! Guarantees: this is the only crate that prints and the only one that reads the environment.
//! Leaves to others: everything that decides, records or runs; see `engine`.
#![forbid(unsafe_code)]

pub mod args;
pub mod bwrap;
pub mod exit;
pub mod output;
pub mod settings;
/// x
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
