//! `policy suggest`: the smallest change of rules that would have allowed one denial, and what else it allows.
//!
//! Guarantees: nothing is installed, only printed; a suggestion was tried before it is shown, on the denial itself; and
//! what no person may change gets none.

use gate::{BareQuestion, LayerOf, LayerSays, Policy, Traced};
use model::text::escape;

use super::asked::{Case, Scene};
use super::recorded::{Recorded, recorded};
use super::replay::{History, example};
use super::table::{Row, What, rows};
use super::{Context, Rules, request_line};
use crate::args::PolicySuggestArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{AllowedRow, PolicyAnswer, SuggestDocument, SuggestedRule};

/// Each round lifts what stands in the way; rules that need more than this are for a person to write.
const MOST_ROUNDS: usize = 8;

/// Rules, changed so that they allow something more.
struct Draft {
    /// Every rule with its text, in order.
    rules: Vec<(String, String)>,
    suggested: Vec<SuggestedRule>,
}

/// Suggests a rule.
pub(crate) fn suggest(context: &Context<'_>, args: &PolicySuggestArgs) -> Result<Exit, CliError> {
    let rules = Rules::of(context, &args.rules)?;
    let policy = rules.policy()?.map_err(|error| CliError::Cannot(format!("{}: {error}", rules.place)))?;
    let engine = context.engine()?;
    let history = History::since(context, &engine, args.since)?;
    let denied = match &args.action {
        Some(named) => {
            let stored = engine.store().read(|reader| reader.find_action(named.as_str()))?;
            let id = stored.id.clone();
            let cannot = |why| CliError::Cannot(format!("{id} cannot be decided again: {why}"));
            recorded(context, &engine, stored)?.map_err(cannot)?
        }
        None => newest_denial(context, &engine, &rules, &history)?,
    };
    let document = suggested(&rules, &policy, &denied, &history, args)?;
    context.console.answer(&document, |paint| render::suggestion(&document, paint));
    Ok(Exit::answer(document.refused.is_none()))
}

fn newest_denial(
    context: &Context<'_>,
    engine: &engine::Engine,
    rules: &Rules,
    history: &History,
) -> Result<Recorded, CliError> {
    let gate = rules.gate();
    let denied = |request: &&Recorded| request.case.decide(&gate).answer == PolicyAnswer::Deny;
    let none = || {
        let place = &rules.place;
        CliError::Cannot(format!(
            "nothing on the record is denied by {place}: name an action with `--action`"
        ))
    };
    let newest = history.requests.iter().rev().find(denied).ok_or_else(none)?;
    let stored = engine.store().read(|reader| reader.find_action(newest.action.id.as_str()))?;
    recorded(context, engine, stored)?.map_err(|why| CliError::Cannot(why.to_owned()))
}

fn suggested(
    rules: &Rules,
    policy: &Policy,
    denied: &Recorded,
    history: &History,
    args: &PolicySuggestArgs,
) -> Result<SuggestDocument, CliError> {
    let decided = denied.case.decide(&rules.gate());
    let mut document = SuggestDocument {
        rules_of: rules.place.clone(),
        action: denied.action.id.clone(),
        request: request_line(&denied.action.request.tool),
        denied_by: decided.record.rules.clone(),
        refused: None,
        suggested: Vec::new(),
        decided: 0,
        also_allowed: Vec::new(),
        rows_allowed: Vec::new(),
        left_out: history.left_out.clone(),
    };
    if decided.answer != PolicyAnswer::Deny {
        document.refused =
            Some(format!("these rules do not deny it: they answer `{}`", decided.answer.word()));
        return Ok(document);
    }
    if !decided.record.person_may_allow {
        document.refused = Some("the rules that deny it say that no person may change this".to_owned());
        return Ok(document);
    }
    let Some(draft) = Draft::lifting(policy, &denied.case) else {
        document.refused =
            Some("no small change of these rules allows it, or a yes would still be missing: write the rules that it needs".to_owned());
        return Ok(document);
    };
    let (old, new) = (rules.gate(), gate::Gate::new(draft.policy()?));
    let more = |case: &Case| {
        case.decide(&old).answer != PolicyAnswer::Allow && case.decide(&new).answer == PolicyAnswer::Allow
    };
    let others = history.requests.iter().filter(|other| other.action.id != denied.action.id);
    let others: Vec<&Recorded> = others.collect();
    document.decided = others.len();
    document.also_allowed =
        others.into_iter().filter(|other| more(&other.case)).map(|other| example(other, &new)).collect();
    for table in &args.table {
        for row in rows(table)? {
            if let Some(case) = row.request()?
                && more(&case)
            {
                document.rows_allowed.push(AllowedRow { place: row.place, row: row.name });
            }
        }
    }
    document.suggested = draft.suggested;
    Ok(document)
}

impl Row {
    /// Returns the request of a row that has one.
    fn request(&self) -> Result<Option<Case>, CliError> {
        match &self.what {
            What::Question(_) => Ok(None),
            What::Request(asked) => {
                let case = asked.as_ref().clone().case(Scene::neutral());
                case.map(Some).map_err(|why| self.error(&why))
            }
        }
    }
}

