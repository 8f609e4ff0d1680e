//! Waiting for a person's answer, beside whoever asked.

use std::thread;
use std::time::{Duration, Instant};

use engine::{Engine, Moment};
use model::{ActionId, ApprovalId, ApprovalState};

use super::context::Context;
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
        let stored = engine.store().read(|reader| reader.find_approval(approval.as_str()))?;
        match stored.state_at(&Moment::now()?) {
            ApprovalState::Given => return Ok(Answer::RunAgain),
            state if state.is_final() => return Ok(Answer::Stands(stored.action)),
            _ if Instant::now() >= until || stopped() => break,
            _ => thread::sleep(LOOKS_EVERY),
        }
    }
    drop(progress);
    context.console.say("fumehood: nobody answered in time, so it does not run");
    Ok(Answer::None)
}
