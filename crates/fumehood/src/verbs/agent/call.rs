//! One call of the model: an order, its way through the engine, and what the model is told of it.
//!
//! Guarantees: what the model is told is made from what is stored alone, so a call that is made again after a crash
//! gets the very same answer, and nothing runs twice.

use ::agent::protocol::Proposal;
use ::agent::{Stream, ToolResult};
use engine::store::{ActionState, StoredAction, StoredApproval};
use engine::{Engine, EngineError, Io, KeptOutput, Moment, Order, Silent, controller};
use model::action::Principal;
use model::grant::WorkspaceAccess;
use model::{ActionRequest, ApprovalState, Ending, Grant, Tool};

use super::interrupt::Interrupt;
use super::session::Job;
use crate::error::CliError;
use crate::output::shape::{ActionDocument, HIDDEN_STAYS, why};
use crate::verbs::answer::wait_for_answer;
use crate::verbs::look;

/// Bytes of each end of a stream that the agent gets; it cuts further for the model.
const END: usize = 256 << 10;

/// What became of a call.
pub(in crate::verbs) struct Made {
    /// What the record says of its action, when it became one.
    pub(in crate::verbs) document: Option<ActionDocument>,
    /// What the model is told.
    pub(in crate::verbs) result: ToolResult,
    /// Whether it had been made before, and was not run again.
    pub(in crate::verbs) again: bool,
}

/// Carries a call out, or returns what came of it when it was made before.
pub(super) fn make(job: &Job<'_>, proposal: &Proposal, interrupt: &Interrupt) -> Result<Made, CliError> {
    let engine = job.engine;
    let call = proposal.call.to_string();
    if let Some(action) = engine.action_of_call(&job.task.id, &call)? {
        return made(engine, &action, true);
    }
    let (handle, controller) =
        controller().map_err(CliError::system("make a descriptor to steer the command by"))?;
    let io =
        Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: Some(controller) };
    let waiting =
        || job.context.console.say("fumehood: another action of this task is running; waiting for its end");
    let order = order(job, proposal);
    let outcome = interrupt.during(handle, || engine.handle_call(&job.task, &call, order, io, waiting));
    match outcome {
        Ok(_) => {}
        // The model asked for something that no action can be; another try may be one.
        Err(EngineError::Action(error)) => {
            let result = ToolResult::NotRun { reason: error.to_string() };
            return Ok(Made { document: None, result, again: false });
        }
        Err(error) => return Err(error.into()),
    }
    let action = engine.action_of_call(&job.task.id, &call)?;
    let action =
        action.ok_or_else(|| CliError::Cannot(format!("call {call} left no action on the record")))?;
    wait_for_a_person(job, &action, interrupt)?;
    let action = engine.store().read(|reader| reader.find_action(action.id.as_str()))?;
    made(engine, &action, false)
}

/// Waits until a person answered to an action that needs somebody's yes, as long as the task may wait.
fn wait_for_a_person(job: &Job<'_>, action: &StoredAction, interrupt: &Interrupt) -> Result<(), CliError> {
    let Some(time) = job.plan.wait else { return Ok(()) };
    let asked = look::of_stored(job.engine, action)?.approval;
    let Some(asked) = asked.filter(|asked| !asked.state.is_final()) else { return Ok(()) };
    wait_for_answer(job.context, job.engine, &asked.approval, time, &|| interrupt.came()).map(drop)
}

/// Builds a sandbox like that of a call which just ran, while the model thinks about what it said.
pub(super) fn park(job: &Job<'_>, proposal: &Proposal, made: &Made) {
    if matches!(made.result, ToolResult::Ran { .. }) && !made.again {
        // What stands in the way of this one stands in the way of the next call, and is told then.
        let _ = job.engine.park(&job.task, &order(job, proposal));
    }
}

fn order(job: &Job<'_>, proposal: &Proposal) -> Order {
    let mut grant = Grant::under(job.plan.asked.clone());
    if matches!(proposal.tool, Tool::Read { .. } | Tool::List { .. } | Tool::Search { .. }) {
        grant.workspace = WorkspaceAccess::ReadOnly;
    }
    Order {
        request: ActionRequest {
            principal: Principal::Agent(job.source.model.clone()),
            tool: proposal.tool.clone(),
            directory: proposal.directory.clone(),
            environment: std::collections::BTreeMap::new(),
            purpose: proposal.purpose.clone(),
        },
        grant,
        profile: job.holds.clone(),
        workspace: job.workspace.clone(),
        mutant: job.plan.mutant.clone(),
    }
}

fn made(engine: &Engine, action: &StoredAction, again: bool) -> Result<Made, CliError> {
    let document = look::of_stored(engine, action)?;
    let result = result(engine, action, &document)?;
    Ok(Made { document: Some(document), result, again })
}

