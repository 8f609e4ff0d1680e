//! `policy`: what would be decided, and the rules that decide it. `approvals render`: what a person is shown.

mod asked;
mod check;
mod explain;
mod prove;
mod recorded;
mod replay;
mod solver;
mod suggest;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use asked::{ActionCase, ApplyCase, Asked, Case, Decided, Scene};
pub(super) use check::check;
use engine::{PolicySource, REPOSITORY_RULES};
pub(super) use explain::explain;
use gate::{BUNDLES, Gate, GateError, LayerOf, Policy, SCHEMA};
use model::action::Principal;
use model::text::escape;
use model::{Effect, EgressRule, Grant, OsText, Tool, WorkspacePath};
pub(super) use prove::{diff, prove};
pub(super) use replay::replay;
pub(super) use suggest::suggest;
pub(super) use table::test;

use super::context::Context;
use super::order::{directory, os_text};
use crate::args::{ApprovalsRenderArgs, PolicyDecideArgs, PolicyShowArgs, RequestChoice, RulesChoice};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    AskedPart, EffectRow, PolicyAnswer, PolicyDocument, VariablePart, WayBack, shell_word, who,
};
use crate::settings::{Origin, bundle, text_of};

/// The longest request that is read, in bytes.
const REQUEST_MAX: u64 = 1 << 20;

/// Says what policy would answer.
pub(super) fn decide(context: &Context<'_>, args: &PolicyDecideArgs) -> Result<Exit, CliError> {
    let document = answered(context, &args.rules, &args.request)?;
    context.console.answer(&document, |paint| render::decision(&document, paint));
    Ok(Exit::answer(document.answer == PolicyAnswer::Allow))
}

/// Shows a request as a person is shown it.
pub(super) fn render_request(context: &Context<'_>, args: &ApprovalsRenderArgs) -> Result<Exit, CliError> {
    let document = answered(context, &args.rules, &args.request)?;
    context.console.answer(&document, |paint| render::dossier(&document, paint));
    Ok(Exit::Success)
}

/// Writes the rules of a bundle, or the schema.
pub(super) fn show(context: &Context<'_>, args: &PolicyShowArgs) -> Result<Exit, CliError> {
    let known = BUNDLES.iter().copied().chain([("schema", SCHEMA)]);
    let Some((_, text)) = known.clone().find(|(name, _)| *name == args.name) else {
        let names: Vec<&str> = known.map(|(name, _)| name).collect();
        let name = escape(&args.name).into_owned();
        return Err(CliError::Cannot(format!("there is no bundle `{name}`: there are {}", names.join(", "))));
    };
    context.console.print(text);
    Ok(Exit::Success)
}

/// The rules that a verb is about.
pub(super) struct Rules {
    /// Where they come from, for people.
    pub(super) place: String,
    source: PolicySource,
    /// The organisation's rules, where these are a repository's own, which cannot permit.
    under: Option<PolicySource>,
}

impl Rules {
    /// Returns the rules that are named, or those of the settings.
    ///
    /// # Errors
    /// When there is no such bundle, or the file cannot be read.
    fn of(context: &Context<'_>, choice: &RulesChoice) -> Result<Self, CliError> {
        match (&choice.bundle, &choice.file) {
            (Some(name), _) => Self::named(name),
            (None, Some(file)) => Self::file(context, file),
            (None, None) => {
                let place = format!("policy of the settings, `{}`", escape(&context.settings.policy.value));
                Ok(Self { place, source: context.policy(), under: None })
            }
        }
    }

    /// Returns a bundle.
    fn named(name: &str) -> Result<Self, CliError> {
        let source = bundle(name, Origin::Flag("--bundle"))?;
        Ok(Self { place: format!("bundle `{}`", escape(name)), source, under: None })
    }

    /// Returns the rules of a file. By its name a repository's own is known for what it is.
    fn file(context: &Context<'_>, file: &Path) -> Result<Self, CliError> {
        let place = escape(&file.to_string_lossy()).into_owned();
        let is_of_repository = file.file_name().is_some_and(|name| name == REPOSITORY_RULES);
        let under = is_of_repository.then(|| context.policy());
        Ok(Self { place, source: PolicySource::Rules(text_of(file)?), under })
    }

    /// Reads them as what they are.
    fn policy(&self) -> Result<Result<Policy, GateError>, CliError> {
        let read = if self.under.is_some() { Policy::of_repository } else { Policy::parse };
        self.text().map(read)
    }

