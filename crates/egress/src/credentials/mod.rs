//! Credentials that stay outside: put into requests that their rules take, looked for in what comes back, and ended at once.
//!
//! Guarantees: a value goes into no other request than one that a rule with this credential takes, to a server that is verified
//! for the host of that rule; what stands for it inside, and every canary, is refused in whatever is for somebody else and can
//! be read. A response that holds the value, in one of its forms ([`model::redaction`]), is made illegible there before it
//! passes. Once a credential has ended, no request gets it, and the connections that it was used on are closed.
//! Leaves to others: which rules name one, having the value (`engine`), and what is changed on purpose (reversed, compressed).

mod place;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aho_corasick::AhoCorasick;
use http::request::Parts;
use model::egress::{AlertKind, Canary, CredentialAlert, GivenCredential};
use model::redaction::forms_of;
use model::text::escape;
use tokio::sync::watch;

use crate::Refusal;
pub(crate) use scan::{Held, Scan};

/// How many different alerts one action can raise; more of the same say nothing new.
const ALERTS_MAX: usize = 256;

/// The credentials of one action.
#[derive(Default)]
pub struct Credentials {
    given: Mutex<BTreeMap<String, Arc<Given>>>,
    marks: Vec<Mark>,
    /// Finds marks, by the index of each.
    finder: Option<AhoCorasick>,
    of_pattern: Vec<usize>,
    longest: usize,
    alerts: Mutex<Alerts>,
}

#[derive(Default)]
struct Alerts {
    raised: BTreeSet<CredentialAlert>,
    waiting: Vec<CredentialAlert>,
}

/// What must not go out: the stand-in of a credential, but to where that is for, or a canary.
struct Mark {
    kind: AlertKind,
    name: String,
}

/// A credential that is in force, or was.
pub(crate) struct Given {
    pub(crate) about: GivenCredential,
    pub(crate) scan: Arc<Scan>,
    ended: watch::Sender<bool>,
}

impl Credentials {
    /// Takes the credentials of an action, and its canaries.
    ///
    /// # Errors
    /// When one of them cannot be looked for.
    pub fn new(given: Vec<GivenCredential>, canaries: Vec<Canary>) -> Result<Self, String> {
        let (mut marks, mut patterns, mut of_pattern) = (Vec::new(), Vec::new(), Vec::new());
        let stand_ins = given.iter().map(|one| (AlertKind::StandInElsewhere, &one.name, &one.stand_in));
        let canaries = canaries.iter().map(|one| (AlertKind::Canary, &one.name, &one.value));
        for (kind, name, value) in stand_ins.chain(canaries) {
            let forms = forms_of(value.reveal().as_bytes());
            of_pattern.extend(forms.iter().map(|_| marks.len()));
            patterns.extend(forms.into_iter().map(|form| form.bytes));
            marks.push(Mark { kind, name: name.clone() });
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        let unfit = |error: aho_corasick::BuildError| format!("what stands for credentials: {error}");
        let finder =
            if patterns.is_empty() { None } else { Some(AhoCorasick::new(&patterns).map_err(unfit)?) };
        let given = given.into_iter().map(|about| Ok((about.name.clone(), Arc::new(Given::new(about)?))));
        let given = Mutex::new(given.collect::<Result<_, String>>()?);
        Ok(Self { given, marks, finder, of_pattern, longest, alerts: Mutex::default() })
    }

    /// Returns a credential that is in force.
    ///
    /// # Errors
    /// When it was never given, or has ended.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Given>, Refusal> {
        let given = lock(&self.given).get(name).cloned();
        let given = given.ok_or_else(|| {
            let why = format!("the gateway was not given the credential `{}`", escape(name));
            Refusal::new("no-credential", why)
        })?;
        if given.has_ended() { Err(given.over()) } else { Ok(given) }
    }

    /// Ends a credential: from now on nothing gets it, and what uses it is closed. Tells whether there is one.
    pub fn end(&self, name: &str) -> bool {
        let given = lock(&self.given).get(name).cloned();
        given.is_some_and(|given| {
            given.ended.send_replace(true);
            true
        })
    }

    /// Tells whether there is something to look for in what goes out.
    pub(crate) fn watches(&self) -> bool {
        self.finder.is_some()
    }

    /// Refuses what holds a mark, unless it is the stand-in of `own`; and raises an alert.
    pub(crate) fn check(&self, text: &[u8], own: Option<&str>, host: &str) -> Result<(), Refusal> {
        let Some(finder) = &self.finder else { return Ok(()) };
        let mark = |at: usize| &self.marks[self.of_pattern[at]];
        let is_own =
            |mark: &Mark| mark.kind == AlertKind::StandInElsewhere && Some(mark.name.as_str()) == own;
        let mut found = finder.find_overlapping_iter(text).map(|one| mark(one.pattern().as_usize()));
        let Some(mark) = found.find(|mark| !is_own(mark)) else { return Ok(()) };
        let alert = CredentialAlert { kind: mark.kind, credential: mark.name.clone(), host: host.to_owned() };
        let refusal = Refusal::new(mark.kind.code(), alert.to_string());
        self.raise(alert);
        Err(refusal)
    }

