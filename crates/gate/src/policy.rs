//! Policies: one text of Cedar rules, checked when it is loaded, and asked one question at a time.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use cedar_policy::{
    AuthorizationError, Authorizer, Decision as CedarDecision, Effect, Entities, Policy as CedarPolicy,
    PolicyId, PolicySet, Request, Schema, ValidationMode, Validator,
};
use model::{Canonical, Digest};

use crate::error::GateError;
use crate::rule::Rule;

/// The schema: the questions that every policy answers.
pub const SCHEMA: &str = include_str!("../policies/fumehood.cedarschema");

/// The text of the bundle that ships with the product.
pub const DEFAULT_BUNDLE: &str = include_str!("../policies/default.cedar");

/// What `cautious` adds to the default bundle.
const CAUTIOUS: &str = concat!(
    "// The bundle `cautious`: the rules of `default`, and at the end what it adds to them.\n\n",
    include_str!("../policies/default.cedar"),
    include_str!("../policies/cautious.cedar")
);

/// The bundles that ship with the product, by their names.
pub const BUNDLES: [(&str, &str); 2] = [("default", DEFAULT_BUNDLE), ("cautious", CAUTIOUS)];

/// A policy that can be used: it was read in full, and every rule has an id and a reason.
#[derive(Debug, Clone)]
pub struct Policy {
    set: PolicySet,
    rules: HashMap<PolicyId, Rule>,
    digest: Digest,
}

/// What one policy says to one question.
pub(crate) enum Ruling<'a> {
    /// These rules permit it, and none forbids it.
    Permitted(Vec<&'a Rule>),
    /// These rules forbid it, in the order of the text.
    Forbidden(Vec<&'a Rule>),
    /// No rule says anything.
    Silent,
    /// Rules could not be evaluated. Cedar leaves such a rule out, and it may be the one that forbids: so this is
    /// a no, whatever the others say.
    Failed(Vec<&'a Rule>),
}

impl Policy {
    /// Reads a policy and checks it strictly against the schema.
    ///
    /// # Errors
    /// When it is empty, no Cedar, does not fit the schema, or a rule lacks an annotation or has one that is
    /// not known. Then nothing may be permitted: see [`Gate::closed`](crate::Gate::closed).
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let policy = Self::read(text)?;
        policy.validate()?;
        Ok(policy)
    }

    /// Returns the policy that ships with the product.
    ///
    /// It is not checked against the schema again at every start, which would cost more than all decisions of
    /// the run; a test does that for the very text that is compiled in.
    ///
    /// # Errors
    /// Never for a product that passed its tests.
    pub fn default_bundle() -> Result<Self, GateError> {
        Self::read(DEFAULT_BUNDLE)
    }

    /// Returns a bundle that ships with the product; nothing when none has this name. Like the default one it is not
    /// checked again.
    pub fn bundle(name: &str) -> Option<Result<Self, GateError>> {
        BUNDLES.iter().find(|(known, _)| *known == name).map(|(_, text)| Self::read(text))
    }

    /// Returns the digest over the schema and the text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the ids of the rules, in the order of the text.
    pub fn rule_ids(&self) -> Vec<&str> {
        self.in_order(self.rules.keys()).into_iter().map(|rule| rule.id.as_str()).collect()
    }

    /// Returns every rule with its annotations, in the order of the text.
    pub(crate) fn annotated(&self) -> Vec<(&Rule, Vec<(&str, &str)>)> {
        self.with_rules().into_iter().map(|(rule, policy)| (rule, policy.annotations().collect())).collect()
    }

    /// Returns every rule with its Cedar form, in the order of the text.
    pub(crate) fn with_rules(&self) -> Vec<(&Rule, &CedarPolicy)> {
        let rules = self.set.policies().filter_map(|policy| Some((self.rules.get(policy.id())?, policy)));
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by_key(|(rule, _)| rule.number);
        rules
    }

    fn read(text: &str) -> Result<Self, GateError> {
        if text.trim().is_empty() {
            return Err(GateError::Empty);
        }
        let set = PolicySet::from_str(text).map_err(|errors| GateError::unreadable(text, &errors))?;
        let rules = read_rules(&set)?;
        let digest =
            Canonical::new("fumehood policy 1").field(SCHEMA.as_bytes()).field(text.as_bytes()).digest();
        Ok(Self { set, rules, digest })
    }

    fn validate(&self) -> Result<(), GateError> {
        let result = Validator::new(schema()?).validate(&self.set, ValidationMode::Strict);
        let wrong = |id: &PolicyId, message: String| GateError::invalid(self.rules[id].place(), &message);
        let errors = result.validation_errors().map(|error| wrong(error.policy_id(), error.to_string()));
        // A warning tells of a rule that can never matter, or of a text that misleads its reader.
        let warnings =
            result.validation_warnings().map(|warning| wrong(warning.policy_id(), warning.to_string()));
        errors.chain(warnings).next().map_or(Ok(()), Err)
    }

    /// Asks one question.
    pub(crate) fn ask(&self, authorizer: &Authorizer, request: &Request, entities: &Entities) -> Ruling<'_> {
        let response = authorizer.is_authorized(request, &self.set, entities);
        let diagnostics = response.diagnostics();
        let failed = self.in_order(
            diagnostics.errors().map(|AuthorizationError::PolicyEvaluationError(error)| error.policy_id()),
        );
        let deciding = self.in_order(diagnostics.reason());
        match response.decision() {
            _ if !failed.is_empty() => Ruling::Failed(failed),
            CedarDecision::Allow => Ruling::Permitted(deciding),
            CedarDecision::Deny if deciding.is_empty() => Ruling::Silent,
            CedarDecision::Deny => Ruling::Forbidden(deciding),
        }
    }

    fn in_order<'a>(&self, ids: impl Iterator<Item = &'a PolicyId>) -> Vec<&Rule> {
        let mut rules: Vec<&Rule> = ids.filter_map(|id| self.rules.get(id)).collect();
        rules.sort_by_key(|rule| rule.number);
        rules
    }
}

/// Reads the schema.
pub(crate) fn schema() -> Result<Schema, GateError> {
    let read = Schema::from_cedarschema_str(SCHEMA);
    read.map(|(schema, _)| schema).map_err(|error| GateError::Schema(error.to_string()))
}

fn read_rules(set: &PolicySet) -> Result<HashMap<PolicyId, Rule>, GateError> {
    if set.templates().next().is_some() {
        return Err(GateError::Unreadable(
            "it holds a template (`?principal` or `?resource`): write plain rules".into(),
        ));
    }
    let mut seen = BTreeMap::new();
    let mut rules = HashMap::new();
    for (policy, number) in set.policies().zip(1..) {
        let rule = Rule::read(number, policy)?;
        if let Some(earlier) = seen.insert(rule.id.clone(), number) {
            let wrong = format!("has the id of rule {earlier}: give it one of its own");
            return Err(GateError::Rule { place: rule.place(), wrong });
        }
        rules.insert(policy.id().clone(), rule);
    }
    match rules.values().any(|rule| rule.effect == Effect::Permit) {
        true => Ok(rules),
        false if rules.is_empty() => Err(GateError::Empty),
        false => Err(GateError::PermitsNothing),
    }
}
