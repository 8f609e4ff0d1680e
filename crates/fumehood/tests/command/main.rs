//! The verbs with the real program, in real sandboxes. Works as root and as an ordinary user; needs git.
#![allow(clippy::disallowed_methods, reason = "the tests start the program")]

mod apply;
mod approvals;
mod bench;
mod bwrap;
mod commits;
mod credentials;
mod denials;
mod disguises;
mod elsewhere;
mod history;
mod intake;
mod joining;
mod network;
mod packages;
mod policy;
mod policy_tools;
mod programs;
mod record;
mod redaction;
mod retention;
mod roles;
mod run;
mod servers;
mod stages;
mod stop;
mod terminal;
mod threats;
