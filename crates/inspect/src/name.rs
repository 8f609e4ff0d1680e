//! Names of files as people and file systems may spell them, and patterns that match them.

mod fold;
mod pattern;

pub(crate) use fold::folded_names;
pub(crate) use pattern::{Pattern, Patterns};
