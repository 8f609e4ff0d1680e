//! `approvals`: what waits for a person, what a person should know of it, and what they answer.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::store::{StoredAction, StoredApproval};
use engine::{Approver, Engine, Moment, Progress, Yes};
use model::approval::Answered;
use model::event::Event;
use model::{ApprovalState, Effect, OsText, Profile, Quorum};

use super::ancestry::not_a_person;
use super::artifacts;
use super::batch;
use super::context::Context;
use super::diff::patch_of_action;
use super::elsewhere::take_answers;
use super::look;
use super::policy::{said, way_back};
use super::repository::tightened;
use crate::args::{
    ApprovalsApproveArgs, ApprovalsDenyArgs, ApprovalsListArgs, ApprovalsRevokeArgs, ApprovalsShowArgs,
};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    ActionDocument, AnswerDocument, AnswerPart, ApprovalRow, ApprovalsDocument, AskedPart, DossierDocument,
    EffectRow, MeasuredPart, StatsDocument, VariablePart, WantedPart, WayBack, who,
};
use crate::settings::Accounts;

/// Lists requests.
pub(super) fn list(context: &Context<'_>, args: &ApprovalsListArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let now = Moment::now()?;
    let stored = engine.store().read(|reader| reader.approvals(!args.all))?;
    let wanted = |approval: &&StoredApproval| args.all || !approval.state_at(&now).is_final();
    let rows = stored.iter().filter(wanted).map(|approval| {
        let stored = engine.store().read(|reader| reader.find_action(approval.action.as_str()))?;
        let action = look::of_stored(&engine, &stored)?;
        Ok(row(&engine, approval, &stored, &action, &now))
    });
    let document = ApprovalsDocument { approvals: rows.collect::<Result<_, CliError>>()? };
    context.console.answer(&document, |paint| render::approvals(&document, paint));
    Ok(Exit::Success)
}

/// Shows all that a person should know of a request.
pub(super) fn show(context: &Context<'_>, args: &ApprovalsShowArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let approval = find(context, &engine, args.approval.as_str())?;
    let document = dossier(&engine, &approval)?;
    context.console.answer(&document, |paint| render::whole_dossier(&document, paint, args.full));
    Ok(Exit::Success)
}

/// Says yes.
pub(super) fn approve(context: &Context<'_>, args: &ApprovalsApproveArgs) -> Result<Exit, CliError> {
    let [named] = args.approvals.as_slice() else { return batch::approve(context, args) };
    let engine = context.engine()?;
    let approval = find(context, &engine, named.as_str())?;
    approver(context, &engine, &approval)?;
    if !args.yes && !agrees(context, &engine, &approval)? {
        return Ok(Exit::Negative);
    }
    let document = say_yes(context, &engine, &approval, args.reason.as_deref())?;
    context.console.answer(&document, |paint| render::answered(&document, paint));
    Ok(Exit::answer(document.counts()))
}

/// Says yes to one request, as it was when it was shown.
pub(super) fn say_yes(
    context: &Context<'_>,
    engine: &Engine,
    approval: &StoredApproval,
    reason: Option<&str>,
) -> Result<AnswerDocument, CliError> {
    let by = approver(context, engine, approval)?;
    if approval.state == ApprovalState::Trying {
        // What would be shown now is not what a yes would keep.
        return Err(CliError::Cannot(format!("{} is being tried: wait until that ended", approval.id)));
    }
    let profile = profile(context, engine, approval)?;
    let yes = engine.say_yes(approval, &by, reason, &profile)?;
    answered(engine, approval, Some(yes))
}

/// Says no.
pub(super) fn deny(context: &Context<'_>, args: &ApprovalsDenyArgs) -> Result<Exit, CliError> {
    refuse(context, args.approval.as_str(), Answered::No, args.reason.as_deref())
}

