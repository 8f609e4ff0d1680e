//! Roles from the settings, quorums, and several requests answered in one go.

use std::fs;

use serde_json::{Value, json};

use super::approvals::state;
use super::bench::{Answer, Bench, fits};
use super::terminal::Person;

impl Bench {
    /// Returns a bench whose rules want this quorum for every run of `touch`.
    pub(crate) fn wanting(quorum: &str) -> Self {
        let bench = Self::new();
        let rules = format!(
            r#"@id("all") @reason("all") permit (principal, action, resource);
               @id("asks") @reason("needs-approval") @advice("ask") @person_may_allow("true") @approval("{quorum}")
               forbid (principal, action == Action::"run", resource) when {{ context.program.name == "touch" }}
               unless {{ context.approvals.contains("{quorum}") }};"#
        );
        fs::write(bench.path("rules.cedar"), rules).expect("writes");
        bench.with_role("");
        bench
    }

    /// Writes settings with these lines at the end.
    fn with_role(&self, lines: &str) {
        self.settings(&format!("policy = \"{}\"\n{lines}", self.path("rules.cedar").display()));
    }

    fn wanted(&self, approval: &str) -> Value {
        self.dossier(approval)["wanted"][0].clone()
    }
}

/// Returns the lines that give the role of a release manager to the account of this test.
fn mine() -> String {
    format!("[role.release-manager]\npeople = [{}]\n", rustix::process::geteuid().as_raw())
}

/// What is not tried runs later, with the yes.
const LATER: [&str; 6] = ["run", "--env", "A=1", "--", "touch", "made"];

#[test]
fn a_yes_counts_in_a_role_that_the_settings_give() {
    let bench = Bench::wanting("release-manager");
    let approval = bench.asks(&["run", "--", "touch", "made"]);
    let wanted = bench.wanted(&approval);
    assert_eq!((&wanted["role"], &wanted["could_give"]), (&json!("release-manager"), &json!([])));
    let refused = bench.approve(&approval);
    assert!(refused.code == Some(125) && refused.out.contains("does not have that role"), "{refused:?}");
    assert_eq!((bench.standing(&approval).as_str(), bench.events("approval-refused")), ("open", 1));
    bench.with_role(&mine());
    assert_eq!(bench.wanted(&approval)["could_give"].as_array().map(Vec::len), Some(1));
    assert_eq!(state(&bench.approve(&approval)), "kept");
    let answers = &bench.dossier(&approval)["answers"];
    assert_eq!(answers[0]["roles"], json!(["release-manager"]));
    assert_eq!(answers[0]["account"], json!(rustix::process::geteuid().as_raw()));
}

#[test]
fn a_yes_is_worth_nothing_once_its_role_is_taken_away() {
    let bench = Bench::wanting("release-manager");
    bench.with_role(&mine());
    let approval = bench.asks(&LATER);
    assert_eq!(state(&bench.approve(&approval)), "given");
    bench.with_role("");
    let again = bench.asks(&LATER);
    assert_ne!(again, approval, "it is asked for again");
    assert_eq!(bench.standing(&approval), "void");
    bench.with_role(&mine());
    assert_eq!(state(&bench.approve(&again)), "given");
    assert_eq!(bench.run(&LATER).code, Some(0), "and with the role it runs");
}

#[test]
fn the_owner_is_no_second_person_and_nobody_else() {
    for (quorum, first, why) in [
        ("release-manager:not-owner", None, "is the owner"),
        ("person:not-owner", None, "is the owner"),
        ("release-manager:2", Some("open"), "has said yes already"),
    ] {
        let bench = Bench::wanting(quorum);
        bench.with_role(&mine());
        let approval = bench.asks(&LATER);
        if let Some(standing) = first {
            assert_eq!(state(&bench.approve(&approval)), standing, "{quorum}");
            assert_eq!(bench.wanted(&approval)["given_by"].as_array().map(Vec::len), Some(1));
        }
        let refused = bench.approve(&approval);
        assert!(refused.code == Some(125) && refused.out.contains(why), "{quorum}: {refused:?}");
        assert_eq!(bench.events("approval-refused"), 1);
        assert_eq!(bench.run(&LATER).code, Some(126), "{quorum}: it does not run");
        let shown = bench.run(&["approvals", "show", &approval]).out;
        assert!(shown.contains("needs a yes of"), "{shown}");
    }
}

