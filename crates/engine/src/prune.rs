//! Pruning the record: the content of older events goes, and a stub that can be checked stays in its place.
//!
//! Guarantees: only content of events of the classes that can be pruned goes, of tasks that cannot go on and that no legal
//! hold covers, asked again within the write that takes it out; that write also holds the event that names every record
//! of it, so that one is never there without the other; a record that is not as it was written is left as it is, and ends
//! the prune. The rows that say the same as a pruned event lose it too.
//! Leaves to others: who may prune (`fumehood`), how stubs are checked (`audit`), and copies elsewhere: exports, backups.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use audit::Record;
use model::action::Principal;
use model::event::Event;
use model::{EventClass, RecordRange, Subject, TaskId};

use crate::Engine;
use crate::error::EngineError;
use crate::fail_point::reached;
use crate::gc::{Removed, covers, cutoff, is_needed};
use crate::lock::Lock;
use crate::store::{LegalHolds, Reader, RetainedTask, StoreError};

/// Records of one event of a prune at most: it has to have a place on the record, and others wait for its write.
const AT_ONCE: usize = 5000;

/// What is to be pruned.
pub struct PruneOrder {
    /// How old the events of each class have to be; a class that is not in it stays.
    pub ages: BTreeMap<EventClass, Duration>,
    /// How old those about what failed, was denied or tried what is not allowed have to be at least.
    pub incidents: Duration,
    /// Who wants it.
    pub by: Principal,
    /// Why.
    pub reason: String,
    /// Whether it is only looked at.
    pub dry_run: bool,
}

/// A record whose content is to go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Going {
    /// Its number.
    seq: u64,
    /// Its task.
    task: TaskId,
    /// The bytes of its content.
    bytes: u64,
}

/// What was, or would be, pruned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prune {
    /// How many events of each class, and the bytes of their content.
    pub classes: BTreeMap<EventClass, Removed>,
    /// Which records.
    pub records: Vec<RecordRange>,
    /// Events that stay for a legal hold alone.
    pub held: u64,
    /// Events that stay for a while because of what they are about.
    pub incidents: u64,
    /// Events that stay because their record is of a format whose digest is over their text.
    pub whole: u64,
    /// Why copies of what was taken out may still stand in free space of the database.
    pub left: Option<String>,
}

/// What is said of the content of a record.
enum Verdict {
    Stays,
    Held,
    Incident,
    Whole,
    Goes(EventClass),
}

impl Engine {
    /// Takes the content of older events out of the record. `progress` is told how many tasks of how many were looked at.
    ///
    /// # Errors
    /// When the state cannot be read or written, or a record is not as it was written.
    pub fn prune(&self, order: &PruneOrder, progress: &dyn Fn(u64, u64)) -> Result<Prune, EngineError> {
        let place = self.store().directory().join("gc.lock");
        let _one_at_a_time = (!order.dry_run).then(|| Lock::take(&place, || {})).transpose()?;
        let mut prune = Prune::default();
        let going = self.prunable(order, &mut prune, progress)?;
        if order.dry_run {
            prune.records = numbers(&going);
            return Ok(prune);
        }
        self.store().overwrite_what_goes()?;
        let mut gone: BTreeMap<EventClass, Vec<Going>> = BTreeMap::new();
        for (class, records) in &going {
            for records in records.chunks(AT_ONCE) {
                if self.prune_at_once(order, *class, records)? {
                    gone.entry(*class).or_default().extend_from_slice(records);
                } else if let Some(of) = prune.classes.get_mut(class) {
                    of.number -= records.len() as u64;
                    of.bytes -= records.iter().map(|going| going.bytes).sum::<u64>();
                }
            }
        }
        prune.records = numbers(&gone);
        if !prune.records.is_empty() {
            prune.left = self.store().write_anew()?;
        }
        Ok(prune)
    }

