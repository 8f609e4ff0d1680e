//! Tasks in the database.

use model::action::Base;
use model::task::{Task, TaskState, WorkspaceKey};
use model::{TaskId, Timestamp};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::prefix::Named;
use super::row::{Json, Raw, Unsigned, Value, Word, json, time};
use super::{Reader, Writer};

const COLUMNS: &str = "tasks.id, path, device, inode, base, owner, title, tasks.state, opened";

const NAMED: Named = Named { kind: "task", prefix: "task-", table: "tasks", listing: "task list" };

/// A task with what a list shows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOverview {
    /// The task.
    pub task: Task,
    /// Actions that were asked for.
    pub actions: u64,
    /// Layers that it stands on.
    pub layers: u64,
    /// When its newest action was asked for.
    pub last_action: Option<Timestamp>,
}

impl Reader<'_> {
    /// Returns the task of this name, when there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn task(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
        Ok(self.tasks_by(&sql, [id.as_str()])?.pop())
    }

    /// Returns the task with this id, or with this start of it when only one has it.
    ///
    /// # Errors
    /// When there is none, or more than one, or it cannot be read.
    pub fn find_task(&self, given: &str) -> Result<Task, StoreError> {
        let id = NAMED.find(self.connection, given)?;
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
        self.tasks_by(&sql, [id])?.pop().ok_or_else(|| NAMED.not_found(given))
    }

    /// Returns the open task of a workspace: the one that was opened or resumed last, when there are several.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open_task(&self, workspace: &WorkspaceKey) -> Result<Option<Task>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tasks WHERE device = ?1 AND inode = ?2 AND path = ?3 AND state = ?4 \
             ORDER BY activated DESC, id DESC LIMIT 1"
        );
        let open = TaskState::Open.to_string();
        let (device, inode) = (workspace.device.cast_signed(), workspace.inode.cast_signed());
        Ok(self.tasks_by(&sql, params![device, inode, workspace.path.as_bytes(), open])?.pop())
    }

    /// Returns the tasks in a state, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tasks_in_state(&self, state: TaskState) -> Result<Vec<Task>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE state = ?1 ORDER BY opened");
        self.tasks_by(&sql, [state.to_string()])
    }

    fn tasks_by(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<Task>, StoreError> {
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_map(parameters, task)?.collect::<Result<_, _>>()?)
    }

    /// Returns all tasks, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tasks(&self) -> Result<Vec<TaskOverview>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS}, (SELECT count(*) FROM actions WHERE task = tasks.id), \
             (SELECT count(*) FROM layers WHERE task = tasks.id AND state = 'kept'), \
             (SELECT max(created) FROM actions WHERE task = tasks.id) \
             FROM tasks ORDER BY opened DESC, tasks.id"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let overview = |row: &Row<'_>| {
            Ok(TaskOverview {
                task: task(row)?,
                actions: row.get::<_, Unsigned>(9)?.0,
                layers: row.get::<_, Unsigned>(10)?.0,
                last_action: row.get::<_, Option<Raw<Timestamp>>>(11)?.map(|time| time.0),
            })
        };
        Ok(select.query_map([], overview)?.collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    /// Adds a task.
    ///
    /// # Errors
    /// When there is one of this name, or it cannot be written.
    pub fn insert_task(&self, task: &Task) -> Result<(), StoreError> {
        let sql = "INSERT INTO tasks (id, path, device, inode, base, owner, title, state, opened, activated) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)";
        self.connection.prepare_cached(sql)?.execute(params![
            task.id.as_str(),
            task.workspace.path.as_bytes(),
            task.workspace.device.cast_signed(),
            task.workspace.inode.cast_signed(),
            json("a base", &task.base)?,
            json("an owner", &task.owner)?,
            task.title.as_deref().map(|title| self.text(title)),
            task.state.to_string(),
            time(task.opened),
        ])?;
        Ok(())
    }

    /// Brings a task to a state. One that is opened again becomes the open task of its workspace. A frozen one stays frozen
    /// until it is thawed, discarded or applied, which are for people: nothing that ends meanwhile opens or stops it.
    ///
    /// # Errors
    /// When there is no such task, it is frozen, or it cannot be written.
    pub fn set_task_state(&self, id: &TaskId, state: TaskState, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE tasks SET state = ?2, frozen = iif(?2 = 'frozen', frozen, NULL), \
                   activated = iif(?2 = 'open', ?3, activated) \
                   WHERE id = ?1 AND (state != 'frozen' OR ?2 IN ('frozen', 'discarded', 'applied'))";
        let changed = self.connection.prepare_cached(sql)?.execute(params![
            id.as_str(),
            state.to_string(),
            time(now)
        ])?;
        if changed == 0 { Err(self.not_moved(id)) } else { Ok(()) }
    }

    /// Opens a frozen task again.
    ///
    /// # Errors
    /// When there is no such task, it is not frozen any more, or it cannot be written.
    pub fn thaw_task(&self, id: &TaskId, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE tasks SET state = 'open', frozen = NULL, activated = ?2 WHERE id = ?1 AND state = 'frozen'";
        let changed = self.connection.prepare_cached(sql)?.execute(params![id.as_str(), time(now)])?;
        if changed == 0 { Err(self.not_moved(id)) } else { Ok(()) }
    }

    /// Puts a commit below a task that has no layer yet, and opens it.
    ///
    /// # Errors
    /// When there is no such task, it was frozen or ended meanwhile, or it cannot be written.
    pub fn set_base(&self, id: &TaskId, base: &Base, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE tasks SET base = ?2 WHERE id = ?1 AND state IN ('stopped', 'open')";
        let changed =
            self.connection.prepare_cached(sql)?.execute([id.as_str(), json("a base", base)?.as_str()])?;
        if changed == 0 { Err(self.not_moved(id)) } else { self.set_task_state(id, TaskState::Open, now) }
    }

    /// Says why a task did not come to another state.
    fn not_moved(&self, id: &TaskId) -> StoreError {
        match self.task(id) {
            Ok(Some(task)) => StoreError::TaskState { task: id.clone(), state: task.state },
            Ok(None) => NAMED.not_found(id.as_str()),
            Err(error) => error,
        }
    }
}

fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get::<_, Value<TaskId>>(0)?.0,
        workspace: WorkspaceKey {
            path: row.get::<_, Raw<model::OsText>>(1)?.0,
            device: row.get::<_, Unsigned>(2)?.0,
            inode: row.get::<_, Unsigned>(3)?.0,
        },
        base: row.get::<_, Json<_>>(4)?.0,
        owner: row.get::<_, Json<_>>(5)?.0,
        title: row.get(6)?,
        state: row.get::<_, Word<TaskState>>(7)?.0,
        opened: row.get::<_, Raw<Timestamp>>(8)?.0,
    })
}
