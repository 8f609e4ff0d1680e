//! Figures, not assertions: `cargo test --release -p fumehood-engine --test store -- --ignored --nocapture figures`.
#![allow(clippy::print_stderr)]

use std::time::{Duration, Instant};

use audit::Log;
use engine::store::Store;
use model::Digest;
use model::event::Event;

use super::fixture::{append, at, decision, place, subject};

const ROUNDS: usize = 200;

fn measure(what: &str, mut step: impl FnMut() -> Duration) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| step()).collect();
    times.sort();
    eprintln!("{what:<40} least {:>9.1?}, median {:>9.1?}", times[0], times[ROUNDS / 2]);
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = work();
    (start.elapsed(), value)
}

#[test]
#[ignore = "figures for people"]
fn figures() {
    let decided =
        Event::Decided { digest: Digest::of(b"x"), decision: decision(model::event::Verdict::Allow) };
    measure("make a store", || {
        let (_directory, state) = place();
        timed(|| Store::open(&state).unwrap()).0
    });
    let (_directory, state) = place();
    let open_and_append = || {
        let store = Store::open(&state).unwrap();
        append(&Log::open(&store).unwrap(), "one");
        store
    };
    drop(open_and_append());
    measure("open a store", || timed(|| Store::open(&state).unwrap()).0);
    measure("open and append one event", || timed(open_and_append).0);
    measure("open, append and close", || timed(|| drop(open_and_append())).0);
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    measure("append one event", || timed(|| append(&log, "one")).0);
    measure("append a decision", || timed(|| drop(log.append(&subject(1), &decided, at(1)).unwrap())).0);
    measure("read the head", || timed(|| log.head().unwrap()).0);
    eprintln!("synced write of 4 KiB for comparison:");
    let file = std::fs::File::create(state.join("plain")).unwrap();
    let mut at = 0;
    measure("pwrite and fdatasync", || {
        at += 4096;
        let write = || {
            std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], at).unwrap();
            file.sync_data().unwrap();
        };
        timed(write).0
    });
}
