//! The store through its public face: opening, rows, and the record under crashes, crowds and a full disk.
#![allow(clippy::unwrap_used)]

mod bench;
mod crash;
mod crowd;
mod fixture;
mod full;
mod open;
mod record;
mod rows;
