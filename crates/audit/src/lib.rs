//! The record: an append-only chain of events that shows when one was edited, dropped, swapped, duplicated or cut.
//!
//! Guarantees: a [`Receipt`] exists only for an event that a storage said is durable; every record carries the
//! digest of the one before it, back to a value that names the log; [`verify()`] names the first record that is not
//! as it was written, reads any bytes without a panic, and holds one record in memory at a time.
//!
//! Leaves to others: where records are kept (a [`Storage`]; the one on a disk is in `engine`), what time it is, and
//! keeping a [`Head`] or a signed [`Checkpoint`] where whoever writes the log cannot reach it. Without one the check can
//! only say that the log agrees with itself: whoever knows the format can write another one that does, too.
#![forbid(unsafe_code)]

pub mod merkle;
pub mod ocsf;

mod anchors;
mod checkpoint;
mod error;
mod export;
mod head;
mod log;
mod memory;
mod proof;
mod prune;
mod receipt;
mod record;
mod signing;
mod stages;
mod storage;
mod summary;
mod verify;
mod view;

pub use anchors::Anchors;
pub use checkpoint::{Checkpoint, CheckpointError, CheckpointsError, MAX_NOTE, read_checkpoints};
pub use error::AuditError;
pub use export::{ExportReader, MAX_LINE, export, verify_export};
pub use head::{Head, HeadError};
pub use log::{Entry, Log};
pub use memory::MemoryStorage;
pub use model::id::LogId;
pub use proof::{Proof, ProofError};
pub use prune::{Pruned, Stub};
pub use receipt::Receipt;
pub use record::{FORMAT, MAX_EVENT, Record, WHOLE};
pub use signing::{KeyError, PublicKey, SigningKey};
pub use stages::{BrokenChain, ChainEnd, ChainFlaw, Chains};
pub use storage::{Malformed, ReadError, Storage};
pub use verify::{Broken, Flaw, Verification, verify};
pub use view::{rfc3339, view};
