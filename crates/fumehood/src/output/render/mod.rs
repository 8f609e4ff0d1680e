//! The text that people read, made from the same documents that programs get as JSON.
//!
//! Guarantees: every function is pure, and whatever came from outside is escaped.

mod action;
mod agent;
mod approval;
mod credential;
mod demo;
mod diff;
mod doctor;
mod lists;
mod network;
mod policy;
mod policy_tools;
mod reproduce;
mod table;
mod why;

pub use action::{action, outcome_line};
pub use agent::{agent, agent_step, refused_by};
pub use approval::{
    answered, approval_stats, approvals, batch, brief_dossier, exported, exported_dossier, signed,
    whole_dossier,
};
pub use credential::{credential, credential_changed, credentials};
pub use demo::demo;
pub use diff::{applied, change_list, changes, diff, patch, taken_back};
pub use doctor::doctor;
pub use lists::{
    artifacts, config, deps, gc, legal_holds, log, problems, pruned, stopped, task, task_refused, tasks, undo,
};
pub use network::{net_explain, net_log, net_test, refused_line};
pub use policy::{decision, dossier, policy_check};
pub use policy_tools::{explanation, policy_diff, policy_test, proofs, replay, suggestion};
pub use reproduce::reproduced;
pub use why::why;

use std::time::Duration;

use model::Timestamp;

/// Writes a span for people: short ones to the tenth of a millisecond, long ones to the second.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match time.as_micros() {
        0..10_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{:.0} ms", time.as_secs_f64() * 1e3),
        1_000_000..60_000_000 => format!("{:.1} s", time.as_secs_f64()),
        _ if seconds < 3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Writes a moment for people: to the second, in UTC.
fn moment(time: Timestamp) -> String {
    let text = audit::rfc3339(time);
    match text.split_once('.') {
        Some((whole, _)) => format!("{}Z", whole.replace('T', " ")),
        None => text,
    }
}

/// Writes a number with its word, in the plural where that is right.
pub fn counted(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_exact_as_people_need() {
        for (time, text) in [
            (Duration::from_micros(1_240), "1.2 ms"),
            (Duration::from_millis(123), "123 ms"),
            (Duration::from_millis(12_340), "12.3 s"),
            (Duration::from_secs(61), "1 min 01 s"),
            (Duration::from_secs(7_320), "2 h 02 min"),
        ] {
            assert_eq!(span(time), text);
        }
        assert_eq!(moment(Timestamp::from_nanos(1_764_440_834_123_456_789)), "2025-11-29 18:27:14Z");
        assert_eq!((counted(1, "file"), counted(0, "file")), ("1 file".to_owned(), "0 files".to_owned()));
    }
}