    /// Returns the records whose content is to go, by class and in order.
    fn prunable(
        &self,
        order: &PruneOrder,
        prune: &mut Prune,
        progress: &dyn Fn(u64, u64),
    ) -> Result<BTreeMap<EventClass, Vec<Going>>, EngineError> {
        let mut going: BTreeMap<EventClass, Vec<Going>> = BTreeMap::new();
        let tasks = self.store().read(|reader| reader.tasks())?;
        for (number, task) in tasks.iter().map(|overview| &overview.task).enumerate() {
            progress(number as u64, tasks.len() as u64);
            let read = |reader: &Reader<'_>| {
                let retained = reader.retained(&task.id)?.filter(|retained| !retained.goes_on());
                let records = match retained {
                    Some(_) => reader.records_of_task(&task.id)?,
                    None => Vec::new(),
                };
                Ok((reader.legal_holds()?, retained, records))
            };
            let (holds, Some(retained), records) = self.store().read(read)? else { continue };
            for record in records {
                match verdict(order, &holds, &retained, &record) {
                    Verdict::Stays => {}
                    Verdict::Held => prune.held += 1,
                    Verdict::Incident => prune.incidents += 1,
                    Verdict::Whole => prune.whole += 1,
                    Verdict::Goes(class) => {
                        going.entry(class).or_default().push(Going {
                            seq: record.seq,
                            task: task.id.clone(),
                            bytes: record.event.len() as u64,
                        });
                        let of = prune.classes.entry(class).or_default();
                        of.number += 1;
                        of.bytes += record.event.len() as u64;
                    }
                }
            }
        }
        going.values_mut().for_each(|records| records.sort());
        Ok(going)
    }

    /// Prunes records of one class in one write, with the event that names them; tells whether it did. When somebody came
    /// to need one of them meanwhile, all of them stay for the next time.
    fn prune_at_once(
        &self,
        order: &PruneOrder,
        class: EventClass,
        records: &[Going],
    ) -> Result<bool, EngineError> {
        let event = Event::RecordPruned {
            class,
            before: cutoff(order.ages.get(&class).copied().unwrap_or(Duration::MAX)),
            records: RecordRange::of(records.iter().map(|going| going.seq)),
            by: order.by.clone(),
            reason: order.reason.clone(),
        };
        reached("prune: it is known what goes");
        let recorded = self.record(&Subject::default(), &event, |writer, _| {
            let holds = writer.legal_holds()?;
            let mut tasks: BTreeMap<&TaskId, Option<RetainedTask>> = BTreeMap::new();
            for Going { seq, task, .. } in records {
                if !tasks.contains_key(task) {
                    tasks.insert(task, writer.retained(task)?.filter(|retained| !retained.goes_on()));
                }
                let record = writer.record_at(*seq)?;
                let retained = tasks.get(task).and_then(Option::as_ref);
                let goes = retained.is_some_and(|retained| {
                    matches!(verdict(order, &holds, retained, &record), Verdict::Goes(_))
                });
                if !goes {
                    return Err(StoreError::Needed { place: format!("record {seq}").into() });
                }
                let stub = record.pruned().ok_or(StoreError::NotAsWritten { record: *seq })?;
                writer.put_stub(&stub, class)?;
            }
            reached("prune: the stubs are about to be durable");
            Ok(())
        });
        match recorded {
            Err(error) if is_needed(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

fn verdict(order: &PruneOrder, holds: &LegalHolds, retained: &RetainedTask, record: &Record) -> Verdict {
    let Some(class) = EventClass::of(record.name()) else { return Verdict::Stays };
    let action = record.subject.action.as_ref().and_then(|action| retained.actions.get(action));
    let (Some(age), Some(action)) = (order.ages.get(&class), action) else { return Verdict::Stays };
    let is_over = action.finished.is_some() && !action.is_needed;
    if !is_over || record.time >= cutoff(*age) {
        return Verdict::Stays;
    }
    if record.prunable().is_none() {
        return Verdict::Whole;
    }
    if covers(holds, &retained.task, Some(action.ordinal)) {
        return Verdict::Held;
    }
    if action.is_incident && record.time >= cutoff(order.incidents) {
        return Verdict::Incident;
    }
    Verdict::Goes(class)
}

fn numbers(records: &BTreeMap<EventClass, Vec<Going>>) -> Vec<RecordRange> {
    let mut all: Vec<u64> = records.values().flatten().map(|going| going.seq).collect();
    all.sort_unstable();
    RecordRange::of(all)
}
