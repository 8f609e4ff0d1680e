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
}

/// What the record says of one workspace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trail {
    /// The action that was asked for first; the host side of a case may cause more.
    action: Option<ActionId>,
    denied: bool,
    held_back: bool,
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
    for (number, trail) in trails(&String::from_utf8(exported)?)? {
        let Some(row) = number.checked_sub(1).and_then(|index| rows.get(index)) else { continue };
        let Some(action) = trail.action else { continue };
        let shown = ask(&["show", "--json", action.as_str()])?;
        let shown: Shown = serde_json::from_slice(&shown)
            .with_context(|| format!("`show --json` of the action of {} has no layers", row.case))?;
        let answer = Recorded { held: shown.held, denied: trail.denied, held_back: trail.held_back };
        recorded.insert(row.case.clone(), answer);
    }
    Ok(recorded)
}

/// Sorts the events of a record by the number of the case, which is part of the name of its workspace.
fn trails(exported: &str) -> Result<BTreeMap<usize, Trail>> {
    let mut numbers: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut trails: BTreeMap<usize, Trail> = BTreeMap::new();
    for line in exported.lines().filter(|line| line.contains("\"event\"")) {
        let line: Line = serde_json::from_str(line).context("a line of the exported record is not known")?;
        let Some(task) = line.task else { continue };
        if let Event::TaskOpened { workspace, .. } = &line.event {
            let number =
                case_number(&workspace.path.to_string()).context("a workspace is not one of the runner")?;
            numbers.insert(task.clone(), number);
        }
        let Some(number) = numbers.get(&task) else { continue };
        trails.entry(*number).or_default().take(line.action, &line.event);
    }
    Ok(trails)
}

impl Trail {
    fn take(&mut self, action: Option<ActionId>, event: &Event) {
        match event {
            Event::Requested { class, .. } if class == "action" && self.action.is_none() => {
                self.action = action
            }
            Event::Decided { decision, .. } if action == self.action => {
                self.denied |= decision.verdict == Verdict::Deny;
            }
            Event::Inspected { held_back, .. } | Event::Applied { held_back, .. } => {
                self.held_back |= !held_back.is_empty();
            }
            _ => {}
        }
    }
}

/// Returns 7 for `…/sbxcases.xyz/7/ws`.
fn case_number(workspace: &str) -> Option<usize> {
    Path::new(workspace).parent()?.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    fn line(task: &str, action: &str, event: &str) -> String {
        format!(
            r#"{{"format":1,"seq":1,"time":0,"task":{task},"action":{action},"event":{event},"previous":"{DIGEST}","digest":"{DIGEST}"}}"#
        )
    }

    #[test]
    fn events_are_sorted_by_the_case_that_caused_them() {
        let task = "\"task-aaaaaaaaaaaaaaaa\"";
        let opened = r#"{"event":"task-opened","workspace":{"path":"/var/tmp/sbxcases.x/7/ws","device":1,"inode":2},"owner":OWNER,"title":null}"#;
        let owner = serde_json::to_string(&model::action::Principal::User("root".to_owned()))
            .expect("it has a JSON form");
        let held_back = r#"{"event":"inspected","changes":[],"changes_dropped":0,"held_back":[{"path":".git/hooks/x","reason":"hook","why":"it runs on the host"}]}"#;
        let exported = [
            r#"{"format":1,"log":"log-aaaaaaaaaaaaaaaa"}"#.to_owned(),
            line(task, "null", &opened.replace("OWNER", &owner)),
            line(task, "\"act-aaaaaaaaaaaaaaaa\"", held_back),
            r#"{"head":{"log":"log-aaaaaaaaaaaaaaaa","seq":2,"digest":"0"}}"#.to_owned(),
        ];
        let trails = trails(&exported.join("\n")).expect("it is a record");
        assert_eq!(trails, [(7, Trail { held_back: true, ..Trail::default() })].into());
    }

    #[test]
    fn the_number_of_a_case_is_read_from_its_workspace() {
        assert_eq!(case_number("/var/tmp/sbxcases.Ab3/12/ws"), Some(12));
        assert_eq!(case_number("/home/me/project"), None);
    }
}
