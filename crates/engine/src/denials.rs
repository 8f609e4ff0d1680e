//! The memory of denials: what was denied in a task is denied however it is asked for, and trying too many ways stops it.
//!
//! Guarantees: what policy forbids as an effect is remembered for the task, on the record. Another command with that effect
//! gets the same reason code, whether its words say so (then it does not run) or it was seen while it ran (then what it
//! wrote is not kept). After [`WAYS_MAX`] other ways the task is frozen, and a person has to resume it. What an action is seen
//! to do is decided as what it says: where policy refuses that for good, nothing of it is kept either.
//! Leaves to others: reading effects from words (`effects`), and what is denied (`gate`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gate::{Classes, Decision, Denial, Facts, Remembered, controls};
use inspect::Report;
use inspect::protected::classify;
use model::action::Principal;
use model::egress::{Attempt, Door};
use model::event::Event;
use model::evidence::{Observed, ProgramStart};
use model::task::{Task, TaskState};
use model::{
    Action, ActionId, Canonical, ChangeKind, Digest, Effect, OsText, Place, TaskId, Tool, WorkspacePath,
};

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
    /// Whether more was changed than could be looked at.
    too_much: bool,
}

impl Met {
    pub(crate) fn is_empty(&self) -> bool {
        self.denials.is_empty() && !self.too_much
    }

    /// Returns the events that record it.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    fn add(&mut self, more: Self) {
        self.denials.extend(more.denials);
        self.events.extend(more.events);
        self.freezes |= more.freezes;
        self.too_much |= more.too_much;
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
        let (by_denials, denials) = self.store().read(|reader| {
            // Whoever else froze it gave another reason.
            let by_denials = match reader.task(task)? {
                Some(task) => task.state == TaskState::Frozen && reader.freeze(&task)?.is_none(),
                None => false,
            };
            Ok((by_denials, reader.denials(task)?))
        })?;
        let most =
            denials.iter().max_by_key(|denial| denial.ways.len()).map(|denial| denial.remembered.clone());
        let frozen = most.filter(|_| by_denials);
        Ok((denials.into_iter().map(|denial| denial.remembered).collect(), frozen))
    }

    /// Says what a denial adds to the memory of its task.
    pub(crate) fn after_decision(&self, action: &Action, decision: &Decision) -> Result<Met, EngineError> {
        let Decision::Deny(denial) = decision else { return Ok(Met::default()) };
        let known = self.store().read(|reader| reader.denials(action.task()))?;
        let effects = of_words(action, denial);
        let mut met = self.met(&known, &effects, way_of(action), action.task(), false)?;
        met.add(first_time(&known, action, denial));
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
        let Some(by) = run.pending.as_ref().filter(|by| by.service.is_none()) else {
            return Ok(Met::default());
        };
        let known = self.store().read(|reader| reader.denials(&run.task))?;
        let behind = self.git_writes(&run.task, &run.action)?;
        let (files, classes) = of_changes(report, &behind);
        let mut all = of_programs(&run.start.workspace.path, observed);
        all.extend(files.iter().cloned());
        all.retain(|effect| !was_let_out(effect, observed));
        all.extend(refused_by_gateway(observed));
        let mut met = self.met(&known, &all, way(tool), &run.task, true)?;
        let facts = Facts { classes, ..by.facts.clone() };
        // Words say what a program was to do. Here counts what happened: what was started, and what is changed now.
        let happened: BTreeSet<Effect> = files.into_iter().chain(started(observed)).collect();
        let refused = by.gate.refused_of(&by.action, by.action.grant(), &facts, &happened);
        met.add(first_seen(&known, run, tool, refused));
        if report.unlisted > 0 && by.gate.refused_of_some_changes(&by.action, by.action.grant(), &facts) {
            met.add(too_much_to_see(run));
        }
        Ok(met)
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
                by: None,
            });
        }
        Ok(met)
    }

    /// Opens a frozen task again: what was denied in it stays denied, and is counted anew.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn thaw(&self, task: &Task, by: &Principal) -> Result<(), EngineError> {
        let state = TaskState::Open;
        let event = Event::TaskState { state, by: Some(by.clone()) };
        self.record(&about(&task.id), &event, |writer, time| {
            writer.forget_ways(&task.id)?;
            writer.thaw_task(&task.id, time)
        })
    }
}

/// Remembers the effects of a denial.
fn first_time(known: &[StoredDenial], action: &Action, denial: &Denial) -> Met {
    let record = denial.record();
    let remembered = denial.effects().iter().map(|effect| Remembered {
        effect: effect.clone(),
        reason: record.reason.clone(),
        rules: record.rules.clone(),
        advice: record.advice.clone(),
        person_may_allow: record.person_may_allow,
    });
    let denials = new_denials(known, action.id(), way_of(action), remembered);
    let effects: Vec<Effect> = denials.iter().map(|denial| denial.remembered.effect.clone()).collect();
    let reason = record.reason.clone();
    let events = (!effects.is_empty()).then_some(Event::DenialRemembered { effects, reason });
    Met { denials, events: events.into_iter().collect(), ..Met::default() }
}

