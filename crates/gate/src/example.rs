//! Examples: requests that stand on a rule, with the answer that the whole policy must give to them.
//!
//! They are read when somebody asks for them, not when a policy is loaded to decide: a run pays nothing for them.

use crate::error::{GateError, RulePlace};
use crate::policy::Policy;
use crate::rule::Rule;

/// The answer that an example expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It runs, perhaps with less than it asks for.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It does not run.
    Deny,
}

/// A request that stands on a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The rule that it stands on.
    pub rule: RulePlace,
    /// The id of that rule.
    pub rule_id: String,
    /// The answer that it must get.
    pub expected: Expected,
    /// Whether the rule must be among those that give the answer: a `permit` where it is allowed, a `forbid` where it is
    /// not. The others stand there as neighbours that the rule does not catch.
    pub rule_decides: bool,
    /// The request, as one line of the annotation.
    pub request: String,
}

impl Expected {
    /// Every answer there is.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns the annotation that expects it.
    pub(crate) fn annotation(self) -> &'static str {
        match self {
            Self::Allow => "allow_example",
            Self::Ask => "ask_example",
            Self::Deny => "deny_example",
        }
    }
}

impl Policy {
    /// Returns the examples of all rules, in the order of the text: one for each line of an annotation.
    ///
    /// # Errors
    /// When an annotation for examples holds none.
    pub fn examples(&self) -> Result<Vec<Example>, GateError> {
        let mut examples = Vec::new();
        for (rule, annotations) in self.annotated() {
            for expected in Expected::ALL {
                let Some((_, text)) = annotations.iter().find(|(key, _)| *key == expected.annotation())
                else {
                    continue;
                };
                let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                if lines.is_empty() {
                    let wrong = format!(
                        "has an `@{}` without a request: write one, or remove it",
                        expected.annotation()
                    );
                    return Err(GateError::Rule { place: rule.place(), wrong });
                }
                examples.extend(lines.into_iter().map(|line| example(rule, expected, line)));
            }
        }
        Ok(examples)
    }
}

fn example(rule: &Rule, expected: Expected, line: &str) -> Example {
    let rule_decides = rule.is_permit() == (expected == Expected::Allow);
    Example { rule: rule.place(), rule_id: rule.id.clone(), expected, rule_decides, request: line.to_owned() }
}
