//! Somebody works against us while we write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;
use crate::fail_point;

#[test]
fn a_directory_that_turns_into_a_link_and_back_leads_nowhere() {
    let bench = Bench::new();
    fs::create_dir(bench.host("d")).expect("made");
    symlink(bench.outside(), bench.host("l")).expect("linked");
    bench.made("d/planted", "x").made("d/sub/deep", "x").ran();
    let stop = Arc::new(AtomicBool::new(false));
    let (swapped, d, l) = (stop.clone(), bench.host("d"), bench.host("l"));
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0_u32;
        while !swapped.load(Ordering::Relaxed) {
            renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).expect("exchanged");
            swaps += 1;
        }
        swaps
    });
    let mut written = 0;
    for round in 0..300 {
        let captured = bench.dir.path().join(format!("captured{round}"));
        let workspace = bench.host("");
        let target = Target { workspace: &workspace, captured: &captured, task: &bench.task };
        // Reading the layer may fail, too, when the base moves; then nothing is written at all.
        let Ok(artifacts) = bench.try_artifacts() else { continue };
        if let Ok(applied) = apply(artifacts, &*bench.known.borrow(), &target) {
            written += applied.changes.len();
        }
        assert_eq!(
            fs::read_dir(bench.outside()).expect("is listed").count(),
            0,
            "written outside in round {round}"
        );
        for name in ["d/planted", "d/sub/deep", "l/planted", "l/sub/deep"] {
            let _ = fs::remove_file(bench.host(name));
        }
        for name in ["d/sub", "l/sub"] {
            let _ = fs::remove_dir(bench.host(name));
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(swapper.join().expect("ends") > 300);
    assert!(written > 0, "the steps inside the rules work");
}

#[test]
fn a_directory_that_is_a_link_by_then_is_not_entered() {
    let bench = Bench::new();
    bench.base("d/edit", "old").base("d/gone", "old").base("d/sub/x", "old");
    for name in ["edit", "gone"] {
        fs::write(bench.outside().join(name), "canary").expect("written");
    }
    symlink(bench.outside(), bench.host("l")).expect("linked");
    bench
        .made("d/new", "new")
        .made("d/edit", "new")
        .gone("d/gone")
        .made("d/made/y", "new")
        .gone("d/sub")
        .ran();
    let (d, l) = (bench.host("d"), bench.host("l"));
    fail_point::arm(None);
    // Everything was decided; nothing is prepared yet.
    fail_point::at("the directory for prepared files is made", {
        let (d, l) = (d.clone(), l.clone());
        move || renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).expect("exchanged")
    });
    assert!(bench.apply().is_err(), "what goes cannot be captured, so nothing is written");
    renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).expect("exchanged back");
    fail_point::arm(None);
    // Everything is prepared; nothing is written yet. The new directory takes two steps, every other change one.
    let steps = bench.artifacts().items().len() + 1;
    fail_point::at_nth("a step is prepared", steps, move || {
        renameat_with(CWD, &d, CWD, &l, RenameFlags::EXCHANGE).expect("exchanged");
    });
    let applied = bench.apply().expect("is tried");
    assert!(applied.changes.is_empty(), "{applied:?}");
    assert!(applied.failed.iter().all(|held| held.reason == "link-on-the-way"), "{applied:?}");
    let mut outside: Vec<_> =
        tree(&bench.outside()).into_iter().map(|(path, (_, content))| (path, content)).collect();
    outside.sort();
    let canary = |name: &str| (PathBuf::from(name), b"canary".to_vec());
    assert_eq!(outside, [canary("edit"), canary("gone")]);
}

#[test]
fn a_file_that_turns_into_a_link_is_not_followed() {
    let bench = Bench::new();
    bench.base("a", "old").base("b", "old").made("a", "new").made("b", "new").ran();
    let secret = bench.outside().join("secret");
    fs::write(&secret, "canary").expect("written");
    let (link, target) = (bench.host("a"), secret.clone());
    fail_point::arm(None);
    fail_point::at("a file was looked at and is about to be replaced", move || {
        fs::remove_file(&link).expect("removed");
        symlink(&target, &link).expect("linked");
    });
    let applied = bench.apply().expect("is applied");
    assert_eq!(paths(&applied.changes), ["b"]);
    assert_eq!(applied.failed.iter().map(|held| held.reason.as_str()).collect::<Vec<_>>(), ["changed"]);
    assert_eq!(fs::read_to_string(&secret).expect("is read"), "canary");
    assert_eq!(fs::read_link(bench.host("a")).expect("still the host's link"), secret);
}

#[test]
fn an_edit_at_the_last_moment_is_kept() {
    for place in [
        "a file was looked at and is about to be replaced",
        "a file was looked at and is about to be deleted",
    ] {
        let bench = Bench::new();
        bench.base("a", "old").base("b", "old").made("a", "new").gone("b").ran();
        let (a, b) = (bench.host("a"), bench.host("b"));
        fail_point::arm(None);
        fail_point::at(place, move || {
            write(&a, "mine, just now");
            write(&b, "mine, just now");
        });
        let applied = bench.apply().expect("is applied");
        let kept = if place.contains("deleted") { "b" } else { "a" };
        assert_eq!(bench.read(kept), "mine, just now");
        assert!(applied.failed.iter().any(|held| held.reason == "changed"), "{applied:?}");
    }
}

#[test]
fn a_name_that_is_taken_at_the_last_moment_is_kept() {
    let bench = Bench::new();
    bench.made("a", "theirs").made("d/x", "theirs").ran();
    let (a, d) = (bench.host("a"), bench.host("d"));
    fail_point::arm(None);
    fail_point::at("the journal is in its place", move || {
        write(&a, "mine");
        write(&d, "mine");
    });
    let applied = bench.apply().expect("is applied");
    assert!(applied.changes.is_empty());
    assert_eq!((bench.read("a"), bench.read("d")), ("mine".into(), "mine".into()));
    let failed: Vec<_> = applied.failed.iter().map(|held| held.path.to_string()).collect();
    assert_eq!(failed, ["a", "d", "d/x"]);
}

#[test]
fn a_layer_that_changes_after_it_was_looked_at_is_refused() {
    let bench = Bench::new();
    bench.made("a", "looked at").made("b", "looked at").ran();
    let artifacts = bench.artifacts();
    fs::write(bench.upper("b"), "slipped in").expect("written");
    assert!(bench.with_target(|target| apply(artifacts, &*bench.known.borrow(), target)).is_err());
    assert!(bench.tree().is_empty());
}

#[test]
fn a_layer_that_changes_while_it_is_copied_is_refused() {
    let bench = Bench::new();
    bench.base("a", "old").made("a", "looked at").ran();
    let upper = bench.upper("a");
    fail_point::arm(None);
    fail_point::at("a file of the layer is copied", move || fs::write(upper, "slipped in").expect("written"));
    let error = bench.apply().expect_err("is refused");
    assert!(error.to_string().contains("nothing was written"), "{error}");
    assert_eq!(bench.tree().into_keys().collect::<Vec<_>>(), [PathBuf::from("a")]);
    assert_eq!(bench.read("a"), "old");
}
