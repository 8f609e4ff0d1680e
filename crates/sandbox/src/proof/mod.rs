//! Judges what the prober observed. The table says for each probe which layer it shows, and what must be seen.

mod filter;

pub(crate) use filter::probes as filter_probes;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use launcher::message::{Observation, Saw};
use launcher::plan::Plan;
use model::enforcement::Layer;
use model::evidence::Probe;
use model::limits::LimitKind;

use crate::canary::Canaries;
use crate::plan::HOSTNAME;

/// What must be seen for one probe.
struct Expectation {
    probe: &'static str,
    layer: Layer,
    must: Must,
}

/// What must be seen.
enum Must {
    /// One of these errors of the kernel.
    FailWith(&'static [i32]),
    /// This number.
    Be(u64),
    /// The number that the plan sets for a resource.
    BeRlimit(libc::__rlimit_resource_t),
    /// Something that depends on the plan.
    Satisfy(fn(&Saw, &Plan) -> bool),
}

/// The metadata service of clouds.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
/// The kind of file system that an overlay has (`linux/magic.h`).
const OVERLAY_MAGIC: u64 = 0x794c_7630;

const EXPECTATIONS: &[Expectation] = &[
    expect("canary-file", Layer::Root, Must::FailWith(&[libc::ENOENT, libc::EACCES])),
    // A read-only mount answers before permissions and Landlock do, so this shows the mount alone.
    expect("root-write", Layer::Root, Must::FailWith(&[libc::EROFS])),
    expect("system-write", Layer::Root, Must::FailWith(&[libc::EROFS])),
    expect("landlock-write", Layer::Landlock, Must::FailWith(&[libc::EACCES])),
    expect("masked-file", Layer::Masks, Must::Satisfy(masked)),
    expect("kernel-setting", Layer::Proc, Must::FailWith(&[libc::EACCES, libc::EPERM, libc::EROFS])),
    expect("kernel-settings-mount", Layer::Proc, Must::Be(1)),
    expect("kernel-memory", Layer::Proc, Must::FailWith(&[libc::EACCES, libc::EPERM, libc::ENOENT])),
    expect("kernel-keys", Layer::Proc, Must::FailWith(&[libc::EACCES, libc::ENOENT])),
    expect("workspace-kind", Layer::Workspace, Must::Be(OVERLAY_MAGIC)),
    expect("user-namespaces-limit", Layer::UserNamespace, Must::Satisfy(no_more_namespaces)),
    expect("control-groups", Layer::CgroupNamespace, Must::Satisfy(own_cgroup_namespace)),
    expect("host-process", Layer::PidNamespace, Must::FailWith(&[libc::ESRCH])),
    expect("trace-first-process", Layer::Supervisor, Must::FailWith(&[libc::EPERM])),
    expect("read-first-process", Layer::Supervisor, Must::FailWith(&[libc::EACCES, libc::EPERM])),
    expect("descriptor-of-first-process", Layer::Supervisor, Must::FailWith(&[libc::EPERM])),
    expect("network", Layer::NetworkNamespace, Must::Satisfy(granted_network)),
    expect("host-loopback", Layer::NetworkNamespace, Must::Satisfy(not_the_hosts)),
    expect("metadata-address", Layer::NetworkNamespace, Must::Satisfy(no_metadata)),
    expect("abstract-socket", Layer::NetworkNamespace, Must::FailWith(&[libc::ECONNREFUSED, libc::EPERM])),
    expect("foreign-abstract-socket", Layer::Landlock, Must::Satisfy(apart_from_other_sandboxes)),
    expect("path-socket", Layer::Root, Must::FailWith(&[libc::ENOENT, libc::EACCES])),
    expect("host-segment", Layer::IpcNamespace, Must::Satisfy(no_segment)),
    expect("host-name", Layer::UtsNamespace, Must::Satisfy(own_host_name)),
    expect("change-root", Layer::Capabilities, Must::FailWith(&[libc::EPERM])),
    expect("gain-privilege", Layer::NoNewPrivs, Must::Be(1)),
    expect("capabilities", Layer::Capabilities, Must::Be(0)),
    expect("descriptors", Layer::Descriptors, Must::Be(0)),
    expect("environment", Layer::Environment, Must::Be(0)),
    expect("controlling-terminal", Layer::Session, Must::Satisfy(terminal_as_planned)),
    expect("own-session", Layer::Session, Must::Be(1)),
    expect("foreign-table", Layer::Seccomp, Must::Be(libc::SIGSYS as u64)),
    expect("groups", Layer::Groups, Must::Satisfy(groups_as_planned)),
    expect("processes-limit", Layer::Limit(LimitKind::Processes), Must::BeRlimit(libc::RLIMIT_NPROC)),
    expect("open-files-limit", Layer::Limit(LimitKind::OpenFiles), Must::BeRlimit(libc::RLIMIT_NOFILE)),
    expect("file-size-limit", Layer::Limit(LimitKind::FileSize), Must::BeRlimit(libc::RLIMIT_FSIZE)),
    expect("core-limit", Layer::Limit(LimitKind::FileSize), Must::BeRlimit(libc::RLIMIT_CORE)),
    expect("unlisted-program", Layer::Landlock, Must::Satisfy(nothing_unlisted)),
    expect("written-code", Layer::Root, Must::Satisfy(no_written_code)),
    expect("file-in-memory", Layer::Seccomp, Must::Satisfy(no_file_in_memory)),
    expect("store-bytes", Layer::Limit(LimitKind::Disk), Must::Satisfy(store_bytes)),
    expect("store-files", Layer::Limit(LimitKind::Files), Must::Satisfy(store_files)),
];

/// What must be seen in a network with a way out, beside all else.
const WAY_OUT: &[Expectation] = &[
    expect("other-address", Layer::NetworkNamespace, Must::Satisfy(prohibited)),
    expect("other-address-datagram", Layer::NetworkNamespace, Must::Satisfy(prohibited)),
    expect("other-address-v6", Layer::NetworkNamespace, Must::Satisfy(prohibited_or_absent)),
    expect("other-address-v6-datagram", Layer::NetworkNamespace, Must::Satisfy(prohibited_or_absent)),
    expect("metadata-datagram", Layer::NetworkNamespace, Must::Satisfy(prohibited)),
    expect("change-routes", Layer::NetworkNamespace, Must::FailWith(&[libc::EPERM])),
    expect("low-port", Layer::NetworkNamespace, Must::FailWith(&[libc::EACCES])),
    expect("proxy-port", Layer::NetworkNamespace, Must::FailWith(&[libc::EACCES])),
];

const fn expect(probe: &'static str, layer: Layer, must: Must) -> Expectation {
    Expectation { probe, layer, must }
}

/// Judges the observations, each with its positive control outside.
///
/// A probe that was expected and not reported, or reported and not expected, did not hold.
pub(crate) fn judge(observations: &[Observation], plan: &Plan, canaries: &Canaries) -> Vec<Probe> {
    let way_out = WAY_OUT.iter().filter(|_| plan.way_out.is_some());
    let mut probes: Vec<Probe> =
        EXPECTATIONS.iter().chain(way_out).map(|e| judge_one(e, observations, plan, canaries)).collect();
    probes.extend(filter::judge(observations));
    let named: BTreeSet<String> = probes.iter().map(|probe| probe.name.clone()).collect();
    let known = |name: &str| named.contains(name);
    probes.extend(observations.iter().filter(|o| !known(&o.probe)).map(|unknown| Probe {
        name: unknown.probe.clone(),
        layer: Layer::Supervisor,
        held: false,
        observed: "a probe that nobody knows".to_owned(),
        control: None,
    }));
    probes
}

fn judge_one(
    expectation: &Expectation,
    observations: &[Observation],
    plan: &Plan,
    canaries: &Canaries,
) -> Probe {
    let saw = observations.iter().find(|o| o.probe == expectation.probe).map(|o| &o.saw);
    let control = canaries.control(expectation.probe);
    let inside = saw.is_some_and(|saw| expectation.must.holds(saw, plan));
    let outside = control.as_ref().is_none_or(Result::is_ok);
    Probe {
        name: expectation.probe.to_owned(),
        layer: expectation.layer,
        held: inside && outside,
        observed: saw.map_or_else(|| "not tried".to_owned(), describe),
        control: control.map(|control| control.unwrap_or_else(|error| format!("failed: {error}"))),
    }
}

impl Must {
    fn holds(&self, saw: &Saw, plan: &Plan) -> bool {
        match self {
            Self::FailWith(errors) => matches!(saw, Saw::Errno(errno) if errors.contains(errno)),
            Self::Be(wanted) => *saw == Saw::Number(*wanted),
            Self::BeRlimit(resource) => {
                let wanted = plan.rlimits.iter().find(|limit| limit.resource == *resource);
                wanted.is_some_and(|limit| *saw == Saw::Number(limit.value))
            }
            Self::Satisfy(satisfied) => satisfied(saw, plan),
        }
    }
}

fn masked(saw: &Saw, plan: &Plan) -> bool {
    match plan.probe.masked_file {
        Some(_) => matches!(saw, Saw::Errno(libc::EACCES | libc::ENOENT)),
        None => matches!(saw, Saw::Text(_)),
    }
}

fn no_segment(saw: &Saw, plan: &Plan) -> bool {
    match plan.probe.canary_segment {
        Some(_) => matches!(saw, Saw::Errno(libc::EINVAL | libc::EIDRM)),
        None => matches!(saw, Saw::Text(_)),
    }
}

fn no_more_namespaces(saw: &Saw, plan: &Plan) -> bool {
    plan.nested_user_namespaces || *saw == Saw::Number(0)
}

fn own_cgroup_namespace(saw: &Saw, plan: &Plan) -> bool {
    matches!(saw, Saw::Number(inode) if *inode != plan.probe.host_cgroup_namespace)
}

/// The network of its own, or the very one that was granted.
fn granted_network(saw: &Saw, plan: &Plan) -> bool {
    let Saw::Number(inode) = saw else { return false };
    let granted = plan.probe.joined_network_namespace.is_none_or(|granted| *inode == granted);
    granted && *inode != plan.probe.host_network_namespace
}

/// Nobody answers at the port of the host's listener. In a joined network a server of the other action may stand there:
/// then the host's listener must have seen nobody, which is its control outside.
fn not_the_hosts(saw: &Saw, plan: &Plan) -> bool {
    let may_be_other = plan.probe.joined_network_namespace.is_some();
    *saw == Saw::Errno(libc::ECONNREFUSED) || (may_be_other && *saw == Saw::Done)
}

/// The address that only a rule for this very address can lead to.
fn no_metadata(saw: &Saw, plan: &Plan) -> bool {
    let granted = plan.way_out.as_ref().is_some_and(|way| way.leads_to(METADATA));
    granted || matches!(saw, Saw::Errno(libc::ENETUNREACH | libc::EACCES))
}

/// The route that refuses answered, or rules name every address that was to be tried.
fn prohibited(saw: &Saw, _: &Plan) -> bool {
    matches!(saw, Saw::Errno(libc::EACCES) | Saw::Text(_))
}

/// A host without IPv6 has no route at all for it.
fn prohibited_or_absent(saw: &Saw, plan: &Plan) -> bool {
    prohibited(saw, plan)
        || matches!(saw, Saw::Errno(libc::ENETUNREACH | libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT))
}

/// In a joined network, abstract names of other processes are there, and only Landlock keeps the command from them:
/// through such a socket, another sandbox could hand over open files.
fn apart_from_other_sandboxes(saw: &Saw, plan: &Plan) -> bool {
    match plan.probe.listener_outside_landlock {
        Some(_) => *saw == Saw::Errno(libc::EPERM),
        None => matches!(saw, Saw::Text(_)),
    }
}

fn own_host_name(saw: &Saw, _: &Plan) -> bool {
    *saw == Saw::Text(HOSTNAME.to_owned())
}

fn terminal_as_planned(saw: &Saw, plan: &Plan) -> bool {
    plan.terminal || matches!(saw, Saw::Errno(libc::ENXIO))
}

/// As root nothing of the caller's groups is left; a user cannot drop them, and the report says how many there are.
fn groups_as_planned(saw: &Saw, plan: &Plan) -> bool {
    if plan.identity.switch { *saw == Saw::Number(0) } else { matches!(saw, Saw::Number(_)) }
}

fn nothing_unlisted(saw: &Saw, plan: &Plan) -> bool {
    plan.probe.unlisted_file.is_none() || matches!(saw, Saw::Errno(libc::EACCES))
}

fn no_written_code(saw: &Saw, plan: &Plan) -> bool {
    plan.programs.is_none() || *saw == Saw::Number(0)
}

fn no_file_in_memory(saw: &Saw, plan: &Plan) -> bool {
    plan.programs.is_none() || matches!(saw, Saw::Errno(libc::EPERM))
}

fn store_bytes(saw: &Saw, plan: &Plan) -> bool {
    match store_limits(plan) {
        // The kernel rounds up to whole pages.
        Some((bytes, _)) => matches!(saw, Saw::Number(n) if bytes <= *n && *n < bytes + (64 << 10)),
        None => matches!(saw, Saw::Number(_)),
    }
}

fn store_files(saw: &Saw, plan: &Plan) -> bool {
    match store_limits(plan) {
        Some((_, files)) => *saw == Saw::Number(files),
        None => matches!(saw, Saw::Number(_)),
    }
}

fn store_limits(plan: &Plan) -> Option<(u64, u64)> {
    plan.steps.iter().find_map(|step| match step {
        launcher::plan::Step::MemoryStore { bytes, inodes, .. }
        | launcher::plan::Step::ImageStore { bytes, inodes, .. } => Some((*bytes, *inodes)),
        _ => None,
    })
}

/// Says in words what was seen.
pub(crate) fn describe(saw: &Saw) -> String {
    match saw {
        Saw::Done => "it succeeded".to_owned(),
        Saw::Errno(errno) => std::io::Error::from_raw_os_error(*errno).to_string(),
        Saw::Number(number) => number.to_string(),
        Saw::Text(text) => model::text::escape(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_named_once() {
        let mut names: Vec<_> =
            EXPECTATIONS.iter().chain(WAY_OUT).map(|expectation| expectation.probe).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn success_never_holds_where_failure_is_wanted() {
        let wants_failure = EXPECTATIONS.iter().filter_map(|expectation| match expectation.must {
            Must::FailWith(errors) => Some(errors),
            _ => None,
        });
        for errors in wants_failure {
            assert!(!errors.contains(&0));
            assert!(!matches!(Saw::Done, Saw::Errno(errno) if errors.contains(&errno)));
        }
    }
}
