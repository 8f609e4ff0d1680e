//! The gate: asks every layer of policy every question, and makes one decision out of the answers.
//!
//! A refusal that a rule says how to lift (by a smaller grant, or somebody's yes) is lifted for a try, and the
//! whole policy is asked again about the result. So Cedar decides about exactly the grant that is given in the
//! end, and the rules about approvals live in the policy alone.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use cedar_policy::Authorizer;
use model::action::Principal;
use model::grant::{Network, WorkspaceAccess};
use model::intake::{Ceiling, WorkLevel};
use model::{Action, Canonical, Digest, Effect, Grant, Place, Timestamp, Tool};

use crate::apply::Apply;
use crate::decision::{ApprovalRequest, Decision, Granted, Subject};
use crate::error::GateError;
use crate::facts::{Approval, Facts, Halted, Remembered};
use crate::obligation::Obligation;
use crate::policy::{Policy, Ruling};
use crate::question::{Question, questions_of};
use crate::reading::Reading;
use crate::rule::Remedy;
use crate::said::{Quorums, Said, largest, with_covered};
use crate::settled::{Cause, Cited, Refusal, Settled};
use crate::words::{About, entities, put_request};

/// Each try makes the grant smaller or supposes another yes, so no policy can keep the gate busy for long; rules
/// that need more tries than this undo each other, and the refusal stands.
const MOST_TRIES: usize = 8;

/// Decides. Every layer of policy is asked; a layer can only take away.
pub struct Gate {
    layers: Layers,
    authorizer: Authorizer,
    digest: Digest,
}

enum Layers {
    Open(Vec<Layer>),
    /// There is no policy that can be used, for this reason.
    Closed(String),
}

#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) whose: LayerOf,
    pub(crate) policy: Arc<Policy>,
}

/// Whose rules a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerOf {
    /// The organisation's, or the operator's who stands for it. They say what is permitted.
    Organisation,
    /// The repository's own. They only forbid, so they are no layer that could permit.
    Repository,
    /// The task's, fixed when it was taken in. They must permit as well.
    Task,
}

impl LayerOf {
    /// Returns what stands before the ids of its rules in the record.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Organisation => "",
            Self::Repository => "repository/",
            Self::Task => "task/",
        }
    }

    /// Tells whether what none of its rules permits is refused.
    pub(crate) fn must_permit(self) -> bool {
        match self {
            Self::Organisation | Self::Task => true,
            Self::Repository => false,
        }
    }
}

/// Something to be decided.
trait Case {
    fn about(&self) -> About<'_>;
    fn questions(&self) -> Vec<Question<'_>>;
    /// Returns the answer that an effect got before.
    fn remembered(&self, effect: &Effect) -> Option<&Remembered>;
    /// Makes what is asked for smaller, and tells whether that changed anything.
    fn narrow(&mut self, obligation: Obligation) -> bool;
}

struct ActionCase<'a> {
    action: &'a Action,
    grant: Grant,
    facts: &'a Facts,
    service: Option<&'a str>,
}

impl Gate {
    /// Opens a gate with the organisation's policy.
    pub fn new(organisation: Policy) -> Self {
        Self::open(vec![Layer { whose: LayerOf::Organisation, policy: Arc::new(organisation) }])
    }

    /// Returns a gate that asks one more policy. A closed gate stays closed.
    #[must_use]
    pub fn tightened_by(&self, whose: LayerOf, policy: Arc<Policy>) -> Self {
        match &self.layers {
            Layers::Open(layers) => {
                Self::open(layers.iter().cloned().chain([Layer { whose, policy }]).collect())
            }
            Layers::Closed(why) => Self::shut(why.clone()),
        }
    }

    fn open(layers: Vec<Layer>) -> Self {
        let digest = digest_of(&layers);
        Self { layers: Layers::Open(layers), authorizer: Authorizer::new(), digest }
    }

