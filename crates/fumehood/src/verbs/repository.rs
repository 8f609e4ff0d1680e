//! A repository's own settings: they can only tighten, and count as a commit has them, never as the working tree does.

use engine::{CommittedFile, Engine, Workspace};
use model::task::Task;

use super::context::Context;
use crate::error::CliError;
use crate::settings::{REPOSITORY_FILE, Settings, SettingsError, SettingsFile, Source};

/// Returns the settings, tightened by the repository's own.
pub(super) fn tightened(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    workspace: &Workspace,
) -> Result<Settings, CliError> {
    let settings = context.settings.clone();
    let file = engine.repository_files(task, workspace)?.settings;
    let Some(CommittedFile { commit, text }) = file else { return Ok(settings) };
    let source = Source::Repository { commit: Some(commit), path: REPOSITORY_FILE.into() };
    Ok(settings.tightened_by(SettingsFile::parse(&text, source).map_err(SettingsError::File)?))
}
