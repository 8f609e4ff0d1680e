//! Why an action was denied, held back or ended: each cause in a sentence, with the rule or layer and the next step.

use std::collections::BTreeSet;

use inspect::Reason;
use model::change::ChangeKind;
use model::enforcement::Layer;
use model::event::{HeldBack, Verdict};
use model::text::escape;
use model::units::display_duration;
use model::{ActionId, Bytes, Ending, LimitKind, OsText};
use schemars::JsonSchema;
use serde::Serialize;

use super::action::{
    ActionDocument, DecisionPart, DeniedPart, EndPart, LimitsPart, NotStartedPart, SandboxPart,
};
use super::net::{NetRefusal, allow_net, refusals};

/// `why --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyDocument {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// What stood in its way, the most weighty first; empty when nothing did.
    pub causes: Vec<Cause>,
}

/// One thing that stood in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// A stable code: the policy's own reason, or one of ours.
    pub code: String,
    /// What happened, in a sentence.
    pub sentence: String,
    /// The rules that decided, where it was policy.
    pub rules: Vec<String>,
    /// The layer that stopped it, where it was one.
    #[schemars(with = "Option<String>")]
    pub layer: Option<Layer>,
    /// What to do now.
    pub next: Vec<String>,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
}

impl Cause {
    fn new(code: &str, sentence: String) -> Self {
        let (rules, next) = (Vec::new(), Vec::new());
        Self { code: code.to_owned(), sentence, rules, layer: None, next, person_may_allow: false }
    }

    fn layer(self, layer: Layer) -> Self {
        Self { layer: Some(layer), ..self }
    }

    fn next(mut self, step: impl Into<String>) -> Self {
        self.next.push(step.into());
        self
    }
}

/// Explains what stood in the way of an action.
pub fn why(document: &ActionDocument) -> WhyDocument {
    let mut causes = Vec::new();
    causes.extend(document.decision.as_ref().and_then(|decision| by_policy(decision, document)));
    causes.extend(document.evaded().map(evaded));
    causes.extend(document.not_started.iter().flat_map(not_started));
    if let Some(end) = &document.end {
        let limits = document
            .decision
            .as_ref()
            .and_then(|decision| decision.grant.as_ref())
            .map(|grant| &grant.limits);
        causes.extend(by_end(end, limits));
        causes.extend(touched(end, limits));
        causes.extend(unlisted(end));
        causes.extend(dropped_output(end));
    }
    causes.extend(unreached(document));
    causes.extend(document.sandbox.as_ref().and_then(masks));
    causes.extend(held_back(document));
    WhyDocument { action: document.action.clone(), causes }
}

fn by_policy(decision: &DecisionPart, document: &ActionDocument) -> Option<Cause> {
    let joins = document.joins().map(|action| format!(" in the network of {action}")).unwrap_or_default();
    let what = document.command();
    let verdict = match decision.verdict {
        Verdict::Allow => return None,
        Verdict::Narrow => format!("policy allowed `{what}` with less than it asked for"),
        Verdict::RequireApproval => format!("policy allows `{what}` only when a person says yes"),
        Verdict::Deny => format!("policy denied `{what}`{joins}"),
    };
    let mut cause = Cause::new(&decision.reason, verdict);
    cause.rules.clone_from(&decision.rules);
    cause.person_may_allow = decision.person_may_allow;
    match (&document.approval, &document.not_asked) {
        (Some(approval), _) => {
            if document.is_only_tried() {
                cause = cause.next("it ran on a throwaway layer only, so that a person can see what it does");
            }
            cause = cause.next(approval.sentence());
        }
        (None, Some(why)) => cause = cause.next(format!("nobody is asked: {}", escape(why))),
        (None, None) if !decision.advice.is_empty() => {
            cause = cause.next(escape(&decision.advice).into_owned());
        }
        (None, None) => {}
    }
    if decision.verdict != Verdict::Narrow {
        cause = cause.next("another command with the same effect gets the same answer");
    }
    Some(cause)
}

