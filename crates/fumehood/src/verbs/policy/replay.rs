//! `policy replay`: what other rules would have answered to the requests of the record.

use std::collections::BTreeMap;
use std::time::SystemTime;

use engine::Engine;
use gate::Gate;
use model::Timestamp;
use model::event::Verdict;

use super::recorded::{Recorded, recorded};
use super::{Context, Rules, request_line};
use crate::args::{PolicyReplayArgs, Since};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{LeftOut, ReplayChange, ReplayDocument, ReplayExample};

/// The most examples of one change that are named.
const EXAMPLES_MAX: usize = 3;

/// The requests of the record that can be decided again, and why others cannot.
pub(super) struct History {
    pub(super) requests: Vec<Recorded>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Decides the record again.
pub(crate) fn replay(context: &Context<'_>, args: &PolicyReplayArgs) -> Result<Exit, CliError> {
    let rules = Rules::said(context, &args.candidate)?;
    // Rules that cannot be used would deny everything, which tells nothing about them.
    rules.policy()?.map_err(|error| CliError::Cannot(format!("{}: {error}", rules.place)))?;
    let engine = context.engine()?;
    let progress = context.console.progress("deciding again");
    let history = History::since(context, &engine, args.since)?;
    let document = decided_again(&rules, history, args.since.map(Since::moment));
    drop(progress);
    context.console.answer(&document, |paint| render::replay(&document, paint));
    Ok(Exit::answer(document.changes.is_empty()))
}

impl History {
    /// Reads the requests since a moment, oldest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub(super) fn since(
        context: &Context<'_>,
        engine: &Engine,
        since: Option<Since>,
    ) -> Result<Self, CliError> {
        let from = since.map_or(Timestamp::from_nanos(0), Since::moment);
        let mut actions = engine.store().read(|reader| reader.newest_actions(u32::MAX))?;
        actions.retain(|action| action.created >= from && action.class == "action");
        actions.reverse();
        let (mut requests, mut left_out) = (Vec::new(), BTreeMap::<&str, usize>::new());
        for action in actions {
            match recorded(context, engine, action)? {
                Ok(found) => requests.push(found),
                Err(why) => *left_out.entry(why).or_default() += 1,
            }
        }
        let left_out = left_out.into_iter().map(|(why, actions)| LeftOut { why: why.to_owned(), actions });
        Ok(Self { requests, left_out: left_out.collect() })
    }
}

fn decided_again(rules: &Rules, history: History, since: Option<Timestamp>) -> ReplayDocument {
    let gate = rules.gate();
    let mut document = ReplayDocument {
        rules_of: rules.place.clone(),
        since,
        decided: history.requests.len(),
        alike: 0,
        changes: Vec::new(),
        left_out: history.left_out,
    };
    let mut changes: BTreeMap<(u8, u8), ReplayChange> = BTreeMap::new();
    for request in &history.requests {
        let (from, to) = (request.decision.verdict, request.case.decide(&gate).record.verdict);
        if from == to {
            document.alike += 1;
            continue;
        }
        let change = changes.entry((rank(from), rank(to))).or_insert_with(|| ReplayChange {
            from,
            to,
            actions: 0,
            examples: Vec::new(),
        });
        change.actions += 1;
        if change.examples.len() < EXAMPLES_MAX {
            change.examples.push(example(request, &gate));
        }
    }
    document.changes = changes.into_values().collect();
    document
}

/// Says of one request what was decided, and what a gate decides.
pub(super) fn example(request: &Recorded, gate: &Gate) -> ReplayExample {
    let now = request.case.decide(gate).record;
    ReplayExample {
        action: request.action.id.clone(),
        request: request_line(&request.action.request.tool),
        reason_then: request.decision.reason.clone(),
        reason_now: now.reason,
        rules_now: now.rules,
    }
}

/// Orders verdicts from the widest to the narrowest.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Narrow => 1,
        Verdict::RequireApproval => 2,
        Verdict::Deny => 3,
    }
}

impl Since {
    /// Returns the moment that is meant.
    fn moment(self) -> Timestamp {
        match self {
            Self::Moment(moment) => moment,
            Self::Ago(time) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let then = now.saturating_sub(time).as_nanos();
                Timestamp::from_nanos(u64::try_from(then).unwrap_or(u64::MAX))
            }
        }
    }
}
