//! Requests for a person's yes: what people answer, and what comes of it.
//!
//! Guarantees: a yes covers one exact action (by its digest), once, until a fixed time, and only while what it was shown
//! about is as it was: the layers and the directory below it, and its inputs. What was tried is not run again: the layer
//! that was shown becomes the task's. A yes decides nothing by itself: policy is asked again with it. Every answer is on
//! the record, also one that is not taken.
//! Leaves to others: who the person at the keyboard is, and showing what a yes is about (`fumehood`).

mod asking;
mod elsewhere;
mod files;
mod moved;
mod people;

use std::collections::BTreeSet;

use audit::Entry;
use gate::{Decision, Gate};
use model::action::{Action, Principal};
use model::approval::{Answered, ApprovalAnswer};
use model::event::Event;
use model::task::{Task, TaskState};
use model::{
    ActionId, ActionRequest, ApprovalState, Grant, OsText, Profile, Quorum, Subject, TaskId, Timestamp,
};

use crate::Engine;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::layers::GIT_UPPER;
use crate::store::{ActionState, ClientProcess, StoredAction, StoredApproval, StoredRequest};

pub(crate) use asking::Asks;
pub use elsewhere::{ANSWER_FORMAT, NewAnswer, SignedAnswer};
pub use files::AnswersDirectory;
pub use people::{Progress, Roles};

/// Why a request is worth nothing that has nothing to show.
const CUT_OFF: &str = "its trial did not come to its end";

/// A person who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approver {
    /// The name by which the system knows them.
    pub name: String,
    /// The number of their account. One account is one person.
    pub account: u32,
    /// The name of the file that the answer stands in, when it comes from another account.
    pub file: Option<String>,
}

/// What came of a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Yes {
    /// The layer that was shown is the task's now.
    Kept,
    /// The same request may run, once, until this time.
    MayRun(Timestamp),
    /// Others must say yes too.
    StillNeeds(BTreeSet<Quorum>),
    /// It is worth nothing: what was shown is not any longer so, for this reason.
    Void(String),
}

impl Approver {
    fn principal(&self) -> Principal {
        Principal::User(self.name.clone())
    }
}

impl StoredApproval {
    /// Returns where it stands now: what nobody has closed may have expired.
    pub fn state_at(&self, now: &Moment) -> ApprovalState {
        if !self.state.is_final() && self.deadline.has_passed(self.asked, now) {
            ApprovalState::Expired
        } else {
            self.state
        }
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject { task: Some(self.task.clone()), action: Some(self.action.clone()) }
    }
}

/// By what an action is decided again, with the yes to it.
struct Deciding<'a> {
    gate: &'a Gate,
    profile: &'a Profile,
    now: &'a Moment,
}

