//! `policy`: what would be decided, and the rules that decide it. `approvals render`: what a person is shown.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use engine::describe;
use gate::{BUNDLES, Decision, Facts, Gate, Policy, SCHEMA};
use model::action::{Base, Principal, StartingPoint};
use model::grant::WorkspaceAccess;
use model::text::escape;
use model::{Action, ActionId, ActionRequest, Effect, Grant, OsText, TaskId, Timestamp, Tool};
use serde::Deserialize;

use super::context::Context;
use super::order::{directory, os_text};
use crate::args::{
    ApprovalsRenderArgs, PolicyCheckArgs, PolicyDecideArgs, PolicyShowArgs, RequestChoice, RulesChoice,
};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    AskedPart, EffectRow, PolicyAnswer, PolicyDocument, ProblemRow, ProblemsDocument, VariablePart, WayBack,
    who,
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

/// Checks a file of rules.
pub(super) fn check(context: &Context<'_>, args: &PolicyCheckArgs) -> Result<Exit, CliError> {
    let place = escape(&args.file.to_string_lossy()).into_owned();
    let mut document = ProblemsDocument { files: vec![place.clone()], problems: Vec::new() };
    if let Err(error) = Policy::parse(&text_of(&args.file)?) {
        document.problems.push(ProblemRow { place, message: error.to_string() });
    }
    context.console.answer(&document, |paint| render::problems(&document, paint));
    Ok(Exit::answer(document.problems.is_empty()))
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

/// A request as it comes on standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    argv: Option<Vec<OsText>>,
    #[serde(default)]
    shell: Option<String>,
    #[serde(default)]
    cwd: Option<OsText>,
    #[serde(default)]
    env: BTreeMap<String, OsText>,
}

fn answered(
    context: &Context<'_>,
    rules: &RulesChoice,
    choice: &RequestChoice,
) -> Result<PolicyDocument, CliError> {
    let gate = gate(context, rules)?;
    let asked = asked(choice)?;
    let place = context.workspace(choice.workspace.as_deref())?;
    let workspace = os_text(place.path.clone().into_os_string())?;
    let argv = match (asked.argv, asked.shell) {
        (Some(argv), None) => argv,
        (None, Some(script)) => {
            let script = OsText::new(script).map_err(|error| CliError::Cannot(error.to_string()))?;
            vec![OsText::literal("sh"), OsText::literal("-c"), script]
        }
        _ => {
            return Err(CliError::Cannot(
                "a request has either `argv` or `shell`: give one of them".to_owned(),
            ));
        }
    };
    let principal =
        if choice.as_user { context.principal() } else { Principal::Agent("an agent".to_owned()) };
    let request = ActionRequest {
        principal,
        tool: Tool::Run { argv },
        directory: directory(&place, asked.cwd.as_ref().map(|cwd| cwd.as_path()))?,
        environment: asked.env,
        purpose: None,
    };
    let profile = context.settings.profile(None)?.profile;
    let grant = Grant::under(profile.clone());
    // Nothing is run or kept, so nothing needs a name.
    let (id, task) = (ActionId::from_random([0; 10]), TaskId::from_random([0; 10]));
    let start = StartingPoint { workspace: workspace.clone(), base: Base::Live, layers: Vec::new() };
    let action = Action::parse(id, task, request.clone(), grant.clone(), start)
        .map_err(|error| CliError::Cannot(error.to_string()))?;
    let described = describe(&action);
    let effects: Vec<Effect> = described.declared.iter().flatten().cloned().collect();
    let facts = Facts {
        declared: described.declared,
        classes: described.classes,
        ..Facts::new(profile, Timestamp::from_nanos(0))
    };
    let decision = gate.decide(action, &facts);
    Ok(document(request, workspace, &grant, &effects, &decision))
}

fn gate(context: &Context<'_>, rules: &RulesChoice) -> Result<Gate, CliError> {
    let policy = match (&rules.bundle, &rules.file) {
        (Some(name), _) => bundle(name, Origin::Flag("--bundle"))?,
        (None, Some(file)) => engine::PolicySource::Rules(text_of(file)?),
        (None, None) => context.policy(),
    };
    Ok(policy.gate())
}

fn asked(choice: &RequestChoice) -> Result<Asked, CliError> {
    if !choice.stdin {
        let argv: Result<Vec<OsText>, _> =
            choice.command.iter().map(|word| OsText::new(word.as_bytes())).collect();
        let argv = argv.map_err(|error| CliError::Cannot(error.to_string()))?;
        return Ok(Asked { argv: Some(argv), shell: None, cwd: None, env: BTreeMap::new() });
    }
    let mut text = Vec::new();
    std::io::stdin()
        .take(REQUEST_MAX + 1)
        .read_to_end(&mut text)
        .map_err(CliError::system("read the request from standard input"))?;
    if text.len() as u64 > REQUEST_MAX {
        return Err(CliError::Cannot(format!("the request is longer than {REQUEST_MAX} bytes")));
    }
    let unexpected = |what: &str| {
        let what = escape(what).into_owned();
        CliError::Cannot(format!("the request is not what is expected: {what}; docs/policy.md has its form"))
    };
    // A list would be taken for the fields in their order.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(unexpected("it is no JSON object"));
    }
    serde_json::from_slice(&text).map_err(|error| unexpected(&error.to_string()))
}

fn document(
    request: ActionRequest,
    workspace: OsText,
    asked: &Grant,
    effects: &[Effect],
    decision: &Decision,
) -> PolicyDocument {
    let answer = decision.answer();
    let (word, roles) = match decision {
        Decision::Allow(_) | Decision::Narrow(_) => (PolicyAnswer::Allow, Vec::new()),
        Decision::RequireApproval(request) => (PolicyAnswer::Ask, request.roles().iter().cloned().collect()),
        Decision::Deny(_) => (PolicyAnswer::Deny, Vec::new()),
    };
    let Tool::Run { argv } = request.tool else { unreachable!("it was made so above") };
    PolicyDocument {
        answer: word,
        decision: answer.decision,
        reason_code: answer.reason_code,
        matched_rules: answer.matched_rules,
        advice: answer.advice,
        person_may_allow: answer.person_may_allow,
        roles,
        narrowed: decision.record().grant.as_ref().map(|given| narrowed(asked, given)).unwrap_or_default(),
        request: AskedPart {
            by: who(&request.principal),
            tool: "run".to_owned(),
            argv,
            content: None,
            directory: request.directory.map(OsText::from),
            workspace,
            variables: variables(request.environment),
        },
        effects: effects.iter().map(EffectRow::from).collect(),
        way_back: way_back(effects),
    }
}

fn variables(environment: BTreeMap<String, OsText>) -> Vec<VariablePart> {
    environment.into_iter().map(|(name, value)| VariablePart { name, value: Some(value) }).collect()
}

/// Says what a grant has less of than was asked for. A request of these verbs asks for nothing else.
fn narrowed(asked: &Grant, given: &Grant) -> Vec<String> {
    let read_only = asked.workspace != given.workspace && given.workspace == WorkspaceAccess::ReadOnly;
    read_only.then(|| "it cannot write the workspace".to_owned()).into_iter().collect()
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
