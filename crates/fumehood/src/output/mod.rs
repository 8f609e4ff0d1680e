//! What people and programs read: two streams, text and JSON.
//!
//! Guarantees: what came from outside is escaped before it reaches a terminal, and the JSON shapes are those of
//! `docs/schemas`. Leaves to others: what is true; everything here only shows values that it is given.

mod console;
mod lines;
mod progress;
mod style;

pub mod render;
pub mod shape;

pub use console::{Console, json_line};
pub use lines::{Lines, To};
pub use progress::Progress;
pub use style::Paint;
