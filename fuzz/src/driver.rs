//! Feeds a target: every seed as it is, and then changed ones until the time is over.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// The largest input. What is longer makes rounds slow and finds the same.
const LENGTH_MAX: usize = 8 << 10;
/// The most inputs that are kept to be changed further.
const KEPT_MAX: usize = 4096;
/// How long a processor may work on one input.
const THINKS_AT_MOST: Duration = Duration::from_secs(10);
/// How long a target may take for one input, whatever else the machine does. One that waits uses no processor.
const WAITS_AT_MOST: Duration = Duration::from_secs(300);

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Inputs that were tried.
    pub rounds: u64,
    /// Kinds of answers that were seen.
    pub kinds: usize,
}

/// An input that broke a promise.
#[derive(Debug)]
pub struct Crash {
    /// Where it is kept.
    pub kept: PathBuf,
    /// What happened.
    pub why: String,
}

/// Feeds a target from its seeds, until a processor has worked on it for some time. `seed` chooses the changes.
/// `on_stuck` hears of an input that the target never answers; it may end the process, which nothing else can.
///
/// # Errors
/// With the first input that makes it panic, or think for too long.
pub fn feed(
    target: Target,
    time: Duration,
    seed: u64,
    crashes: &Path,
    on_stuck: impl Fn(Crash) + Send,
) -> Result<Outcome, Crash> {
    let feeder = Feeder { target, crashes, current: Mutex::new((Instant::now(), Vec::new())) };
    thread::scope(|scope| {
        // Dropping this end is what ends the watch.
        let (_feeding, ended) = channel::<Infallible>();
        scope.spawn({
            let feeder = &feeder;
            move || feeder.watch(ended, WAITS_AT_MOST, on_stuck)
        });
        feeder.feed(time, seed)
    })
}

/// Returns how long a processor has worked for this thread: what else the machine does is not counted.
fn worked() -> Duration {
    // Neither part of the time that a thread has worked is ever below zero.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Reads the seeds of a target: those that are committed, and what broke it once.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

struct Feeder<'a> {
    target: Target,
    crashes: &'a Path,
    /// The input that the target has now, and since when.
    current: Mutex<(Instant, Vec<u8>)>,
}

