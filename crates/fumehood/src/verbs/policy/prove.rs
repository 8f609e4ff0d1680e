//! `policy prove` and `policy diff`: what rules never allow, and what becomes wider or narrower, by proof.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use gate::{BareQuestion, Policy};
use model::text::escape;
use prove::{Claim, Idle, Proof, Prover, Side, Unproved, Verdict, claims_of, shipped_claims};

use super::solver::Cvc5;
use super::{Context, Rules};
use crate::args::{PolicyDiffArgs, PolicyProveArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    ClaimRow, ClaimWord, DirectionPart, DirectionWord, ExamplePart, PolicyDiffDocument, PolicyDiffRow,
    ProveDocument,
};
use crate::settings::text_of;

/// The name of the claim that no rule can fail; it is no Cedar rule.
const NEVER_ERRORS: (&str, &str) =
    ("never-errors", "no rule fails on any request; one that fails denies without need");

/// What is asked only by its name: a rule that decides nothing does no harm.
const EVERY_RULE_DECIDES: (&str, &str) =
    ("every-rule-decides", "every rule can match something that no other rule answers for it");

/// Proves claims.
pub(crate) fn prove(context: &Context<'_>, args: &PolicyProveArgs) -> Result<Exit, CliError> {
    let rules = Rules::of(context, &args.rules)?;
    let policy = usable(&rules)?;
    let claims = wanted(args, &rules)?;
    let with_errors = args.claim.is_empty() || args.claim.iter().any(|id| id == NEVER_ERRORS.0);
    let with_idle = args.claim.iter().any(|id| id == EVERY_RULE_DECIDES.0);
    let mut document = ProveDocument { rules_of: rules.place.clone(), solver: None, claims: Vec::new() };
    match Cvc5::find(context) {
        Err(why) => {
            let row = |(id, says): (&str, &str)| not_proved(id, says, &why);
            let claims = claims.iter().map(|claim| (claim.id.as_str(), claim.says.as_str()));
            let named = with_errors.then_some(NEVER_ERRORS).into_iter();
            let named = named.chain(with_idle.then_some(EVERY_RULE_DECIDES));
            document.claims = claims.chain(named).map(row).collect();
        }
        Ok(mut solver) => {
            document.solver = Some(solver.version.clone());
            let progress = context.console.progress("proving");
            let mut prover = Prover::new(&mut solver).map_err(|error| CliError::Cannot(error.to_string()))?;
            for claim in &claims {
                document.claims.push(row(&claim.id, &claim.says, prover.prove(&policy, claim)));
            }
            if with_errors {
                let (id, says) = NEVER_ERRORS;
                document.claims.push(row(id, says, prover.never_errors(&policy)));
            }
            if with_idle {
                document.claims.push(idle_row(prover.idle_rules(&policy)));
            }
            drop(progress);
        }
    }
    if let Some(file) = &args.save {
        save(file, &document.claims)?;
    }
    context.console.answer(&document, |paint| render::proofs(&document, paint));
    Ok(Exit::answer(document.claims.iter().all(|row| row.verdict == ClaimWord::Proved)))
}

fn usable(rules: &Rules) -> Result<Policy, CliError> {
    let place = &rules.place;
    Policy::parse(rules.text()?).map_err(|error| CliError::Cannot(format!("{place}: {error}")))
}

/// Returns the claims that these rules are held to.
fn wanted(args: &PolicyProveArgs, rules: &Rules) -> Result<Vec<Claim>, CliError> {
    let unreadable = |error: prove::ClaimError| CliError::Cannot(error.to_string());
    let mut claims = shipped_claims().map_err(unreadable)?;
    let known: Vec<String> = claims.iter().map(|claim| claim.id.clone()).collect();
    match args.claim.as_slice() {
        [] => claims.retain(|claim| claim.is_promised_by(rules.bundle())),
        named => claims.retain(|claim| named.contains(&claim.id)),
    }
    if let Some(file) = &args.claims {
        let own = claims_of(&text_of(file)?).map_err(unreadable)?;
        claims.extend(own);
    }
    let there = |id: &String| {
        [NEVER_ERRORS.0, EVERY_RULE_DECIDES.0].contains(&id.as_str())
            || claims.iter().any(|claim| claim.id == *id)
    };
    if let Some(missing) = args.claim.iter().find(|id| !there(id)) {
        let (missing, known) = (escape(missing), known.join(", "));
        return Err(CliError::Cannot(format!(
            "there is no claim `{missing}`: there are {known}, {}, {}",
            NEVER_ERRORS.0, EVERY_RULE_DECIDES.0
        )));
    }
    Ok(claims)
}