    /// Makes a gate that denies everything, because there is no policy that can be used.
    pub fn closed(error: &GateError) -> Self {
        Self::shut(error.to_string())
    }

    fn shut(why: String) -> Self {
        Self { layers: Layers::Closed(why), authorizer: Authorizer::new(), digest: digest_of(&[]) }
    }

    /// Returns the digest over all layers of the policy.
    pub fn policy(&self) -> Digest {
        self.digest
    }

    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Returns the layers, none where there is no policy that can be used.
    pub(crate) fn open_layers(&self) -> &[Layer] {
        match &self.layers {
            Layers::Open(layers) => layers,
            Layers::Closed(_) => &[],
        }
    }

    /// Decides about an action of a person or an agent.
    pub fn decide(&self, action: Action, facts: &Facts) -> Decision {
        match action.request().principal {
            Principal::User(_) | Principal::Agent(_) => self.decide_action(action, facts, None),
            Principal::Engine => self.refuse(action, Cause::WrongPrincipal),
        }
    }

    /// Decides whether an action that waits for a person's yes may be tried before that, on a throwaway layer: what it
    /// does there is what the person is shown. It gets what a yes would give it, but nothing that reaches beyond its
    /// sandbox.
    pub fn decide_trial(&self, action: Action, facts: &Facts, request: &ApprovalRequest) -> Decision {
        if request.subject() != action.digest() {
            return self.refuse(action, Cause::Unaskable);
        }
        let given = given(facts, &action);
        let mut grant = within_the_walls(action.grant().clone());
        if let Some(ceiling) = &facts.ceiling {
            ceiling.narrow(&mut grant);
        }
        let mut case = ActionCase { action: &action, grant, facts, service: None };
        // Whether to try at all is decided without the yes that is still missing.
        let tries = match self.ask(&Question::Try, case.about(), &given) {
            Ok(rules) => rules,
            Err(cause) => {
                let refusal = Refusal { what: Question::Try.to_string(), effect: None, cause };
                return self.refuse_for(action, &refusal);
            }
        };
        let supposed = with_covered(given.union(request.quorums()).cloned());
        let settled = self.settle(&mut case, supposed).for_trial(&tries);
        let grant = case.grant;
        let granted = Granted { action, grant: grant.clone(), is_trial: true };
        settled.into_decision(self.digest, granted, Some(grant))
    }

    /// Decides about a helper of the engine's own, by the name of its service: class `internal`.
    pub fn decide_internal(&self, action: Action, service: &str, facts: &Facts) -> Decision {
        match action.request().principal {
            Principal::Engine => self.decide_action(action, facts, Some(service)),
            Principal::User(_) | Principal::Agent(_) => self.refuse(action, Cause::WrongPrincipal),
        }
    }

    /// Decides whether changes may be written to the host's directory. `owners` are the accounts whose task it is.
    pub fn decide_apply(
        &self,
        mut apply: Apply,
        approvals: &[Approval],
        owners: &BTreeSet<u32>,
        now: Timestamp,
    ) -> Decision<Apply> {
        let settled = match apply.principal() {
            Principal::User(_) | Principal::Agent(_) => {
                let given = Said { approvals, owners, subject: apply.digest(), now }.quorums();
                self.settle(&mut apply, given)
            }
            Principal::Engine => {
                let what = apply.to_string();
                Settled::no(&[Refusal { what, effect: None, cause: Cause::WrongPrincipal }])
            }
        };
        settled.into_decision(self.digest, apply, None)
    }

