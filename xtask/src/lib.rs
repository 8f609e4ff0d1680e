//! The tasks of this repository. They use the product as anybody would, by its command line.
//!
//! Guarantees: a task that reports success did everything that it names; nothing is skipped without a reason that
//! is printed.
//! Leaves to others: the tests themselves, which live in the crates.
#![forbid(unsafe_code)]

pub mod account;
pub mod apparmor;
pub mod artifacts;
pub mod bench;
pub mod cases;
pub mod check;
pub mod demo;
pub mod disarm;
pub mod graph;
pub mod guarantees;
pub mod guest;
pub mod markers;
pub mod repo;
pub mod run;
pub mod say;
pub mod scratch;
pub mod setup;
pub mod soak;
pub mod switches;
pub mod tally;
pub mod test;
