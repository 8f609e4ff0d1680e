//! One action, for people.

use model::action::Principal;
use model::change::ChangeKind;
use model::egress::NetworkUse;
use model::enforcement::{Held, Level};
use model::event::Verdict;
use model::evidence::{Observed, Probe, Reads, Teardown};
use model::grant::Network;
use model::text::escape;
use model::{Bytes, Ending};

use super::super::shape::{
    ActionDocument, ChangePart, DecisionPart, DeniedPart, EndPart, InspectionPart, NotStartedPart,
    RequestPart, SandboxPart,
};
use super::super::style::Paint;
use super::diff::{change_lines, held_back};
use super::network::attempt_line;
use super::table::Page;
use super::{counted, moment, span};

/// Lines of a list that is shown in part.
const SHOWN: usize = 12;

/// Shows everything that is known about an action; `full` shows long lists whole.
pub fn action(document: &ActionDocument, paint: Paint, full: bool) -> String {
    let mut page = Page::new(paint);
    let most = if full { usize::MAX } else { SHOWN };
    page.heading(&format!("{}  {}", paint.name(&document.action), paint.bold(document.command())));
    if let Some(task) = &document.task {
        page.line("task", task.as_str());
    }
    document.request.iter().for_each(|part| request(&mut page, part));
    document.decision.iter().for_each(|part| decision(&mut page, part, paint));
    page.lines("before", document.denied_before.iter().map(denied_before));
    document.approval.iter().for_each(|part| page.line("approval", &part.sentence()));
    document
        .not_asked
        .iter()
        .for_each(|why| page.line("approval", &format!("nobody is asked: {}", escape(why))));
    document.not_started.iter().for_each(|part| not_started(&mut page, part, paint));
    document.sandbox.iter().for_each(|part| sandbox(&mut page, &document.held, part, paint));
    document.sandbox.iter().filter(|_| full).for_each(|part| proof(&mut page, &document.held, part, paint));
    document.end.iter().for_each(|part| end(&mut page, part, paint, most));
    document.network().iter().for_each(|network| tried(&mut page, network, paint, most));
    document.inspection.iter().for_each(|part| inspection(&mut page, part, paint, most));
    document.teardown.iter().for_each(|part| teardown(&mut page, part, paint));
    for part in &document.applied {
        let what = if part.undone { "taken back" } else { "applied" };
        page.line(what, &format!("{} at {}", counted(part.changes.len() as u64, "file"), moment(part.at)));
        page.lines("", held_back(&part.held_back, paint).lines().map(str::to_owned));
    }
    let shown = document.joined_by.iter().take(most);
    for part in shown {
        page.line("joined by", &format!("{} of {}", part.action, part.task));
    }
    if document.joined_by.len() > most {
        page.line("", &format!("and {} more", document.joined_by.len() - most));
    }
    if !document.pruned.is_empty() {
        let events = document.pruned.iter().map(|was| escape(was).into_owned()).collect::<Vec<_>>();
        page.line("pruned", &format!("the content of {} was taken out of the record", events.join(", ")));
    }
    if document.undone {
        page.line("undone", "its layer was taken off the task");
    }
    page.finish()
}

fn request(page: &mut Page, part: &RequestPart) {
    let who = match &part.principal {
        Principal::User(name) => format!("{} (a person)", escape(name)),
        Principal::Agent(name) => format!("{} (an agent)", escape(name)),
        Principal::Engine => "the engine itself".to_owned(),
    };
    page.line("asked", &format!("{} by {who}", moment(part.at)));
    if let Some(purpose) = &part.claimed_purpose {
        page.line("claims", &escape(purpose));
    }
    let base = match &part.commit {
        Some(commit) => format!("commit {}", escape(commit)),
        None => "live, as it stood".to_owned(),
    };
    let layers = counted(part.layers.len() as u64, "layer");
    page.line("workspace", &format!("{} {base}, {layers} below", part.workspace));
    if let Some(network) = network(&part.grant.network) {
        page.line("asks for", &format!("another network: {network}"));
    }
    if !part.environment.is_empty() {
        page.line("variables", &escape(&part.environment.join(" ")));
    }
    page.lines("declares", part.effects.iter().map(|effect| effect.text.clone()));
    page.line("digest", &part.digest.to_string());
}

/// Says what network a grant is for, when it is another than its own.
fn network(network: &Network) -> Option<String> {
    match network {
        Network::Loopback => None,
        Network::Host => Some("that of the host".to_owned()),
        Network::Joined(action) => Some(format!("the loopback of {action}")),
        Network::Egress(rules) => {
            let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
            Some(format!("what the gateway lets through to {}", rules.join(", ")))
        }
    }
}

