//! Asking: what becomes of an action that policy lets run only with a person's yes.
//!
//! Guarantees: the very same thing is asked for once, however often it is tried, and a no to it stays a no until its time
//! is over; a task can have only so many requests that nobody answered. None of that ever allows anything.

use std::time::Duration;

use gate::{ApprovalRequest, Authorization, Decision};
use model::action::Action;
use model::event::Event;
use model::grant::Network;
use model::{ActionId, ApprovalId, ApprovalState, Quorum, Timestamp};

use super::moved::ground;
use crate::Engine;
use crate::clock::random;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::facts::PendingAction;
use crate::store::{StoreError, StoredApproval, Writer};

/// What to do where input would have to be part of the request.
const INPUT_AS_A_FILE: &str = "give it as a file of the workspace or with `--input`";
/// How long a request can be answered, and a yes be used. Whoever comes back the next morning finds it.
const HOLDS: Duration = Duration::from_hours(24);
/// The most requests of one task that wait at once: nobody reads more with care.
const MOST_OPEN: usize = 20;

/// What becomes of an action that needs a person's yes.
#[derive(Debug)]
pub(crate) enum Asks {
    /// A person is asked.
    New {
        /// The request.
        approval: Box<StoredApproval>,
        /// The yes of policy to a trial.
        trial: Option<Box<Authorization>>,
    },
    /// The very same thing was asked for before.
    Again(Box<StoredApproval>),
    /// Nobody is asked, for this reason.
    NotAsked(String),
}

impl Asks {
    /// Returns the event that records it.
    pub(crate) fn event(&self) -> Event {
        match self {
            Self::New { approval, .. } => Event::ApprovalAsked {
                approval: approval.id.clone(),
                digest: approval.digest,
                roles: approval.wanted.iter().map(ToString::to_string).collect(),
                owners: approval.owners.clone(),
                expires: approval.deadline.wall,
            },
            Self::Again(approval) => Event::ApprovalAskedAgain {
                approval: approval.id.clone(),
                state: approval.state,
                why: approval.why.clone(),
            },
            Self::NotAsked(why) => Event::ApprovalNotAsked { why: why.clone() },
        }
    }

    /// Returns the yes of policy to a trial.
    pub(crate) fn trial(&self) -> Option<&Authorization> {
        match self {
            Self::New { trial, .. } => trial.as_deref(),
            Self::Again(_) | Self::NotAsked(_) => None,
        }
    }

    /// Returns the request that waits for the end of a trial.
    pub(crate) fn tried(&self) -> Option<&ApprovalId> {
        match self {
            Self::New { approval, trial: Some(_) } => Some(&approval.id),
            _ => None,
        }
    }

    /// Writes it down.
    pub(crate) fn write(
        &self,
        writer: &Writer<'_>,
        action: &ActionId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match self {
            Self::New { approval, trial } => {
                writer.insert_approval(approval)?;
                if trial.is_some() { writer.set_trial(action, now) } else { Ok(()) }
            }
            Self::Again(approval) => writer.repeat_approval(&approval.id),
            Self::NotAsked(_) => Ok(()),
        }
    }
}

impl Engine {
    /// Returns the yes that people gave to this very action and that can be used now. One that is about something that
    /// changed since is closed.
    pub(crate) fn given_to(
        &self,
        action: &Action,
        task: &model::task::Task,
    ) -> Result<Option<StoredApproval>, EngineError> {
        let digest = action.digest();
        let known = self.store().read(|reader| reader.approvals_for(&digest))?;
        if known.is_empty() {
            return Ok(None);
        }
        let now = Moment::now()?;
        let given = |approval: &StoredApproval| approval.state_at(&now) == ApprovalState::Given;
        let Some(approval) = known.into_iter().rfind(given) else { return Ok(None) };
        let asked = self.store().read(|reader| reader.find_action(approval.action.as_str()))?;
        let moved = self.moved_since(task, &asked, &approval)?;
        match moved.or_else(|| self.no_longer_given(&approval, &now)) {
            None => Ok(Some(approval)),
            Some(why) => {
                self.close(&approval, ApprovalState::Void, &why, &now)?;
                Ok(None)
            }
        }
    }

    /// Says whose yes is missing of a request that had all of them: an account may have lost its role since.
    fn no_longer_given(&self, approval: &StoredApproval, now: &Moment) -> Option<String> {
        let missing: Vec<String> = self.missing(approval, now).iter().map(Quorum::in_words).collect();
        (!missing.is_empty()).then(|| {
            format!("a yes to it does not count any longer: it needs one of {}", missing.join(" and of "))
        })
    }