/// It ran, and was seen to do what is denied: it gets the same code.
fn evaded(part: &DeniedPart) -> Cause {
    let (effect, first) = (escape(&part.effect.text), &part.first);
    if part.is_first {
        let sentence = format!("it did what policy denies ({effect}), so nothing of it was kept");
        return Cause::new(&part.reason, sentence).next("another way to it gets the same answer");
    }
    let sentence = format!("it did what was denied to {first} ({effect}), so nothing of it was kept");
    Cause::new(&part.reason, sentence)
        .next(format!("`fumehood why {first}` says what may be done instead"))
        .next("too many other ways to it freeze the task")
}

fn not_started(part: &NotStartedPart) -> Vec<Cause> {
    let mut causes: Vec<Cause> = part
        .shortfalls
        .iter()
        .map(|short| {
            let sentence = format!(
                "the profile needs `{}` to be {}, and this host holds it {}: {}",
                short.layer,
                short.needs,
                short.has,
                escape(&short.why)
            );
            Cause::new("layer-not-held", sentence).layer(short.layer).next(escape(&short.fix).into_owned())
        })
        .collect();
    causes.extend(part.failed_probes.iter().map(|probe| {
        let sentence = format!(
            "the prober tried `{}` inside and was not stopped: {}",
            escape(&probe.name),
            escape(&probe.observed)
        );
        Cause::new("probe-not-held", sentence)
            .layer(probe.layer)
            .next("`fumehood doctor` shows every layer of this host")
    }));
    if causes.is_empty() {
        causes.push(Cause::new("not-started", escape(&part.reason).into_owned()));
    }
    causes
}

fn by_end(end: &EndPart, limits: Option<&LimitsPart>) -> Option<Cause> {
    let cause = match &end.ending {
        Ending::Exited { .. } => return None,
        Ending::Signaled { signal } => {
            let sentence = format!("signal {signal} ended the command; Fumehood did not send it");
            Cause::new("signal", sentence).next("`fumehood show --output` shows what it printed before")
        }
        Ending::Limit { limit } => {
            let sentence = format!("the command was ended because it passed its limit: {}", limit_text(*limit, limits));
            more(Cause::new(&format!("limit-{limit}"), sentence).layer(Layer::Limit(*limit)), *limit)
        }
        Ending::UnlistedProgram { file } => {
            let sentence = format!("it tried to start `{file}`, which is not among the programs that it may start");
            Cause::new("unlisted-program", sentence)
                .next("name the program with `--program`, or choose a profile whose `unlisted_program` is `refuse`")
        }
        Ending::Stopped => Cause::new("stopped", "somebody stopped it".to_owned()),
        Ending::NotFound => Cause::new("no-program", "there is no such program inside the sandbox".to_owned())
            .layer(Layer::Root)
            .next("system programs, toolchains found on PATH and what the workspace holds are shown; nothing else is"),
        Ending::NotExecutable { errno } => {
            let why = std::io::Error::from_raw_os_error(*errno);
            Cause::new("not-executable", format!("the program could not be started: {why}"))
        }
        Ending::NoDirectory { errno } => {
            let why = std::io::Error::from_raw_os_error(*errno);
            Cause::new("no-directory", format!("the directory in which it was to start could not be entered: {why}"))
                .next("name a directory of the workspace with `--cwd`; what `--hide` and `--only` leave out is not there")
        }
    };
    Some(cause)
}

/// Names the limits that the command came up against without being ended for it: it was refused more.
fn touched(end: &EndPart, limits: Option<&LimitsPart>) -> Vec<Cause> {
    let ended_by = |limit: LimitKind| matches!(end.ending, Ending::Limit { limit: ended } if ended == limit);
    let dropped = |limit: LimitKind| limit == LimitKind::Output; // That has a cause of its own, with the number.
    let met =
        end.observed.limits_touched.iter().copied().filter(|limit| !ended_by(*limit) && !dropped(*limit));
    met.map(|limit| {
        let sentence =
            format!("the command came up against its limit and got no more: {}", limit_text(limit, limits));
        more(Cause::new(&format!("limit-{limit}"), sentence).layer(Layer::Limit(limit)), limit)
    })
    .collect()
}

