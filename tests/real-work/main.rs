//! Real work inside without special flags: the same exit codes and the same counts as outside.
//!
//! Each project is fetched outside (its name and version stand in the test), then the same command runs inside and
//! outside in the same directory. Bugs of such projects are mended by agents, our own and others. The tests say the same
//! things as root and as an ordinary user.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests start the program, and other people's tools beside it"
)]

mod bench;
mod bugs;
mod fixes;
mod managers;
mod others;
mod projects;
mod small;
