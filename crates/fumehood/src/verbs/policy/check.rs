//! `policy check`: whether rules can be used, whether each of them can decide something, and whether their examples hold.
//!
//! Examples are decided here, when rules are written or changed, and not at each run: starting a run stays as quick as
//! it is.

use gate::{Example, Expected, Gate};
use model::text::escape;

use super::asked::{Asked, Decided, Scene};
use super::{Context, Rules};
use crate::args::{PolicyCheckArgs, RulesChoice};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{FindingKind, FindingRow, PolicyAnswer, PolicyCheckDocument};

/// Checks rules.
pub(crate) fn check(context: &Context<'_>, args: &PolicyCheckArgs) -> Result<Exit, CliError> {
    let choice = RulesChoice { bundle: args.bundle.clone(), file: args.file.clone() };
    let rules = Rules::of(context, &choice)?;
    let document = checked(&rules)?;
    context.console.answer(&document, |paint| render::policy_check(&document, paint));
    Ok(Exit::answer(document.findings.is_empty()))
}

fn checked(rules: &Rules) -> Result<PolicyCheckDocument, CliError> {
    let mut document =
        PolicyCheckDocument { rules_of: rules.place.clone(), rules: 0, examples: 0, findings: Vec::new() };
    let policy = match rules.policy()? {
        Ok(policy) => policy,
        Err(error) => {
            document.findings.push(finding(FindingKind::Unusable, error.to_string()));
            return Ok(document);
        }
    };
    document.rules = policy.rule_ids().len();
    match policy.dead_rules() {
        Ok(dead) => document.findings.extend(
            dead.into_iter()
                .map(|dead| finding(FindingKind::DeadRule, format!("rule {} {}", dead.place, dead.why))),
        ),
        Err(error) => document.findings.push(finding(FindingKind::Unusable, error.to_string())),
    }
    match policy.examples() {
        Ok(examples) => {
            document.examples = examples.len();
            let gate = rules.gate();
            let wrong = examples.iter().filter_map(|example| broken(&gate, example));
            document.findings.extend(wrong.map(|message| finding(FindingKind::Example, message)));
        }
        Err(error) => document.findings.push(finding(FindingKind::Example, error.to_string())),
    }
    Ok(document)
}

fn finding(kind: FindingKind, message: String) -> FindingRow {
    FindingRow { kind, message }
}

/// Says in what an example does not hold.
fn broken(gate: &Gate, example: &Example) -> Option<String> {
    let head = format!("rule {}: the example `{}`", example.rule, escape(&example.request));
    let case = Asked::from_line(&example.request).and_then(|asked| asked.case(Scene::neutral()));
    let decided = match case {
        Ok(case) => case.decide(gate),
        Err(why) => return Some(format!("{head} is no request: {}", escape(&why))),
    };
    if decided.answer.word() != example.expected.word() {
        let (expected, found) = (example.expected.word(), decided.answer.word());
        return Some(format!(
            "{head} is expected to be answered `{expected}`, and is `{found}` ({})",
            because(&decided)
        ));
    }
    // Before the id of a repository's own rule stands whose it is.
    let is_this = |rule: &String| rule.rsplit('/').next() == Some(example.rule_id.as_str());
    let named = decided.record.rules.iter().any(is_this);
    let verb = if example.expected == Expected::Allow { "allow" } else { "decide" };
    (example.rule_decides && !named)
        .then(|| format!("{head} gets its answer, but this rule does not {verb} it ({})", because(&decided)))
}

/// Says why an answer was given.
fn because(decided: &Decided) -> String {
    let reason = escape(&decided.record.reason);
    match (decided.record.rules.as_slice(), decided.answer) {
        ([], _) => reason.into_owned(),
        (rules, PolicyAnswer::Allow) if rules.len() > 3 => format!("{reason}, by {} rules", rules.len()),
        (rules, _) => format!("{reason}, by rule `{}`", escape(&rules.join("`, `"))),
    }
}

#[cfg(test)]
mod tests {
    use gate::{BUNDLES, Policy};

    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let source = engine::PolicySource::Rules(text.to_owned());
        let rules = Rules { place: "rules".to_owned(), source, under: None };
        checked(&rules).expect("there is a text").findings.into_iter().map(|row| row.message).collect()
    }

    fn with(annotations: &str) -> String {
        format!(
            r#"@id("all") @reason("all") permit (principal, action, resource);
            @id("no-push") @reason("no-push") @advice("do not") @person_may_allow("false") {annotations}
            forbid (principal, action == Action::"change-ref", resource);"#
        )
    }

    #[test]
    fn the_examples_of_the_shipped_bundles_hold() {
        for (name, text) in BUNDLES {
            assert_eq!(findings(text), [""; 0], "{name}");
            let examples = Policy::parse(text).and_then(|policy| policy.examples()).expect("can be used");
            assert!(examples.len() >= 10, "{name} has examples");
        }
    }

    #[test]
    fn an_example_that_does_not_hold_is_found() {
        let wrong = [
            (r#"@deny_example("git push")"#, ""),
            (r#"@deny_example("git push\n git push --force origin x") @allow_example("git status")"#, ""),
            (r#"@deny_example("git status")"#, "is expected to be answered `deny`, and is `allow`"),
            (
                r#"@allow_example("git push")"#,
                "is expected to be answered `allow`, and is `deny` (no-push, by rule `no-push`)",
            ),
            (r#"@ask_example("git push")"#, "is expected to be answered `ask`, and is `deny`"),
            (r#"@deny_example("{\"argv\": [\"git\", \"push\"], \"as\": \"user:ada\"}")"#, ""),
            (r#"@deny_example("{\"argv\": [\"git\"], \"evn\": {}}")"#, "is no request: unknown field"),
            (r#"@deny_example("{\"argv\": [\"git\"], \"read\": \"a\"}")"#, "either `argv` or `shell`"),
            (r#"@deny_example(" ")"#, "without a request"),
        ];
        for (annotations, why) in wrong {
            let found = findings(&with(annotations));
            match why {
                "" => assert_eq!(found, [""; 0], "{annotations}"),
                why => assert!(found.len() == 1 && found[0].contains(why), "{annotations}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_rule_that_another_one_answers_for_is_not_shown_by_its_example() {
        let text = with(r#"@deny_example("{\"argv\": [\"ls\"], \"network\": \"host\"}")"#)
            + r#"@id("no-net") @reason("no-net") @advice("do not") @person_may_allow("false")
            forbid (principal, action == Action::"use-network", resource);"#;
        let found = findings(&text);
        assert!(
            found.len() == 1 && found[0].contains("gets its answer, but this rule does not decide it"),
            "{found:?}"
        );
    }
}
