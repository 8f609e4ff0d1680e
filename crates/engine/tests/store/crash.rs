//! A process that is killed while it appends loses at most what it was not told to be recorded.

use std::io::{BufRead, BufReader, Write as _};
use std::time::{Duration, Instant};

use audit::Log;
use engine::store::Store;

use super::fixture::{append, checked_length, child, given_state, place};

const KILLS: u32 = 30;

#[test]
fn a_kill_in_the_middle_of_an_append_loses_nothing_that_was_promised() {
    let (_directory, state) = place();
    let mut before = 0;
    for round in 0..KILLS {
        let mut child = child("crash::appends_until_killed", &state);
        let mut promised = BufReader::new(child.stdout.take().unwrap()).lines();
        // The first promise shows that it is at work; then it gets a time that differs from round to round.
        let first = promised.by_ref().find_map(|line| place_in(&line.unwrap())).unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(round * 7919 % 40) * 250));
        child.kill().unwrap();
        child.wait().unwrap();
        let last = promised.filter_map(|line| place_in(&line.ok()?)).last().unwrap_or(first);
        let found = checked_length(&Store::open(&state).unwrap());
        assert!(found >= last, "record {last} was promised and {found} are there");
        assert!(found <= last + 1, "{found} records, of which {last} were promised");
        assert!(found > before, "a round appends something");
        before = found;
    }
}

fn place_in(line: &str) -> Option<u64> {
    line.strip_prefix("recorded ")?.parse().ok()
}

#[test]
#[ignore = "started and killed by another test"]
fn appends_until_killed() {
    let Some(state) = given_state() else { return };
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    let mut out = std::io::stdout().lock();
    let end = Instant::now() + Duration::from_secs(60);
    for length in (0..20_000).step_by(977).cycle() {
        let seq = append(&log, &"x".repeat(length));
        // One write for the line: the reader sees a promise whole or not at all.
        out.write_all(format!("\nrecorded {seq}\n").as_bytes()).unwrap();
        out.flush().unwrap();
        assert!(Instant::now() < end, "nobody killed this");
    }
}
