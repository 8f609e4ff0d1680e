//! The stages of a task as types: a stage exists only on the receipt of the one before it.
//!
//! INVARIANT: an [`At`] is made only out of the receipt of its own event, or of records whose chain was checked; it is spent by
//! going on, cannot be copied or written, and names the one stage that may follow. So there is no input with which a stage could
//! be done before the one that it rests on.
//!
//! ```compile_fail
//! use gate::stages::{At, Proposal, Review};
//! fn skipped(at: At<Proposal>, work: model::stage::StageWork) -> gate::stages::Pending<Review> {
//!     at.done(work)
//! }
//! ```
//! ```compile_fail
//! use gate::stages::{At, Execution};
//! fn twice(at: At<Execution>, work: model::stage::StageWork) {
//!     let _ = at.done(work);
//!     let _ = at.done(work);
//! }
//! ```
//! ```compile_fail
//! use gate::stages::{At, Approval};
//! fn copied(at: At<Approval>) -> (At<Approval>, At<Approval>) {
//!     (at.clone(), at)
//! }
//! ```
//! ```compile_fail
//! use gate::stages::{At, Inspection};
//! fn back(at: At<Inspection>, work: model::stage::StageWork) {
//!     let _ = at.again(work);
//! }
//! ```
//! ```compile_fail
//! use gate::stages::{At, Release};
//! fn past_the_end(at: At<Release>, work: model::stage::StageWork) {
//!     let _ = at.done(work);
//! }
//! ```
//! ```compile_fail
//! fn unrecorded(pending: gate::stages::Pending<gate::stages::Approval>) -> gate::stages::At<gate::stages::Approval> {
//!     pending.into()
//! }
//! ```
//! ```compile_fail
//! struct Own;
//! impl gate::stages::StageType for Own {
//!     const STAGE: model::stage::Stage = model::stage::Stage::Release;
//! }
//! ```

use std::fmt;
use std::marker::PhantomData;

use audit::{ChainEnd, Receipt};
use model::event::Event;
use model::intake::Ceiling;
use model::stage::{Stage, StageWork};
use model::{Digest, Subject, TaskId};

use crate::decision::ReceiptMismatch;

mod sealed {
    /// What only this module gives out.
    pub trait Sealed {}
}

/// A stage as a type.
pub trait StageType: sealed::Sealed {
    /// The stage.
    const STAGE: Stage;
}

/// A stage that another one follows on.
pub trait Before: StageType {
    /// The one that follows.
    type Next: StageType;
}

/// A stage from which work can go back to a proposal.
pub trait Works: StageType {}

/// A stage that was passed, in one round of one task.
#[must_use = "a stage that nobody goes on from leads nowhere"]
pub struct At<S> {
    task: TaskId,
    round: u32,
    receipt: Digest,
    stage: PhantomData<S>,
}

/// A stage that is done and not on the record yet.
#[must_use = "a stage that is not recorded was not passed"]
pub struct Pending<S> {
    task: TaskId,
    round: u32,
    work: StageWork,
    previous: Option<Digest>,
    stage: PhantomData<S>,
}

macro_rules! stages {
    ($($stage:ident),+) => {
        $(
            #[doc = concat!("[`Stage::", stringify!($stage), "`] as a type.")]
            #[derive(Debug, Clone, Copy)]
            pub enum $stage {}
            impl sealed::Sealed for $stage {}
            impl StageType for $stage {
                const STAGE: Stage = Stage::$stage;
            }
        )+

        /// Where a task stands, as its records say.
        #[derive(Debug)]
        pub enum Standing {
            $(
                #[doc = concat!("[`Stage::", stringify!($stage), "`] was passed last.")]
                $stage(At<$stage>),
            )+
        }

        impl Standing {
            /// Takes where a checked chain ends.
            pub fn of(end: &ChainEnd) -> Self {
                match end.stage() {
                    $(Stage::$stage => Self::$stage(At::of(end)),)+
                }
            }
        }
    };
}

stages!(Intake, Workspace, Inspection, Proposal, Execution, Verification, Review, Preview, Approval, Release);

macro_rules! order {
    ($($stage:ident => $next:ident),+ $(,)?) => {
        $(impl Before for $stage { type Next = $next; })+
    };
}

order!(
    Intake => Workspace,
    Workspace => Inspection,
    Inspection => Proposal,
    Proposal => Execution,
    Execution => Verification,
    Verification => Review,
    Review => Preview,
    Preview => Approval,
    Approval => Release,
);

macro_rules! works {
    ($($stage:ident),+) => { $(impl Works for $stage {})+ };
}

works!(Proposal, Execution, Verification, Review, Preview, Approval, Release);

/// Begins the chain of a task. Where there is one already, the record of it is refused.
pub fn begin(task: TaskId, work: StageWork) -> Pending<Intake> {
    Pending { task, round: 1, work, previous: None, stage: PhantomData }
}

impl<S: StageType> At<S> {
    fn of(end: &ChainEnd) -> Self {
        Self { task: end.task().clone(), round: end.round(), receipt: end.receipt(), stage: PhantomData }
    }
}

impl<S: Before> At<S> {
    /// Goes on to the next stage.
    pub fn done(self, work: StageWork) -> Pending<S::Next> {
        let Self { task, round, receipt, .. } = self;
        Pending { task, round, work, previous: Some(receipt), stage: PhantomData }
    }
}

impl<S: Works> At<S> {
    /// Goes back to a proposal, in a new round: what was passed since the last one is worth nothing there.
    pub fn again(self, work: StageWork) -> Pending<Proposal> {
        let Self { task, round, receipt, .. } = self;
        Pending { task, round: round.saturating_add(1), work, previous: Some(receipt), stage: PhantomData }
    }
}

impl<S: StageType> Pending<S> {
    /// Returns the event to append to the record, with what the stage may touch below a ceiling.
    pub fn event(&self, ceiling: &Ceiling) -> Event {
        Event::Stage {
            stage: S::STAGE,
            round: self.round,
            work: self.work,
            grant: S::STAGE.grant(ceiling),
            previous: self.previous,
        }
    }

    /// Returns what the event is about.
    pub fn about(&self) -> Subject {
        Subject { task: Some(self.task.clone()), action: None }
    }

    /// Passes the stage by the receipt of its event.
    ///
    /// # Errors
    /// When the receipt is for another event. The stage is not passed then.
    pub fn recorded(self, receipt: &Receipt, ceiling: &Ceiling) -> Result<At<S>, ReceiptMismatch> {
        if !receipt.covers_stage(&self.about(), &self.event(ceiling)) {
            return Err(ReceiptMismatch);
        }
        Ok(At { task: self.task, round: self.round, receipt: receipt.digest(), stage: PhantomData })
    }
}

impl<S: StageType> fmt::Debug for At<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At({} of {}, round {})", S::STAGE, self.task, self.round)
    }
}

impl<S: StageType> fmt::Debug for Pending<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({} of {}, round {})", S::STAGE, self.task, self.round)
    }
}