fn decision(page: &mut Page, part: &DecisionPart, paint: Paint) {
    let verdict = match part.verdict {
        Verdict::Allow => paint.good("allowed"),
        Verdict::Narrow => paint.caution("allowed with less than asked"),
        Verdict::RequireApproval => paint.caution("needs a person's approval"),
        Verdict::Deny => paint.bad("denied"),
    };
    let rules = escape(&part.rules.join(", ")).into_owned();
    page.line("decision", &format!("{verdict} ({}) by {rules}", escape(&part.reason)));
    if part.verdict != Verdict::Allow && !part.advice.is_empty() {
        page.line("", &escape(&part.advice));
    }
    if let Some(grant) = &part.grant {
        let limits = &grant.limits;
        let (memory, disk) = (Bytes::new(limits.memory), Bytes::new(limits.disk));
        let time = span(limits.wall_time_ms);
        let text = format!(
            "profile {}: {memory} memory, {} processes, {disk} disk, {time}",
            escape(&grant.profile),
            limits.processes
        );
        page.line("grant", &text);
        if let Some(network) = network(&grant.network) {
            page.line("network", &network);
        }
    }
}

/// Says what was denied before, and how it came up again.
fn denied_before(part: &DeniedPart) -> String {
    let how = if part.observed { "seen while it ran, so nothing of it was kept" } else { "in its words" };
    let (effect, reason) = (escape(&part.effect.text), escape(&part.reason));
    if part.is_first {
        return format!("{effect}: denied by policy ({reason}); {how}");
    }
    format!("{effect}: denied to {} ({reason}); {how}", part.first)
}

fn not_started(page: &mut Page, part: &NotStartedPart, paint: Paint) {
    page.line("not run", &paint.bad(escape(&part.reason)));
    page.lines(
        "",
        part.shortfalls.iter().map(|short| {
            format!("{} is {}, needs {}: {}", short.layer, short.has, short.needs, escape(&short.why))
        }),
    );
    page.lines("", part.failed_probes.iter().map(|probe| probe_line(probe, paint)));
}

fn sandbox(page: &mut Page, held: &[Held], part: &SandboxPart, paint: Paint) {
    let stopped = part.probes.iter().filter(|probe| probe.held).count();
    let proof = format!("{stopped} of {} probes held", part.probes.len());
    let proof = if stopped == part.probes.len() { paint.good(proof) } else { paint.bad(proof) };
    page.line("sandbox", &format!("{}; {}; {proof}", escape(&part.backend), walls(held)));
    let weaker = held.iter().filter(|held| held.level != Level::Hard);
    page.lines("", weaker.map(|held| held_line(held, paint)));
    page.lines("", part.probes.iter().filter(|probe| !probe.held).map(|probe| probe_line(probe, paint)));
    page.lines("masked", shortened(part.masked.iter().map(ToString::to_string), part.masked.len(), 0, SHOWN));
}

fn proof(page: &mut Page, held: &[Held], part: &SandboxPart, paint: Paint) {
    page.lines("layers", held.iter().map(|held| held_line(held, paint)));
    page.lines("probes", part.probes.iter().map(|probe| probe_line(probe, paint)));
    if part.masked.len() > SHOWN {
        page.lines("masked", part.masked.iter().map(ToString::to_string));
    }
}

/// Counts the layers by how firmly they are held.
pub(super) fn walls(held: &[Held]) -> String {
    let count = |level| held.iter().filter(|held| held.level == level).count();
    let named = [(Level::Hard, "hard"), (Level::Watched, "watched"), (Level::Absent, "absent")];
    let counts = named.into_iter().map(|(level, name)| (count(level), name)).filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
    if counts.is_empty() { "no layers".to_owned() } else { format!("layers: {}", counts.join(", ")) }
}

pub(super) fn held_line(held: &Held, paint: Paint) -> String {
    let level = match held.level {
        Level::Hard => paint.good("hard"),
        Level::Watched => paint.caution("watched"),
        Level::Absent => paint.bad("absent"),
    };
    format!("{} {level}: {}", held.layer, escape(&held.by))
}

pub(super) fn probe_line(probe: &Probe, paint: Paint) -> String {
    let held = if probe.held { paint.good("held") } else { paint.bad("not held") };
    let control =
        probe.control.as_ref().map(|control| format!("; outside: {}", escape(control))).unwrap_or_default();
    format!("{} ({}) {held}: {}{control}", escape(&probe.name), probe.layer, escape(&probe.observed))
}

