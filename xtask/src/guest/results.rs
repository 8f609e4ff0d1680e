//! Reads what the guest said on its second serial line.
//!
//! Guarantees: only a line that says that a test passed makes it pass; what is missing, cut off or failed is a complaint.

use std::collections::BTreeMap;

use crate::tally::Tally;

/// What the guest itself looks at when the tests of a scenario are over.
pub(super) const NOTHING_LEFT: &str = "no_group_is_left";

/// The tests that must be seen to pass in a scenario.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) scenario: &'static str,
    pub(super) tests: Vec<String>,
}

/// What came out.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) tally: Tally,
    pub(super) complaints: Vec<String>,
    /// A line for each scenario.
    pub(super) by_scenario: Vec<String>,
}

/// Compares what was said with what is expected.
pub(super) fn judge(results: &str, expected: &[Expected]) -> Judged {
    let said = Said::read(results);
    let mut judged = Judged { tally: Tally::default(), complaints: Vec::new(), by_scenario: Vec::new() };
    for Expected { scenario, tests } in expected {
        let complaints = complaints(&said, scenario, tests);
        let failed = complaints.len() as u64;
        let passed = tests.len() as u64 - failed;
        judged.by_scenario.push(format!("{scenario}: {passed} of {} tests passed", tests.len()));
        judged.tally += Tally { passed, failed, skipped: 0 };
        match passed {
            0 => judged.complaints.push(format!("{scenario}: none of its {failed} tests was seen to pass")),
            _ => judged.complaints.extend(complaints),
        }
    }
    if !said.came_to_its_end {
        judged.complaints.push("the machine did not come to its end".to_owned());
        judged.tally += Tally::ONE_FAILURE;
    }
    judged
}

fn complaints(said: &Said<'_>, scenario: &str, tests: &[String]) -> Vec<String> {
    let complaint = |test: &String| match said.tests.get(&(scenario, test.as_str())) {
        Some(&"ok") => None,
        Some(other) => Some(format!("{scenario}: {test}: {other}")),
        None => Some(format!("{scenario}: {test} is missing")),
    };
    tests.iter().filter_map(complaint).collect()
}

#[derive(Debug, Default)]
struct Said<'t> {
    /// By scenario and name, what was said of a test last.
    tests: BTreeMap<(&'t str, &'t str), &'t str>,
    came_to_its_end: bool,
}

impl<'t> Said<'t> {
    fn read(results: &'t str) -> Self {
        let mut said = Self::default();
        let mut scenario = "";
        for line in results.lines().map(str::trim_end) {
            if let Some(name) = line.strip_prefix("guest: begin ") {
                scenario = name;
            } else if line == "guest: end" {
                scenario = "";
            } else if line == "guest: done" {
                said.came_to_its_end = true;
            } else if let Some((name, result)) =
                line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
            {
                // Once failed is failed, whatever is said later.
                let kept = said.tests.entry((scenario, name)).or_insert(result);
                *kept = if *kept == "ok" { result } else { kept };
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(results: &str) -> (u64, u64, Vec<String>) {
        let tests = || vec!["a::one".to_owned(), "two".to_owned()];
        let expected =
            [Expected { scenario: "root", tests: tests() }, Expected { scenario: "user", tests: tests() }];
        let judged = judge(results, &expected);
        (judged.tally.passed, judged.tally.failed, judged.complaints)
    }

    const ALL: &str = "guest: begin root\r\n\r\nrunning 2 tests\r\ntest a::one ... ok\r\ntest two ... ok\r\nguest: end\r\n\
        guest: begin user\r\ntest a::one ... ok\r\ntest two ... ok\r\nguest: end\r\nguest: done\r\n";

    #[test]
    fn all_that_passed_has_passed() {
        assert_eq!(judged(ALL), (4, 0, Vec::new()));
    }

    #[test]
    fn a_machine_that_says_nothing_has_failed_in_everything() {
        let (passed, failed, complaints) = judged("");
        assert_eq!((passed, failed), (0, 5));
        assert!(complaints.iter().any(|text| text.contains("did not come to its end")), "{complaints:?}");
    }

    #[test]
    fn a_machine_that_stops_in_the_middle_has_failed_in_the_rest() {
        let (passed, failed, complaints) = judged(ALL.split("two ... ok").next().expect("a half"));
        assert_eq!((passed, failed), (1, 4), "{complaints:?}");
    }

    #[test]
    fn a_test_that_failed_was_left_out_or_is_doubtful_is_named() {
        for doubtful in ["FAILED", "ignored", "", "ok?"] {
            let said = ALL.replacen("two ... ok", &format!("two ... {doubtful}"), 1);
            let (passed, failed, complaints) = judged(&said);
            assert_eq!((passed, failed), (3, 1));
            assert!(complaints[0].starts_with("root: two"), "{complaints:?}");
        }
        let twice = ALL.replacen("test two ... ok", "test two ... FAILED\ntest two ... ok", 1);
        assert_eq!(judged(&twice).0, 3);
    }
}
