//! Credentials that stay outside: which action may use which, the leases by which it does, and their end.
//!
//! Guarantees: a production credential serves no sandbox, whatever policy says; a credential is for the repositories and tasks
//! that its settings name, and for what they say that it reaches; its value is read when an action has been allowed to use it,
//! is told to the gateway of that action alone and to who keeps it out of the record, and is kept by nobody. Each use is a
//! lease: on the record before the command starts, and ended with the action, at its time, or when a person takes the
//! credential back, whichever is first.
//! Leaves to others: where a value is (`fumehood`), and putting it into requests (`egress`).

use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use audit::Entry;
use gate::Halted;
use inspect::credentials::{Found, FoundKind};
use inspect::{Report, Stack};
use model::action::Principal;
use model::egress::{
    AlertKind, Canary, CredentialAlert, GivenCredential, Placement, Secret, ToGateway, credentials_of,
};
use model::event::Event;
use model::redaction::{Form, forms_of, is_looked_for};
use model::task::{Task, TaskState};
use model::text::escape;
use model::{
    Action, ActionId, ChangeKind, EgressRule, Ending, FileKind, Grant, OsText, Subject, TaskId, Timestamp,
    WorkspacePath,
};
use sandbox::Watched;

use crate::Engine;
use crate::clock::{now, random};
use crate::error::EngineError;
use crate::packages;
use crate::run::Run;
use crate::store::{Freeze, Halt, Revocation, StoreError, StoredLease, Writer};

/// The longest value: what looks for it has room for no more.
const VALUE_MAX: usize = 16 << 10;
/// How much of a changed file is looked at for canaries.
const LOOKED_AT_MAX: u64 = 16 << 20;
/// The signs of a stand-in: those of names of hosts, so that it is found in one too.
const STAND_IN_SIGNS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Ten random signs at a time.
const STAND_IN_PARTS: usize = 4;

/// A credential, as the operator's settings say it.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Its name.
    pub name: String,
    /// What it opens.
    pub kind: CredentialKind,
    /// Who answers for it.
    pub owner: String,
    /// What it is for. Each of them names it.
    pub rules: Vec<EgressRule>,
    /// The directories whose repositories may use it.
    pub repositories: Vec<PathBuf>,
    /// The tasks that may use it; all of these repositories when missing.
    pub tasks: Option<Vec<TaskId>>,
    /// The most time from its lease to its end.
    pub lifetime: Duration,
    /// Where it is put into requests.
    pub placement: Placement,
    /// The variable that has the stand-in inside.
    pub stand_in: Option<String>,
    /// Whether it may be put into requests in the clear.
    pub in_clear: bool,
    /// Where its value is.
    pub provider: Arc<dyn Provider>,
}

/// What a credential opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialKind {
    /// Something that may be broken.
    Development,
    /// Something that others live by. It serves no sandbox.
    Production,
}

/// Where the value of a credential is. It says where for people, and never the value.
pub trait Provider: fmt::Debug + fmt::Display + Send + Sync {
    /// Reads the value.
    ///
    /// # Errors
    /// With why it cannot be had, and what to do.
    fn read(&self) -> Result<Secret, String>;
}

impl CredentialKind {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Production => "production",
        }
    }
}

impl Credential {
    /// Says why an action of a task may not use it for what a rule names, whatever policy says.
    fn refuses(&self, task: &TaskId, workspace: &Path, rule: &EgressRule) -> Option<Halted> {
        let name = escape(&self.name);
        if self.kind == CredentialKind::Production {
            let advice = format!(
                "`{name}` is a production credential: it serves no sandbox, at any level; name one of development"
            );
            return Some(withheld("credential-production", advice));
        }
        let is_here = self.repositories.iter().any(|directory| workspace.starts_with(directory));
        let is_its = self.tasks.as_ref().is_none_or(|tasks| tasks.contains(task));
        if !is_here || !is_its {
            let advice = format!(
                "the settings give `{name}` to other repositories or tasks: its owner ({}) can name this one",
                escape(&self.owner)
            );
            return Some(withheld("credential-not-for-this", advice));
        }
        if !self.rules.iter().any(|own| own.covers(rule)) {
            let own: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
            let advice = format!("`{name}` is for {}, and not for `{rule}`", own.join(", "));
            return Some(withheld("credential-scope", advice));
        }
        None
    }
}

