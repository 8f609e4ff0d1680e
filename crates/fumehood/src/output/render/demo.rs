//! The demonstration, for people.

use super::super::shape::{AgentDocument, DemoDocument};
use super::super::style::Paint;
use super::agent::{changes_of, costs_of};
use super::{diff, table::Page};

/// Shows what was found at the end: the diff, the costs, each check, the proof and the record.
pub fn demo(document: &DemoDocument, paint: Paint) -> String {
    let mut page = Page::new(paint);
    page.heading("");
    page.heading(&paint.bold("What came out"));
    let agent: &AgentDocument = &document.agent;
    if agent.patch.is_empty() {
        changes_of(&mut page, agent, paint);
    } else {
        page.heading(&diff::patch(&agent.patch, paint));
    }
    costs_of(&mut page, agent);
    page.line("proof", &format!("{} of {} probes held", document.probes_held, document.probes));
    page.line("record", &document.record);
    page.heading("");
    page.heading(&paint.bold("What must be so"));
    for check in &document.checks {
        let mark = if check.passed { paint.good("ok     ") } else { paint.bad("NOT SO ") };
        page.heading(&format!("{mark} {}", check.what));
        page.heading(&format!("        {}", paint.dim(model::text::escape(&check.seen))));
    }
    let passed = document.checks.iter().filter(|check| check.passed).count();
    let verdict = format!("{passed} of {} are so", document.checks.len());
    page.heading("");
    page.heading(&if document.passed { paint.good(verdict) } else { paint.bad(verdict) });
    page.finish()
}
