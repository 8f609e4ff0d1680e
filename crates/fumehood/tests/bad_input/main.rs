//! Every verb meets every bad input: one table, the real program. Each answer is clear, comes with its exit code, and
//! loses nothing. Works as root and as an ordinary user.
#![allow(clippy::disallowed_methods, reason = "the tests start the program")]

mod bench;
mod inputs;
mod verbs;

use bench::{Answer, Bench};
use clap::CommandFactory;
use inputs::INPUTS;
use verbs::VERBS;

#[test]
fn every_verb_meets_every_bad_input() {
    let mut failures = Vec::new();
    let mut met = 0;
    for input in INPUTS {
        for verb in VERBS.iter().filter(|verb| (input.concerns)(verb)) {
            let bench = Bench::new();
            let answer = (input.meet)(&bench, verb);
            met += 1;
            if let Err(why) = judge(&answer, input.says) {
                failures.push(format!("{} meets {}: {why}\n{answer}", verb.name, input.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {met}:\n{}", failures.len(), failures.join("\n"));
    assert!(met > 250, "only {met} meetings");
}

/// Judges an answer to something that cannot be done.
fn judge(answer: &Answer, says: &[&str]) -> Result<(), String> {
    if answer.code != Some(125) {
        return Err(format!("expected exit code 125, got {:?}", answer.code));
    }
    if !answer.stdout.is_empty() {
        return Err("standard output is not empty".to_owned());
    }
    let text = String::from_utf8(answer.stderr.clone()).map_err(|_| "it is no UTF-8".to_owned())?;
    if let Some(missing) = says.iter().find(|part| !text.contains(**part)) {
        return Err(format!("it does not say `{missing}`"));
    }
    let driven = text.chars().find(|c| model::text::is_hidden(*c) && !"\n\t".contains(*c));
    if let Some(c) = driven {
        return Err(format!("it holds the character {c:?}"));
    }
    if text.contains("panicked") || text.contains("RUST_BACKTRACE") {
        return Err("it panicked".to_owned());
    }
    answer.untouched.clone()
}

#[test]
fn the_table_has_every_verb() {
    let mut command = fumehood::args::Cli::command();
    command.build();
    let mut missing = Vec::new();
    leaves(&command, "", &mut |path| {
        if !VERBS.iter().any(|verb| verb.name == path) {
            missing.push(path.to_owned());
        }
    });
    assert!(missing.is_empty(), "{missing:?}");
}

fn leaves(command: &clap::Command, path: &str, visit: &mut dyn FnMut(&str)) {
    let children: Vec<_> =
        command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").collect();
    if children.is_empty() {
        visit(path.trim());
    }
    for child in children {
        leaves(child, &format!("{path} {}", child.get_name()), visit);
    }
}

#[test]
fn what_is_right_is_taken_beside_what_is_wrong() {
    // Otherwise a program that refuses everything would pass.
    let bench = Bench::new();
    for words in [&["task", "list"][..], &["audit", "verify"], &["config", "explain"], &["gc", "--dry-run"]] {
        let answer = bench.run(words);
        assert_eq!(answer.code, Some(0), "{words:?}\n{answer}");
    }
}
