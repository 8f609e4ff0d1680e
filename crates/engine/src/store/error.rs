//! What can go wrong with the state directory and the database in it.

use std::io;
use std::path::PathBuf;

use model::text::escape;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// Says why the store cannot be opened, read or written. After a failed write nothing of it is there.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named after what the text says of them")]
pub enum StoreError {
    /// The state directory is a link: whoever owns the link could point it elsewhere.
    #[error(
        "the state directory {} is a symbolic link: name the directory itself with `--state-dir`",
        shown(path)
    )]
    Link { path: PathBuf },
    /// The path names something else.
    #[error(
        "{} is not {expected}: move it away, or name another state directory with `--state-dir`",
        shown(path)
    )]
    Kind { path: PathBuf, expected: &'static str },
    /// It holds other things.
    #[error(
        "{} is not empty and no state directory of Fumehood: name an empty or a new one with `--state-dir`",
        shown(path)
    )]
    NotEmpty { path: PathBuf },
    /// Somebody else owns it and could change what is in it.
    #[error(
        "{} belongs to user {owner} and you are user {user}: name a state directory of your own with `--state-dir`",
        shown(path)
    )]
    Owner { path: PathBuf, owner: u32, user: u32 },
    /// Others can change what is in it.
    #[error(
        "{} can be written by others (mode {mode:04o}): check that nobody changed it, then run `chmod go-w` on it",
        shown(path)
    )]
    Writable { path: PathBuf, mode: u32 },
    /// A system call failed.
    #[error("cannot {doing} {}", shown(path))]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    /// The kernel has no random bytes to give.
    #[error("cannot get random bytes from the kernel")]
    Random(#[source] io::Error),
    /// Opening the database failed.
    #[error("cannot open the state database {}", shown(path))]
    Open { path: PathBuf, source: Box<StoreError> },
    /// The key file is missing or not 32 bytes long, and digests made with the right one could no longer be compared.
    #[error(
        "the key file {} is {state}: restore it from a backup, or keep this state directory as it is and start \
         with a new one (`--state-dir`)",
        shown(path)
    )]
    Key { path: PathBuf, state: &'static str },
    /// The signed heads, the key that signs them and the record do not fit each other.
    #[error(
        "the signed heads of the record do not fit it ({why}): nothing was recorded or signed; run `fumehood audit \
         verify` with a head that was kept elsewhere, keep the state directory as evidence, and start with a new one \
         (`--state-dir`)"
    )]
    SignedHeads { why: &'static str, source: Option<audit::CheckpointError> },
    /// Signed heads were to be kept beside what they vouch for.
    #[error(
        "{} is in the state directory: whoever changes the record there changes it, too; name a file elsewhere with \
         `anchor_file` in the settings",
        shown(path)
    )]
    AnchorInside { path: PathBuf },
    /// The database is missing but what was written last is there.
    #[error(
        "the state database {} is missing but its journal is there: restore it from a backup, or keep this state \
         directory as it is and start with a new one (`--state-dir`)",
        shown(path)
    )]
    Missing { path: PathBuf },
    /// A newer build wrote it.
    #[error(
        "the state has schema {schema} and this build knows {known}: use the newer `fumehood` that wrote it"
    )]
    Newer { schema: i64, known: i64 },
    /// It is a database, but not one of ours.
    #[error(
        "it is not a state database of `fumehood`: move it away, or name another directory with `--state-dir`"
    )]
    Foreign,
    /// The file system cannot hold a write-ahead log.
    #[error(
        "the file system cannot hold a write-ahead log (got `{}`): keep the state on a local disk",
        escape(mode)
    )]
    Journal { mode: String },
    /// Its bytes are not those of a database.
    #[error(
        "the state database is damaged: nothing was changed; keep the state directory as it is (what can be read \
         can be exported by `sqlite3 fumehood.db .recover`) and start with a new one (`--state-dir`)"
    )]
    Damaged(#[source] rusqlite::Error),
    /// No space is left.
    #[error(
        "no space is left for the state directory: nothing was recorded, and nothing runs unrecorded; free some \
         (`fumehood discard` closes a task and `fumehood gc --older-than 1s --incidents-older-than 1s` removes what \
         closed ones left, on a full disk too)"
    )]
    Full(#[source] rusqlite::Error),
    /// It cannot be written.
    #[error("the state database cannot be written: check its mode, and whether the file system is read-only")]
    ReadOnly(#[source] rusqlite::Error),
    /// Somebody else wrote all the time.
    #[error("other processes kept the state database busy for too long: try again")]
    Busy(#[source] rusqlite::Error),
    /// Anything else that SQLite says.
    #[error("the state database failed")]
    Sql(#[source] rusqlite::Error),
    /// A row does not hold what this build writes there.
    #[error("the state database holds {what} that this build cannot read")]
    Value { what: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
    /// A secret of the caller's is a word of ours.
    #[error(
        "{what} cannot be written down without a secret of yours, which is a word that it is made of: give the secret \
         another value, or leave its variable out of the environment of `fumehood`"
    )]
    Secret { what: &'static str, source: serde_json::Error },
    /// Content cannot be sealed, or not be opened again.
    #[error("what is kept as `{class}` cannot be read or kept: {why}")]
    Sealed { class: model::ContentClass, why: &'static str },
    /// There is nothing with this name.
    #[error("there is no {kind} `{}`: `fumehood {listing}` names them", escape(given))]
    NotFound { kind: &'static str, given: String, listing: &'static str },
    /// There are several with this start.
    #[error("`{}` is the start of several: {}; give more of the {kind}", escape(given), matches.join(", "))]
    Ambiguous { kind: &'static str, given: String, matches: Vec<String> },
    /// An action cannot come to this state from the one that it is in: somebody else brought it there, or it is gone.
    #[error("action `{action}` cannot become `{to}`: it is {from}")]
    State { action: model::ActionId, from: &'static str, to: &'static str },
    /// A task cannot come to another state from the one that it is in.
    #[error("{task} is {state}: it stays so until a person changes that")]
    TaskState { task: model::TaskId, state: model::task::TaskState },
    /// A request for a person's yes is not where this could be done with it: somebody was quicker.
    #[error("{approval} is {state} already")]
    Approval { approval: model::ApprovalId, state: model::ApprovalState },
    /// A stage of a task that does not follow on the one before it: somebody was quicker.
    #[error("the stage was not passed, because another one was meanwhile: {0}")]
    Stages(String),
    /// Nothing may start there.
    #[error("{}", .0.why())]
    Halted(Box<super::Halt>),
    /// A hold that is not in force.
    #[error("{hold} was lifted already")]
    Lifted { hold: model::HoldId },
    /// A legal hold that is not in force.
    #[error("{hold} was lifted already")]
    LegalLifted { hold: model::LegalHoldId },
    /// Something that was to be removed, and that somebody came to need meanwhile.
    #[error("{} is needed: it was not removed", shown(place))]
    Needed { place: std::path::PathBuf },
    /// A record that is not as it was written, and is left as it is.
    #[error(
        "record {record} is not as it was written: nothing of it is pruned; `fumehood audit verify` says more"
    )]
    NotAsWritten { record: u64 },
    /// A layer whose files are not there any more.
    #[error("the layer of {layer} is gone: its retention was over, and `fumehood gc` removed it")]
    Gone { layer: model::ActionId },
}

fn shown(path: &std::path::Path) -> String {
    format!("`{}`", escape(&path.to_string_lossy()))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, source) = error {
            return Self::Value { what: "a value", source };
        }
        let Some(sqlite) = error.sqlite_error() else { return Self::Sql(error) };
        match sqlite.code {
            ErrorCode::DiskFull => Self::Full(error),
            ErrorCode::SystemIoFailure if sqlite.extended_code == SQLITE_IOERR_SHMSIZE => Self::Full(error),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Damaged(error),
            // A log that cannot be made beside it shows the same cause.
            ErrorCode::ReadOnly | ErrorCode::CannotOpen => Self::ReadOnly(error),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy(error),
            _ => Self::Sql(error),
        }
    }
}
