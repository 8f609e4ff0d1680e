//! `config`: settings explained, checked and described.

use std::fs;
use std::path::Path;

use engine::PolicySource;
use gate::Policy;

use super::context::Context;
use crate::args::{ConfigCheckArgs, ConfigExplainArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::shape::{ConfigDocument, ConfigRow, ProblemRow, ProblemsDocument};
use crate::output::{Console, render};
use crate::settings::{
    self, Accounts, Environment, Locations, Place, Problem, Settings, SettingsError, SettingsFile, Source,
};

/// Says what each setting is and where its value came from.
pub(super) fn explain(context: &Context<'_>, args: &ConfigExplainArgs) -> Result<Exit, CliError> {
    let below = |key: &str, wanted: &str| {
        key == wanted || key.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
    };
    let rows = settings::rows(&context.settings)?.into_iter();
    let rows = rows.filter(|row| args.key.as_ref().is_none_or(|wanted| below(&row.key, wanted)));
    let rows = rows.map(|row| ConfigRow {
        key: row.key,
        value: row.value,
        origin: row.origin,
        about: row.about.to_owned(),
    });
    let document = ConfigDocument { settings: rows.collect() };
    if let (Some(key), true) = (&args.key, document.settings.is_empty()) {
        let key = model::text::escape(key).into_owned();
        return Err(CliError::Cannot(format!(
            "`{key}` is not a setting: `fumehood config explain` lists them all"
        )));
    }
    context.console.answer(&document, |paint| render::config(&document, paint));
    Ok(Exit::Success)
}

/// Checks settings files.
pub(super) fn check(
    console: &Console,
    environment: &Environment,
    args: &ConfigCheckArgs,
) -> Result<Exit, CliError> {
    let mut document = ProblemsDocument { files: Vec::new(), problems: Vec::new() };
    match &args.file {
        Some(path) if args.repository => repository(path, &mut document)?,
        Some(path) => note(settings::read(path), path, &mut document)?,
        None => in_force(environment, &mut document)?,
    }
    console.answer(&document, |paint| render::problems(&document, paint));
    Ok(Exit::answer(document.problems.is_empty()))
}

/// Checks the files that are in force, each alone and then together with the environment.
fn in_force(environment: &Environment, document: &mut ProblemsDocument) -> Result<(), CliError> {
    for path in Locations::usual(environment).0.iter().filter(|path| path.exists()) {
        note(settings::read(path), path, document)?;
    }
    if document.problems.is_empty() {
        let rules = Settings::load(environment, Vec::new()).and_then(|settings| {
            settings.registries()?;
            settings.policy()
        });
        let wrong = match rules {
            Ok(PolicySource::Rules(text)) => Policy::parse(&text).err().map(|error| error.to_string()),
            Ok(_) => None,
            Err(error) => Some(CliError::from(error).line()),
        };
        let row = |message| ProblemRow { place: "settings".to_owned(), message };
        document.problems.extend(wrong.map(row));
    }
    Ok(())
}

fn repository(path: &Path, document: &mut ProblemsDocument) -> Result<(), CliError> {
    let text = fs::read_to_string(path).map_err(CliError::file("read", path))?;
    let source = Source::Repository { commit: None, path: path.to_owned() };
    note(SettingsFile::parse(&text, source).map_err(SettingsError::File), path, document)
}

/// Notes what is wrong in a file. That it cannot be read is no finding about what it says.
fn note(
    read: Result<SettingsFile, SettingsError>,
    path: &Path,
    document: &mut ProblemsDocument,
) -> Result<(), CliError> {
    let row = |problem: &Problem| ProblemRow {
        place: problem.place.to_string(),
        message: problem.kind.to_string(),
    };
    document.files.push(path.to_string_lossy().into_owned());
    match read {
        Ok(file) => {
            let us = rustix::process::geteuid().as_raw();
            let roles = settings::role_problems(&file.settings, &Accounts::read(), us);
            let row = |(place, message): (Place, String)| ProblemRow { place: place.to_string(), message };
            document.problems.extend(roles.into_iter().map(row));
        }
        Err(SettingsError::File(problems)) => document.problems.extend(problems.iter().map(row)),
        Err(error @ SettingsError::Untrusted { .. }) => {
            let place = model::text::escape(&path.to_string_lossy()).into_owned();
            document.problems.push(ProblemRow { place, message: error.to_string() });
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Writes the JSON schema of the operator's settings file.
pub(super) fn schema(console: &Console) -> Exit {
    console.print(&format!("{:#}\n", settings::schema()));
    Exit::Success
}
