//! What is kept in the database: content, conversations, and what was found in files that have not changed.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{ContentClass, Digest, Event, KeptClass, RemovedOf, Subject, TaskId, Timestamp};

use super::{Collection, NAMED_AT_ONCE, covers, cutoff};
use crate::Engine;
use crate::error::EngineError;
use crate::store::{KeptContent, LegalHolds, Reader, RetainedTask, StoreError};
use crate::tasks::about;

/// What is said of something of one or several tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Needed,
    Held,
    Free { is_incident: bool },
}

/// The tasks that were looked at, so that each is read once.
#[derive(Default)]
struct Tasks(BTreeMap<TaskId, Option<RetainedTask>>);

impl Tasks {
    fn get(&mut self, reader: &Reader<'_>, task: &TaskId) -> Result<Option<&RetainedTask>, StoreError> {
        if !self.0.contains_key(task) {
            self.0.insert(task.clone(), reader.retained(task)?);
        }
        Ok(self.0.get(task).and_then(Option::as_ref))
    }

    fn standing(
        &mut self,
        reader: &Reader<'_>,
        holds: &LegalHolds,
        tasks: &[TaskId],
    ) -> Result<Standing, StoreError> {
        let (mut held, mut is_incident) = (false, false);
        for task in tasks {
            let Some(retained) = self.get(reader, task)? else { continue };
            if retained.goes_on() {
                return Ok(Standing::Needed);
            }
            held |= covers(holds, &retained.task, None);
            is_incident |= retained.has_incident();
        }
        Ok(if held { Standing::Held } else { Standing::Free { is_incident } })
    }
}

impl Engine {
    /// Removes rows whose retention is over.
    pub(super) fn collect_rows(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        self.store().overwrite_what_goes()?;
        self.collect_contents(collection)?;
        self.collect_transcripts(collection)?;
        self.collect_scans(collection)?;
        if !collection.dry_run {
            self.store().give_back()?;
        }
        Ok(())
    }

    fn collect_contents(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        for class in ContentClass::IN_ROWS {
            let going = self.contents_going(collection, class)?;
            for names in going.chunks(NAMED_AT_ONCE) {
                let bytes = self.store().rehearse(|writer| writer.drop_contents(class, names))?;
                if !collection.dry_run {
                    let removed = RemovedOf {
                        class: KeptClass::Contexts,
                        names: names.iter().map(ToString::to_string).collect(),
                        bytes,
                    };
                    let event = removed_rows(removed);
                    let recorded = self.record(&Subject::default(), &event, |writer, _| {
                        self.still_free(writer, class, names)?;
                        writer.drop_contents(class, names).map(drop)
                    });
                    if let Err(error) = recorded {
                        if super::files::is_needed(&error) {
                            continue;
                        }
                        return Err(error);
                    }
                }
                collection.garbage.add(KeptClass::Contexts, names.len(), bytes);
            }
        }
        Ok(())
    }

    /// Refuses to let content go that somebody came to need.
    fn still_free(
        &self,
        reader: &Reader<'_>,
        class: ContentClass,
        names: &[Digest],
    ) -> Result<(), StoreError> {
        let (holds, mut tasks) = (reader.legal_holds()?, Tasks::default());
        for content in reader.contents(class)?.iter().filter(|content| names.contains(&content.digest)) {
            if !matches!(tasks.standing(reader, &holds, &content.tasks)?, Standing::Free { .. }) {
                return Err(StoreError::Needed { place: content.digest.to_string().into() });
            }
        }
        Ok(())
    }