fn more(cause: Cause, limit: LimitKind) -> Cause {
    let option = match limit {
        LimitKind::Memory => "--memory",
        LimitKind::Processes => "--pids",
        LimitKind::Cpu => "--cpus",
        LimitKind::WallTime => "--timeout",
        LimitKind::Disk => "--disk",
        LimitKind::Files => "--files",
        LimitKind::Output => "--output-limit",
        LimitKind::OpenFiles | LimitKind::FileSize => {
            return cause.next("choose a wider profile with --profile");
        }
    };
    cause.next(format!(
        "use less, or choose a wider profile with --profile; {option} can only ask policy for more"
    ))
}

fn limit_text(limit: LimitKind, limits: Option<&LimitsPart>) -> String {
    let Some(limits) = limits else { return limit.to_string() };
    let number = match limit {
        LimitKind::Memory => Bytes::new(limits.memory).to_string(),
        LimitKind::Processes => limits.processes.to_string(),
        LimitKind::Cpu => {
            limits.millicpus.map_or_else(|| "all".to_owned(), |m| format!("{m} thousandths of a processor"))
        }
        LimitKind::WallTime => display_duration(limits.wall_time_ms),
        LimitKind::Disk => Bytes::new(limits.disk).to_string(),
        LimitKind::Files => limits.files.to_string(),
        LimitKind::Output => Bytes::new(limits.output).to_string(),
        LimitKind::OpenFiles => limits.open_files.to_string(),
        LimitKind::FileSize => Bytes::new(limits.file_size).to_string(),
    };
    format!("{limit} {number}")
}