impl Engine {
    /// Notes processes through which an agent came: nothing that descends from one may answer for a person.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn note_client(&self, name: &str, processes: &[ClientProcess]) -> Result<(), EngineError> {
        let now = Moment::now()?;
        self.store().write(|writer| writer.add_clients(&now.boot, name, processes, now.wall))?;
        Ok(())
    }

    /// Returns the processes through which agents came since this boot.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn clients(&self) -> Result<BTreeSet<ClientProcess>, EngineError> {
        let now = Moment::now()?;
        Ok(self.store().read(|reader| reader.clients(&now.boot))?)
    }

    /// Returns what an action wrote to the git repository of a linked worktree, by the names below that. It is part of the
    /// layer, and no change of the workspace.
    ///
    /// # Errors
    /// When the layer cannot be read.
    pub fn git_writes(&self, task: &TaskId, action: &ActionId) -> Result<Vec<OsText>, EngineError> {
        let top = self.places().layer(task, action).join(GIT_UPPER);
        let (mut found, mut open) = (Vec::new(), vec![top.clone()]);
        while let Some(directory) = open.pop() {
            for path in crate::recover::entries(&directory)? {
                let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
                if is_directory {
                    open.push(path);
                } else {
                    found.extend(path.strip_prefix(&top).ok().and_then(|name| OsText::try_from(name).ok()));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Records that an answer was not taken, and why.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn refuse_answer(
        &self,
        approval: &StoredApproval,
        by: &Approver,
        why: &str,
    ) -> Result<(), EngineError> {
        let (approval_id, file) = (approval.id.clone(), by.file.clone());
        let event =
            Event::ApprovalRefused { approval: approval_id, by: by.principal(), why: why.to_owned(), file };
        self.record(&approval.subject(), &event, |_, _| Ok(()))
    }

    /// Says yes to a request. `profile` is the one that its action names, as the settings have it now.
    ///
    /// # Errors
    /// When the request cannot be answered any longer, the person has none of its roles, its task is busy, or the state
    /// cannot be written.
    pub fn say_yes(
        &self,
        approval: &StoredApproval,
        by: &Approver,
        reason: Option<&str>,
        profile: &Profile,
    ) -> Result<Yes, EngineError> {
        let task = self.store().read(|reader| reader.find_task(approval.task.as_str()))?;
        let gate = self.gate_of_task(&task)?;
        let _alone = self.lock_idle(&approval.task)?;
        let now = Moment::now()?;
        let approval = self.answerable(approval, by, &[ApprovalState::Open], &now)?;
        let answer = self.yes_of(&approval, by, reason, &now)?;
        let stored = self.store().read(|reader| reader.find_action(approval.action.as_str()))?;
        if let Some(why) = self.is_over(&task, &stored, &approval)? {
            self.close(&approval, ApprovalState::Void, &why, &now)?;
            return Ok(Yes::Void(why));
        }
        let mut with_it = approval.clone();
        with_it.answers.push(answer.clone());
        let missing = self.missing(&with_it, &now);
        if !missing.is_empty() {
            self.keep_answer(&approval, &answer, ApprovalState::Open, &now)?;
            return Ok(Yes::StillNeeds(missing));
        }
        if approval.untried.is_some() {
            self.keep_answer(&approval, &answer, ApprovalState::Given, &now)?;
            let until = approval.deadline.by_the_clock_of(approval.asked, &now);
            return Ok(Yes::MayRun(until.unwrap_or(now.wall)));
        }
        let deciding = Deciding { gate: &gate, profile, now: &now };
        self.keep_layer(&task, &stored, &with_it, &answer, &deciding)
    }

    /// Puts a yes in the form in which it is kept, in every role that is wanted and that the person has.
    fn yes_of(
        &self,
        approval: &StoredApproval,
        by: &Approver,
        reason: Option<&str>,
        now: &Moment,
    ) -> Result<ApprovalAnswer, EngineError> {
        let wanted = approval.wanted.iter().map(|quorum| quorum.role().to_owned());
        let roles = wanted.filter(|role| self.config().roles.has(by.account, role)).collect();
        let answer = answer(by, Answered::Yes, roles, reason, now);
        let Some(why) = self.adds_nothing(approval, &answer, now) else { return Ok(answer) };
        let why = format!("{why}, and {} {}", by.name, self.is_not_that(approval, by));
        self.refuse_answer(approval, by, &why)?;
        Err(EngineError::Approval { approval: approval.id.clone(), why })
    }

    /// Says what is missing, when one more answer brings nothing of it nearer.
    fn adds_nothing(
        &self,
        approval: &StoredApproval,
        answer: &ApprovalAnswer,
        now: &Moment,
    ) -> Option<String> {
        let mut with_it = approval.clone();
        with_it.answers.push(answer.clone());
        let (before, after) = (self.progress(approval, now), self.progress(&with_it, now));
        let mut missing = before.iter().zip(&after).filter(|(before, _)| !before.is_enough());
        if missing.clone().any(|(before, after)| after.people.len() > before.people.len()) {
            return None;
        }
        let words: Vec<String> = missing.by_ref().map(|(before, _)| before.quorum.in_words()).collect();
        Some(format!("needs a yes of {}", words.join(" and of ")))
    }

    /// Says why somebody is not who is missing.
    fn is_not_that(&self, approval: &StoredApproval, by: &Approver) -> &'static str {
        let mut missing =
            approval.wanted.iter().filter(|quorum| self.config().roles.has(by.account, quorum.role()));
        let (has_role, is_owner) =
            (missing.clone().next().is_some(), self.owners_of(approval).contains(&by.account));
        match (has_role, is_owner && missing.any(Quorum::is_without_owner)) {
            (true, true) => "is the owner",
            (true, false) => "has said yes already",
            (false, _) => "does not have that role",
        }
    }

    /// Says no to a request, or takes it or the yes to it back.
    ///
    /// # Errors
    /// When the request cannot be answered any longer, or the state cannot be written.
    pub fn say_no(
        &self,
        approval: &StoredApproval,
        by: &Approver,
        answered: Answered,
        reason: Option<&str>,
    ) -> Result<(), EngineError> {
        let now = Moment::now()?;
        let (from, to): (&[ApprovalState], _) = match answered {
            Answered::TakenBack => (&[ApprovalState::Open, ApprovalState::Given], ApprovalState::Revoked),
            Answered::No | Answered::Yes => (&[ApprovalState::Open], ApprovalState::Refused),
        };
        let approval = self.answerable(approval, by, from, &now)?;
        let answer = answer(by, answered, BTreeSet::new(), reason, &now);
        let events = [
            Event::ApprovalAnswered { approval: approval.id.clone(), answer: answer.clone() },
            closed(&approval, to, reason.unwrap_or_default()),
        ];
        let mut is_held = true;
        let written = self.append(&approval, &events, &now, |writer| {
            writer.add_answer(&approval.id, &answer)?;
            is_held = writer.is_held(&approval.task, Some(&approval.action))?;
            writer.move_approval(&approval.id, from, to, reason, now.wall)
        });
        if written.is_err() {
            // Somebody may have been quicker: then that is what is said, and recorded.
            self.answerable(&approval, by, from, &now)?;
        }
        written?;
        if is_held { Ok(()) } else { self.remove_trial(&approval) }
    }

    /// Reads a request again, as it stands now, and refuses what can no longer be answered.
    fn answerable(
        &self,
        approval: &StoredApproval,
        by: &Approver,
        from: &[ApprovalState],
        now: &Moment,
    ) -> Result<StoredApproval, EngineError> {
        let approval = self.store().read(|reader| reader.find_approval(approval.id.as_str()))?;
        let state = approval.state_at(now);
        if from.contains(&state) {
            return Ok(approval);
        }
        let why = match state {
            ApprovalState::Trying => "is being tried: wait until that ended".to_owned(),
            ApprovalState::Open => "was not answered yet: there is nothing to take back".to_owned(),
            ApprovalState::Given => {
                "has its yes already: `fumehood approvals revoke` takes it back".to_owned()
            }
            ApprovalState::Expired => "has expired: it has to be asked for again".to_owned(),
            ended => format!("is {ended} already: it has to be asked for again"),
        };
        if state == ApprovalState::Expired && !approval.state.is_final() {
            self.expire(&approval, now)?;
        }
        self.refuse_answer(&approval, by, &why)?;
        Err(EngineError::Approval { approval: approval.id, why })
    }

    /// Keeps an answer that does not end the request.
    fn keep_answer(
        &self,
        approval: &StoredApproval,
        answer: &ApprovalAnswer,
        to: ApprovalState,
        now: &Moment,
    ) -> Result<(), EngineError> {
        let event = Event::ApprovalAnswered { approval: approval.id.clone(), answer: answer.clone() };
        self.append(approval, &[event], now, |writer| {
            writer.add_answer(&approval.id, answer)?;
            writer.move_approval(&approval.id, &[ApprovalState::Open], to, None, now.wall)
        })
    }

    /// Asks policy again about an action that was tried, now with the yes, and gives its layer to the task.
    fn keep_layer(
        &self,
        task: &Task,
        stored: &StoredAction,
        approval: &StoredApproval,
        answer: &ApprovalAnswer,
        deciding: &Deciding<'_>,
    ) -> Result<Yes, EngineError> {
        let Deciding { gate, profile, now } = *deciding;
        let action = again(stored)?;
        if action.digest() != approval.digest {
            let why = "its request cannot be put together again as it was".to_owned();
            self.close(approval, ApprovalState::Void, &why, now)?;
            return Ok(Yes::Void(why));
        }
        let proposed = action.clone();
        let mut facts = self.facts(profile, &action)?;
        facts.approvals = self.approvals_of(approval, now);
        facts.owners = self.owners_of(approval);
        let decision = gate.decide(action, &facts);
        let granted = match &decision {
            Decision::Allow(yes) | Decision::Narrow(yes) => Some(yes.grant()),
            Decision::RequireApproval(_) | Decision::Deny(_) => None,
        };
        let is_as_tried = match (granted, self.trial_grant(stored)?) {
            (Some(granted), Some(tried)) => self.is_same_grant(&task.id, granted, &tried)?,
            _ => false,
        };
        if !is_as_tried {
            let why = "policy does not let it be what was tried any longer".to_owned();
            self.close(approval, ApprovalState::Void, &why, now)?;
            return Ok(Yes::Void(why));
        }
        let events = [
            Event::ApprovalAnswered { approval: approval.id.clone(), answer: answer.clone() },
            decision.event(),
            closed(approval, ApprovalState::Kept, ""),
        ];
        let has_layer = self.places().layer(&task.id, &stored.id).join("upper").exists();
        let starter = self.starter(task, &proposed.request().principal)?;
        self.append(approval, &events, now, |writer| {
            // A stop that came meanwhile comes first.
            writer.refuse_halted(&starter)?;
            writer.add_answer(&approval.id, answer)?;
            writer.move_approval(
                &approval.id,
                &[ApprovalState::Open],
                ApprovalState::Kept,
                None,
                now.wall,
            )?;
            writer.set_approved(&stored.id, decision.record(), now.wall)?;
            if has_layer { writer.add_layer(&task.id, &stored.id) } else { Ok(()) }
        })?;
        self.execution_of_trial(task, &proposed)?;
        Ok(Yes::Kept)
    }

    /// Returns the grant under which an action was tried.
    fn trial_grant(&self, stored: &StoredAction) -> Result<Option<Grant>, EngineError> {
        let records = self.store().read(|reader| reader.records_of_action(&stored.task, &stored.id))?;
        let events = records.iter().filter_map(|record| record.parse_event().ok());
        let mut grants = events.filter_map(|event| match event {
            Event::TrialDecided { decision, .. } => decision.grant,
            _ => None,
        });
        Ok(grants.next_back())
    }

    /// Says why a yes would be worth nothing; nothing when it is worth something.
    fn is_over(
        &self,
        task: &Task,
        stored: &StoredAction,
        approval: &StoredApproval,
    ) -> Result<Option<String>, EngineError> {
        match task.state {
            TaskState::Open => {}
            // It can go on.
            TaskState::Stopped | TaskState::Frozen => {
                let why = format!("waits: its task is {}, resume that first", task.state);
                return Err(EngineError::Approval { approval: approval.id.clone(), why });
            }
            ended => return Ok(Some(format!("its task is {ended}"))),
        }
        if let Some(halt) = self.halt(task, &stored.request.principal)? {
            let why = format!("waits: {}", halt.why());
            return Err(EngineError::Approval { approval: approval.id.clone(), why });
        }
        if approval.untried.is_none() && stored.state != ActionState::Tried {
            return Ok(Some(format!("its trial is {}", stored.state.name())));
        }
        self.moved_since(task, stored, approval)
    }

    /// Ends the requests whose trials did not come to their end: there is nothing to show. Who was ended between the two is
    /// found here at the next start; another process may be quicker.
    pub(crate) fn end_cut_off_trials(&self) -> Result<(), EngineError> {
        let read = || self.store().read(|reader| reader.cut_off_trials());
        for approval in read()? {
            let ended = self.close(&approval, ApprovalState::Void, CUT_OFF, &Moment::now()?);
            if ended.is_err() && read()?.iter().any(|other| other.id == approval.id) {
                return ended;
            }
        }
        Ok(())
    }

    /// Ends the requests of a task that nothing more can come of.
    pub(crate) fn end_requests(&self, task: &TaskId, why: &str) -> Result<(), EngineError> {
        let open = self.store().read(|reader| reader.approvals(true))?;
        let now = Moment::now()?;
        let own = open.iter().filter(|approval| approval.task == *task);
        own.into_iter().try_for_each(|approval| self.close(approval, ApprovalState::Void, why, &now))
    }

    /// Ends a request whose time is over.
    pub(crate) fn expire(&self, approval: &StoredApproval, now: &Moment) -> Result<(), EngineError> {
        let why = match approval.state {
            ApprovalState::Given => "the yes was not used in time",
            _ => "nobody answered in time",
        };
        self.close(approval, ApprovalState::Expired, why, now)
    }

    /// Ends a request for good, and removes what its trial left.
    pub(crate) fn close(
        &self,
        approval: &StoredApproval,
        to: ApprovalState,
        why: &str,
        now: &Moment,
    ) -> Result<(), EngineError> {
        let events = [closed(approval, to, why)];
        let mut is_held = true;
        self.append(approval, &events, now, |writer| {
            is_held = writer.is_held(&approval.task, Some(&approval.action))?;
            writer.move_approval(&approval.id, &[approval.state], to, Some(why), now.wall)
        })?;
        if is_held { Ok(()) } else { self.remove_trial(approval) }
    }

    /// Removes the layer of a trial that became nobody's. Whether a legal hold covers it was asked in the write that let it go.
    pub(crate) fn remove_trial(&self, approval: &StoredApproval) -> Result<(), EngineError> {
        for place in self.places_of_trial(approval) {
            sandbox::remove_tree(&place).map_err(EngineError::file("remove", &place))?;
        }
        Ok(())
    }

    /// Returns where the files of a trial are.
    pub(crate) fn places_of_trial(&self, approval: &StoredApproval) -> [std::path::PathBuf; 2] {
        let places = self.places();
        let (task, action) = (&approval.task, &approval.action);
        [places.layer(task, action), places.artifacts(task, action)]
    }

    fn append(
        &self,
        approval: &StoredApproval,
        events: &[Event],
        now: &Moment,
        also: impl FnOnce(&crate::store::Writer<'_>) -> Result<(), crate::store::StoreError>,
    ) -> Result<(), EngineError> {
        let (subject, time) = (approval.subject(), now.wall);
        let entries: Vec<Entry<'_>> =
            events.iter().map(|event| Entry { subject: &subject, event, time }).collect();
        let _noted = self.log.append_all(&entries, also)?;
        Ok(())
    }
}

/// Returns the event that ends a request.
pub(crate) fn closed(approval: &StoredApproval, state: ApprovalState, why: &str) -> Event {
    Event::ApprovalClosed { approval: approval.id.clone(), state, why: why.to_owned() }
}

fn answer(
    by: &Approver,
    answer: Answered,
    roles: BTreeSet<String>,
    reason: Option<&str>,
    now: &Moment,
) -> ApprovalAnswer {
    let account = Some(by.account);
    ApprovalAnswer {
        by: by.principal(),
        account,
        answer,
        roles,
        reason: reason.map(str::to_owned),
        at: now.wall,
        file: by.file.clone(),
    }
}

/// Puts the action together again that was asked for. The values of its environment are not kept, so one that has any is
/// another action now, and its digest says so.
fn again(stored: &StoredAction) -> Result<Action, EngineError> {
    let StoredRequest { principal, tool, directory, environment: _, purpose } = stored.request.clone();
    let request =
        ActionRequest { principal, tool, directory, environment: std::collections::BTreeMap::new(), purpose };
    let (id, task) = (stored.id.clone(), stored.task.clone());
    Ok(Action::parse(id, task, request, stored.grant.clone(), stored.start.clone())?)
}
