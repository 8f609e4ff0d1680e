//! From options to an order: the request, the grant that it asks for, and the profile that holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use engine::{Engine, Order, Workspace};
use model::EgressRule;
use model::action::Principal;
use model::egress::RuleError;
use model::grant::{GrantedProgram, Input, Network, Programs, WorkspaceAccess};
use model::task::Task;
use model::text::escape;
use model::{ActionId, ActionRequest, Digest, Grant, OsText, Tool, WorkspacePath};
use sandbox::view::interpreter;

use super::context::Context;
use super::diff::pathspecs_in;
use super::mutant;
use super::partial::Partial;
use super::repository::tightened;
use crate::args::{EnvSetting, InputSetting, SandboxOptions};
use crate::error::CliError;
use crate::settings::Settings;

/// What is to be run, and how.
pub(super) struct Wanted<'w> {
    /// Who asks for it.
    pub(super) principal: Principal,
    pub(super) argv: Vec<OsString>,
    pub(super) options: &'w SandboxOptions,
    pub(super) terminal: bool,
    /// The action whose network it is to use.
    pub(super) joins: Option<ActionId>,
    /// What the asker says it is for.
    pub(super) purpose: Option<String>,
}

/// Puts an order for a task together.
pub(super) fn order(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    workspace: &Workspace,
    wanted: Wanted<'_>,
) -> Result<Order, CliError> {
    let options = wanted.options;
    let settings = tightened(context, engine, task, workspace)?;
    let holds = settings.profile(options.profile.as_deref())?;
    let asked = holds.asked(&options.limits);
    let argv = wanted.argv.into_iter().map(os_text).collect::<Result<_, _>>()?;
    let mut grant = Grant::under(asked.profile);
    if options.read_only {
        grant.workspace = WorkspaceAccess::ReadOnly;
    }
    grant.programs = programs(context, &options.program)?;
    grant.inputs = inputs(context, engine.store().directory(), &options.input)?;
    grant.shown_credentials.clone_from(&options.show_credential);
    if let Some(action) = wanted.joins {
        grant.network = Network::Joined(action);
    }
    if !options.allow_net.is_empty() || !options.credential.is_empty() {
        let mut rules = reached(&settings, &options.allow_net)?;
        rules.extend(used(&settings, &options.credential)?);
        grant.network = Network::Egress(rules);
    }
    grant.terminal = wanted.terminal;
    grant.hidden = hidden(engine, task, workspace, options)?;
    let request = ActionRequest {
        principal: wanted.principal,
        tool: Tool::Run { argv },
        directory: directory(workspace, options.cwd.as_deref())?,
        environment: environment(context, &options.env)?,
        purpose: wanted.purpose,
    };
    Ok(Order {
        request,
        grant,
        profile: holds.profile,
        workspace: workspace.clone(),
        mutant: mutant::chosen(&context.environment),
    })
}

/// What stands before the name of a registry.
const REGISTRY: &str = "registry:";

/// Returns the rules of a registry.
fn registry(settings: &Settings, name: &str) -> Result<BTreeSet<EgressRule>, CliError> {
    if let Some(rules) = settings.registry(name)? {
        return Ok(rules);
    }
    let known: Vec<String> = settings.registries()?.into_iter().map(|registry| registry.name).collect();
    let known = match known.as_slice() {
        [] => {
            "your settings have no `[registry.NAME]`, and no client of yours names one: see docs/packages.md"
                .to_owned()
        }
        names => format!("there are {}", names.join(", ")),
    };
    Err(CliError::Cannot(format!("there is no registry `{}`: {known}", escape(name))))
}

/// Reads what is to be reached: rules, and names of tables in the settings.
pub(super) fn reached(settings: &Settings, named: &[String]) -> Result<BTreeSet<EgressRule>, CliError> {
    let mut rules = BTreeSet::new();
    for text in named {
        if let Some(table) = settings.network(text) {
            if table.is_empty() {
                return Err(CliError::Cannot(format!(
                    "`--allow-net {text}`: `[network.{text}]` of your settings has no rules, so nothing can be reached by it"
                )));
            }
            rules.extend(table);
            continue;
        }
        if let Some(name) = text.strip_prefix(REGISTRY) {
            rules.extend(registry(settings, name)?);
            continue;
        }
        let rule = text.parse().map_err(|error: RuleError| {
            let names: Vec<&str> = settings.networks.keys().map(String::as_str).collect();
            let names = match names.as_slice() {
                [] => "your settings have no `[network.NAME]`".to_owned(),
                names => format!("your settings have {}", names.join(", ")),
            };
            let registry = match settings.registries.contains_key(text) {
                true => format!("; `registry:{text}` is the registry of that name"),
                false => String::new(),
            };
            CliError::Cannot(format!("`--allow-net {}`: {error}; {names}{registry}", escape(text)))
        })?;
        rules.insert(rule);
    }
    Ok(rules)
}

/// Returns what credentials are for, by their names.
fn used(settings: &Settings, named: &[String]) -> Result<BTreeSet<EgressRule>, CliError> {
    let mut rules = BTreeSet::new();
    for name in named {
        let table = settings.credential_table(name).ok_or_else(|| no_credential(settings, name))?;
        rules.extend(table.rules);
    }
    Ok(rules)
}