#[test]
fn what_is_wrong_with_roles_is_said_by_config_check_and_gives_nobody_anything() {
    let bench = Bench::wanting("release-manager");
    for (lines, says) in [
        ("[role.release-manager]\npeople = [\"no-such-account-here\"]\n", "there is no account"),
        ("[role.release-manager]\ngroups = [\"no-such-group-here\"]\n", "there is no group"),
        ("[role.release-manager]\n", "nobody has the role"),
        ("[role.release-manager]\npeople = [4242]\n", "for you alone"),
    ] {
        bench.with_role(lines);
        let check = bench.run(&["config", "check", "--json"]);
        fits("config-check", &serde_json::from_str(&check.out).expect("JSON"));
        assert!(check.code == Some(1) && check.out.contains(says), "{lines}: {check:?}");
        let approval = bench.asks(&["run", "--", "touch", "made"]);
        assert_eq!(bench.approve(&approval).code, Some(125), "{lines}");
    }
    bench.with_role(&mine());
    assert_eq!(bench.run(&["config", "check"]).code, Some(0));
    bench.with_role("[role.person]\npeople = [\"root\"]\n");
    let check = bench.run(&["config", "check"]);
    assert!(check.code == Some(1) && check.out.contains("cannot be the name of a role"), "{check:?}");
}

/// Asks for three things in one task: two that were tried on the same layers, and one that got its no.
fn three(bench: &Bench) -> [String; 3] {
    let denied = bench.asks(&["run", "--", "touch", "three"]);
    assert_eq!(bench.run(&["approvals", "deny", &denied]).code, Some(0));
    let [one, two] = ["one", "two"].map(|name| bench.asks(&["run", "--", "touch", name]));
    [one, two, denied]
}

#[test]
fn in_a_batch_each_request_gets_its_own_answer_and_none_is_hidden() {
    let bench = Bench::cautious();
    let [one, two, denied] = three(&bench);
    let answer = bench.run(&["approvals", "approve", &denied, &one, &two, &one, "--yes", "--json"]);
    assert_eq!(answer.code, Some(1), "not all of them count: {answer:?}");
    let document: Value = serde_json::from_str(&answer.out).expect("JSON");
    fits("approval-batch", &document);
    let rows = document["answers"].as_array().expect("a list");
    assert_eq!(rows.len(), 3, "one answer for each: {document:#}");
    assert!(rows[0]["error"].as_str().is_some_and(|why| why.contains("is refused already")), "{document:#}");
    assert_eq!(rows[1]["answer"]["state"], "kept");
    assert_eq!(rows[2]["answer"]["state"], "void", "the task went on: {document:#}");
    assert!(rows[2]["answer"]["why"].as_str().is_some_and(|why| why.contains("layers")), "{document:#}");
    let listed = bench.run(&["run", "--quiet", "--", "ls"]).out;
    assert!(listed.contains("one") && !listed.contains("two"), "{listed}");
    assert_eq!(bench.events("approval-answered"), 2, "the no, and one yes");
    let first = bench.run(&["approvals", "approve", &denied, &two, "--yes"]);
    assert!(first.code == Some(1) && first.out.matches("got no yes").count() == 2, "{first:?}");
}

#[test]
fn everything_of_a_task_is_said_yes_to_only_at_a_terminal_that_lists_it() {
    let bench = Bench::cautious();
    let [one, two, denied] = three(&bench);
    let task = bench.dossier(&one)["approval"]["task"].as_str().expect("an id").to_owned();
    let blind = bench.run(&["approvals", "approve", "--all-of", &task]);
    assert!(blind.code == Some(125) && blind.err.contains("no terminal"), "{blind:?}");
    let with_yes = bench.run(&["approvals", "approve", "--all-of", &task, "--yes"]);
    assert_ne!(with_yes.code, Some(0), "{with_yes:?}");
    assert_eq!((bench.standing(&one).as_str(), bench.standing(&two).as_str()), ("open", "open"));
    let asks = || Person::at_terminal(bench.command(&["approvals", "approve", "--all-of", &task]));
    let mut person = asks();
    person.answers("Say yes to exactly these 2?", "n");
    assert_eq!(person.leaves().0, Some(1));
    assert_eq!(bench.events("approval-answered"), 1, "the no alone");
    let mut person = asks();
    for listed in [&one, &two] {
        person.sees(&format!("fumehood approvals show {listed}"));
    }
    person.answers("Say yes to exactly these 2?", "y");
    let (code, seen) = person.leaves();
    assert!(code == Some(1) && seen.contains("has its yes") && seen.contains("is void"), "{code:?} {seen}");
    assert!(!seen.contains(&denied), "it was answered before");
    let nothing: Answer = bench.run(&["approvals", "approve", "--all-of", &task]);
    assert!(nothing.err.contains("no request of this task waits"), "{nothing:?}");
}
