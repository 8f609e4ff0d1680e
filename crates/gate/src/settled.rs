//! Settled: what came out of asking, and how it is told.

use std::collections::BTreeSet;

use model::event::{DecisionRecord, Verdict};
use model::{Digest, Effect, Grant};

use crate::decision::{ApprovalRequest, Authorization, Decision, Denial, Subject};
use crate::facts::{Halted, Remembered};
use crate::gate::LayerOf;
use crate::rule::Rule;
use crate::said::Quorums;

/// What to do where a task is frozen.
const FROZEN: &str = "wait for a person: what was denied was tried in too many other ways, so nothing runs in this task until \
                      somebody resumes it with `fumehood task resume`";

/// A rule, and the layer that it is in.
#[derive(Clone, Copy)]
pub(crate) struct Cited<'g> {
    /// The layer.
    pub(crate) layer: LayerOf,
    /// The rule.
    pub(crate) rule: &'g Rule,
}

/// One question that was not permitted.
pub(crate) struct Refusal<'g> {
    /// What was asked, to follow after "may this".
    pub(crate) what: String,
    /// The effect that was asked about, when it was one.
    pub(crate) effect: Option<Effect>,
    /// Why not.
    pub(crate) cause: Cause<'g>,
}

/// Why a question was not permitted.
pub(crate) enum Cause<'g> {
    /// These rules forbid it.
    Forbidden(Vec<Cited<'g>>),
    /// No rule of a layer says anything.
    Silent(LayerOf),
    /// These rules could not be evaluated.
    Failed(Vec<Cited<'g>>),
    /// It was denied before, in this task.
    Remembered(Box<Remembered>),
    /// What was denied before was tried in too many ways: nothing runs in the task.
    Frozen(&'g Remembered),
    /// A person stopped it, or its task is not open.
    Halted(&'g Halted),
    /// The question could not be put.
    Unaskable,
    /// There is no policy that can be used.
    Closed(&'g str),
    /// This principal cannot ask in this way.
    WrongPrincipal,
    /// The facts are those of another profile than the one that the action names.
    OtherProfile,
}

/// What came out.
pub(crate) struct Settled {
    verdict: Verdict,
    what: String,
    missing: Quorums,
    denied: Vec<Effect>,
    rules: Vec<String>,
    reason: String,
    advice: String,
    person_may_allow: bool,
}

impl Cited<'_> {
    fn name(&self) -> String {
        format!("{}{}", self.layer.prefix(), self.rule.id)
    }
}

impl<'g> Refusal<'g> {
    /// Tells whether every rule that refuses says what would lift it.
    pub(crate) fn can_be_lifted(&self) -> bool {
        match &self.cause {
            Cause::Forbidden(rules) => rules.iter().all(|cited| cited.rule.remedy.is_some()),
            _ => false,
        }
    }

    /// Returns the effect with the answer that it gets, when nothing lifts the refusal.
    pub(crate) fn as_remembered(&self) -> Option<Remembered> {
        if self.can_be_lifted() {
            return None;
        }
        let (reason, advice) = self.told();
        let (rules, person_may_allow) = (self.rules(), self.person_may_allow());
        Some(Remembered { effect: self.effect.clone()?, reason, rules, advice, person_may_allow })
    }

    /// Returns the rules that forbid, each with what was asked.
    pub(crate) fn forbids(&self) -> impl Iterator<Item = (&str, Cited<'g>)> {
        let rules = match &self.cause {
            Cause::Forbidden(rules) => rules.as_slice(),
            _ => &[],
        };
        rules.iter().map(|cited| (self.what.as_str(), *cited))
    }

    /// Returns the rules to name: those that nothing lifts, or all when each could be lifted and it did not help.
    fn cited(&self) -> Vec<Cited<'g>> {
        match &self.cause {
            Cause::Failed(rules) => rules.clone(),
            Cause::Forbidden(rules) if self.can_be_lifted() => rules.clone(),
            Cause::Forbidden(rules) => {
                rules.iter().filter(|cited| cited.rule.remedy.is_none()).copied().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the code of the reason, and what to do instead.
    fn told(&self) -> (String, String) {
        let (reason, advice) = match &self.cause {
            Cause::Forbidden(_) => match self.cited().first() {
                Some(Cited { rule, .. }) => (rule.reason.as_str(), rule.advice.as_str()),
                None => ("no-rule-permits", "do without it"),
            },
            Cause::Silent(LayerOf::Organisation | LayerOf::Repository) => (
                "no-rule-permits",
                "do without it, or ask whoever keeps the policy for a rule that permits it",
            ),
            Cause::Silent(LayerOf::Task) => (
                "no-rule-permits",
                "do without it, or ask a person for a task that was taken in for more: nothing raises this one's",
            ),
            Cause::Failed(_) => {
                ("policy-error", "tell whoever keeps the policy that this rule cannot be evaluated")
            }
            Cause::Remembered(before) => (before.reason.as_str(), before.advice.as_str()),
            Cause::Frozen(before) => (before.reason.as_str(), FROZEN),
            Cause::Halted(halted) => (halted.reason.as_str(), halted.advice.as_str()),
            Cause::Unaskable => ("question-unaskable", "report this as a fault of Fumehood: nothing was run"),
            Cause::Closed(why) => ("no-usable-policy", *why),
            Cause::WrongPrincipal => {
                ("wrong-principal", "the engine asks for its own helpers, and only the engine does")
            }
            Cause::OtherProfile => {
                ("facts-do-not-fit", "report this as a fault of Fumehood: the facts are of another profile")
            }
        };
        (reason.to_owned(), advice.to_owned())
    }

    /// Returns the names of the rules that decided.
    fn rules(&self) -> Vec<String> {
        match &self.cause {
            Cause::Remembered(before) => before.rules.clone(),
            Cause::Frozen(before) => before.rules.clone(),
            _ => names(&self.cited()),
        }
    }

    fn person_may_allow(&self) -> bool {
        match &self.cause {
            Cause::Forbidden(rules) => rules.iter().all(|cited| cited.rule.person_may_allow),
            Cause::Remembered(before) => before.person_may_allow,
            Cause::Silent(_) | Cause::Failed(_) | Cause::Closed(_) | Cause::Frozen(_) => true,
            Cause::Halted(_) => true,
            Cause::Unaskable | Cause::WrongPrincipal | Cause::OtherProfile => false,
        }
    }
}

impl Settled {
    /// It is permitted: as asked, with less, or when the missing people say yes.
    pub(crate) fn yes(
        permits: &[Cited<'_>],
        narrowed_by: &[(String, Cited<'_>)],
        approved_by: &[(String, Cited<'_>)],
        missing: Quorums,
    ) -> Self {
        let verdict = match (missing.is_empty(), narrowed_by.is_empty()) {
            (false, _) => Verdict::RequireApproval,
            (true, false) => Verdict::Narrow,
            (true, true) => Verdict::Allow,
        };
        let lifted: Vec<&(String, Cited<'_>)> = approved_by.iter().chain(narrowed_by).collect();
        let first = lifted.first().map(|(what, cited)| (what.clone(), *cited));
        // A yes that is still missing decides alone; the rules that permit are named once it is there.
        let permitting = if missing.is_empty() { permits } else { &[] };
        let cited = lifted.iter().map(|(_, cited)| cited).chain(permitting);
        let rule = first.as_ref().map(|(_, cited)| cited.rule).or(permits.first().map(|cited| cited.rule));
        Self {
            verdict,
            missing,
            denied: Vec::new(),
            rules: names(cited),
            reason: rule.map(|rule| rule.reason.clone()).unwrap_or_default(),
            advice: rule.map(|rule| rule.advice.clone()).unwrap_or_default(),
            person_may_allow: !lifted.is_empty()
                && lifted.iter().all(|(_, cited)| cited.rule.person_may_allow),
            what: first.map(|(what, _)| what).unwrap_or_default(),
        }
    }

    /// A yes to a grant that the ceiling of the task made smaller is one to less than was asked.
    pub(crate) fn capped(self, capped: bool) -> Self {
        match self.verdict {
            Verdict::Allow if capped => Self {
                verdict: Verdict::Narrow,
                reason: "task-ceiling".to_owned(),
                advice: "the task was opened with a ceiling, and nothing raises that".to_owned(),
                ..self
            },
            _ => self,
        }
    }

    /// A yes becomes one to a trial, which these rules permit; what is refused, or needs a yes of more people, is as it
    /// was.
    pub(crate) fn for_trial(self, tries: &[Cited<'_>]) -> Self {
        let verdict = match self.verdict {
            Verdict::Allow | Verdict::Narrow => Verdict::Narrow,
            other => return Self { verdict: other, ..self },
        };
        let reason = tries.first().map(|cited| cited.rule.reason.clone()).unwrap_or_default();
        Self { verdict, rules: names(tries), reason, advice: String::new(), ..self }
    }

    /// It is refused. Of several refusals the first that nothing lifts is told; all of those name their rules.
    pub(crate) fn no(refusals: &[Refusal<'_>]) -> Self {
        let firm: Vec<&Refusal<'_>> = refusals.iter().filter(|refusal| !refusal.can_be_lifted()).collect();
        let telling = if firm.is_empty() { refusals.iter().collect() } else { firm };
        let (reason, advice) = telling.first().map(|first| first.told()).unwrap_or_default();
        let mut seen = BTreeSet::new();
        let rules = telling.iter().flat_map(|refusal| refusal.rules());
        let rules = rules.filter(|name| seen.insert(name.clone())).collect();
        let denied = telling.iter().filter(|refusal| matches!(refusal.cause, Cause::Forbidden(_)));
        Self {
            verdict: Verdict::Deny,
            what: telling.first().map(|first| first.what.clone()).unwrap_or_default(),
            missing: BTreeSet::new(),
            denied: denied.filter_map(|refusal| refusal.effect.clone()).collect(),
            rules,
            reason,
            advice,
            person_may_allow: telling.iter().all(|refusal| refusal.person_may_allow()),
        }
    }

    /// Makes the decision. `grant` is what the record names where it is a yes.
    pub(crate) fn into_decision<S: Subject>(
        self,
        policy: Digest,
        subject: S,
        grant: Option<Grant>,
    ) -> Decision<S> {
        let yes = matches!(self.verdict, Verdict::Allow | Verdict::Narrow);
        let record = DecisionRecord {
            verdict: self.verdict,
            rules: self.rules,
            reason: self.reason,
            advice: self.advice,
            person_may_allow: self.person_may_allow,
            grant: grant.filter(|_| yes),
            policy,
        };
        let (digest, what) = (subject.digest(), self.what);
        match self.verdict {
            Verdict::Allow => Decision::Allow(Authorization::new(subject, record)),
            Verdict::Narrow => Decision::Narrow(Authorization::new(subject, record)),
            Verdict::RequireApproval => Decision::RequireApproval(ApprovalRequest {
                subject: digest,
                what,
                quorums: self.missing,
                record,
            }),
            Verdict::Deny => Decision::Deny(Denial { subject: digest, what, effects: self.denied, record }),
        }
    }
}

/// Returns the names of rules, each once, in this order.
fn names<'a, 'g: 'a>(cited: impl IntoIterator<Item = &'a Cited<'g>>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    cited.into_iter().map(Cited::name).filter(|name| seen.insert(name.clone())).collect()
}
