//! Decisions about requests, and requests as a person is shown them before saying yes or no.
//!
//! Guarantees: every word of a request is there, with its boundaries; what could drive a terminal or cannot be seen is
//! written out; and what would push something out of sight (blanks, empty lines, repetitions) is counted instead.

use model::OsText;
use model::text::escape;

use super::super::shape::{
    AskedPart, EffectRow, FindingKind, FindingRow, PolicyAnswer, PolicyCheckDocument, PolicyDocument,
    WayBack, shell_word,
};
use super::super::style::Paint;
use super::approval::content;

/// Stands above effects that are read from the words of what has not run.
const NOTHING_RAN: &str = "what it would do, read from its words (nothing has run):";

/// Writes what policy would answer; the first word is the answer.
pub fn decision(document: &PolicyDocument, paint: Paint) -> String {
    let word = document.answer.word();
    let mut text = match document.answer {
        PolicyAnswer::Allow => paint.good(word),
        PolicyAnswer::Ask => paint.bold(word),
        PolicyAnswer::Deny => paint.bad(word),
    };
    text.push_str(&format!("\n  reason: {}", escape(&document.reason_code)));
    if !document.matched_rules.is_empty() {
        text.push_str(&format!(", by rule `{}`", escape(&document.matched_rules.join("`, `"))));
    }
    text.push('\n');
    if !document.advice.is_empty() && document.answer != PolicyAnswer::Allow {
        text.push_str(&format!("  instead: {}\n", escape(&document.advice)));
    }
    if !document.roles.is_empty() {
        text.push_str(&format!("  needs a yes of: {}\n", escape(&document.roles.join(", "))));
    }
    for less in &document.narrowed {
        text.push_str(&format!("  gets less than it asked for: {}\n", escape(less)));
    }
    text.push_str(&effects(&document.effects, NOTHING_RAN, paint));
    text
}

/// Writes what a check of rules found.
pub fn policy_check(document: &PolicyCheckDocument, paint: Paint) -> String {
    let rules_of = &document.rules_of;
    if document.findings.is_empty() {
        let (rules, examples) = (document.rules, document.examples);
        let good = paint.good("nothing is wrong");
        return format!("{good}: {rules_of}, {rules} rules, {examples} examples hold\n");
    }
    let kind = |kind| match kind {
        FindingKind::Unusable => "unusable",
        FindingKind::DeadRule => "dead rule",
        FindingKind::Example => "example",
    };
    let line = |row: &FindingRow| format!("{}: {rules_of}: {}\n", paint.bad(kind(row.kind)), row.message);
    document.findings.iter().map(line).collect()
}

/// Writes a request for the person who is to say yes or no to exactly that.
pub fn dossier(document: &PolicyDocument, paint: Paint) -> String {
    let mut text = asked(&document.request, paint);
    text.push_str(&format!("\n{}", effects(&document.effects, NOTHING_RAN, paint)));
    text.push_str(&format!("  way back: {}\n", way_back(document.way_back)));
    text.push_str(&format!("\npolicy: {}", decision_line(document)));
    text
}

/// Writes what is asked for, word by word.
pub(super) fn asked(request: &AskedPart, paint: Paint) -> String {
    let verb = escape(&request.tool);
    let mut text = format!("{} asks to {verb} this, exactly:\n\n", paint.bold(escape(&request.by)));
    for (number, word) in (1..).zip(&request.argv) {
        text.push_str(&format!("  {:>3}  {}\n", number, paint.bold(one_line(&shell_word(word)))));
        text.push_str(&script(word, paint));
    }
    text.push_str(&request.content.iter().map(|text| content(text, paint)).collect::<String>());
    let directory =
        request.directory.as_ref().map_or_else(|| "its top".to_owned(), |path| format!("`{path}`"));
    text.push_str(&format!("\n  in the workspace `{}`, {directory}\n", request.workspace));
    for variable in &request.variables {
        let value = match &variable.value {
            Some(value) => one_line(&shell_word(value)),
            None => "(a value that is not kept)".to_owned(),
        };
        text.push_str(&format!("  with {}={value}\n", escape(&variable.name)));
    }
    for note in odd_characters(&request.argv) {
        text.push_str(&format!("  {} {note}\n", paint.bad("mind:")));
    }
    text
}