    /// Returns what policy refuses of the effects that an action was seen to have, each with its answer, as long as nothing
    /// lifts that: what a yes or a smaller grant would have lifted is none of it. `facts` are those of the decision, with the
    /// classes of what was changed.
    pub fn refused_of<'e>(
        &self,
        action: &Action,
        grant: &Grant,
        facts: &Facts,
        seen: impl IntoIterator<Item = &'e Effect>,
    ) -> Vec<Remembered> {
        let (about, given) = (About::Action { action, grant }, given(facts, action));
        let refused = |effect: &Effect| {
            let classes = effect.changes().and_then(|path| facts.classes.get(path));
            let question = Question::Effect { effect: Cow::Borrowed(effect), classes };
            if self.leaves_free(&question, about, &given) {
                return None;
            }
            let cause = self.ask(&question, about, &given).err()?;
            Refusal { what: String::new(), effect: Some(effect.clone()), cause }.as_remembered()
        };
        seen.into_iter().filter_map(refused).collect()
    }

    /// Tells whether policy refuses some changes of files or controls, whichever they are.
    pub fn refused_of_some_changes(&self, action: &Action, grant: &Grant, facts: &Facts) -> bool {
        let (about, given) = (About::Action { action, grant }, given(facts, action));
        let changes = [
            Effect::Write { place: Place::Anywhere },
            Effect::Delete { place: Place::Anywhere },
            Effect::ChangeControl { control: "*".to_owned() },
        ];
        changes.iter().any(|effect| {
            let question = Question::Effect { effect: Cow::Borrowed(effect), classes: None };
            !self.leaves_free(&question, about, &given)
        })
    }

    /// Tells whether every layer permits a question whatever it is about.
    fn leaves_free(&self, question: &Question<'_>, about: About<'_>, given: &Quorums) -> bool {
        let Layers::Open(layers) = &self.layers else { return false };
        let Ok(request) = put_request(question, about, given) else { return false };
        layers.iter().all(|layer| layer.policy.leaves_free(&request, layer.whose.must_permit()))
    }

    /// Decides whether somebody may read content that is kept beside the record.
    pub fn decide_reading(&self, mut reading: Reading) -> Decision<Reading> {
        let settled = match reading.principal() {
            Principal::User(_) | Principal::Agent(_) => self.settle(&mut reading, Quorums::new()),
            Principal::Engine => {
                let what = reading.to_string();
                Settled::no(&[Refusal { what, effect: None, cause: Cause::WrongPrincipal }])
            }
        };
        settled.into_decision(self.digest, reading, None)
    }

    fn decide_action(&self, action: Action, facts: &Facts, service: Option<&str>) -> Decision {
        if action.grant().profile.name != facts.profile.name {
            return self.refuse(action, Cause::OtherProfile);
        }
        if let Some(denied) = facts.frozen.as_ref().filter(|_| service.is_none()) {
            return self.refuse(action, Cause::Frozen(denied));
        }
        if let Some(halted) = facts.halted.as_ref().filter(|_| service.is_none()) {
            return self.refuse(action, Cause::Halted(halted));
        }
        let given = given(facts, &action);
        let (mut grant, ceiling) = (action.grant().clone(), facts.ceiling.as_ref());
        if let Some(ceiling) = ceiling.filter(|ceiling| is_above(ceiling, &action)) {
            return self.refuse(action, Cause::Halted(&above(ceiling)));
        }
        let capped = ceiling.is_some_and(|ceiling| ceiling.narrow(&mut grant));
        let mut case = ActionCase { action: &action, grant, facts, service };
        let settled = self.settle(&mut case, given).capped(capped);
        let grant = case.grant;
        settled.into_decision(
            self.digest,
            Granted { action, grant: grant.clone(), is_trial: false },
            Some(grant),
        )
    }

    fn refuse(&self, action: Action, cause: Cause<'_>) -> Decision {
        let what = format!("use the tool `{}` here", action.request().tool.name());
        self.refuse_for(action, &Refusal { what, effect: None, cause })
    }

    fn refuse_for(&self, action: Action, refusal: &Refusal<'_>) -> Decision {
        let grant = action.grant().clone();
        let granted = Granted { action, grant, is_trial: false };
        Settled::no(std::slice::from_ref(refusal)).into_decision(self.digest, granted, None)
    }

    /// Asks, lifts what can be lifted, and asks again, until the answer is clear.
    fn settle(&self, case: &mut impl Case, given: Quorums) -> Settled {
        let (mut narrowed_by, mut approved_by) = (Vec::new(), Vec::new());
        let mut supposed = given.clone();
        let mut refusals = Vec::new();
        for _ in 0..MOST_TRIES {
            let permits;
            (permits, refusals) = self.ask_all(case, &supposed);
            if refusals.is_empty() {
                let missing = largest(&supposed.difference(&given).cloned().collect());
                return Settled::yes(&permits, &narrowed_by, &approved_by, missing);
            }
            if refusals.iter().any(|refusal| !refusal.can_be_lifted()) {
                break;
            }
            // What a smaller grant lifts needs nobody's yes, so that comes first.
            if !narrow_all(case, &refusals, &mut narrowed_by)
                && !suppose_all(&mut supposed, &refusals, &mut approved_by)
            {
                break;
            }
        }
        Settled::no(&refusals)
    }

    /// Puts every question to every layer.
    fn ask_all<'g>(&'g self, case: &impl Case, given: &Quorums) -> (Vec<Cited<'g>>, Vec<Refusal<'g>>) {
        let (mut permits, mut refusals) = (Vec::new(), Vec::new());
        for question in case.questions() {
            let effect = question.effect();
            // A yes is to this very action, whatever was denied before.
            let before =
                effect.as_ref().filter(|_| given.is_empty()).and_then(|effect| case.remembered(effect));
            let answer = match before {
                Some(before) => Err(Cause::Remembered(Box::new(before.clone()))),
                None => self.ask(&question, case.about(), given),
            };
            match answer {
                Ok(rules) => permits.extend(rules),
                Err(cause) => refusals.push(Refusal { what: question.to_string(), effect, cause }),
            }
        }
        // Every question that is permitted is so by a rule: nothing was asked, and nothing means no.
        if permits.is_empty() && refusals.is_empty() {
            let what = "do nothing at all".to_owned();
            refusals.push(Refusal { what, effect: None, cause: Cause::Unaskable });
        }
        (permits, refusals)
    }

    fn ask(
        &self,
        question: &Question<'_>,
        about: About<'_>,
        given: &Quorums,
    ) -> Result<Vec<Cited<'_>>, Cause<'_>> {
        let layers = match &self.layers {
            Layers::Open(layers) => layers,
            Layers::Closed(why) => return Err(Cause::Closed(why)),
        };
        let request = put_request(question, about, given).map_err(|_| Cause::Unaskable)?;
        let concerned: Vec<_> = layers.iter().map(|layer| layer.policy.concerned(&request)).collect();
        let is_named = |path: &str| concerned.iter().any(|rules| rules.names(path));
        let entities = entities(question, about, &is_named).map_err(|_| Cause::Unaskable)?;
        let (mut permits, mut forbids) = (Vec::new(), Vec::new());
        for (Layer { whose, policy }, concerned) in layers.iter().zip(&concerned) {
            let cite = |rules: Vec<_>| rules.into_iter().map(|rule| Cited { layer: *whose, rule });
            match policy.ask_those(concerned, &self.authorizer, &request, &entities) {
                Ruling::Permitted(rules) => permits.extend(cite(rules)),
                Ruling::Forbidden(rules) => forbids.extend(cite(rules)),
                Ruling::Silent if whose.must_permit() => return Err(Cause::Silent(*whose)),
                Ruling::Silent => {}
                Ruling::Failed(rules) => return Err(Cause::Failed(cite(rules).collect())),
            }
        }
        if forbids.is_empty() { Ok(permits) } else { Err(Cause::Forbidden(forbids)) }
    }
}

