//! Why nothing was written.

use std::io;

use inspect::InspectError;
use model::OsText;

/// Says why nothing was written to the host.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The host's directory.
    #[error("cannot {step} the workspace; nothing was written")]
    Workspace {
        /// What was to be done, as a verb.
        step: &'static str,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
    /// A change could not be prepared.
    #[error("cannot {step} `{path}`; nothing was written")]
    Prepare {
        /// What was to be done, as a verb.
        step: &'static str,
        /// The path, from the top of the workspace.
        path: OsText,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
    /// The place in the state directory.
    #[error("cannot {step} what is overwritten in the state directory")]
    Capture {
        /// What was to be done, as a verb.
        step: &'static str,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
    /// A layer could not be read.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The journal cannot be read.
    #[error(
        "the journal of an apply is damaged: what it had written is in its directory; look there before you go on"
    )]
    Journal(#[source] serde_json::Error),
    /// The workspace is another directory than the one that the journal is about.
    #[error("the workspace is not the directory that this was applied to: it was moved or replaced")]
    OtherWorkspace,
    /// It was done before.
    #[error("this was {what} before")]
    Repeated {
        /// What was done.
        what: &'static str,
    },
    /// There is nothing to take back.
    #[error("nothing was applied here that could be taken back")]
    NothingApplied,
}
