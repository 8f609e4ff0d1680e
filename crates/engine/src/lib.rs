//! The engine: the one path from a request to an outcome, tasks and their layers, and the store below them.
//!
//! Guarantees: every action goes through [`Engine::handle`]; every step of it is on the record before the next one;
//! nothing of a task is lost by a crash, and an action whose end nobody saw is said to be unknown.
//! Leaves to others: deciding (`gate`), running (`sandbox`), judging what came out (`inspect`), showing it.
#![forbid(unsafe_code)]

pub mod apply;
pub mod store;

mod again;
mod agents;
mod anchor;
mod applying;
mod approvals;
mod base;
mod checkpoint;
mod clock;
mod commits;
mod config;
mod credentials;
mod deadline;
mod denials;
mod error;
mod execute;
mod facts;
mod fail_point;
mod gc;
mod git_dirs;
mod handle;
mod history;
mod holds;
mod host;
mod host_edits;
mod ignore_rules;
mod inputs;
mod intakes;
mod intent;
mod join;
mod layers;
mod legal;
mod lock;
mod masks;
mod outcome;
mod outputs;
pub mod packages;
mod parked;
mod prune;
mod readings;
mod recover;
mod redaction;
mod repository;
mod review;
mod rules;
mod run;
mod stages;
mod start;
mod stop;
mod tasks;
mod tracked;
mod unapplying;
mod workspace;

use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use audit::{Checkpoint, Log};
use gate::Gate;
use model::{Event, Subject, Timestamp};

pub use agents::{AtWork, Context, Turn};
pub use anchor::Anchor;
pub use applying::{AppliedTask, ApplyOrder};
pub use approvals::{
    ANSWER_FORMAT, AnswersDirectory, Approver, NewAnswer, Progress, Roles, SignedAnswer, Yes,
};
pub use base::{CommittedFile, Helper, REPOSITORY_RULES, REPOSITORY_SETTINGS, RepositoryFiles, Sees};
pub use commits::ImportedCommits;
pub use config::{Config, GatewayProgram, PolicySource, Reachable};
pub use credentials::{Credential, CredentialKind, Provider};
pub use deadline::{Deadline, Moment};
pub use error::EngineError;
pub use facts::{Described, describe};
pub use gate::ApplyMode;
pub use gc::{Garbage, Removed, Retention};
pub use handle::Order;
pub use inputs::check_input;
pub use intakes::{Taken, branch_of};
pub use outcome::{Finished, NotStarted, Outcome};
pub use outputs::KeptOutput;
pub use prune::{Prune, PruneOrder};
pub use readings::{Conversation, Unread};
pub use review::{Review, Scope};
pub use sandbox::{Controller, Handle, Io, Phase, Request, Silent, Sink, Stream, controller};
pub use tasks::TaskChoice;
pub use workspace::Workspace;

use base::Unmoved;
use parked::Parked;
use rules::{Checked, LastGate};
use store::Store;

/// The control plane of one state directory.
pub struct Engine {
    config: Config,
    log: Log<Store>,
    /// The organisation's rules. What decides in a task is [`Engine::gate_of`].
    gate: Arc<Gate>,
    last_gate: Mutex<LastGate>,
    repository_files: Mutex<Option<(Unmoved, RepositoryFiles)>>,
    settled: Vec<String>,
    /// Sandboxes that wait for an action, oldest first.
    parked: Mutex<Vec<Parked>>,
}

impl Engine {
    /// Opens the state directory, removes what dead owners left behind in it, and completes what they were writing.
    ///
    /// # Errors
    /// When the state cannot be opened, is not ours alone, or does not match its record.
    pub fn open(config: Config) -> Result<Self, EngineError> {
        // Reading the policy takes about as long as opening the state.
        let (gate, log) = std::thread::scope(|scope| {
            let gate = scope.spawn(|| config.policy.gate_known_to(&Checked::in_state(&config.state_dir)));
            let store = Store::open(&config.state_dir);
            let store = store.and_then(|store| store.anchored(config.anchor.clone()));
            let log = store.map_err(EngineError::from).and_then(|store| Ok(Log::open(store)?));
            (gate.join(), log)
        });
        let gate = gate.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let log = log?;
        let named = config.secrets.iter().map(|(name, value)| (name.clone(), value.as_bytes().to_vec()));
        log.storage().learn_secrets(named);
        let mut engine = Self {
            config,
            log,
            gate: Arc::new(gate),
            last_gate: Mutex::default(),
            repository_files: Mutex::default(),
            settled: Vec::new(),
            parked: Mutex::default(),
        };
        engine.settled = engine.recover()?;
        Ok(engine)
    }

    /// Returns what was found cut off in the middle of writing to the host when the state was opened, and what became
    /// of it, in sentences for people.
    pub fn settled(&self) -> &[String] {
        &self.settled
    }

    /// Returns the store, for looking at.
    pub fn store(&self) -> &Store {
        self.log.storage()
    }

    /// Returns the record.
    pub fn log(&self) -> &Log<Store> {
        &self.log
    }

    /// Returns how the engine was configured.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn repository_files_read(&self) -> MutexGuard<'_, Option<(Unmoved, RepositoryFiles)>> {
        self.repository_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event that nobody acts on by its receipt, together with the rows that go with it.
    pub(crate) fn record(
        &self,
        about: &Subject,
        event: &Event,
        also: impl FnOnce(&store::Writer<'_>, Timestamp) -> Result<(), store::StoreError>,
    ) -> Result<(), EngineError> {
        self.record_unanchored()?;
        let time = clock::now();
        let _noted = self.log.append_with(about, event, time, |writer| also(writer, time))?;
        Ok(())
    }

    /// Signs the head of the record, and returns it with what kept it from being kept elsewhere.
    ///
    /// # Errors
    /// When the state cannot be written, or the record does not fit the heads that were signed before.
    pub fn sign_head(&self) -> Result<(Checkpoint, Option<String>), EngineError> {
        let signed = self.store().sign_head(clock::now())?;
        self.record_unanchored()?;
        Ok(signed)
    }

    /// Records that a signed head could not be kept elsewhere, when that happened.
    pub(crate) fn record_unanchored(&self) -> Result<(), EngineError> {
        let Some(missed) = self.store().take_unanchored() else { return Ok(()) };
        let event = Event::AnchorFailed { records: missed.records, file: missed.file, why: missed.why };
        let _noted = self.log.append(&Subject::default(), &event, clock::now())?;
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Whoever watches was told already.
        let _ = self.record_unanchored();
        self.unpark();
    }
}
