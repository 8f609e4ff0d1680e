//! Bare questions: what Cedar is asked, written down, so that it can be asked again.

use cedar_policy::{Authorizer, Context, Entities, EntityUid, Policy as CedarPolicy, PolicySet, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::GateError;
use crate::policy::{Policy, Ruling};
use crate::rule::Rule;

/// One question in the words of the schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BareQuestion {
    /// Who asks, for example `Agent::"m"`.
    pub principal: String,
    /// For what, for example `Action::"apply"`.
    pub action: String,
    /// About what.
    pub resource: String,
    /// The facts.
    pub context: Value,
    /// What is known of things that the question names, in Cedar's form.
    #[serde(default)]
    pub entities: Value,
}

/// What a policy says to a bare question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareAnswer {
    /// Whether it is permitted.
    pub allowed: bool,
    /// Whether rules could not be evaluated.
    pub failed: bool,
    /// The rules that say so, by their ids.
    pub rules: Vec<String>,
}

impl BareQuestion {
    /// Writes a question down.
    pub fn of(request: &Request, entities: &Entities) -> Option<Self> {
        Some(Self {
            principal: request.principal()?.to_string(),
            action: request.action()?.to_string(),
            resource: request.resource()?.to_string(),
            context: request.context()?.to_json_value().ok()?,
            entities: told(entities.to_json_value().ok()?),
        })
    }

    /// Puts it, held against the schema.
    fn put(&self) -> Result<(Request, Entities), String> {
        let schema = crate::policy::schema().map_err(|error| error.to_string())?;
        let uid = |text: &str| text.parse::<EntityUid>().map_err(|error| error.to_string());
        let (principal, action, resource) = (uid(&self.principal)?, uid(&self.action)?, uid(&self.resource)?);
        let context = Context::from_json_value(self.context.clone(), Some((&schema, &action)));
        let context = context.map_err(|error| error.to_string())?;
        let request = Request::new(principal, action, resource, context, Some(&schema));
        let entities = match &self.entities {
            Value::Null => schema.action_entities(),
            entities => Entities::from_json_value(entities.clone(), Some(&schema)),
        };
        Ok((request.map_err(|error| error.to_string())?, entities.map_err(|error| error.to_string())?))
    }
}

/// Leaves out what the schema says anyway, and things of which nothing is said.
fn told(entities: Value) -> Value {
    let says = |entity: &Value| {
        let empty = |key: &str| entity[key].as_object().is_none_or(|part| part.is_empty());
        entity["uid"]["type"] != "Action"
            && !(empty("attrs") && entity["parents"].as_array().is_none_or(Vec::is_empty))
    };
    match entities {
        Value::Array(all) => Value::Array(all.into_iter().filter(says).collect()),
        other => other,
    }
}

impl Policy {
    /// Answers a bare question as the gate would, if this were all of the policy.
    ///
    /// # Errors
    /// When it does not fit the schema.
    pub fn answer(&self, question: &BareQuestion) -> Result<BareAnswer, String> {
        let (request, entities) = question.put()?;
        let names = |rules: Vec<&Rule>| rules.into_iter().map(|rule| rule.id.clone()).collect();
        let (allowed, failed, rules) = match self.ask(&Authorizer::new(), &request, &entities) {
            Ruling::Permitted(rules) => (true, false, names(rules)),
            Ruling::Forbidden(rules) => (false, false, names(rules)),
            Ruling::Silent => (false, false, Vec::new()),
            Ruling::Failed(rules) => (false, true, names(rules)),
        };
        Ok(BareAnswer { allowed, failed, rules })
    }

    /// Returns the rules as Cedar has them, for somebody who proves something about them.
    pub fn cedar(&self) -> &PolicySet {
        self.set()
    }

    /// Returns each rule with its id, in the order of the text.
    pub fn cedar_rules(&self) -> Vec<(String, CedarPolicy)> {
        self.with_rules().into_iter().map(|(rule, policy)| (rule.id.clone(), policy.clone())).collect()
    }

    /// Tells whether `other` decides nothing where `own` matches whatever it matches; both are ids of rules.
    pub fn would_idle(&self, own: &str, other: &str) -> bool {
        let rules = self.with_rules();
        let find = |id: &str| rules.iter().map(|(rule, _)| *rule).find(|rule| rule.id == id);
        find(own).zip(find(other)).is_some_and(|(own, other)| own.idles(other).is_some())
    }
}

/// Returns the schema as Cedar has it.
///
/// # Errors
/// Never for a product that passed its tests.
pub fn cedar_schema() -> Result<cedar_policy::Schema, GateError> {
    crate::policy::schema()
}
