//! Requests for a person's yes in the database, and the processes of agents that may not answer them.

use std::collections::BTreeSet;

use model::approval::ApprovalAnswer;
use model::{ActionId, ApprovalId, ApprovalState, Digest, Quorum, TaskId, Timestamp};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::prefix::Named;
use super::row::{Json, Raw, Unsigned, Value, Word, json, time};
use super::{Reader, Writer};
use crate::deadline::Deadline;

const NAMED: Named =
    Named { kind: "approval", prefix: "apr-", table: "approvals", listing: "approvals list" };

const SELECT: &str = "SELECT id, task, action, digest, what, roles, state, asked, expires, boot, expires_boot, \
                      untried, repeats, answers, why, closed, ground, input, owners FROM approvals";

/// A request for a person's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApproval {
    /// Its name.
    pub id: ApprovalId,
    /// The task.
    pub task: TaskId,
    /// The action that asked, and was tried.
    pub action: ActionId,
    /// The digest of the action: what a yes covers.
    pub digest: Digest,
    /// What is asked, to follow after "may this".
    pub what: String,
    /// Whose yes policy wants.
    pub wanted: BTreeSet<Quorum>,
    /// The accounts whose yes is the owner's own: where policy keeps the owner apart, it does not count.
    pub owners: BTreeSet<u32>,
    /// Where it stands, as it was written down last: whether it has expired is told by its `deadline`.
    pub state: ApprovalState,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it ends.
    pub deadline: Deadline,
    /// Why the action was not tried; nothing when it was.
    pub untried: Option<String>,
    /// What it was asked on beside the layers and the files below it, as a digest.
    pub ground: Digest,
    /// Whether the command was given input, which is part of no request.
    pub with_input: bool,
    /// How often the very same thing was asked for again meanwhile.
    pub repeats: u64,
    /// What people answered, oldest first.
    pub answers: Vec<ApprovalAnswer>,
    /// Why it came to its end.
    pub why: Option<String>,
    /// When it came to its end.
    pub closed: Option<Timestamp>,
}

/// A process through which an agent came to us.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientProcess {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the boot: another process with the same number started at another time.
    pub start: u64,
    /// The pid namespace in which it has this number.
    pub namespace: u64,
}

