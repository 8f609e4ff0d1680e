//! x

pub mod view;
