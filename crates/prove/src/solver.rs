//! The solver: somebody who answers one script at a time.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use cedar_policy_symcc::SmtLibScript;
use cedar_policy_symcc::solver::{Decision, DecisionWithModel, Solver as SymbolicSolver, SolverError};
use tokio::io::AsyncWrite;

/// Answers scripts in SMT-LIB 2.
pub trait Solver {
    /// Runs one whole script from a fresh start and returns what it wrote.
    ///
    /// # Errors
    /// When there is no answer: it cannot be started, took too long, or wrote too much.
    fn answer(&mut self, script: &[u8]) -> io::Result<String>;
}

/// Collects what the symbolic compiler writes, and puts each question as a script of its own. So no state is carried from
/// one question to the next.
pub(crate) struct Scripted<'s> {
    solver: &'s mut (dyn Solver + Send),
    script: Vec<u8>,
}

impl<'s> Scripted<'s> {
    pub(crate) fn new(solver: &'s mut (dyn Solver + Send)) -> Self {
        Self { solver, script: Vec::new() }
    }

    /// Puts the question that was collected, and returns the first line of the answer and the rest.
    fn ask(&mut self) -> Result<(String, String), SolverError> {
        let script = std::mem::take(&mut self.script);
        let answer = self.solver.answer(&script)?;
        let (first, rest) = answer.split_once('\n').unwrap_or((&answer, ""));
        Ok((first.trim().to_owned(), rest.trim().to_owned()))
    }
}

impl SymbolicSolver for Scripted<'_> {
    fn smtlib_input(&mut self) -> &mut (dyn AsyncWrite + Unpin + Send) {
        &mut self.script
    }

    async fn enable_models(&mut self) -> Result<(), SolverError> {
        Ok(self.smtlib_input().set_option("produce-models", "true").await?)
    }

    async fn check_sat(&mut self) -> Result<Decision, SolverError> {
        self.smtlib_input().check_sat().await?;
        match self.ask()?.0.as_str() {
            "sat" => Ok(Decision::Sat),
            "unsat" => Ok(Decision::Unsat),
            "unknown" => Ok(Decision::Unknown),
            other => Err(SolverError::UnrecognizedSolverOutput(other.to_owned())),
        }
    }

    async fn check_sat_with_model(&mut self) -> Result<DecisionWithModel, SolverError> {
        self.smtlib_input().check_sat().await?;
        self.smtlib_input().get_model().await?;
        let (first, model) = self.ask()?;
        match first.as_str() {
            "sat" => Ok(DecisionWithModel::Sat { model }),
            // It then complains that there is no model, which is right.
            "unsat" => Ok(DecisionWithModel::Unsat),
            "unknown" => Ok(DecisionWithModel::Unknown),
            other => Err(SolverError::UnrecognizedSolverOutput(other.to_owned())),
        }
    }
}

/// Waits for something that is always ready: all that it does is write to memory and ask the solver, which blocks.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}
