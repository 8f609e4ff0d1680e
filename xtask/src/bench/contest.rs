//! A contest: several ways to do one thing, tried in turn, round after round, and compared with the first.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::stats;
use crate::say;

/// One try: what it cost.
pub type Try<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// One way to do the thing.
pub struct Contender<'a> {
    /// How the table calls it.
    pub name: String,
    /// Does it once and measures it. An error in the first try leaves the contender out, with the error as reason.
    pub attempt: Try<'a>,
}

/// Several ways to do one thing. The first one that works is the yardstick.
pub struct Contest<'a> {
    /// The name of the raw samples and of `--only`.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What is measured and what is not.
    pub note: String,
    /// The unit of the samples.
    pub unit: Unit,
    /// How often each is tried.
    pub rounds: u32,
    /// The ways.
    pub contenders: Vec<Contender<'a>>,
    /// Ways that are not there, with the reason.
    pub absent: Vec<(String, String)>,
}

/// What a sample counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds of wall time.
    Milliseconds,
    /// KiB of memory.
    Kibibytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Kibibytes => "KiB",
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Self::Milliseconds if value < 100.0 => format!("{value:.2}"),
            Self::Milliseconds | Self::Kibibytes => format!("{value:.0}"),
        }
    }
}

/// What was measured.
#[derive(Debug, PartialEq)]
pub struct Measured {
    /// The name, the heading and the note of the contest.
    pub id: String,
    title: String,
    note: String,
    unit: Unit,
    series: Vec<(String, Vec<f64>)>,
    absent: Vec<(String, String)>,
}

impl Contest<'_> {
    /// Tries every way in turn, round after round; every other round backwards, so that no way always comes after
    /// the same other one. A first round is run and thrown away: it shows who works, and loads the programs.
    ///
    /// # Errors
    /// When a way that worked once does not work later.
    pub fn run(mut self) -> Result<Measured> {
        say::step(&format!("measure {}: {} ways, {} rounds", self.id, self.contenders.len(), self.rounds));
        let mut absent = std::mem::take(&mut self.absent);
        let mut working = Vec::new();
        for mut contender in std::mem::take(&mut self.contenders) {
            match (contender.attempt)() {
                Ok(_) => working.push((contender, Vec::new())),
                Err(error) => {
                    say::note(&format!("without {}: {error:#}", contender.name));
                    absent.push((contender.name, one_line(&format!("{error:#}"))));
                }
            }
        }
        say::while_working(self.title, || rounds(&mut working, self.rounds))?;
        let series = working.into_iter().map(|(contender, samples)| (contender.name, samples)).collect();
        let (id, title) = (self.id.to_owned(), self.title.to_owned());
        Ok(Measured { id, title, note: self.note, unit: self.unit, series, absent })
    }
}

fn rounds(working: &mut [(Contender<'_>, Vec<f64>)], rounds: u32) -> Result<()> {
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..working.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let (contender, samples) = &mut working[index];
            let sample =
                (contender.attempt)().with_context(|| format!("{} in round {round}", contender.name))?;
            samples.push(sample);
        }
    }
    Ok(())
}

impl Measured {
    /// Writes the raw samples: one line a sample, with the round, the way and the figure.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_samples(&self, folder: &Path, machine: &str) -> Result<()> {
        let mut text = format!("# {}\n# round\tway\t{}\n", machine, self.unit.name());
        for (name, samples) in &self.series {
            for (round, sample) in samples.iter().enumerate() {
                writeln!(text, "{round}\t{name}\t{sample:.4}")?;
            }
        }
        let file = folder.join(format!("{}.tsv", self.id));
        fs::write(&file, text).with_context(|| format!("cannot write `{}`", file.display()))
    }

    /// Returns the table as it stands in the document.
    pub fn table(&self) -> String {
        let mut text = format!("### {}\n\n{}\n\n", self.title, self.note);
        let unit = self.unit.name();
        let _ = writeln!(text, "| way | median, {unit} | quartiles, {unit} | against the first | samples |");
        let _ = writeln!(text, "| --- | --- | --- | --- | --- |");
        let yardstick = self.series.first().map(|(_, samples)| samples.as_slice()).unwrap_or_default();
        for (name, samples) in &self.series {
            let _ = writeln!(text, "{}", self.table_row(name, samples, yardstick));
        }
        for (name, why) in &self.absent {
            let _ = writeln!(text, "| {name} | not measured | {why} | | |");
        }
        let _ = writeln!(text, "\nRaw samples: [benchmarks/{0}.tsv](benchmarks/{0}.tsv).", self.id);
        text
    }

    fn table_row(&self, name: &str, samples: &[f64], yardstick: &[f64]) -> String {
        let (Some(summary), Some(ratio)) = (stats::summary(samples), stats::ratio(samples, yardstick)) else {
            return format!("| {name} | not measured | no samples | | |");
        };
        let shown = |value| self.unit.shown(value);
        format!(
            "| {name} | {} | {}–{} | {:.2} ({:.2}–{:.2}) | {} |",
            shown(summary.median),
            shown(summary.low),
            shown(summary.high),
            ratio.median,
            ratio.low,
            ratio.high,
            summary.count
        )
    }
}

/// Puts a reason on one line of a table.
fn one_line(text: &str) -> String {
    let line: String = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    line.replace('|', "/").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest<'a>(contenders: Vec<Contender<'a>>) -> Contest<'a> {
        Contest {
            id: "test",
            title: "A test",
            note: "Nothing.".into(),
            unit: Unit::Milliseconds,
            rounds: 3,
            contenders,
            absent: vec![("gone".into(), "not installed".into())],
        }
    }

    fn fixed<'a>(name: &str, value: f64) -> Contender<'a> {
        Contender { name: name.into(), attempt: Box::new(move || Ok(value)) }
    }

    #[test]
    fn the_table_compares_with_the_first_and_says_who_is_absent() {
        let broken =
            Contender { name: "broken".into(), attempt: Box::new(|| anyhow::bail!("no | such\nthing")) };
        let measured =
            contest(vec![fixed("one", 2.0), broken, fixed("two", 1.0)]).run().expect("two ways work");
        let table = measured.table();
        assert!(table.contains("| two | 1.00 | 1.00–1.00 | 0.50 (0.50–0.50) | 3 |"), "{table}");
        assert!(table.contains("| broken | not measured | no / such; thing | | |"), "{table}");
        assert!(table.contains("| gone | not measured | not installed | | |"), "{table}");
    }

    #[test]
    fn ways_are_tried_in_turn_and_backwards_in_every_other_round() {
        let order = std::cell::RefCell::new(String::new());
        let noting = |name: &'static str| {
            let attempt = || {
                order.borrow_mut().push_str(name);
                Ok(1.0)
            };
            Contender { name: name.into(), attempt: Box::new(attempt) }
        };
        contest(vec![noting("a"), noting("b")]).run().expect("both work");
        assert_eq!(order.into_inner(), "ababbaab");
    }

    #[test]
    fn raw_samples_have_their_round() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let measured = contest(vec![fixed("one", 2.0)]).run().expect("it works");
        measured.write_samples(scratch.path(), "a machine").expect("it is ours");
        let text = fs::read_to_string(scratch.path().join("test.tsv")).expect("it was written");
        assert_eq!(text.lines().last(), Some("2\tone\t2.0000"));
    }
}