/// Returns the quorums that people made up for an action.
pub(crate) fn given(facts: &Facts, action: &Action) -> Quorums {
    let Facts { approvals, owners, now, .. } = facts;
    Said { approvals, owners, subject: action.digest(), now: *now }.quorums()
}

/// Tells whether an action writes where the ceiling of its task has it read only, or runs a program where that has none.
fn is_above(ceiling: &Ceiling, action: &Action) -> bool {
    let tool = &action.request().tool;
    let writes = ceiling.workspace == WorkspaceAccess::ReadOnly && !tool.writes().is_empty();
    writes || (ceiling.level == WorkLevel::READ && matches!(tool, Tool::Run { .. }))
}

fn above(ceiling: &Ceiling) -> Halted {
    Halted {
        reason: "task-ceiling".to_owned(),
        advice: format!(
            "this task was opened at level {} to read only, and nothing raises that: propose the change as text",
            ceiling.level
        ),
    }
}

/// Takes from a grant what reaches beyond its own sandbox.
fn within_the_walls(grant: Grant) -> Grant {
    Grant { network: Network::Loopback, shown_credentials: Vec::new(), terminal: false, ..grant }
}

fn digest_of(layers: &[Layer]) -> Digest {
    let digests: Vec<Digest> = layers.iter().map(|layer| layer.policy.digest()).collect();
    Canonical::new("fumehood policy layers 2")
        .list(layers.iter().map(|layer| layer.whose.prefix().as_bytes()))
        .list(digests.iter().map(|digest| digest.as_bytes().as_slice()))
        .digest()
}