/// Returns what the model is told of an action.
fn result(engine: &Engine, action: &StoredAction, document: &ActionDocument) -> Result<ToolResult, CliError> {
    let unknown = || ToolResult::Unknown { reason: "Fumehood was ended while it ran".to_owned() };
    let asked = asked(engine, document)?;
    if let Some(kept) = asked.as_ref().filter(|asked| is_for_another(asked, action)) {
        // The very same thing was asked for before, and became a layer of the task: that is what became of it.
        let other = engine.store().read(|reader| reader.find_action(kept.action.as_str()))?;
        return result(engine, &other, &look::of_stored(engine, &other)?);
    }
    Ok(match (action.state, &action.decision, &action.ending) {
        (ActionState::Denied | ActionState::Tried, Some(decision), _) => {
            let not_asked = document.not_asked.iter().map(|why| format!("nobody is asked: {why}"));
            let notes = asked.iter().map(said).collect::<Result<Vec<_>, _>>()?;
            ToolResult::Denied {
                decision: Box::new(decision.clone()),
                notes: notes.into_iter().chain(not_asked).collect(),
            }
        }
        (ActionState::NotStarted, _, _) => {
            let reason = document.not_started.as_ref().map(|part| part.reason.clone());
            ToolResult::NotRun {
                reason: reason.unwrap_or_else(|| "its sandbox could not be built".to_owned()),
            }
        }
        (ActionState::Ended, _, Some(ending)) => {
            let output = engine.output(&action.task, &action.id)?;
            ToolResult::Ran {
                ending: ending.clone(),
                stdout: stream(&output, "stdout"),
                stderr: stream(&output, "stderr"),
                notes: notes(document, met_what_is_hidden(ending, &output)),
            }
        }
        _ => unknown(),
    })
}

/// Returns the request for a person's yes that an action came to, as it stands now.
fn asked(engine: &Engine, document: &ActionDocument) -> Result<Option<StoredApproval>, CliError> {
    let Some(part) = &document.approval else { return Ok(None) };
    Ok(Some(engine.store().read(|reader| reader.find_approval(part.approval.as_str()))?))
}

fn is_for_another(asked: &StoredApproval, action: &StoredAction) -> bool {
    asked.state == ApprovalState::Kept && asked.action != action.id
}

/// Says what became of asking a person.
fn said(asked: &StoredApproval) -> Result<String, CliError> {
    let because = asked.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let now = Moment::now().map_err(CliError::from)?;
    Ok(match asked.state_at(&now) {
        ApprovalState::Trying | ApprovalState::Open => {
            "a person was asked and has not answered; nothing of it is kept until they say yes".to_owned()
        }
        ApprovalState::Given => {
            "a person said yes: make the very same call again, and it runs once".to_owned()
        }
        ApprovalState::Refused => format!("a person said no{because}"),
        state => format!("the request to a person is {state}{because}"),
    })
}

/// Returns what else the model should know: what a layer refused, which limit was met, what waits for a person. That files
/// are hidden is the same for each call, and is said only where the command may have failed for it.
fn notes(document: &ActionDocument, met_what_is_hidden: bool) -> Vec<String> {
    let causes = why(document).causes.into_iter();
    causes
        .filter_map(|cause| match cause.code.as_str() {
            "masked" if met_what_is_hidden => Some(format!("{}; {HIDDEN_STAYS}", cause.sentence)),
            "masked" => None,
            _ => Some(cause.sentence),
        })
        .collect()
}

/// Tells whether a command failed with the words that the kernel has for what something is mounted on.
fn met_what_is_hidden(ending: &Ending, output: &[KeptOutput]) -> bool {
    let words = b"Device or resource busy";
    let says = |kept: &KeptOutput| kept.bytes.windows(words.len()).any(|part| part == words);
    !ending.succeeded() && output.iter().any(says)
}

fn stream(output: &[KeptOutput], name: &str) -> Stream {
    let bytes = output.iter().find(|kept| kept.stream == name).map_or(&[][..], |kept| kept.bytes.as_slice());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match bytes.len().checked_sub(2 * END) {
        None | Some(0) => Stream::whole(text(bytes)),
        Some(dropped) => Stream {
            head: text(&bytes[..END]),
            dropped: dropped as u64,
            tail: text(&bytes[bytes.len() - END..]),
        },
    }
}

#[cfg(test)]
mod tests {
    use model::{Event, OsText};

    use super::*;

    #[test]
    fn what_is_hidden_is_named_where_a_command_may_have_failed_for_it() {
        let started = Event::Started {
            backend: "native".to_owned(),
            held: Vec::new(),
            probes: Vec::new(),
            masked: vec![OsText::literal("conf/.env")],
        };
        let action = model::ActionId::from_random([1; 10]);
        let document = ActionDocument::from_events(action, [(model::Timestamp::from_nanos(0), &started)]);
        let said = |text: &str, status| {
            let output = [KeptOutput { stream: "stderr", bytes: text.as_bytes().to_vec() }];
            notes(&document, met_what_is_hidden(&Ending::Exited { status }, &output))
        };
        let busy = "rm: cannot remove 'conf/.env': Device or resource busy\n";
        let notes = said(busy, 1);
        assert!(notes.len() == 1 && notes[0].contains("`conf/.env`"), "{notes:?}");
        assert!(notes[0].ends_with(HIDDEN_STAYS), "{notes:?}");
        assert_eq!(said(busy, 0), [] as [&str; 0]);
        assert_eq!(said("rm: cannot remove 'x': No such file or directory\n", 1), [] as [&str; 0]);
    }

    #[test]
    fn a_long_stream_keeps_both_ends_and_says_how_much_is_missing() {
        let output = |bytes: Vec<u8>| [KeptOutput { stream: "stdout", bytes }];
        assert_eq!(stream(&output(b"short".to_vec()), "stdout"), Stream::whole("short"));
        assert_eq!(stream(&output(b"short".to_vec()), "stderr"), Stream::default());
        let long = stream(&output(vec![b'x'; 2 * END + 7]), "stdout");
        assert_eq!((long.head.len(), long.dropped, long.tail.len()), (END, 7, END));
    }
}
