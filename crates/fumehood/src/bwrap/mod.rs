//! The door for agents that call `bwrap`: bubblewrap's arguments, taken for what they mean.
//!
//! Guarantees: the result is never wider than a plain `fumehood run`, whatever was asked for; every argument is
//! honoured, narrowed and said, or refused; none is passed over in silence.
//! Leaves to others: the decision, the sandbox and the record, which are those of any other run.

mod map;
mod parse;
mod say;

pub use map::{Caller, Mapped, Refusal, Workspace, map};
pub use parse::{
    Access, BwrapError, BwrapRequest, EnvChange, Fresh, Operation, Parsed, parse, read_descriptor,
};
pub use say::{FATAL, denial, fatal, narrowed};
