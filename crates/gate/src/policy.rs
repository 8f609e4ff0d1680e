//! Policies: one text of Cedar rules, checked when it is loaded, and asked one question at a time.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::Arc;

use cedar_policy::{
    AuthorizationError, Authorizer, Decision as CedarDecision, Entities, Policy as CedarPolicy, PolicyId,
    PolicySet, Request, Schema, ValidationMode, Validator,
};
use model::{Canonical, Digest};

use crate::bundles::{BUNDLES, DEFAULT_BUNDLE};
use crate::error::GateError;
use crate::heads::{Concerned, Heads};
use crate::rule::Rule;

/// The schema: the questions that every policy answers.
pub const SCHEMA: &str = include_str!("../policies/fumehood.cedarschema");

/// Every rule costs time at every action, and a repository's come from somebody else.
const MOST_OF_REPOSITORY: usize = 200;

/// A policy that can be used: it was read in full, and every rule has an id and a reason.
#[derive(Debug, Clone)]
pub struct Policy {
    set: PolicySet,
    heads: Arc<Heads>,
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
        let policy = Self::checked_before(text)?;
        policy.validate()?;
        Ok(policy)
    }

    /// Reads the rules that a repository brings along, and checks them as strictly. They only forbid, so that whatever
    /// stands in a repository makes nothing possible that was not.
    ///
    /// # Errors
    /// As for [`Policy::parse`], when one of them permits, and when there are more of them than are asked at every action.
    pub fn of_repository(text: &str) -> Result<Self, GateError> {
        let policy = Self::of_repository_checked_before(text)?;
        policy.validate()?;
        Ok(policy)
    }

    /// Reads rules of a repository that this build has checked before: it leaves out only what asks the schema, as
    /// [`Policy::checked_before`].
    ///
    /// # Errors
    /// As for [`Policy::of_repository`].
    pub fn of_repository_checked_before(text: &str) -> Result<Self, GateError> {
        let policy = Self::read(text)?;
        if policy.rules.len() > MOST_OF_REPOSITORY {
            return Err(GateError::TooMany { most: MOST_OF_REPOSITORY, found: policy.rules.len() });
        }
        if let Some(permit) = policy.in_order(policy.rules.keys()).into_iter().find(|rule| rule.is_permit()) {
            let wrong = "is a `permit`, and a repository's own rules can only forbid: remove it".to_owned();
            return Err(GateError::Rule { place: permit.place(), wrong });
        }
        Ok(policy)
    }

    /// Reads a policy that this build has checked before (see [`Policy::checked_as`]): it leaves out what asks the schema,
    /// which takes longer than all decisions of a run.
    ///
    /// # Errors
    /// When it is empty or no Cedar, or a rule lacks an annotation or has one that is not known.
    pub fn checked_before(text: &str) -> Result<Self, GateError> {
        let policy = Self::read(text)?;
        match policy.rules.values().any(Rule::is_permit) {
            true => Ok(policy),
            false => Err(GateError::PermitsNothing),
        }
    }

    /// Returns by what it is remembered that this build has checked this policy.
    pub fn checked_as(&self) -> Digest {
        let build = env!("CARGO_PKG_VERSION");
        Canonical::new("fumehood checked 1").field(build.as_bytes()).field(self.digest.as_bytes()).digest()
    }

    /// Returns the policy that ships with the product.
    ///
    /// It is not checked against the schema again at every start, which would cost more than all decisions of
    /// the run; a test does that for the very text that is compiled in.
    ///
    /// # Errors
    /// Never for a product that passed its tests.
    pub fn default_bundle() -> Result<Self, GateError> {
        Self::checked_before(DEFAULT_BUNDLE)
    }

    /// Returns a bundle that ships with the product; nothing when none has this name. Like the default one it is not
    /// checked again.
    pub fn bundle(name: &str) -> Option<Result<Self, GateError>> {
        BUNDLES.iter().find(|(known, _)| *known == name).map(|(_, text)| Self::checked_before(text))
    }

    /// Returns the digest over the schema and the text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the ids of the rules, in the order of the text.
    pub fn rule_ids(&self) -> Vec<&str> {
        self.in_order(self.rules.keys()).into_iter().map(|rule| rule.id.as_str()).collect()
    }

    pub(crate) fn set(&self) -> &PolicySet {
        &self.set
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
        Ok(Self { set, heads: Arc::default(), rules, digest })
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

    /// Tells whether its rules refuse nothing of what a question with this principal and this action can be about.
    pub(crate) fn leaves_free(&self, request: &Request, must_permit: bool) -> bool {
        self.concerned(request).leaves_free(must_permit)
    }

    /// Returns the rules that a question can concern.
    pub(crate) fn concerned(&self, request: &Request) -> Arc<Concerned> {
        self.heads.concerned(&self.set, request)
    }

    /// Asks one question.
    pub(crate) fn ask(&self, authorizer: &Authorizer, request: &Request, entities: &Entities) -> Ruling<'_> {
        self.ask_those(&self.concerned(request), authorizer, request, entities)
    }

    /// Asks the rules that a question concerns.
    pub(crate) fn ask_those(
        &self,
        concerned: &Concerned,
        authorizer: &Authorizer,
        request: &Request,
        entities: &Entities,
    ) -> Ruling<'_> {
        let response = authorizer.is_authorized(request, &concerned.set, entities);
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
    if rules.is_empty() { Err(GateError::Empty) } else { Ok(rules) }
}