    /// Refuses a request whose head holds a mark.
    pub(crate) fn check_head(&self, parts: &Parts, own: Option<&str>, host: &str) -> Result<(), Refusal> {
        if !self.watches() {
            return Ok(());
        }
        let target = parts.uri.path_and_query().map_or("", |both| both.as_str());
        let headers =
            parts.headers.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        [target.as_bytes()].into_iter().chain(headers).try_for_each(|text| self.check(text, own, host))
    }

    /// Returns how much of what was looked at has to be looked at again with what follows it.
    pub(crate) fn overlap(&self) -> usize {
        self.longest.saturating_sub(1)
    }

    /// Raises an alert, once.
    pub(crate) fn raise(&self, alert: CredentialAlert) {
        let mut alerts = lock(&self.alerts);
        if alerts.raised.len() < ALERTS_MAX && alerts.raised.insert(alert.clone()) {
            alerts.waiting.push(alert);
        }
    }

    /// Takes the alerts that were not told yet.
    pub fn take_alerts(&self) -> Vec<CredentialAlert> {
        std::mem::take(&mut lock(&self.alerts).waiting)
    }
}

impl Given {
    fn new(about: GivenCredential) -> Result<Self, String> {
        let scan = Arc::new(Scan::of(about.value.reveal().as_bytes())?);
        Ok(Self { about, scan, ended: watch::Sender::new(false) })
    }

    /// Tells whether it may no longer be used.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Returns what is true once it may no longer be used.
    pub(crate) fn end(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Says why nothing gets it any longer.
    pub(crate) fn over(&self) -> Refusal {
        let name = escape(&self.about.name);
        Refusal::new(
            "credential-ended",
            format!("the credential `{name}` was taken back, or its time is over"),
        )
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use model::egress::Secret;

    use super::*;

    fn credentials() -> Credentials {
        let secret = |text: &str| Secret::new(text.to_owned());
        let given = GivenCredential {
            name: "forge".to_owned(),
            value: secret("real-Value-0123456789"),
            stand_in: secret("fhq7w3e5r2t8y4u6i9o0p1"),
            placement: "bearer".parse().expect("a place"),
            in_clear: false,
        };
        let canary = Canary { name: "BACKUP".to_owned(), value: secret("fhcanary1234567890abc") };
        Credentials::new(vec![given], vec![canary]).expect("can be looked for")
    }

    fn reason(answer: Result<(), Refusal>) -> &'static str {
        answer.map_or_else(|refusal| refusal.reason, |()| "passes")
    }

    #[test]
    fn a_stand_in_passes_to_its_own_place_alone_and_a_canary_nowhere() {
        let credentials = credentials();
        // Base64 of `git:fhq7w3e5r2t8y4u6i9o0p1`, as a client of HTTP writes a password.
        let basic = "Basic Z2l0OmZocTd3M2U1cjJ0OHk0dTZpOW8wcDE=";
        for (text, own, expected) in [
            ("Bearer fhq7w3e5r2t8y4u6i9o0p1", Some("forge"), "passes"),
            ("Bearer fhq7w3e5r2t8y4u6i9o0p1", Some("other"), "stand-in-elsewhere"),
            ("Bearer fhq7w3e5r2t8y4u6i9o0p1", None, "stand-in-elsewhere"),
            (basic, Some("forge"), "passes"),
            (basic, None, "stand-in-elsewhere"),
            ("66687137773365357232743879347536", None, "passes"),
            ("6668713777336535723274387934753669396f307031", None, "stand-in-elsewhere"),
            ("x fhcanary1234567890abc", Some("forge"), "canary"),
            ("nothing of it", None, "passes"),
        ] {
            assert_eq!(reason(credentials.check(text.as_bytes(), own, "b.test")), expected, "{text} {own:?}");
        }
        let told: Vec<_> = credentials.take_alerts().into_iter().map(|alert| alert.kind).collect();
        assert_eq!(told, [AlertKind::StandInElsewhere, AlertKind::Canary]);
        assert!(credentials.take_alerts().is_empty());
    }

    #[test]
    fn a_credential_that_ended_is_given_to_nothing() {
        let credentials = credentials();
        let given = credentials.get("forge").expect("is there");
        assert!(credentials.end("forge") && !credentials.end("other"));
        assert!(given.has_ended() && *given.end().borrow());
        let refused = |name| credentials.get(name).map(|_| ()).map_err(|refusal| refusal.reason);
        assert_eq!((refused("forge"), refused("other")), (Err("credential-ended"), Err("no-credential")));
    }
}
