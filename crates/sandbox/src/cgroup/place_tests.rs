//! Which place is chosen, on trees that only look like a host's.

use std::fs;
use std::path::{Path, PathBuf};

use super::mounts::Hierarchies;
use super::place::Places;
use super::{Cpu, Creation, Request, Resource, Version};
use model::Bytes;

/// A made-up host. A directory with a file `.denied` cannot be written.
struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Makes a group of version 2: what it is offered, what it gives on, who is in it.
    fn modern(&self, below: &str, offered: &str, given: &str, members: &str) -> &Self {
        let group = self.path(below);
        fs::create_dir_all(&group).unwrap();
        for (name, text) in [
            ("cgroup.controllers", offered),
            ("cgroup.subtree_control", given),
            ("cgroup.procs", members),
            ("cgroup.type", "domain\n"),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
        self
    }

    fn topmost(&self, below: &str) -> &Self {
        fs::remove_file(self.path(below).join("cgroup.type")).unwrap();
        self
    }

    fn denied(&self, below: &str) -> &Self {
        fs::write(self.path(below).join(".denied"), "").unwrap();
        self
    }

    fn old(&self, below: &str) -> &Self {
        fs::create_dir_all(self.path(below)).unwrap();
        self
    }

    /// Looks from a process in the given groups; `mounts` are pairs of a directory and its controllers.
    fn seen(&self, mounts: &[(&str, &str)], options: &str, groups: &str) -> Hierarchies {
        let line = |(below, controllers): &(&str, &str)| {
            let kind = if controllers.is_empty() { "cgroup2" } else { "cgroup" };
            format!(
                "30 20 0:30 / {} {options} - {kind} {kind} rw,{controllers}\n",
                self.path(below).display()
            )
        };
        let mountinfo: String = mounts.iter().map(line).collect();
        let mut seen = Hierarchies::parse(mountinfo.as_bytes(), groups.as_bytes());
        seen.may_write = |path: &Path| {
            let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
            path.exists() && !directory.join(".denied").exists()
        };
        seen
    }
}

fn resources(places: &Places) -> Vec<Resource> {
    places.support.iter().filter(|support| support.by.is_ok()).map(|support| support.resource).collect()
}

fn reasons(places: &Places) -> String {
    places
        .support
        .iter()
        .filter_map(|support| support.by.as_ref().err())
        .map(|no| format!("{no:?}\n"))
        .collect()
}

const V2: &[(&str, &str)] = &[("", "")];

#[test]
fn a_users_session_is_not_delegated_and_the_answer_says_what_helps() {
    let host = Host::new();
    host.modern("", "cpu memory pids", "cpu memory pids", "1\n").topmost("").denied("");
    host.modern("user.slice/s.scope", "memory pids", "", "77\n").denied("user.slice/s.scope");
    host.modern("user.slice", "memory pids", "memory pids", "").denied("user.slice");
    let seen = host.seen(V2, "rw", "0::/user.slice/s.scope\n");
    let places = seen.places();
    assert!(places.list.is_empty() && resources(&places).is_empty());
    assert!(reasons(&places).contains("--property=Delegate=yes"), "{}", reasons(&places));
    let request =
        Request { label: "a", memory: Bytes::mib(1), swap: Bytes::new(0), pids: 1, cpu: Cpu::Millis(1) };
    assert!(matches!(seen.create(&request).unwrap(), Creation::NotDelegated(_)));
}

#[test]
fn a_scope_of_our_own_is_used_after_we_leave_its_top() {
    let host = Host::new();
    let us = format!("{}\n", std::process::id());
    host.modern("", "cpu memory pids", "cpu memory pids", "1\n").topmost("").denied("");
    host.modern("u", "memory pids", "memory pids", "");
    host.modern("u/run.scope", "memory pids", "", &us);
    let places = host.seen(V2, "rw", "0::/u/run.scope\n").places();
    assert_eq!(places.list.len(), 1);
    assert_eq!(places.list[0].directory, host.path("u/run.scope"));
    assert!(places.list[0].move_self);
    assert_eq!(resources(&places), [Resource::Memory, Resource::Swap, Resource::Pids]);
    assert!(reasons(&places).contains("`cpu`"));
}

#[test]
fn once_we_have_left_its_top_the_scope_is_still_the_place() {
    let host = Host::new();
    host.modern("", "memory pids", "memory pids", "1\n").topmost("").denied("");
    host.modern("scope", "memory pids", "memory pids", "");
    host.modern("scope/fumehood", "memory pids", "memory pids", "");
    host.modern("scope/fumehood/1-2-3-0-supervisor", "memory pids", "", &format!("{}\n", std::process::id()));
    let places = host.seen(V2, "rw", "0::/scope/fumehood/1-2-3-0-supervisor\n").places();
    assert_eq!(places.list[0].directory, host.path("scope"));
    assert!(!places.list[0].move_self);
}

