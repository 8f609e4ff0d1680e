//! The memory of denials: what was denied in a task is denied however it is asked for, and trying too many ways stops it.
//!
//! Guarantees: what policy forbids as an effect is remembered for the task, on the record. Another command with that effect
//! gets the same reason code, whether its words say so (then it does not run) or it was seen while it ran (then what it
//! wrote is not kept). After [`WAYS_MAX`] other ways the task is frozen, and a person has to resume it.
//! Leaves to others: reading effects from words (`effects`), and what is denied (`gate`).

use std::collections::BTreeSet;

use gate::{Classes, Decision, Denial, Remembered, controls};
use inspect::Report;
use inspect::protected::classify;
use model::event::Event;
use model::evidence::{Observed, ProgramStart};
use model::task::{Task, TaskState};
use model::{Action, Canonical, ChangeKind, Digest, Effect, OsText, Place, TaskId, Tool, WorkspacePath};

use crate::Engine;
use crate::error::EngineError;
use crate::run::Run;
use crate::store::{StoreError, StoredDenial, Writer};
use crate::tasks::about;

/// In how many other ways what was denied may be tried before the task is frozen.
const WAYS_MAX: usize = 3;
/// The most effects that a task remembers: what was denied last is not kept beyond this, policy denies it all the same.
const REMEMBERED_MAX: usize = 256;

/// What an action did or asked for that was denied before.
#[derive(Debug, Default)]
pub(crate) struct Met {
    denials: Vec<StoredDenial>,
    events: Vec<Event>,
    freezes: bool,
}

impl Met {
    pub(crate) fn is_empty(&self) -> bool {
        self.denials.is_empty()
    }

    /// Returns the events that record it.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Writes it down.
    pub(crate) fn write(
        &self,
        writer: &Writer<'_>,
        task: &TaskId,
        time: model::Timestamp,
    ) -> Result<(), StoreError> {
        self.denials.iter().try_for_each(|denial| writer.keep_denial(task, denial))?;
        if self.freezes { writer.set_task_state(task, TaskState::Frozen, time) } else { Ok(()) }
    }
}

impl Engine {
    /// Returns what was denied in a task before, and the denial for which it is frozen, when it is.
    pub(crate) fn remembered(
        &self,
        task: &TaskId,
    ) -> Result<(Vec<Remembered>, Option<Remembered>), EngineError> {
        let (state, denials) = self
            .store()
            .read(|reader| Ok((reader.task(task)?.map(|task| task.state), reader.denials(task)?)))?;
        let most =
            denials.iter().max_by_key(|denial| denial.ways.len()).map(|denial| denial.remembered.clone());
        let frozen = most.filter(|_| state == Some(TaskState::Frozen));
        Ok((denials.into_iter().map(|denial| denial.remembered).collect(), frozen))
    }

    /// Says what a denial adds to the memory of its task.
    pub(crate) fn after_decision(&self, action: &Action, decision: &Decision) -> Result<Met, EngineError> {
        let Decision::Deny(denial) = decision else { return Ok(Met::default()) };
        let known = self.store().read(|reader| reader.denials(action.task()))?;
        let effects = of_words(action, denial);
        let mut met = self.met(&known, &effects, way_of(action), action.task(), false)?;
        let new = first_time(&known, action, denial);
        met.denials.extend(new.denials);
        met.events.extend(new.events);
        Ok(met)
    }

    /// Says what an action that ran did although it was denied before.
    pub(crate) fn after_run(
        &self,
        run: &Run,
        tool: &Tool,
        observed: &Observed,
        report: &Report,
    ) -> Result<Met, EngineError> {
        let known = self.store().read(|reader| reader.denials(&run.task))?;
        if known.is_empty() || run.start.is_helper {
            return Ok(Met::default());
        }
        let effects = of_observation(&run.start.workspace.path, observed, report);
        self.met(&known, &effects, way(tool), &run.task, true)
    }

    /// Finds what of the effects was denied before, and counts the way.
    fn met(
        &self,
        known: &[StoredDenial],
        effects: &BTreeSet<Effect>,
        way: Digest,
        task: &TaskId,
        observed: bool,
    ) -> Result<Met, EngineError> {
        let mut met = Met::default();
        // What is remembered has tokens where secrets were, so what is met is compared as it would be remembered.
        let mut all = effects.clone();
        for effect in effects {
            all.extend(self.store().as_kept("an effect", effect)?);
        }
        for denial in known {
            let Some(effect) = all.iter().find(|effect| effect.does(&denial.remembered.effect)) else {
                continue;
            };
            let mut denial = denial.clone();
            denial.ways.insert(way);
            let ways = denial.ways.len().saturating_sub(1);
            met.events.push(Event::DenialMet {
                effect: effect.clone(),
                reason: denial.remembered.reason.clone(),
                first: denial.first.clone(),
                observed,
                ways: u32::try_from(ways).unwrap_or(u32::MAX),
            });
            met.freezes |= ways >= WAYS_MAX;
            met.denials.push(denial);
        }
        let is_open = || -> Result<bool, EngineError> {
            let task = self.store().read(|reader| reader.task(task))?;
            Ok(task.is_some_and(|task| task.state == TaskState::Open))
        };
        met.freezes = met.freezes && is_open()?;
        if met.freezes {
            let what = met.denials.iter().map(|denial| denial.remembered.effect.to_string());
            let what = what.collect::<Vec<_>>().join("; ");
            met.events.push(Event::TaskFrozen {
                why: format!("was denied and tried in {WAYS_MAX} other ways: {what}"),
            });
        }
        Ok(met)
    }

