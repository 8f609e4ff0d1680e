//! Waiting for a person's answer, beside whoever asked.

use std::thread;
use std::time::{Duration, Instant};

use engine::{Engine, Moment};
use model::{ActionId, ApprovalId, ApprovalState};

use super::context::Context;
use super::elsewhere::take_answers;
use crate::error::CliError;

/// How often the state is looked at. A person needs longer than this to see that something happened.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// What a person answered.
pub(super) enum Answer {
    /// The same request may run now.
    RunAgain,
    /// What became of the request is on the record of this action.
    Stands(ActionId),
    /// Nobody answered in time: that is a no.
    None,
}

/// Waits until a request is answered or came to its end, at most for a time.
pub(super) fn wait_for_answer(
    context: &Context<'_>,
    engine: &Engine,
    approval: &ApprovalId,
    time: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<Answer, CliError> {
    context.console.say(&format!("fumehood: waiting for a person: `fumehood approvals show {approval}`"));
    let progress = context.console.progress("waiting for a yes or a no");
    let until = Instant::now() + time;
    loop {
        match look(context, engine, approval)? {
            Answer::None if Instant::now() >= until || stopped() => break,
            Answer::None => thread::sleep(LOOKS_EVERY),
            answer => return Ok(answer),
        }
    }
    drop(progress);
    context.console.say("fumehood: nobody answered in time, so it does not run");
    Ok(Answer::None)
}

/// Returns what other accounts answered to a request that was made again: a yes lets it run now.
pub(super) fn answered_meanwhile(
    context: &Context<'_>,
    engine: &Engine,
    approval: &ApprovalId,
) -> Result<Answer, CliError> {
    if engine.config().answers.is_none() {
        return Ok(Answer::None);
    }
    match look(context, engine, approval)? {
        Answer::RunAgain => Ok(Answer::RunAgain),
        // What became of the first request is not what became of this one.
        Answer::Stands(_) | Answer::None => Ok(Answer::None),
    }
}

/// Takes what other accounts answered, and looks where a request stands.
fn look(context: &Context<'_>, engine: &Engine, approval: &ApprovalId) -> Result<Answer, CliError> {
    let read = || engine.store().read(|reader| reader.find_approval(approval.as_str()));
    take_answers(context, engine, &read()?)?;
    let stored = read()?;
    Ok(match stored.state_at(&Moment::now()?) {
        ApprovalState::Given => Answer::RunAgain,
        state if state.is_final() => Answer::Stands(stored.action),
        _ => Answer::None,
    })
}
