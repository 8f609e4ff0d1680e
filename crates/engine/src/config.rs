//! What the engine is told at its start. It reads no environment and no settings file itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use sandbox::Identity;

/// What the engine is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory.
    pub state_dir: PathBuf,
    /// Who runs commands when the caller is root and the workspace belongs to root.
    pub run_as: Identity,
    /// The caller's user name.
    pub user: String,
    /// The caller's home.
    pub home: PathBuf,
    /// The variables of the caller that a sandbox's view may look at: PATH and those of toolchains.
    pub environment: BTreeMap<OsString, OsString>,
    /// Values of the caller's environment that look like secrets; a command is never given one of them.
    pub secrets: Vec<OsString>,
    /// The bus on which the caller's service manager can be asked for a control group, where none is delegated.
    pub service_manager: Option<PathBuf>,
}
