//! Rules that decide nothing, told by what their conditions mean.

use gate::Policy;

use crate::symbolic::{Prover, Unproved};

/// A rule that decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// The id of the rule.
    pub rule: String,
    /// The id of the rule that covers it; none when it never matches.
    pub covered_by: Option<String>,
}

impl Prover<'_> {
    /// Returns the rules that never match, and those that another one covers so that they decide nothing.
    ///
    /// # Errors
    /// When the solver gives no answer.
    pub fn idle_rules(&mut self, policy: &Policy) -> Result<Vec<Idle>, Unproved> {
        let rules = policy.cedar_rules();
        let mut idle = Vec::new();
        for (id, rule) in &rules {
            let kinds: Vec<_> = rule.get_valid_request_envs(&self.schema).collect();
            let mut live = Vec::new();
            for kind in kinds {
                let compiled = self.compile_one(rule, &kind)?;
                if !self.never_matches(&compiled)? {
                    live.push((kind, compiled));
                }
            }
            if live.is_empty() {
                idle.push(Idle { rule: id.clone(), covered_by: None });
                continue;
            }
            for (other, cover) in rules.iter().filter(|(other, _)| policy.would_idle(other, id)) {
                let mut covered = true;
                for (kind, compiled) in &live {
                    let cover = self.compile_one(cover, kind)?;
                    if !self.matches_within(compiled, &cover)? {
                        covered = false;
                        break;
                    }
                }
                if covered {
                    idle.push(Idle { rule: id.clone(), covered_by: Some(other.clone()) });
                    break;
                }
            }
        }
        Ok(idle)
    }
}