fn withheld(reason: &str, advice: String) -> Halted {
    Halted { reason: reason.to_owned(), advice }
}

/// A credential that one action has, until its lease ends.
pub(crate) struct Lease {
    pub(crate) credential: Credential,
    value: Secret,
    stand_in: Secret,
    digest: model::Digest,
    began: Timestamp,
    until: Instant,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("credential", &self.credential.name).finish_non_exhaustive()
    }
}

impl Lease {
    fn expires(&self) -> Timestamp {
        let lifetime = u64::try_from(self.credential.lifetime.as_nanos()).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.began.as_nanos().saturating_add(lifetime))
    }

    fn is_over(&self) -> bool {
        // Whichever clock says so: one stands still while the machine sleeps, the other is set by people.
        Instant::now() >= self.until || now() >= self.expires()
    }

    /// Returns what the gateway is told.
    fn given(&self) -> GivenCredential {
        GivenCredential {
            name: self.credential.name.clone(),
            value: self.value.clone(),
            stand_in: self.stand_in.clone(),
            placement: self.credential.placement.clone(),
            in_clear: self.credential.in_clear,
        }
    }

    /// Returns the event that records it.
    pub(crate) fn event(&self) -> Event {
        Event::CredentialLeased {
            credential: self.credential.name.clone(),
            owner: self.credential.owner.clone(),
            rules: self.credential.rules.iter().map(ToString::to_string).collect(),
            expires: self.expires(),
        }
    }

    /// Writes it down.
    pub(crate) fn write(
        &self,
        writer: &Writer<'_>,
        task: &TaskId,
        action: &ActionId,
    ) -> Result<(), StoreError> {
        writer.begin_lease(&StoredLease {
            credential: self.credential.name.clone(),
            task: task.clone(),
            action: action.clone(),
            value: self.digest,
            began: self.began,
            expires: self.expires(),
            ended: None,
        })
    }
}

/// Returns what the gateway is told of leases and canaries.
pub(crate) fn told(leases: &[Lease], canaries: Vec<Canary>) -> impl Iterator<Item = ToGateway> {
    let leases = leases.iter().map(|lease| ToGateway::Credential(Box::new(lease.given())));
    leases.chain(canaries.into_iter().map(|canary| ToGateway::Canary(Box::new(canary))))
}

/// Returns the variables that leases and canaries put inside.
pub(crate) fn variables<'l>(
    leases: &'l [Lease],
    canaries: &'l [Canary],
) -> impl Iterator<Item = (String, OsText)> + 'l {
    let stand_ins =
        leases.iter().filter_map(|lease| Some((lease.credential.stand_in.as_ref()?, &lease.stand_in)));
    let canaries = canaries.iter().map(|canary| (&canary.name, &canary.value));
    let variable = |(name, value): (&String, &Secret)| {
        Some((name.clone(), OsText::new(value.reveal().as_bytes().to_vec()).ok()?))
    };
    canaries.chain(stand_ins).filter_map(variable)
}

/// Makes a text that nothing takes, of 200 random bits.
fn stand_in() -> Result<Secret, EngineError> {
    let mut text = String::new();
    for _ in 0..STAND_IN_PARTS {
        text.extend(random()?.map(sign));
    }
    Ok(Secret::new(text))
}

fn sign(byte: u8) -> char {
    char::from(STAND_IN_SIGNS[usize::from(byte % 32)])
}

