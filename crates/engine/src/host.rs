//! What the engine knows about the host when it puts a sandbox together.

use std::collections::BTreeSet;

use model::Grant;
use model::egress::Registry;
use sandbox::Identity;
use sandbox::view::{Host, View, mount_points};

use crate::Engine;
use crate::error::EngineError;
use crate::workspace::Workspace;

impl Engine {
    /// Returns who the command will be: the caller; as root the workspace's owner, and never root.
    pub(crate) fn run_identity(&self, workspace: &Workspace) -> Identity {
        let us = caller();
        match (us.uid, workspace.owner.uid) {
            (0, 0) => self.config.run_as,
            (0, _) => workspace.owner,
            _ => us,
        }
    }

    /// Makes the view of the host for a run.
    pub(crate) fn view(
        &self,
        workspace: &Workspace,
        identity: Identity,
        grant: &Grant,
    ) -> Result<View, EngineError> {
        let mounts = mount_points().map_err(EngineError::file("read", "/proc/self/mountinfo"))?;
        let host = Host {
            root: "/".into(),
            home: self.config.home.clone(),
            user: self.config.user.clone(),
            caller: caller(),
            inside: identity,
            environment: self.config.environment.clone(),
            workspace: workspace.path.clone(),
            state_dir: self.store().directory().to_owned(),
            mount_points: mounts,
            terminal: grant.terminal,
            offline: grant.network.egress().is_none(),
            gateway: grant.network.egress().is_some(),
            looked_into: grant.network.looks_into_tls(),
            registries: self.reached(grant),
        };
        Ok(View::of(&host, &grant.programs)?)
    }
}

impl Engine {
    /// Returns the registries of packages that a grant reaches.
    pub(crate) fn reached(&self, grant: &Grant) -> Vec<Registry> {
        let rules = grant.network.egress().into_iter().flatten();
        let named: BTreeSet<&String> = rules.filter_map(|rule| rule.registry.as_ref()).collect();
        let registries = self.config.registries.iter().filter(|registry| named.contains(&registry.name));
        registries.cloned().collect()
    }
}

fn caller() -> Identity {
    Identity { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}