/// Takes back what was said, or the request.
pub(super) fn revoke(context: &Context<'_>, args: &ApprovalsRevokeArgs) -> Result<Exit, CliError> {
    refuse(context, args.approval.as_str(), Answered::TakenBack, args.reason.as_deref())
}

/// Says how much is asked of people.
pub(super) fn stats(context: &Context<'_>) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let now = Moment::now()?;
    let all = engine.store().read(|reader| reader.approvals(false))?;
    let document = counted(&all, &now);
    context.console.answer(&document, |paint| render::approval_stats(&document, paint));
    Ok(Exit::Success)
}

/// Returns a request, with the answers to it that came from other accounts meanwhile.
fn find(context: &Context<'_>, engine: &Engine, named: &str) -> Result<StoredApproval, CliError> {
    let read = || engine.store().read(|reader| reader.find_approval(named));
    take_answers(context, engine, &read()?)?;
    Ok(read()?)
}

fn refuse(
    context: &Context<'_>,
    named: &str,
    answer: Answered,
    reason: Option<&str>,
) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let approval = engine.store().read(|reader| reader.find_approval(named))?;
    let by = approver(context, &engine, &approval)?;
    engine.say_no(&approval, &by, answer, reason)?;
    let document = answered(&engine, &approval, None)?;
    context.console.answer(&document, |paint| render::answered(&document, paint));
    Ok(Exit::Success)
}

/// Returns who answers, unless that cannot be a person.
pub(super) fn approver(
    context: &Context<'_>,
    engine: &Engine,
    approval: &StoredApproval,
) -> Result<Approver, CliError> {
    let by = Approver { name: context.user.name.clone(), account: context.user.account, file: None };
    let Some(why) = not_a_person(&engine.clients()?) else { return Ok(by) };
    engine.refuse_answer(approval, &by, &why)?;
    Err(CliError::Cannot(format!("an answer to {} is not taken: it {why}", approval.id)))
}

/// Shows a request at a terminal and asks. Where there is none, a yes has to be typed as an option.
fn agrees(context: &Context<'_>, engine: &Engine, approval: &StoredApproval) -> Result<bool, CliError> {
    if !context.console.can_ask() {
        return Err(CliError::Cannot(format!(
            "there is no terminal to ask at: look at it with `fumehood approvals show {}`, and say yes with `--yes`",
            approval.id
        )));
    }
    let document = dossier(engine, approval)?;
    context.console.say(&render::whole_dossier(&document, context.console.err, false));
    Ok(context.console.ask("Say yes to exactly this?"))
}

/// Returns the profile that an action names, as the settings have it now.
pub(super) fn profile(
    context: &Context<'_>,
    engine: &Engine,
    approval: &StoredApproval,
) -> Result<Profile, CliError> {
    let stored = engine.store().read(|reader| reader.find_action(approval.action.as_str()))?;
    let task = engine.store().read(|reader| reader.find_task(approval.task.as_str()))?;
    let workspace = context.workspace(Some(task.workspace.path.as_path()))?;
    let settings = tightened(context, engine, &task, &workspace)?;
    Ok(settings.profile(Some(&stored.grant.profile.name))?.profile)
}

fn answered(engine: &Engine, before: &StoredApproval, yes: Option<Yes>) -> Result<AnswerDocument, CliError> {
    let approval = engine.store().read(|reader| reader.find_approval(before.id.as_str()))?;
    let (until, missing) = match yes {
        Some(Yes::MayRun(until)) => (Some(until), [].into()),
        Some(Yes::StillNeeds(missing)) => (None, texts(missing)),
        Some(Yes::Kept | Yes::Void(_)) | None => (None, [].into()),
    };
    Ok(AnswerDocument {
        state: approval.state_at(&Moment::now()?),
        approval: approval.id,
        action: approval.action,
        until,
        missing,
        why: approval.why,
    })
}

