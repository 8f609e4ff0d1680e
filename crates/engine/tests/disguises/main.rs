//! Disguises: what was denied once is not to be had in other words, and what only looks like it is not caught.
//!
//! For each class of effects a plain command is denied, and the memory of that denial is all that is known from then on. A
//! disguise is *recalled* when it gets the same reason at once, *asked* when the careful bundle would not let it go without a
//! person, and *missed* otherwise. What nobody could read (a code, a file) runs inside the walls under the default bundle;
//! `crates/fumehood/tests/command/disguises.rs` shows what becomes of it there.

mod classes;
mod corpus;
#[path = "../common/deciding.rs"]
mod deciding;
mod forms;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use classes::{CLASSES, Class};
use corpus::{disguises, neighbours, words};
use deciding::decide_tool;
use forms::{Disguise, Kind};
use gate::{BUNDLES, Decision, Denial, Gate, Policy, Remembered};
use model::{OsText, Tool, WorkspacePath};

const SEED: u64 = 0x5eed_0b5e_55ed_ba11;
/// How many of a hundred disguises are recalled at least, hidden ones among them.
const RECALLED_MIN: usize = 55;

fn bundle(name: &str) -> &'static str {
    BUNDLES.iter().find(|(known, _)| *known == name).expect("it ships").1
}

fn gate(rules: &str) -> Gate {
    Gate::new(Policy::parse(rules).unwrap_or_else(|error| panic!("{error}: {rules}")))
}

fn decide(gate: &Gate, argv: &[String], remembered: &[Remembered]) -> Decision {
    decide_with(gate, argv, &[], remembered)
}

fn decide_with(gate: &Gate, argv: &[String], variables: &[String], remembered: &[Remembered]) -> Decision {
    let argv = argv.iter().map(|word| OsText::new(word.as_str()).expect("no NUL")).collect();
    decide_tool(gate, Tool::Run { argv }, variables, remembered)
}

/// Denies the plain command of a class, and returns what is remembered of that.
fn denied(class: &Class) -> Vec<Remembered> {
    let annotations = r#"@id("not-that") @reason("not-that") @advice("leave it") @person_may_allow("true")"#;
    let rules = format!("{}\n{annotations}\nforbid (principal, {};", bundle("default"), class.rule);
    let Decision::Deny(denial) = decide(&gate(&rules), &words(class.plain), &[]) else {
        panic!("`{}` is not denied", class.plain)
    };
    assert_eq!(denial.reason(), "not-that");
    memory_of(&denial)
}

/// Returns what a task remembers of a denial.
fn memory_of(denial: &Denial) -> Vec<Remembered> {
    let record = denial.record();
    let remembered = |effect: &model::Effect| Remembered {
        effect: effect.clone(),
        reason: record.reason.clone(),
        rules: record.rules.clone(),
        advice: record.advice.clone(),
        person_may_allow: record.person_may_allow,
    };
    denial.effects().iter().map(remembered).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Recalled,
    Asked,
    Missed,
}

struct Gates {
    default: Gate,
    cautious: Gate,
}

impl Gates {
    fn new() -> Self {
        Self { default: gate(bundle("default")), cautious: gate(bundle("cautious")) }
    }

    fn is_recalled(&self, argv: &[String], remembered: &[Remembered]) -> bool {
        let decision = decide(&self.default, argv, remembered);
        matches!(&decision, Decision::Deny(denial) if denial.reason() == "not-that")
    }

    fn fate(&self, argv: &[String], remembered: &[Remembered]) -> Fate {
        if self.is_recalled(argv, remembered) {
            return Fate::Recalled;
        }
        match decide(&self.cautious, argv, &[]) {
            Decision::RequireApproval(_) | Decision::Deny(_) => Fate::Asked,
            Decision::Allow(_) | Decision::Narrow(_) => Fate::Missed,
        }
    }
}

