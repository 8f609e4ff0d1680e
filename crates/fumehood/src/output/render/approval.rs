//! Requests for a person's yes, for the people who answer them.
//!
//! Guarantees: as for the view of a request ([`super::policy`]): every word and line is there or counted, and nothing from
//! outside can drive the terminal.

use model::grant::{Network, WorkspaceAccess};
use model::text::{escape, escape_lines};
use model::{ApprovalState, Bytes};

use super::super::shape::{
    AnswerDocument, AnswerPart, ApprovalsDocument, BatchDocument, BatchRow, DossierDocument, ExportDocument,
    GrantPart, MeasuredPart, SignedDocument, SignedRow, StatsDocument, WantedPart, shell_word,
};
use super::super::style::Paint;
use super::action::shortened;
use super::diff::{change_lines, held_back, patch};
use super::policy::{asked, effects, way_back};
use super::table::{Cell, table};
use super::{counted, moment, span};

/// Lines of a patch that are shown in part.
const PATCH_LINES: usize = 200;
/// Lines of a list that is shown in part.
const SHOWN: usize = 12;

/// Lists requests.
pub fn approvals(document: &ApprovalsDocument, paint: Paint) -> String {
    if document.approvals.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let rows = document.approvals.iter().map(|row| {
        let again = if row.repeats == 0 { String::new() } else { format!("asked {} times", row.repeats + 1) };
        vec![
            Cell::painted(row.approval.as_str(), |p, t| p.name(t)),
            Cell::painted(row.state.name(), |p, t| p.caution(t)),
            Cell::plain(moment(row.asked)),
            Cell::plain(&row.by),
            // Escaped already.
            Cell::escaped(row.command.clone()),
            Cell::painted(again, |p, t| p.dim(t)),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Shows everything that a person should know before answering; `full` shows long lists and the patch whole.
pub fn whole_dossier(document: &DossierDocument, paint: Paint, full: bool) -> String {
    body(document, paint, full) + &standing(document)
}

/// Shows the same, whole, to somebody who answers from another account.
pub fn exported_dossier(document: &DossierDocument) -> String {
    let wanted: String = document.wanted.iter().map(wanted).collect();
    let until = moment(document.approval.until);
    body(document, Paint::default(), true) + &format!("\n{wanted}answer until {until}\n")
}

fn body(document: &DossierDocument, paint: Paint, full: bool) -> String {
    let row = &document.approval;
    let mut text = format!("{}  {}\n", paint.name(&row.approval), paint.caution(row.state.name()));
    text.push_str(&asked(&document.request, paint));
    if let Some(purpose) = &document.claimed_purpose {
        text.push_str(&format!("  it claims (nobody checked this): {}\n", escape(purpose)));
    }
    text.push_str(&grant(&document.grant));
    text.push('\n');
    match &document.measured {
        Some(part) => text.push_str(&measured(part, document, paint, full)),
        None => text.push_str(&paint.bold("  it was not tried, so nothing of what it does was measured\n")),
    }
    text.push_str(&effects(&document.effects, "what its words say that it does:", paint));
    let missing: String =
        document.not_measured.iter().map(|what| format!("    {}\n", escape(what))).collect();
    text.push_str(&format!("{}\n{missing}", paint.dim("  not measured:")));
    text.push_str(&format!("  way back: {}\n", way_back(document.way_back)));
    text.push_str(&format!("  policy wants a yes: {}", escape(&document.reason_code)));
    if !document.matched_rules.is_empty() {
        text.push_str(&format!(", by rule `{}`", escape(&document.matched_rules.join("`, `"))));
    }
    text.push_str(&format!("\n  a yes covers the digest {}\n", document.digest));
    text.push_str(&document.answers.iter().map(answer).collect::<String>());
    text
}

/// Shows one of several requests: what it is, what it did in brief, and how to see all of it.
pub fn brief_dossier(document: &DossierDocument, paint: Paint) -> String {
    let row = &document.approval;
    // The command is escaped already.
    let mut text =
        format!("{}  {}  {}\n", paint.name(&row.approval), paint.caution(row.state.name()), row.command);
    match &document.measured {
        None => text.push_str("  it was not tried, so nothing of what it does was measured\n"),
        Some(part) => {
            let changes = change_lines(&part.inspection.changes, paint);
            let number = changes.len();
            let mut lines = shortened(changes.into_iter(), number, part.inspection.changes_dropped, SHOWN);
            let others = part.git_files.len() + part.artifacts.len() + part.end.observed.connections.len();
            if number == 0 && others == 0 {
                lines.push("changed nothing".to_owned());
            }
            if others > 0 {
                lines.push(format!("and {} beside the workspace", counted(others as u64, "effect")));
            }
            text.push_str(&lines.into_iter().map(|line| format!("    {line}\n")).collect::<String>());
        }
    }
    text.push_str(&effects(&document.effects, "what its words say that it does:", paint));
    text.push_str(&format!("  digest {}\n", document.digest));
    text + &format!("  all of it: `fumehood approvals show {}`\n", row.approval)
}

/// Says what came of each of several answers.
pub fn batch(document: &BatchDocument, paint: Paint) -> String {
    let row = |row: &BatchRow| match (&row.answer, &row.error) {
        (Some(answer), _) => answered(answer, paint),
        (None, error) => {
            let why = escape(error.as_deref().unwrap_or_default());
            format!("{} {}: {why}\n", paint.name(&row.approval), paint.bold("got no yes"))
        }
    };
    document.answers.iter().map(row).collect()
}

/// Says what the action may touch, where that is not what every action may.
fn grant(part: &GrantPart) -> String {
    let limits = &part.limits;
    let mut lines = vec![format!(
        "under the profile {}: {} memory, {} processes, {} disk, {}",
        escape(&part.profile),
        Bytes::new(limits.memory),
        limits.processes,
        Bytes::new(limits.disk),
        span(limits.wall_time_ms)
    )];
    if part.workspace == WorkspaceAccess::ReadOnly {
        lines.push("the workspace read-only".to_owned());
    }
    match &part.network {
        Network::Loopback => {}
        Network::Host => lines.push("with the network of the host".to_owned()),
        Network::Joined(action) => lines.push(format!("with the loopback of {action}")),
        Network::Egress(rules) => lines.extend(rules.iter().map(|rule| format!("may reach {rule}"))),
    }
    let inputs = part.inputs.iter();
    lines.extend(inputs.map(|input| format!("/inputs/{} shows {}", escape(&input.name), input.source)));
    lines.extend(part.shown_credentials.iter().map(|path| format!("the credential file {path} is shown")));
    lines.extend(part.hidden.iter().map(|path| format!("{path} is hidden")));
    lines
        .extend(part.programs.iter().flatten().map(|program| format!("only this program: {}", program.file)));
    if part.terminal {
        lines.push("with a terminal".to_owned());
    }
    lines.into_iter().map(|line| format!("  {line}\n")).collect()
}

/// Says what came of a trial.
fn measured(part: &MeasuredPart, document: &DossierDocument, paint: Paint, full: bool) -> String {
    let most = if full { usize::MAX } else { SHOWN };
    let (end, inspection) = (&part.end, &part.inspection);
    let mut text = format!(
        "{} {} after {}, {} memory at most, {}\n",
        paint.bold("  what it did when it was tried, without network:"),
        end.ending,
        span(end.usage.wall_time_ms),
        Bytes::new(end.usage.memory_peak),
        counted(end.usage.files, "file"),
    );
    let changes: Vec<_> = inspection.changes.iter().filter(|change| !change.is_of_git()).cloned().collect();
    let number = changes.len();
    let lines = change_lines(&changes, paint).into_iter();
    let lines = shortened(lines, number, inspection.changes_dropped, most);
    let nothing = lines.is_empty() && part.git_files.is_empty() && part.artifacts.is_empty();
    let lines = if nothing { vec!["changed nothing".to_owned()] } else { lines };
    text.push_str(&lines.into_iter().map(|line| format!("    {line}\n")).collect::<String>());
    let held = held_back(&inspection.held_back, paint);
    text.push_str(&held.lines().map(|line| format!("    {line}\n")).collect::<String>());
    let observed = &end.observed;
    let programs = observed.programs.iter().map(|program| {
        format!("started {}", program.argv.iter().map(shell_word).collect::<Vec<_>>().join(" "))
    });
    let tried =
        observed.connections.iter().map(|attempt| format!("tried to reach {}", escape(&attempt.address)));
    let seen = shortened(programs, observed.programs.len(), observed.programs_dropped, most);
    let seen = seen.into_iter().chain(shortened(
        tried,
        observed.connections.len(),
        observed.connections_dropped,
        most,
    ));
    text.push_str(&seen.map(|line| format!("    {line}\n")).collect::<String>());
    let git = part
        .git_files
        .iter()
        .map(|name| format!("    {} {name} in the git repository behind the worktree\n", paint.caution("W")));
    let left = part.artifacts.iter().map(|row| {
        format!("    {} {} as an artifact, {}\n", paint.good("A"), row.name, Bytes::new(row.size))
    });
    text.extend(git.chain(left));
    text + &shown_patch(&part.patch, document, paint, full)
}

fn shown_patch(whole: &str, document: &DossierDocument, paint: Paint, full: bool) -> String {
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let most = if full { usize::MAX } else { PATCH_LINES };
    let mut text = patch(&lines.iter().take(most).copied().collect::<String>(), paint);
    let more = lines.len().saturating_sub(most);
    if more > 0 {
        let (approval, action) = (&document.approval.approval, &document.approval.action);
        text.push_str(&paint.bold(format!(
            "  {more} more lines: `fumehood approvals show {approval} --full` or `fumehood diff {action}`\n"
        )));
    }
    text
}

fn answer(part: &AnswerPart) -> String {
    let reason = part.reason.as_ref().map(|reason| format!(": {}", escape(reason))).unwrap_or_default();
    format!("  {} said {} at {}{reason}\n", escape(&part.by), part.answer, moment(part.at))
}

/// Says who may answer, until when, and how; or how it ended.
fn standing(document: &DossierDocument) -> String {
    let row = &document.approval;
    if row.state.is_final() {
        let why = document.why.as_ref().map(|why| format!(": {}", escape(why))).unwrap_or_default();
        return format!("\nit is {}{why}\n", row.state);
    }
    let until = moment(row.until);
    match row.state {
        ApprovalState::Trying => "\nit is being tried: look again when that ended\n".to_owned(),
        ApprovalState::Given => format!("\nit has its yes: the same request may run once, until {until}\n"),
        _ => format!(
            "\n{}answer until {until}:\n  fumehood approvals approve {}\n  fumehood approvals deny {} --reason '…'\n{}",
            document.wanted.iter().map(wanted).collect::<String>(),
            row.approval,
            row.approval,
            from_elsewhere(document)
        ),
    }
}

/// Says how the yes that is missing comes from another account, where only that helps.
fn from_elsewhere(document: &DossierDocument) -> String {
    let needs = |part: &WantedPart| part.without_owner || part.people > 1;
    if !document.wanted.iter().any(needs) {
        return String::new();
    }
    if !document.answers_from_elsewhere {
        return "the yes of another account cannot be given on this machine: its settings name no place for answers \
                (`[approvals]` in /etc/fumehood/fumehood.toml)\n"
            .to_owned();
    }
    let id = &document.approval.approval;
    format!(
        "from another account:\n  fumehood approvals export {id} --to FILE      # here\n  \
         fumehood approvals sign FILE --answer approve    # there\n"
    )
}

/// Says that requests were written down for others.
pub fn exported(document: &ExportDocument, file: &str) -> String {
    let number = counted(document.requests.len() as u64, "request");
    let file = escape(file);
    format!(
        "wrote {number} to {file}; whoever answers looks at it with `fumehood approvals sign {file} --answer approve`\n"
    )
}

/// Says which answers were left, and how to take them back.
pub fn signed(document: &SignedDocument, paint: Paint) -> String {
    let row = |row: &SignedRow| {
        format!(
            "{} has your {}, as long as {} is there\n",
            paint.name(&row.approval),
            row.answer,
            escape(&row.file)
        )
    };
    document.answers.iter().map(row).collect()
}

/// Says whose yes is wanted, whose is there, and who else could give one.
fn wanted(part: &WantedPart) -> String {
    let names = |names: &[String]| escape(&names.join(", ")).into_owned();
    let given = match part.given_by.as_slice() {
        [] => String::new(),
        by => format!("; {} of {} is there, of {}", by.len(), part.people, names(by)),
    };
    let could = match &part.could_give {
        None => String::new(),
        Some(could) if could.is_empty() => {
            "; nobody else has that role: see `fumehood config explain role`".to_owned()
        }
        Some(could) => format!("; could come from {}", names(could)),
    };
    format!("needs a yes of {}{given}{could}\n", escape(&part.words))
}

/// Says what came of an answer.
pub fn answered(document: &AnswerDocument, paint: Paint) -> String {
    let (id, action) = (paint.name(&document.approval), &document.action);
    let why = document.why.as_ref().map(|why| format!(": {}", escape(why))).unwrap_or_default();
    match document.state {
        ApprovalState::Kept => format!(
            "{id} has its yes: what {action} changed is the task's now; `fumehood diff` shows it, `fumehood undo` takes it off\n"
        ),
        ApprovalState::Given => {
            let until = document.until.map(|until| format!(", until {}", moment(until))).unwrap_or_default();
            format!("{id} has its yes: make the same request again, and it runs once{until}\n")
        }
        ApprovalState::Open => {
            let missing: Vec<&str> = document.missing.iter().map(String::as_str).collect();
            format!("{id} has this yes, and still needs that of {}\n", escape(&missing.join(" and ")))
        }
        ApprovalState::Void => {
            format!(
                "{id} {}{why}; nothing was done, and it has to be asked for again\n",
                paint.bad("is void")
            )
        }
        state => format!("{id} is {state}{why}\n"),
    }
}

/// Says how much is asked of people.
pub fn approval_stats(document: &StatsDocument, _: Paint) -> String {
    let time = document.median_time_to_answer_ms.map_or_else(|| "nothing was answered".to_owned(), span);
    let answered = document.approved + document.refused;
    let share = match (document.approved * 100).checked_div(answered) {
        Some(percent) => format!(" ({percent} % of the answers)"),
        None => String::new(),
    };
    format!(
        "asked         {}\nasked again   {} (nobody was asked for those)\nwaiting       {}\napproved      {}{share}\n\
         refused       {}\nno answer     {}\nmedian time   {time}\n",
        document.asked,
        document.repeats,
        document.waiting,
        document.approved,
        document.refused,
        document.unanswered
    )
}

/// Writes what a tool would write, line by line.
pub(super) fn content(text: &str, paint: Paint) -> String {
    let shown = |line: &str| format!("       {}\n", paint.bold(escape_lines(line)));
    text.lines().map(shown).collect()
}