fn row(
    engine: &Engine,
    approval: &StoredApproval,
    stored: &StoredAction,
    action: &ActionDocument,
    now: &Moment,
) -> ApprovalRow {
    ApprovalRow {
        approval: approval.id.clone(),
        action: approval.action.clone(),
        task: approval.task.clone(),
        state: approval.state_at(now),
        asked: approval.asked,
        until: approval.deadline.by_the_clock_of(approval.asked, now).unwrap_or(approval.deadline.wall),
        by: who(&stored.request.principal),
        command: action.command(),
        missing: if approval.state.is_final() { [].into() } else { texts(engine.missing(approval, now)) },
        repeats: approval.repeats,
    }
}

/// Returns whose yes is wanted, whose is there, and who else could give one.
fn wanted(engine: &Engine, approval: &StoredApproval, now: &Moment) -> Vec<WantedPart> {
    let accounts = Accounts::read();
    let name =
        |account: &u32| accounts.name(*account).map_or_else(|| format!("uid-{account}"), str::to_owned);
    let owners = engine.owners_of(approval);
    let part = |progress: Progress| {
        let Progress { quorum, people } = progress;
        let kept_apart = |account: &u32| quorum.is_without_owner() && owners.contains(account);
        let could = engine.config().roles.people(quorum.role()).map(|all| {
            all.iter().filter(|one| !people.contains(one) && !kept_apart(one)).map(name).collect()
        });
        WantedPart {
            role: quorum.role().to_owned(),
            people: quorum.people(),
            without_owner: quorum.is_without_owner(),
            words: quorum.in_words(),
            given_by: people.iter().map(name).collect(),
            could_give: could,
            quorum: quorum.to_string(),
        }
    };
    engine.progress(approval, now).into_iter().map(part).collect()
}

/// Returns quorums as policy writes them.
pub(super) fn texts(quorums: BTreeSet<Quorum>) -> BTreeSet<String> {
    quorums.iter().map(Quorum::to_string).collect()
}

/// Puts everything together that is known of a request.
pub(super) fn dossier(engine: &Engine, approval: &StoredApproval) -> Result<DossierDocument, CliError> {
    let now = Moment::now()?;
    let stored = engine.store().read(|reader| reader.find_action(approval.action.as_str()))?;
    let action = look::of_stored(engine, &stored)?;
    let records = engine.store().read(|reader| reader.records_of_action(&stored.task, &stored.id))?;
    let events: Vec<Event> = records.iter().filter_map(|record| record.parse_event().ok()).collect();
    let (reason_code, matched_rules) = asked_because(&events);
    let measured = measured(engine, approval, &action)?;
    let declared = declared(&events);
    Ok(DossierDocument {
        approval: row(engine, approval, &stored, &action, &now),
        claimed_purpose: stored.request.purpose.clone(),
        grant: stored.grant.clone().into(),
        digest: approval.digest,
        reason_code,
        matched_rules,
        way_back: furthest(measured.as_ref(), declared),
        effects: declared.iter().map(EffectRow::from).collect(),
        not_measured: not_measured(approval, measured.as_ref()),
        measured,
        answers: approval.answers.iter().map(AnswerPart::from).collect(),
        wanted: wanted(engine, approval, &now),
        why: approval.why.clone(),
        answers_from_elsewhere: engine.config().answers.is_some(),
        request: asked(stored),
    })
}

fn asked(stored: StoredAction) -> AskedPart {
    let tool = stored.request.tool.name().to_owned();
    let (argv, content) = said(stored.request.tool);
    let variable = |(name, _)| VariablePart { name, value: None };
    AskedPart {
        by: who(&stored.request.principal),
        tool,
        argv,
        content,
        directory: stored.request.directory.map(OsText::from),
        workspace: stored.start.workspace,
        variables: stored.request.environment.into_iter().map(variable).collect(),
    }
}

