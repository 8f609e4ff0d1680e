//! Rules: what the annotations of a Cedar policy say to us.

use std::collections::BTreeMap;

use cedar_policy::{Effect, Policy as CedarPolicy};
use model::Quorum;
use model::quorum::is_role;

use crate::error::{GateError, RulePlace};
use crate::obligation::Obligation;

/// What we know of one rule beside its condition, which only Cedar reads.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// The name in the record.
    pub(crate) id: String,
    /// Where it stands in the text; of several rules that refuse, the first gives the reason.
    pub(crate) number: usize,
    /// The stable code.
    pub(crate) reason: String,
    /// What to do instead; empty on a permit.
    pub(crate) advice: String,
    /// Whether a person could allow it; `false` on a permit.
    pub(crate) person_may_allow: bool,
    /// What would lift it.
    pub(crate) remedy: Option<Remedy>,
    /// Whether it permits or forbids.
    pub(crate) effect: Effect,
}

/// What lifts a forbid. The gate does it and asks the whole policy again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A smaller grant.
    Obligation(Obligation),
    /// The yes of these people.
    Approval(Quorum),
}

/// The annotations that the gate understands. Any other is an error, so that a slip of the pen is found.
const KNOWN: [&str; 9] = [
    "id",
    "reason",
    "advice",
    "person_may_allow",
    "obligation",
    "approval",
    "allow_example",
    "ask_example",
    "deny_example",
];

impl Rule {
    /// Reads the annotations of the rule that stands at `number`.
    ///
    /// # Errors
    /// When one is missing, unknown, or has a value that nobody understands.
    pub(crate) fn read(number: usize, policy: &CedarPolicy) -> Result<Self, GateError> {
        let annotations = Annotations::of(number, policy);
        annotations.refuse_unknown()?;
        let effect = policy.effect();
        let id = annotations.code("id")?;
        let reason = annotations.code("reason")?;
        let (advice, person_may_allow, remedy) = match effect {
            Effect::Permit => {
                annotations.refuse_on_permit()?;
                (String::new(), false, None)
            }
            Effect::Forbid => (annotations.advice()?, annotations.person_may_allow()?, annotations.remedy()?),
        };
        Ok(Self { id, number, reason, advice, person_may_allow, remedy, effect })
    }

    /// Tells whether it permits.
    pub(crate) fn is_permit(&self) -> bool {
        self.effect == Effect::Permit
    }

    /// Returns where this rule stands.
    pub(crate) fn place(&self) -> RulePlace {
        RulePlace { number: self.number, id: Some(self.id.clone()) }
    }
}

/// The annotations of one rule, by their keys. Asking Cedar for one key makes its parser anew each time.
struct Annotations<'a> {
    number: usize,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Annotations<'a> {
    fn of(number: usize, policy: &'a CedarPolicy) -> Self {
        Self { number, values: policy.annotations().collect() }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.values.get(key).copied()
    }

    fn error(&self, wrong: impl Into<String>) -> GateError {
        let id = self.get("id").map(str::to_owned);
        GateError::Rule { place: RulePlace { number: self.number, id }, wrong: wrong.into() }
    }

    fn refuse_unknown(&self) -> Result<(), GateError> {
        match self.values.keys().find(|key| !KNOWN.contains(key)) {
            None => Ok(()),
            Some(key) => Err(self.error(format!(
                "has an annotation `@{key}` that is not known: use `@{}`",
                KNOWN.join("`, `@")
            ))),
        }
    }

    fn refuse_on_permit(&self) -> Result<(), GateError> {
        let only_on_forbid = ["advice", "person_may_allow", "obligation", "approval"];
        match only_on_forbid.into_iter().find(|key| self.values.contains_key(*key)) {
            None => Ok(()),
            Some(key) => Err(self.error(format!(
                "is a `permit` and has `@{key}`, which means something on a `forbid` only: remove it"
            ))),
        }
    }

    fn required(&self, key: &str) -> Result<&'a str, GateError> {
        let missing = || self.error(format!("has no `@{key}`: add one"));
        self.get(key).filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    /// Reads a name in kebab case.
    fn code(&self, key: &str) -> Result<String, GateError> {
        let value = self.required(key)?;
        if is_role(value) {
            return Ok(value.to_owned());
        }
        Err(self.error(format!(
            "has an `@{key}` that is no code: use small letters, digits and `-`, for example `no-network`"
        )))
    }

    fn advice(&self) -> Result<String, GateError> {
        let advice = self.required("advice")?;
        if advice.chars().any(model::text::is_hidden) {
            return Err(self.error("has control or invisible characters in its `@advice`: remove them"));
        }
        Ok(advice.to_owned())
    }

    fn person_may_allow(&self) -> Result<bool, GateError> {
        match self.required("person_may_allow")? {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.error("has a `@person_may_allow` that is neither `true` nor `false`")),
        }
    }

    fn remedy(&self) -> Result<Option<Remedy>, GateError> {
        match (self.get("obligation"), self.get("approval")) {
            (None, None) => Ok(None),
            (Some(name), None) => self.obligation(name).map(|known| Some(Remedy::Obligation(known))),
            (None, Some(_)) => self.quorum().map(|quorum| Some(Remedy::Approval(quorum))),
            (Some(_), Some(_)) => {
                Err(self.error("has `@obligation` and `@approval`: split it into two rules"))
            }
        }
    }

    fn quorum(&self) -> Result<Quorum, GateError> {
        let wrong = |error| self.error(format!("has an `@approval` that cannot be used: {error}"));
        self.required("approval")?.parse().map_err(wrong)
    }

    fn obligation(&self, name: &str) -> Result<Obligation, GateError> {
        Obligation::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            let known = Obligation::ALL.map(Obligation::name).join("`, `");
            self.error(format!("has an `@obligation` that is not known: use `{known}`"))
        })
    }
}
