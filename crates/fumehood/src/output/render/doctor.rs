//! What this host can hold, for people.

use model::enforcement::{Held, Level};
use model::text::escape;

use super::super::shape::DoctorDocument;
use super::super::style::Paint;
use super::action::probe_line;
use super::table::{Cell, Page, table};

/// Shows each layer as *enforced*, *watched* or *not enforceable here*, the proof, and what would help.
pub fn doctor(document: &DoctorDocument, paint: Paint) -> String {
    let mut text = table(&document.held.iter().map(layer).collect::<Vec<_>>(), paint);
    let mut page = Page::new(paint);
    if !document.probes.is_empty() {
        let held = document.probes.iter().filter(|probe| probe.held).count();
        page.heading(&format!(
            "\nproof: {held} of {} forbidden acts were tried inside and stopped",
            document.probes.len()
        ));
        page.lines(
            "",
            document.probes.iter().filter(|probe| !probe.held).map(|probe| probe_line(probe, paint)),
        );
    }
    if let Some(teardown) = &document.teardown {
        match teardown.is_clean() {
            true => page.heading("teardown: nothing left"),
            false => {
                page.heading(&paint.bad(format!("teardown: left {}", escape(&teardown.left.join(", ")))))
            }
        }
    }
    let facts = document
        .host
        .iter()
        .map(|fact| vec![Cell::painted(&fact.name, |p, t| p.dim(t)), Cell::plain(&fact.value)]);
    let facts: Vec<_> = facts.collect();
    text.push_str(&page.finish());
    if !facts.is_empty() {
        text.push_str(&format!("\n{}", table(&facts, paint)));
    }
    text.push_str(&verdict(document, paint));
    text
}

fn layer(held: &Held) -> Vec<Cell> {
    let level = match held.level {
        Level::Hard => Cell::painted("enforced", |p, t| p.good(t)),
        Level::Watched => Cell::painted("watched", |p, t| p.caution(t)),
        Level::Absent => Cell::painted("not enforceable here", |p, t| p.bad(t)),
    };
    vec![Cell::plain(held.layer.to_string()), level, Cell::plain(&held.by)]
}

fn verdict(document: &DoctorDocument, paint: Paint) -> String {
    let profile = escape(&document.profile);
    let mut text = String::from("\n");
    if let Some(failure) = &document.failure {
        text.push_str(&format!("{}\n", paint.bad(format!("no sandbox could be built: {}", escape(failure)))));
    }
    for short in &document.shortfalls {
        let why = format!(
            "{} is {} here, and `{profile}` needs {}: {}",
            short.layer,
            short.has,
            short.needs,
            escape(&short.why)
        );
        text.push_str(&format!("{}\n  to change that: {}\n", paint.bad(why), escape(&short.fix)));
    }
    if document.ready {
        text.push_str(&paint.good(format!("commands can run here under the profile `{profile}`")));
    } else {
        text.push_str(&paint.bad(format!("nothing can run here under the profile `{profile}`")));
    }
    text + "\n"
}
