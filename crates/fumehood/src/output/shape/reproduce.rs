//! What an action did when it was run again, against what it did the first time.

use std::collections::BTreeMap;

use model::ActionId;
use schemars::JsonSchema;
use serde::Serialize;

use super::action::ActionDocument;

/// `reproduce --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReproduceDocument {
    /// The earlier action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// The same action, run again.
    pub again: ActionDocument,
    /// What could not be made the same, in a sentence each.
    pub notes: Vec<String>,
    /// What differed in the end; empty when it was reproduced.
    pub differs: Vec<Difference>,
}

/// One thing that differed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// What.
    pub what: String,
    /// What it was.
    pub before: String,
    /// What it is.
    pub now: String,
}

/// Compares what two runs of one action came to: decision, ending, output and changes. Times and usage always differ.
pub fn differences(before: &ActionDocument, now: &ActionDocument) -> Vec<Difference> {
    let mut differs = Vec::new();
    let mut compare = |what: &str, before: Option<String>, now: Option<String>| {
        if before != now {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            differs.push(Difference { what: what.to_owned(), before: shown(before), now: shown(now) });
        }
    };
    compare("decision", decision(before), decision(now));
    compare("ending", ending(before), ending(now));
    compare("masked files", masked(before), masked(now));
    let (old, new) = (outputs(before), outputs(now));
    for stream in ["stdout", "stderr", "terminal"] {
        compare(stream, old.get(stream).cloned(), new.get(stream).cloned());
    }
    let (old, new) = (changes(before), changes(now));
    for path in old.keys().chain(new.keys().filter(|path| !old.contains_key(*path))) {
        compare(&format!("`{path}`"), old.get(path).cloned(), new.get(path).cloned());
    }
    differs
}

fn decision(document: &ActionDocument) -> Option<String> {
    let decision = document.decision.as_ref()?;
    Some(format!("{:?} ({})", decision.verdict, model::text::escape(&decision.reason)).to_lowercase())
}

fn ending(document: &ActionDocument) -> Option<String> {
    document.end.as_ref().map(|end| end.ending.to_string())
}

fn masked(document: &ActionDocument) -> Option<String> {
    let masked = &document.sandbox.as_ref()?.masked;
    Some(masked.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

fn outputs(document: &ActionDocument) -> BTreeMap<String, String> {
    let outputs = document.end.iter().flat_map(|end| &end.output);
    outputs
        .map(|output| (output.stream.clone(), format!("{} bytes, {}", output.kept, output.digest)))
        .collect()
}

fn changes(document: &ActionDocument) -> BTreeMap<String, String> {
    let changes = document.inspection.iter().flat_map(|part| &part.changes);
    let shown = |change: &super::ChangePart| {
        let kind = format!("{:?} {:?}", change.kind, change.file).to_lowercase();
        let mode = change.mode.as_deref().unwrap_or("gone");
        format!("{kind}, {mode}, {} bytes", change.size)
    };
    changes.map(|change| (change.path.to_string(), shown(change))).collect()
}
