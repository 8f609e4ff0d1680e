//! `policy explain`: every question that a request comes to, and what each rule says to it.

use std::collections::BTreeMap;

use gate::{BareQuestion, Gate, LayerAnswer, LayerOf, LayerSays, LiftedBy, Traced, TracedRule};
use model::text::escape;

use super::asked::{Case, Decided, owners};
use super::recorded::recorded;
use super::{Context, Rules, case, document};
use crate::args::PolicyExplainArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    ExplainDocument, LayerPart, LayerWord, PolicyAnswer, QuestionPart, RecordedPart, RulePart,
};

/// Explains what policy answers to a request, or to one that is on the record.
pub(crate) fn explain(context: &Context<'_>, args: &PolicyExplainArgs) -> Result<Exit, CliError> {
    let rules = Rules::of(context, &args.rules)?;
    let (case, recorded) = match &args.action {
        Some(named) => of_record(context, named.as_str())?,
        None => (case(context, &args.request())?, None),
    };
    let document = explained(&rules, &case, recorded)?;
    context.console.answer(&document, |paint| render::explanation(&document, paint));
    Ok(Exit::answer(document.decision.answer == PolicyAnswer::Allow))
}

fn of_record(context: &Context<'_>, named: &str) -> Result<(Case, Option<RecordedPart>), CliError> {
    let engine = context.engine()?;
    let stored = engine.store().read(|reader| reader.find_action(named))?;
    let id = stored.id.clone();
    let found = recorded(context, &engine, stored)?.map_err(|why| {
        CliError::Cannot(format!(
            "{id} cannot be decided again: {why}; `fumehood why {id}` says what was decided"
        ))
    })?;
    let part = RecordedPart {
        action: found.action.id,
        decision: found.decision.verdict,
        reason_code: found.decision.reason,
        matched_rules: found.decision.rules,
    };
    Ok((found.case, Some(part)))
}

fn explained(
    rules: &Rules,
    case: &Case,
    recorded: Option<RecordedPart>,
) -> Result<ExplainDocument, CliError> {
    let gate = rules.gate();
    let decided = case.decide(&gate);
    let lines = lines(rules);
    let traced = case.trace(&gate);
    let questions: Vec<QuestionPart> = traced.into_iter().map(|traced| question(traced, &lines)).collect();
    let lifts = lifts(&decided, &questions);
    Ok(ExplainDocument {
        rules_of: rules.place.clone(),
        decision: document(case, &decided),
        questions,
        lifts,
        recorded,
    })
}

/// Where the rules of one layer stand in their text.
struct Lines {
    of: LayerOf,
    rules: BTreeMap<String, usize>,
}

fn lines(rules: &Rules) -> Lines {
    let found = rules.policy().ok().and_then(Result::ok).zip(rules.text().ok());
    let found = found.map(|(policy, text)| policy.lines(text));
    let of = if rules.under.is_some() { LayerOf::Repository } else { LayerOf::Organisation };
    Lines { of, rules: found.unwrap_or_default() }
}

impl Case {
    /// Asks every question that it comes to.
    pub(super) fn trace(&self, gate: &Gate) -> Vec<Traced> {
        match self {
            Self::Action(case) => gate.trace(&case.action, &case.facts),
            Self::Apply(case) => {
                let apply = case.apply();
                let (approvals, now) = case.approvals_of(&apply);
                gate.trace_apply(&apply, &approvals, &owners(), now)
            }
        }
    }
}

fn question(traced: Traced, lines: &Lines) -> QuestionPart {
    let (action, principal, resource) = match traced.question {
        Some(BareQuestion { action, principal, resource, .. }) => (action, principal, resource),
        None => Default::default(),
    };
    QuestionPart {
        what: traced.what,
        action,
        principal,
        resource,
        layers: traced.layers.into_iter().map(|layer| layer_part(layer, lines)).collect(),
    }
}

fn layer_part(layer: LayerAnswer, lines: &Lines) -> LayerPart {
    let says = match layer.says {
        LayerSays::Permitted => LayerWord::Permitted,
        LayerSays::Forbidden => LayerWord::Forbidden,
        LayerSays::Silent => LayerWord::Silent,
        LayerSays::NothingAgainst => LayerWord::NothingAgainst,
        LayerSays::Failed => LayerWord::Failed,
    };
    let name = match layer.whose {
        LayerOf::Organisation => "organisation",
        LayerOf::Repository => "repository",
        LayerOf::Task => "task",
    };
    // Only one text is at hand.
    let of_text = |id: &String| lines.rules.get(id).copied().filter(|_| lines.of == layer.whose);
    let rules = layer.rules.iter().map(|rule| rule_part(rule, of_text(&rule.id)));
    LayerPart { layer: name.to_owned(), says, rules: rules.collect() }
}

fn rule_part(rule: &TracedRule, line: Option<usize>) -> RulePart {
    let (role, smaller) = match &rule.lifted_by {
        Some(LiftedBy::Role(role)) => (Some(role.clone()), None),
        Some(LiftedBy::Smaller(name)) => (None, Some((*name).to_owned())),
        None => (None, None),
    };
    RulePart {
        rule: rule.id.clone(),
        line,
        reason_code: rule.reason.clone(),
        advice: rule.advice.clone(),
        person_may_allow: rule.person_may_allow,
        lifted_by_role: role,
        lifted_by_smaller_grant: smaller,
        facts: rule.facts.clone(),
    }
}

/// Says what would change the answer, or already did.
fn lifts(decided: &Decided, questions: &[QuestionPart]) -> Vec<String> {
    let forbids = questions
        .iter()
        .flat_map(|question| &question.layers)
        .filter(|layer| layer.says == LayerWord::Forbidden);
    let forbids: Vec<&RulePart> = forbids.flat_map(|layer| &layer.rules).collect();
    let mut lifts = Vec::new();
    let mut say = |text: String| {
        if !lifts.contains(&text) {
            lifts.push(text);
        }
    };
    for rule in &forbids {
        let id = escape(&rule.rule);
        match (&rule.lifted_by_role, &rule.lifted_by_smaller_grant) {
            (Some(role), _) => say(format!("a yes of `{}` lifts `{id}`", escape(role))),
            (_, Some(smaller)) => {
                say(format!("a smaller grant ({smaller}) lifts `{id}`, and nobody is asked for that"))
            }
            (None, None) => say(format!("nothing that is asked beside lifts `{id}`: only other rules would")),
        }
    }
    if decided.answer == PolicyAnswer::Deny {
        say(match decided.record.person_may_allow {
            true => "whoever keeps the policy may change this".to_owned(),
            false => "no person may change this: the rules say so".to_owned(),
        });
    }
    lifts
}
