//! The words that every other crate speaks: ids, actions, grants, limits, evidence and events.
//!
//! Guarantees: values of these types have passed parsing, and two different actions never share a digest.
//! Leaves to others: reading files, asking the clock, talking to the kernel. Nothing here does input or output.
#![forbid(unsafe_code)]

pub mod action;
pub mod approval;
pub mod change;
pub mod content;
pub mod digest;
pub mod effect;
pub mod egress;
pub mod enforcement;
pub mod event;
pub mod evidence;
pub mod grant;
pub mod hold;
pub mod id;
pub mod intake;
pub mod legal;
pub mod limits;
pub mod os_text;
pub mod outcome;
pub mod patch;
pub mod path;
pub mod pathspec;
pub mod profile;
pub mod quorum;
pub mod redaction;
pub mod retention;
pub mod stage;
pub mod task;
pub mod text;
pub mod units;

pub use action::{Action, ActionRequest, Tool};
pub use approval::ApprovalState;
pub use change::{Change, ChangeKind, FileKind};
pub use content::ContentClass;
pub use digest::{Canonical, Digest};
pub use effect::{DatabaseAccess, Effect, Place};
pub use egress::EgressRule;
pub use enforcement::{Layer, Level};
pub use event::{Event, Subject};
pub use grant::Grant;
pub use hold::{Hold, HoldScope};
pub use id::{ActionId, ApprovalId, HoldId, LegalHoldId, LogId, TaskId};
pub use legal::{LegalHold, LegalScope};
pub use limits::{LimitKind, Limits};
pub use os_text::OsText;
pub use outcome::{Ending, Usage};
pub use path::WorkspacePath;
pub use pathspec::Pathspecs;
pub use profile::{Profile, UnlistedProgram};
pub use quorum::Quorum;
pub use retention::{EventClass, KeptClass, RecordRange, RemovedOf};
pub use units::{Bytes, Timestamp};