/// Does every obligation that the refusals name, and tells whether one of them changed anything.
fn narrow_all<'g>(case: &mut impl Case, refusals: &[Refusal<'g>], by: &mut Vec<(String, Cited<'g>)>) -> bool {
    let mut changed = false;
    for (what, cited) in refusals.iter().flat_map(Refusal::forbids) {
        if let Some(Remedy::Obligation(obligation)) = cited.rule.remedy
            && case.narrow(obligation)
        {
            changed = true;
            by.push((what.to_owned(), cited));
        }
    }
    changed
}

/// Supposes every yes that the refusals name, and tells whether one of them is new.
fn suppose_all<'g>(
    supposed: &mut Quorums,
    refusals: &[Refusal<'g>],
    by: &mut Vec<(String, Cited<'g>)>,
) -> bool {
    let mut changed = false;
    for (what, cited) in refusals.iter().flat_map(Refusal::forbids) {
        if let Some(Remedy::Approval(quorum)) = &cited.rule.remedy {
            changed |= !supposed.contains(quorum);
            supposed.extend(quorum.covered());
            by.push((what.to_owned(), cited));
        }
    }
    changed
}

impl Case for ActionCase<'_> {
    fn about(&self) -> About<'_> {
        About::Action { action: self.action, grant: &self.grant }
    }

    fn questions(&self) -> Vec<Question<'_>> {
        questions_of(self.action, &self.grant, self.facts, self.service)
    }

    fn remembered(&self, effect: &Effect) -> Option<&Remembered> {
        self.facts.remembered.iter().find(|before| effect.does(&before.effect))
    }

    fn narrow(&mut self, obligation: Obligation) -> bool {
        obligation.narrow(&mut self.grant, &self.facts.profile, &self.action.request().tool)
    }
}

impl Case for Reading {
    fn about(&self) -> About<'_> {
        About::Reading(self)
    }

    fn questions(&self) -> Vec<Question<'_>> {
        vec![Question::ReadRecord(self)]
    }

    fn remembered(&self, _: &Effect) -> Option<&Remembered> {
        None
    }

    fn narrow(&mut self, _: Obligation) -> bool {
        false
    }
}

impl Case for Apply {
    fn about(&self) -> About<'_> {
        About::Apply(self)
    }

    fn questions(&self) -> Vec<Question<'_>> {
        vec![Question::Apply(self)]
    }

    fn remembered(&self, _: &Effect) -> Option<&Remembered> {
        None
    }

    fn narrow(&mut self, _: Obligation) -> bool {
        false
    }
}
