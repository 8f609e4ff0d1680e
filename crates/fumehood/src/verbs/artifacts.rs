//! `artifacts`: what actions left in `$FUMEHOOD_ARTIFACTS`.
//!
//! Guarantees: nothing that a command left is followed: only ordinary files are listed and read, each by a path without
//! links below the directory of its action.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use engine::Engine;
use engine::store::{ActionState, StoredAction};
use model::{ActionId, OsText, TaskId};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::context::Context;
use super::task::choose;
use crate::args::{ArtifactsGetArgs, ArtifactsListArgs, Target, TaskChoice};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{ArtifactRow, ArtifactsDocument};

/// Lists what actions left.
pub(super) fn list(context: &Context<'_>, args: &ArtifactsListArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let mut document = ArtifactsDocument { artifacts: Vec::new() };
    for action in actions(context, &engine, args.target.as_ref())? {
        document.artifacts.extend(of_action(&engine, &action.task, &action.id)?);
    }
    context.console.answer(&document, |paint| render::artifacts(&document, paint));
    Ok(Exit::Success)
}

/// Returns what one action left.
pub(super) fn of_action(
    engine: &Engine,
    task: &TaskId,
    action: &ActionId,
) -> Result<Vec<ArtifactRow>, CliError> {
    let files = files(&engine.artifacts_directory(task, action))?;
    let row = |(path, size): (PathBuf, u64)| {
        let name = OsText::try_from(path.as_path()).ok()?;
        Some(ArtifactRow { name, action: action.clone(), size })
    };
    Ok(files.into_iter().filter_map(row).collect())
}

/// Returns the actions that are meant, oldest first. What was only tried gave nothing out yet.
fn actions(
    context: &Context<'_>,
    engine: &Engine,
    target: Option<&Target>,
) -> Result<Vec<StoredAction>, CliError> {
    let task = match target {
        Some(Target::Action(named)) => {
            let action = engine.store().read(|reader| reader.find_action(named.as_str()))?;
            if action.state == ActionState::Tried {
                let id = &action.id;
                return Err(CliError::Cannot(format!(
                    "{id} was only tried: what it left waits for a person's yes"
                )));
            }
            return Ok(vec![action]);
        }
        Some(Target::Task(named)) => Some(named.clone()),
        None => None,
    };
    let task = choose(context, engine, &TaskChoice { task, workspace: None })?;
    let actions = engine.store().read(|reader| reader.actions(&task.id))?;
    let given = |action: &StoredAction| action.class == "action" && action.state != ActionState::Tried;
    Ok(actions.into_iter().filter(given).collect())
}

/// Returns the ordinary files below a directory with their sizes, by name.
fn files(directory: &Path) -> Result<Vec<(PathBuf, u64)>, CliError> {
    let mut files = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        let place = directory.join(&below);
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CliError::file("list", &place)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(CliError::file("list", &place))?;
            let path = below.join(entry.file_name());
            // Of the entry itself: a link is neither.
            let metadata = entry.metadata().map_err(CliError::file("look at", &path))?;
            if metadata.is_dir() {
                left.push(path);
            } else if metadata.is_file() {
                files.push((path, metadata.size()));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Writes one artifact.
pub(super) fn get(context: &Context<'_>, args: &ArtifactsGetArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let name = Path::new(&args.name);
    let actions = actions(context, &engine, args.from.as_ref())?;
    let newest = actions
        .iter()
        .rev()
        .find_map(|action| open(&engine.artifacts_directory(&action.task, &action.id), name).transpose());
    let missing = || {
        let name = model::text::escape(&args.name.to_string_lossy()).into_owned();
        CliError::Cannot(format!("there is no artifact `{name}`: `fumehood artifacts list` names them"))
    };
    let mut artifact = newest.ok_or_else(missing)?.map_err(CliError::file("read the artifact", name))?;
    match &args.file {
        Some(file) => {
            let path = context.cwd.join(file);
            let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let mut new = new.map_err(CliError::file("make", &path))?;
            io::copy(&mut artifact, &mut new)
                .and_then(|_| new.flush())
                .map_err(CliError::file("write", &path))?;
        }
        None => copy_out(&mut artifact)?,
    }
    Ok(Exit::Success)
}

fn copy_out(artifact: &mut File) -> Result<(), CliError> {
    match io::copy(artifact, &mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::system("write to standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Opens an ordinary file below a directory, without a link on the way; nothing when there is none.
fn open(directory: &Path, name: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let top = match openat(CWD, directory, flags | OFlags::DIRECTORY, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        other => other?,
    };
    // Without waiting: a pipe would hold us until somebody writes to it.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&top, name, flags, Mode::empty(), resolve) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(file) => {
            let file = File::from(file);
            Ok(file.metadata()?.is_file().then_some(file))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_ordinary_files_are_listed_and_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().join("artifacts");
        fs::create_dir_all(top.join("sub")).expect("makes directories");
        fs::write(directory.path().join("secret"), "outside").expect("writes");
        fs::write(top.join("sub/report"), "inside").expect("writes");
        symlink("../secret", top.join("link")).expect("links");
        symlink("sub", top.join("dir")).expect("links");
        rustix::fs::mkfifoat(CWD, top.join("pipe"), Mode::RUSR).expect("makes a pipe");
        assert_eq!(files(&top).expect("lists"), [(PathBuf::from("sub/report"), 6)]);
        let mut text = String::new();
        let file = open(&top, Path::new("sub/report")).expect("opens").expect("is there");
        { file }.read_to_string(&mut text).expect("reads");
        assert_eq!(text, "inside");
        for wrong in ["link", "dir/report", "../secret", "/etc/passwd"] {
            assert!(open(&top, Path::new(wrong)).is_err(), "{wrong}");
        }
        for missing in ["pipe", "sub", "none", "sub/report/x"] {
            assert!(open(&top, Path::new(missing)).expect("looks").is_none(), "{missing}");
        }
        assert!(files(&top.join("none")).expect("lists").is_empty());
    }
}
