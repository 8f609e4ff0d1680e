//! What was tried over the network, what of it was not let out, and what may be.

use model::egress::{AlertKind, Attempt, AttemptCount, Door, NetworkUse, Verdict};
use model::text::escape;

use super::super::shape::{
    ActionDocument, NetExplainDocument, NetLogDocument, NetLogRow, NetTestDocument, PolicyAnswer, allow_net,
    what,
};
use super::super::style::Paint;
use super::moment;
use super::table::{Cell, Page, table};

/// How many refusals are named.
const NAMED: usize = 3;

/// Returns the line that says what was refused over the network, which credentials came back, and why the gateway was closed;
/// nothing when all went well.
pub fn refused_line(document: &ActionDocument) -> Option<String> {
    let network = document.network()?;
    let came_back = network.alerts.iter().filter(|alert| alert.kind == AlertKind::ValueCameBack);
    let parts = closed(network).into_iter().chain(came_back.map(ToString::to_string));
    let parts: Vec<String> = parts.chain(refused(network)).collect();
    let more = format!("`fumehood why {}` says more", document.action);
    (!parts.is_empty()).then(|| format!("fumehood: {}; {more}", parts.join("; ")))
}

fn closed(network: &NetworkUse) -> Option<String> {
    let why = escape(network.closed.as_deref()?);
    Some(format!("the gateway was closed, so nothing more was reached: {why}"))
}

fn refused(network: &NetworkUse) -> Option<String> {
    let refused = network.attempts.iter().map(|one| &one.attempt).filter(|attempt| attempt.is_refused());
    // A name is asked for in two ways, and again for each connection: each is said once.
    let mut said: Vec<String> = Vec::new();
    for text in refused.map(one) {
        if !said.contains(&text) {
            said.push(text);
        }
    }
    let left = said.len().saturating_sub(NAMED);
    said.truncate(NAMED);
    let more = if left > 0 { format!("; and {left} more") } else { String::new() };
    (!said.is_empty()).then(|| format!("refused over the network: {}{more}", said.join("; ")))
}

fn one(attempt: &Attempt) -> String {
    let name = escape(attempt.name.as_deref().unwrap_or("no name"));
    let port = attempt.port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{name}{port} ({})", said(&attempt.verdict))
}

/// Says why a verdict is as it is.
fn said(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allowed { rule } => format!("by `{}`", escape(rule)),
        Verdict::Refused { why, .. } => escape(why).into_owned(),
        Verdict::Failed { rule, why } => format!("by `{}`: {}", escape(rule), escape(why)),
    }
}

/// Writes equal attempts in one line.
pub(super) fn attempt_line(one: &AttemptCount, paint: Paint) -> String {
    let AttemptCount { attempt, times } = one;
    let times = if *times > 1 { format!(", {times} times") } else { String::new() };
    let (word, colour) = verdict(&attempt.verdict);
    format!(
        "{} {}{}{times}: {}",
        colour(paint, word.to_owned()),
        escape(&what(attempt)),
        bytes(attempt),
        said(&attempt.verdict)
    )
}

/// Returns the word for a verdict, and its colour.
fn verdict(verdict: &Verdict) -> (&'static str, fn(Paint, String) -> String) {
    match verdict {
        Verdict::Allowed { .. } => ("allowed", |paint, text| paint.good(text)),
        Verdict::Refused { .. } => ("refused", |paint, text| paint.bad(text)),
        Verdict::Failed { .. } => ("failed", |paint, text| paint.caution(text)),
    }
}

/// Says how much went out and came in; of a question for a name nothing, since none leaves as it is.
fn bytes(attempt: &Attempt) -> String {
    match (attempt.door, attempt.sent.get(), attempt.received.get()) {
        (Door::Dns, ..) => " (its name)".to_owned(),
        (_, 0, 0) => String::new(),
        _ => format!(", {} out and {} in", attempt.sent, attempt.received),
    }
}

/// Lists what the actions of a task tried to reach.
pub fn net_log(document: &NetLogDocument, paint: Paint) -> String {
    let mut text = match document.attempts.as_slice() {
        [] => "nothing was tried over the network\n".to_owned(),
        rows => table(&rows.iter().map(log_row).collect::<Vec<_>>(), paint),
    };
    if document.dropped > 0 {
        text.push_str(&format!(
            "and {} more, which stand on the record as far as they were told\n",
            document.dropped
        ));
    }
    text
}

