//! Commands as they are written, and what came of them.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod rewrites;

use std::collections::BTreeSet;
use std::path::Path;

use effects::Command;
use model::{Effect, OsText, Place};

/// Describes a program with its arguments, from the top of `/ws`.
pub(crate) fn argv(argv: &[&str]) -> BTreeSet<Effect> {
    described(argv, &[])
}

/// Describes a script, as `sh -c` runs it.
pub(crate) fn shell(script: &str) -> BTreeSet<Effect> {
    argv(&["sh", "-c", script])
}

pub(crate) fn described(argv: &[&str], variables: &[&str]) -> BTreeSet<Effect> {
    let argv: Vec<OsText> = argv.iter().map(|arg| OsText::new(*arg).expect("no NUL")).collect();
    effects::of_command(Command { argv: &argv, directory: None, workspace: Path::new("/ws"), variables })
}

/// Tells whether nothing is done but starting programs of the system and reading the workspace.
pub(crate) fn only_reads(effects: &BTreeSet<Effect>) -> bool {
    effects.iter().all(|effect| {
        matches!(
            effect,
            Effect::Run { .. }
                | Effect::Read { place: Place::Workspace }
                | Effect::Read { place: Place::Path(_) }
        )
    })
}

/// Returns the effects in words, without the programs that are started.
pub(crate) fn said(effects: &BTreeSet<Effect>) -> Vec<String> {
    effects.iter().filter(|effect| !matches!(effect, Effect::Run { .. })).map(ToString::to_string).collect()
}
