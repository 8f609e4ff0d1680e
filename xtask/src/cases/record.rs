//! Asks the program what it recorded while the cases ran.
//!
//! The runner keeps the program's state outside of its own scratch directory (`FUMEHOOD_STATE_DIR`), so that the
//! record is still there when the workspaces are gone. `audit export` says which action ran in which workspace,
//! and `show --json ACTION` how each layer was held in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use model::enforcement::Held;
use model::event::{Event, Verdict};
use model::{ActionId, TaskId};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cases::judge::Recorded;
use crate::cases::table::Row;
use crate::run;

/// The part of an exported record that is read here.
#[derive(Debug, Deserialize)]
struct Line {
    task: Option<TaskId>,
    action: Option<ActionId>,
    event: Event,
}

/// The part of `show --json` that is read here.
#[derive(Debug, Deserialize)]
struct Shown {
    held: Vec<Held>,
    decision: Option<Decision>,
    inspection: Option<HeldBack>,
    applied: Vec<HeldBack>,
}

#[derive(Debug, Deserialize)]
struct Decision {
    verdict: Verdict,
}

#[derive(Debug, Deserialize)]
struct HeldBack {
    held_back: Vec<IgnoredAny>,
}

impl From<Shown> for Recorded {
    fn from(shown: Shown) -> Self {
        let denied = shown.decision.is_some_and(|decision| decision.verdict == Verdict::Deny);
        let held_back = shown.inspection.iter().chain(&shown.applied).any(|part| !part.held_back.is_empty());
        Self { held: shown.held, denied, held_back }
    }
}

/// Returns what was recorded for each case that ran.
///
/// # Errors
/// When the program cannot be asked, or answers in a shape that is not known.
pub fn of_cases(
    fumehood: &Path,
    state: &Path,
    rows: &[Row],
    command: &dyn Fn(&[String]) -> Command,
) -> Result<BTreeMap<String, Recorded>> {
    let ask = |words: &[&str]| {
        let mut line = vec![fumehood.to_string_lossy().into_owned(), "--state-dir".into()];
        line.push(state.to_string_lossy().into_owned());
        line.extend(words.iter().map(|word| (*word).to_owned()));
        run::output("ask for the record", &mut command(&line))
    };
    let exported = ask(&["audit", "export"])?;
    let mut recorded = BTreeMap::new();
    for (number, action) in actions(&String::from_utf8(exported)?)? {
        let Some(row) = number.checked_sub(1).and_then(|index| rows.get(index)) else { continue };
        let shown = ask(&["show", "--json", action.as_str()])?;
        let shown: Shown = serde_json::from_slice(&shown)
            .with_context(|| format!("`show --json` of the action of {} is not understood", row.case))?;
        recorded.insert(row.case.clone(), shown.into());
    }
    Ok(recorded)
}

/// Returns the first action that was asked for in each case's workspace; the host side of a case may cause more.
fn actions(exported: &str) -> Result<BTreeMap<usize, ActionId>> {
    let mut numbers: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut actions = BTreeMap::new();
    for line in exported.lines().filter(|line| line.contains("\"event\"")) {
        let line: Line = serde_json::from_str(line).context("a line of the exported record is not known")?;
        let Some(task) = line.task else { continue };
        match line.event {
            Event::TaskOpened { workspace, .. } => {
                let number = case_number(&workspace.path.to_string());
                numbers.insert(task, number.context("a workspace is not one of the runner's")?);
            }
            Event::Requested { class, .. } if class == "action" => {
                let (Some(number), Some(action)) = (numbers.get(&task), line.action) else { continue };
                actions.entry(*number).or_insert(action);
            }
            _ => {}
        }
    }
    Ok(actions)
}

/// Returns 7 for `…/sbxcases.xyz/7/ws`.
fn case_number(workspace: &str) -> Option<usize> {
    Path::new(workspace).parent()?.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use model::action::{Base, Principal, StartingPoint};
    use model::task::WorkspaceKey;
    use model::{Digest, Grant, OsText, Profile};

    use super::*;

    const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    fn line(task: &str, action: &str, event: &str) -> String {
        format!(
            r#"{{"format":1,"seq":1,"time":0,"task":{task},"action":{action},"event":{event},"previous":"{DIGEST}","digest":"{DIGEST}"}}"#
        )
    }

    #[test]
    fn an_action_is_found_by_the_workspace_of_its_case() {
        let task = "\"task-aaaaaaaaaaaaaaaa\"";
        let path: OsText = serde_json::from_str("\"/var/tmp/sbxcases.x/7/ws\"").expect("it is a path");
        let workspace = WorkspaceKey { path: path.clone(), device: 1, inode: 2 };
        let owner = Principal::User("root".to_owned());
        let opened = Event::TaskOpened { workspace, owner: owner.clone(), title: None };
        let grant = Box::new(Grant::under(Profile::strict()));
        let requested = |class: &str| Event::Requested {
            digest: Digest::of(b"x"),
            principal: owner.clone(),
            class: class.to_owned(),
            tool: "run".to_owned(),
            argv: Vec::new(),
            environment: Vec::new(),
            claimed_purpose: None,
            grant: grant.clone(),
            start: StartingPoint { workspace: path.clone(), base: Base::Live, layers: Vec::new() },
            declared: Vec::new(),
        };
        let json = |event: &Event| serde_json::to_string(event).expect("an event has a JSON form");
        let exported = [
            r#"{"format":1,"log":"log-aaaaaaaaaaaaaaaa"}"#.to_owned(),
            line(task, "null", &json(&opened)),
            line(task, "\"act-aaaaaaaaaaaaaaaa\"", &json(&requested("internal"))),
            line(task, "\"act-bbbbbbbbbbbbbbbb\"", &json(&requested("action"))),
            line(task, "\"act-cccccccccccccccc\"", &json(&requested("action"))),
            r#"{"head":{"log":"log-aaaaaaaaaaaaaaaa","seq":4,"digest":"0"}}"#.to_owned(),
        ];
        let actions = actions(&exported.join("\n")).expect("it is a record");
        assert_eq!(
            actions.into_iter().map(|(n, a)| (n, a.to_string())).collect::<Vec<_>>(),
            [(7, "act-bbbbbbbbbbbbbbbb".to_owned())]
        );
    }

    #[test]
    fn what_is_shown_of_an_action_is_read() {
        let shown = r#"{"action":"act-aaaaaaaaaaaaaaaa","held":[{"layer":"disk","level":"hard","by":"tmpfs"}],
            "decision":{"verdict":"allow"},"inspection":null,"applied":[{"held_back":[{"path":"x"}]}]}"#;
        let shown: Shown = serde_json::from_str(shown).expect("its shape is known");
        let recorded = Recorded::from(shown);
        assert!(recorded.held_back && !recorded.denied);
        assert_eq!(recorded.held.len(), 1);
    }

    #[test]
    fn the_number_of_a_case_is_read_from_its_workspace() {
        assert_eq!(case_number("/var/tmp/sbxcases.Ab3/12/ws"), Some(12));
        assert_eq!(case_number("/home/me/project"), None);
    }
}
