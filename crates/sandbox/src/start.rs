//! The start of a command: the one place where a permit is spent on a sandbox.
//!
//! Guarantees: a permit starts one command, once. Only when the sandbox is found to have been ended before it was told
//! anything does the permit come back, whole, for another sandbox. Leaves to others: what happens from then on.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use gate::Permit;
use launcher::message::ToSandbox;
use launcher::wire;
use model::{Action, Grant, OsText};

use crate::control::Controller;
use crate::error::SandboxError;
use crate::fail_point;
use crate::native::Prepared;
use crate::tool::Program;

/// A sandbox whose command was told to start. Dropping it ends it.
#[must_use = "a command that nobody follows is ended at once"]
#[derive(Debug)]
pub struct Started {
    pub(crate) prepared: Prepared,
    pub(crate) action: Action,
    pub(crate) grant: Grant,
    /// What the tool itself gives the program to read.
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) at: Instant,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum Unstarted {
    /// The sandbox was ended from outside before it was told to start anything. The permit is as good as it was.
    #[error("the sandbox was ended from outside before anything was started in it")]
    Gone(Box<Permit>),
    /// The permit is spent or for another sandbox, and nothing was started.
    #[error(transparent)]
    Failed(#[from] SandboxError),
}

impl Prepared {
    /// Spends the permit: tells the sandbox to start the command.
    ///
    /// # Errors
    /// When the permit grants something else than the sandbox was built for, the sandbox has been ended, or the command
    /// cannot be told to it. Nothing was started then.
    pub fn start(self, permit: Permit, controller: Option<&Controller>) -> Result<Started, Unstarted> {
        if *permit.grant() != self.grant {
            return Err(SandboxError::OtherGrant.into());
        }
        let program = Program::of(&permit.action().request().tool);
        let message = self.start_message(permit.action(), &program);
        // A program asks for the size of its terminal at once.
        controller.into_iter().for_each(|controller| self.size_terminal(controller));
        match wire::send(&self.control, &message, &[]) {
            Ok(()) => {}
            // One packet is taken whole or not at all, and nobody is there to take it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return Err(Unstarted::Gone(Box::new(permit)));
            }
            Err(error) => return Err(SandboxError::prepare("start")(error).into()),
        }
        let (action, grant) = permit.spend().into_parts();
        fail_point::reached("run: the command is told to start");
        Ok(Started { prepared: self, action, grant, input: program.input, at: Instant::now() })
    }

    /// Gives the command's terminal the size of the user's; the kernel tells the command when that is another than before.
    pub(crate) fn size_terminal(&self, controller: &Controller) {
        if let (Some(terminal), Some((rows, columns))) = (&self.streams.terminal, controller.size()) {
            crate::terminal::resize(terminal, rows, columns);
        }
    }

    fn start_message(&self, action: &Action, program: &Program) -> ToSandbox {
        let mut environment: BTreeMap<&str, &OsText> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value)).collect();
        environment.extend(action.request().environment.iter().map(|(name, value)| (name.as_str(), value)));
        let workspace = &self.spec.workspace.path;
        let directory = match &action.request().directory {
            Some(below) => workspace.join(below.as_path()),
            None => workspace.clone(),
        };
        ToSandbox::Start {
            argv: program.argv.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
            environment: environment
                .into_iter()
                .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
                .collect(),
            directory: directory.as_os_str().as_bytes().to_vec(),
        }
    }
}

impl From<Unstarted> for SandboxError {
    fn from(unstarted: Unstarted) -> Self {
        match unstarted {
            Unstarted::Gone(_) => Self::prepare("start")(io::ErrorKind::BrokenPipe.into()),
            Unstarted::Failed(error) => error,
        }
    }
}
