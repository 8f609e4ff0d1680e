//! Turning an apply around.

use std::path::Path;

use inspect::Node;
use model::{Change, ChangeKind, WorkspacePath};
use rustix::io::Errno;

use super::beneath::Workspace;
use super::drift::{Below, PutBack, is_as_seen, is_directory};
use super::error::ApplyError;
use super::journal::{Act, Journal, Step, StepState};
use super::plan::{Plan, Source};
use super::report::Conflict;
use super::stage::{as_path, captured_name};

/// Plans the opposite of each step that was done, where the host still has what the step left.
pub(super) fn plan(workspace: &Workspace, applied: &Journal, captured: &Path) -> Result<Plan, ApplyError> {
    let mut plan = Plan::default();
    for (slot, step) in applied.steps.iter().enumerate() {
        let StepState::Done { left } = &step.state else { continue };
        let now = match workspace.look(&step.path) {
            Ok(now) => now,
            Err(errno) => {
                plan.conflicts.push(conflict(&step.path, &reason(errno)));
                continue;
            }
        };
        let kept = captured.join(as_path(&captured_name(applied.name, slot))).symlink_metadata().is_ok();
        turn_around(&mut plan, slot, step, left.as_deref(), now, kept);
    }
    plan.sort();
    Ok(plan)
}

/// Pairs what an apply overwrote with what taking it back left in its place. Both journals are closed.
pub(super) fn put_back(applied: &Journal, undone: &Journal) -> Vec<PutBack> {
    let left = |path: &WorkspacePath| {
        undone.steps.iter().find_map(|step| match &step.state {
            StepState::Done { left: Some(left) } if step.path == *path => Some((**left).clone()),
            _ => None,
        })
    };
    let pair = |step: &Step| match &step.act {
        Act::Replace { host } | Act::Delete { host } => {
            Some(PutBack { path: step.path.clone(), was: (**host).clone(), is: left(&step.path)? })
        }
        _ => None,
    };
    applied.steps.iter().filter_map(pair).collect()
}

fn turn_around(
    plan: &mut Plan,
    slot: usize,
    step: &Step,
    left: Option<&Node>,
    now: Option<Node>,
    kept: bool,
) {
    let path = &step.path;
    let untouched = match left {
        Some(left) => is_as_seen(&Below::There(Box::new(left.clone())), now.as_ref()),
        None => now.is_none(),
    };
    match (&step.act, now) {
        (Act::Create, Some(now)) if untouched => {
            plan.push(path, Act::Delete { host: Box::new(now.clone()) }, Source::None);
            plan.changes.push(change(path, ChangeKind::Deleted, &now));
        }
        (Act::Replace { host }, Some(now)) if untouched && kept => {
            plan.push(path, Act::Replace { host: Box::new(now) }, Source::Captured(slot));
            plan.changes.push(change(path, ChangeKind::Modified, host));
        }
        (Act::Delete { host }, None) if kept => {
            plan.push(path, Act::Create, Source::Captured(slot));
            plan.changes.push(change(path, ChangeKind::Created, host));
        }
        // A name that became something else is given back by the step that made the new thing.
        (Act::Delete { host }, Some(now)) if kept && is_directory(&now) => {
            plan.push(path, Act::Create, Source::Captured(slot));
            plan.changes.push(change(path, ChangeKind::Created, host));
        }
        (Act::MakeDirectory { .. }, Some(now)) if is_directory(&now) => {
            plan.push(path, Act::RemoveDirectory { host: Box::new(now.clone()) }, Source::None);
            plan.changes.push(change(path, ChangeKind::Deleted, &now));
        }
        (Act::RemoveDirectory { .. }, Some(now)) if is_directory(&now) => {}
        (Act::RemoveDirectory { host }, _) => {
            let mode = host.mode();
            plan.push(path, Act::MakeDirectory { mode, owner: None }, Source::None);
            let finish = Act::FinishDirectory { mode, host: None, times: Some(host.clone()) };
            plan.push(path, finish, Source::None);
            plan.changes.push(change(path, ChangeKind::Created, host));
        }
        (Act::FinishDirectory { host: Some(host), .. }, Some(now)) if is_directory(&now) => {
            let finish = Act::FinishDirectory { mode: host.mode(), host: Some(Box::new(now)), times: None };
            plan.push(path, finish, Source::None);
            plan.changes.push(change(path, ChangeKind::Modified, host));
        }
        (Act::FinishDirectory { .. }, _) | (Act::Create | Act::MakeDirectory { .. }, None) => {}
        _ => plan.conflicts.push(conflict(path, "the host changed it since, so it stays as it is")),
    }
}

fn change(path: &WorkspacePath, kind: ChangeKind, node: &Node) -> Change {
    let gone = kind == ChangeKind::Deleted;
    let (mode, size) = if gone { (0, 0) } else { (node.mode(), node.size) };
    Change { path: path.clone(), kind, file: node.kind, mode, size, ignored: false }
}

fn conflict(path: &WorkspacePath, why: &str) -> Conflict {
    Conflict { path: path.clone(), beside: None, why: why.to_owned() }
}

fn reason(errno: Errno) -> String {
    format!("it cannot be looked at: {}", std::io::Error::from(errno))
}