/// Refuses a value that could not be put into a request, or not be found in an answer.
fn check(name: &str, value: Secret) -> Result<Secret, String> {
    let text = value.reveal();
    let name = escape(name);
    if text.len() > VALUE_MAX || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Err(format!(
            "the value of `{name}` is longer than 16 KiB or has signs that a request cannot have"
        ));
    }
    if !is_looked_for(text.as_bytes()) {
        return Err(format!(
            "the value of `{name}` is so short or plain that it could not be told from ordinary words in an answer"
        ));
    }
    Ok(value)
}

impl Engine {
    /// Returns the credential of this name in the settings.
    pub fn credential(&self, name: &str) -> Option<&Credential> {
        self.config().credentials.iter().find(|one| one.name == name)
    }

    /// Says why an action may not use a credential that its rules name, whatever policy says.
    pub(crate) fn withheld(&self, action: &Action) -> Result<Option<Halted>, EngineError> {
        let rules: Vec<&EgressRule> = action.grant().network.egress().into_iter().flatten().collect();
        let (task, workspace) = (action.task(), action.start().workspace.as_path());
        for rule in &rules {
            let Some(name) = rule.credential.as_deref() else { continue };
            let refused = match self.credential(name) {
                Some(credential) => credential.refuses(task, workspace, rule),
                None => Some(withheld(
                    "credential-unknown",
                    format!(
                        "no settings have a `[credential.{}]`: `fumehood credential list` names them",
                        escape(name)
                    ),
                )),
            };
            if refused.is_some() {
                return Ok(refused);
            }
        }
        for name in credentials_of(rules) {
            if let Some(revocation) = self.store().read(|reader| reader.revocation(&name))? {
                return Ok(Some(Halt::Revoked(revocation).told()));
            }
        }
        Ok(None)
    }

    /// Reads what an action was allowed to use.
    ///
    /// # Errors
    /// With why one of them cannot be had.
    pub(crate) fn leases(&self, grant: &Grant) -> Result<Result<Vec<Lease>, String>, EngineError> {
        let mut leases = Vec::new();
        for name in credentials_of(grant.network.egress().into_iter().flatten()) {
            let Some(credential) = self.credential(&name).cloned() else {
                return Ok(Err(format!("no settings have a `[credential.{}]`", escape(&name))));
            };
            let value = credential.provider.read().and_then(|value| check(&name, value));
            let value = match value {
                Ok(value) => value,
                Err(why) => return Ok(Err(why)),
            };
            let bytes = value.reveal().as_bytes().to_vec();
            let digest = self.store().value_digest(&bytes);
            self.store().learn_secrets([(name, bytes)]);
            let until = Instant::now() + credential.lifetime;
            leases.push(Lease { credential, value, stand_in: stand_in()?, digest, began: now(), until });
        }
        Ok(Ok(leases))
    }

    /// Keeps what the gateway of a run tells. A canary on its way out freezes the task and ends the run: it is told by `stop`.
    pub(crate) fn keep_told(
        &self,
        about: &Subject,
        run: &Run,
        event: &Event,
        stop: &Cell<bool>,
    ) -> Result<(), EngineError> {
        let Event::CredentialAlert { alert } = event else {
            return self.record(about, event, |writer, time| match event {
                Event::NetworkAttempts { attempts, .. } => packages::keep(writer, run, attempts, time),
                _ => Ok(()),
            });
        };
        if alert.kind != AlertKind::Canary {
            return self.record(about, event, |_, _| Ok(()));
        }
        stop.set(true);
        let why = alert.to_string();
        let freeze = Freeze { by: Principal::Engine, reason: why.clone() };
        let frozen = Event::TaskFrozen { why: why.clone(), by: Some(Principal::Engine) };
        let ends = self.ends_of(&run.action, &why)?;
        let open = self
            .store()
            .read(|reader| reader.task(&run.task))?
            .is_some_and(|task| task.state == TaskState::Open);
        let time = now();
        let own = |event| Entry { subject: about, event, time };
        let events = std::iter::once(event).chain(open.then_some(&frozen)).chain(&ends);
        let entries: Vec<Entry<'_>> = events.map(own).collect();
        self.log.append_all(&entries, |writer| {
            if open {
                writer.freeze_task(&run.task, &freeze, time)?;
            }
            writer.end_leases(&run.action, None, &why, time)
        })?;
        Ok(())
    }

