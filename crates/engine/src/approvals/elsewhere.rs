//! Answers that people give from accounts of their own, without the state of who asks.
//!
//! Guarantees: an answer of another account is bound to this store, this request, its action and the very text that was
//! written down for it; it never is one of the owner's accounts, nor of somebody who came through one of these; it counts only
//! while the file that it stands in is there and its owner the same, whatever the database says of it. Every one that is
//! refused is on the record, once.
//! Leaves to others: reading the files (`files`), showing the text and asking the person (`fumehood`).

use std::collections::BTreeSet;

use model::approval::{Answered, ApprovalAnswer};
use model::event::Event;
use model::{ApprovalId, ApprovalState, Digest, Profile, Timestamp};
use serde::{Deserialize, Serialize};

use super::Approver;
use super::files::{AnswersDirectory, Found};
use crate::Engine;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::store::StoredApproval;

/// The form of an answer, with its version.
pub const ANSWER_FORMAT: &str = "fumehood-answer-1";

/// An answer, as it stands in its file. Who gave it is told by the owner of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedAnswer {
    /// [`ANSWER_FORMAT`].
    pub format: String,
    /// The name of its file.
    pub name: String,
    /// The record that the request is on.
    pub store: String,
    /// The request.
    pub approval: ApprovalId,
    /// The digest of its action.
    pub action: Digest,
    /// The digest of the text that was shown.
    pub shown: Digest,
    /// When the request ends, as it was shown.
    pub expires: Timestamp,
    /// What was answered.
    pub answer: Answered,
    /// Why.
    pub reason: Option<String>,
    /// The accounts through which the person came to theirs, as far as the system tells: they only exclude.
    pub through: BTreeSet<u32>,
}

/// An answer that nobody looked at yet.
#[derive(Debug)]
pub struct NewAnswer {
    by: Approver,
    found: Found,
}

impl NewAnswer {
    /// Returns who gave it, as the owner of its file tells.
    pub fn by(&self) -> &Approver {
        &self.by
    }
}

impl SignedAnswer {
    /// Reads the text of an answer.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| format!("does not say what an answer says ({error})");
        let answer: Self = serde_json::from_str(text).map_err(wrong)?;
        if answer.format != ANSWER_FORMAT {
            return Err("is in another form: it is of another version".to_owned());
        }
        if answer.answer == Answered::TakenBack {
            return Err("is neither a yes nor a no".to_owned());
        }
        Ok(answer)
    }
}

impl Engine {
    /// Records that a request was written down with a text for people of other accounts.
    ///
    /// # Errors
    /// When the request cannot be answered any longer, or the state cannot be written.
    pub fn export_request(&self, approval: &StoredApproval, text: Digest) -> Result<(), EngineError> {
        let state = approval.state_at(&Moment::now()?);
        if state != ApprovalState::Open {
            let why = format!("is {state}: only what waits for an answer is written down for others");
            return Err(EngineError::Approval { approval: approval.id.clone(), why });
        }
        let event = Event::ApprovalExported { approval: approval.id.clone(), text };
        self.record(&approval.subject(), &event, |_, _| Ok(()))
    }

    /// Returns the answers to a request that people left from accounts of their own and that nobody looked at yet. `name`
    /// tells the name of an account.
    ///
    /// # Errors
    /// When the directory cannot be trusted or read, or the state cannot be read.
    pub fn new_answers(
        &self,
        approval: &StoredApproval,
        name: &dyn Fn(u32) -> String,
    ) -> Result<Vec<NewAnswer>, EngineError> {
        let Some(directory) = self.answers_directory()? else { return Ok(Vec::new()) };
        let found = directory.answers_to(&approval.id)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let refused = self.refused_files(approval)?;
        let taken = |file: &str| approval.answers.iter().any(|answer| answer.file.as_deref() == Some(file));
        let new = found.into_iter().filter(|found| !refused.contains(&found.name) && !taken(&found.name));
        let answer = |found: Found| {
            let (name, file) = (name(found.owner), Some(found.name.clone()));
            NewAnswer { by: Approver { name, account: found.owner, file }, found }
        };
        Ok(new.map(answer).collect())
    }

