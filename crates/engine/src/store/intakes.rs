//! What was wanted of tasks, in the database. There is no way to change it: a row is written with its task.

use std::time::Duration;

use model::intake::{Intake, Used};
use model::{Event, TaskId, Timestamp, Usage};
use rusqlite::{OptionalExtension as _, Row, params};

use super::error::StoreError;
use super::row::{Json, Raw, Unsigned, Value, time};
use super::{Reader, Writer};
use crate::deadline::Deadline;

/// What was wanted of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIntake {
    /// The task that it was written for: forks of it share its budget.
    pub root: TaskId,
    /// What was wanted.
    pub intake: Intake,
    /// When that was said.
    pub opened: Timestamp,
    /// When it ends.
    pub deadline: Option<Deadline>,
}

impl Reader<'_> {
    /// Returns what was wanted of a task, when somebody said that.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn intake(&self, task: &TaskId) -> Result<Option<StoredIntake>, StoreError> {
        let sql = "SELECT root, body, opened, expires, boot, expires_boot FROM intakes WHERE task = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_one([task.as_str()], intake).optional()?)
    }

    /// Returns what a task, the one that it was forked from, and all forks of that used together.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn used(&self, root: &TaskId) -> Result<Used, StoreError> {
        let mut used = Used::default();
        let sql = "SELECT usage FROM actions WHERE class = 'action' AND state IN ('started', 'ended', 'tried', 'unknown') \
                   AND task IN (SELECT task FROM intakes WHERE root = ?1)";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map([root.as_str()], |row| row.get::<_, Option<Json<Usage>>>(0))?;
        for usage in rows {
            used.actions += 1;
            used.processor_time += usage?.map_or(Duration::ZERO, |usage| usage.0.cpu_time);
        }
        used.tokens = self.tokens(root)?;
        Ok(used)
    }

    fn tokens(&self, root: &TaskId) -> Result<u64, StoreError> {
        let mut select = self.connection.prepare_cached("SELECT task FROM intakes WHERE root = ?1")?;
        let tasks = select.query_map([root.as_str()], |row| row.get::<_, Value<TaskId>>(0))?;
        let tasks: Vec<TaskId> = tasks.map(|task| Ok(task?.0)).collect::<Result<_, rusqlite::Error>>()?;
        let mut sum = 0_u64;
        for task in tasks {
            for record in self.records_of_task_itself(&task)? {
                if let Ok(Event::ModelTurn { tokens, .. }) = record.parse_event() {
                    let all = [tokens.prompt_cache_hit, tokens.prompt_cache_miss, tokens.completion];
                    sum = all.iter().fold(sum, |sum, part| sum.saturating_add(*part));
                }
            }
        }
        Ok(sum)
    }
}

impl Writer<'_> {
    /// Refuses a write in which a stage of a task does not follow on the one before it.
    ///
    /// # Errors
    /// When that is so, or they cannot be read.
    pub fn check_stages(&self, task: &TaskId) -> Result<(), StoreError> {
        crate::stages::in_order(self.stages(task)?)
    }

    /// Keeps what is wanted of a task.
    ///
    /// # Errors
    /// When the task has such already, or it cannot be written.
    pub fn insert_intake(&self, task: &TaskId, stored: &StoredIntake) -> Result<(), StoreError> {
        let sql = "INSERT INTO intakes (task, root, body, opened, expires, boot, expires_boot) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let deadline = stored.deadline.as_ref();
        self.connection.prepare_cached(sql)?.execute(params![
            task.as_str(),
            stored.root.as_str(),
            self.json("an intake", &stored.intake)?,
            time(stored.opened),
            deadline.map(|deadline| time(deadline.wall)),
            deadline.map(|deadline| &deadline.boot),
            deadline.map(|deadline| deadline.since_boot.cast_signed()),
        ])?;
        Ok(())
    }

    /// Lets a fork have what was wanted of the task that it came from.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn share_intake(&self, from: &TaskId, to: &TaskId) -> Result<(), StoreError> {
        let sql = "INSERT INTO intakes (task, root, body, opened, expires, boot, expires_boot) \
                   SELECT ?2, root, body, opened, expires, boot, expires_boot FROM intakes WHERE task = ?1";
        self.connection.prepare_cached(sql)?.execute([from.as_str(), to.as_str()])?;
        Ok(())
    }
}

fn intake(row: &Row<'_>) -> rusqlite::Result<StoredIntake> {
    let wall = row.get::<_, Option<Raw<Timestamp>>>(3)?.map(|time| time.0);
    let boot: Option<String> = row.get(4)?;
    let since_boot = row.get::<_, Option<Unsigned>>(5)?.map(|since| since.0);
    let deadline = wall.zip(boot).zip(since_boot);
    Ok(StoredIntake {
        root: row.get::<_, Value<TaskId>>(0)?.0,
        intake: row.get::<_, Json<Intake>>(1)?.0,
        opened: row.get::<_, Raw<Timestamp>>(2)?.0,
        deadline: deadline.map(|((wall, boot), since_boot)| Deadline { wall, boot, since_boot }),
    })
}
