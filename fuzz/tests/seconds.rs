//! Each target for a second of a processor, or for as many as `FUMEHOOD_FUZZ_SECONDS` says, as many at a time as there
//! are processors. `FUMEHOOD_FUZZ_TARGETS` names those that are wanted. Lines that begin with `fuzz: ` are the result.
#![allow(clippy::disallowed_methods, reason = "a test may read the environment")]
#![allow(clippy::print_stdout, reason = "`cargo xtask soak` reads the result from there")]

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime};

use fuzz::{TARGETS, Target, driver};

#[test]
fn no_target_breaks_a_promise() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(number("FUMEHOOD_FUZZ_SECONDS").unwrap_or(1));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = number("FUMEHOOD_FUZZ_SEED").unwrap_or_else(|| u64::from(now.subsec_nanos()));
    let only = std::env::var("FUMEHOOD_FUZZ_TARGETS").unwrap_or_default();
    let only: Vec<&str> = only.split_whitespace().collect();
    let wanted = TARGETS.into_iter().filter(|target| only.is_empty() || only.contains(&target.name));
    let left: Mutex<Vec<Target>> = Mutex::new(wanted.collect());
    assert!(!left.lock().expect("nobody panicked").is_empty(), "there is no target among {only:?}");
    let broken = Mutex::new(Vec::new());
    let work = || {
        while let Some(target) = { left.lock().expect("nobody panicked").pop() } {
            if !holds(target, time, seed) {
                broken.lock().expect("nobody panicked").push(target.name);
            }
        }
    };
    std::thread::scope(|threads| {
        (0..available_parallelism().map_or(1, NonZero::get)).for_each(|_| drop(threads.spawn(work)));
    });
    let broken = broken.into_inner().expect("nobody panicked");
    assert!(broken.is_empty(), "{broken:?}");
}

/// Feeds one target, and says what came of it.
fn holds(target: Target, time: Duration, seed: u64) -> bool {
    let crashes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crashes");
    let (name, seconds) = (target.name, time.as_secs());
    let crashed = |crash: driver::Crash| {
        format!("fuzz: {name}: CRASHED, seed {seed}: {} ({})\n", crash.why, crash.kept.display())
    };
    let on_stuck = |crash| {
        // Past the harness, which shows what is printed only when a test has ended. This one never will.
        let _ = std::io::stdout().write_all(crashed(crash).as_bytes());
        std::process::exit(1);
    };
    match driver::feed(target, time, seed, &crashes, on_stuck) {
        Ok(driver::Outcome { rounds, kinds }) => {
            println!("fuzz: {name}: {rounds} inputs in {seconds} s, {kinds} kinds of answers, no crash");
            true
        }
        Err(crash) => {
            print!("{}", crashed(crash));
            false
        }
    }
}

#[test]
fn every_target_has_seeds_and_every_seed_a_target() {
    let seeds = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/seeds")).expect("is there");
    let mut found: Vec<String> =
        seeds.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, TARGETS.map(|target| target.name));
}