impl Draft {
    /// Changes rules until they allow a case; nothing when that takes too much.
    fn lifting(policy: &Policy, case: &Case) -> Option<Self> {
        let rules = policy.cedar_rules().into_iter().map(|(id, rule)| Some((id, rule.to_cedar()?)));
        let rules = rules.collect::<Option<_>>()?;
        let mut draft = Self { rules, suggested: Vec::new() };
        for _ in 0..MOST_ROUNDS {
            let gate = gate::Gate::new(draft.policy().ok()?);
            let decided = case.decide(&gate);
            if decided.answer == PolicyAnswer::Allow {
                return (!draft.suggested.is_empty()).then_some(draft);
            }
            let refused: Vec<Traced> = case.trace(&gate).into_iter().filter(is_refused).collect();
            if !draft.lift(refused) {
                return None;
            }
        }
        None
    }

    /// Lifts each refusal, and tells whether that changed anything.
    fn lift(&mut self, refused: Vec<Traced>) -> bool {
        let before = self.suggested.len();
        for Traced { question, layers, .. } in refused {
            let Some(question) = question else { return false };
            for layer in layers.iter().filter(|layer| layer.whose == LayerOf::Organisation) {
                match layer.says {
                    LayerSays::Silent => self.permit(&question),
                    // What a yes or a smaller grant lifts is left to them.
                    LayerSays::Forbidden => {
                        let firm = layer.rules.iter().filter(|rule| rule.lifted_by.is_none());
                        firm.for_each(|rule| self.except(&rule.id, &question));
                    }
                    _ => {}
                }
            }
        }
        self.suggested.len() > before
    }

    fn permit(&mut self, question: &BareQuestion) {
        let BareQuestion { principal, action, resource, .. } = question;
        let number = self.suggested.len() + 1;
        let facts = facts(question);
        let when =
            if facts.is_empty() { String::new() } else { format!("\nwhen {{ {} }}", facts.join(" && ")) };
        let head = format!("principal == {principal}, action == {action}, resource == {resource}");
        let text =
            format!("@id(\"allow-{number}\")\n@reason(\"allowed-by-suggestion\")\npermit ({head}){when};");
        self.rules.push((format!("allow-{number}"), text.clone()));
        self.suggested.push(SuggestedRule { replaces: None, text });
    }

    fn except(&mut self, id: &str, question: &BareQuestion) {
        let BareQuestion { principal, action, resource, .. } = question;
        let Some((_, text)) = self.rules.iter_mut().find(|(rule, _)| rule == id) else { return };
        let head = [
            format!("principal == {principal}"),
            format!("action == {action}"),
            format!("resource == {resource}"),
        ];
        let all: Vec<String> = head.into_iter().chain(facts(question)).collect();
        let body = text.trim_end().trim_end_matches(';').trim_end();
        *text = format!("{body}\nunless {{ {} }};", all.join(" && "));
        self.suggested.retain(|rule| rule.replaces.as_deref() != Some(id));
        self.suggested.push(SuggestedRule { replaces: Some(id.to_owned()), text: text.clone() });
    }

    fn policy(&self) -> Result<Policy, CliError> {
        let text: Vec<&str> = self.rules.iter().map(|(_, text)| text.as_str()).collect();
        let wrong = |error: gate::GateError| {
            CliError::Cannot(format!("the suggestion is no policy: {}", escape(&error.to_string())))
        };
        Policy::parse(&text.join("\n\n")).map_err(wrong)
    }
}

fn is_refused(traced: &Traced) -> bool {
    traced
        .layers
        .iter()
        .any(|layer| matches!(layer.says, LayerSays::Forbidden | LayerSays::Silent | LayerSays::Failed))
}

/// Returns the facts that keep a suggestion to what was asked: the program that was named, the limit that was asked for, the
/// classes of the path.
fn facts(question: &BareQuestion) -> Vec<String> {
    let context = &question.context;
    // Texts of Cedar are written as those of Rust are.
    let text = |value: &serde_json::Value| Some(format!("{:?}", value.as_str()?));
    let program = text(&context["program"]["path"]).map(|path| format!("context.program.path == {path}"));
    let asked = context["asked"].as_i64().map(|asked| format!("context.asked <= {asked}"));
    let classes = context["classes"].as_array().map(|classes| {
        let classes: Vec<String> = classes.iter().filter_map(text).collect();
        format!("[{}].containsAll(context.classes)", classes.join(", "))
    });
    let empty = context["classes"].as_array().is_some_and(Vec::is_empty);
    let classes = if empty { Some("context.classes.isEmpty()".to_owned()) } else { classes };
    let forced = context["forced"].as_bool().map(|forced| format!("context.forced == {forced}"));
    let access = text(&context["access"]).map(|access| format!("context.access == {access}"));
    [program, asked, classes, forced, access].into_iter().flatten().collect()
}
