//! Traces: every question that a request comes to, and what each layer of policy says to it.
//!
//! Guarantees: the questions are those that deciding puts, and they are put in the same words. A trace decides nothing: it
//! is about the request as it was asked, before anything is made smaller and without a yes that is still missing.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::Policy as CedarPolicy;
use model::{Action, Timestamp};
use serde_json::Value;

use crate::apply::Apply;
use crate::bare::BareQuestion;
use crate::decision::Subject;
use crate::facts::{Approval, Facts, Remembered};
use crate::gate::{Gate, Layer, LayerOf, given};
use crate::policy::{Policy, Ruling};
use crate::question::{Question, questions_of};
use crate::rule::{Remedy, Rule};
use crate::said::{Quorums, Said};
use crate::words::{About, put};

/// One question, and what came of it.
#[derive(Debug, Clone)]
pub struct Traced {
    /// What was asked, to follow after "may this".
    pub what: String,
    /// The question as Cedar gets it; nothing when it could not be put.
    pub question: Option<BareQuestion>,
    /// What each layer says, in their order.
    pub layers: Vec<LayerAnswer>,
    /// The denial that is remembered for it, which answers instead of the layers.
    pub remembered: Option<Remembered>,
}

/// What one layer of policy says to one question.
#[derive(Debug, Clone)]
pub struct LayerAnswer {
    /// Whose rules they are.
    pub whose: LayerOf,
    /// What it says.
    pub says: LayerSays,
    /// The rules that say so, in the order of the text.
    pub rules: Vec<TracedRule>,
}

/// What a layer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerSays {
    /// A rule permits it, and none forbids it.
    Permitted,
    /// A rule forbids it.
    Forbidden,
    /// No rule says anything, which is a no.
    Silent,
    /// No rule forbids it, and this layer has none that permit.
    NothingAgainst,
    /// A rule could not be evaluated, which is a no.
    Failed,
}

/// A rule that takes part in an answer.
#[derive(Debug, Clone)]
pub struct TracedRule {
    /// Its id.
    pub id: String,
    /// The stable code.
    pub reason: String,
    /// What to do instead; empty on a permit.
    pub advice: String,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
    /// What would lift it.
    pub lifted_by: Option<LiftedBy>,
    /// The facts that its conditions name, with their values here.
    pub facts: BTreeMap<String, Value>,
}

/// What lifts a forbid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiftedBy {
    /// The yes of these people, in the letters of `@approval`.
    Role(String),
    /// A smaller grant, by the name of the obligation: the gate makes it so and asks again.
    Smaller(&'static str),
}

impl Gate {
    /// Traces a request of a person or an agent.
    pub fn trace(&self, action: &Action, facts: &Facts) -> Vec<Traced> {
        let given = given(facts, action);
        let about = About::Action { action, grant: action.grant() };
        let questions = questions_of(action, action.grant(), facts, None);
        let traced = questions.iter().map(|question| {
            let effect = question.effect().filter(|_| given.is_empty());
            let before =
                effect.and_then(|effect| facts.remembered.iter().find(|before| effect.does(&before.effect)));
            Traced { remembered: before.cloned(), ..self.trace_one(question, about, &given) }
        });
        traced.collect()
    }

    /// Traces changes for the host. `owners` are the accounts whose task it is.
    pub fn trace_apply(
        &self,
        apply: &Apply,
        approvals: &[Approval],
        owners: &BTreeSet<u32>,
        now: Timestamp,
    ) -> Vec<Traced> {
        let given = Said { approvals, owners, subject: apply.digest(), now }.quorums();
        vec![self.trace_one(&Question::Apply(apply), About::Apply(apply), &given)]
    }

    fn trace_one(&self, question: &Question<'_>, about: About<'_>, given: &Quorums) -> Traced {
        let what = question.to_string();
        let Ok((request, entities)) = put(question, about, given) else {
            return Traced { what, question: None, layers: Vec::new(), remembered: None };
        };
        let bare = BareQuestion::of(&request, &entities);
        let context = bare.as_ref().map_or(Value::Null, |bare| bare.context.clone());
        let answer = |layer: &Layer| {
            let (says, rules) = match layer.policy.ask(self.authorizer(), &request, &entities) {
                Ruling::Permitted(rules) => (LayerSays::Permitted, rules),
                Ruling::Forbidden(rules) => (LayerSays::Forbidden, rules),
                Ruling::Silent if layer.whose.must_permit() => (LayerSays::Silent, Vec::new()),
                Ruling::Silent => (LayerSays::NothingAgainst, Vec::new()),
                Ruling::Failed(rules) => (LayerSays::Failed, rules),
            };
            let rules = rules.into_iter().map(|rule| traced(rule, &layer.policy, &context)).collect();
            LayerAnswer { whose: layer.whose, says, rules }
        };
        let layers = self.open_layers().iter().map(answer).collect();
        Traced { what, question: bare, layers, remembered: None }
    }
}

impl Policy {
    /// Returns the line of the text in which each rule starts, by the ids of the rules. `text` is what was parsed.
    pub fn lines(&self, text: &str) -> BTreeMap<String, usize> {
        let line = |policy: &CedarPolicy| {
            let offset = policy.as_ref().loc()?.span.offset();
            Some(text.get(..offset)?.matches('\n').count() + 1)
        };
        let rules = self.with_rules().into_iter();
        rules.filter_map(|(rule, policy)| Some((rule.id.clone(), line(policy)?))).collect()
    }
}

fn traced(rule: &Rule, policy: &Policy, context: &Value) -> TracedRule {
    let lifted_by = rule.remedy.as_ref().map(|remedy| match remedy {
        Remedy::Approval(quorum) => LiftedBy::Role(quorum.to_string()),
        Remedy::Obligation(obligation) => LiftedBy::Smaller(obligation.name()),
    });
    TracedRule {
        id: rule.id.clone(),
        reason: rule.reason.clone(),
        advice: rule.advice.clone(),
        person_may_allow: rule.person_may_allow,
        lifted_by,
        facts: facts_of(rule, policy, context),
    }
}

/// Returns the facts that the conditions of a rule name.
fn facts_of(rule: &Rule, policy: &Policy, context: &Value) -> BTreeMap<String, Value> {
    let rules = policy.with_rules();
    let cedar = rules.iter().find(|(other, _)| other.number == rule.number).map(|(_, cedar)| *cedar);
    let mut paths = Vec::new();
    if let Some(json) = cedar.and_then(|cedar| cedar.to_json().ok()) {
        named_facts(&json["conditions"], &mut paths);
    }
    let value = |path: String| {
        let value = path.split('.').try_fold(context, |value, key| value.get(key))?;
        Some((path, value.clone()))
    };
    paths.into_iter().filter_map(value).collect()
}

/// Collects every path below `context` that an expression names.
fn named_facts(expression: &Value, into: &mut Vec<String>) {
    if let Some(path) = path_below_context(expression) {
        into.push(path);
        return;
    }
    match expression {
        Value::Array(parts) => parts.iter().for_each(|part| named_facts(part, into)),
        Value::Object(parts) => parts.values().for_each(|part| named_facts(part, into)),
        _ => {}
    }
}

fn path_below_context(expression: &Value) -> Option<String> {
    let attribute = expression.get(".")?;
    let name = attribute["attr"].as_str()?;
    if attribute["left"]["Var"] == "context" {
        return Some(name.to_owned());
    }
    Some(format!("{}.{name}", path_below_context(&attribute["left"])?))
}
