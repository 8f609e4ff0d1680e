//! What is told to the supervisor: each attempt when it is decided, and what went over it when it is over.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::egress::{Attempt, Door, Verdict};
use model::units::{Bytes, Timestamp};

use crate::refusal::Refusal;

/// The longest text of an attempt that is told, in bytes. The rest of a name or a path says no more.
const TEXT_MAX: usize = 1024;
/// The most attempts that wait to be told; more than the supervisor can take are counted alone.
const WAITING_MAX: usize = 8192;

/// The attempts of one action.
#[derive(Clone, Default)]
pub struct Attempts(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// What is open, and what is over and not told in full.
    open: Vec<Arc<Mutex<Entry>>>,
    dropped: u64,
}

struct Entry {
    attempt: Attempt,
    /// What of it was told, when it was.
    told: Option<(u64, u64)>,
    over: bool,
}

/// An attempt that goes on. When this value goes, it is over.
pub(crate) struct Ticket(Arc<Mutex<Entry>>);

impl Attempts {
    /// Begins an attempt.
    pub(crate) fn begin(&self, attempt: Attempt) -> Ticket {
        let entry = Arc::new(Mutex::new(Entry { attempt: cut(attempt), told: None, over: false }));
        let mut waiting = lock(&self.0);
        if waiting.open.len() < WAITING_MAX {
            waiting.open.push(Arc::clone(&entry));
        } else {
            waiting.dropped += 1;
        }
        Ticket(entry)
    }

    /// Notes an attempt that is over at once.
    pub(crate) fn note(&self, attempt: Attempt) {
        drop(self.begin(attempt));
    }

    /// Counts one that nothing can be said of.
    pub(crate) fn miss(&self) {
        lock(&self.0).dropped += 1;
    }

    /// Tells whether so many wait to be told that nothing more should begin.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.0).open.len() >= WAITING_MAX
    }

    /// Takes what is to be told now, and how many could not be kept until now.
    pub fn take(&self) -> (Vec<Attempt>, u64) {
        let mut waiting = lock(&self.0);
        let mut told = Vec::new();
        waiting.open.retain(|entry| {
            let mut entry = lock(entry);
            told.extend(entry.news());
            !entry.over
        });
        (told, std::mem::take(&mut waiting.dropped))
    }
}

impl Entry {
    /// Returns what is new: all of it the first time, and later what went over it since, once it is over.
    fn news(&mut self) -> Option<Attempt> {
        let (sent, received) = (self.attempt.sent.get(), self.attempt.received.get());
        let Some((told_sent, told_received)) = self.told.replace((sent, received)) else {
            return Some(self.attempt.clone());
        };
        if !self.over || (told_sent, told_received) == (sent, received) {
            // What is not told now is told when it is over.
            self.told = Some((told_sent, told_received));
            return None;
        }
        let since = |now: u64, told: u64| Bytes::new(now - told);
        let (sent, received) = (since(sent, told_sent), since(received, told_received));
        Some(Attempt { sent, received, continued: true, ..self.attempt.clone() })
    }
}

impl Ticket {
    /// Notes bytes that went out.
    pub(crate) fn sent(&self, bytes: u64) {
        let mut entry = lock(&self.0);
        entry.attempt.sent = Bytes::new(entry.attempt.sent.get().saturating_add(bytes));
    }

    /// Notes bytes that came in.
    pub(crate) fn received(&self, bytes: u64) {
        let mut entry = lock(&self.0);
        entry.attempt.received = Bytes::new(entry.attempt.received.get().saturating_add(bytes));
    }

    /// Notes which server it is.
    pub(crate) fn reached(&self, address: IpAddr) {
        lock(&self.0).attempt.address = Some(address);
    }

    /// Notes that it is refused after all.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        lock(&self.0).attempt.verdict = refused(refusal);
    }

    /// Notes that it did not come to an end as it should, when nothing was told of it yet.
    pub(crate) fn failed(&self, why: &str) {
        let mut entry = lock(&self.0);
        if let Verdict::Allowed { rule } = &entry.attempt.verdict {
            entry.attempt.verdict = Verdict::Failed { rule: rule.clone(), why: shortened(why.to_owned()) };
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.0).over = true;
    }
}

/// What all attempts have in common when they begin.
pub(crate) fn attempt(door: Door, name: String, port: Option<u16>, verdict: Verdict) -> Attempt {
    Attempt {
        at: now(),
        door,
        name: Some(name),
        port,
        address: None,
        method: None,
        path: None,
        package: None,
        verdict,
        sent: Bytes::new(0),
        received: Bytes::new(0),
        continued: false,
    }
}

pub(crate) fn allowed(rule: &model::EgressRule) -> Verdict {
    Verdict::Allowed { rule: rule.to_string() }
}

pub(crate) fn refused(refusal: &Refusal) -> Verdict {
    refusal.clone().into()
}

pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn cut(attempt: Attempt) -> Attempt {
    let text = |text: Option<String>| text.map(shortened);
    Attempt { name: text(attempt.name), method: text(attempt.method), path: text(attempt.path), ..attempt }
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX));
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Attempt {
        attempt(Door::Direct, name.to_owned(), Some(443), Verdict::Allowed { rule: "r".to_owned() })
    }

    #[test]
    fn what_goes_on_is_told_when_it_begins_and_the_rest_when_it_is_over() {
        let attempts = Attempts::default();
        let ticket = attempts.begin(one("a.test"));
        ticket.sent(1);
        let (told, _) = attempts.take();
        assert_eq!((told.len(), told[0].sent.get(), told[0].continued), (1, 1, false));
        ticket.sent(2);
        ticket.received(3);
        assert!(attempts.take().0.is_empty());
        drop(ticket);
        let (told, _) = attempts.take();
        assert_eq!((told[0].sent.get(), told[0].received.get(), told[0].continued), (2, 3, true));
        assert!(attempts.take().0.is_empty());
    }

    #[test]
    fn what_is_over_soon_is_told_once() {
        let attempts = Attempts::default();
        attempts.note(one("a.test"));
        let ticket = attempts.begin(one("b.test"));
        ticket.received(3);
        ticket.failed("the server closed");
        drop(ticket);
        let (told, _) = attempts.take();
        assert_eq!(told.len(), 2);
        assert!(matches!(&told[1].verdict, Verdict::Failed { why, .. } if why == "the server closed"));
        assert!(attempts.take().0.is_empty());
    }

    #[test]
    fn a_flood_is_counted_and_long_texts_are_cut() {
        let attempts = Attempts::default();
        for _ in 0..WAITING_MAX + 5 {
            attempts.note(one("a.test"));
        }
        assert!(attempts.is_full());
        let (told, dropped) = attempts.take();
        assert_eq!((told.len(), dropped), (WAITING_MAX, 5));
        attempts.note(one(&"ü".repeat(TEXT_MAX)));
        assert_eq!(attempts.take().0[0].name.as_ref().map(String::len), Some(TEXT_MAX));
    }
}
