//! Counts tests, and writes the closing line that runners of runners look for.

use std::fmt;
use std::ops::AddAssign;

/// How many tests passed, failed and were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// Left out, each for a reason that is written down.
    pub skipped: u64,
}

impl Tally {
    /// One failure and nothing else: a whole part that could not run.
    pub const ONE_FAILURE: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// Tells whether something ran and nothing failed.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// Counts what the standard test harness of Rust printed.
    ///
    /// `ended_well` is what the exit code said: a test binary that was killed prints no result, a build that broke
    /// prints none at all, and neither may pass for "nothing failed".
    pub fn of_cargo_test(output: &str, ended_well: bool) -> Self {
        let mut tally = Self::default();
        let mut red_binaries = 0;
        for line in output.lines() {
            let Some(result) = line.strip_prefix("test result: ") else { continue };
            red_binaries += u64::from(result.starts_with("FAILED"));
            tally.passed += number_before(result, " passed");
            tally.failed += number_before(result, " failed");
            tally.skipped += number_before(result, " ignored");
        }
        let silent = failed_targets(output).saturating_sub(red_binaries);
        tally.failed += silent.max(u64::from(!ended_well && tally.failed == 0));
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Reads the number that stands before `word`: `12` before ` passed` in `ok. 12 passed; 0 failed`.
fn number_before(text: &str, word: &str) -> u64 {
    let digits =
        text.split(word).next().and_then(|before| before.rsplit(|c: char| !c.is_ascii_digit()).next());
    digits.filter(|_| text.contains(word)).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Reads `N` from cargo's `error: N targets failed:`.
fn failed_targets(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| line.strip_prefix("error: "));
    counts.filter(|line| line.contains(" failed:")).map(|line| number_before(line, " target")).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEN: &str =
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s";
    const RED: &str =
        "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s";

    fn of(lines: &[&str], ended_well: bool) -> (u64, u64, u64) {
        let tally = Tally::of_cargo_test(&lines.join("\n"), ended_well);
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn results_of_several_binaries_are_added() {
        assert_eq!(of(&[GREEN, "noise: 9 failed", RED], false), (16, 2, 1));
    }

    #[test]
    fn a_build_that_broke_counts_as_a_failure() {
        assert_eq!(of(&["error: could not compile `x`"], false), (0, 1, 0));
        assert_eq!(of(&[GREEN], false), (12, 1, 1));
    }

    #[test]
    fn a_binary_that_was_killed_counts_as_a_failure_beside_a_red_one() {
        assert_eq!(of(&[GREEN, RED, "error: 2 targets failed:", "    `-p x --lib`"], false), (16, 3, 1));
    }

    #[test]
    fn nothing_run_is_not_good() {
        assert!(!Tally::default().is_good());
        assert!(!Tally::ONE_FAILURE.is_good());
        assert_eq!(Tally { passed: 3, failed: 0, skipped: 1 }.to_string(), "3 passed, 0 failed, 1 skipped");
    }
}