fn end(page: &mut Page, part: &EndPart, paint: Paint, most: usize) {
    let usage = &part.usage;
    let ending = part.ending.to_string();
    let ending = if part.ending.succeeded() { paint.good(ending) } else { paint.bad(ending) };
    page.line("ended", &format!("{ending} after {}", span(usage.wall_time_ms)));
    let text = format!(
        "{} of processor, {} memory at most, {} at most, {} in {}",
        span(usage.cpu_time_ms),
        Bytes::new(usage.memory_peak),
        counted(usage.processes_peak.into(), "process").replace("processs", "processes"),
        Bytes::new(usage.disk),
        counted(usage.files, "file"),
    );
    page.line("used", &text);
    let printed = part.output.iter().map(|output| {
        let dropped = match output.dropped {
            0 => String::new(),
            dropped => format!(", {} dropped", Bytes::new(dropped)),
        };
        format!("{} {}{dropped}", escape(&output.stream), Bytes::new(output.kept))
    });
    page.line("output", &printed.collect::<Vec<_>>().join("; "));
    observed(page, &part.observed, most);
    let steps = part.steps.iter().map(|step| format!("{} {}", escape(&step.step), span(step.time_ms)));
    page.line("steps", &steps.collect::<Vec<_>>().join(", "));
}

fn observed(page: &mut Page, observed: &Observed, most: usize) {
    let programs = observed.programs.iter().map(|program| {
        let argv: Vec<String> = program.argv.iter().map(super::super::shape::shell_word).collect();
        format!("{} ({})", argv.join(" "), program.file)
    });
    page.lines("programs", shortened(programs, observed.programs.len(), observed.programs_dropped, most));
    let refused = observed.unlisted_programs.iter().map(|program| {
        let argv: Vec<String> = program.argv.iter().map(super::super::shape::shell_word).collect();
        format!("{} ({}), by `{}`", argv.join(" "), program.file, program.layer)
    });
    let (number, dropped) = (observed.unlisted_programs.len(), observed.unlisted_programs_dropped);
    page.lines("unlisted", shortened(refused, number, dropped, most));
    let tried = observed.connections.iter().map(|attempt| escape(&attempt.address).into_owned());
    page.lines("connects", shortened(tried, observed.connections.len(), observed.connections_dropped, most));
    match &observed.reads {
        None => page.line("reads", "not observed"),
        Some(Reads { files, complete }) => {
            let shown = shortened(files.iter().map(ToString::to_string), files.len(), 0, most);
            page.lines("reads", shown);
            if !complete {
                page.line("", "and others: there were too many to keep");
            }
        }
    }
    let limits: Vec<String> = observed.limits_touched.iter().map(ToString::to_string).collect();
    if !limits.is_empty() {
        page.line("limits met", &limits.join(", "));
    }
}

/// Shows what was tried over the network, also while it runs.
fn tried(page: &mut Page, network: &NetworkUse, paint: Paint, most: usize) {
    let lines = network.attempts.iter().map(|one| attempt_line(one, paint));
    let dropped = network.attempts_dropped + network.untold;
    page.lines("reached", shortened(lines, network.attempts.len(), dropped, most));
    if let Some(why) = &network.closed {
        page.line("", &paint.bad(format!("the gateway was closed: {}", escape(why))));
    }
}

