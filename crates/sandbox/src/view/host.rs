//! What the caller tells about the host and about itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use model::egress::Registry;

/// The host as one sandbox's view is made from it.
#[derive(Debug, Clone)]
pub struct Host {
    /// The top of the host's file system: `/`, and a fixture in tests. All other paths are below it, written without it.
    pub root: PathBuf,
    /// The caller's home, as `HOME` or the user database names it (it may lead through links).
    pub home: PathBuf,
    /// The name that the user has inside.
    pub user: String,
    /// Whose files are looked at: the caller's effective ids on the host.
    pub caller: Identity,
    /// The ids of the command. They differ from the caller's only where the caller is real root.
    pub inside: Identity,
    /// The caller's `PATH`, `HOME`, `LANG` and tool variables; what no rule names is ignored.
    pub environment: BTreeMap<OsString, OsString>,
    /// The workspace, resolved.
    pub workspace: PathBuf,
    /// The state directory of the product, resolved. No sandbox ever sees it.
    pub state_dir: PathBuf,
    /// Where file systems are mounted on the host, as `/proc/self/mountinfo` lists them.
    pub mount_points: Vec<PathBuf>,
    /// Whether the command has a terminal, so that `TERM` is of use.
    pub terminal: bool,
    /// Whether the network is only the sandbox's own loopback, so that tools are told not to try it.
    pub offline: bool,
    /// Whether the network is reached through a gateway, which answers for names on the loopback.
    pub gateway: bool,
    /// Whether that gateway looks into TLS, so that clients have to trust its authority.
    pub looked_into: bool,
    /// The registries of packages that are reached.
    pub registries: Vec<Registry>,
}

/// A user and its primary group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
}

#[cfg(test)]
impl Host {
    /// Returns a host for tests: a directory, a caller named ada with a home in it, and nothing else.
    pub(crate) fn fixture(root: &std::path::Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        let owner = std::fs::metadata(root).expect("the root of a fixture");
        let ada = Identity { uid: owner.uid(), gid: owner.gid() };
        Self {
            root: root.to_owned(),
            home: "/home/ada".into(),
            user: "ada".to_owned(),
            caller: ada,
            inside: ada,
            environment: BTreeMap::new(),
            workspace: "/home/ada/project".into(),
            state_dir: "/home/ada/.local/state/fumehood".into(),
            mount_points: Vec::new(),
            terminal: false,
            offline: true,
            gateway: false,
            looked_into: false,
            registries: Vec::new(),
        }
    }
}