impl Feeder<'_> {
    fn feed(&self, time: Duration, seed: u64) -> Result<Outcome, Crash> {
        let mut inputs = seeds(self.target.name);
        assert!(!inputs.is_empty(), "`{}` has no seeds", self.target.name);
        let (mut kinds, mut rounds) = (HashSet::new(), 0);
        let mut one = |input: &[u8]| {
            rounds += 1;
            Ok(kinds.insert(kind_of(&self.one(input)?)))
        };
        for input in &inputs {
            one(input)?;
        }
        let words = words(&inputs);
        let mut dice = Dice(seed | 1);
        let end = worked() + time;
        while worked() < end {
            let input = changed(&inputs, &words, &mut dice);
            if one(&input)? && inputs.len() < KEPT_MAX {
                inputs.push(input);
            }
        }
        Ok(Outcome { rounds, kinds: kinds.len() })
    }

    /// Tries one input, and returns the answer.
    fn one(&self, input: &[u8]) -> Result<String, Crash> {
        self.begin(input);
        let start = worked();
        let answer = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        let took = worked().saturating_sub(start);
        match answer {
            Err(panic) => Err(self.crash(input, said(panic.as_ref()))),
            Ok(_) if took > THINKS_AT_MOST => Err(self.crash(input, format!("it took {took:?}"))),
            Ok(answer) => Ok(answer),
        }
    }

    fn begin(&self, input: &[u8]) {
        let mut current = self.current();
        current.0 = Instant::now();
        current.1.clear();
        current.1.extend_from_slice(input);
    }

    fn current(&self) -> MutexGuard<'_, (Instant, Vec<u8>)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the clock until the feeding has ended, and tells of an input that was not answered for too long.
    fn watch(&self, ended: Receiver<Infallible>, patience: Duration, on_stuck: impl Fn(Crash)) {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(patience / 8) {
            let current = self.current();
            if current.0.elapsed() > patience {
                on_stuck(self.crash(&current.1, format!("it was not answered within {patience:?}")));
                return;
            }
        }
    }

    fn crash(&self, input: &[u8], why: String) -> Crash {
        let kept = self.crashes.join(format!("{}-{:016x}", self.target.name, digest(input)));
        // Where it cannot be kept, the text says enough to look for it again.
        let _ = fs::create_dir_all(self.crashes).and_then(|()| fs::write(&kept, input));
        Crash { kept, why }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// Returns what an answer is like: its first words, without numbers and without what it quotes.
fn kind_of(answer: &str) -> u64 {
    let unquoted = answer.split(['`', '"']).step_by(2).flat_map(str::chars);
    digest(&unquoted.filter(|c| c.is_ascii() && !c.is_ascii_digit()).take(120).collect::<String>())
}

fn digest<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the words of the inputs, and some that parsers stumble over.
fn words(inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const ODD: [&[u8]; 18] = [
        b"\0",
        b"\n",
        b"\r\n",
        b"\t",
        b"\xff\xfe",
        b"\x1b]0;t\x07",
        b"\xe2\x80\xae",
        b"\xef\xbb\xbf",
        b"0",
        b"-1",
        b"18446744073709551616",
        b"9223372036854775807",
        b"1e999",
        b"\\",
        b"\"",
        b"../",
        b"[[[[[[[[",
        b"{\"a\":",
    ];
    let mut words: HashSet<Vec<u8>> = ODD.iter().map(|word| word.to_vec()).collect();
    for input in inputs {
        let parts = input.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-' && *byte != b'_');
        words.extend(parts.filter(|word| (2..40).contains(&word.len())).map(<[u8]>::to_vec));
    }
    let mut words: Vec<Vec<u8>> = words.into_iter().collect();
    words.sort();
    words
}

/// Changes one of the inputs, once or a few times.
fn changed(inputs: &[Vec<u8>], words: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = inputs[dice.below(inputs.len())].clone();
    for _ in 0..=dice.below(6) {
        change(&mut input, inputs, words, dice);
    }
    input.truncate(LENGTH_MAX);
    input
}

fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], words: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(input.len() + 1);
    let length = dice.below(32).min(input.len() - at);
    match dice.below(9) {
        0 => drop(input.drain(at..at + length)),
        1 => input.insert(at, dice.byte()),
        2 => drop(input.splice(at..at, words[dice.below(words.len())].iter().copied())),
        3 => drop(input.splice(at..at + length, words[dice.below(words.len())].iter().copied())),
        4 => {
            let piece = input[at..at + length].to_vec();
            let times = 1 + dice.below(8);
            input.splice(at..at, piece.repeat(times));
        }
        5 => input.truncate(at),
        6 => {
            let other = &inputs[dice.below(inputs.len())];
            let from = dice.below(other.len() + 1);
            let to = from + dice.below(256).min(other.len() - from);
            input.splice(at..at + length, other[from..to].iter().copied());
        }
        7 if at < input.len() => input[at] ^= 1 << dice.below(8),
        _ if at < input.len() => input[at] = dice.byte(),
        _ => input.push(dice.byte()),
    }
}

/// Numbers that look random and are the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands for a parser with an error in it, two changes away from the seed.
    fn breaks_on_a_word(bytes: &[u8]) -> String {
        let opens = bytes.contains(&b'{');
        assert!(!(opens && bytes.windows(2).any(|pair| pair == b"-1")), "broken");
        format!("opens {opens}")
    }

    #[test]
    fn an_input_that_breaks_a_parser_is_found_and_kept() {
        let crashes = tempfile::tempdir().expect("a directory");
        let target = Target { name: "text", run: breaks_on_a_word };
        let stuck = |crash| panic!("{crash:?}");
        let crash = feed(target, Duration::from_secs(60), 7, crashes.path(), stuck).expect_err("it is found");
        assert_eq!(crash.why, "broken");
        let kept = fs::read(crash.kept).expect("it is kept");
        assert!(catch_unwind(|| breaks_on_a_word(&kept)).is_err(), "and breaks it again");
    }

    #[test]
    fn an_input_that_is_never_answered_is_told_and_kept() {
        let crashes = tempfile::tempdir().expect("a directory");
        let target = Target { name: "text", run: |_| unreachable!("it is not called") };
        let current = Mutex::new((Instant::now(), b"opened a FIFO".to_vec()));
        let feeder = Feeder { target, crashes: crashes.path(), current };
        let (_feeding, ended) = channel();
        let told = Mutex::new(None);
        feeder
            .watch(ended, Duration::from_millis(1), |crash| drop(told.lock().expect("free").replace(crash)));
        let crash = told.into_inner().expect("free").expect("it is told");
        assert_eq!(fs::read(crash.kept).expect("it is kept"), b"opened a FIFO");
        assert_eq!(crash.why, "it was not answered within 1ms");
    }

    #[test]
    fn answers_of_one_kind_differ_in_numbers_and_quotes_only() {
        assert_eq!(kind_of("line 1: no `a` there"), kind_of("line 22: no `b` there"));
        assert_ne!(kind_of("no `a` there"), kind_of("no `a` here"));
    }
}