    /// Returns the canaries of a task: the same for all of its actions, so that one which was kept in a file is known later.
    pub(crate) fn canaries(&self, task: &TaskId) -> Vec<Canary> {
        let one = |name: &String| {
            let digest = self.store().value_digest(format!("fumehood canary 1\0{task}\0{name}").as_bytes());
            let value = Secret::new(digest.as_bytes().iter().copied().map(sign).collect());
            Canary { name: name.clone(), value }
        };
        self.config().canaries.iter().map(one).collect()
    }

    /// Finds the canaries of a task in files that were changed. Of a large file the beginning is looked at.
    pub(crate) fn canaries_in(
        &self,
        task: &TaskId,
        report: &Report,
        stack: &Stack,
    ) -> Result<Vec<CanaryIn>, EngineError> {
        let forms = |canary: &Canary| (canary.name.clone(), forms_of(canary.value.reveal().as_bytes()));
        let canaries: Vec<(String, Vec<Form>)> = self.canaries(task).iter().map(forms).collect();
        if canaries.is_empty() {
            return Ok(Vec::new());
        }
        let (mut finder, mut found) = (stack.after(), Vec::new());
        let written = report.changes.iter().filter(|change| change.kind != ChangeKind::Deleted);
        for change in written.filter(|change| change.file == FileKind::File) {
            let entry = finder.find(&change.path)?;
            // What cannot be read is held back for that.
            let text = entry.and_then(|entry| entry.read(LOOKED_AT_MAX).ok()).unwrap_or_default();
            let is_in = |form: &Form| memchr::memmem::find(&text, &form.bytes).is_some();
            if let Some((name, _)) = canaries.iter().find(|(_, forms)| forms.iter().any(is_in)) {
                found.push(CanaryIn { path: change.path.clone(), name: name.clone() });
            }
        }
        Ok(found)
    }

    /// Says which credentials of a run have ended since this was asked last. What cannot be read has ended.
    pub(crate) fn watch(
        &self,
        about: &Subject,
        run: &Run,
        told: &mut Vec<String>,
        stop: &Cell<bool>,
    ) -> Watched {
        let (mut ended, names) = (Vec::new(), run.leases.iter().map(|lease| &lease.credential.name));
        let left: Vec<&String> = names.filter(|name| !told.contains(name)).collect();
        let open = self.store().read(|reader| reader.leases_of(&run.action));
        let is_open = |name: &str| match &open {
            Ok(open) => open.iter().any(|lease| lease.credential == name && lease.ended.is_none()),
            Err(_) => false,
        };
        for name in left {
            let over = run.leases.iter().any(|lease| lease.credential.name == *name && lease.is_over());
            if over && is_open(name) {
                // The gateway is told all the same.
                let _ = self.end_lease(about, &run.action, name, "its time is over");
            }
            if over || !is_open(name) {
                ended.push(name.clone());
            }
        }
        told.extend(ended.iter().cloned());
        Watched { ended, stop: stop.get() }
    }

    fn end_lease(
        &self,
        about: &Subject,
        action: &ActionId,
        credential: &str,
        why: &str,
    ) -> Result<(), EngineError> {
        let event = ended(credential, why);
        self.record(about, &event, |writer, time| writer.end_leases(action, Some(credential), why, time))
    }

    /// Returns the events that record the end of what an action still has.
    pub(crate) fn ends_of(&self, action: &ActionId, why: &str) -> Result<Vec<Event>, EngineError> {
        let leases = self.store().read(|reader| reader.leases_of(action))?;
        let open = leases.iter().filter(|lease| lease.ended.is_none());
        Ok(open.map(|lease| ended(&lease.credential, why)).collect())
    }

