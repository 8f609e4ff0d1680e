//! Each target for a second, or for as long as `FUMEHOOD_FUZZ_SECONDS` says. Lines that begin with `fuzz: ` are the
//! result.
#![allow(clippy::disallowed_methods, reason = "a test may read the environment")]
#![allow(clippy::print_stdout, reason = "`cargo xtask soak` reads the result from there")]

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fuzz::{TARGETS, Target, driver};

#[test]
fn no_target_breaks_a_promise() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(number("FUMEHOOD_FUZZ_SECONDS").unwrap_or(1));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = number("FUMEHOOD_FUZZ_SEED").unwrap_or_else(|| u64::from(now.subsec_nanos()));
    let only = std::env::var("FUMEHOOD_FUZZ_TARGET").ok();
    let wanted = |target: &Target| only.as_ref().is_none_or(|name| target.name == name);
    let crashes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crashes");
    let mut broken = Vec::new();
    for target in TARGETS.into_iter().filter(wanted) {
        let name = target.name;
        match driver::feed(target, time, seed, &crashes) {
            Ok(outcome) => println!(
                "fuzz: {name}: {} inputs in {} s, {} kinds of answers, no crash",
                outcome.rounds,
                time.as_secs(),
                outcome.kinds
            ),
            Err(crash) => {
                println!("fuzz: {name}: CRASHED, seed {seed}: {} ({})", crash.why, crash.kept.display());
                broken.push(name);
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn every_target_has_seeds_and_every_seed_a_target() {
    let seeds = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/seeds")).expect("is there");
    let mut found: Vec<String> =
        seeds.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, TARGETS.map(|target| target.name));
}