fn not_proved(id: &str, says: &str, why: &str) -> ClaimRow {
    ClaimRow {
        claim: id.to_owned(),
        says: says.to_owned(),
        verdict: ClaimWord::NotProved,
        kinds: 0,
        why: Some(why.to_owned()),
        counterexample: None,
    }
}

fn row(id: &str, says: &str, proof: Proof) -> ClaimRow {
    let row = ClaimRow { kinds: proof.kinds, ..not_proved(id, says, "") };
    match proof.verdict {
        Verdict::Proved => ClaimRow { verdict: ClaimWord::Proved, why: None, ..row },
        Verdict::NotProved(why) => ClaimRow { why: Some(why.to_string()), ..row },
        Verdict::Refuted(found) => {
            let (question, answer) = *found;
            let counterexample = Some(example(&question, answer.rules));
            ClaimRow { verdict: ClaimWord::Refuted, why: None, counterexample, ..row }
        }
    }
}

/// Says which rules decide nothing.
fn idle_row(found: Result<Vec<Idle>, Unproved>) -> ClaimRow {
    let (id, says) = EVERY_RULE_DECIDES;
    let sentence = |idle: &Idle| match &idle.covered_by {
        Some(other) => format!("`{other}` covers `{}`", idle.rule),
        None => format!("`{}` never matches", idle.rule),
    };
    match found {
        Err(why) => not_proved(id, says, &why.to_string()),
        Ok(idle) if idle.is_empty() => {
            ClaimRow { verdict: ClaimWord::Proved, why: None, ..not_proved(id, says, "") }
        }
        Ok(idle) => {
            let why = idle.iter().map(sentence).collect::<Vec<_>>().join("; ");
            ClaimRow { verdict: ClaimWord::Refuted, ..not_proved(id, says, &why) }
        }
    }
}

fn example(question: &BareQuestion, rules: Vec<String>) -> ExamplePart {
    let BareQuestion { principal, action, resource, context, entities } = question.clone();
    ExamplePart { principal, action, resource, context, entities, rules }
}

/// Appends each counterexample as a row for `policy test`: it is to be denied.
fn save(file: &Path, claims: &[ClaimRow]) -> Result<(), CliError> {
    let refuted = claims.iter().filter(|row| row.claim != NEVER_ERRORS.0);
    let rows = refuted.filter_map(|row| Some((row, row.counterexample.as_ref()?)));
    let rows: Vec<String> = rows
        .map(|(row, example)| {
            let ExamplePart { principal, action, resource, context, entities, rules: _ } = example;
            let question = serde_json::json!({
                "principal": principal, "action": action, "resource": resource, "context": context, "entities": entities,
            });
            serde_json::json!({"id": row.claim, "why": row.says, "expect": "deny", "question": question}).to_string() + "\n"
        })
        .collect();
    let written = OpenOptions::new().create(true).append(true).open(file);
    written
        .and_then(|mut file| file.write_all(rows.concat().as_bytes()))
        .map_err(CliError::file("write", file))
}

/// Compares two policies.
pub(crate) fn diff(context: &Context<'_>, args: &PolicyDiffArgs) -> Result<Exit, CliError> {
    let (from, to) = (Rules::said(context, &args.from)?, Rules::said(context, &args.to)?);
    let (old, new) = (usable(&from)?, usable(&to)?);
    let mut solver = Cvc5::find(context)
        .map_err(|why| CliError::Cannot(format!("nothing is proved about what becomes wider: {why}")))?;
    let version = solver.version.clone();
    let progress = context.console.progress("comparing");
    let mut prover = Prover::new(&mut solver).map_err(|error| CliError::Cannot(error.to_string()))?;
    let rows = prover.compare(&old, &new).into_iter().map(|row| PolicyDiffRow {
        wider: direction(row.wider, &new),
        narrower: direction(row.narrower, &old),
        action: row.action,
    });
    let rows = rows.collect();
    drop(progress);
    let document = PolicyDiffDocument { from: from.place, to: to.place, solver: version, rows };
    context.console.answer(&document, |paint| render::policy_diff(&document, paint));
    Ok(Exit::answer(document.rows.iter().all(|row| row.wider.found == DirectionWord::Nothing)))
}

fn direction(side: Side, allows: &Policy) -> DirectionPart {
    let (found, example, why) = match side {
        Side::Nothing => (DirectionWord::Nothing, None, None),
        Side::Something(question) => {
            let rules = allows.answer(&question).map(|answer| answer.rules).unwrap_or_default();
            (DirectionWord::Something, Some(example(&question, rules)), None)
        }
        Side::Unknown(why) => (DirectionWord::NotProved, None, Some(why.to_string())),
    };
    DirectionPart { found, example, why }
}