    /// Ends the leases of actions that nobody runs any longer.
    pub(crate) fn reap_leases(&self) -> Result<(), EngineError> {
        let read = || self.store().read(|reader| reader.open_leases(None));
        let runs = self.places().runs();
        let mut open = read()?;
        open.retain(|lease| !runs.join(lease.action.as_str()).exists());
        if open.is_empty() {
            return Ok(());
        }
        let still = read()?;
        open.retain(|lease| still.contains(lease));
        open.iter().try_for_each(|lease| {
            let about = subject(lease);
            self.end_lease(&about, &lease.action, &lease.credential, "nobody saw the end of its action")
        })
    }

    /// Takes a credential back: no action gets it until it is rotated, and what has it loses it at once, also on connections
    /// that are open. Returns the leases that this ended.
    ///
    /// # Errors
    /// When it was taken back already, or the state cannot be written.
    pub fn revoke_credential(
        &self,
        name: &str,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<StoredLease>, EngineError> {
        let event = Event::CredentialRevoked {
            credential: name.to_owned(),
            by: by.clone(),
            reason: reason.to_owned(),
        };
        let revocation = Revocation {
            credential: name.to_owned(),
            by: by.clone(),
            reason: reason.to_owned(),
            since: now(),
        };
        self.end_all(name, "it was taken back", &event, |writer| writer.revoke_credential(&revocation))
    }

    /// Goes on with a new value: what has the old one loses it at once, and actions that start from now on get what the provider
    /// has now. Returns the leases that this ended.
    ///
    /// # Errors
    /// When the provider has no value, or the one that was used before, or the state cannot be written.
    pub fn rotate_credential(
        &self,
        credential: &Credential,
        by: &Principal,
    ) -> Result<Vec<StoredLease>, EngineError> {
        let name = &credential.name;
        let value =
            credential.provider.read().and_then(|value| check(name, value)).map_err(EngineError::Nothing)?;
        self.store().learn_secrets([(name.clone(), value.reveal().as_bytes().to_vec())]);
        let digest = self.store().value_digest(value.reveal().as_bytes());
        if self.store().read(|reader| reader.last_value(name))? == Some(digest) {
            let why = format!(
                "{} still has the value of `{}` that was used before: put the new one there, then rotate",
                credential.provider,
                escape(name)
            );
            return Err(EngineError::Nothing(why));
        }
        let event = Event::CredentialRotated { credential: name.clone(), by: by.clone() };
        self.end_all(name, "it was rotated", &event, |writer| writer.give_back_credential(name))
    }

    fn end_all(
        &self,
        name: &str,
        why: &str,
        event: &Event,
        also: impl FnOnce(&Writer<'_>) -> Result<(), StoreError>,
    ) -> Result<Vec<StoredLease>, EngineError> {
        let open = self.store().read(|reader| reader.open_leases(Some(name)))?;
        let (general, time, end) = (Subject::default(), now(), ended(name, why));
        let subjects: Vec<Subject> = open.iter().map(subject).collect();
        let own = Entry { subject: &general, event, time };
        let ends = subjects.iter().map(|subject| Entry { subject, event: &end, time });
        let entries: Vec<Entry<'_>> = std::iter::once(own).chain(ends).collect();
        self.log.append_all(&entries, |writer| {
            also(writer)?;
            writer.end_all_leases(name, why, time)
        })?;
        Ok(open)
    }

    /// Returns the leases of a task that are in force.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn leases_of_task(&self, task: &Task) -> Result<Vec<StoredLease>, EngineError> {
        let open = self.store().read(|reader| reader.open_leases(None))?;
        Ok(open.into_iter().filter(|lease| lease.task == task.id).collect())
    }
}

/// A canary that was written to a file.
pub(crate) struct CanaryIn {
    path: WorkspacePath,
    name: String,
}

impl CanaryIn {
    /// Returns it as what keeps the file back.
    pub(crate) fn found(&self) -> Found {
        let why = format!("it holds the canary `{}`", escape(&self.name));
        Found { path: self.path.clone(), kind: FoundKind::File, why }
    }