    /// Returns a bundle or a file, as one says it in a word: a name has no `/` and no ending.
    ///
    /// # Errors
    /// As for both of them.
    fn said(context: &Context<'_>, word: &OsStr) -> Result<Self, CliError> {
        match word.to_str().filter(|word| !word.contains(['/', '.'])) {
            Some(name) => Self::named(name),
            None => Self::file(context, Path::new(word)),
        }
    }

    /// Returns the name of the bundle, where these are the rules of one.
    fn bundle(&self) -> Option<&str> {
        match &self.source {
            PolicySource::Bundle(name) => Some(name),
            PolicySource::Rules(_) | PolicySource::Unusable(_) => None,
        }
    }

    /// Returns their text.
    ///
    /// # Errors
    /// When there are none that can be had.
    fn text(&self) -> Result<&str, CliError> {
        match &self.source {
            PolicySource::Bundle(name) => {
                let text = BUNDLES.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
                text.ok_or_else(|| CliError::Cannot(GateError::Missing.to_string()))
            }
            PolicySource::Rules(text) => Ok(text),
            PolicySource::Unusable(why) => Err(CliError::Cannot(why.clone())),
        }
    }

    /// Opens a gate with them; one that denies everything where they cannot be used.
    fn gate(&self) -> Gate {
        let (Some(under), PolicySource::Rules(text)) = (&self.under, &self.source) else {
            return self.source.gate();
        };
        match Policy::of_repository(text) {
            Ok(policy) => under.gate().tightened_by(LayerOf::Repository, Arc::new(policy)),
            Err(error) => Gate::closed(&error),
        }
    }
}

fn answered(
    context: &Context<'_>,
    rules: &RulesChoice,
    choice: &RequestChoice,
) -> Result<PolicyDocument, CliError> {
    let gate = Rules::of(context, rules)?.gate();
    let case = case(context, choice)?;
    Ok(document(&case, &case.decide(&gate)))
}

/// Says what the rules of the settings answer to a run of the user that is to reach something, where the settings name this.
///
/// # Errors
/// When there is no such workspace.
pub(super) fn reaching(
    context: &Context<'_>,
    workspace: Option<&Path>,
    rule: EgressRule,
    named: BTreeSet<EgressRule>,
) -> Result<PolicyDocument, CliError> {
    let case = case_of(context, Asked::reaching(rule, named), workspace, context.principal())?;
    Ok(document(&case, &case.decide(&context.policy().gate())))
}

/// Returns what is asked for on the command line or on standard input.
fn case(context: &Context<'_>, choice: &RequestChoice) -> Result<Case, CliError> {
    let by = if choice.as_user { context.principal() } else { Principal::Agent("an agent".to_owned()) };
    case_of(context, asked(choice)?, choice.workspace.as_deref(), by)
}

fn case_of(
    context: &Context<'_>,
    mut asked: Asked,
    workspace: Option<&Path>,
    by: Principal,
) -> Result<Case, CliError> {
    let place = context.workspace(workspace)?;
    let scene = Scene {
        directory: directory(&place, asked.take_cwd().as_ref().map(|cwd| cwd.as_path()))?,
        workspace: os_text(place.path.into_os_string())?,
        by,
        profile: context.settings.profile(None)?.profile,
    };
    asked.case(scene).map_err(CliError::Cannot)
}

fn asked(choice: &RequestChoice) -> Result<Asked, CliError> {
    if !choice.stdin {
        let argv: Result<Vec<OsText>, _> =
            choice.command.iter().map(|word| OsText::new(word.as_bytes())).collect();
        return Ok(Asked::command(argv.map_err(|error| CliError::Cannot(error.to_string()))?));
    }
    let mut text = Vec::new();
    std::io::stdin()
        .take(REQUEST_MAX + 1)
        .read_to_end(&mut text)
        .map_err(CliError::system("read the request from standard input"))?;
    if text.len() as u64 > REQUEST_MAX {
        return Err(CliError::Cannot(format!("the request is longer than {REQUEST_MAX} bytes")));
    }
    Asked::from_json(&text).map_err(|what| {
        let what = escape(&what).into_owned();
        CliError::Cannot(format!("the request is not what is expected: {what}; docs/policy.md has its form"))
    })
}

