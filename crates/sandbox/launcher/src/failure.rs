//! The one error of the launcher: which step, which error number, about what.

use std::io;

use launcher::message::FromSandbox;

/// A step that could not be done.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The step.
    pub(crate) step: String,
    /// The error number of the kernel, or zero.
    pub(crate) errno: i32,
    /// What it was about.
    pub(crate) about: String,
}

/// What every step answers with.
pub(crate) type Done<T = ()> = Result<T, Failure>;

impl Failure {
    /// Makes a failure that no error number explains.
    pub(crate) fn new(step: &str, about: impl Into<String>) -> Self {
        Self { step: step.to_owned(), errno: 0, about: about.into() }
    }

    /// Returns the message that tells the supervisor.
    pub(crate) fn message(&self) -> FromSandbox {
        FromSandbox::Failed { step: self.step.clone(), errno: self.errno, about: self.about.clone() }
    }
}

/// Gives an error of the kernel the step that it happened in.
pub(crate) trait Context<T> {
    /// Names the step, and what it was about.
    fn during(self, step: &str, about: impl AsRef<[u8]>) -> Done<T>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn during(self, step: &str, about: impl AsRef<[u8]>) -> Done<T> {
        self.map_err(|error| {
            let error: io::Error = error.into();
            let about = String::from_utf8_lossy(about.as_ref()).into_owned();
            match error.raw_os_error() {
                Some(errno) => Failure { step: step.to_owned(), errno, about },
                None => Failure::new(step, format!("{about}: {error}")),
            }
        })
    }
}
