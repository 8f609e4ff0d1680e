//! What the engine is told at its start. It reads no environment and no settings file itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gate::{Gate, GateError, Policy};
use model::egress::{Begin, Registry, SigningAuthority};
use model::{EgressRule, Profile, Timestamp};
use sandbox::Identity;

use crate::anchor::Anchor;
use crate::approvals::Roles;
use crate::credentials::Credential;
use crate::rules::Checked;

/// Which rules decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// A bundle that ships with the product, by its name.
    Bundle(String),
    /// The text of the operator's own rules.
    Rules(String),
    /// There are none that can be had, for this reason.
    Unusable(String),
}

impl PolicySource {
    /// Opens a gate with these rules. Rules that cannot be used make one that denies everything, and says why.
    pub fn gate(&self) -> Gate {
        self.gate_read_by(Policy::parse)
    }

    /// Opens a gate as [`PolicySource::gate`] does, and leaves out what was checked before.
    pub(crate) fn gate_known_to(&self, checked: &Checked) -> Gate {
        self.gate_read_by(|text| checked.of_operator(text))
    }

    fn gate_read_by(&self, read: impl FnOnce(&str) -> Result<Policy, GateError>) -> Gate {
        let policy = match self {
            Self::Bundle(name) => Policy::bundle(name).unwrap_or(Err(GateError::Missing)),
            Self::Rules(text) => read(text),
            Self::Unusable(why) => Err(GateError::Unusable(why.clone())),
        };
        match policy {
            Ok(policy) => Gate::new(policy),
            Err(error) => Gate::closed(&error),
        }
    }
}

/// What actions may reach over the network, and in which repositories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reachable {
    /// The rules.
    pub rules: Vec<EgressRule>,
    /// The directories for whose repositories they are; all when missing.
    pub repositories: Option<Vec<PathBuf>>,
}

impl Reachable {
    /// Tells whether it is for a workspace.
    pub fn is_for(&self, workspace: &Path) -> bool {
        let within =
            |directories: &Vec<PathBuf>| directories.iter().any(|directory| workspace.starts_with(directory));
        self.repositories.as_ref().is_none_or(within)
    }
}

/// The gateway of a sandbox: a program of ours that is started for each action that reaches something.
#[derive(Debug, Clone)]
pub struct GatewayProgram {
    /// The program: our own file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What holds for all rules of all actions.
    pub begin: Begin,
    /// What signs for clients inside, kept in this directory; asked for where a rule has to look into TLS.
    pub authority: fn(&Path, Timestamp) -> Result<SigningAuthority, String>,
    /// Files with certificates that servers are verified by, beside the system's.
    pub roots: Vec<PathBuf>,
}

/// What the engine is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory.
    pub state_dir: PathBuf,
    /// Which rules decide.
    pub policy: PolicySource,
    /// What helpers of ours may use, where they are not the caller's: the operator's, so it is never wider than policy.
    pub helper_profile: Profile,
    /// Who runs commands when the caller is root and the workspace belongs to root.
    pub run_as: Identity,
    /// The caller's user name.
    pub user: String,
    /// The caller's account, by number.
    pub account: u32,
    /// The accounts whose yes is the owner's own: the caller's, and those through which they came.
    pub owners: BTreeSet<u32>,
    /// What a person allowed actions to reach over the network, in settings that no agent writes.
    pub egress: Vec<Reachable>,
    /// The credentials of the operator, whose values stay outside.
    pub credentials: Vec<Credential>,
    /// The variables inside that hold a made-up credential of each task, which must not come out.
    pub canaries: Vec<String>,
    /// The registries of packages that rules may name.
    pub registries: Vec<Registry>,
    /// The gateway that sandboxes reach something through; without one, nothing is reached.
    pub gateway: Option<GatewayProgram>,
    /// Who has which role, as the operator's settings say it.
    pub roles: Roles,
    /// Where answers of other accounts are, as the machine's settings say it.
    pub answers: Option<PathBuf>,
    /// The caller's home.
    pub home: PathBuf,
    /// The variables of the caller that a sandbox's view may look at: PATH and those of toolchains.
    pub environment: BTreeMap<OsString, OsString>,
    /// Variables of the caller's environment whose values look like secrets; a command is never given one of them, and none
    /// is written down.
    pub secrets: Vec<(String, OsString)>,
    /// Where signed heads of the record are kept beside the state directory.
    pub anchor: Option<Anchor>,
    /// The bus on which the caller's service manager can be asked for a control group, where none is delegated.
    pub service_manager: Option<PathBuf>,
}
