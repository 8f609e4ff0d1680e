//! Says how each layer of a sandbox is held, and compares that with what its profile demands.

use launcher::message::LandlockReport;
use model::Profile;
use model::enforcement::{Held, Layer, Level, Shortfall};
use model::limits::LimitKind;
use model::text::escape;

use crate::cgroup::Resource;
use crate::error::SandboxError;
use crate::groups::Groups;
use crate::quota::Quota;
use crate::spec::{Joined, Spec};
use crate::view::Executables;

/// What the host and the launcher told about this sandbox.
pub(crate) struct Facts<'a> {
    /// What Landlock really enforces.
    pub(crate) landlock: LandlockReport,
    /// The control group.
    pub(crate) groups: &'a Groups,
    /// What holds the limits for bytes and files.
    pub(crate) quota: &'a Quota,
    /// Why the files that are read are not observed, if so.
    pub(crate) reads: Option<String>,
    /// Whether the way out of its network has IPv6, when there is one.
    pub(crate) way_out: Option<bool>,
}

/// Options that the workspace must be mounted with; the kernel can drop some without an error.
const WORKSPACE_OPTIONS: [&str; 1] = ["userxattr"];
/// Options that must not be on: each makes a layer that other kernels or a later mount read differently.
const FORBIDDEN_OPTIONS: [&str; 3] = ["redirect_dir=on", "metacopy=on", "index=on"];

/// What is said of the processor limit when none was asked for.
const NO_LIMIT: &str = "no limit was asked for";

/// Says how each layer is held.
pub(crate) fn held(spec: &Spec, facts: &Facts<'_>) -> Vec<Held> {
    let mut held: Vec<Held> = [
        (Layer::UserNamespace, "a namespace with one id, and no further ones"),
        (Layer::MountNamespace, "a mount namespace of its own"),
        (Layer::PidNamespace, "a process namespace of its own"),
        (Layer::IpcNamespace, "an IPC namespace of its own"),
        (Layer::UtsNamespace, "a host name of its own"),
        (Layer::CgroupNamespace, "a cgroup namespace of its own"),
        (Layer::Workspace, "an overlay; the host's directory is below it, read-only"),
        (Layer::Proc, "its own /proc with masked entries"),
        (Layer::Masks, "empty files mounted over credential files"),
        (Layer::Seccomp, "an allow-list of system calls"),
        (Layer::Capabilities, "all sets and the bounding set empty"),
        (Layer::NoNewPrivs, "no_new_privs"),
        (Layer::Descriptors, "all but the standard streams closed"),
        (Layer::Environment, "only what the view and the request name"),
        (Layer::Session, "a session of its own"),
        (Layer::Supervisor, "a first process that cannot be traced or read"),
    ]
    .into_iter()
    .map(|(layer, by)| hard(layer, by))
    .collect();
    held.push(network(spec.joined.as_ref(), facts.way_out));
    held.push(root(&spec.view.executables));
    held.push(landlock(&facts.landlock, spec.joined.is_some()));
    held.push(groups());
    held.push(reads(facts.reads.as_deref()));
    held.extend(limits(spec, facts));
    held
}

fn hard(layer: Layer, by: impl Into<String>) -> Held {
    Held { layer, level: Level::Hard, by: by.into() }
}

fn watched(limit: LimitKind, by: impl Into<String>) -> Held {
    Held { layer: Layer::Limit(limit), level: Level::Watched, by: by.into() }
}

fn absent(limit: LimitKind, why: String) -> Held {
    Held { layer: Layer::Limit(limit), level: Level::Absent, by: why }
}

fn memory(groups: &Groups) -> Held {
    match groups.support(Resource::Memory) {
        Ok(by) => hard(Layer::Limit(LimitKind::Memory), by),
        Err(why) => {
            watched(LimitKind::Memory, format!("sampled every 50 ms by the first process: {}", why.why))
        }
    }
}

fn processes(groups: &Groups) -> Held {
    let own = "RLIMIT_NPROC of the sandbox's own user namespace";
    let by = groups.support(Resource::Pids).map_or(own.to_owned(), |group| format!("{own}, and {group}"));
    hard(Layer::Limit(LimitKind::Processes), by)
}

/// Says what the root holds; a list of programs names the interpreters in it, because each grants all that it can do.
fn root(executables: &Executables) -> Held {
    let by = "a root of read-only pieces; the rest of the host is absent".to_owned();
    let Executables::Only(listed) = executables else { return hard(Layer::Root, by) };
    let interpreters: Vec<String> = listed
        .interpreters()
        .map(|(path, why)| format!("`{}` ({why})", escape(&path.to_string_lossy())))
        .collect();
    let grants = match interpreters.is_empty() {
        true => String::new(),
        false => format!("; listing an interpreter grants all that it can do: {}", interpreters.join(", ")),
    };
    hard(Layer::Root, format!("{by}; {} programs may be executed{grants}", listed.programs.len()))
}

