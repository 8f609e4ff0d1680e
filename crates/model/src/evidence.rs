//! What was seen while an action ran. It is evidence for people and for the record, never a control.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::egress::NetworkUse;
use crate::enforcement::Layer;
use crate::limits::LimitKind;
use crate::os_text::OsText;

/// One forbidden act that the prober tried inside the finished sandbox before the command started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What was tried, by its name in `docs/sandbox.md`.
    pub name: String,
    /// The layer that must stop it.
    pub layer: Layer,
    /// Whether it was stopped, inside and as seen from outside.
    pub held: bool,
    /// What was observed inside: the error of the kernel, or the value that was read.
    pub observed: String,
    /// What the positive control outside showed, where there is one: the canary that exists, the listener that
    /// answers and saw nothing from inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
}

/// A program that was started inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStart {
    /// The file, as the caller named it.
    pub file: OsText,
    /// The arguments, as they were read from the caller's memory; cut after 4 KiB.
    pub argv: Vec<OsText>,
    /// The process, by its number inside.
    pub pid: i32,
}

/// A program that was tried and that the grant does not list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramTry {
    /// The file, as the caller named it.
    pub file: OsText,
    /// The arguments, as they were read from the caller's memory; cut after 4 KiB.
    pub argv: Vec<OsText>,
    /// The process, by its number inside.
    pub pid: i32,
    /// What stands in its way: the root, where the file is not there; Landlock, where it is. The dynamic loader can be
    /// started, and finds in the root nothing to load but what is listed.
    pub layer: Layer,
}

/// An attempt to connect to something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionAttempt {
    /// The address, as `IP:PORT`, `[IP]:PORT`, `unix:PATH` or `abstract:NAME`.
    pub address: String,
    /// The process, by its number inside.
    pub pid: i32,
}

/// What was seen while the command ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Observed {
    /// The programs that were started, in order.
    pub programs: Vec<ProgramStart>,
    /// How many more were started than are listed.
    pub programs_dropped: u64,
    /// Programs that were tried and that the grant does not list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted_programs: Vec<ProgramTry>,
    /// How many more were tried than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted_programs_dropped: u64,
    /// The connections that were tried, equal ones once.
    pub connections: Vec<ConnectionAttempt>,
    /// How many more were tried than are listed.
    pub connections_dropped: u64,
    /// What was done over the network through the gateway, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Box<NetworkUse>>,
    /// The files of the workspace and the inputs that were opened; nothing where that was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// Directories of lower layers that were renamed by the helper.
    pub renames_healed: u64,
    /// Limits that the action came up against, whether or not that ended it.
    pub limits_touched: Vec<LimitKind>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The files that were opened, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reads {
    /// Their paths inside, in order of the alphabet.
    pub files: Vec<OsText>,
    /// Whether these are all: there is a bound, and events can be lost.
    pub complete: bool,
}

/// How long each step of a run took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTime {
    /// The step.
    pub step: String,
    /// How long.
    pub time: Duration,
}

/// What was found when the sandbox was gone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Teardown {
    /// What was looked at and found gone.
    pub gone: Vec<String>,
    /// What was still there, and had to be removed or could not be.
    pub left: Vec<String>,
}

impl Teardown {
    /// Tells whether nothing was left.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty()
    }
}
