//! The shipped claims about the shipped bundles, and that a hole in any of them is found. Needs cvc5.
#![allow(clippy::disallowed_methods, reason = "the tests start the solver")]

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use gate::{BUNDLES, Policy};
use prove::{Claim, Prover, Side, Solver, Verdict, shipped_claims};

/// The solver of this machine.
struct Cvc5;

impl Solver for Cvc5 {
    fn answer(&mut self, script: &[u8]) -> io::Result<String> {
        let mut solver = Command::new("cvc5")
            .args(["--lang", "smt", "--tlimit=60000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cvc5 is needed for these tests: {error}")))?;
        solver.stdin.take().expect("is a pipe").write_all(script)?;
        Ok(String::from_utf8_lossy(&solver.wait_with_output()?.stdout).into_owned())
    }
}

fn policy(text: &str) -> Policy {
    Policy::parse(text).expect("fits the schema")
}

fn promised(claims: &[Claim], bundle: &str) -> Vec<Claim> {
    claims.iter().filter(|claim| claim.is_promised_by(Some(bundle))).cloned().collect()
}

#[test]
fn every_promise_of_the_shipped_bundles_is_proved() {
    let mut solver = Cvc5;
    let mut prover = Prover::new(&mut solver).expect("the schema is one");
    let claims = shipped_claims().expect("they can be read");
    for (name, text) in BUNDLES {
        let policy = policy(text);
        for claim in promised(&claims, name) {
            let proof = prover.prove(&policy, &claim);
            assert!(matches!(proof.verdict, Verdict::Proved), "{name}: {}: {:?}", claim.id, proof.verdict);
            assert!(proof.kinds > 0);
        }
        let proof = prover.never_errors(&policy);
        assert!(matches!(proof.verdict, Verdict::Proved), "{name}: a rule fails: {:?}", proof.verdict);
    }
}

/// Returns who can ask for what by a rule.
fn kinds(rule: &cedar_policy::Policy) -> BTreeSet<(String, String)> {
    let schema = gate::cedar_schema().expect("the schema is one");
    let kinds = rule.get_valid_request_envs(&schema);
    kinds.map(|kind| (kind.principal().to_string(), kind.action().to_string())).collect()
}

/// Returns the rules of a policy without the one at `left_out`, and with everything permitted that none of the rest forbids.
fn with_a_hole(policy: &Policy, left_out: &str) -> Policy {
    let hole = r#"@id("hole") @reason("hole") permit (principal, action, resource);"#;
    let rules = policy.cedar_rules().into_iter().filter(|(id, _)| id != left_out);
    let rules: Vec<String> = rules.map(|(_, rule)| rule.to_cedar().expect("no template")).collect();
    self::policy(&format!("{hole}\n{}", rules.join("\n")))
}

/// For each promise, each rule that could hold it is dropped in turn, while a permit is widened to everything.
#[test]
fn a_hole_behind_each_promise_is_found_and_replays() {
    let mut solver = Cvc5;
    let mut prover = Prover::new(&mut solver).expect("the schema is one");
    let claims = shipped_claims().expect("they can be read");
    for (name, text) in BUNDLES {
        // What every policy or bundle is held to is looked at in the first two.
        let wanted = |claim: &Claim| claim.bundles.contains(name) || ["default", "cautious"].contains(&name);
        let whole = policy(text);
        let forbids =
            whole.cedar_rules().into_iter().filter(|(_, rule)| rule.effect() == cedar_policy::Effect::Forbid);
        let forbids: Vec<_> = forbids.map(|(id, rule)| (id, kinds(&rule))).collect();
        for claim in promised(&claims, name).into_iter().filter(wanted) {
            let about = kinds(claim.rule());
            let holders = forbids.iter().filter(|(_, kinds)| !kinds.is_disjoint(&about));
            // At the lowest level many things are held by no rule that permits them, and by none that forbids.
            let mut left_out = holders.map(|(id, _)| id.as_str()).chain([""]);
            let found = left_out.find_map(|left_out| {
                let open = with_a_hole(&whole, left_out);
                match prover.prove(&open, &claim).verdict {
                    Verdict::Refuted(found) => Some((open, found)),
                    Verdict::Proved => None,
                    Verdict::NotProved(why) => panic!("{name}: {}: {why}", claim.id),
                }
            });
            let (open, found) = found.unwrap_or_else(|| panic!("{name}: no hole behind {}", claim.id));
            assert!(open.answer(&found.0).expect("fits the schema").allowed, "{}", claim.id);
            assert!(!whole.answer(&found.0).expect("fits the schema").allowed, "{}", claim.id);
        }
    }
}

