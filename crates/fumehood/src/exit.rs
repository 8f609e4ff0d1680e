//! How the program ends. The table for people is in `docs/cli.md`; a test compares both.

use std::process::ExitCode;

use model::Ending;

/// How the program ends: one enum for every verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for was done.
    Success,
    /// The answer is no: a check found something, a comparison differed, something was held back.
    Negative,
    /// The command ran, and this is its own status.
    Command(u8),
    /// The command ran out of time and was ended.
    TimedOut,
    /// Fumehood failed, or was called wrongly. The text and the JSON say whether the command ran.
    Failed,
    /// Policy denied the action. The JSON outcome tells it from a command's own 126.
    Denied,
    /// There is no such program inside.
    NoProgram,
    /// A signal ended the command, or a limit did by SIGKILL.
    Signal(u8),
}

impl Exit {
    /// Returns the code that the caller sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Command(status) => status,
            Self::TimedOut => 124,
            Self::Failed => 125,
            Self::Denied => 126,
            Self::NoProgram => 127,
            Self::Signal(signal) => 128u8.saturating_add(signal),
        }
    }

    /// Returns the exit that stands for how a command ended.
    pub fn of(ending: &Ending) -> Self {
        match ending.exit_code() {
            124 if !matches!(ending, Ending::Exited { .. }) => Self::TimedOut,
            125 if matches!(ending, Ending::NoDirectory { .. }) => Self::Failed,
            127 if matches!(ending, Ending::NotFound) => Self::NoProgram,
            code if code > 128 && !matches!(ending, Ending::Exited { .. }) => Self::Signal(code - 128),
            code => Self::Command(code),
        }
    }

    /// Returns the answer to a question: yes is success.
    pub fn answer(yes: bool) -> Self {
        if yes { Self::Success } else { Self::Negative }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use model::LimitKind;

    use super::*;

    #[test]
    fn a_command_s_own_status_is_passed_on_whatever_it_is() {
        for status in [0, 1, 124, 125, 126, 127, 137, 255] {
            assert_eq!(Exit::of(&Ending::Exited { status }), Exit::Command(status));
            assert_eq!(Exit::of(&Ending::Exited { status }).code(), status);
        }
    }

    #[test]
    fn every_other_ending_has_its_own_exit() {
        assert_eq!(Exit::of(&Ending::Limit { limit: LimitKind::WallTime }), Exit::TimedOut);
        assert_eq!(Exit::of(&Ending::Limit { limit: LimitKind::Memory }), Exit::Signal(9));
        assert_eq!(Exit::of(&Ending::Signaled { signal: 15 }).code(), 143);
        assert_eq!(Exit::of(&Ending::NotFound), Exit::NoProgram);
        assert_eq!(Exit::of(&Ending::Stopped).code(), 137);
        assert_eq!(Exit::of(&Ending::NotExecutable { errno: 13 }).code(), 126);
        assert_eq!(Exit::of(&Ending::NoDirectory { errno: 2 }), Exit::Failed);
    }
}