    /// Takes an answer that somebody left from an account of their own. `profile` is the one that the action names.
    ///
    /// # Errors
    /// When it is not taken, and why; and when the state cannot be written.
    pub fn take_answer(
        &self,
        approval: &StoredApproval,
        new: &NewAnswer,
        profile: &Profile,
    ) -> Result<(), EngineError> {
        let by = &new.by;
        let approval = &self.store().read(|reader| reader.find_approval(approval.id.as_str()))?;
        if approval.answers.iter().any(|answer| answer.file == by.file) {
            // Somebody else looked meanwhile.
            return Ok(());
        }
        let answer = match self.accept(approval, &new.found) {
            Ok(answer) => answer,
            Err(why) => {
                self.refuse_answer(approval, by, &why)?;
                return Err(EngineError::Approval { approval: approval.id.clone(), why });
            }
        };
        let reason = answer.reason.as_deref();
        match answer.answer {
            Answered::Yes => self.say_yes(approval, by, reason, profile).map(drop),
            Answered::No | Answered::TakenBack => self.say_no(approval, by, Answered::No, reason),
        }
    }

    /// Returns what a file answers to a request, or why it answers nothing.
    fn accept<'f>(&self, approval: &StoredApproval, found: &'f Found) -> Result<&'f SignedAnswer, String> {
        let answer = found.answer.as_ref().map_err(|why| format!("the file {why}"))?;
        match self.is_about_something_else(approval, answer) {
            Some(why) => return Err(why.to_owned()),
            None => self.is_of_the_owner(approval, found.owner, answer)?,
        }
        let has_role = |role: &str| self.config().roles.has(found.owner, role);
        if !approval.wanted.iter().any(|quorum| has_role(quorum.role())) {
            return Err("its account has none of the roles that are asked for".to_owned());
        }
        let shown = self.exported_texts(approval).map_err(|error| error.to_string())?;
        if !shown.contains(&answer.shown) {
            return Err("the text that was shown is none that was written down for this request".to_owned());
        }
        Ok(answer)
    }

    fn is_about_something_else(
        &self,
        approval: &StoredApproval,
        answer: &SignedAnswer,
    ) -> Option<&'static str> {
        if answer.store != self.store().log().as_str() {
            return Some("it is about a request of another state directory");
        }
        if answer.approval != approval.id {
            return Some("it is about another request");
        }
        if answer.action != approval.digest {
            return Some("it is about another action");
        }
        (answer.expires != approval.deadline.wall)
            .then_some("it is about a request that ends at another time")
    }

    /// Refuses the owner's own accounts, and whoever came through one of them. What the answer says of the latter can leave
    /// something out, and so it only excludes.
    fn is_of_the_owner(
        &self,
        approval: &StoredApproval,
        account: u32,
        answer: &SignedAnswer,
    ) -> Result<(), String> {
        let owners = self.owners_of(approval);
        if owners.contains(&account) {
            return Err("it is the owner's own: they answer with `fumehood approvals approve`".to_owned());
        }
        match answer.through.intersection(&owners).next() {
            Some(owner) => Err(format!("whoever gave it came through the owner's account, {owner}")),
            None => Ok(()),
        }
    }

    /// Tells whether an answer still counts: one of another account does while its file is there and says the same.
    pub(super) fn still_stands(&self, approval: &StoredApproval, answer: &ApprovalAnswer) -> bool {
        if answer.account == Some(self.config().account) {
            return true;
        }
        let Some(name) = &answer.file else { return false };
        let Ok(Some(directory)) = self.answers_directory() else { return false };
        let Some(found) = directory.find(name) else { return false };
        let accepted = self.accept(approval, &found);
        Some(found.owner) == answer.account && accepted.is_ok_and(|said| said.answer == answer.answer)
    }

    fn answers_directory(&self) -> Result<Option<AnswersDirectory>, EngineError> {
        self.config().answers.as_deref().map(AnswersDirectory::open).transpose()
    }

    /// Returns the files whose answers were refused.
    fn refused_files(&self, approval: &StoredApproval) -> Result<BTreeSet<String>, EngineError> {
        let refused = self.events_of_request(approval)?.into_iter().filter_map(|event| match event {
            Event::ApprovalRefused { approval: of, file, .. } if of == approval.id => file,
            _ => None,
        });
        Ok(refused.collect())
    }

    /// Returns the digests of the texts that were written down for a request.
    fn exported_texts(&self, approval: &StoredApproval) -> Result<BTreeSet<Digest>, EngineError> {
        let texts = self.events_of_request(approval)?.into_iter().filter_map(|event| match event {
            Event::ApprovalExported { approval: of, text } if of == approval.id => Some(text),
            _ => None,
        });
        Ok(texts.collect())
    }

    fn events_of_request(&self, approval: &StoredApproval) -> Result<Vec<Event>, EngineError> {
        let read = self.store().read(|reader| reader.records_of_action(&approval.task, &approval.action))?;
        Ok(read.iter().filter_map(|record| record.parse_event().ok()).collect())
    }
}
