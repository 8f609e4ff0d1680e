//! Actions in the database: what was asked for, how far it came, and what was seen.

use model::action::{Action, Principal, StartingPoint};
use model::enforcement::Held;
use model::event::{DecisionRecord, HeldBack, OutputRecord, Verdict};
use model::evidence::{Observed, Probe, StepTime, Teardown};
use model::{ActionId, Change, Digest, Ending, Grant, OsText, TaskId, Timestamp, Tool, Usage, WorkspacePath};
use rusqlite::{OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::layers::LayerState;
use super::prefix::Named;
use super::row::{Json, Raw, Unsigned, Value, Word, json, time};
use super::{Reader, Writer};

const COLUMNS: &str = "actions.id, actions.task, ordinal, digest, actions.state, class, request, grant, start, \
                       decision, ending, usage, created, finished, layers.state";
const FROM: &str =
    "FROM actions LEFT JOIN layers ON layers.action = actions.id AND layers.task = actions.task";

const NAMED: Named = Named { kind: "action", prefix: "act-", table: "actions", listing: "log" };

/// How far an action came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionState {
    /// It was parsed and recorded.
    Requested,
    /// The policy allowed it.
    Decided,
    /// The policy did not allow it, or a person must.
    Denied,
    /// It was allowed, and its sandbox could not be built or proved.
    NotStarted,
    /// Its command was started.
    Started,
    /// Its command ended, and what was seen is recorded.
    Ended,
    /// It was tried on a throwaway layer, which is not the task's: it waits for a person's yes, or did not get it.
    Tried,
    /// Nobody saw its end.
    Unknown,
}

impl ActionState {
    /// Returns the word that stands for it, in the database and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Decided => "decided",
            Self::Denied => "denied",
            Self::NotStarted => "not-started",
            Self::Started => "started",
            Self::Ended => "ended",
            Self::Tried => "tried",
            Self::Unknown => "unknown",
        }
    }

    /// Tells whether nothing more will happen to the action.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Requested | Self::Decided | Self::Started)
    }
}

/// An action, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAction {
    /// Its name.
    pub id: ActionId,
    /// Its task.
    pub task: TaskId,
    /// Its place among the actions of the task, from one.
    pub ordinal: u64,
    /// The digest that its record refers to.
    pub digest: Digest,
    /// How far it came.
    pub state: ActionState,
    /// `action` for what was asked for, `internal` for a helper of ours.
    pub class: String,
    /// What was asked for.
    pub request: StoredRequest,
    /// The grant that was asked for.
    pub grant: Grant,
    /// What it started from.
    pub start: StartingPoint,
    /// What was decided.
    pub decision: Option<DecisionRecord>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// What it used.
    pub usage: Option<Usage>,
    /// When it was asked for.
    pub created: Timestamp,
    /// When it came to its last state.
    pub finished: Option<Timestamp>,
    /// Where its layer stands in its own task, when it has one.
    pub layer: Option<LayerState>,
}

/// A request without the values of its environment, which are never written down, and with tokens where secrets were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRequest {
    /// Who asked.
    pub principal: Principal,
    /// What was to be done.
    pub tool: Tool,
    /// Where it started, from the top of the workspace.
    pub directory: Option<WorkspacePath>,
    /// The names of its environment variables, each with a digest of its value under the key of the store.
    pub environment: Vec<(String, Digest)>,
    /// What the asker said it is for.
    pub purpose: Option<String>,
}

/// What was seen of an action. Only what is there is written, and only what was written is read back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Evidence {
    /// How each layer of the sandbox was held.
    pub held: Option<Vec<Held>>,
    /// What the prober tried and saw.
    pub probes: Option<Vec<Probe>>,
    /// Credential files that were masked.
    pub masked: Option<Vec<OsText>>,
    /// What was seen while it ran.
    pub observed: Option<Observed>,
    /// How long each step took.
    pub steps: Option<Vec<StepTime>>,
    /// What it printed, by digest.
    pub output: Option<Vec<OutputRecord>>,
    /// What it changed.
    pub changes: Option<Vec<Change>>,
    /// What must wait for a person.
    pub held_back: Option<Vec<HeldBack>>,
    /// What of a live base the host edited meanwhile.
    pub host_edits: Option<Vec<OsText>>,
    /// What was found when the sandbox was gone.
    pub teardown: Option<Teardown>,
}