fn document(case: &Case, decided: &Decided) -> PolicyDocument {
    let record = decided.record.clone();
    let (request, narrowed, effects) = match case {
        Case::Action(case) => {
            let less = record.grant.as_ref().map(|given| narrowed(case.action.grant(), given));
            (asked_part(case), less.unwrap_or_default(), case.effects.as_slice())
        }
        Case::Apply(case) => (apply_part(case), Vec::new(), &[][..]),
    };
    PolicyDocument {
        answer: decided.answer,
        decision: record.verdict,
        reason_code: record.reason,
        matched_rules: record.rules,
        advice: record.advice,
        person_may_allow: record.person_may_allow,
        roles: decided.roles.clone(),
        narrowed,
        request,
        effects: effects.iter().map(EffectRow::from).collect(),
        way_back: way_back(effects),
    }
}

fn asked_part(case: &ActionCase) -> AskedPart {
    let request = case.action.request().clone();
    let (argv, content) = said(request.tool.clone());
    AskedPart {
        by: who(&request.principal),
        tool: request.tool.name().to_owned(),
        argv,
        content,
        directory: request.directory.map(OsText::from),
        workspace: case.action.start().workspace.clone(),
        variables: variables(request.environment),
    }
}

fn apply_part(case: &ApplyCase) -> AskedPart {
    AskedPart {
        by: who(&case.by),
        tool: "apply".to_owned(),
        argv: vec![OsText::literal(&case.apply().to_string())],
        content: None,
        directory: None,
        workspace: case.workspace.clone(),
        variables: Vec::new(),
    }
}

/// Returns what is asked for in one line.
fn request_line(tool: &Tool) -> String {
    let (words, _) = said(tool.clone());
    let words: Vec<String> = words.iter().map(shell_word).collect();
    match tool {
        Tool::Run { .. } => words.join(" "),
        tool => format!("{} {}", tool.name(), words.join(" ")),
    }
}

/// Returns what a tool is about, word by word, and what it would write.
pub(super) fn said(tool: Tool) -> (Vec<OsText>, Option<String>) {
    let paths = |paths: Vec<WorkspacePath>| paths.into_iter().map(OsText::from).collect();
    match tool {
        Tool::Run { argv } => (argv, None),
        Tool::Read { path } => (vec![path.into()], None),
        Tool::List { path } => (paths(path.into_iter().collect()), None),
        Tool::Search { pattern, path } => {
            let path = path.into_iter().map(OsText::from);
            (std::iter::once(OsText::literal(&pattern)).chain(path).collect(), None)
        }
        Tool::Write { path, content } => (vec![path.into()], Some(content)),
        Tool::Patch { paths: files, diff } => (paths(files), Some(diff)),
    }
}

fn variables(environment: BTreeMap<String, OsText>) -> Vec<VariablePart> {
    environment.into_iter().map(|(name, value)| VariablePart { name, value: Some(value) }).collect()
}

/// Says what a grant has less of than was asked for.
fn narrowed(asked: &Grant, given: &Grant) -> Vec<String> {
    let less = [
        (asked.workspace != given.workspace, "it cannot write the workspace"),
        (asked.network != given.network, "it has its own loopback only"),
        (asked.profile != given.profile, "its limits are those of the profile"),
        (asked.terminal != given.terminal, "it has no terminal"),
    ];
    less.into_iter().filter(|(less, _)| *less).map(|(_, what)| what.to_owned()).collect()
}

/// Returns the furthest way back of all effects. What is not known happens inside a sandbox, so it stays in a layer.
pub(super) fn way_back(effects: &[Effect]) -> WayBack {
    let of_one = |effect: &Effect| match effect {
        Effect::Read { .. } | Effect::Run { .. } | Effect::ShowDataset { .. } => WayBack::NothingToTakeBack,
        Effect::Write { .. }
        | Effect::Delete { .. }
        | Effect::Install { .. }
        | Effect::ChangeControl { .. }
        | Effect::Unknown { .. } => WayBack::ByLayer,
        Effect::ChangeRef { repository, .. } if repository == "." => WayBack::ByLayer,
        Effect::ChangeRef { .. } | Effect::Migrate { .. } | Effect::QueryDatabase { .. } => {
            WayBack::ByCompensation
        }
        Effect::Connect { .. }
        | Effect::UseCredential { .. }
        | Effect::Publish { .. }
        | Effect::Deploy { .. }
        | Effect::Message { .. } => WayBack::Irreversible,
    };
    let rank = |way: &WayBack| match way {
        WayBack::NothingToTakeBack => 0,
        WayBack::ByLayer => 1,
        WayBack::ByCompensation => 2,
        WayBack::Irreversible => 3,
    };
    effects.iter().map(of_one).max_by_key(rank).unwrap_or(WayBack::NothingToTakeBack)
}
