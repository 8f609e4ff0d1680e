//! Dead rules: those that can never decide anything.
//!
//! Guarantees: only what is certain without a solver is named here. A rule whose head or conditions can never hold is
//! already refused when the policy loads; what is left are rules that others cover in full, told by their heads
//! and by conditions that stand there word for word. What two different conditions mean is for a solver (`prove`).

use std::collections::BTreeSet;

use cedar_policy::{EntityUid, Policy as CedarPolicy, Schema};
use serde_json::Value;

use crate::error::{GateError, RulePlace};
use crate::policy::{Policy, schema};
use crate::rule::Rule;

/// A rule that decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRule {
    /// Where it stands.
    pub place: RulePlace,
    /// Why it decides nothing, and what to do.
    pub why: String,
}

/// What a rule is about, and on which conditions.
struct Shape<'p> {
    rule: &'p Rule,
    principal: Value,
    actions: BTreeSet<String>,
    resource: Value,
    conditions: Vec<Value>,
}

impl Policy {
    /// Returns the rules that can never decide anything because another one covers them.
    ///
    /// # Errors
    /// When the schema of this build cannot be read.
    pub fn dead_rules(&self) -> Result<Vec<DeadRule>, GateError> {
        let schema = schema()?;
        let shapes: Vec<Shape<'_>> = self
            .with_rules()
            .into_iter()
            .filter_map(|(rule, policy)| Shape::of(rule, policy, &schema))
            .collect();
        let dead = |shape: &Shape<'_>| {
            let why = shapes.iter().find_map(|other| other.makes_idle(shape))?;
            Some(DeadRule { place: shape.rule.place(), why })
        };
        Ok(shapes.iter().filter_map(dead).collect())
    }
}

impl<'p> Shape<'p> {
    fn of(rule: &'p Rule, policy: &CedarPolicy, schema: &Schema) -> Option<Self> {
        let json = policy.to_json().ok()?;
        let mut conditions = Vec::new();
        for condition in json["conditions"].as_array().into_iter().flatten() {
            take_apart(condition["kind"] == "unless", &condition["body"], &mut conditions);
        }
        Some(Self {
            rule,
            principal: json["principal"].clone(),
            actions: actions(&json["action"], schema),
            resource: json["resource"].clone(),
            conditions,
        })
    }

    /// Says why `other` decides nothing beside this rule, when that is so.
    fn makes_idle(&self, other: &Self) -> Option<String> {
        // Of two that cover each other one decides.
        let twins = self.rule.is_permit() && self.rule.number > other.rule.number && other.covers(self);
        if twins || !self.covers(other) {
            return None;
        }
        self.rule.idles(other.rule)
    }

    /// Tells whether this rule surely matches whatever `other` matches.
    fn covers(&self, other: &Self) -> bool {
        head_covers(&self.principal, &other.principal)
            && other.actions.is_subset(&self.actions)
            && head_covers(&self.resource, &other.resource)
            && self.conditions.iter().all(|condition| other.conditions.contains(condition))
    }
}

impl Rule {
    /// Says why `other` decides nothing where this rule matches whatever it matches; nothing when it decides all the same.
    pub(crate) fn idles(&self, other: &Self) -> Option<String> {
        if self.number == other.number {
            return None;
        }
        let by = format!("rule {} (`{}`)", self.number, self.id);
        // The first of several that forbid tells its reason, and each of them can keep a person from changing it.
        let says_the_same = self.number < other.number
            && self.remedy == other.remedy
            && (other.person_may_allow || !self.person_may_allow);
        match (self.is_permit(), other.is_permit()) {
            (true, true) => {
                Some(format!("decides nothing: {by} permits all that it permits; remove one of them"))
            }
            (false, true) if self.remedy.is_none() => Some(format!(
                "decides nothing: {by} forbids all that it permits; remove it, or make that one narrower"
            )),
            // A yes or a smaller grant lifts nothing where another rule stays.
            (false, false) if self.remedy.is_none() && other.remedy.is_some() => Some(format!(
                "decides nothing: {by} forbids all that it forbids, and nothing lifts that one; remove it"
            )),
            (false, false) if says_the_same => Some(format!(
                "decides nothing: {by} forbids all that it forbids, and stands before it; remove one of them"
            )),
            _ => None,
        }
    }
}

/// Takes a condition apart where each part alone must hold.
fn take_apart(negated: bool, body: &Value, into: &mut Vec<Value>) {
    let both = if negated { &body["||"] } else { &body["&&"] };
    if both.is_object() {
        take_apart(negated, &both["left"], into);
        take_apart(negated, &both["right"], into);
    } else {
        into.push(serde_json::json!([negated, body]));
    }
}