impl Reader<'_> {
    /// Returns the request with this id, or with this start of it when only one has it.
    ///
    /// # Errors
    /// When there is none, or more than one, or it cannot be read.
    pub fn find_approval(&self, given: &str) -> Result<StoredApproval, StoreError> {
        let id = NAMED.find(self.connection, given)?;
        self.approvals_by("WHERE id = ?1", [id])?.pop().ok_or_else(|| NAMED.not_found(given))
    }

    /// Returns the newest request of an action, when it asked for one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn approval_of_action(&self, action: &ActionId) -> Result<Option<StoredApproval>, StoreError> {
        Ok(self.approvals_by("WHERE action = ?1 ORDER BY asked", [action.as_str()])?.pop())
    }

    /// Returns the requests that a yes to this digest would answer, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn approvals_for(&self, digest: &Digest) -> Result<Vec<StoredApproval>, StoreError> {
        self.approvals_by("WHERE digest = ?1 ORDER BY asked, id", [digest.as_bytes()])
    }

    /// Returns all requests, oldest first; `open` leaves out those that have come to their end.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn approvals(&self, open: bool) -> Result<Vec<StoredApproval>, StoreError> {
        self.approvals_by(
            if open { "WHERE closed IS NULL ORDER BY asked, id" } else { "ORDER BY asked, id" },
            [],
        )
    }

    /// Returns the requests that wait for the end of a trial whose action has come to its own.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn cut_off_trials(&self) -> Result<Vec<StoredApproval>, StoreError> {
        let ended = "SELECT 1 FROM actions WHERE actions.id = approvals.action AND finished IS NOT NULL";
        self.approvals_by(&format!("WHERE closed IS NULL AND state = 'trying' AND EXISTS ({ended})"), [])
    }

    /// Returns the processes of agents that were seen since this boot.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn clients(&self, boot: &str) -> Result<BTreeSet<ClientProcess>, StoreError> {
        let mut select =
            self.connection.prepare_cached("SELECT pid, start, namespace FROM clients WHERE boot = ?1")?;
        let client = |row: &Row<'_>| {
            let (start, namespace) = (row.get::<_, Unsigned>(1)?.0, row.get::<_, Unsigned>(2)?.0);
            Ok(ClientProcess { pid: row.get(0)?, start, namespace })
        };
        Ok(select.query_map([boot], client)?.collect::<Result<_, _>>()?)
    }

    fn approvals_by(
        &self,
        which: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let mut select = self.connection.prepare_cached(&format!("{SELECT} {which}"))?;
        Ok(select.query_map(parameters, approval)?.collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    /// Adds a request.
    ///
    /// # Errors
    /// When there is one of this name, or it cannot be written.
    pub fn insert_approval(&self, approval: &StoredApproval) -> Result<(), StoreError> {
        let sql = "INSERT INTO approvals (id, task, action, digest, what, roles, state, asked, expires, boot, \
                   expires_boot, untried, answers, ground, input, owners) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        self.connection.prepare_cached(sql)?.execute(params![
            approval.id.as_str(),
            approval.task.as_str(),
            approval.action.as_str(),
            approval.digest.as_bytes(),
            self.text(&approval.what),
            json("roles", &approval.wanted)?,
            approval.state.name(),
            time(approval.asked),
            time(approval.deadline.wall),
            approval.deadline.boot,
            approval.deadline.since_boot.cast_signed(),
            approval.untried.as_deref().map(|why| self.text(why)),
            self.json("answers", &approval.answers)?,
            approval.ground.as_bytes(),
            approval.with_input,
            json("owners", &approval.owners)?,
        ])?;
        Ok(())
    }

    /// Brings a request from one of some states to another, with what was answered until then.
    ///
    /// # Errors
    /// When it is in none of these states (somebody was quicker), or it cannot be written.
    pub fn move_approval(
        &self,
        id: &ApprovalId,
        from: &[ApprovalState],
        to: ApprovalState,
        why: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let state = self.find_approval(id.as_str())?.state;
        if !from.contains(&state) {
            return Err(StoreError::Approval { approval: id.clone(), state });
        }
        let sql = "UPDATE approvals SET state = ?2, why = coalesce(?3, why), closed = ?4 WHERE id = ?1";
        let closed = to.is_final().then(|| time(now));
        self.connection.prepare_cached(sql)?.execute(params![
            id.as_str(),
            to.name(),
            why.map(|why| self.text(why)),
            closed
        ])?;
        Ok(())
    }

    /// Notes what a person answered.
    ///
    /// # Errors
    /// When there is no such request, or it cannot be written.
    pub fn add_answer(&self, id: &ApprovalId, answer: &ApprovalAnswer) -> Result<(), StoreError> {
        let mut answers = self.find_approval(id.as_str())?.answers;
        answers.push(answer.clone());
        let sql = "UPDATE approvals SET answers = ?2 WHERE id = ?1";
        self.connection
            .prepare_cached(sql)?
            .execute([id.as_str(), self.json("answers", &answers)?.as_str()])?;
        Ok(())
    }

    /// Notes that the very same thing was asked for again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn repeat_approval(&self, id: &ApprovalId) -> Result<(), StoreError> {
        let sql = "UPDATE approvals SET repeats = repeats + 1 WHERE id = ?1";
        self.connection.prepare_cached(sql)?.execute([id.as_str()])?;
        Ok(())
    }

    /// Notes processes through which an agent came to us, and forgets those of earlier boots.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_clients(
        &self,
        boot: &str,
        name: &str,
        clients: &[ClientProcess],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM clients WHERE boot <> ?1")?.execute([boot])?;
        let sql = "INSERT OR REPLACE INTO clients (boot, pid, start, name, seen, namespace) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.connection.prepare_cached(sql)?;
        for client in clients {
            let (start, namespace) = (client.start.cast_signed(), client.namespace.cast_signed());
            insert.execute(params![boot, client.pid, start, name, time(now), namespace])?;
        }
        Ok(())
    }
}

fn approval(row: &Row<'_>) -> rusqlite::Result<StoredApproval> {
    Ok(StoredApproval {
        id: row.get::<_, Value<_>>(0)?.0,
        task: row.get::<_, Value<_>>(1)?.0,
        action: row.get::<_, Value<_>>(2)?.0,
        digest: row.get::<_, Raw<_>>(3)?.0,
        what: row.get(4)?,
        wanted: row.get::<_, Json<_>>(5)?.0,
        owners: row.get::<_, Json<_>>(18)?.0,
        state: row.get::<_, Word<_>>(6)?.0,
        asked: row.get::<_, Raw<_>>(7)?.0,
        deadline: Deadline {
            wall: row.get::<_, Raw<_>>(8)?.0,
            boot: row.get(9)?,
            since_boot: row.get::<_, Unsigned>(10)?.0,
        },
        untried: row.get(11)?,
        ground: row.get::<_, Raw<_>>(16)?.0,
        with_input: row.get(17)?,
        repeats: row.get::<_, Unsigned>(12)?.0,
        answers: row.get::<_, Json<_>>(13)?.0,
        why: row.get(14)?,
        closed: row.get::<_, Option<Raw<_>>>(15)?.map(|time| time.0),
    })
}
