//! What the supervisor outside and the launcher inside say to each other: the plan of a sandbox, and the
//! messages while it lives.
//!
//! The launcher builds nothing that is not in the plan, and decides nothing: whether a probe held is judged
//! outside, from what the prober observed.

pub mod message;
pub mod plan;
pub mod wire;
