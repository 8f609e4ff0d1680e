//! The gate: turns an action and facts about it into a decision, and a recorded yes into a permit.
//!
//! Guarantees: only a Cedar policy says yes; every decision names the rules that made it; no policy, an empty,
//! broken or erring one denies everything; a [`Permit`] exists only where a decision allowed exactly that action
//! and the audit log holds that decision. The gate asks no clock, file, network or environment: time and state
//! are arguments, so the same question always has the same answer.
//! Leaves to others: finding the facts (`engine`, `inspect`), keeping the record (`audit`), holding the walls
//! (`sandbox`), and showing that the policy itself is right.
#![forbid(unsafe_code)]

mod apply;
mod bare;
mod bundles;
mod dead;
mod decision;
mod error;
mod example;
mod facts;
mod gate;
mod heads;
mod obligation;
mod policy;
mod question;
mod reading;
mod rule;
mod said;
mod settled;
pub mod stages;
mod trace;
mod words;

pub use apply::{Apply, ApplyMode, ApplySource};
pub use bare::{BareAnswer, BareQuestion, cedar_schema};
pub use bundles::{BUNDLES, DEFAULT_BUNDLE};
pub use dead::DeadRule;
pub use decision::{
    Answer, ApprovalRequest, Authorization, Decision, Denial, Granted, Permit, ReceiptMismatch, Subject,
};
pub use error::{GateError, RulePlace};
pub use example::{Example, Expected};
pub use facts::{Approval, Classes, Facts, Halted, OtherAction, Progress, Remembered};
pub use gate::{Gate, LayerOf};
pub use policy::{Policy, SCHEMA};
pub use question::controls;
pub use reading::Reading;
pub use said::Said;
pub use trace::{LayerAnswer, LayerSays, LiftedBy, Traced, TracedRule};
