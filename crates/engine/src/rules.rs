//! Which rules decide in a task: the organisation's, beside them those that the repository brings along, and those of the
//! level that the task was taken in for.
//!
//! Guarantees: a repository's rules are those of a commit (see [`Engine::repository_files`]) and only take away; where
//! they cannot be used everything is denied. Nothing raises the level of a task. Rules are held against the schema when they
//! are new, not at every start.
//! Leaves to others: deciding (`gate`).

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gate::{Gate, GateError, LayerOf, Policy};
use model::intake::WorkLevel;
use model::task::Task;

use crate::base::{CommittedFile, REPOSITORY_RULES};
use crate::error::EngineError;
use crate::{Engine, Workspace};

/// The directory of marks, one for each text of rules that passed the check, below the state directory.
const CHECKED: &str = "checked-rules";

/// What decides in a task beside the organisation's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Beside {
    repository: Option<CommittedFile>,
    level: Option<WorkLevel>,
}

/// What decided last beside the organisation's rules, and the gate that asks all of them.
#[derive(Default)]
pub(crate) struct LastGate(Option<(Beside, Arc<Gate>)>);

impl Engine {
    /// Returns the gate that decides in a task.
    ///
    /// # Errors
    /// When it cannot be told which rules the repository has, or what the task was taken in for. Then nothing may be decided.
    pub fn gate_of(&self, task: &Task, workspace: &Workspace) -> Result<Arc<Gate>, EngineError> {
        let repository = self.repository_files(task, workspace)?.rules;
        let level = self.store().read(|reader| reader.intake(&task.id))?;
        let beside = Beside { repository, level: level.map(|stored| stored.intake.ceiling.level) };
        let mut last = self.last_gate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, gate)) = last.0.as_ref().filter(|(known, _)| *known == beside) {
            return Ok(gate.clone());
        }
        let gate = with_level(self.with_repository(&beside), beside.level);
        last.0 = Some((beside, gate.clone()));
        Ok(gate)
    }

    /// Returns the gate that decides in a task whose directory is not at hand otherwise.
    pub(crate) fn gate_of_task(&self, task: &Task) -> Result<Arc<Gate>, EngineError> {
        let path = task.workspace.path.as_path();
        let config = self.config();
        let workspace = Workspace::find(Some(path), path, &config.home, &config.state_dir)?;
        self.gate_of(task, &workspace)
    }

    fn with_repository(&self, beside: &Beside) -> Arc<Gate> {
        let Some(rules) = &beside.repository else { return self.gate.clone() };
        Arc::new(match Checked::in_state(&self.config().state_dir).of_repository(&rules.text) {
            Ok(policy) => self.gate.tightened_by(LayerOf::Repository, Arc::new(policy)),
            Err(error) => Gate::closed(&GateError::Repository {
                commit: rules.commit.clone(),
                file: REPOSITORY_RULES,
                source: Box::new(error),
            }),
        })
    }
}

/// Adds the rules of a level.
fn with_level(gate: Arc<Gate>, level: Option<WorkLevel>) -> Arc<Gate> {
    let Some(level) = level else { return gate };
    Arc::new(match Policy::bundle(&format!("level-{level}")) {
        Some(Ok(policy)) => gate.tightened_by(LayerOf::Task, Arc::new(policy)),
        Some(Err(error)) => Gate::closed(&error),
        None => Gate::closed(&GateError::Missing),
    })
}

/// Which rules were held against the schema before.
///
/// A mark only saves a check that would find what is wrong sooner: a rule that cannot be evaluated denies.
pub(crate) struct Checked(PathBuf);

impl Checked {
    pub(crate) fn in_state(state_dir: &Path) -> Self {
        Self(state_dir.join(CHECKED))
    }

    /// Reads the operator's rules.
    pub(crate) fn of_operator(&self, text: &str) -> Result<Policy, GateError> {
        self.read(text, Policy::checked_before, Policy::parse)
    }

    fn of_repository(&self, text: &str) -> Result<Policy, GateError> {
        self.read(text, Policy::of_repository_checked_before, Policy::of_repository)
    }

    fn read(
        &self,
        text: &str,
        known: fn(&str) -> Result<Policy, GateError>,
        new: fn(&str) -> Result<Policy, GateError>,
    ) -> Result<Policy, GateError> {
        let policy = known(text)?;
        let mark = self.0.join(policy.checked_as().to_string());
        if fs::symlink_metadata(&mark).is_ok_and(|mark| mark.is_file()) {
            return Ok(policy);
        }
        let policy = new(text)?;
        // Without a mark they are checked again, that is all. The state directory itself is not ours to make.
        let _made = DirBuilder::new().mode(0o700).create(&self.0);
        let _marked = fs::write(&mark, "");
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"@id("all") @reason("all") permit (principal, action, resource);"#;
    const ODD: &str = r#"@id("all") @reason("all") permit (principal, action == Action::"fly", resource);"#;

    #[test]
    fn rules_are_checked_when_they_are_new_and_only_what_passed_is_marked() {
        let directory = tempfile::tempdir().expect("a directory");
        let checked = Checked::in_state(directory.path());
        let marks = || fs::read_dir(&checked.0).map_or(0, Iterator::count);
        assert!(checked.of_operator(GOOD).is_ok());
        assert_eq!(marks(), 1);
        assert!(checked.of_operator(GOOD).is_ok());
        for _ in 0..2 {
            assert!(matches!(checked.of_operator(ODD), Err(GateError::Invalid { .. })));
        }
        assert_eq!(marks(), 1);
    }

    #[test]
    fn a_mark_saves_the_check() {
        let directory = tempfile::tempdir().expect("a directory");
        let checked = Checked::in_state(directory.path());
        let odd = Policy::checked_before(ODD).expect("is Cedar");
        fs::create_dir_all(&checked.0).expect("a directory");
        fs::write(checked.0.join(odd.checked_as().to_string()), "").expect("a mark");
        assert_eq!(checked.of_operator(ODD).expect("is not checked again").digest(), odd.digest());
    }
}