impl Reader<'_> {
    /// Returns the action of this name, when there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn action(&self, id: &ActionId) -> Result<Option<StoredAction>, StoreError> {
        Ok(self.actions_by("WHERE actions.id = ?1", [id.as_str()])?.pop())
    }

    /// Returns the action with this id, or with this start of it when only one has it.
    ///
    /// # Errors
    /// When there is none, or more than one, or it cannot be read.
    pub fn find_action(&self, given: &str) -> Result<StoredAction, StoreError> {
        let id = NAMED.find(self.connection, given)?;
        self.actions_by("WHERE actions.id = ?1", [id])?.pop().ok_or_else(|| NAMED.not_found(given))
    }

    /// Returns the actions of a task, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn actions(&self, task: &TaskId) -> Result<Vec<StoredAction>, StoreError> {
        self.actions_by("WHERE actions.task = ?1 ORDER BY ordinal", [task.as_str()])
    }

    /// Returns the actions that were started, or may have been, in the network of another one, oldest first: what they
    /// asked for says so.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn joining_actions(&self, joined: &ActionId) -> Result<Vec<StoredAction>, StoreError> {
        // Whoever joins an action comes after it, so a new one costs no look at all that there ever was.
        self.actions_by(
            "WHERE actions.rowid > (SELECT rowid FROM actions WHERE id = ?1) \
             AND actions.state IN ('started', 'ended', 'unknown') \
             AND json_extract(actions.grant, '$.network.joined') = ?1 ORDER BY actions.rowid",
            [joined.as_str()],
        )
    }

    /// Returns the newest actions of all tasks, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn newest_actions(&self, limit: u32) -> Result<Vec<StoredAction>, StoreError> {
        self.actions_by("ORDER BY actions.rowid DESC LIMIT ?1", [limit])
    }

    /// Returns the actions that did not come to a last state, oldest first: they are at work, or whoever worked on
    /// them died.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn unfinished_actions(&self) -> Result<Vec<StoredAction>, StoreError> {
        self.actions_by("WHERE finished IS NULL ORDER BY actions.rowid", [])
    }

    fn actions_by(
        &self,
        which: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<StoredAction>, StoreError> {
        let mut select = self.connection.prepare_cached(&format!("SELECT {COLUMNS} {FROM} {which}"))?;
        Ok(select.query_map(parameters, action)?.collect::<Result<_, _>>()?)
    }

    /// Returns the place that the next action of a task will have.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next_ordinal(&self, task: &TaskId) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(ordinal), 0) + 1 FROM actions WHERE task = ?1";
        let next: Unsigned =
            self.connection.prepare_cached(sql)?.query_row([task.as_str()], |row| row.get(0))?;
        Ok(next.0)
    }

    /// Returns what was seen of an action.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn evidence(&self, id: &ActionId) -> Result<Evidence, StoreError> {
        let mut select =
            self.connection.prepare_cached("SELECT kind, body FROM evidence WHERE action = ?1")?;
        let parts = select.query_map([id.as_str()], |row| Ok((row.get(0)?, row.get::<_, Json<_>>(1)?.0)))?;
        let whole: serde_json::Map<String, serde_json::Value> = parts.collect::<Result<_, _>>()?;
        serde_json::from_value(whole.into())
            .map_err(|source| StoreError::Value { what: "evidence", source: source.into() })
    }
}

