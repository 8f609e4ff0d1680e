//! Disguises through the real program: what it says of them, and what becomes of those that nobody could read.

#[path = "../../../engine/tests/disguises/classes.rs"]
mod classes;
#[path = "../../../engine/tests/disguises/corpus.rs"]
mod corpus;
#[path = "../../../engine/tests/disguises/forms.rs"]
mod forms;

use classes::CLASSES;
use corpus::{Random, disguises, neighbours, words};
use forms::{Disguise, Kind, every_form};
use serde_json::Value;

use super::bench::{Answer, Bench};
use super::denials::KEEP_DOCS;

/// How many of each class the program is asked about; the tests of the engine ask about all.
const SAMPLE: usize = 6;

fn sample(all: &[Disguise], seed: u64) -> Vec<Disguise> {
    let mut random = Random(seed);
    (0..SAMPLE).filter_map(|_| random.choose(all).cloned()).collect()
}

fn answer(bench: &Bench, bundle: &str, disguise: &Disguise) -> String {
    let mut asked = ["policy", "decide", "--json", "--bundle", bundle, "--"].map(str::to_owned).to_vec();
    asked.extend(disguise.argv.iter().cloned());
    let answer = bench.run(&asked);
    let document: Value =
        serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    document["answer"].as_str().expect("a word").to_owned()
}

#[test]
fn the_program_lets_no_disguise_go_and_catches_no_neighbour() {
    let bench = Bench::new();
    for class in CLASSES {
        for disguise in sample(&disguises(class, 7), 8) {
            assert_ne!(answer(&bench, "cautious", &disguise), "allow", "{}: {disguise:?}", class.name);
        }
        for neighbour in sample(&neighbours(class, 7), 9) {
            assert_eq!(answer(&bench, "default", &neighbour), "allow", "{}: {neighbour:?}", class.name);
        }
    }
}

#[test]
fn what_nobody_could_read_is_seen_while_it_runs_and_not_kept() {
    let bench = Bench::forbidding(KEEP_DOCS);
    let plain = words("rm -rf docs");
    assert_eq!(started(&bench, &plain).code, Some(126));
    let hidden = |form: &Disguise| matches!(form.kind, Kind::Variable | Kind::Encoding | Kind::File);
    let (mut seen, mut tried) = (0, 0);
    for form in every_form(&plain).into_iter().filter(hidden) {
        started(&bench, &form.argv);
        tried += 1;
        let document = bench.json(&["show", "--json"]);
        seen += usize::from(document["denied_before"].as_array().is_some_and(|met| !met.is_empty()));
        // What was kept once stays away, so it is enough to look now and then.
        if tried % 6 == 0 {
            is_there(&bench, &form);
        }
    }
    is_there(&bench, &"all of them");
    // Not every program of the forms is on every machine, and some forms make nothing of their own.
    assert!(seen >= 12, "only {seen} of {tried} were seen");
}

fn is_there(bench: &Bench, after: &dyn std::fmt::Debug) {
    let listed = started(bench, &words("ls docs"));
    assert!(listed.out.contains("page"), "{after:?}: {listed:?}");
}

/// Runs a command in the task, which a person opens again where it was frozen.
fn started(bench: &Bench, argv: &[String]) -> Answer {
    let run = || bench.run(&[&["run", "--"].map(str::to_owned), argv].concat());
    let answer = run();
    if !answer.err.contains("is frozen") || answer.code != Some(125) {
        return answer;
    }
    let tasks = bench.json(&["task", "list", "--all", "--json"]);
    let task = tasks["tasks"][0]["task"].as_str().expect("an id").to_owned();
    assert_eq!(bench.run(&["task", "resume", &task]).code, Some(0));
    run()
}
