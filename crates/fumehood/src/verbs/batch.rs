//! Several requests answered in one go: every one is listed, and each gets a yes of its own to its own digest.
//!
//! Guarantees: nothing is said yes to that was not listed, or named by its id; what one request comes to changes nothing
//! about another, and none is left out of what is told.

use engine::Engine;
use engine::store::StoredApproval;
use model::ApprovalState;

use super::approvals::{approver, dossier, say_yes};
use super::context::Context;
use crate::args::ApprovalsApproveArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{BatchDocument, BatchRow};

/// Says yes to each of several requests.
pub(super) fn approve(context: &Context<'_>, args: &ApprovalsApproveArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let requests = requests(&engine, args)?;
    if requests.is_empty() {
        return Err(CliError::Cannot("no request of this task waits for a person".to_owned()));
    }
    for request in &requests {
        approver(context, &engine, request)?;
    }
    if !args.yes && !agrees(context, &engine, &requests)? {
        return Ok(Exit::Negative);
    }
    let answers = requests.iter().map(|request| one(context, &engine, request, args.reason.as_deref()));
    let document = BatchDocument { answers: answers.collect() };
    context.console.answer(&document, |paint| render::batch(&document, paint));
    Ok(Exit::answer(document.answers.iter().all(BatchRow::counts)))
}

/// Returns the requests that are named, each once, or those of a task that wait.
fn requests(engine: &Engine, args: &ApprovalsApproveArgs) -> Result<Vec<StoredApproval>, CliError> {
    let store = engine.store();
    if let Some(task) = &args.all_of {
        let task = store.read(|reader| reader.find_task(task.as_str()))?;
        let open = store.read(|reader| reader.approvals(true))?.into_iter();
        let waits = |one: &StoredApproval| one.task == task.id && one.state == ApprovalState::Open;
        return Ok(open.filter(waits).collect());
    }
    let mut requests: Vec<StoredApproval> = Vec::new();
    for name in &args.approvals {
        let request = store.read(|reader| reader.find_approval(name.as_str()))?;
        if requests.iter().all(|known| known.id != request.id) {
            requests.push(request);
        }
    }
    Ok(requests)
}

/// Lists every request at a terminal and asks.
fn agrees(context: &Context<'_>, engine: &Engine, requests: &[StoredApproval]) -> Result<bool, CliError> {
    if !context.console.can_ask() {
        return Err(CliError::Cannot(
            "there is no terminal to ask at: look at each with `fumehood approvals show`, name them one by one, and say yes \
             with `--yes`"
                .to_owned(),
        ));
    }
    let paint = context.console.err;
    for request in requests {
        context.console.say(&render::brief_dossier(&dossier(engine, request)?, paint));
    }
    Ok(context.console.ask(&format!("Say yes to exactly these {}?", requests.len())))
}

/// Says yes to one of them. What stands in its way is told with it, and keeps no other back.
fn one(context: &Context<'_>, engine: &Engine, request: &StoredApproval, reason: Option<&str>) -> BatchRow {
    let approval = request.id.clone();
    match say_yes(context, engine, request, reason) {
        Ok(answer) => BatchRow { approval, answer: Some(answer), error: None },
        Err(error) => BatchRow { approval, answer: None, error: Some(error.line()) },
    }
}