/// Returns the first lines of a list, and how many there are besides.
pub(super) fn shortened(
    lines: impl Iterator<Item = String>,
    number: usize,
    dropped: u64,
    most: usize,
) -> Vec<String> {
    let mut shown: Vec<String> = lines.take(most).collect();
    let more = number.saturating_sub(most) as u64 + dropped;
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

fn inspection(page: &mut Page, part: &InspectionPart, paint: Paint, most: usize) {
    let count = |kind: ChangeKind| {
        part.changes.iter().filter(|change| change.kind == kind && change.is_shown()).count()
    };
    let of_git = part.changes.iter().filter(|change| change.is_of_git()).count() as u64;
    let ignored = part.changes.iter().filter(|change| change.ignored).count() as u64;
    let summary = [
        (count(ChangeKind::Created) as u64, "created"),
        (count(ChangeKind::Modified) as u64, "changed"),
        (count(ChangeKind::Deleted) as u64, "deleted"),
        (ignored, "ignored by git"),
        (of_git, "below .git"),
        (part.changes_dropped, "not listed"),
    ];
    let named = summary.into_iter().filter(|(number, _)| *number > 0);
    let named: Vec<String> = named.map(|(number, what)| format!("{number} {what}")).collect();
    page.line("changes", &if named.is_empty() { "none".to_owned() } else { named.join(", ") });
    let listed: Vec<_> = part.changes.iter().filter(|change| change.is_shown()).cloned().collect();
    page.lines("", shortened(change_lines(&listed, paint).into_iter(), listed.len(), 0, most));
    page.lines("", held_back(&part.held_back, paint).lines().map(str::to_owned));
    if !part.host_edits.is_empty() {
        let edits = part.host_edits.iter().map(ToString::to_string);
        let edits: Vec<String> = shortened(edits, part.host_edits.len(), 0, most);
        let what = format!("edited on the host while it ran, so it proves nothing: {}", edits.join(", "));
        page.line("live", &paint.caution(what));
    }
}

fn teardown(page: &mut Page, part: &Teardown, paint: Paint) {
    if part.is_clean() {
        page.line(
            "teardown",
            &format!("{}; looked at {}", paint.good("nothing left"), escape(&part.gone.join(", "))),
        );
    } else {
        page.line("teardown", &paint.bad(format!("left: {}", escape(&part.left.join(", ")))));
    }
}

/// The reason why nothing of `.git` is applied.
const GIT_INTERNALS: &str = "git-internals";

/// Says what changed although there is nothing to review.
fn beside(part: &InspectionPart) -> String {
    let ignored = part.changes.iter().filter(|change| change.ignored && !change.is_of_git()).count();
    let of_git = part.changes.iter().any(ChangePart::is_of_git);
    match (of_git, ignored) {
        (false, 0) => String::new(),
        (true, 0) => " but git's own".to_owned(),
        (false, ignored) => format!(" but {ignored} that git ignores"),
        (true, ignored) => format!(" but git's own and {ignored} that git ignores"),
    }
}

/// Says in one line how a run ended, for standard error after the command's own output.
pub fn outcome_line(document: &ActionDocument, paint: Paint) -> String {
    let id = paint.name(&document.action);
    let ended = match (&document.end, &document.not_started, &document.decision) {
        (Some(end), ..) if document.is_only_tried() => format!(
            "{} on a throwaway layer: it {} after {}",
            paint.caution("was only tried"),
            end.ending,
            span(end.usage.wall_time_ms)
        ),
        (Some(end), _, _) if matches!(end.ending, Ending::NotFound) => {
            let argv = document.request.iter().flat_map(|request| request.argv.first());
            format!(
                "found no program {}in the sandbox",
                argv.map(|program| format!("`{program}` ")).collect::<String>()
            )
        }
        (Some(end), _, _) => format!("{} after {}", end.ending, span(end.usage.wall_time_ms)),
        (None, Some(part), _) => format!("{}: {}", paint.bad("did not start"), escape(&part.reason)),
        (None, None, Some(decision)) if !decision.is_yes() => {
            let joins = document.joins().map(|action| format!("the network of {action}: "));
            let (joins, advice) = (joins.unwrap_or_default(), escape(&decision.advice));
            match decision.verdict {
                // What follows says who is asked.
                Verdict::RequireApproval => paint.caution("did not run, it needs a person's yes"),
                _ => format!("{}: {joins}{advice}", paint.bad("denied by policy")),
            }
        }
        _ => "has no end on the record".to_owned(),
    };
    let changes = document.inspection.as_ref().map(|part| {
        let number = part.shown();
        let held = match part.held_back.iter().filter(|held| held.reason != GIT_INTERNALS).count() {
            0 => String::new(),
            held => format!(", {held} held back"),
        };
        let edits = match part.host_edits.len() as u64 {
            0 => String::new(),
            edits => format!(", {} of the host meanwhile", counted(edits, "edit")),
        };
        if number == 0 {
            format!("; no changes{}{edits}", beside(part))
        } else {
            format!("; {}{held}{edits}", counted(number, "change"))
        }
    });
    let waits = match (&document.approval, &document.not_asked) {
        (Some(approval), _) if !document.decision.as_ref().is_some_and(DecisionPart::is_yes) => {
            format!("; {}", approval.sentence())
        }
        (None, Some(why)) => format!("; nobody is asked: {}", escape(why)),
        _ => String::new(),
    };
    let evaded = document.evaded().map(|part| {
        let what = if part.is_first { "policy denies" } else { "was denied before" };
        let effect = paint.bad(format!("it did what {what} ({})", escape(&part.effect.text)));
        format!("; {effect}, so nothing of it was kept")
    });
    format!("fumehood: {id} {ended}{}{}{waits}", changes.unwrap_or_default(), evaded.unwrap_or_default())
}
