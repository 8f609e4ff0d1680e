//! Rules as formulas, and the questions that are put about them.

use cedar_policy::{PolicySet, RequestEnv, Schema};
use cedar_policy_symcc::err::Error as SymbolicError;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicy, CompiledPolicySet, Env};
use gate::BareQuestion;

use crate::solver::{Scripted, Solver, at_once};

/// Says why nothing is proved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unproved {
    /// The solver gave no answer that can be used.
    #[error("the solver gave no answer: {0}")]
    NoAnswer(String),
    /// The rules cannot be made a formula.
    #[error("the rules cannot be put to the solver: {0}")]
    Uncompiled(String),
    /// A counterexample is not allowed by the real authorizer, so one of both is wrong.
    #[error(
        "the solver's counterexample is answered otherwise by the authorizer: report this as a fault of Fumehood"
    )]
    Unreplayed,
}

/// Puts questions about policies to a solver.
pub struct Prover<'s> {
    pub(crate) schema: Schema,
    compiler: CedarSymCompiler<Scripted<'s>>,
}

impl<'s> Prover<'s> {
    /// Takes a solver.
    ///
    /// # Errors
    /// When the schema of this build cannot be read.
    pub fn new(solver: &'s mut (dyn Solver + Send)) -> Result<Self, Unproved> {
        let schema = gate::cedar_schema().map_err(|error| Unproved::Uncompiled(error.to_string()))?;
        let compiler = CedarSymCompiler::new(Scripted::new(solver)).map_err(|error| unproved(&error))?;
        Ok(Self { schema, compiler })
    }

    /// Returns every kind of request.
    pub(crate) fn kinds(&self) -> Vec<RequestEnv> {
        self.schema.request_envs().collect()
    }

    pub(crate) fn compile(&self, set: &PolicySet, kind: &RequestEnv) -> Result<CompiledPolicySet, Unproved> {
        CompiledPolicySet::compile(set, kind, &self.schema).map_err(|error| unproved(&error))
    }

    pub(crate) fn compile_one(
        &self,
        policy: &cedar_policy::Policy,
        kind: &RequestEnv,
    ) -> Result<CompiledPolicy, Unproved> {
        CompiledPolicy::compile(policy, kind, &self.schema).map_err(|error| unproved(&error))
    }

    /// Looks for a request that `one` allows and `other` does not.
    pub(crate) fn beyond(
        &mut self,
        one: &CompiledPolicySet,
        other: &CompiledPolicySet,
    ) -> Result<Option<BareQuestion>, Unproved> {
        let found = at_once(self.compiler.check_implies_with_counterexample_opt(one, other));
        question(found)
    }

    /// Looks for a request that makes a rule fail.
    pub(crate) fn failing(&mut self, rule: &CompiledPolicy) -> Result<Option<BareQuestion>, Unproved> {
        question(at_once(self.compiler.check_never_errors_with_counterexample_opt(rule)))
    }

    /// Tells whether a rule surely matches nothing.
    pub(crate) fn never_matches(&mut self, rule: &CompiledPolicy) -> Result<bool, Unproved> {
        at_once(self.compiler.check_never_matches_opt(rule)).map_err(|error| unproved(&error))
    }

    /// Tells whether wherever `one` matches, `other` surely does.
    pub(crate) fn matches_within(
        &mut self,
        one: &CompiledPolicy,
        other: &CompiledPolicy,
    ) -> Result<bool, Unproved> {
        at_once(self.compiler.check_matches_implies_opt(one, other)).map_err(|error| unproved(&error))
    }
}

fn question(found: Result<Option<Env>, SymbolicError>) -> Result<Option<BareQuestion>, Unproved> {
    let Some(env) = found.map_err(|error| unproved(&error))? else { return Ok(None) };
    let bare = BareQuestion::of(&env.request, &env.entities);
    bare.map(Some).ok_or_else(|| Unproved::NoAnswer("its counterexample cannot be written down".to_owned()))
}

fn unproved(error: &SymbolicError) -> Unproved {
    use std::error::Error as _;
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    match error {
        SymbolicError::SolverError(_) | SymbolicError::SolverUnknown => Unproved::NoAnswer(text),
        _ => Unproved::Uncompiled(text),
    }
}