    /// Decides what becomes of an action that needs somebody's yes.
    pub(crate) fn asks(
        &self,
        pending: &PendingAction,
        request: &ApprovalRequest,
    ) -> Result<Asks, EngineError> {
        let PendingAction { action, with_input, .. } = pending;
        if let (true, Some(why)) = (*with_input, self.not_to_be_tried(action)?) {
            return Ok(Asks::NotAsked(format!(
                "{why}, and what it reads is part of no request: {INPUT_AS_A_FILE}"
            )));
        }
        let now = Moment::now()?;
        let known = self.store().read(|reader| reader.approvals_for(&action.digest()))?;
        // What was given other input is something else.
        let known = known.into_iter().filter(|_| !with_input).filter(|approval| !approval.with_input);
        let before = known.rev().find(|approval| {
            let unanswered = matches!(
                approval.state_at(&now),
                ApprovalState::Trying | ApprovalState::Open | ApprovalState::Given
            );
            let refused = approval.state == ApprovalState::Refused;
            unanswered || (refused && !approval.deadline.has_passed(approval.asked, &now))
        });
        if let Some(before) = before {
            return Ok(Asks::Again(Box::new(before)));
        }
        let open = self.store().read(|reader| reader.approvals(true))?;
        let waits = |approval: &&StoredApproval| {
            approval.task == *action.task() && !approval.state_at(&now).is_final()
        };
        if open.iter().filter(waits).count() >= MOST_OPEN {
            let why = format!("{MOST_OPEN} requests of the task wait for an answer already");
            return Ok(Asks::NotAsked(why));
        }
        self.new_request(pending, request, &now)
    }

    fn new_request(
        &self,
        pending: &PendingAction,
        request: &ApprovalRequest,
        now: &Moment,
    ) -> Result<Asks, EngineError> {
        let PendingAction { gate, action, facts, with_input, .. } = pending;
        let (trial, untried) = match self.not_to_be_tried(action)? {
            Some(why) => (None, Some(why.to_owned())),
            None => match gate.decide_trial(action.clone(), facts, request) {
                Decision::Allow(yes) | Decision::Narrow(yes) => (Some(Box::new(yes)), None),
                other => {
                    let reason = &other.record().reason;
                    (None, Some(format!("policy does not let it be tried ({reason})")))
                }
            },
        };
        let state = if trial.is_some() { ApprovalState::Trying } else { ApprovalState::Open };
        let approval = StoredApproval {
            id: ApprovalId::from_random(random()?),
            task: action.task().clone(),
            action: action.id().clone(),
            digest: action.digest(),
            what: request.what().to_owned(),
            wanted: request.quorums().clone(),
            owners: self.config().owners.clone(),
            state,
            asked: now.wall,
            deadline: now.plus(HOLDS),
            untried,
            ground: ground(action.start().workspace.as_path(), &action.grant().inputs),
            with_input: *with_input,
            repeats: 0,
            answers: Vec::new(),
            why: None,
            closed: None,
        };
        Ok(Asks::New { approval: Box::new(approval), trial })
    }
}

impl Engine {
    /// Says why an action is not tried before a person is asked: what it would do then is not what it does with the yes, or
    /// could not be told to be the same.
    fn not_to_be_tried(&self, action: &Action) -> Result<Option<&'static str>, EngineError> {
        let why = not_to_be_tried(action);
        // What is kept of it is another action: it cannot be put together again when the yes comes.
        Ok(if why.is_none() && !self.keeps_whole(action)? {
            Some("it holds a secret, which is not kept")
        } else {
            why
        })
    }

    /// Tells whether what is kept of an action is all of it.
    fn keeps_whole(&self, action: &Action) -> Result<bool, EngineError> {
        let request = self.store().as_kept("a request", action.request())?;
        Ok(request.is_none() && self.store().as_kept("a grant", action.grant())?.is_none())
    }
}

fn not_to_be_tried(action: &Action) -> Option<&'static str> {
    let grant = action.grant();
    if grant.network != Network::Loopback {
        return Some("it asks for another network than its own");
    }
    if !grant.shown_credentials.is_empty() {
        return Some("it asks to see credentials");
    }
    if grant.terminal {
        return Some("it asks for a terminal");
    }
    if !action.request().environment.is_empty() {
        return Some("it is given variables, whose values are not kept");
    }
    None
}
