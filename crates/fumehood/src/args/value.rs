//! Values of arguments that are more than a text.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use model::Bytes;
use model::intake::{ChangeName, WorkLevel};
use model::text::escape;
use model::units::{UnitError, parse_duration};

/// Says what is wrong with the value of an argument.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// An environment setting without a usable name.
    #[error("`{}` cannot be the name of an environment variable: use letters, digits and `_`, for example `CI=1`", escape(.0))]
    VariableName(String),
    /// An input without a name or a path.
    #[error("`{}` is not NAME=PATH: give for example `data=/srv/data`", escape(.0))]
    Input(String),
    /// An input with a name that is no single file name.
    #[error("`{}` cannot be the name of an input: use letters, digits, `.`, `_` and `-`, and start with a letter or digit", escape(.0))]
    InputName(String),
    /// A number of processors.
    #[error("`{}` is not a number of processors: give for example `2`, `0.5` or `1.25`", escape(.0))]
    Cpus(String),
    /// No id of a task.
    #[error("`{}` is not the id of a task, nor the start of one: `fumehood task list` names them", escape(.0))]
    Task(String),
    /// No id of an action.
    #[error("`{}` is not the id of an action, nor the start of one: `fumehood log` names them", escape(.0))]
    Action(String),
    /// No name of an agent.
    #[error("`{}` cannot be the name of an agent: use up to 64 letters, digits and `-_.:/@`", escape(.0))]
    Agent(String),
    /// No id of an approval.
    #[error("`{}` is not the id of a request for a yes, nor the start of one: `fumehood approvals list` names them", escape(.0))]
    Approval(String),
    /// No id of a hold.
    #[error("`{}` is not the id of a hold, nor the start of one: `fumehood stop --list` names them", escape(.0))]
    Hold(String),
    /// No id of a legal hold.
    #[error("`{}` is not the id of a legal hold, nor the start of one: `fumehood hold list` names them", escape(.0))]
    LegalHold(String),
    /// No name of a user.
    #[error("`{}` cannot be the name of a user: give the name that the system knows, up to 256 characters", escape(.0))]
    User(String),
    /// No reason.
    #[error("a reason is 1 to {REASON_MAX} characters on one line: say why, for whoever is refused")]
    Reason,
    /// No level of work.
    #[error("`{}` is not a level: give 1 (read only) to 6 (by itself within bounds)", escape(.0))]
    Level(String),
    /// No kind of change.
    #[error("`{}` is not a kind of change: give `created`, `modified` or `deleted`", escape(.0))]
    Change(String),
    /// Words that say nothing, or more than anybody reads.
    #[error("say what is wanted in 1 to {CLAIM_MAX} characters, without control characters but line ends")]
    Claim,
    /// Neither a task nor an action.
    #[error("`{}` is neither a task nor an action: expected `task-…` or `act-…` as `fumehood log` lists them", escape(.0))]
    Target(String),
    /// A limit of nothing.
    #[error("`{}` is nothing at all, and nothing could run: give more", escape(.0))]
    Zero(String),
    /// Not a size or a time.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// `--env NAME[=VALUE]`: a variable to set, or to pass on from the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvSetting {
    /// The name.
    pub name: String,
    /// The value; `None` passes the caller's own.
    pub value: Option<OsString>,
}

impl EnvSetting {
    /// Takes `NAME` or `NAME=VALUE`; the value may hold any bytes.
    ///
    /// # Errors
    /// When the name is not one that a shell could set.
    pub fn parse(text: OsString) -> Result<Self, ArgumentError> {
        let bytes = text.as_bytes();
        let end = bytes.iter().position(|b| *b == b'=');
        let name = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned();
        if !is_variable_name(&name) {
            return Err(ArgumentError::VariableName(name));
        }
        let value = end.map(|end| OsStr::from_bytes(&bytes[end + 1..]).to_owned());
        Ok(Self { name, value })
    }
}

/// Tells whether a shell could set a variable of this name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let starts_well = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `--input NAME=PATH`: a file or directory of the host that is shown read-only as `/inputs/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSetting {
    /// The name, one plain file name.
    pub name: String,
    /// Where it is, as it was written.
    pub path: PathBuf,
}

