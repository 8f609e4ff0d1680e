//! A repository's own settings: they can only tighten, and count as a commit has them, never as the working tree does.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use engine::{CommittedFile, Engine, Workspace};
use model::action::Base;
use model::task::Task;

use super::context::Context;
use crate::error::CliError;
use crate::settings::{REPOSITORY_FILE, Settings, SettingsError, SettingsFile, Source};

/// The largest settings file of a repository that is read.
const SETTINGS_MAX: u64 = 1 << 20;

/// Returns the settings, tightened by the repository's own: those of the commit that the task starts from, or, where it
/// starts from the directory as it stands, of the commit that is checked out there.
pub(super) fn tightened(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    workspace: &Workspace,
) -> Result<Settings, CliError> {
    let settings = context.settings.clone();
    let file = match &task.base {
        Base::Commit { commit } => of_base(engine, task, commit)?,
        Base::Live => {
            // Ours, not the one for actions: it is a helper of ours that reads the file.
            let profile = settings.profile(Some("default"))?.profile;
            engine.committed_file(task, workspace, &profile, REPOSITORY_FILE)?
        }
    };
    let Some(CommittedFile { commit, text }) = file else { return Ok(settings) };
    let source = Source::Repository { commit: Some(commit), path: REPOSITORY_FILE.into() };
    Ok(settings.tightened_by(SettingsFile::parse(&text, source).map_err(SettingsError::File)?))
}

/// Reads the file of a commit that is checked out below the task.
fn of_base(engine: &Engine, task: &Task, commit: &str) -> Result<Option<CommittedFile>, CliError> {
    let path = engine.base_directory(task).join(REPOSITORY_FILE);
    let mut options = File::options();
    // A link would have somebody else's file read.
    options.read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    let file = match options.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::file("read", REPOSITORY_FILE)(error)),
    };
    let mut text = String::new();
    file.take(SETTINGS_MAX).read_to_string(&mut text).map_err(CliError::file("read", REPOSITORY_FILE))?;
    Ok(Some(CommittedFile { commit: commit.to_owned(), text }))
}