/// Remembers what an action was seen to do and policy refuses, and says that it was seen.
fn first_seen(known: &[StoredDenial], run: &Run, tool: &Tool, refused: Vec<Remembered>) -> Met {
    let denials = new_denials(known, &run.action, way(tool), refused);
    let seen = denials.iter().flat_map(|denial| {
        let Remembered { effect, reason, .. } = denial.remembered.clone();
        let remembered = Event::DenialRemembered { effects: vec![effect.clone()], reason: reason.clone() };
        [remembered, Event::DenialMet { effect, reason, first: run.action.clone(), observed: true, ways: 0 }]
    });
    let events = seen.collect();
    Met { denials, events, ..Met::default() }
}

/// Says that an action changed more than can be listed: what is not listed cannot be held against the rules.
fn too_much_to_see(run: &Run) -> Met {
    let (effect, reason) = (Effect::Write { place: Place::Anywhere }, "more-changes-than-listed".to_owned());
    let event = Event::DenialMet { effect, reason, first: run.action.clone(), observed: true, ways: 0 };
    Met { events: vec![event], too_much: true, ..Met::default() }
}

/// Returns what is new to a task among what it was denied.
fn new_denials(
    known: &[StoredDenial],
    first: &ActionId,
    way: Digest,
    denied: impl IntoIterator<Item = Remembered>,
) -> Vec<StoredDenial> {
    let is_new = |denied: &Remembered| {
        let known = known.iter().any(|before| denied.effect.does(&before.remembered.effect));
        !known && !matches!(denied.effect, Effect::Unknown { .. })
    };
    let stored = |remembered| StoredDenial { first: first.clone(), remembered, ways: [way].into() };
    let room = REMEMBERED_MAX.saturating_sub(known.len());
    denied.into_iter().filter(is_new).take(room).map(stored).collect()
}

/// Returns what an action that was denied would have done, as far as its words say.
fn of_words(action: &Action, denial: &Denial) -> BTreeSet<Effect> {
    let mut effects: BTreeSet<Effect> = denial.effects().iter().cloned().collect();
    effects.extend(crate::describe(action).declared.into_iter().flatten());
    let writes = action.request().tool.writes().iter();
    effects.extend(writes.map(|path| Effect::Write { place: Place::Path(path.clone()) }));
    effects
}

/// Returns the programs that an action was seen to start, by their files.
fn started(observed: &Observed) -> impl Iterator<Item = Effect> {
    let run = |program: &ProgramStart| Effect::Run { program: program.file.to_string() };
    observed.programs.iter().map(run)
}

/// Returns what an action was seen to try, by the words of every program that it started and by its connections.
fn of_programs(workspace: &Path, observed: &Observed) -> BTreeSet<Effect> {
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
    effects
}

/// Tells whether the gateway let an action reach what it said that it would: then a rule of its grant allows it now,
/// whatever was denied before.
fn was_let_out(effect: &Effect, observed: &Observed) -> bool {
    let let_out = |attempt: &&Attempt| attempt.door != Door::Dns && !attempt.is_refused();
    matches!(effect, Effect::Connect { .. })
        && attempts(observed).filter(let_out).filter_map(reached).any(|allowed| allowed.does(effect))
}

/// Returns what the gateway refused, by name: addresses inside only stand for names.
fn refused_by_gateway(observed: &Observed) -> impl Iterator<Item = Effect> {
    attempts(observed).filter(|attempt| attempt.is_refused()).filter_map(reached)
}

fn attempts(observed: &Observed) -> impl Iterator<Item = &Attempt> {
    observed.network.iter().flat_map(|network| &network.attempts).map(|one| &one.attempt)
}

fn reached(attempt: &Attempt) -> Option<Effect> {
    let name = attempt.name.clone()?;
    let port = attempt.port.filter(|_| !name.contains(':'));
    Some(Effect::Connect { host: port.map_or_else(|| name.clone(), |port| format!("{name}:{port}")) })
}

/// Returns what is changed by an action, and the classes of every path. `behind` are files of git's own that it wrote behind a
/// linked worktree.
fn of_changes(report: &Report, behind: &[OsText]) -> (BTreeSet<Effect>, BTreeMap<WorkspacePath, Classes>) {
    let mut effects: BTreeSet<Effect> = behind.iter().filter_map(|name| reference(name.as_bytes())).collect();
    let mut classes = BTreeMap::new();
    for change in &report.changes {
        effects.extend(change.path.as_bytes().strip_prefix(b".git/").and_then(reference));
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
    (effects, classes)
}

/// Returns what it means that a file of git's own, by its name from git's directory, was written. Which of the packed references
/// moved is not looked at.
fn reference(name: &[u8]) -> Option<Effect> {
    let reference = match name {
        b"packed-refs" => "*".to_owned(),
        name => {
            let places: [&[u8]; 2] = [b"refs/heads/", b"refs/tags/"];
            let name = places.iter().find_map(|place| name.strip_prefix(*place))?;
            String::from_utf8_lossy(name).into_owned()
        }
    };
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
