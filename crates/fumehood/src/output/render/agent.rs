//! An agent's work, for people.

use model::Bytes;
use model::text::{escape, escape_lines};

use super::super::shape::{ActionDocument, AgentDocument, AgentEnd, LogRow, Refused};
use super::super::style::Paint;
use super::diff::change_lines;
use super::table::Page;
use super::{counted, span};

/// Says in one line what became of a call, and in an indented line each what was refused of it.
pub fn agent_step(document: &ActionDocument, again: bool, indent: &str, paint: Paint) -> String {
    let row = LogRow::of(document);
    let ending = match row.exit_code {
        Some(0) => paint.good(&row.ending),
        _ => paint.bad(&row.ending),
    };
    let changes =
        if row.changes == 0 { String::new() } else { format!(", {}", counted(row.changes, "change")) };
    let again = if again { " (made before, not run again)" } else { "" };
    let mut text = format!("{}  {ending}{changes}{again}", paint.bold(&row.command));
    for refused in Refused::all_of(document) {
        text.push_str(&format!("\n{indent}{}", refused_by(&refused, paint)));
    }
    text
}

/// Says what refused something.
pub fn refused_by(refused: &Refused, paint: Paint) -> String {
    let by = match refused.layer {
        Some(layer) => format!("the layer `{layer}`"),
        None => format!("the rule `{}`", escape(&refused.rules.join("`, `"))),
    };
    format!("{} by {by}: {}", paint.caution("refused"), refused.sentence)
}

/// Shows what came of the work, what it cost, and what to do now.
pub fn agent(document: &AgentDocument, paint: Paint) -> String {
    let mut page = Page::new(paint);
    let ended = match document.ended {
        AgentEnd::Finished => paint.good("finished"),
        AgentEnd::Failed => paint.bad("could not go on"),
        AgentEnd::Stopped => paint.caution("stopped"),
    };
    page.heading(&format!("{}  {ended}", paint.name(&document.task)));
    if let Some(failure) = &document.failure {
        page.line("why", &format!("{} ({})", paint.bad(escape(&failure.message)), escape(&failure.code)));
    }
    if let Some(summary) = &document.summary {
        page.lines("claims", escape_lines(summary).lines().map(str::to_owned));
    }
    let base = document
        .commit
        .as_deref()
        .map_or_else(|| "as it stood".to_owned(), |commit| format!("commit {}", escape(commit)));
    page.line("workspace", &format!("{} {base}", document.workspace));
    changes_of(&mut page, document, paint);
    page.lines(
        "held back",
        document.held_back.iter().map(|held| format!("{} {}", paint.caution(&held.path), escape(&held.why))),
    );
    page.lines(
        "refused",
        document.refused.iter().map(|refused| format!("{}  {}", refused.command, refused_by(refused, paint))),
    );
    costs_of(&mut page, document);
    let held = document.confinement.iter().filter(|probe| probe.held).count();
    page.line(
        "model key",
        &format!(
            "held by a process that was refused {held} of {} tries to do more",
            document.confinement.len()
        ),
    );
    page.lines("next", next(document, paint));
    page.finish()
}

/// Adds what changed.
pub(super) fn changes_of(page: &mut Page, document: &AgentDocument, paint: Paint) {
    let changes = change_lines(&document.changes, paint);
    if changes.is_empty() {
        page.line("changes", "none");
    }
    page.lines("changes", changes);
}

/// Adds what it cost: tokens, and what the sandboxes used.
pub(super) fn costs_of(page: &mut Page, document: &AgentDocument) {
    let (hit, miss) = (document.prompt_cache_hit_tokens, document.prompt_cache_miss_tokens);
    page.line(
        "model",
        &format!(
            "{}: {}, {} tokens in ({hit} from the cache), {} out",
            escape(&document.model),
            counted(document.turns, "turn"),
            hit + miss,
            document.completion_tokens
        ),
    );
    let used = &document.used;
    page.line(
        "sandboxes",
        &format!(
            "{} ran: {} of processor, {} in all, {} memory at most, {} printed",
            used.actions,
            span(used.cpu_time_ms),
            span(used.wall_time_ms),
            Bytes::new(used.memory_peak),
            Bytes::new(used.output)
        ),
    );
}

/// Names what can be done now.
fn next(document: &AgentDocument, paint: Paint) -> Vec<String> {
    let command = |verb: &str| paint.name(format!("fumehood {verb} {}", document.task));
    let mut next = Vec::new();
    if document.ended != AgentEnd::Finished {
        next.push(format!("{} goes on where it ended", command("task resume")));
    }
    if !document.changes.is_empty() {
        next.push(format!(
            "{} shows the changes, {} writes them to the directory",
            command("diff"),
            command("apply")
        ));
    }
    next.push(format!("{} lists what was done", command("log")));
    next
}
