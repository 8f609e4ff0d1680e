//! Claims: what a policy never allows, each written as one `forbid` that it must imply.

use std::collections::BTreeSet;
use std::str::FromStr;

use cedar_policy::{Effect, Policy as CedarPolicy, PolicySet};
use gate::{BareAnswer, BareQuestion, Policy};

use crate::symbolic::{Prover, Unproved};

const SHIPPED: &str = include_str!("../data/invariants.cedar");

/// Something that a policy never allows.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The same as a sentence.
    pub says: String,
    /// The approval point or the capability layer that it is about.
    pub about: String,
    /// The bundles that promise it, `shipped` for all of them; empty when every policy is held to it.
    pub bundles: BTreeSet<String>,
    rule: CedarPolicy,
}

/// Says why claims cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// They are no Cedar.
    #[error("the claims cannot be read: {0}")]
    Unreadable(String),
    /// One of them is not what a claim is.
    #[error("claim {number} {wrong}")]
    Wrong {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        wrong: String,
    },
}

/// What was found out about one claim.
#[derive(Debug, Clone)]
pub struct Proof {
    /// How many kinds of request it is about: who asks, for what, about what.
    pub kinds: usize,
    /// What was found out.
    pub verdict: Verdict,
}

/// What was found out.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// There is no request for which it does not hold.
    Proved,
    /// There is one, and the authorizer answers it like this.
    Refuted(Box<(BareQuestion, BareAnswer)>),
    /// Nobody knows.
    NotProved(Unproved),
}

/// Returns the claims that ship with the product.
///
/// # Errors
/// Never for a product that passed its tests.
pub fn shipped_claims() -> Result<Vec<Claim>, ClaimError> {
    claims_of(SHIPPED)
}

/// Reads claims: Cedar rules, each a `forbid` with `@id` and `@says`, in the schema of the policies.
///
/// # Errors
/// When they are no Cedar, or one of them is no claim.
pub fn claims_of(text: &str) -> Result<Vec<Claim>, ClaimError> {
    let set = PolicySet::from_str(text).map_err(|error| ClaimError::Unreadable(error.to_string()))?;
    (1..).zip(set.policies()).map(|(number, rule)| Claim::read(number, rule)).collect()
}

impl Claim {
    fn read(number: usize, rule: &CedarPolicy) -> Result<Self, ClaimError> {
        let wrong = |wrong: &str| ClaimError::Wrong { number, wrong: wrong.to_owned() };
        let annotation = |key: &str| rule.annotation(key).map(str::to_owned).filter(|text| !text.is_empty());
        if rule.effect() != Effect::Forbid {
            return Err(wrong("is a `permit`: write as a `forbid` what is never allowed"));
        }
        Ok(Self {
            id: annotation("id").ok_or_else(|| wrong("has no `@id`: add one"))?,
            says: annotation("says").ok_or_else(|| wrong("has no `@says`: say it in a sentence"))?,
            about: annotation("about").unwrap_or_else(|| "your own".to_owned()),
            bundles: annotation("bundles")
                .iter()
                .flat_map(|text| text.split(' '))
                .map(str::to_owned)
                .collect(),
            rule: rule.clone(),
        })
    }

    /// Tells whether rules are held to it: those of the bundle of this name, or of somebody's own.
    pub fn is_promised_by(&self, bundle: Option<&str>) -> bool {
        let named = |name: &str| self.bundles.contains(name) || self.bundles.contains("shipped");
        self.bundles.is_empty() || bundle.is_some_and(named)
    }

    /// Returns the rule that says what is never allowed.
    pub fn rule(&self) -> &CedarPolicy {
        &self.rule
    }

    /// Returns the claim as a policy: everything, but not this.
    fn as_policy(&self) -> Result<PolicySet, Unproved> {
        let uncompiled = |error: String| Unproved::Uncompiled(error);
        let all = "permit (principal, action, resource);";
        let mut set = PolicySet::from_str(all).map_err(|error| uncompiled(error.to_string()))?;
        let rule = self.rule.new_id(cedar_policy::PolicyId::new("claim"));
        set.add(rule).map_err(|error| uncompiled(error.to_string()))?;
        Ok(set)
    }
}

impl Prover<'_> {
    /// Proves or refutes that a policy holds to a claim.
    pub fn prove(&mut self, policy: &Policy, claim: &Claim) -> Proof {
        let kinds: Vec<_> = claim.rule.get_valid_request_envs(&self.schema).collect();
        let mut proof = Proof { kinds: kinds.len(), verdict: Verdict::Proved };
        if kinds.is_empty() {
            let nothing = "no request fits it, so it claims nothing".to_owned();
            proof.verdict = Verdict::NotProved(Unproved::Uncompiled(nothing));
        }
        for kind in &kinds {
            match self.counterexample(policy, claim, kind) {
                Ok(None) => {}
                Ok(Some(found)) => return Proof { verdict: Verdict::Refuted(Box::new(found)), ..proof },
                // A later one may still refute it, which says more.
                Err(why) => proof.verdict = Verdict::NotProved(why),
            }
        }
        proof
    }

    fn counterexample(
        &mut self,
        policy: &Policy,
        claim: &Claim,
        kind: &cedar_policy::RequestEnv,
    ) -> Result<Option<(BareQuestion, BareAnswer)>, Unproved> {
        let rules = self.compile(policy.cedar(), kind)?;
        let allowed = self.compile(&claim.as_policy()?, kind)?;
        let Some(question) = self.beyond(&rules, &allowed)? else { return Ok(None) };
        let answer = policy.answer(&question).map_err(|_| Unproved::Unreplayed)?;
        if answer.allowed { Ok(Some((question, answer))) } else { Err(Unproved::Unreplayed) }
    }

    /// Proves that no rule can fail on any request. A rule that fails denies, so this is about saying no without need.
    pub fn never_errors(&mut self, policy: &Policy) -> Proof {
        let mut proof = Proof { kinds: self.kinds().len(), verdict: Verdict::Proved };
        for (_, rule) in policy.cedar_rules() {
            // Where its head cannot match, nothing of it is evaluated.
            for kind in rule.get_valid_request_envs(&self.schema).collect::<Vec<_>>() {
                let compiled = self.compile_one(&rule, &kind);
                match compiled.and_then(|compiled| self.failing(&compiled)) {
                    Ok(None) => {}
                    Ok(Some(question)) => match policy.answer(&question) {
                        Ok(answer) if answer.failed => {
                            return Proof {
                                verdict: Verdict::Refuted(Box::new((question, answer))),
                                ..proof
                            };
                        }
                        _ => proof.verdict = Verdict::NotProved(Unproved::Unreplayed),
                    },
                    Err(why) => proof.verdict = Verdict::NotProved(why),
                }
            }
        }
        proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_claims_cover_every_layer_and_have_ids_of_their_own() {
        let claims = shipped_claims().expect("they can be read");
        let ids: BTreeSet<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(ids.len(), claims.len());
        for about in ["approval", "workspace", "command", "external", "release"] {
            assert!(claims.iter().any(|claim| claim.about == about), "{about}");
        }
    }

    #[test]
    fn what_is_no_claim_is_refused() {
        for (text, why) in [
            ("permit (principal, action, resource);", "is a `permit`"),
            ("forbid (principal, action, resource);", "has no `@id`"),
            (r#"@id("x") forbid (principal, action, resource);"#, "has no `@says`"),
            ("forbid", "cannot be read"),
        ] {
            let error = claims_of(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