impl InputSetting {
    /// Takes `NAME=PATH`; the path may hold any bytes.
    ///
    /// # Errors
    /// When there is no `=`, no path, or the name is not a plain file name.
    pub fn parse(text: OsString) -> Result<Self, ArgumentError> {
        let bytes = text.as_bytes();
        let wrong = || ArgumentError::Input(text.to_string_lossy().into_owned());
        let end = bytes.iter().position(|b| *b == b'=').ok_or_else(wrong)?;
        let (name, path) = (&bytes[..end], &bytes[end + 1..]);
        if path.is_empty() {
            return Err(wrong());
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
            || !name.bytes().all(plain)
            || name.len() > 64
        {
            return Err(ArgumentError::InputName(name));
        }
        Ok(Self { name, path: PathBuf::from(OsStr::from_bytes(path)) })
    }
}

/// Processor time a second, in thousandths of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millicpus(pub u32);

impl FromStr for Millicpus {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let wrong = || ArgumentError::Cpus(text.to_owned());
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 3 {
            return Err(wrong());
        }
        let whole: u32 = whole.parse().map_err(|_| wrong())?;
        let part: u32 = format!("{part:0<3}").parse().map_err(|_| wrong())?;
        let millicpus = whole.checked_mul(1000).and_then(|m| m.checked_add(part)).ok_or_else(wrong)?;
        if millicpus == 0 { Err(wrong()) } else { Ok(Self(millicpus)) }
    }
}

impl fmt::Display for Millicpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 1000 {
            0 => write!(f, "{}", self.0 / 1000),
            part => write!(f, "{}.{}", self.0 / 1000, format!("{part:03}").trim_end_matches('0')),
        }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $error:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// Returns the name as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ArgumentError;

            fn from_str(text: &str) -> Result<Self, ArgumentError> {
                let rest = text.strip_prefix($prefix).unwrap_or(text);
                let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
                if (1..=16).contains(&rest.len()) && rest.bytes().all(plain) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(ArgumentError::$error(text.to_owned()))
                }
            }
        }
    };
}

name!(
    /// A task by its id, or by the start of one.
    TaskName,
    "task-",
    Task
);
name!(
    /// An action by its id, or by the start of one.
    ActionName,
    "act-",
    Action
);

name!(
    /// A request for a person's yes by its id, or by the start of one.
    ApprovalName,
    "apr-",
    Approval
);

name!(
    /// A hold by its id, or by the start of one.
    HoldName,
    "hold-",
    Hold
);

name!(
    /// A legal hold by its id, or by the start of one.
    LegalHoldName,
    "legal-",
    LegalHold
);

/// A task or one action of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The task.
    Task(TaskName),
    /// The action.
    Action(ActionName),
}

impl FromStr for Target {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let wrong = |_| ArgumentError::Target(text.to_owned());
        match text.split_once('-') {
            Some(("task", _)) => text.parse().map(Self::Task).map_err(wrong),
            Some(("act", _)) => text.parse().map(Self::Action).map_err(wrong),
            _ => Err(ArgumentError::Target(text.to_owned())),
        }
    }
}

/// Reads the name of an agent.
///
/// # Errors
/// When it is empty, long, or has characters that a record could not show as they are.
pub(crate) fn agent_name(text: &str) -> Result<String, ArgumentError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if (1..=64).contains(&text.len()) && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err(ArgumentError::Agent(text.to_owned()))
    }
}

/// The most characters of a reason.
const REASON_MAX: usize = 1000;

/// Reads why somebody does something: one line that says anything at all.
///
/// # Errors
/// When it is empty, long, or has characters that end a line.
pub(crate) fn reason(text: &str) -> Result<String, ArgumentError> {
    let fits = text.chars().count() <= REASON_MAX && !text.chars().any(char::is_control);
    if fits && !text.trim().is_empty() { Ok(text.to_owned()) } else { Err(ArgumentError::Reason) }
}

/// The most characters of what is wanted.
const CLAIM_MAX: usize = 8000;

/// Reads what is wanted, in somebody's words.
///
/// # Errors
/// When it is empty or long, or has control characters that are no line ends.
pub(crate) fn claim(text: &str) -> Result<String, ArgumentError> {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let fits = text.chars().count() <= CLAIM_MAX && !text.chars().any(odd);
    if fits && !text.trim().is_empty() { Ok(text.to_owned()) } else { Err(ArgumentError::Claim) }
}