fn decision_line(document: &PolicyDocument) -> String {
    let by = match document.matched_rules.as_slice() {
        [] => String::new(),
        rules => format!(", by rule `{}`", escape(&rules.join("`, `"))),
    };
    format!("{} ({}{by})\n", document.answer.word(), escape(&document.reason_code))
}

pub(super) fn effects(effects: &[EffectRow], title: &str, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.dim(format!("  {title}")));
    for effect in effects {
        text.push_str(&format!("    {:<15}  {}\n", effect.class, one_line(&effect.text)));
    }
    if effects.is_empty() {
        text.push_str("    nothing\n");
    }
    text
}

pub(super) fn way_back(way: WayBack) -> &'static str {
    match way {
        WayBack::NothingToTakeBack => "nothing is changed",
        WayBack::ByLayer => "all of it stays in a layer: `fumehood undo` takes it off",
        WayBack::ByCompensation => "none by itself: somebody has to make it good by other changes",
        WayBack::Irreversible => "none: what leaves the machine cannot be called back",
    }
}

/// Writes the commands of a word that is a script one below the other, where it has more than one.
fn script(word: &OsText, paint: Paint) -> String {
    let text = String::from_utf8_lossy(word.as_bytes());
    let commands = commands(&text);
    if commands.len() < 2 {
        return String::new();
    }
    let mut lines = format!("{}\n", paint.dim(format!("       which is, in {} parts:", commands.len())));
    let mut rest = commands.iter().peekable();
    while let Some(command) = rest.next() {
        let mut times = 1;
        while rest.next_if_eq(&command).is_some() {
            times += 1;
        }
        let shown = if command.is_empty() { "(nothing)".to_owned() } else { one_line(&escape(command)) };
        let repeated = if times > 1 { format!("   ({times} times)") } else { String::new() };
        lines.push_str(&format!("         {}{}\n", paint.bold(shown), paint.dim(repeated)));
    }
    lines
}

/// Splits a script where one command may end and the next begin. Quotes are not looked at: a split too many hides
/// nothing.
fn commands(text: &str) -> Vec<String> {
    let parts = |line: &str| -> Vec<String> {
        let parts = line.split([';', '|', '&']).map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let of_line = |line: &str| if line.trim().is_empty() { vec![String::new()] } else { parts(line) };
    text.split('\n').flat_map(of_line).collect()
}

/// Counts blanks that would push the rest out of sight. A backslash of the text itself is doubled.
pub(super) fn one_line(text: &str) -> String {
    const SHOWN: usize = 8;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let blanks = rest[at..].len() - rest[at..].trim_start_matches(' ').len();
        shown.push_str(&rest[..at]);
        if blanks > SHOWN {
            shown.push_str(&format!(" \\blanks{{{blanks}}} "));
        } else {
            shown.push_str(&rest[at..at + blanks]);
        }
        rest = &rest[at + blanks..];
    }
    shown.push_str(rest);
    shown
}

/// Names the words that have letters beyond ASCII: some of those look like others.
fn odd_characters(argv: &[OsText]) -> Vec<String> {
    let odd = |(number, word): (usize, &OsText)| {
        let text = String::from_utf8_lossy(word.as_bytes()).into_owned();
        let mut letters: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        letters.sort_unstable();
        letters.dedup();
        let shown =
            letters.iter().take(8).map(|c| format!("{} (U+{:04X})", escape(&c.to_string()), u32::from(*c)));
        let shown: Vec<String> = shown.collect();
        (!letters.is_empty())
            .then(|| format!("word {number} has characters beyond ASCII: {}", shown.join(", ")))
    };
    (1..).zip(argv).filter_map(odd).collect()
}