    fn contents_going(
        &self,
        collection: &mut Collection<'_>,
        class: ContentClass,
    ) -> Result<Vec<Digest>, EngineError> {
        let age = collection.retention.age(KeptClass::Contexts);
        let (mut going, mut younger) = (Vec::new(), Vec::new());
        for (content, standing) in self.standings(class)? {
            let Some(since) = free(collection, content.kept, age, standing) else { continue };
            match since {
                Over::Yes => going.push(content.digest),
                Over::WhenTooMuch => younger.push(content.digest),
            }
        }
        let Some(most) = collection.retention.most(KeptClass::Contexts) else { return Ok(going) };
        // What goes of what others share comes free with the last of them, so it has to be tried.
        let step = younger.len().div_ceil(16).max(1);
        let mut younger = younger.into_iter();
        while self.store().rehearse(|writer| {
            writer.drop_contents(class, &going)?;
            writer.content_bytes(class)
        })? > most
        {
            let before = going.len();
            going.extend(younger.by_ref().take(step));
            if going.len() == before {
                break;
            }
        }
        Ok(going)
    }

    fn standings(&self, class: ContentClass) -> Result<Vec<(KeptContent, Standing)>, EngineError> {
        Ok(self.store().read(|reader| {
            let (holds, mut tasks) = (reader.legal_holds()?, Tasks::default());
            let contents = reader.contents(class)?.into_iter();
            contents
                .map(|content| {
                    let standing = tasks.standing(reader, &holds, &content.tasks)?;
                    Ok((content, standing))
                })
                .collect()
        })?)
    }

    fn collect_transcripts(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        let class = KeptClass::Transcripts;
        let age = collection.retention.age(class);
        for (task, bytes) in self.store().read(|reader| reader.transcripts())? {
            let (retained, standing) = self.store().read(|reader| {
                let mut tasks = Tasks::default();
                let standing = tasks.standing(reader, &reader.legal_holds()?, std::slice::from_ref(&task))?;
                Ok((reader.retained(&task)?, standing))
            })?;
            let Some(retained) = retained else { continue };
            if !matches!(free(collection, retained.touched, age, standing), Some(Over::Yes)) {
                continue;
            }
            if !collection.dry_run {
                let event = removed_rows(RemovedOf { class, names: vec![task.to_string()], bytes });
                let recorded = self.record(&about(&task), &event, |writer, _| {
                    let standing = Tasks::default().standing(
                        writer,
                        &writer.legal_holds()?,
                        std::slice::from_ref(&task),
                    )?;
                    match standing {
                        Standing::Free { .. } => writer.drop_transcript(&task),
                        _ => Err(StoreError::Needed { place: task.as_str().into() }),
                    }
                });
                match recorded {
                    Err(error) if super::files::is_needed(&error) => continue,
                    other => other?,
                }
            }
            collection.garbage.add(class, 1, bytes);
        }
        Ok(())
    }

    /// Forgets what was found in files that nobody looked at for long. It is found again, so nobody has to be told.
    fn collect_scans(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        let before = cutoff(collection.retention.age(KeptClass::Caches));
        let (number, bytes) = self.store().read(|reader| reader.scans_before(before))?;
        if number > 0 {
            collection.garbage.add(KeptClass::Caches, number, bytes);
        }
        if !collection.dry_run && number > 0 {
            self.store().write(|writer| writer.forget_scans(before))?;
        }
        Ok(())
    }
}

/// Whether the retention of something is over.
enum Over {
    Yes,
    /// When there is more of it than may be kept.
    WhenTooMuch,
}

/// Says of something whether it goes; nothing when it stays in any case.
fn free(
    collection: &mut Collection<'_>,
    since: Timestamp,
    age: Duration,
    standing: Standing,
) -> Option<Over> {
    let is_incident = match standing {
        Standing::Needed => return None,
        Standing::Held => {
            collection.garbage.held += 1;
            return None;
        }
        Standing::Free { is_incident } => is_incident,
    };
    let least = if is_incident { collection.retention.incidents() } else { Duration::ZERO };
    if since < cutoff(age.max(least)) {
        return Some(Over::Yes);
    }
    collection.garbage.incidents += u64::from(since < cutoff(age));
    (since < cutoff(least)).then_some(Over::WhenTooMuch)
}

fn removed_rows(removed: RemovedOf) -> Event {
    Event::Removed { layers: Vec::new(), bases: Vec::new(), classes: vec![removed] }
}
