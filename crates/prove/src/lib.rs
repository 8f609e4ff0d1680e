//! Proofs about policies: what one never allows, what one allows beyond another, which rules decide nothing.
//!
//! Guarantees: "proved" is said only where a solver answered `unsat` for every kind of request that the schema knows
//! and that the claim is about; "refuted" only with a request that the real authorizer then allows as well. Whatever
//! else happens (no solver, out of time, an answer that cannot be read) is "not proved", with the reason.
//! Leaves to others: starting the solver ([`Solver`] is all that it is to this crate), and showing the answers.
#![forbid(unsafe_code)]

mod claim;
mod compare;
mod idle;
mod solver;
mod symbolic;

pub use claim::{Claim, ClaimError, Proof, Verdict, claims_of, shipped_claims};
pub use compare::{Difference, Side};
pub use idle::Idle;
pub use solver::Solver;
pub use symbolic::{Prover, Unproved};
