//! Several processes and threads on one store keep one chain.

use audit::Log;
use engine::store::Store;

use super::fixture::{append, checked_length, child, given_state, place};

const EACH: u64 = 150;

#[test]
fn two_processes_and_a_thread_keep_one_chain() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let children = [(); 2].map(|()| child("crowd::appends", &state));
    let log = Log::open(&store).unwrap();
    for n in 0..EACH {
        append(&log, &format!("thread {n}"));
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(checked_length(&store), 3 * EACH);
}

#[test]
fn many_processes_that_start_on_a_fresh_directory_make_one_store() {
    let (_directory, state) = place();
    let children: Vec<_> = (0..12).map(|_| child("crowd::appends_once", &state)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(checked_length(&Store::open(&state).unwrap()), 12);
}

#[test]
fn threads_share_a_store() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let log = Log::open(&store).unwrap();
                for n in 0..25 {
                    append(&log, &format!("{n}"));
                }
            });
        }
    });
    assert_eq!(checked_length(&store), 100);
}

#[test]
#[ignore = "started by another test"]
fn appends() {
    let Some(state) = given_state() else { return };
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    for n in 0..EACH {
        append(&log, &format!("process {n}"));
    }
}

#[test]
#[ignore = "started by another test"]
fn appends_once() {
    let Some(state) = given_state() else { return };
    append(&Log::open(&Store::open(&state).unwrap()).unwrap(), "once");
}