/// Returns why policy wanted a yes, which a later decision does not change.
fn asked_because(events: &[Event]) -> (String, Vec<String>) {
    let decided = events.iter().find_map(|event| match event {
        Event::Decided { decision, .. } => Some((decision.reason.clone(), decision.rules.clone())),
        _ => None,
    });
    decided.unwrap_or_default()
}

fn declared(events: &[Event]) -> &[Effect] {
    let declared = events.iter().find_map(|event| match event {
        Event::Requested { declared, .. } => Some(declared.as_slice()),
        _ => None,
    });
    declared.unwrap_or_default()
}

/// Returns what a trial did, when there was one. Its patch is gone with its layer when nobody said yes.
fn measured(
    engine: &Engine,
    approval: &StoredApproval,
    action: &ActionDocument,
) -> Result<Option<MeasuredPart>, CliError> {
    let (None, Some(end), Some(inspection)) = (&approval.untried, &action.end, &action.inspection) else {
        return Ok(None);
    };
    let is_there = !approval.state.is_final() || approval.state == ApprovalState::Kept;
    let patch = if is_there && !inspection.changes.is_empty() {
        patch_of_action(engine, &approval.action)?
    } else {
        String::new()
    };
    let (task, id) = (&approval.task, &approval.action);
    let (git_files, artifacts) = if is_there {
        (engine.git_writes(task, id)?, artifacts::of_action(engine, task, id)?)
    } else {
        (Vec::new(), Vec::new())
    };
    Ok(Some(MeasuredPart { end: end.clone(), inspection: inspection.clone(), patch, git_files, artifacts }))
}

fn not_measured(approval: &StoredApproval, measured: Option<&MeasuredPart>) -> Vec<String> {
    let mut missing: Vec<String> =
        approval.untried.iter().map(|why| format!("nothing: it was not tried, because {why}")).collect();
    let Some(measured) = measured else { return missing };
    if !measured.end.observed.connections.is_empty() {
        missing.push("what it would have sent: it tried connections, and had no network".to_owned());
    }
    if measured.end.observed.reads.is_none() {
        missing.push("which files it read".to_owned());
    }
    if !measured.inspection.host_edits.is_empty() {
        missing.push("all of it for certain: files below it were edited on the host while it ran".to_owned());
    }
    if approval.with_input {
        missing.push("what came on standard input: it was given some, which is not kept".to_owned());
    }
    missing.push("tests before and after: none were run for this".to_owned());
    missing
}

/// Returns the way back: what was tried stayed in its layer, whatever its words said.
fn furthest(measured: Option<&MeasuredPart>, declared: &[Effect]) -> WayBack {
    match measured {
        Some(measured)
            if measured.inspection.changes.is_empty()
                && measured.git_files.is_empty()
                && measured.artifacts.is_empty() =>
        {
            WayBack::NothingToTakeBack
        }
        Some(_) => WayBack::ByLayer,
        None => way_back(declared),
    }
}

fn counted(all: &[StoredApproval], now: &Moment) -> StatsDocument {
    let number = |wanted: &[ApprovalState]| {
        all.iter().filter(|approval| wanted.contains(&approval.state_at(now))).count() as u64
    };
    let mut times: Vec<u64> = all
        .iter()
        .filter_map(|approval| {
            Some(approval.answers.last()?.at.as_nanos().saturating_sub(approval.asked.as_nanos()))
        })
        .collect();
    times.sort_unstable();
    StatsDocument {
        asked: all.len() as u64,
        repeats: all.iter().map(|approval| approval.repeats).sum(),
        waiting: number(&[ApprovalState::Trying, ApprovalState::Open]),
        approved: number(&[ApprovalState::Given, ApprovalState::Used, ApprovalState::Kept]),
        refused: number(&[ApprovalState::Refused]),
        unanswered: number(&[ApprovalState::Expired, ApprovalState::Void, ApprovalState::Revoked]),
        median_time_to_answer_ms: times.get(times.len() / 2).map(|nanos| Duration::from_nanos(*nanos)),
    }
}
