//! What is said about the network: what was tried, what was not let out, and what may be reached.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use model::egress::{Attempt, AttemptCount, EgressRule, NetworkUse, Ranges, Verdict};
use model::{ActionId, OsText, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

use super::schemas as schema;
use super::{ActionDocument, PolicyAnswer, shell_word};

/// `net log --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NetLogDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// What was tried, oldest first; equal attempts of one action once.
    pub attempts: Vec<NetLogRow>,
    /// How many more there were than could be kept in this list; each of those that were told is on the record.
    pub dropped: u64,
}

/// Equal attempts of one action.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NetLogRow {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// The first of them, and how many there were.
    #[serde(flatten)]
    #[schemars(schema_with = "schema::attempt_count")]
    pub tried: AttemptCount,
}

/// `net explain --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NetExplainDocument {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// The rules that it was given; `null` when it had no network at all.
    pub given: Option<Vec<String>>,
    /// What it was refused, the most frequent first.
    pub refused: Vec<NetRefusal>,
    /// Why its gateway was closed before its end; `null` when it was not.
    pub closed: Option<String>,
    /// A command that would run it again with all that it lacked; `null` when no rule would help, or when what it had stands in
    /// settings alone: a network inside, a credential, a registry.
    pub again: Option<String>,
}

/// What an action could not reach for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetRefusal {
    /// What it tried to reach.
    pub what: String,
    /// The stable code.
    pub reason: String,
    /// A sentence for people.
    pub why: String,
    /// How often.
    pub times: u64,
    /// The rule that would let it, as it is written; `null` when no rule would.
    pub needs: Option<String>,
    /// The tables of the settings that have such a rule: `--allow-net NAME` takes one.
    pub named_by: Vec<String>,
}

/// `net test --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NetTestDocument {
    /// What is to be reached, as the rule for exactly that is written.
    pub asked: String,
    /// The rule that lets it, as it is written; `null` when none does.
    pub rule: Option<String>,
    /// The tables of the settings that have this rule.
    pub named_by: Vec<String>,
    /// Whether the gateway looks into TLS for that rule.
    pub looks_into_tls: bool,
    /// The rule that it would need; `null` when there is one.
    pub needs: Option<String>,
    /// What policy answers to a run that is given the rule; `null` when there is none.
    pub policy: Option<NetPolicy>,
}

/// What policy answers to a run that is to reach something.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NetPolicy {
    /// The answer.
    pub answer: PolicyAnswer,
    /// The stable code.
    pub reason: String,
    /// What can be done.
    pub advice: String,
    /// The rules of policy that made it.
    pub rules: Vec<String>,
}

impl ActionDocument {
    /// Returns what was tried over the network: while it runs, what is known so far.
    pub fn network(&self) -> Option<&NetworkUse> {
        let ended = self.end.as_ref().and_then(|end| end.observed.network.as_deref());
        ended.or(self.network_so_far.as_ref())
    }
}

impl NetExplainDocument {
    /// Explains what an action could not reach; `named_by` tells which tables of the settings have a rule.
    pub fn of(action: &ActionDocument, named_by: impl Fn(&EgressRule) -> Vec<String>) -> Self {
        let mut refused = refusals(action);
        for refusal in &mut refused {
            let rule = refusal.needs.as_ref().and_then(|rule| rule.parse().ok());
            refusal.named_by = rule.as_ref().map(&named_by).unwrap_or_default();
        }
        let given = action.decision.as_ref().and_then(|decision| decision.grant.as_ref());
        let given = given.and_then(|grant| grant.network.egress());
        let given: Option<Vec<String>> = given.map(|rules| rules.iter().map(ToString::to_string).collect());
        let needed: BTreeSet<&String> = refused.iter().filter_map(|refusal| refusal.needs.as_ref()).collect();
        // What holds for a rule beside comes from settings, and cannot be written as a rule on a command line.
        let is_written = given.iter().flatten().all(|rule| rule.parse::<EgressRule>().is_ok());
        let had = given.iter().flatten();
        let options: BTreeSet<String> =
            had.chain(needed.iter().copied()).map(|rule| allow_net(rule)).collect();
        let options: Vec<String> = options.into_iter().collect();
        let again = format!("fumehood run {} -- {}", options.join(" "), action.command());
        Self {
            action: action.action.clone(),
            again: (is_written && !needed.is_empty()).then_some(again),
            given,
            closed: action.network().and_then(|network| network.closed.clone()),
            refused,
        }
    }
}