fn log_row(row: &NetLogRow) -> Vec<Cell> {
    let AttemptCount { attempt, times } = &row.tried;
    let (word, colour) = verdict(&attempt.verdict);
    vec![
        Cell::painted(row.action.as_str(), |p, t| p.name(t)),
        Cell::plain(moment(attempt.at)),
        Cell::painted(word, colour),
        Cell::plain(if *times > 1 { format!("{times} times") } else { String::new() }),
        Cell::plain(format!("{}{}", what(attempt), bytes(attempt))),
        Cell::escaped(said(&attempt.verdict)),
    ]
}

/// Explains what an action could not reach.
pub fn net_explain(document: &NetExplainDocument, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.heading(&paint.name(&document.action));
    match &document.given {
        None => page.line("given", "no network but its own loopback"),
        Some(rules) => page.lines("given", rules.iter().map(|rule| escape(rule).into_owned())),
    }
    if document.refused.is_empty() {
        page.line("refused", "nothing");
    }
    for refusal in &document.refused {
        let times = if refusal.times > 1 { format!(", {} times", refusal.times) } else { String::new() };
        page.line(
            "refused",
            &format!("{}{times}: {}", paint.bold(escape(&refusal.what)), escape(&refusal.why)),
        );
        for name in &refusal.named_by {
            page.line("", &format!("`--allow-net {}` has it, by your settings", escape(name)));
        }
    }
    document.closed.iter().for_each(|why| page.line("closed", &paint.bad(escape(why))));
    document.again.iter().for_each(|command| page.line("again", command));
    page.finish()
}

/// Says whether something may be reached.
pub fn net_test(document: &NetTestDocument, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.heading(&paint.bold(escape(&document.asked)));
    match (&document.rule, &document.needs) {
        (Some(rule), _) => page.line("rule", &escape(rule)),
        (None, needs) => {
            page.line("rule", &paint.bad("none names it"));
            needs
                .iter()
                .for_each(|rule| page.line("next", &format!("`{}` asks a person for it", allow_net(rule))));
        }
    }
    if !document.named_by.is_empty() {
        let options = document.named_by.iter().map(|name| format!("`--allow-net {}`", escape(name)));
        page.line("settings", &options.collect::<Vec<_>>().join(", "));
    }
    if document.looks_into_tls {
        page.line("TLS", "the gateway looks into it, and clients inside are told to trust that");
    }
    if let Some(policy) = &document.policy {
        let answer = match policy.answer {
            PolicyAnswer::Allow => paint.good("allows it without asking"),
            PolicyAnswer::Ask => paint.caution("asks a person"),
            PolicyAnswer::Deny => paint.bad("denies it"),
        };
        let rules = escape(&policy.rules.join(", ")).into_owned();
        page.line("policy", &format!("{answer} ({}) by {rules}", escape(&policy.reason)));
        if policy.answer != PolicyAnswer::Allow && !policy.advice.is_empty() {
            page.line("", &escape(&policy.advice));
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use model::egress::Door;
    use model::units::{Bytes, Timestamp};

    use super::*;

    fn attempt(name: &str, port: Option<u16>, why: &str) -> Attempt {
        Attempt {
            at: Timestamp::from_nanos(1),
            door: Door::Dns,
            name: Some(name.to_owned()),
            port,
            address: None,
            method: None,
            path: None,
            package: None,
            verdict: Verdict::Refused { reason: "no-rule".to_owned(), why: why.to_owned(), needs: None },
            sent: Bytes::new(0),
            received: Bytes::new(0),
            continued: false,
        }
    }

    #[test]
    fn what_was_refused_is_named_once_and_cannot_drive_a_terminal() {
        let mut network = NetworkUse::default();
        assert_eq!(refused(&network), None);
        network.add(&attempt("a.test", None, "no rule names it"));
        network.add(&Attempt { door: Door::Socks, ..attempt("a.test", None, "no rule names it") });
        network.add(&attempt("b\u{1b}.test", Some(22), "no rule for this port"));
        let both =
            "refused over the network: a.test (no rule names it); b\\u{1b}.test:22 (no rule for this port)";
        assert_eq!(refused(&network).as_deref(), Some(both));
        for name in ["c.test", "d.test", "e.test"] {
            network.add(&attempt(name, None, "no"));
        }
        assert_eq!(refused(&network).as_deref(), Some(&*format!("{both}; c.test (no); and 2 more")));
    }
}