/// Returns every action, not group, that the head of a rule names.
fn actions(head: &Value, schema: &Schema) -> BTreeSet<String> {
    let named: Option<Vec<&str>> = match head["op"].as_str() {
        Some("All") => None,
        Some("==") => Some(head["entity"]["id"].as_str().into_iter().collect()),
        _ => {
            let several = head["entities"].as_array().into_iter().flatten();
            Some(several.chain(head.get("entity")).filter_map(|entity| entity["id"].as_str()).collect())
        }
    };
    let groups: BTreeSet<&EntityUid> = schema.action_groups().collect();
    let entities = schema.action_entities().ok();
    let is_in = |action: &EntityUid, name: &str| {
        let ancestors = entities.as_ref().and_then(|entities| entities.ancestors(action));
        action.id().unescaped() == name
            || ancestors.into_iter().flatten().any(|above| above.id().unescaped() == name)
    };
    let wanted =
        |action: &EntityUid| named.as_ref().is_none_or(|names| names.iter().any(|name| is_in(action, name)));
    let leaves = schema.actions().filter(|action| !groups.contains(action) && wanted(action));
    leaves.map(|action| action.id().unescaped().to_owned()).collect()
}

/// Tells whether one head of principal or resource surely takes in another.
fn head_covers(wide: &Value, narrow: &Value) -> bool {
    let only_a_type = wide["op"] == "is" && wide.get("in").is_none();
    let kind = |head: &Value| match head["op"].as_str() {
        Some("is") => head["entity_type"].as_str().map(str::to_owned),
        Some("==") => head["entity"]["type"].as_str().map(str::to_owned),
        _ => None,
    };
    wide["op"] == "All"
        || wide == narrow
        || (only_a_type && kind(wide).is_some() && kind(wide) == kind(narrow))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = r#"@id("all") @reason("all") permit (principal, action, resource);"#;

    fn forbid(id: &str, lifted: &str, rest: &str) -> String {
        format!(
            r#"@id("{id}") @reason("no") @advice("do without") @person_may_allow("true") {lifted} forbid {rest};"#
        )
    }

    fn dead(rules: &[String]) -> Vec<String> {
        let policy = Policy::parse(&format!("{ALL}\n{}", rules.join("\n"))).expect("fits the schema");
        policy.dead_rules().expect("the schema is one").into_iter().filter_map(|dead| dead.place.id).collect()
    }

    #[test]
    fn a_rule_that_another_covers_is_dead() {
        let wide = forbid("wide", "", r#"(principal, action in Action::"effect", resource)"#);
        let narrow = forbid("narrow", "", r#"(principal is Agent, action == Action::"connect", resource)"#);
        assert_eq!(dead(&[wide.clone(), narrow.clone()]), ["narrow"]);
        assert_eq!(dead(&[narrow, wide]), [""; 0], "the first tells its reason");
        let permit = r#"@id("more") @reason("more") permit (principal, action == Action::"run", resource);"#;
        assert_eq!(dead(&[permit.to_owned()]), ["more"]);
    }

    #[test]
    fn a_yes_that_cannot_help_is_dead() {
        let never = forbid("never", "", r#"(principal, action == Action::"connect", resource)"#);
        let ask = forbid(
            "ask",
            r#"@approval("person")"#,
            r#"(principal is Agent, action == Action::"connect", resource) unless { context.approvals.contains("person") }"#,
        );
        assert_eq!(dead(&[ask.clone(), never.clone()]), ["ask"]);
        assert_eq!(dead(&[never, ask]), ["ask"]);
    }

    #[test]
    fn a_permit_that_is_always_forbidden_is_dead() {
        let permit =
            r#"@id("p") @reason("p") permit (principal is User, action == Action::"use-network", resource);"#;
        let no = forbid("no", "", r#"(principal, action == Action::"use-network", resource)"#);
        let look = r#"@id("l") @reason("l") permit (principal, action == Action::"read", resource);"#;
        let text = [permit, look, &no].join("\n");
        let policy = Policy::parse(&text).expect("fits the schema");
        let found = policy.dead_rules().expect("the schema is one");
        assert_eq!(found.iter().map(|dead| dead.place.to_string()).collect::<Vec<_>>(), ["1 (`p`)"]);
        assert!(found[0].why.contains("rule 3 (`no`) forbids all that it permits"), "{}", found[0].why);
    }

    #[test]
    fn a_condition_of_its_own_keeps_a_rule_alive() {
        let some = |id, condition: &str| {
            forbid(
                id,
                "",
                &format!(r#"(principal, action == Action::"write", resource) when {{ {condition} }}"#),
            )
        };
        let hooks = r#"context.classes.contains("hooks")"#;
        let narrow = format!(r#"{hooks} && context.request.profile == "strict""#);
        assert_eq!(dead(&[some("a", hooks), some("b", r#"context.classes.contains("tests")"#)]), [""; 0]);
        assert_eq!(dead(&[some("a", hooks), some("b", &narrow)]), ["b"]);
        assert_eq!(dead(&[some("a", &narrow), some("b", hooks)]), [""; 0]);
    }

    #[test]
    fn the_shipped_bundles_have_no_dead_rule() {
        for (name, text) in crate::BUNDLES {
            let policy = Policy::parse(text).expect("can be used");
            assert_eq!(policy.dead_rules().expect("the schema is one"), [], "{name}");
        }
    }
}