/// Says that there is no credential of this name, and which there are.
pub(super) fn no_credential(settings: &Settings, name: &str) -> CliError {
    let names: Vec<&str> = settings.credentials.keys().map(String::as_str).collect();
    let names = match names.as_slice() {
        [] => "your settings have no `[credential.NAME]`".to_owned(),
        names => format!("your settings have {}", names.join(", ")),
    };
    CliError::Cannot(format!("there is no credential `{}`: {names}", escape(name)))
}

/// Returns the paths that the command is not to see.
fn hidden(
    engine: &Engine,
    task: &Task,
    workspace: &Workspace,
    options: &SandboxOptions,
) -> Result<Vec<WorkspacePath>, CliError> {
    let (only, hide) = (pathspecs_in(workspace, &options.only)?, pathspecs_in(workspace, &options.hide)?);
    Partial { only, hide }.hidden(engine, task)
}

/// Takes an argument as the kernel will.
pub(super) fn os_text(text: OsString) -> Result<OsText, CliError> {
    OsText::new(text.into_vec()).map_err(|error| CliError::Cannot(error.to_string()))
}

/// Returns where the command starts: the directory that is named, else where the caller stands in the workspace.
pub(super) fn directory(
    workspace: &Workspace,
    named: Option<&Path>,
) -> Result<Option<WorkspacePath>, CliError> {
    let outside = |path: &Path| {
        let (path, top) = (path.to_string_lossy(), workspace.path.to_string_lossy());
        CliError::Cannot(format!("`{}` is outside the workspace `{}`", escape(&path), escape(&top)))
    };
    let below = match named {
        None => workspace.below.clone().unwrap_or_default(),
        Some(path) if path.is_absolute() => {
            path.strip_prefix(&workspace.path).map_err(|_| outside(path))?.to_owned()
        }
        Some(path) => path.to_owned(),
    };
    let is_top = below.components().all(|part| matches!(part, std::path::Component::CurDir));
    if is_top {
        return Ok(None);
    }
    WorkspacePath::parse(&below).map(Some).map_err(|error| CliError::Cannot(error.to_string()))
}

/// Returns the variables to set; one without a value is the caller's own.
pub(super) fn environment(
    context: &Context<'_>,
    settings: &[EnvSetting],
) -> Result<BTreeMap<String, OsText>, CliError> {
    let mut variables = BTreeMap::new();
    for EnvSetting { name, value } in settings {
        let missing =
            || CliError::Cannot(format!("`--env {name}` passes on your own `{name}`, which is not set"));
        let value = match value {
            Some(value) => value.clone(),
            None => context.environment.get(name).ok_or_else(missing)?.to_owned(),
        };
        variables.insert(name.clone(), os_text(value)?);
    }
    Ok(variables)
}

fn programs(context: &Context<'_>, files: &[PathBuf]) -> Result<Programs, CliError> {
    if files.is_empty() {
        return Ok(Programs::Any);
    }
    let files = files.iter().map(|file| program(context, file)).collect::<Result<_, _>>()?;
    Ok(Programs::Only(files))
}

/// Finds a program: a bare name on our PATH, which a sandbox shows, and a path from where we stand. It is granted as it is
/// now.
fn program(context: &Context<'_>, file: &Path) -> Result<GrantedProgram, CliError> {
    let found = if file.components().count() == 1 && !file.as_os_str().as_bytes().contains(&b'/') {
        on_path(context, file)?
    } else {
        file.to_owned()
    };
    let resolved = resolved(context, &found)?;
    if let Some(why) = interpreter(resolved.as_path()) {
        let name = escape(&resolved.as_path().to_string_lossy()).into_owned();
        context.console.say(&format!(
            "fumehood: `{name}` is an interpreter ({why}): listing it grants all that it can do"
        ));
    }
    let digest = File::open(resolved.as_path()).and_then(Digest::of_all);
    let digest = digest.map_err(CliError::file("read", resolved.as_path()))?;
    Ok(GrantedProgram { file: resolved, digest: Some(digest) })
}

fn on_path(context: &Context<'_>, name: &Path) -> Result<PathBuf, CliError> {
    let path = context.environment.get("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    let places = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    places.map(|directory| directory.join(name)).find(is_program).ok_or_else(|| {
        let name = escape(&name.to_string_lossy()).into_owned();
        CliError::Cannot(format!(
            "there is no program `{name}` on PATH: name the file, as in `--program ./{name}`"
        ))
    })
}

fn inputs(context: &Context<'_>, state: &Path, settings: &[InputSetting]) -> Result<Vec<Input>, CliError> {
    let mut inputs: Vec<Input> = Vec::new();
    for InputSetting { name, path } in settings {
        if inputs.iter().any(|input| input.name == *name) {
            return Err(CliError::Cannot(format!("two inputs have the name `{name}`")));
        }
        let source = resolved(context, path)?;
        engine::check_input(source.as_path(), state)?;
        inputs.push(Input { name: name.clone(), source });
    }
    Ok(inputs)
}

fn resolved(context: &Context<'_>, path: &Path) -> Result<OsText, CliError> {
    let path = context.cwd.join(path);
    let resolved = std::fs::canonicalize(&path).map_err(CliError::file("find", &path))?;
    os_text(resolved.into_os_string())
}
