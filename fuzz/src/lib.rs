//! Fuzz targets: one for each parser of bytes that somebody else wrote, and the driver that feeds them.
//!
//! Guarantees: a target that panics, that thinks for more than seconds, or that never answers, fails, and the input is
//! kept.
//! It is mutation without coverage: seeds that are committed are changed at random, and an input is kept to be changed
//! further when it leads to a kind of answer that no other led to. It finds less than a fuzzer that sees the branches
//! that were taken, and needs nothing but the pinned toolchain.
#![forbid(unsafe_code)]

pub mod driver;

mod gateway;
mod layer;
mod targets;

pub use targets::TARGETS;

/// A parser of foreign bytes. It answers with what came of it, in a few words, and panics when a promise is broken.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, which its seeds have too.
    pub name: &'static str,
    /// The parser.
    pub run: fn(&[u8]) -> String,
}
