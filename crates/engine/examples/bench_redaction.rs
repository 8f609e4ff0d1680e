//! Measures what redaction costs on what commands print, for `cargo xtask bench --only figures`: keeping the same output
//! with it and without it, in turn.
//!
//! ```text
//! bench_redaction DIRECTORY
//! ```
#![allow(clippy::print_stdout, reason = "an example speaks for itself")]
#![allow(clippy::disallowed_methods, reason = "an example has no settings module")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::store::Store;
use model::Digest;

/// Secrets that are looked for: more than an ordinary environment has.
const SECRETS: usize = 20;
/// Bytes of one output: the most that is kept of a run by default is less.
const BYTES: usize = 8 << 20;
const ROUNDS: usize = 15;

/// What a build prints.
const BUILD: &str = "   Compiling aho-corasick v1.1.5 (/home/ada/.cargo/registry/src/index/aho-corasick-1.1.5)\n\
                     warning: unused variable: `token`\n  --> src/main.rs:12:9\n\
                     test credentials::judge::tests::what_a_machine_makes_is_not ... ok (0.96s)\n";
/// What makes as much work as text can: the beginnings of many kinds of credentials, and percent signs.
const HOSTILE: &str = "gh gl sk- AKIA ASIA secret twilio npm_ pypi- xox SG. key- -us dapi oy2 cio hf_ %41%42 \
                       Authorization: PRIVATE KEY kind: Secret ://a:@ EAAA dp. :AA Q~ _v1_ hvs. \n";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).ok_or("name a directory")?);
    std::fs::create_dir_all(&directory)?;
    let store = Store::open(&directory.join("redaction-state"))?;
    store.learn_secrets((0..SECRETS).map(secret));
    let with_secrets = format!("{BUILD}the value is {}\n", String::from_utf8_lossy(&secret(3).1));
    for (what, line) in [
        ("a build", BUILD),
        ("a build with a secret in every fifth line", &with_secrets),
        ("text that begins like credentials everywhere", HOSTILE),
    ] {
        let text = line.repeat(BYTES / line.len()).into_bytes();
        compare(&store, &directory, what, &text)?;
    }
    Ok(())
}

fn secret(number: usize) -> (String, Vec<u8>) {
    (
        format!("SECRET_{number}"),
        Digest::of(&[b's', u8::try_from(number).unwrap_or(0)]).to_string().into_bytes(),
    )
}

fn compare(store: &Store, directory: &Path, what: &str, text: &[u8]) -> Result<(), Box<dyn Error>> {
    let file = directory.join("output");
    let mut with = Vec::new();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let plain = timed(|| keep(&file, text))?;
        let redacted = timed(|| keep(&file, &store.without_secrets(text)))?;
        ratios.push(redacted.as_secs_f64() / plain.as_secs_f64());
        with.push(redacted);
    }
    ratios.sort_by(f64::total_cmp);
    with.sort_unstable();
    let (ratio, time) = (ratios[ROUNDS / 2], with[ROUNDS / 2]);
    let speed = text.len() as f64 / 1e6 / time.as_secs_f64();
    println!(
        "figure: keep {} MiB of {what}, {SECRETS} secrets known | {ratio:.2} times as long as without redaction, {speed:.0} MB/s | ",
        text.len() >> 20
    );
    Ok(())
}

/// What keeping output is without it: its digest and a file.
fn keep(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::hint::black_box(Digest::of(bytes));
    std::fs::write(file, bytes)
}

fn timed(work: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}
