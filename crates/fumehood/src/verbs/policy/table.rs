//! `policy test`: decision tables, row by row.
//!
//! A row is a request in the form of `policy decide --stdin` with the answer that it must get, or a bare question as
//! `policy prove` and `policy diff` save them. The workspace and the profile are the same on every machine.

use std::path::Path;

use gate::BareQuestion;
use model::text::escape;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::asked::{Asked, Decided, Scene};
use super::{Context, Rules};
use crate::args::PolicyTestArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{PolicyAnswer, PolicyTestDocument, RowFailure};
use crate::settings::text_of;

/// One row.
pub(super) struct Row {
    /// Where it stands, for people.
    pub(super) place: String,
    pub(super) name: String,
    expect: Expect,
    reason: Option<String>,
    /// Rules that must be among those that decide.
    rules: Vec<String>,
    pub(super) what: What,
}

/// What is decided.
pub(super) enum What {
    Request(Box<Asked>),
    Question(Box<BareQuestion>),
}

/// The answer that a row must get.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expect {
    Allow,
    Ask,
    Deny,
    /// It does not run without somebody: `ask` or `deny`.
    Stop,
}

/// What one row got.
struct Got {
    answer: PolicyAnswer,
    reason: String,
    rules: Vec<String>,
}

/// Decides the rows of tables.
pub(crate) fn test(context: &Context<'_>, args: &PolicyTestArgs) -> Result<Exit, CliError> {
    let rules = Rules::of(context, &args.rules)?;
    let policy = rules.policy()?.map_err(|error| CliError::Cannot(error.to_string()))?;
    let gate = rules.gate();
    let mut document = PolicyTestDocument { rules_of: rules.place, rows: 0, failures: Vec::new() };
    for table in &args.tables {
        for row in rows(table)? {
            document.rows += 1;
            let got = match &row.what {
                What::Request(asked) => {
                    let case =
                        asked.as_ref().clone().case(Scene::neutral()).map_err(|why| row.error(&why))?;
                    Got::of(case.decide(&gate))
                }
                What::Question(question) => {
                    let answer = policy.answer(question).map_err(|why| row.error(&why))?;
                    let word = if answer.allowed { PolicyAnswer::Allow } else { PolicyAnswer::Deny };
                    Got { answer: word, reason: String::new(), rules: answer.rules }
                }
            };
            document.failures.extend(row.failure(got));
        }
    }
    context.console.answer(&document, |paint| render::policy_test(&document, paint));
    Ok(Exit::answer(document.failures.is_empty()))
}

/// Reads a table: JSON lines, or TOML with a `[[row]]` for each.
///
/// # Errors
/// When it cannot be read, a row is none, or there is no row.
pub(super) fn rows(table: &Path) -> Result<Vec<Row>, CliError> {
    let text = text_of(table)?;
    let name = escape(&table.to_string_lossy()).into_owned();
    let rows: Result<Vec<Row>, String> = match table.extension().is_some_and(|end| end == "toml") {
        true => of_toml(&name, &text),
        false => of_lines(&name, &text),
    };
    let rows = rows.map_err(CliError::Cannot)?;
    if rows.is_empty() {
        return Err(CliError::Cannot(format!("`{name}` holds no row, so it tests nothing")));
    }
    Ok(rows)
}

fn of_lines(name: &str, text: &str) -> Result<Vec<Row>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| {
        let place = format!("{name}:{number}");
        let fields = serde_json::from_str(line).map_err(|error| wrong(&place, &error.to_string()))?;
        Row::read(place, fields)
    };
    lines.map(row).collect()
}

fn of_toml(name: &str, text: &str) -> Result<Vec<Row>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[serde(default)]
        row: Vec<Map<String, Value>>,
    }
    let table: Table = toml::from_str(text).map_err(|error| wrong(name, &error.to_string()))?;
    let row = |(number, fields)| Row::read(format!("{name}, row {number}"), fields);
    (1..).zip(table.row).map(row).collect()
}

fn wrong(place: &str, why: &str) -> String {
    format!("{place}: the row is not what is expected: {}; docs/policy.md has its form", escape(why.trim()))
}

impl Row {
    fn read(place: String, mut fields: Map<String, Value>) -> Result<Self, String> {
        fn take<T: for<'d> Deserialize<'d>>(
            fields: &mut Map<String, Value>,
            key: &str,
        ) -> Result<Option<T>, String> {
            let value = fields.remove(key).map(serde_json::from_value);
            value.transpose().map_err(|error| format!("`{key}`: {error}"))
        }
        let mut read = || {
            let expect = take(&mut fields, "expect")?.ok_or("there is no `expect`")?;
            let (id, why): (Option<String>, Option<String>) =
                (take(&mut fields, "id")?, take(&mut fields, "why")?);
            let reason = take(&mut fields, "reason")?;
            let rules = take(&mut fields, "rules")?.unwrap_or_default();
            let question: Option<BareQuestion> = take(&mut fields, "question")?;
            let rest = Value::Object(std::mem::take(&mut fields));
            let what = match question {
                Some(question) if rest == Value::Object(Map::new()) => What::Question(Box::new(question)),
                Some(_) => return Err("it has a `question` and a request: give one of them".to_owned()),
                None => {
                    What::Request(Box::new(serde_json::from_value(rest).map_err(|error| error.to_string())?))
                }
            };
            let name = [id, why].into_iter().flatten().collect::<Vec<_>>().join(": ");
            Ok::<_, String>(Self { place: place.clone(), name, expect, reason, rules, what })
        };
        read().map_err(|why| wrong(&place, &why))
    }

    pub(super) fn error(&self, why: &str) -> CliError {
        CliError::Cannot(wrong(&self.place, why))
    }

    /// Says in what a row is answered otherwise than it must be.
    fn failure(&self, got: Got) -> Option<RowFailure> {
        let missing = self.rules.iter().find(|rule| !got.rules.contains(rule));
        let why = if !self.expect.is_met_by(got.answer) {
            format!("is answered `{}`, and not {}", got.answer.word(), self.expect.words())
        } else if let Some(reason) = self.reason.as_ref().filter(|reason| **reason != got.reason) {
            format!("has the reason `{}`, and not `{reason}`", got.reason)
        } else {
            format!("is not decided by the rule `{}`", missing?)
        };
        Some(RowFailure {
            place: self.place.clone(),
            row: self.name.clone(),
            why,
            answer: got.answer,
            reason_code: got.reason,
            matched_rules: got.rules,
        })
    }
}

impl Expect {
    fn is_met_by(self, answer: PolicyAnswer) -> bool {
        match self {
            Self::Allow => answer == PolicyAnswer::Allow,
            Self::Ask => answer == PolicyAnswer::Ask,
            Self::Deny => answer == PolicyAnswer::Deny,
            Self::Stop => answer != PolicyAnswer::Allow,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Allow => "`allow`",
            Self::Ask => "`ask`",
            Self::Deny => "`deny`",
            Self::Stop => "`ask` or `deny`",
        }
    }
}

impl Got {
    fn of(decided: Decided) -> Self {
        let record = decided.record;
        Self { answer: decided.answer, reason: record.reason, rules: record.rules }
    }
}
