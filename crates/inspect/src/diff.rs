//! Differences between texts, for people and for programs.

mod merge;

pub use merge::merge_texts;
