//! What one action may touch: asked for in a request, at most that in a permit.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::egress::{EgressRule, Protocol};
use crate::id::ActionId;
use crate::os_text::OsText;
use crate::path::WorkspacePath;
use crate::profile::Profile;

/// What one action may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What the action may do with the workspace.
    pub workspace: WorkspaceAccess,
    /// What the action may reach over the network.
    pub network: Network,
    /// The profile: limits, and the least that must hold.
    pub profile: Profile,
    /// Which programs may be started.
    pub programs: Programs,
    /// Directories and files of the host that are shown read-only, each under its name in `/inputs`.
    pub inputs: Vec<Input>,
    /// Credential files of the workspace that policy allowed to be seen; all others are masked.
    pub shown_credentials: Vec<WorkspacePath>,
    /// Whether the action may use a terminal.
    pub terminal: bool,
    /// Paths of the workspace that are hidden from it beside what is masked for everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<WorkspacePath>,
}

/// What an action may do with the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceAccess {
    /// Read it.
    ReadOnly,
    /// Read it, and write to a layer of its own.
    ReadWrite,
}

/// What an action may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Only its own loopback.
    Loopback,
    /// The loopback of this action, which runs: the two reach each other's servers, and nothing else.
    Joined(ActionId),
    /// Beside the own loopback what these rules name, through the gateway, in order and each once.
    Egress(BTreeSet<EgressRule>),
    /// Everything that the host reaches. No shipped policy allows it.
    Host,
}

impl Network {
    /// Returns the action whose network this is, when it is not the own one.
    pub fn joined(&self) -> Option<&ActionId> {
        match self {
            Self::Joined(action) => Some(action),
            Self::Loopback | Self::Egress(_) | Self::Host => None,
        }
    }

    /// Tells whether the gateway has to look into TLS for what it reaches.
    pub fn looks_into_tls(&self) -> bool {
        let inside = |rule: &EgressRule| rule.protocol == Protocol::Https && rule.looks_inside();
        self.egress().is_some_and(|rules| rules.iter().any(inside))
    }

    /// Returns what it reaches through the gateway.
    pub fn egress(&self) -> Option<&BTreeSet<EgressRule>> {
        match self {
            Self::Egress(rules) => Some(rules),
            Self::Loopback | Self::Joined(_) | Self::Host => None,
        }
    }
}

/// Which programs an action may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Programs {
    /// Every program that is shown, and what the action builds itself.
    Any,
    /// These files and no others. Naming an interpreter grants all that the interpreter can do.
    Only(Vec<GrantedProgram>),
}

/// A program that an action may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantedProgram {
    /// The file: resolved, or a name that is looked up on the caller's PATH.
    pub file: OsText,
    /// What the file held when it was granted: nothing starts when it holds something else by then. Missing, whatever
    /// stands there is meant.
    pub digest: Option<Digest>,
}

impl GrantedProgram {
    /// Means a file whatever it holds.
    pub fn whatever_it_holds(file: OsText) -> Self {
        Self { file, digest: None }
    }
}

/// A directory or file of the host that is shown read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The name in `/inputs`.
    pub name: String,
    /// Where it is on the host, resolved.
    pub source: OsText,
}

impl Grant {
    /// Returns the grant for ordinary work under a profile: the workspace, no network, any program.
    pub fn under(profile: Profile) -> Self {
        Self {
            workspace: WorkspaceAccess::ReadWrite,
            network: Network::Loopback,
            profile,
            programs: Programs::Any,
            inputs: Vec::new(),
            shown_credentials: Vec::new(),
            terminal: false,
            hidden: Vec::new(),
        }
    }
}
