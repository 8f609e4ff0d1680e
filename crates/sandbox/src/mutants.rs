//! Names the mutants: for each layer that a sandbox claims, what can be left out of the builder alone.
//!
//! Only builds with the feature `mutants` can leave anything out. The names are here so that a test can hold that
//! no layer is without one.

use model::enforcement::Layer;
use model::limits::LimitKind;

/// Something that can be left out of the builder, and the layer that is then missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mutant {
    /// The name by which a plan asks for it.
    pub name: &'static str,
    /// The layer.
    pub layer: Layer,
}

/// The mutants of the builder, beside one for each group of the filter (`seccomp-GROUP`).
pub const MUTANTS: &[Mutant] = &[
    mutant("user-namespace", Layer::UserNamespace),
    mutant("namespaces", Layer::UserNamespace),
    mutant("mount-namespace", Layer::MountNamespace),
    mutant("pid-namespace", Layer::PidNamespace),
    mutant("network-namespace", Layer::NetworkNamespace),
    mutant("prohibited-routes", Layer::NetworkNamespace),
    mutant("low-ports", Layer::NetworkNamespace),
    mutant("ipc-namespace", Layer::IpcNamespace),
    mutant("uts-namespace", Layer::UtsNamespace),
    mutant("cgroup-namespace", Layer::CgroupNamespace),
    mutant("root", Layer::Root),
    mutant("read-only", Layer::Root),
    mutant("noexec", Layer::Root),
    mutant("workspace", Layer::Workspace),
    mutant("proc", Layer::Proc),
    mutant("masks", Layer::Masks),
    mutant("seccomp", Layer::Seccomp),
    mutant("landlock", Layer::Landlock),
    mutant("capabilities", Layer::Capabilities),
    mutant("no-new-privs", Layer::NoNewPrivs),
    mutant("descriptors", Layer::Descriptors),
    mutant("environment", Layer::Environment),
    mutant("session", Layer::Session),
    mutant("groups", Layer::Groups),
    mutant("supervisor", Layer::Supervisor),
    mutant("processes", Layer::Limit(LimitKind::Processes)),
    mutant("open-files", Layer::Limit(LimitKind::OpenFiles)),
    mutant("file-size", Layer::Limit(LimitKind::FileSize)),
    mutant("control-groups", Layer::Limit(LimitKind::Memory)),
    mutant("control-groups", Layer::Limit(LimitKind::Cpu)),
    mutant("disk", Layer::Limit(LimitKind::Disk)),
    mutant("disk", Layer::Limit(LimitKind::Files)),
    mutant("disk-image", Layer::Limit(LimitKind::Disk)),
    mutant("disk-image", Layer::Limit(LimitKind::Files)),
];

const fn mutant(name: &'static str, layer: Layer) -> Mutant {
    Mutant { name, layer }
}
