//! Why a policy cannot be used. Each of these means: deny everything.

use std::fmt::{self, Write as _};

use cedar_policy::ParseErrors;
use model::text::escape;

/// Says what is wrong with a policy. Until it is repaired, everything is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no policy.
    #[error(
        "there is no policy, so everything is denied: name one in the settings, or leave them at the default"
    )]
    Missing,
    /// There is one, and it cannot be had.
    #[error("{0}; until it can be used, everything is denied")]
    Unusable(String),
    /// The text holds no rule.
    #[error("the policy holds no rule, so it would deny everything: remove it, or write rules into it")]
    Empty,
    /// The text holds rules, but none that permits.
    #[error(
        "the policy holds no `permit`, so it would deny everything: to tighten one that ships with the program, take \
         its text from `fumehood policy show` and add `forbid` rules to it"
    )]
    PermitsNothing,
    /// A repository brings more rules than are asked at every action.
    #[error("there are {found} rules, and a repository may have {most}: say the same with fewer")]
    TooMany {
        /// How many there may be.
        most: usize,
        /// How many there are.
        found: usize,
    },
    /// A repository's own rules cannot be used.
    #[error(
        "the rules of the repository (`{file}` of commit {commit}) cannot be used, so everything is denied: {source}"
    )]
    Repository {
        /// The commit that has them.
        commit: String,
        /// The file that they stand in.
        file: &'static str,
        /// What is wrong with them.
        source: Box<GateError>,
    },
    /// The text is no Cedar.
    #[error("the policy cannot be read: {0}")]
    Unreadable(String),
    /// A rule is Cedar, but does not fit the questions that are asked.
    #[error("rule {place} does not fit the schema: {wrong}")]
    Invalid {
        /// Which rule.
        place: RulePlace,
        /// What the schema does not allow.
        wrong: String,
    },
    /// The schema that is compiled in cannot be read, so nothing can be held against it.
    #[error("the schema of this build cannot be read: {0}; report this as a fault of Fumehood")]
    Schema(String),
    /// A rule lacks something, or says something that nobody understands.
    #[error("rule {place} {wrong}")]
    Rule {
        /// Which rule.
        place: RulePlace,
        /// What is wrong with it, and what to do.
        wrong: String,
    },
}

impl GateError {
    /// Says where the text stops being Cedar.
    pub(crate) fn unreadable(text: &str, errors: &ParseErrors) -> Self {
        use miette::Diagnostic as _;
        let first = errors.iter().next();
        let mut message = first.map_or_else(|| errors.to_string(), ToString::to_string);
        let offset = first.and_then(|error| error.labels()?.next()).map(|label| label.offset());
        if let Some(before) = offset.and_then(|offset| text.get(..offset)) {
            let _ = write!(message, ", in line {}", before.matches('\n').count() + 1);
        }
        Self::Unreadable(escape(&message).into_owned())
    }

    /// Says what the schema does not allow, without the name that Cedar gave the rule.
    pub(crate) fn invalid(place: RulePlace, message: &str) -> Self {
        let wrong = match message.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
            Some((_, wrong)) => wrong,
            None => message,
        };
        Self::Invalid { place, wrong: escape(wrong).into_owned() }
    }
}

/// Where a rule stands: its number in the text, from 1, and its id when it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlace {
    /// The number, from 1.
    pub number: usize,
    /// The id.
    pub id: Option<String>,
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{} (`{}`)", self.number, escape(id)),
            None => write!(f, "{}", self.number),
        }
    }
}