/// Names the programs that the command tried and that its grant does not list.
fn unlisted(end: &EndPart) -> Option<Cause> {
    let first = end.observed.unlisted_programs.first()?;
    let others =
        match end.observed.unlisted_programs.len() as u64 - 1 + end.observed.unlisted_programs_dropped {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
    let sentence =
        format!("it tried to start `{}`{others}, not among the programs that it may start", first.file);
    let ended = matches!(end.ending, Ending::UnlistedProgram { .. });
    let cause = Cause::new("unlisted-program", sentence).layer(first.layer);
    (!ended).then(|| cause.next("name each program that it needs with `--program`"))
}

/// How many refusals are named.
const REFUSALS_NAMED: usize = 5;

/// Names what the command tried to reach and could not, a cause for each reason, with the rules that it would need.
fn unreached(document: &ActionDocument) -> Vec<Cause> {
    let mut by_reason: Vec<(String, Vec<NetRefusal>)> = Vec::new();
    for refusal in refusals(document) {
        match by_reason.iter_mut().find(|(reason, _)| *reason == refusal.reason) {
            Some((_, some)) => some.push(refusal),
            None => by_reason.push((refusal.reason.clone(), vec![refusal])),
        }
    }
    let closed = document.network().and_then(|network| network.closed.as_deref()).map(|why| {
        Cause::new("gateway-closed", format!("its gateway was closed before its end: {}", escape(why)))
    });
    let told = by_reason.iter().map(|(reason, refused)| refused_for(document, reason, refused));
    told.chain(closed).map(|cause| cause.layer(Layer::NetworkNamespace)).collect()
}

fn refused_for(document: &ActionDocument, reason: &str, refused: &[NetRefusal]) -> Cause {
    let named: Vec<String> =
        refused.iter().take(REFUSALS_NAMED).map(|one| format!("`{}`", escape(&one.what))).collect();
    let dropped = match document.network() {
        Some(_) => 0,
        None => document.end.as_ref().map_or(0, |end| end.observed.connections_dropped),
    };
    let others = match refused.len().saturating_sub(REFUSALS_NAMED) as u64 + dropped {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = refused.first().map(|one| escape(&one.why)).unwrap_or_default();
    let cause = Cause::new(reason, format!("it tried to reach {}{others}; {why}", named.join(", ")));
    if document.network().is_none() {
        return cause
            .next("`--allow-net https://NAME` asks policy for a way out by name")
            .next("or fetch dependencies outside before the run, or give them with --input");
    }
    let options: BTreeSet<String> =
        refused.iter().filter_map(|one| one.needs.as_ref()).map(|rule| allow_net(rule)).collect();
    let asks = options
        .iter()
        .take(REFUSALS_NAMED)
        .fold(cause, |cause, option| cause.next(format!("`{option}` asks for it")));
    asks.next(format!("`fumehood net explain {}` says all", document.action))
}

fn dropped_output(end: &EndPart) -> Option<Cause> {
    let dropped: u64 = end.output.iter().map(|output| output.dropped).sum();
    let sentence =
        || format!("{} of its output were dropped; the head and the tail are kept", Bytes::new(dropped));
    (dropped > 0).then(|| {
        more(Cause::new("limit-output", sentence()).layer(Layer::Limit(LimitKind::Output)), LimitKind::Output)
    })
}

/// What a program meets that wants to do away with what is hidden. A file is hidden by a mount on it, and the kernel lets
/// nobody take away what something is mounted on.
pub const HIDDEN_STAYS: &str = "a hidden file cannot be removed or renamed inside, so its directory cannot be removed \
                                either: the kernel says `Device or resource busy`";

fn masks(sandbox: &SandboxPart) -> Option<Cause> {
    let (first, rest) = sandbox.masked.split_first()?;
    let others = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let cause = Cause::new(
        "masked",
        format!("files were hidden from it, as credentials or because that was asked for: `{first}`{others}"),
    );
    Some(
        cause
            .layer(Layer::Masks)
            .next("`fumehood show` lists them; --show-credential PATH asks policy to show one")
            .next(HIDDEN_STAYS),
    )
}

fn held_back(document: &ActionDocument) -> Vec<Cause> {
    let from_inspection = document.inspection.iter().flat_map(|part| &part.held_back);
    let from_apply = document.applied.iter().flat_map(|part| &part.held_back);
    // One reason is one cause: a commit made inside changes many of git's own files.
    let mut reasons: Vec<(&HeldBack, Vec<&OsText>)> = Vec::new();
    for held in from_inspection.chain(from_apply) {
        match reasons.iter_mut().find(|(first, _)| (&first.reason, &first.why) == (&held.reason, &held.why)) {
            Some((_, paths)) if paths.contains(&&held.path) => {}
            Some((_, paths)) => paths.push(&held.path),
            None => reasons.push((held, vec![&held.path])),
        }
    }
    reasons.into_iter().map(|(held, paths)| held_for(document, held, &paths)).collect()
}

/// Explains why these paths are held back, all for one reason.
fn held_for(document: &ActionDocument, held: &HeldBack, paths: &[&OsText]) -> Cause {
    let names = paths.iter().take(5).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let what = match paths.len() {
        1 => format!("{names} was {} and is", change_of(document, &held.path).unwrap_or("changed")),
        2..=5 => format!("{names} are"),
        number => format!("{names} and {} more are", number - 5),
    };
    let mut cause = Cause::new(&held.reason, format!("{what} held back: {}", escape(&held.why)));
    cause.person_may_allow = Reason::person_may_lift_code(&held.reason);
    match (cause.person_may_allow, held.reason.as_str()) {
        (true, _) => cause
            .next("look at it with `fumehood diff`, then take it over with `fumehood apply --protected PATH`"),
        (false, "git-internals") => cause.next(
            "nothing of `.git` is applied; commits made inside come out as a branch, with `fumehood apply --commits`",
        ),
        (false, _) => cause.next("it stays in its layer: nobody can let it out as it is"),
    }
}

fn change_of(document: &ActionDocument, path: &model::OsText) -> Option<&'static str> {
    let changes = &document.inspection.as_ref()?.changes;
    let change = changes.iter().find(|change| change.path.as_bytes() == path.as_bytes())?;
    Some(match change.kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "changed",
        ChangeKind::Deleted => "deleted",
    })
}