/// Writes the option that asks for a rule, as a shell takes it.
pub fn allow_net(rule: &str) -> String {
    format!("--allow-net {}", shell_word(&OsText::literal(rule)))
}

/// Returns what an action could not reach, the most frequent first.
pub fn refusals(document: &ActionDocument) -> Vec<NetRefusal> {
    let mut found: Vec<NetRefusal> = Vec::new();
    let by_gateway = document.network().into_iter().flat_map(|network| &network.attempts).filter_map(refusal);
    for refusal in by_gateway.chain(by_address(document)) {
        let like = |known: &&mut NetRefusal| {
            (&known.what, &known.reason, &known.why) == (&refusal.what, &refusal.reason, &refusal.why)
        };
        match found.iter_mut().find(like) {
            Some(known) => known.times += refusal.times,
            None => found.push(refusal),
        }
    }
    found.sort_by_key(|refusal| std::cmp::Reverse(refusal.times));
    found
}

fn refusal(tried: &AttemptCount) -> Option<NetRefusal> {
    let AttemptCount { attempt, times } = tried;
    let Verdict::Refused { reason, why, needs } = attempt.verdict.clone() else { return None };
    let what = what(attempt);
    Some(NetRefusal { what, reason, why, times: *times, needs, named_by: Vec::new() })
}

/// Says what an attempt was to reach: `GET name:port/path`, as far as that was seen.
pub fn what(attempt: &Attempt) -> String {
    let address = || attempt.address.map(|address| address.to_string());
    let host = attempt.name.clone().or_else(address).unwrap_or_else(|| "no name".to_owned());
    let method = attempt.method.as_ref().map(|method| format!("{method} ")).unwrap_or_default();
    let port = attempt.port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{method}{host}{port}{}", attempt.path.as_deref().unwrap_or_default())
}

/// Returns what was tried by an address that no name leads to, as the kernel's notification saw it.
fn by_address(document: &ActionDocument) -> impl Iterator<Item = NetRefusal> {
    let (reason, why, own) = match document.network() {
        Some(_) => (
            "no-name",
            "only addresses that a name leads to are reached, and those that a rule names",
            Some(Ranges::default()),
        ),
        None => ("no-network", "inside there is no network but its own loopback", None),
    };
    let tried = document.end.iter().flat_map(|end| &end.observed.connections);
    let outside = tried.map(|tried| tried.address.as_str()).filter(move |address| leaves(address, own));
    outside.map(move |address| NetRefusal {
        what: address.to_owned(),
        reason: reason.to_owned(),
        why: why.to_owned(),
        times: 1,
        needs: None,
        named_by: Vec::new(),
    })
}

/// Tells whether an address is beyond the sandbox's own loopback, its own sockets and the addresses of names.
fn leaves(address: &str, names: Option<Ranges>) -> bool {
    let own = ["127.", "[::1]", "[::ffff:127.", "0.0.0.0:", "[::]:", "unix:", "abstract:"];
    let of_name =
        |names: Ranges| match address.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
            Ok(IpAddr::V4(address)) => names.v4.contains(&address),
            Ok(IpAddr::V6(address)) => names.v6.contains(&address),
            Err(_) => false,
        };
    !own.iter().any(|start| address.starts_with(start)) && !names.is_some_and(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_own_sockets_and_addresses_of_names_do_not_leave() {
        let names = Some(Ranges::default());
        for (address, without, with) in [
            ("127.0.0.1:80", false, false),
            ("[::1]:80", false, false),
            ("unix:/run/x", false, false),
            ("198.18.0.1:443", true, false),
            ("[fd66:756d:65::1]:443", true, false),
            ("[::ffff:198.18.0.1]:443", true, false),
            ("192.0.2.1:443", true, true),
            ("[2001:db8::1]:53", true, true),
            ("netlink", true, true),
        ] {
            assert_eq!((leaves(address, None), leaves(address, names)), (without, with), "{address}");
        }
    }
}
