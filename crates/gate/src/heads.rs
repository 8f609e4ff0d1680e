//! Heads: which rules a question can concern at all.
//!
//! Guarantees: a rule that is left out could not have decided anything, because its head names another action or another
//! principal; Cedar holds its head against the question before it looks at its conditions, so it could not have failed
//! either. Every rule costs time at every question, and most of them are about something else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy::{
    ActionConstraint, Effect, EntityUid, Policy as CedarPolicy, PolicySet, PrincipalConstraint, Request,
    ResourceConstraint,
};

use crate::words::named_paths;

/// The name of the group of all effects in the schema. It is the only group.
const EFFECT: &str = "effect";

/// More kinds of question than a process puts; beyond them the memory begins anew.
const MOST: usize = 512;

/// Remembers which rules concern whom and which action.
#[derive(Debug, Default)]
pub(crate) struct Heads(Mutex<HashMap<(EntityUid, EntityUid), Arc<Concerned>>>);

/// The rules that a question can concern.
#[derive(Debug)]
pub(crate) struct Concerned {
    pub(crate) set: PolicySet,
    /// Whether one of them permits it whatever it is about and whatever else is so.
    permits_all: bool,
    has_forbid: bool,
    /// The paths that one of them names.
    paths: HashSet<String>,
}

impl Concerned {
    fn new(set: PolicySet) -> Self {
        let paths = named_paths(&set);
        let has_forbid = set.policies().any(|policy| policy.effect() == Effect::Forbid);
        let permits = |policy: &CedarPolicy| policy.effect() == Effect::Permit && is_for_everything(policy);
        let permits_all = set.policies().any(permits);
        Self { set, permits_all, has_forbid, paths }
    }

