//! The store through its public face: opening, rows, and the record under crashes, crowds and a full disk.
#![allow(clippy::unwrap_used)]
// The tests start themselves again as other processes that work on the same store; nothing of it is in the product.
#![allow(clippy::disallowed_methods)]

mod bench;
mod contents;
mod crash;
mod crowd;
mod fixture;
mod full;
mod heads;
mod open;
mod record;
mod rows;
mod secrets;