fn network(joined: Option<&Joined>, way_out: Option<bool>) -> Held {
    const WAY_OUT: &str =
        "a network namespace in which every address but its own is refused, and names lead to the gateway";
    let by = match joined {
        None => match way_out {
            None => "a network namespace with only its loopback".to_owned(),
            Some(true) => WAY_OUT.to_owned(),
            Some(false) => format!("{WAY_OUT}; this host has no IPv6, so there is none inside either"),
        },
        Some(joined) => format!("the network namespace of {}, with only its loopback", joined.action),
    };
    hard(Layer::NetworkNamespace, by)
}

/// In a joined network, only the scope of Landlock keeps abstract sockets of two sandboxes apart.
fn landlock(report: &LandlockReport, joins: bool) -> Held {
    let enough = report.full && (report.scoped || !joins);
    let level = if enough { Level::Hard } else { Level::Absent };
    let scope = match (report.scoped, joins) {
        (true, _) => ", signals and abstract sockets held inside",
        (false, true) => ", which does not keep abstract sockets of a joined network apart",
        (false, false) => "",
    };
    Held { layer: Layer::Landlock, level, by: format!("Landlock ABI {}{scope}", report.abi) }
}

fn groups() -> Held {
    if rustix::process::geteuid().is_root() {
        return hard(Layer::Groups, "supplementary groups cleared");
    }
    let by =
        "an ordinary user cannot drop supplementary groups; nothing that only a group can reach is shown";
    Held { layer: Layer::Groups, level: Level::Absent, by: by.to_owned() }
}

fn reads(missing: Option<&str>) -> Held {
    let layer = Layer::Reads;
    match missing {
        None => {
            Held { layer, level: Level::Watched, by: "fanotify on the workspace and the inputs".to_owned() }
        }
        Some(why) => Held { layer, level: Level::Absent, by: why.to_owned() },
    }
}

fn limits(spec: &Spec, Facts { groups, quota, .. }: &Facts<'_>) -> Vec<Held> {
    let limits = &spec.grant.profile.limits;
    let mut held = vec![
        memory(groups),
        processes(groups),
        hard(Layer::Limit(LimitKind::OpenFiles), "RLIMIT_NOFILE"),
        hard(Layer::Limit(LimitKind::FileSize), "RLIMIT_FSIZE"),
        watched(LimitKind::WallTime, "the supervisor's clock"),
        watched(LimitKind::Output, "the supervisor keeps head and tail"),
    ];
    held.push(match (limits.millicpus, groups.support(Resource::Cpu)) {
        (_, Ok(by)) => hard(Layer::Limit(LimitKind::Cpu), by),
        (None, Err(_)) => hard(Layer::Limit(LimitKind::Cpu), NO_LIMIT),
        (Some(_), Err(why)) => absent(LimitKind::Cpu, why.why),
    });
    for kind in [LimitKind::Disk, LimitKind::Files] {
        held.push(match quota {
            Quota::Memory => hard(Layer::Limit(kind), "one tmpfs behind every writable place"),
            Quota::Image(image) => hard(Layer::Limit(kind), image.by()),
            Quota::Watched(why) => watched(kind, format!("measured by the supervisor: {why}")),
        });
    }
    held
}

/// Names the layers that are held less firmly than the profile demands.
pub(crate) fn shortfalls(profile: &Profile, held: &[Held]) -> Vec<Shortfall> {
    let short = held.iter().filter(|held| held.level < profile.least(held.layer));
    short
        .map(|held| Shortfall {
            layer: held.layer,
            needs: profile.least(held.layer),
            has: held.level,
            why: held.by.clone(),
            fix: fix(held.layer).to_owned(),
        })
        .collect()
}

fn fix(layer: Layer) -> &'static str {
    match layer {
        Layer::Limit(LimitKind::Memory | LimitKind::Cpu) => {
            "run as root or with a delegated cgroup, or choose a profile that accepts `watched`"
        }
        Layer::Limit(LimitKind::Disk | LimitKind::Files) => {
            "run as root on a host with loop devices and `mke2fs`, or choose a profile with disk_mode `memory`, or one that \
             accepts `watched`"
        }
        Layer::Landlock => {
            "use a kernel with Landlock (Linux 6.10 or later, 6.12 to join a network) and `landlock` among its `lsm=`"
        }
        Layer::Groups => "run as root, which can clear groups",
        Layer::Reads => "run as root, or choose a profile whose `minimum.reads` is `absent`",
        _ => "see docs/sandbox.md for the kernel that this layer needs",
    }
}

/// Refuses a workspace that the kernel mounted otherwise than it was told to.
pub(crate) fn check_workspace_options(options: &str) -> Result<(), SandboxError> {
    let has = |wanted: &&str| options.split(',').any(|option| option == *wanted);
    if WORKSPACE_OPTIONS.iter().all(has) && !FORBIDDEN_OPTIONS.iter().any(has) {
        return Ok(());
    }
    let source = std::io::Error::other(format!("the kernel mounted the workspace with `{options}`"));
    Err(SandboxError::Prepare { step: "workspace options", source })
}
