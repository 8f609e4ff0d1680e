//! What can go wrong in the program itself. A denial, or a command that fails, is no error.

use std::io;
use std::path::{Path, PathBuf};

use engine::EngineError;
use engine::store::StoreError;
use model::text::escape;

use crate::bwrap::{BwrapError, Refusal};
use crate::exit::Exit;
use crate::output::shape::{ErrorDocument, ErrorPart, Ran};
use crate::settings::SettingsError;

/// What can go wrong in the program itself.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The record.
    #[error(transparent)]
    Audit(#[from] audit::AuditError),
    /// Arguments of bubblewrap.
    #[error(transparent)]
    Bwrap(#[from] BwrapError),
    /// Arguments of bubblewrap that mean something which is not done.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// A file.
    #[error("cannot {doing} `{}`", escape(&.path.to_string_lossy()))]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Something of the operating system.
    #[error("cannot {doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// What was asked for cannot be done, and the text says what can.
    #[error("{0}")]
    Cannot(String),
}

impl CliError {
    /// Makes an error out of one about a file.
    pub(crate) fn file(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { doing, path, source }
    }

    /// Makes an error out of one of the operating system.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }

    /// Tells whether a command ran.
    pub fn ran(&self) -> Ran {
        match self {
            // The command was started and its end could not be kept; what it did meanwhile is not known.
            Self::Engine(error) if error.ran() => Ran::Unknown,
            _ => Ran::No,
        }
    }

    /// Returns what the error came from, outermost first, without what the text says already.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            causes.push(escape(&error.to_string()).into_owned());
            source = error.source();
        }
        causes
    }

    /// Returns the error as programs read it.
    pub fn document(&self) -> ErrorDocument {
        let (message, causes, ran) = (self.to_string(), self.causes(), self.ran());
        ErrorDocument { error: ErrorPart { message, causes, ran, exit_code: Exit::Failed.code() } }
    }

    /// Returns the error and what it came from on one line.
    pub fn line(&self) -> String {
        [self.to_string()].into_iter().chain(self.causes()).collect::<Vec<_>>().join(": ")
    }

    /// Returns the error for people: what went wrong, what it came from, and whether a command ran.
    pub fn text(&self) -> String {
        let mut text = self.to_string();
        for cause in self.causes() {
            text.push_str(&format!("\n  because: {cause}"));
        }
        if self.ran() != Ran::No {
            text.push_str("\n  the command had started: what it did is not known");
        }
        text
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}