#[test]
fn a_group_that_others_are_in_is_passed_over_for_the_one_above() {
    let host = Host::new();
    host.modern("", "cpu memory pids", "memory", "1\n").topmost("");
    host.modern("slice", "cpu memory pids", "memory", "");
    host.modern("slice/session", "memory", "", "88\n99\n");
    let places = host.seen(V2, "rw", "0::/slice/session\n").places();
    assert_eq!(places.list[0].directory, host.path("slice"));
    assert!(!places.list[0].move_self);
    assert_eq!(resources(&places), Resource::ALL);
}

#[test]
fn in_a_container_full_of_processes_only_their_end_can_be_held() {
    let host = Host::new();
    host.modern("", "cpu memory pids", "", "1\n5\n");
    let places = host.seen(V2, "rw", "0::/\n").places();
    assert_eq!(places.list.len(), 1, "the group can still be ended at once");
    assert!(resources(&places).is_empty());
    assert!(reasons(&places).contains("holds processes of others"), "{}", reasons(&places));
}

#[test]
fn a_read_only_mount_is_named() {
    let host = Host::new();
    host.modern("", "memory", "memory", "").old("memory");
    for (mounts, groups) in [(V2, "0::/\n"), (&[("memory", "memory")], "3:memory:/\n")] {
        let places = host.seen(mounts, "ro", groups).places();
        assert!(places.list.is_empty());
        assert!(reasons(&places).contains("mounted read-only"), "{}", reasons(&places));
    }
}

#[test]
fn a_group_outside_of_the_view_is_no_place() {
    let host = Host::new();
    host.modern("", "memory", "memory", "");
    let places = host.seen(V2, "rw", "0::/../other\n").places();
    assert!(places.list.is_empty() && reasons(&places).contains("outside"), "{}", reasons(&places));
}

#[test]
fn a_hybrid_host_limits_by_version_1_and_ends_by_version_2() {
    let host = Host::new();
    host.modern("unified", "hugetlb", "", "1\n").topmost("unified");
    host.old("memory/mine").old("pids").old("cpu");
    fs::write(host.path("memory/mine/memory.memsw.limit_in_bytes"), "").unwrap();
    let mounts = [("unified", ""), ("memory", "memory"), ("pids", "pids"), ("cpu", "cpu,cpuacct")];
    let groups = "4:memory:/mine\n3:pids:/\n2:cpu,cpuacct:/\n0::/\n";
    let places = host.seen(&mounts, "rw", groups).places();
    assert_eq!(resources(&places), Resource::ALL);
    let chosen: Vec<_> = places.list.iter().map(|place| (place.version, place.directory.clone())).collect();
    assert_eq!(chosen[0], (Version::V2, host.path("unified")));
    assert_eq!(chosen[1], (Version::V1, host.path("memory/mine")));
    assert_eq!(chosen.len(), 4, "the launcher takes four files to enter at most");
}

#[test]
fn a_host_with_version_1_alone_is_stopped_by_the_freezer_first() {
    let host = Host::new();
    host.old("memory").old("pids").old("cpu").old("freezer").denied("pids");
    let mounts = [("memory", "memory"), ("pids", "pids"), ("cpu", "cpu"), ("freezer", "freezer")];
    let places = host.seen(&mounts, "rw", "4:memory:/\n3:pids:/\n2:cpu:/\n1:freezer:/\n").places();
    assert_eq!(places.list[0].directory, host.path("freezer"));
    assert!(!resources(&places).contains(&Resource::Pids));
    assert!(reasons(&places).contains("as root"), "{}", reasons(&places));
    assert!(places.list.len() <= 4);
}

#[test]
fn a_host_that_has_a_controller_could_hold_it_for_who_gets_a_group() {
    let host = Host::new();
    host.modern("", "cpu memory pids", "cpu memory pids", "1\n").topmost("");
    let seen = host.seen(V2, "rw", "0::/\n");
    assert!(seen.could_hold(Resource::Memory));
    let host = Host::new();
    host.modern("", "cpu", "cpu", "1\n").topmost("");
    assert!(!host.seen(V2, "rw", "0::/\n").could_hold(Resource::Memory));
    assert!(!host.seen(&[], "rw", "").could_hold(Resource::Memory));
}

#[test]
fn without_any_hierarchy_the_answer_is_a_reason() {
    let host = Host::new();
    let seen = host.seen(&[], "rw", "");
    let request =
        Request { label: "a", memory: Bytes::mib(1), swap: Bytes::new(0), pids: 1, cpu: Cpu::Millis(1) };
    let Creation::NotDelegated(no) = seen.create(&request).unwrap() else { panic!("a group out of nothing") };
    assert!(no.fix.contains("cgroup2"), "{no:?}");
}
