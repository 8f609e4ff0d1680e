//! What of a run was not let out, in one line.

use model::egress::{Attempt, NetworkUse, Verdict};
use model::text::escape;

use crate::output::shape::ActionDocument;

/// How many refusals are named.
const NAMED: usize = 3;

/// Returns the line that says what was refused over the network, and why the gateway was closed; nothing when all went
/// well.
pub fn refused_line(document: &ActionDocument) -> Option<String> {
    let network = document.end.as_ref()?.observed.network.as_deref()?;
    let parts: Vec<String> = closed(network).into_iter().chain(refused(network)).collect();
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
    let why = match &attempt.verdict {
        Verdict::Refused { why, .. } => escape(why),
        Verdict::Allowed { .. } | Verdict::Failed { .. } => "".into(),
    };
    format!("{name}{port} ({why})")
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
            verdict: Verdict::Refused { reason: "no-rule".to_owned(), why: why.to_owned() },
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
