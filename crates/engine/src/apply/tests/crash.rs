//! A crash between any two steps.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use super::plain::{expected, one_of_each, one_of_each_with_other_names};
use super::*;
use crate::fail_point;

/// Runs something that crashes at the given place; tells whether it did.
fn crashes(after: usize, act: impl FnOnce()) -> bool {
    fail_point::arm(Some(after));
    let crashed = catch_unwind(AssertUnwindSafe(act)).is_err_and(|cause| cause.is::<fail_point::Crash>());
    fail_point::arm(None);
    crashed
}

fn silence_crashes() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !info.payload().is::<fail_point::Crash>() {
                usual(info);
            }
        }));
    });
}

#[test]
fn a_repeated_apply_completes_what_a_crash_cut_off_anywhere() {
    apply_is_completed(one_of_each);
}

#[test]
fn a_repeated_apply_completes_what_a_crash_cut_off_where_files_are_copied() {
    apply_is_completed(one_of_each_with_other_names);
}

fn apply_is_completed(make: fn() -> Bench) {
    silence_crashes();
    let mut reached = 0;
    for after in 0.. {
        let bench = make();
        let (before, wanted) = (bench.tree(), expected(&bench));
        let artifacts = bench.artifacts();
        if !crashes(after, || {
            drop(bench.with_target(|target| apply(artifacts, &*bench.known.borrow(), target)))
        }) {
            break;
        }
        match bench.with_target(completed).expect("is recovered") {
            None => {
                assert_eq!(bench.tree(), before, "after {after}");
                assert!(bench.apply().expect("is applied").is_complete());
            }
            Some(applied) => assert!(applied.is_complete(), "after {after}: {applied:?}"),
        }
        assert_eq!(bench.tree(), wanted, "after {after}");
        let undone = bench.undo().expect("is taken back");
        assert!(undone.is_complete(), "after {after}: {undone:?}");
        assert_eq!(bench.tree(), before, "after {after}");
        reached += 1;
    }
    assert!(reached > 60, "{reached} places");
}

#[test]
fn a_repeated_undo_completes_what_a_crash_cut_off_anywhere() {
    undo_is_completed(one_of_each);
}

#[test]
fn a_repeated_undo_completes_what_a_crash_cut_off_where_files_are_copied() {
    undo_is_completed(one_of_each_with_other_names);
}

fn undo_is_completed(make: fn() -> Bench) {
    silence_crashes();
    let mut reached = 0;
    for after in 0.. {
        let bench = make();
        let before = bench.tree();
        bench.apply().expect("is applied");
        if !crashes(after, || drop(bench.undo())) {
            break;
        }
        match bench.undo() {
            Ok(undone) => assert!(undone.is_complete(), "after {after}: {undone:?}"),
            Err(ApplyError::Repeated { .. }) => {}
            Err(error) => panic!("after {after}: {error}"),
        }
        assert_eq!(bench.tree(), before, "after {after}");
        reached += 1;
    }
    assert!(reached > 60, "{reached} places");
}

#[test]
fn a_second_crash_during_recovery_is_recovered_too() {
    silence_crashes();
    for first in (5..60).step_by(7) {
        for second in 0..30 {
            let bench = one_of_each();
            let wanted = expected(&bench);
            let artifacts = bench.artifacts();
            assert!(crashes(first, || drop(bench.with_target(|target| apply(
                artifacts,
                &*bench.known.borrow(),
                target
            )))));
            if !crashes(second, || drop(bench.with_target(completed))) {
                break;
            }
            bench.with_target(completed).expect("is recovered");
            if bench.tree() != wanted {
                assert!(bench.apply().expect("is applied").is_complete());
            }
            assert_eq!(bench.tree(), wanted, "after {first} and {second}");
        }
    }
}

#[test]
fn every_place_between_two_steps_is_reached() {
    let bench = one_of_each();
    fail_point::arm(None);
    bench.apply().expect("is applied");
    let mut reached = fail_point::trace();
    reached.sort_unstable();
    reached.dedup();
    let expected = [
        "a file has changed places with what it replaces",
        "a file has left its place",
        "a file of the layer is copied",
        "a file was looked at and is about to be deleted",
        "a file was looked at and is about to be replaced",
        "a step is done",
        "a step is prepared",
        "the directory for prepared files is made",
        "the journal is in its place",
        "the journal is written and not yet in its place",
        "the prepared files are removed and the journal is open",
    ];
    assert_eq!(reached, expected);
}

#[test]
fn a_damaged_journal_and_a_replaced_workspace_are_refused() {
    silence_crashes();
    let bench = one_of_each();
    let artifacts = bench.artifacts();
    assert!(crashes(30, || drop(bench.with_target(|target| apply(
        artifacts,
        &*bench.known.borrow(),
        target
    )))));
    let moved = bench.dir.path().join("elsewhere");
    fs::rename(bench.host(""), &moved).expect("moved");
    fs::create_dir(bench.host("")).expect("made");
    assert!(matches!(bench.with_target(completed), Err(ApplyError::OtherWorkspace)));
    fs::write(bench.captured().join("apply.json"), "{\"format\":").expect("written");
    assert!(matches!(bench.with_target(completed), Err(ApplyError::Journal(_))));
}
