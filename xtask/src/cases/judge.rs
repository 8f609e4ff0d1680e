//! Decides what a table of cases is worth.

use std::collections::BTreeMap;

use model::enforcement::Held;
use model::{Layer, Level};

use crate::account::Leftover;
use crate::cases::lists::{Allowed, Holder, Holders, Who};
use crate::cases::table::{Row, Verdict};
use crate::say;
use crate::tally::Tally;

/// What the product's own record says of the run of one case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// How each layer was held.
    pub held: Vec<Held>,
    /// Whether the policy refused the action.
    pub denied: bool,
    /// Whether changes were held back from the host's directory.
    pub held_back: bool,
}

/// What a case is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It counts as passed.
    Passed,
    /// It is left out, for a committed reason.
    Skipped(String),
    /// It counts as failed.
    Failed(String),
}

/// Judges every case that had to be run.
pub fn rows(
    expected: &[String],
    rows: &[Row],
    recorded: &BTreeMap<String, Recorded>,
    who: Who,
    allowed: &Allowed,
    holders: &Holders,
) -> Vec<(String, Judgement)> {
    let judge = |case: &String| match rows.iter().find(|row| row.case == *case) {
        None => Judgement::Failed("was not run".to_owned()),
        Some(row) => one(row, recorded.get(case), who, allowed, holders.of(case)),
    };
    expected.iter().map(|case| (case.clone(), judge(case))).collect()
}

fn one(row: &Row, recorded: Option<&Recorded>, who: Who, allowed: &Allowed, holders: &[Holder]) -> Judgement {
    match row.verdict {
        Verdict::Broke => Judgement::Failed(format!("broke: {}", row.detail)),
        Verdict::Error => Judgement::Failed(format!("did not do its work: {}", row.detail)),
        Verdict::NotApplicable => match allowed.reason(&row.case, who) {
            Some(reason) => Judgement::Skipped(reason.to_owned()),
            None => Judgement::Failed(format!("not applicable, and no reason is committed: {}", row.detail)),
        },
        Verdict::Held => match (recorded, holders) {
            (_, []) => Judgement::Passed,
            (None, _) => Judgement::Failed("held, but there is no record of the run".to_owned()),
            (Some(recorded), holders) => {
                match holders.iter().find_map(|holder| shortfall(holder, recorded)) {
                    None => Judgement::Passed,
                    Some(why) => Judgement::Failed(format!("held, but {why}")),
                }
            }
        },
    }
}

/// Returns why the record does not bear out that `holder` held.
fn shortfall(holder: &Holder, recorded: &Recorded) -> Option<String> {
    match holder {
        Holder::Policy if recorded.denied => None,
        Holder::Policy => Some("the record has no refusal".to_owned()),
        Holder::Apply if recorded.held_back => None,
        Holder::Apply => Some("the record says nothing of changes held back".to_owned()),
        Holder::Layer(layer) => layer_shortfall(*layer, recorded),
    }
}

fn layer_shortfall(layer: Layer, recorded: &Recorded) -> Option<String> {
    let Some(held) = recorded.held.iter().find(|held| held.layer == layer) else {
        return Some(format!("the record does not name the layer `{layer}`"));
    };
    (held.level == Level::Absent).then(|| format!("the record says that the layer `{layer}` is absent"))
}

/// Prints what failed and what was left out, and counts.
pub fn say(judged: &[(String, Judgement)]) -> Tally {
    let mut tally = Tally::default();
    for (case, judgement) in judged {
        match judgement {
            Judgement::Passed => tally.passed += 1,
            Judgement::Skipped(reason) => {
                tally.skipped += 1;
                say::result(&format!("skipped {case}: {reason}"));
            }
            Judgement::Failed(why) => {
                tally.failed += 1;
                say::result(&format!("FAILED {case}: {why}"));
            }
        }
    }
    tally
}

/// Counts what an ordinary user left running: one failure each.
pub fn leftovers(left: &[Leftover]) -> Tally {
    let mut tally = Tally::default();
    for process in left {
        say::result(&format!("FAILED left running: {} {}", process.pid, process.command));
        tally.failed += 1;
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(verdict: Verdict, recorded: Option<Recorded>) -> Judgement {
        let row = Row { case: "PR-01".into(), verdict, detail: "so it says".into() };
        let allowed = Allowed::parse("PX-01 any it has a reason").expect("a good list");
        let holders = Holders::parse("PR-01 pid-namespace it hides them").expect("a good list");
        let recorded = recorded.map(|recorded| ("PR-01".to_owned(), recorded)).into_iter().collect();
        rows(&["PR-01".into()], &[row], &recorded, Who::Root, &allowed, &holders).remove(0).1
    }

    fn record_with(level: Level) -> Option<Recorded> {
        let held = vec![Held { layer: Layer::PidNamespace, level, by: "clone".into() }];
        Some(Recorded { held, ..Recorded::default() })
    }

    #[test]
    fn held_by_the_named_layer_passes() {
        assert_eq!(judged(Verdict::Held, record_with(Level::Hard)), Judgement::Passed);
    }

    #[test]
    fn held_by_something_else_fails() {
        for recorded in [record_with(Level::Absent), Some(Recorded::default()), None] {
            assert!(matches!(judged(Verdict::Held, recorded), Judgement::Failed(_)));
        }
    }

    #[test]
    fn broke_error_and_an_unlisted_exception_fail_whatever_the_record_says() {
        for verdict in [Verdict::Broke, Verdict::Error, Verdict::NotApplicable] {
            assert!(matches!(judged(verdict, record_with(Level::Hard)), Judgement::Failed(_)), "{verdict:?}");
        }
    }

    #[test]
    fn a_listed_exception_is_left_out_with_its_reason() {
        let allowed = Allowed::parse("PX-01 user no proxy yet").expect("a good list");
        let row = Row { case: "PX-01".into(), verdict: Verdict::NotApplicable, detail: String::new() };
        let judge = |who| one(&row, None, who, &allowed, &[]);
        assert_eq!(judge(Who::User), Judgement::Skipped("no proxy yet".into()));
        assert!(matches!(judge(Who::Root), Judgement::Failed(_)));
    }

    #[test]
    fn a_case_that_was_not_run_fails() {
        let missing = rows(
            &["WK-01".into()],
            &[],
            &BTreeMap::new(),
            Who::Root,
            &Allowed::default(),
            &Holders::default(),
        );
        assert_eq!(missing, [("WK-01".to_owned(), Judgement::Failed("was not run".to_owned()))]);
    }
}