/// Reads a level of work.
///
/// # Errors
/// When there is no such level.
pub(crate) fn work_level(text: &str) -> Result<WorkLevel, ArgumentError> {
    let level = text.parse::<u8>().ok().and_then(|number| WorkLevel::try_from(number).ok());
    level.ok_or_else(|| ArgumentError::Level(text.to_owned()))
}

/// Reads a kind of change.
///
/// # Errors
/// When there is no such kind.
pub(crate) fn change_name(text: &str) -> Result<ChangeName, ArgumentError> {
    let all = [ChangeName::Created, ChangeName::Modified, ChangeName::Deleted];
    let found = all.into_iter().find(|kind| kind.to_string() == text);
    found.ok_or_else(|| ArgumentError::Change(text.to_owned()))
}

/// Reads the name of a user as the system has it.
///
/// # Errors
/// When no user could have it.
pub(crate) fn user_name(text: &str) -> Result<String, ArgumentError> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '/');
    if (1..=256).contains(&text.len()) && !text.chars().any(odd) {
        Ok(text.to_owned())
    } else {
        Err(ArgumentError::User(text.to_owned()))
    }
}

/// Reads a time such as `90s`, `10m` or `30d`.
///
/// # Errors
/// When the text is not a whole number with a unit, or is zero: what has no time cannot run.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, ArgumentError> {
    match parse_duration(text)? {
        Duration::ZERO => Err(ArgumentError::Zero(text.to_owned())),
        time => Ok(time),
    }
}

/// Reads a size such as `512MiB`.
///
/// # Errors
/// When the text is not a whole number with a unit, or is zero: what has no room cannot run.
pub(crate) fn positive_bytes(text: &str) -> Result<Bytes, ArgumentError> {
    match text.parse::<Bytes>()? {
        bytes if bytes == Bytes::new(0) => Err(ArgumentError::Zero(text.to_owned())),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn an_environment_setting_keeps_bytes_that_are_no_text() {
        let setting =
            EnvSetting::parse(OsString::from_vec(b"A=x=\xff".to_vec())).expect("a name and a value");
        assert_eq!(setting.name, "A");
        assert_eq!(setting.value, Some(OsString::from_vec(b"x=\xff".to_vec())));
        assert_eq!(EnvSetting::parse("A".into()).map(|s| s.value), Ok(None));
        assert_eq!(EnvSetting::parse("A=".into()).map(|s| s.value), Ok(Some(OsString::new())));
        for wrong in ["", "=x", "1A=x", "A B=x", "A-B"] {
            assert!(EnvSetting::parse(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_input_has_a_plain_name_and_a_path() {
        let input = InputSetting::parse("data.v1=/srv/a=b".into()).expect("a name and a path");
        assert_eq!((input.name.as_str(), input.path.as_os_str()), ("data.v1", OsStr::new("/srv/a=b")));
        for wrong in ["", "data", "data=", "=x", "../x=/y", ".x=/y", "a/b=/y", "a b=/y"] {
            assert!(InputSetting::parse(wrong.into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn processors_are_read_to_the_thousandth() {
        for (text, millicpus) in [("2", 2000), ("0.5", 500), ("1.25", 1250), ("0.001", 1), ("10.125", 10125)]
        {
            assert_eq!(text.parse(), Ok(Millicpus(millicpus)), "{text}");
            assert_eq!(Millicpus(millicpus).to_string(), text);
        }
        for wrong in ["", "0", "0.0", "-1", "1.", ".5", "1.2345", "1e3", "99999999"] {
            assert!(wrong.parse::<Millicpus>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_target_is_a_task_or_an_action() {
        assert!(matches!("task-aaaaaaaaaaaaaaaa".parse(), Ok(Target::Task(_))));
        assert!(matches!("act-aaaaaaaaaaaaaaaa".parse(), Ok(Target::Action(_))));
        assert!(matches!("act-7k".parse(), Ok(Target::Action(name)) if name.as_str() == "act-7k"));
        for wrong in ["last", "act-", "act-A", "act-../x", "task-aaaaaaaaaaaaaaaaa", "log-a"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
        assert!("7k".parse::<TaskName>().is_ok() && "act-7k".parse::<TaskName>().is_err());
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert!(positive_duration("0s").is_err());
        assert!(positive_bytes("0KiB").is_err());
        assert_eq!(positive_bytes("1k"), Ok(Bytes::new(1024)));
        assert_eq!(positive_duration("1m"), Ok(Duration::from_secs(60)));
    }
}