#[test]
fn what_becomes_wider_is_named_with_a_request_for_it() {
    let mut solver = Cvc5;
    let mut prover = Prover::new(&mut solver).expect("the schema is one");
    let (default, cautious) = (policy(BUNDLES[0].1), policy(BUNDLES[1].1));
    let same = prover.compare(&default, &default);
    assert!(same.iter().all(|row| matches!((&row.wider, &row.narrower), (Side::Nothing, Side::Nothing))));
    let tighter = prover.compare(&default, &cautious);
    let publish = tighter.iter().find(|row| row.action == "publish").expect("is asked about");
    assert!(matches!(publish.wider, Side::Nothing), "{publish:?}");
    let Side::Something(example) = &publish.narrower else { panic!("{publish:?}") };
    assert!(
        default.answer(example).expect("fits").allowed && !cautious.answer(example).expect("fits").allowed
    );
    assert!(tighter.iter().all(|row| matches!(row.wider, Side::Nothing)), "{tighter:?}");
    let read = tighter.iter().find(|row| row.action == "read").expect("is asked about");
    assert!(matches!(read.narrower, Side::Nothing), "{read:?}");
}

/// A solver that gives this answer to everything.
struct Says(&'static str);

impl Solver for Says {
    fn answer(&mut self, _: &[u8]) -> io::Result<String> {
        match self.0 {
            "" => Err(io::Error::other("it took too long")),
            said => Ok(said.to_owned()),
        }
    }
}

#[test]
fn without_an_answer_that_can_be_used_nothing_is_proved() {
    let claims = shipped_claims().expect("they can be read");
    let claim = claims.iter().find(|claim| claim.id == "protected-paths-wait").expect("is there");
    for said in ["", "unknown\n", "timeout", "(error \"x\")\n", "sat\n(error \"no model\")", "unsat "] {
        let mut solver = Says(said);
        let mut prover = Prover::new(&mut solver).expect("the schema is one");
        let verdict = prover.prove(&policy(BUNDLES[0].1), claim).verdict;
        let proved = matches!(verdict, Verdict::Proved);
        assert_eq!(proved, said.starts_with("unsat"), "{said}: {verdict:?}");
    }
}

#[test]
fn rules_that_decide_nothing_are_told_by_what_they_mean() {
    let mut solver = Cvc5;
    let mut prover = Prover::new(&mut solver).expect("the schema is one");
    let text = r#"
        @id("all") @reason("all") permit (principal, action, resource);
        @id("wide") @reason("no") @advice("no") @person_may_allow("true")
        forbid (principal, action == Action::"widen-limit", resource) when { context.asked > 10 };
        @id("narrow") @reason("no") @advice("no") @person_may_allow("true")
        forbid (principal, action == Action::"widen-limit", resource) when { context.asked > 20 };
        @id("never") @reason("no") @advice("no") @person_may_allow("true")
        forbid (principal, action == Action::"widen-limit", resource)
        when { context.asked > 20 && context.asked < 10 };
        @id("alive") @reason("no") @advice("no") @person_may_allow("true")
        forbid (principal, action == Action::"widen-limit", resource) when { context.asked < 5 };"#;
    let idle = prover.idle_rules(&policy(text)).expect("the solver answers");
    let idle: Vec<(&str, Option<&str>)> =
        idle.iter().map(|idle| (idle.rule.as_str(), idle.covered_by.as_deref())).collect();
    assert_eq!(idle, [("narrow", Some("wide")), ("never", None)]);
}

#[test]
fn the_documentation_lists_every_claim() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let text = std::fs::read_to_string(document).expect("is there");
    for claim in shipped_claims().expect("they can be read") {
        let held: Vec<String> = claim.bundles.iter().map(|name| format!("`{name}`")).collect();
        let held = match held.as_slice() {
            [] => "every policy".to_owned(),
            [one] if one == "`shipped`" => "all that ship".to_owned(),
            _ => held.join(", "),
        };
        let row = format!("| `{}` | {} | {} | {held} |", claim.id, claim.says, claim.about);
        assert!(text.contains(&row), "docs/policy.md has no row\n{row}");
    }
}