impl Writer<'_> {
    /// Adds an action that was asked for, without the secrets in it, and returns its place in its task.
    ///
    /// # Errors
    /// When there is one of this name, its task is not there, or it cannot be written.
    pub fn insert_action(&self, action: &Action, class: &str, now: Timestamp) -> Result<u64, StoreError> {
        let ordinal = self.next_ordinal(action.task())?;
        let sql = "INSERT INTO actions \
                   (id, task, ordinal, digest, state, class, tool, request, grant, start, created) \
                   VALUES (?1, ?2, ?3, ?4, 'requested', ?5, ?6, ?7, ?8, ?9, ?10)";
        self.connection.prepare_cached(sql)?.execute(params![
            action.id().as_str(),
            action.task().as_str(),
            ordinal.cast_signed(),
            action.digest().as_bytes(),
            class,
            action.request().tool.name(),
            self.json("a request", &self.stored(action))?,
            self.json("a grant", action.grant())?,
            json("a starting point", action.start())?,
            time(now),
        ])?;
        Ok(ordinal)
    }

    fn stored(&self, action: &Action) -> StoredRequest {
        let request = action.request();
        let digested = |(name, value): (&String, &OsText)| (name.clone(), self.key.digest(value.as_bytes()));
        StoredRequest {
            principal: request.principal.clone(),
            tool: request.tool.clone(),
            directory: request.directory.clone(),
            environment: request.environment.iter().map(digested).collect(),
            purpose: request.purpose.clone(),
        }
    }

    /// Notes what was decided: the action is `decided` when it may run, `denied` when it may not.
    ///
    /// # Errors
    /// When the action is not `requested`, or it cannot be written.
    pub fn set_decision(
        &self,
        id: &ActionId,
        decision: &DecisionRecord,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let to = match decision.verdict {
            Verdict::Allow | Verdict::Narrow => ActionState::Decided,
            Verdict::RequireApproval | Verdict::Deny => ActionState::Denied,
        };
        self.advance(id, &[ActionState::Requested], to, now)?;
        self.connection
            .prepare_cached("UPDATE actions SET decision = ?2 WHERE id = ?1")?
            .execute(params![id.as_str(), self.json("a decision", decision)?])?;
        Ok(())
    }

    /// Notes that an action that needs a person's yes is tried before.
    ///
    /// # Errors
    /// When the action is not `denied`, or it cannot be written.
    pub fn set_trial(&self, id: &ActionId, now: Timestamp) -> Result<(), StoreError> {
        self.advance(id, &[ActionState::Denied], ActionState::Decided, now)
    }

    /// Notes that people said yes to an action that was tried: it is what it would be had it run then.
    ///
    /// # Errors
    /// When the action is not `tried`, or it cannot be written.
    pub fn set_approved(
        &self,
        id: &ActionId,
        decision: &DecisionRecord,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.advance(id, &[ActionState::Tried], ActionState::Ended, now)?;
        self.connection
            .prepare_cached("UPDATE actions SET decision = ?2 WHERE id = ?1")?
            .execute(params![id.as_str(), self.json("a decision", decision)?])?;
        Ok(())
    }

    /// Notes that the command is started.
    ///
    /// # Errors
    /// When the action is not `decided`, or it cannot be written.
    pub fn set_started(&self, id: &ActionId, now: Timestamp) -> Result<(), StoreError> {
        self.advance(id, &[ActionState::Decided], ActionState::Started, now)
    }

    /// Notes that the command was not started: no sandbox stood, or the one that stood was never told to start it.
    ///
    /// # Errors
    /// When the action is neither `decided` nor `started`, or it cannot be written.
    pub fn set_not_started(&self, id: &ActionId, now: Timestamp) -> Result<(), StoreError> {
        self.advance(id, &[ActionState::Decided, ActionState::Started], ActionState::NotStarted, now)
    }

    /// Notes how the command ended and what it used: `to` says whether that was the action or its trial.
    ///
    /// # Errors
    /// When the action is not `started`, or it cannot be written.
    pub fn set_ended(
        &self,
        id: &ActionId,
        to: ActionState,
        (ending, usage): (&Ending, &Usage),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.advance(id, &[ActionState::Started], to, now)?;
        self.connection
            .prepare_cached("UPDATE actions SET ending = ?2, usage = ?3 WHERE id = ?1")?
            .execute(params![id.as_str(), json("an ending", ending)?, json("a usage", usage)?])?;
        Ok(())
    }

    /// Notes that nobody saw how the action went on.
    ///
    /// # Errors
    /// When the action came to a last state already, or it cannot be written.
    pub fn set_unknown(&self, id: &ActionId, now: Timestamp) -> Result<(), StoreError> {
        let from = [ActionState::Requested, ActionState::Decided, ActionState::Started];
        self.advance(id, &from, ActionState::Unknown, now)
    }

    /// Brings an action from one of some states to another.
    fn advance(
        &self,
        id: &ActionId,
        from: &[ActionState],
        to: ActionState,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = "SELECT state FROM actions WHERE id = ?1";
        let found: Option<Word<ActionState>> =
            self.connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional()?;
        let Some(Word(state)) = found else { return Err(NAMED.not_found(id.as_str())) };
        if !from.contains(&state) {
            return Err(StoreError::State { action: id.clone(), from: state.name(), to: to.name() });
        }
        let finished = to.is_final().then(|| time(now));
        self.connection
            .prepare_cached("UPDATE actions SET state = ?2, finished = ?3 WHERE id = ?1")?
            .execute(params![id.as_str(), to.name(), finished])?;
        Ok(())
    }

    /// Keeps what was seen of an action. What was kept before and is not given now stays.
    ///
    /// # Errors
    /// When there is no such action, or it cannot be written.
    pub fn keep_evidence(&self, id: &ActionId, evidence: &Evidence) -> Result<(), StoreError> {
        let whole = serde_json::to_value(evidence)
            .map_err(|source| StoreError::Value { what: "evidence", source: source.into() })?;
        let parts = whole.as_object().into_iter().flatten().filter(|(_, body)| !body.is_null());
        let mut insert = self
            .connection
            .prepare_cached("INSERT OR REPLACE INTO evidence (action, kind, body) VALUES (?1, ?2, ?3)")?;
        for (kind, body) in parts {
            insert.execute(params![id.as_str(), kind, self.json("evidence", body)?])?;
        }
        Ok(())
    }
}

fn action(row: &Row<'_>) -> rusqlite::Result<StoredAction> {
    Ok(StoredAction {
        id: row.get::<_, Value<_>>(0)?.0,
        task: row.get::<_, Value<_>>(1)?.0,
        ordinal: row.get::<_, Unsigned>(2)?.0,
        digest: row.get::<_, Raw<_>>(3)?.0,
        state: row.get::<_, Word<_>>(4)?.0,
        class: row.get(5)?,
        request: row.get::<_, Json<_>>(6)?.0,
        grant: row.get::<_, Json<_>>(7)?.0,
        start: row.get::<_, Json<_>>(8)?.0,
        decision: row.get::<_, Option<Json<_>>>(9)?.map(|json| json.0),
        ending: row.get::<_, Option<Json<_>>>(10)?.map(|json| json.0),
        usage: row.get::<_, Option<Json<_>>>(11)?.map(|json| json.0),
        created: row.get::<_, Raw<_>>(12)?.0,
        finished: row.get::<_, Option<Raw<_>>>(13)?.map(|time| time.0),
        layer: row.get::<_, Option<Word<_>>>(14)?.map(|word| word.0),
    })
}
