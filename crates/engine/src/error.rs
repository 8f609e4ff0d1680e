//! What can go wrong in the engine itself. A denial, or a command that fails, is no error.

use std::io;
use std::path::{Path, PathBuf};

use audit::AuditError;
use inspect::InspectError;
use model::action::ActionError;
use model::text::escape;
use sandbox::SandboxError;
use sandbox::view::ViewError;

use crate::store::StoreError;

/// What can go wrong in the engine itself.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are named after what the text says of them")]
pub enum EngineError {
    /// The state directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The request.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// What the sandbox would see of the host.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The sandbox, after the command was started.
    #[error(transparent)]
    Sandbox(SandboxError),
    /// Looking at what came out.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// Writing to the host.
    #[error(transparent)]
    Apply(#[from] crate::apply::ApplyError),
    /// A workspace that cannot be one.
    #[error("{} cannot be a workspace: {why}", escape(&path.to_string_lossy()))]
    Workspace { path: PathBuf, why: String },
    /// An input that must not be shown.
    #[error("{} cannot be an input: {why}", escape(&path.to_string_lossy()))]
    Input { path: PathBuf, why: String },
    /// A workspace whose commit cannot be checked out.
    #[error(
        "cannot start from a commit of {}: {why}; `--dirty` starts from the directory as it stands",
        escape(&path.to_string_lossy())
    )]
    Base { path: PathBuf, why: String },
    /// A repository that commits cannot come to.
    #[error("cannot import commits to {}: {why}", escape(&path.to_string_lossy()))]
    Import { path: PathBuf, why: String },
    /// A value of `--env` that is a secret of the caller, or looks like one.
    #[error(
        "the value of `{name}` {why}: it would be readable for everything in the sandbox, so it is not passed; \
         credentials stay outside and are not given to commands"
    )]
    SecretValue { name: String, why: String },
    /// A file or directory of ours.
    #[error("cannot {doing} {}", escape(about))]
    File { doing: &'static str, about: String, source: io::Error },
    /// A task that is not open.
    #[error(
        "task {task} is {state}: start another one with `--new-task`, or `fumehood task resume` it when it is stopped"
    )]
    TaskState { task: String, state: String },
    /// A request for a person's yes that cannot be answered so.
    #[error("{approval} {why}")]
    Approval { approval: model::ApprovalId, why: String },
    /// A task in which what was denied was tried in too many ways, or that a person froze.
    #[error(
        "task {task} is frozen: {why}. A person looks at it with `fumehood task show {task}`, and then resumes it with \
         `fumehood task resume {task}` or throws it away with `fumehood discard {task}`"
    )]
    Frozen { task: String, why: String },
    /// Nothing may start there.
    #[error("{}", .0.why())]
    Halted(Box<crate::store::Halt>),
    /// Nothing to do something with.
    #[error("{0}")]
    Nothing(String),
}

impl EngineError {
    /// Tells whether the command ran, as far as that is known.
    pub fn ran(&self) -> bool {
        matches!(self, Self::Sandbox(error) if error.ran())
    }

    /// Makes an error out of one of the kernel.
    pub(crate) fn file(doing: &'static str, about: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let about = about.as_ref().to_string_lossy().into_owned();
        move |source| Self::File { doing, about, source }
    }
}