    /// Opens a frozen task again: what was denied in it stays denied, and is counted anew.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn thaw(&self, task: &Task) -> Result<(), EngineError> {
        let state = TaskState::Open;
        self.record(&about(&task.id), &Event::TaskState { state }, |writer, time| {
            writer.forget_ways(&task.id)?;
            writer.set_task_state(&task.id, state, time)
        })
    }
}

/// Remembers the effects of a denial.
fn first_time(known: &[StoredDenial], action: &Action, denial: &Denial) -> Met {
    let room = REMEMBERED_MAX.saturating_sub(known.len());
    let record = denial.record();
    let told = |effect: &&Effect| {
        let known = known.iter().any(|before| effect.does(&before.remembered.effect));
        !known && !matches!(effect, Effect::Unknown { .. })
    };
    let denials: Vec<StoredDenial> = denial
        .effects()
        .iter()
        .filter(told)
        .take(room)
        .map(|effect| StoredDenial {
            first: action.id().clone(),
            remembered: Remembered {
                effect: effect.clone(),
                reason: record.reason.clone(),
                rules: record.rules.clone(),
                advice: record.advice.clone(),
                person_may_allow: record.person_may_allow,
            },
            ways: [way_of(action)].into(),
        })
        .collect();
    let effects: Vec<Effect> = denials.iter().map(|denial| denial.remembered.effect.clone()).collect();
    let events = if effects.is_empty() {
        Vec::new()
    } else {
        vec![Event::DenialRemembered { effects, reason: record.reason.clone() }]
    };
    Met { denials, events, freezes: false }
}

/// Returns what an action that was denied would have done, as far as its words say.
fn of_words(action: &Action, denial: &Denial) -> BTreeSet<Effect> {
    let mut effects: BTreeSet<Effect> = denial.effects().iter().cloned().collect();
    effects.extend(crate::describe(action).declared.into_iter().flatten());
    let writes = action.request().tool.writes().iter();
    effects.extend(writes.map(|path| Effect::Write { place: Place::Path(path.clone()) }));
    effects
}

/// Returns what an action was seen to do: with the words of every program that it started, and what it left.
fn of_observation(workspace: &std::path::Path, observed: &Observed, report: &Report) -> BTreeSet<Effect> {
    // The first word is what the caller says; the file is what ran.
    let by_file = |program: &ProgramStart| {
        std::iter::once(&program.file).chain(program.argv.iter().skip(1)).cloned().collect()
    };
    let starts = observed.programs.iter().flat_map(|program| [program.argv.clone(), by_file(program)]);
    // A build starts the same many times: each is read once.
    let starts: BTreeSet<Vec<OsText>> = starts.collect();
    let read = |argv: &Vec<OsText>| {
        effects::of_command(effects::Command { argv, directory: None, workspace, variables: &[] })
    };
    let mut effects: BTreeSet<Effect> = starts.iter().flat_map(read).collect();
    let address =
        |attempt: &model::evidence::ConnectionAttempt| Effect::Connect { host: attempt.address.clone() };
    effects.extend(observed.connections.iter().map(address));
    let mut classes = std::collections::BTreeMap::new();
    for change in &report.changes {
        effects.extend(reference(&change.path));
        let place = Place::Path(change.path.clone());
        effects.insert(match change.kind {
            ChangeKind::Deleted => Effect::Delete { place },
            ChangeKind::Created | ChangeKind::Modified => Effect::Write { place },
        });
        let codes: Classes =
            classify(&change.path).into_iter().map(|class| class.code().to_owned()).collect();
        classes.insert(change.path.clone(), codes);
    }
    effects.extend(controls(&classes));
    effects
}

/// Returns what it means that a file of git's references was written.
fn reference(path: &WorkspacePath) -> Option<Effect> {
    let names = [".git/refs/heads/", ".git/refs/tags/"];
    let name = names.iter().find_map(|place| path.as_bytes().strip_prefix(place.as_bytes()))?;
    let reference = String::from_utf8_lossy(name).into_owned();
    Some(Effect::ChangeRef { repository: ".".to_owned(), reference, forced: true })
}

/// Tells one way of asking from another: by tool and arguments, whatever layers it starts from.
fn way_of(action: &Action) -> Digest {
    way(&action.request().tool)
}

fn way(tool: &Tool) -> Digest {
    let mut canonical = Canonical::new("fumehood way 1");
    canonical.value(tool).digest()
}
