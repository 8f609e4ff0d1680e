//! What an action did when it was run again, for people.

use super::super::shape::ReproduceDocument;
use super::super::style::Paint;

/// Says what differed, and what could not be made the same.
pub fn reproduced(document: &ReproduceDocument, paint: Paint) -> String {
    let mut text = super::outcome_line(&document.again, paint) + "\n";
    for note in &document.notes {
        text.push_str(&format!("{} {}\n", paint.caution("note:"), model::text::escape(note)));
    }
    for difference in &document.differs {
        let (before, now) = (paint.bad(&difference.before), paint.good(&difference.now));
        text.push_str(&format!("{}: {before} then, {now} now\n", difference.what));
    }
    let id = paint.name(&document.action);
    match (&document.again.end, document.differs.is_empty()) {
        (None, _) => text + &format!("{id} was not run again\n"),
        (Some(_), true) => {
            text + &format!("{} {id}: ending, output and changes are the same\n", paint.good("reproduced"))
        }
        (Some(_), false) => text + &format!("{} {id}\n", paint.bad("differs from")),
    }
}