#[test]
fn no_disguise_of_what_was_denied_goes_unnoticed() {
    let gates = Gates::new();
    let mut table = BTreeMap::<(&str, Kind), [usize; 3]>::new();
    let (mut missed, mut unread) = (Vec::new(), Vec::new());
    assert!(CLASSES.len() >= 8);
    for class in CLASSES {
        let remembered = denied(class);
        let all = disguises(class, SEED);
        let distinct: BTreeSet<&Vec<String>> = all.iter().map(|disguise| &disguise.argv).collect();
        assert!(distinct.len() >= 50 && distinct.len() == all.len(), "{}: {}", class.name, all.len());
        for Disguise { kind, argv } in &all {
            let fate = gates.fate(argv, &remembered);
            table.entry((class.name, *kind)).or_default()[fate as usize] += 1;
            let said = format!("{} {kind:?}: {argv:?}", class.name);
            match fate {
                Fate::Missed => missed.push(said),
                Fate::Asked if kind.is_open() => unread.push(said),
                _ => {}
            }
        }
    }
    report(&table);
    assert!(missed.is_empty(), "{} would go without a person: {missed:#?}", missed.len());
    assert!(unread.is_empty(), "{} open ones are not recalled: {unread:#?}", unread.len());
    let recalled: usize = table.values().map(|counts| counts[0]).sum();
    let all: usize = table.values().flatten().sum();
    assert!(recalled * 100 >= all * RECALLED_MIN, "only {recalled} of {all} are recalled");
}

/// Prints how many were recalled, asked about and missed, by class and kind.
#[allow(clippy::print_stdout, reason = "this is what the test has to report")]
fn report(table: &BTreeMap<(&str, Kind), [usize; 3]>) {
    println!("{:12}{}", "", Kind::ALL.map(|kind| format!("{kind:?}    ")).join(""));
    for class in CLASSES {
        let row = Kind::ALL.map(|kind| {
            let [recalled, asked, missed] = table.get(&(class.name, kind)).copied().unwrap_or_default();
            format!("{recalled}/{asked}/{missed}      ")
        });
        println!("{:12}{}", class.name, row.join(""));
    }
}

#[test]
fn no_neighbour_of_what_was_denied_is_caught() {
    let gates = Gates::new();
    let mut caught = Vec::new();
    for class in CLASSES {
        let remembered = denied(class);
        let all = neighbours(class, SEED);
        assert!(all.len() >= 50, "{}: {}", class.name, all.len());
        let is_caught = |near: &&Disguise| gates.is_recalled(&near.argv, &remembered);
        caught.extend(all.iter().filter(is_caught).map(|near| format!("{}: {:?}", class.name, near.argv)));
    }
    assert!(caught.is_empty(), "{} are caught: {caught:#?}", caught.len());
}

#[test]
fn what_a_file_tool_was_denied_no_command_gets_and_the_other_way_round() {
    let default = gate(bundle("default"));
    let hook = || WorkspacePath::parse(".git/hooks/pre-commit").expect("inside");
    let write = || Tool::Write { path: hook(), content: "x".to_owned() };
    let Decision::Deny(denial) = decide_tool(&default, write(), &[], &[]) else { panic!("it is denied") };
    assert_eq!(denial.reason(), "protected-path");
    let memory = memory_of(&denial);
    for line in [
        "cp tools/hook .git/hooks/pre-commit",
        "sh -c 'echo x > .git/hooks/pre-commit'",
        "sh -c 'cd .git/hooks && touch pre-commit'",
        "ln -sf ../../tools/hook .git/hooks/pre-commit",
        "env tee .git/hooks/pre-commit",
    ] {
        let decision = decide(&default, &words(line), &memory);
        assert!(matches!(&decision, Decision::Deny(denial) if denial.reason() == "protected-path"), "{line}");
    }
    for line in ["cat .git/hooks/pre-commit", "cp tools/hook docs/pre-commit", "touch pre-commit"] {
        let decision = decide(&default, &words(line), &memory);
        assert!(matches!(decision, Decision::Allow(_) | Decision::Narrow(_)), "{line}");
    }
    let forbid = r#"@id("not-docs") @reason("not-docs") @advice("leave it") @person_may_allow("true")
        forbid (principal, action == Action::"write-path", resource) when { resource is Path && resource in Path::"docs" };"#;
    let strict = gate(&format!("{}\n{forbid}", bundle("default")));
    let Decision::Deny(denial) = decide(&strict, &words("touch docs/page"), &[]) else {
        panic!("it is denied")
    };
    let page =
        Tool::Write { path: WorkspacePath::parse("docs/page").expect("inside"), content: String::new() };
    let decision = decide_tool(&default, page, &[], &memory_of(&denial));
    assert!(matches!(&decision, Decision::Deny(denial) if denial.reason() == "not-docs"));
}
