//! What is most worth knowing of an event, in a few words. Not yet escaped: [`view`] does that for the whole line.
//!
//! [`view`]: crate::view()

use model::action::Principal;
use model::change::{Change, ChangeKind};
use model::egress::{self, Attempt};
use model::enforcement::{Held, Level};
use model::event::{DecisionRecord, Event, HeldBack, Verdict};
use model::evidence::{Probe, Teardown};
use model::outcome::{Ending, Usage};
use model::stage::StageWork;
use model::units::display_duration;
use model::{OsText, RemovedOf};

/// Returns the summary of one event.
pub(crate) fn summary(event: &Event) -> String {
    match event {
        Event::TaskOpened { workspace, owner, title } => {
            let title = title.as_ref().map(|title| format!(": {title}")).unwrap_or_default();
            format!("{} by {}{title}", lossy(&workspace.path), principal(owner))
        }
        Event::Intake { intake } => {
            format!(
                "level {} on what is {}{}",
                intake.ceiling.level,
                intake.sensitivity,
                because(intake.outcome.as_deref())
            )
        }
        Event::IntakeRefused { why, .. } => why.join("; "),
        Event::Stage { stage, round, work, .. } => {
            let work = if *work == StageWork::Nothing { ", without its work" } else { "" };
            format!("{stage}, round {round}{work}")
        }
        Event::Requested { principal: who, class, tool, argv, .. } => {
            let class = if class == "action" { String::new() } else { format!(" ({class})") };
            format!("{}: {tool} {}{class}", principal(who), command(argv))
        }
        Event::Decided { decision, .. } => decided(decision),
        Event::TrialDecided { decision, .. } => format!("for a trial: {}", decided(decision)),
        Event::DenialRemembered { effects, reason } => {
            let effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
            format!("{reason}: {}", effects.join("; "))
        }
        Event::DenialMet { effect, reason, first, observed, ways } => {
            let how = if *observed { "seen while it ran" } else { "in its words" };
            format!("{reason}: {effect}, as in {first}; {how}, {}", counted(*ways, "other way"))
        }
        Event::TaskFrozen { why, by: None } => why.clone(),
        Event::TaskFrozen { why, by: Some(by) } => format!("by {}: {why}", principal(by)),
        Event::Held { hold, scope, by, reason, doubt } => {
            let doubt = doubt.as_ref().map(|doubt| format!("; perhaps no person: it {doubt}"));
            format!("{hold}: {} holds {scope}: {reason}{}", principal(by), doubt.unwrap_or_default())
        }
        Event::LegalHoldGiven { hold, scope, by, reason, doubt, .. } => {
            let doubt = doubt.as_ref().map(|doubt| format!("; perhaps no person: it {doubt}"));
            format!("{hold}: {} keeps {scope}: {reason}{}", principal(by), doubt.unwrap_or_default())
        }
        Event::HoldLifted { hold, by, reason } => format!("{hold} by {}: {reason}", principal(by)),
        Event::LegalHoldLifted { hold, by, reason } => format!("{hold} by {}: {reason}", principal(by)),
        Event::ApprovalAsked { approval, roles, .. } => {
            format!("{approval} asks for a yes of {}", roles.join(", "))
        }
        Event::ApprovalAskedAgain { approval, state, why } => {
            format!("{approval} stands for it, which is {state}{}", because(why.as_deref()))
        }
        Event::ApprovalNotAsked { why } => why.clone(),
        Event::ApprovalAnswered { approval, answer } => {
            format!(
                "{approval}: {} by {}{}",
                answer.answer,
                principal(&answer.by),
                because(answer.reason.as_deref())
            )
        }
        Event::ApprovalClosed { approval, state, why } => {
            format!(
                "{approval} is {state}{}",
                because(Some(why).filter(|why| !why.is_empty()).map(String::as_str))
            )
        }
        Event::ApprovalRefused { approval, by, why, file } => {
            let file = file.as_ref().map(|file| format!(" in {file}")).unwrap_or_default();
            format!("{approval}: an answer of {}{file} was not taken: {why}", principal(by))
        }
        Event::ApprovalExported { approval, text } => format!("{approval} for other accounts: text {text}"),
        Event::Started { backend, held, probes, masked } => {
            let masked = counted(masked.len(), "masked file");
            format!("{backend}; {}; {}; {masked}", proof(probes), walls(held))
        }
        Event::GatewayStarted { rules, probes } => {
            format!("{}; {}", counted(rules.len(), "rule"), proof(probes))
        }
        Event::NetworkAttempts { attempts, dropped } => attempted(attempts, *dropped),
        Event::CredentialLeased { credential, owner, rules, expires } => {
            let until = crate::rfc3339(*expires);
            format!("{credential} of {owner} for {} until {until}", rules.join(", "))
        }
        Event::CredentialEnded { credential, why } => format!("{credential}: {why}"),
        Event::CredentialRevoked { credential, by, reason } => {
            format!("{credential} by {}{}", principal(by), because(Some(reason.as_str())))
        }
        Event::CredentialRotated { credential, by } => format!("{credential} by {}", principal(by)),
        Event::CredentialAlert { alert } => alert.to_string(),
        Event::GatewayEnded { why, again: true } => format!("{why}; another one is started"),
        Event::GatewayEnded { why, again: false } => format!("{why}; nothing is reached any longer"),
        Event::NotStarted { reason, shortfalls, failed_probes } => {
            not_started(reason, shortfalls, failed_probes)
        }
        Event::Ended { ending, usage, observed, .. } => {
            let programs = observed.programs_dropped.saturating_add(observed.programs.len() as u64);
            format!("{}; {programs} programs", ended(ending, usage))
        }
        Event::Inspected { changes, changes_dropped, held_back, host_edits } => {
            let meanwhile = match host_edits.len() {
                0 => String::new(),
                edits => format!("; {} of the host meanwhile", counted(edits, "edit")),
            };
            format!("{}{}{meanwhile}", changed(changes, *changes_dropped), waiting(held_back))
        }
        Event::TornDown { teardown } => torn_down(teardown),
        Event::Applied { changes, held_back, .. } | Event::AppliedUndone { changes, held_back, .. } => {
            format!("{}{}", changed(changes, 0), waiting(held_back))
        }
        Event::CommitsImported { branch, commit, number, by } => {
            format!("{} up to {commit} as {branch} by {by}", counted(*number as usize, "commit"))
        }
        Event::Undone { layers } => listed("layer", layers),
        Event::Forked { from, layers } => format!("from {from} with {}", counted(layers.len(), "layer")),
        Event::TaskState { state, by: None } => state.to_string(),
        Event::TaskState { state, by: Some(by) } => format!("{state} by {}", principal(by)),
        Event::RecordRead { class, by } => format!("{class} by {}", principal(by)),
        Event::ModelTurn { model, tokens, .. } => {
            let prompt = tokens.prompt_cache_hit.saturating_add(tokens.prompt_cache_miss);
            let (hit, out) = (tokens.prompt_cache_hit, tokens.completion);
            format!("{model}: {prompt} tokens in ({hit} cached), {out} out")
        }
        Event::BaseMade { commit, by: Some(action) } => format!("commit {commit} by {action}"),
        Event::BaseMade { commit, by: None } => format!("commit {commit}, checked out before"),
        Event::AgentStarted { model, server, transcript, turns, .. } => {
            let played = if transcript.is_some() { ", played from a transcript" } else { "" };
            format!("{model} at {server}{played}, at most {turns} turns")
        }
        Event::AgentConfined { probes } => proof(probes),
        Event::AgentEnded { reason, .. } => reason.clone(),
        Event::Recovered { removed, unknown } => {
            format!(
                "removed {}; end unknown: {}",
                counted(removed.len(), "leftover"),
                listed("action", unknown)
            )
        }
        Event::AnchorFailed { records, file, why } => {
            format!(
                "the head over {} could not be kept in {}: {why}",
                counted(*records, "record"),
                lossy(file)
            )
        }
        Event::Removed { layers, bases, classes } if classes.is_empty() => {
            let bases = Some(bases.len()).filter(|bases| *bases > 0);
            let bases = bases.map(|bases| format!("; {}", counted(bases, "checked out commit")));
            format!("{}{}", listed("layer", layers), bases.unwrap_or_default())
        }
        Event::Removed { classes, .. } => {
            let one = |of: &RemovedOf| format!("{} of {}", of.names.len(), of.class);
            classes.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Event::RecordPruned { class, records, by, reason, .. } => {
            let ranges: Vec<String> = records.iter().take(5).map(ToString::to_string).collect();
            let more = if records.len() > ranges.len() { " …" } else { "" };
            format!("{class} of {}{more} by {}: {reason}", ranges.join(", "), principal(by))
        }
        Event::Pruned { was, content } => format!("{was}, by its digest {content}"),
    }
}

fn principal(principal: &Principal) -> String {
    match principal {
        Principal::User(name) => format!("user {name}"),
        Principal::Agent(name) => format!("agent {name}"),
        Principal::Engine => "engine".to_owned(),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn decided(decision: &DecisionRecord) -> String {
    let verdict = match decision.verdict {
        Verdict::Allow => "allowed",
        Verdict::Narrow => "allowed with less",
        Verdict::RequireApproval => "needs approval",
        Verdict::Deny => "denied",
    };
    let advice = match decision.verdict {
        Verdict::Allow => String::new(),
        _ => format!(": {}", decision.advice),
    };
    format!("{verdict} ({}) by {}{advice}", decision.reason, decision.rules.join(", "))
}

fn not_started(reason: &str, shortfalls: &[model::enforcement::Shortfall], failed: &[Probe]) -> String {
    let layers =
        shortfalls.iter().map(|short| format!("{} is {}, needs {}", short.layer, short.has, short.needs));
    let probes = failed.iter().map(|probe| format!("probe {} of {} failed", probe.name, probe.layer));
    std::iter::once(reason.to_owned()).chain(layers).chain(probes).collect::<Vec<_>>().join("; ")
}

/// Says what was tried, what was refused first: that is what somebody looks for.
fn attempted(attempts: &[Attempt], dropped: u64) -> String {
    let one = |attempt: &Attempt| {
        let port = attempt.port.map(|port| format!(":{port}")).unwrap_or_default();
        let how = match &attempt.verdict {
            egress::Verdict::Allowed { .. } => "allowed",
            egress::Verdict::Refused { reason, .. } => reason,
            egress::Verdict::Failed { .. } => "failed",
        };
        format!("{}{port} {how}", attempt.name.as_deref().unwrap_or("no name"))
    };
    let (refused, others): (Vec<_>, Vec<_>) = attempts.iter().partition(|attempt| attempt.is_refused());
    let named: Vec<String> = refused.into_iter().chain(others).take(5).map(one).collect();
    let more = if attempts.len() > named.len() { " …" } else { "" };
    let lost = if dropped > 0 { format!("; {dropped} more could not be told") } else { String::new() };
    format!("{}: {}{more}{lost}", counted(attempts.len(), "attempt"), named.join(", "))
}

fn proof(probes: &[Probe]) -> String {
    let held = probes.iter().filter(|probe| probe.held).count();
    format!("{held} of {} probes held", probes.len())
}

fn walls(held: &[Held]) -> String {
    let count = |level| held.iter().filter(|held| held.level == level).count();
    let (hard, watched, absent) = (count(Level::Hard), count(Level::Watched), count(Level::Absent));
    format!("{hard} layers hard, {watched} watched, {absent} absent")
}

fn ended(ending: &Ending, usage: &Usage) -> String {
    let (wall, cpu) = (display_duration(usage.wall_time), display_duration(usage.cpu_time));
    format!("{ending} after {wall}; cpu {cpu}, memory {}, disk {}", usage.memory_peak, usage.disk)
}

fn changed(changes: &[Change], dropped: u64) -> String {
    if changes.is_empty() && dropped == 0 {
        return "no changes".to_owned();
    }
    let mark = |change: &Change| match change.kind {
        ChangeKind::Created => '+',
        ChangeKind::Modified => '~',
        ChangeKind::Deleted => '-',
    };
    let total = dropped.saturating_add(changes.len() as u64);
    let path = |change: &Change| String::from_utf8_lossy(change.path.as_bytes()).into_owned();
    let named: Vec<String> =
        changes.iter().take(5).map(|change| format!("{}{}", mark(change), path(change))).collect();
    let more = if total > named.len() as u64 { " …" } else { "" };
    format!("{}: {}{more}", counted(total, "change"), named.join(" "))
}

fn waiting(held_back: &[HeldBack]) -> String {
    match held_back {
        [] => String::new(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!("; waits for a person: {} ({}){more}", lossy(&first.path), first.reason)
        }
    }
}

fn torn_down(teardown: &Teardown) -> String {
    if teardown.is_clean() {
        return format!("clean: {} kinds of things gone", teardown.gone.len());
    }
    format!("left: {}", teardown.left.join(", "))
}

fn listed(what: &str, items: &[impl ToString]) -> String {
    match items {
        [] => format!("no {what}s"),
        [one] => format!("{what} {}", one.to_string()),
        [first, .., last] => {
            format!("{}: {} … {}", counted(items.len(), what), first.to_string(), last.to_string())
        }
    }
}

fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn lossy(text: &OsText) -> String {
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

/// Writes arguments so that their boundaries can be seen, the way a shell would need them.
fn command(argv: &[OsText]) -> String {
    argv.iter().map(|argument| quoted(&lossy(argument))).collect::<Vec<_>>().join(" ")
}

fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundaries_of_arguments_are_shown() {
        let argv: Vec<OsText> = ["sh", "-c", "echo it's", ""].map(|a| a.try_into().expect("no NUL")).into();
        assert_eq!(command(&argv), r"sh -c 'echo it'\''s' ''");
    }

    #[test]
    fn a_refusal_says_what_to_do_instead() {
        let decision = DecisionRecord {
            verdict: Verdict::Deny,
            rules: vec!["default/no-network".to_owned()],
            reason: "network".to_owned(),
            advice: "work offline".to_owned(),
            person_may_allow: false,
            grant: None,
            policy: model::Digest::of(b"policy"),
        };
        assert_eq!(decided(&decision), "denied (network) by default/no-network: work offline");
    }

    #[test]
    fn one_thing_is_not_many() {
        assert_eq!(counted(1u64, "change"), "1 change");
        assert_eq!(counted(2u64, "change"), "2 changes");
        assert_eq!(listed("layer", &["act-1"]), "layer act-1");
        assert_eq!(listed("layer", &["act-1", "act-2"]), "2 layers: act-1 … act-2");
    }
}