    /// Tells whether one of them names this path.
    pub(crate) fn names(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Tells whether they refuse nothing, whatever is asked about. Where a layer `must_permit`, saying nothing is refusing.
    pub(crate) fn leaves_free(&self, must_permit: bool) -> bool {
        !self.has_forbid && (self.permits_all || !must_permit)
    }
}

impl Heads {
    /// Returns the rules of a policy that the question can concern.
    pub(crate) fn concerned(&self, all: &PolicySet, request: &Request) -> Arc<Concerned> {
        let (Some(principal), Some(action)) = (request.principal(), request.action()) else {
            return Arc::new(Concerned {
                permits_all: false,
                has_forbid: true,
                ..Concerned::new(all.clone())
            });
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (principal.clone(), action.clone());
        if let Some(set) = known.get(&asked) {
            return set.clone();
        }
        let fits = |policy: &&CedarPolicy| {
            is_for(&policy.principal_constraint(), principal) && is_about(&policy.action_constraint(), action)
        };
        let fitting = PolicySet::from_policies(all.policies().filter(fits).cloned());
        let set = Arc::new(Concerned::new(fitting.unwrap_or_else(|_| all.clone())));
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(asked, set.clone());
        set
    }
}

/// Tells whether a permit asks for nothing beyond its principal and its action.
fn is_for_everything(policy: &CedarPolicy) -> bool {
    let is_plain =
        !matches!(policy.principal_constraint(), PrincipalConstraint::In(_) | PrincipalConstraint::IsIn(..));
    let conditions =
        || policy.to_json().ok().and_then(|json| Some(json.get("conditions")?.as_array()?.len()));
    is_plain && policy.resource_constraint() == ResourceConstraint::Any && conditions() == Some(0)
}

/// Tells whether a head can be for a principal. Who is in a group is not known here.
fn is_for(head: &PrincipalConstraint, principal: &EntityUid) -> bool {
    match head {
        PrincipalConstraint::Any | PrincipalConstraint::In(_) => true,
        PrincipalConstraint::Eq(named) => named == principal,
        PrincipalConstraint::Is(kind) | PrincipalConstraint::IsIn(kind, _) => kind == principal.type_name(),
    }
}

/// Tells whether a head can be about an action.
fn is_about(head: &ActionConstraint, action: &EntityUid) -> bool {
    match head {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(named) => named == action,
        ActionConstraint::In(named) => {
            named.iter().any(|named| named == action || named.id().unescaped() == EFFECT)
        }
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy::{Authorizer, Context, Decision, Entities, Entity, Schema};

    use super::*;
    use crate::bundles::BUNDLES;
    use crate::policy::SCHEMA;

    /// Rules with every form of head.
    const HEADS: &str = r#"
        @id("a") permit (principal, action, resource);
        @id("b") forbid (principal == Agent::"x", action == Action::"run", resource);
        @id("c") forbid (principal is User, action in [Action::"run", Action::"read"], resource);
        @id("d") forbid (principal, action in Action::"effect", resource) when { resource.name == "x" };
        @id("e") forbid (principal is Agent, action in [Action::"effect", Action::"try"], resource);
        @id("f") permit (principal in Group::"g", action == Action::"connect", resource);
        @id("g") forbid (principal is Agent in Group::"g", action, resource);
    "#;

    fn uid(text: &str) -> EntityUid {
        text.parse().expect("an id")
    }

    /// Returns a question, with what Cedar has to know of who is in which group.
    fn question(principal: &str, action: &EntityUid, resource: &str) -> (Request, Entities) {
        let effect = Entity::with_uid(uid(r#"Action::"effect""#));
        let is_effect = !["effect", "run", "read", "try", "apply"].contains(&action.id().unescaped());
        let groups = is_effect.then(|| effect.uid()).into_iter().collect();
        let member = Entity::new(action.clone(), [].into(), groups).expect("an entity");
        let group = Entity::with_uid(uid(r#"Group::"g""#));
        let who = Entity::new(uid(principal), [].into(), [group.uid()].into()).expect("an entity");
        let request = Request::new(uid(principal), action.clone(), uid(resource), Context::empty(), None);
        let effect = (*action != effect.uid()).then_some(effect);
        let entities = Entities::from_entities(effect.into_iter().chain([member, group, who]), None);
        (request.expect("a question"), entities.expect("entities"))
    }

    #[test]
    fn what_a_rule_may_refuse_is_not_free() {
        let heads = Heads::default();
        let free = |text: &str, action: &str| {
            let set: PolicySet = text.parse().expect("rules");
            let (request, _) = question(r#"Agent::"x""#, &uid(action), r#"Workspace::"w""#);
            heads.0.lock().expect("is ours").clear();
            heads.concerned(&set, &request).leaves_free(true)
        };
        let all = "@id(\"a\") permit (principal, action, resource);";
        let write = r#"Action::"write-path""#;
        assert!(free(all, write));
        for less in [
            r#"permit (principal, action, resource) when { context.x };"#,
            r#"permit (principal, action, resource == Workspace::"w");"#,
            r#"permit (principal in Group::"g", action, resource);"#,
            r#"permit (principal is User, action, resource);"#,
        ] {
            assert!(!free(less, write), "{less}");
        }
        let forbid = format!(
            r#"{all} @id("b") forbid (principal, action == Action::"write-path", resource) when {{ context.x }};"#
        );
        assert!(!free(&forbid, write) && free(&forbid, r#"Action::"run""#));
    }

    #[test]
    fn what_is_left_out_changes_no_answer() {
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).expect("can be read");
        let actions: Vec<EntityUid> = schema.actions().cloned().collect();
        let authorizer = Authorizer::new();
        let texts = BUNDLES.iter().map(|(_, text)| *text).chain([HEADS]);
        for all in texts.map(|text| text.parse::<PolicySet>().expect("rules")) {
            let heads = Heads::default();
            let mut left_out = 0;
            for principal in [r#"User::"a""#, r#"Agent::"x""#, r#"Agent::"y""#, r#"Engine::"engine""#] {
                for action in &actions {
                    let (request, entities) = question(principal, action, r#"Workspace::"w""#);
                    let concerned = heads.concerned(&all, &request);
                    left_out += all.policies().count() - concerned.set.policies().count();
                    let [whole, part] =
                        [&all, &concerned.set].map(|set| authorizer.is_authorized(&request, set, &entities));
                    assert_eq!(whole, part, "{principal} {action}");
                    assert!(
                        !concerned.leaves_free(true) || whole.decision() == Decision::Allow,
                        "{principal} {action}"
                    );
                }
            }
            assert!(left_out > 0);
        }
    }
}
