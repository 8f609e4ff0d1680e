//! What became of an order.

use audit::Receipt;
use gate::{ApprovalRequest, Denial};
use inspect::Held as HeldChange;
use inspect::Report;
use model::enforcement::{Held, Shortfall};
use model::event::DecisionRecord;
use model::evidence::{Observed, Probe, StepTime, Teardown};
use model::{ActionId, Ending, OsText, TaskId, Usage};
use sandbox::{Printed, Stream};

/// What became of an order. Each is an answer; only what kept us from answering is an error.
#[derive(Debug)]
pub enum Outcome {
    /// The policy said no.
    Denied {
        /// The action.
        action: ActionId,
        /// Why.
        denial: Denial,
    },
    /// The policy wants a person's yes.
    NeedsApproval {
        /// The action.
        action: ActionId,
        /// What is asked.
        request: ApprovalRequest,
    },
    /// It was allowed, and no sandbox that holds could be made. Nothing ran.
    NotStarted(NotStarted),
    /// It ran.
    Finished(Box<Finished>),
}

/// Why an allowed action did not start.
#[derive(Debug)]
pub struct NotStarted {
    /// The action.
    pub action: ActionId,
    /// The reason, for people, with what the kernel said.
    pub reason: String,
    /// Layers that could not be held.
    pub shortfalls: Vec<Shortfall>,
    /// Probes that did not hold.
    pub failed_probes: Vec<Probe>,
}

/// An action that ran.
#[derive(Debug)]
pub struct Finished {
    /// The action.
    pub action: ActionId,
    /// Its task.
    pub task: TaskId,
    /// What was decided.
    pub decision: DecisionRecord,
    /// How it ended.
    pub ending: Ending,
    /// What it used.
    pub usage: Usage,
    /// What was seen.
    pub observed: Observed,
    /// How each layer was held.
    pub held: Vec<Held>,
    /// What the prober saw.
    pub probes: Vec<Probe>,
    /// Files that were masked.
    pub masked: Vec<OsText>,
    /// How long each step took.
    pub steps: Vec<StepTime>,
    /// What it printed.
    pub printed: Vec<(Stream, Printed)>,
    /// What it changed.
    pub report: Report,
    /// What must wait for a person, or stay.
    pub held_back: Vec<HeldChange>,
    /// What of a live base the host edited meanwhile, as far as that was seen.
    pub host_edits: Vec<OsText>,
    /// What was found when the sandbox was gone.
    pub teardown: Teardown,
    /// The receipt of its last event.
    pub receipt: Receipt,
}

impl Finished {
    /// Returns what was kept of a stream as text; what is not UTF-8 is replaced.
    pub fn text(&self, stream: Stream) -> String {
        let found = self.printed.iter().find(|(known, _)| *known == stream);
        found.map(|(_, printed)| String::from_utf8_lossy(&printed.kept()).into_owned()).unwrap_or_default()
    }

    /// Returns the last line that it printed as errors, so that it cannot drive a terminal.
    pub fn last_error(&self) -> String {
        let said = self.text(Stream::Err);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        model::text::escape(last).into_owned()
    }
}
