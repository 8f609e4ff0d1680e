//! Measures the record, for `cargo xtask bench --only figures`: durable appends, and the check of one million events.
//!
//! ```text
//! bench_record DIRECTORY [EVENTS]
//! ```
#![allow(clippy::print_stdout, reason = "an example speaks for itself")]
#![allow(clippy::disallowed_methods, reason = "an example has no settings module")]

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use audit::{Anchors, Entry, Log, export, verify_export};
use engine::store::Store;
use model::event::{Event, TokenUsage};
use model::{Digest, Subject, TaskId, Timestamp};

/// Events of one commit, where several wait.
const GROUP: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let events = arguments.next().map_or(Ok(1_000_000), |number| number.to_string_lossy().parse())?;
    let store = Store::open(&directory.join("state"))?;
    let log = Log::open(&store)?;
    let subject = Subject { task: Some(TaskId::from_random([1; 10])), action: None };
    let event = Event::ModelTurn {
        model: "deepseek-chat".to_owned(),
        request: Digest::of(b"request"),
        response: Digest::of(b"response"),
        context: Some(Digest::of(b"request")),
        tokens: TokenUsage { prompt_cache_hit: 12_000, prompt_cache_miss: 900, completion: 350 },
    };
    let time = Timestamp::from_nanos(1_800_000_000_000_000_000);
    let entry = || Entry { subject: &subject, event: &event, time };

    let alone = timed(500, || log.append(&subject, &event, time).map(drop))?;
    say("durable append, one event a commit", &format!("{:.0} a second", 500.0 / alone.as_secs_f64()), "");
    let groups = 200;
    let group: Vec<Entry<'_>> = (0..GROUP).map(|_| entry()).collect();
    let together = timed(groups, || log.append_all(&group, |_| Ok(())).map(drop))?;
    let number = (groups * GROUP) as f64 / together.as_secs_f64();
    say("durable append, a hundred events a commit", &format!("{number:.0} a second"), "20,000 a second");

    // The rest is written in large commits: only the check is measured.
    let left = events - 500 - groups * GROUP;
    let large: Vec<Entry<'_>> = (0..1000).map(|_| entry()).collect();
    for _ in 0..left.div_ceil(1000) {
        drop(log.append_all(&large, |_| Ok(()))?);
    }
    let file = directory.join("export.jsonl");
    write(&log, &file)?;
    let bytes = std::fs::metadata(&file)?.len() >> 20;
    let (head, _) = store.sign_head(time)?;
    for (against, anchors) in
        [("offline", Anchors::default()), ("against a signed head", Anchors::default().and_signed([head]))]
    {
        let start = Instant::now();
        let found = verify_export(BufReader::new(File::open(&file)?), &anchors)?;
        let took = start.elapsed();
        if found.end().is_none() {
            return Err("the record does not verify".into());
        }
        let what = format!("check of an export of {events} events ({bytes} MiB), {against}");
        say(&what, &format!("{:.1} s", took.as_secs_f64()), "5 s for a million");
    }
    Ok(())
}

fn write(log: &Log<&Store>, file: &Path) -> Result<(), Box<dyn Error>> {
    export(log.records(1), log.storage().log(), BufWriter::new(File::create(file)?))?;
    Ok(())
}

fn timed<E>(times: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let start = Instant::now();
    for _ in 0..times {
        work()?;
    }
    Ok(start.elapsed())
}

fn say(what: &str, measured: &str, goal: &str) {
    println!("figure: {what} | {measured} | {goal}");
}