    /// Returns the event that records it.
    pub(crate) fn event(&self) -> Event {
        let (kind, credential) = (AlertKind::CanaryKept, self.name.clone());
        Event::CredentialAlert { alert: CredentialAlert { kind, credential, host: self.path.to_string() } }
    }
}

/// Says why the leases of an action end with it.
pub(crate) fn with_the_action(ending: &Ending) -> String {
    format!("its action ended: {ending}")
}

fn ended(credential: &str, why: &str) -> Event {
    Event::CredentialEnded { credential: credential.to_owned(), why: why.to_owned() }
}

fn subject(lease: &StoredLease) -> Subject {
    Subject { task: Some(lease.task.clone()), action: Some(lease.action.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nowhere;

    impl fmt::Display for Nowhere {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nowhere")
        }
    }

    impl Provider for Nowhere {
        fn read(&self) -> Result<Secret, String> {
            Err("nowhere".to_owned())
        }
    }

    fn credential(kind: CredentialKind) -> Credential {
        let rule = |text: &str| EgressRule {
            credential: Some("forge".to_owned()),
            ..text.parse::<EgressRule>().expect("a rule")
        };
        Credential {
            name: "forge".to_owned(),
            kind,
            owner: "ada".to_owned(),
            rules: vec![rule("https://a.test/api/**")],
            repositories: vec!["/src/one".into()],
            tasks: None,
            lifetime: Duration::from_secs(60),
            placement: Placement::Bearer,
            stand_in: None,
            in_clear: false,
            provider: Arc::new(Nowhere),
        }
    }

    #[test]
    fn a_credential_is_for_what_its_settings_say_and_one_of_production_for_nothing() {
        let task = TaskId::from_random([7; 10]);
        let refused = |credential: &Credential, workspace: &str, rule: &str| {
            let rule = EgressRule {
                credential: Some("forge".to_owned()),
                ..rule.parse::<EgressRule>().expect("a rule")
            };
            credential.refuses(&task, Path::new(workspace), &rule).map(|halted| halted.reason)
        };
        let own = credential(CredentialKind::Development);
        let reason = |text: &str| Some(text.to_owned());
        assert_eq!(refused(&own, "/src/one/deep", "GET https://a.test/api/x"), None);
        assert_eq!(refused(&own, "/src/oneself", "https://a.test/api/x"), reason("credential-not-for-this"));
        assert_eq!(refused(&own, "/src/one", "https://a.test"), reason("credential-scope"));
        assert_eq!(refused(&own, "/src/one", "https://b.test/api/x"), reason("credential-scope"));
        let of_others = Credential { tasks: Some(vec![TaskId::from_random([8; 10])]), ..own };
        assert_eq!(
            refused(&of_others, "/src/one", "https://a.test/api/x"),
            reason("credential-not-for-this")
        );
        let production = credential(CredentialKind::Production);
        assert_eq!(refused(&production, "/src/one", "https://a.test/api/x"), reason("credential-production"));
    }

    #[test]
    fn a_value_that_could_not_be_found_again_is_not_used() {
        let kept = |text: &str| check("c", Secret::new(text.to_owned())).is_ok();
        assert!(kept("tok-0123456789-ABC"));
        for unfit in ["short", "aaaaaaaaaaaaaaa", "password", "two\nlines-0123456789", "ünüsual-0123456789"]
        {
            assert!(!kept(unfit), "{unfit}");
        }
        let (one, two) = (stand_in().expect("random"), stand_in().expect("random"));
        assert_ne!(one, two);
        assert!(one.reveal().len() == 10 * STAND_IN_PARTS && kept(one.reveal()));
    }
}
