//! No room, no permission, no writing: nothing is left half-written.

use std::process::Command;

use super::*;

/// Runs one test of this program in a mount namespace, with a small file system mounted on a directory.
fn inside(test: &str, options: &str) {
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if root { ["-m"].as_slice() } else { &["-U", "-r", "-m"] });
    let dir = tempfile::tempdir().expect("a temporary directory");
    let script = format!(
        "mount -t tmpfs -o '{options}' tmpfs \"$FUMEHOOD_TEST_MOUNT\" && exec \"$0\" --exact \"$1\" --nocapture --include-ignored"
    );
    let name = format!("{}::{test}", module_path!().split_once("::").expect("in a crate").1);
    let status = command
        .args(["--propagation", "private", "sh", "-c", &script])
        .arg(std::env::current_exe().expect("this program"))
        .arg(name)
        .env("FUMEHOOD_TEST_MOUNT", dir.path())
        .status();
    assert!(status.expect("unshare starts").success());
}

fn mounted() -> Bench {
    let mount = std::env::var_os("FUMEHOOD_TEST_MOUNT").expect("is run by another test");
    Bench::in_directory(tempfile::tempdir_in(mount).expect("a directory in the mount"))
}

#[test]
fn a_full_disk_leaves_the_host_as_it_was() {
    inside("full_disk", "size=1m");
}

#[test]
fn a_read_only_disk_leaves_the_host_as_it_was() {
    inside("read_only_disk", "size=1m");
}

#[test]
fn no_free_inode_leaves_the_host_as_it_was() {
    inside("no_free_inode", "size=4m,nr_inodes=70");
}

#[test]
#[ignore = "is run by another test, in a mount of its own"]
fn full_disk() {
    let bench = mounted();
    bench.base("a", "old").made("a", "new").made("big", &"x".repeat(600 << 10)).made("z", "z").ran();
    let before = bench.tree();
    let error = bench.apply().expect_err("does not fit");
    assert!(error.to_string().contains("cannot prepare `big`; nothing was written"), "{error}");
    assert_eq!(bench.tree(), before);
    fs::remove_file(bench.upper("big")).expect("removed");
    assert!(bench.apply().expect("fits now").is_complete());
}

#[test]
#[ignore = "is run by another test, in a mount of its own"]
fn no_free_inode() {
    let bench = mounted();
    for file in 0..40 {
        bench.made(&format!("f{file}"), "x");
    }
    bench.base("a", "old").made("a", "new").ran();
    let before = bench.tree();
    assert!(bench.apply().is_err());
    assert_eq!(bench.tree(), before);
}

#[test]
#[ignore = "is run by another test, in a mount of its own"]
fn read_only_disk() {
    let bench = mounted();
    bench.base("a", "old").made("a", "new").ran();
    let artifacts = bench.artifacts();
    let mount = std::env::var_os("FUMEHOOD_TEST_MOUNT").expect("is run by another test");
    let status = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&mount).status();
    assert!(status.expect("mount starts").success());
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let workspace = bench.host("");
    let target = Target { workspace: &workspace, captured: elsewhere.path(), task: &bench.task };
    let error = apply(artifacts, &*bench.known.borrow(), &target).expect_err("cannot be written");
    assert!(matches!(error, ApplyError::Workspace { .. }), "{error}");
    assert_eq!(bench.read("a"), "old");
}

#[test]
fn what_may_not_be_written_is_reported_and_the_rest_is_written() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    bench.base("closed/a", "old").base("closed/b", "old").base("open/a", "old");
    bench.made("open/a", "new").made("closed/a", "new").gone("closed/b").made("closed/n", "new");
    for closed in [bench.host("closed"), bench.upper("closed")] {
        fs::set_permissions(closed, fs::Permissions::from_mode(0o555)).expect("set");
    }
    bench.ran();
    let applied = bench.apply().expect("is applied");
    for closed in [bench.host("closed"), bench.upper("closed")] {
        fs::set_permissions(closed, fs::Permissions::from_mode(0o755)).expect("set");
    }
    assert_eq!(paths(&applied.changes), ["open/a"]);
    let failed: Vec<_> = applied.failed.iter().map(|held| format!("{} {}", held.path, held.reason)).collect();
    assert_eq!(failed, ["closed/a no-permission", "closed/b no-permission", "closed/n no-permission"]);
    assert_eq!((bench.read("closed/a"), bench.read("closed/b")), ("old".into(), "old".into()));
    assert!(!bench.tree().keys().any(|path| path.to_string_lossy().starts_with(".fumehood-")));
}
