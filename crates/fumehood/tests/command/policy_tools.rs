//! The tools around policy, through the real program.

use std::fs;

use super::bench::{Bench, fits};

/// Rules that let everything pass, and what a test adds to them.
fn rules(bench: &Bench, more: &str) -> String {
    let path = bench.path("rules.cedar");
    let all = r#"@id("all") @reason("all") permit (principal, action, resource);"#;
    fs::write(&path, format!("{all}\n{more}\n")).expect("writes");
    path.to_string_lossy().into_owned()
}

const NO_PUSH: &str = r#"
    @id("no-push") @reason("no-push") @advice("leave the branch to a person") @person_may_allow("false")
    @deny_example("git push origin main")
    @allow_example("git status")
    forbid (principal, action == Action::"change-ref", resource);"#;

#[test]
fn a_check_finds_examples_that_do_not_hold_and_rules_that_decide_nothing() {
    let bench = Bench::new();
    let file = rules(&bench, NO_PUSH);
    let good = bench.run(&["policy", "check", &file]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.out.contains("2 rules, 2 examples hold"), "{good:?}");

    let file =
        rules(&bench, &NO_PUSH.replace("git status", "git push x y").replace("main\")", "main\\n ls\")"));
    let bad = bench.run(&["policy", "check", &file]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.out.contains("the example `git push x y` is expected to be answered `allow`"), "{bad:?}");
    assert!(bad.out.contains("the example `ls` is expected to be answered `deny`"), "{bad:?}");

    let dead =
        r#"@id("more") @reason("more") permit (principal is User, action == Action::"run", resource);"#;
    let file = rules(&bench, &format!("{NO_PUSH}\n{dead}"));
    let found = bench.run(&["policy", "check", &file, "--json"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    let document: serde_json::Value = serde_json::from_str(&found.out).expect("is JSON");
    fits("policy-check", &document);
    assert_eq!(document["findings"][0]["kind"], "dead-rule", "{document:#}");
    assert!(document["findings"][0]["message"].as_str().is_some_and(|text| text.contains("rule 3 (`more`)")));
}

#[test]
fn the_rules_in_force_and_those_of_a_bundle_can_be_checked_by_name() {
    let bench = Bench::new();
    let bundle = bench.run(&["policy", "check", "--bundle", "cautious"]);
    assert_eq!(bundle.code, Some(0), "{bundle:?}");
    assert!(bundle.out.contains("bundle `cautious`"), "{bundle:?}");
    let file = rules(
        &bench,
        &NO_PUSH.replace("deny_example", "allow_example").replacen("@allow_example(\"git status\")", "", 1),
    );
    bench.settings(&format!("policy = \"{file}\"\n"));
    let in_force = bench.run(&["policy", "check"]);
    assert_eq!(in_force.code, Some(1), "{in_force:?}");
    assert!(
        in_force.out.contains("policy of the settings") && in_force.out.contains("`allow`"),
        "{in_force:?}"
    );
    assert_eq!(bench.sh("true").code, Some(0), "a run does not decide examples");
}

#[test]
fn a_request_says_what_it_asks_for_beside_a_command() {
    let bench = Bench::new();
    for (request, word, reason) in [
        (r#"{"read": "src/code"}"#, "allow", "inside-the-sandbox"),
        (r#"{"list": "."}"#, "allow", "inside-the-sandbox"),
        (r#"{"write": ".git/hooks/pre-commit"}"#, "deny", "protected-path"),
        (r#"{"write": "src/code", "classes": {"src/code": ["hooks"]}}"#, "deny", "protected-path"),
        (r#"{"argv": ["ls"], "network": "host", "as": "user:ada"}"#, "deny", "network-denied"),
        (r#"{"argv": ["ls"], "network": "host", "as": "agent"}"#, "allow", "network-denied"),
        (
            r#"{"argv": ["ls"], "limits": {"memory": 99999999999}, "as": "user"}"#,
            "deny",
            "limits-wider-than-profile",
        ),
        (r#"{"argv": ["ls"], "credentials": [".env"]}"#, "deny", "credential-hidden"),
        (r#"{"apply": {"mode": "ask"}, "as": "user"}"#, "ask", "asked-to-ask"),
        (
            r#"{"apply": {"mode": "ask"}, "as": "user", "approvals": ["person"]}"#,
            "allow",
            "asked-by-a-person",
        ),
        (
            r#"{"apply": {"mode": "clean", "kinds": ["device"]}, "as": "user"}"#,
            "deny",
            "not-an-ordinary-file",
        ),
    ] {
        let answer = bench.ask(&["policy", "decide", "--bundle", "default", "--stdin"], request);
        assert!(answer.out.starts_with(word) && answer.out.contains(reason), "{request}: {answer:?}");
    }
    for (request, why) in [
        (r#"{"read": "a", "argv": ["ls"]}"#, "either `argv` or `shell`"),
        (r#"{"apply": {"mode": "ask"}, "argv": ["ls"]}"#, "either `apply`"),
        (r#"{"argv": ["ls"], "as": "root"}"#, "nobody is called `root`"),
        (r#"{"argv": ["ls"], "limits": {"memroy": 1}}"#, "unknown field"),
        (r#"{"apply": {"mode": "force"}}"#, "unknown variant"),
    ] {
        let answer = bench.ask(&["policy", "decide", "--stdin"], request);
        assert_eq!(answer.code, Some(125), "{request}: {answer:?}");
        assert!(answer.err.contains(why), "{request}: {answer:?}");
    }
}

#[test]
fn the_committed_table_passes_as_it_is() {
    let bench = Bench::new();
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/decisions.jsonl");
    let answer = bench.run(&["policy", "test", "--bundle", "cautious", table]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.out.contains("0 otherwise, by bundle `cautious`"), "{answer:?}");
    let loose = bench.run(&["policy", "test", "--bundle", "default", table]);
    assert_eq!(loose.code, Some(1), "{loose:?}");
    assert!(loose.out.contains("is answered `allow`, and not `ask` or `deny`"), "{loose:?}");
}

#[test]
fn a_table_names_each_row_that_is_answered_otherwise() {
    let bench = Bench::new();
    let table = bench.path("table.toml");
    let rows = r#"
        [[row]]
        id = "R-1"
        expect = "deny"
        reason = "network-denied"
        rules = ["no-network"]
        argv = ["ls"]
        network = "host"
        as = "user"

        [[row]]
        id = "R-2"
        why = "the reason is another one"
        expect = "deny"
        reason = "protected-path"
        argv = ["ls"]
        credentials = [".env"]

        [[row]]
        expect = "allow"
        rules = ["no-such-rule"]
        shell = "ls | wc"
    "#;
    fs::write(&table, rows).expect("writes");
    let answer = bench.run(&["policy", "test", "--bundle", "default", &table.to_string_lossy(), "--json"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let document: serde_json::Value = serde_json::from_str(&answer.out).expect("is JSON");
    fits("policy-test", &document);
    assert_eq!(document["rows"], 3);
    let failures = document["failures"].as_array().expect("a list");
    assert_eq!(failures.len(), 2, "{document:#}");
    assert_eq!(failures[0]["row"], "R-2: the reason is another one");
    assert_eq!(failures[0]["why"], "has the reason `credential-hidden`, and not `protected-path`");
    assert!(failures[1]["place"].as_str().is_some_and(|place| place.ends_with("table.toml, row 3")));
    assert_eq!(failures[1]["why"], "is not decided by the rule `no-such-rule`");
}

#[test]
fn a_row_that_is_none_fails_instead_of_passing() {
    let bench = Bench::new();
    for (rows, why) in [
        ("", "holds no row"),
        (r#"{"argv": ["ls"]}"#, "there is no `expect`"),
        (r#"{"expect": "yes", "argv": ["ls"]}"#, "unknown variant `yes`"),
        (r#"{"expect": "allow", "argv": ["ls"], "evn": {}}"#, "unknown field `evn`"),
        (r#"{"expect": "allow"}"#, "either `argv` or `shell`"),
        ("{\"expect\": \"allow\", \"argv\": [\"ls\"]}\nnonsense", "table.jsonl:2"),
        (
            r#"{"expect": "deny", "question": {"principal": "x", "action": "y", "resource": "z", "context": {}}}"#,
            "table.jsonl:1",
        ),
    ] {
        let table = bench.path("table.jsonl");
        fs::write(&table, rows).expect("writes");
        let answer = bench.run(&["policy", "test", &table.to_string_lossy()]);
        assert_eq!(answer.code, Some(125), "{rows}: {answer:?}");
        assert!(answer.err.contains(why), "{rows}: {answer:?}");
    }
}

#[test]
fn an_explanation_names_questions_rules_facts_and_what_lifts_them() {
    let bench = Bench::new();
    let words = ["policy", "explain", "--bundle", "cautious", "--", "git", "push", "origin", "main"];
    let asked = bench.run(&words);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    for part in [
        "ask\n",
        "may this run `git`?",
        "`reads-only-unless-approved` (held-to-reading, line",
        "it looks at approvals = [], request.workspace = \"read-write\"",
        "a yes of `person` lifts `asks-for-more-than-reading`",
        "a smaller grant (read-only) lifts `reads-only-unless-approved`",
    ] {
        assert!(asked.out.contains(part), "{part}: {}", asked.out);
    }
    let denied = bench.ask(
        &["policy", "explain", "--bundle", "default", "--stdin", "--json"],
        r#"{"apply": {"mode": "always", "classes": ["git-internals"]}, "as": "user"}"#,
    );
    let document: serde_json::Value = serde_json::from_str(&denied.out).expect("is JSON");
    fits("policy-explain", &document);
    assert_eq!(document["decision"]["answer"], "deny");
    let rules = document["questions"][0]["layers"][0]["rules"].as_array().expect("a list");
    let internals = rules.iter().find(|rule| rule["rule"] == "apply-no-git-internals").expect("is there");
    assert_eq!(internals["facts"]["classes"], serde_json::json!(["git-internals"]));
    let lifts = document["lifts"].to_string();
    assert!(lifts.contains("no person may change this"), "{lifts}");
}

#[test]
fn an_action_of_the_record_is_explained_with_the_rules_of_now() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["run", "--", "ls"]).code, Some(0));
    let action = bench.newest();
    let words = ["policy", "explain", "--action", &action, "--bundle", "cautious", "--json"];
    let document = bench.json(&words);
    fits("policy-explain", &document);
    assert_eq!(document["recorded"]["decision"], "allow");
    assert_eq!(document["decision"]["answer"], "allow");
    assert_eq!(document["decision"]["narrowed"][0], "it cannot write the workspace");
    let missing = bench.run(&["policy", "explain", "--action", "act-aaaaaaaaaaaaaaaa"]);
    assert_eq!(missing.code, Some(125), "{missing:?}");
}

/// Starts the program with the solver of this machine, which the tests ask for.
fn with_solver(bench: &Bench, words: &[&str]) -> super::bench::Answer {
    super::bench::Answer::of(bench.command(words).output().expect("it starts"))
}

#[test]
fn the_promises_of_the_shipped_bundles_are_proved() {
    let bench = Bench::new();
    for bundle in ["default", "cautious", "level-1", "level-6"] {
        let answer = with_solver(&bench, &["policy", "prove", "--bundle", bundle, "--json"]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let document: serde_json::Value = serde_json::from_str(&answer.out).expect("is JSON");
        fits("policy-prove", &document);
        assert!(
            document["solver"].as_str().is_some_and(|solver| solver.starts_with("cvc5 ")),
            "{document:#}"
        );
        let claims = document["claims"].as_array().expect("a list");
        assert!(claims.len() >= 12 && claims.iter().all(|row| row["verdict"] == "proved"), "{document:#}");
        assert!(claims.iter().any(|row| row["claim"] == "never-errors"));
    }
}

#[test]
fn without_a_solver_nothing_is_proved_and_nothing_says_so() {
    let bench = Bench::new();
    let mut command = bench.command(&["policy", "prove", "--bundle", "default"]);
    let answer =
        super::bench::Answer::of(command.env("PATH", bench.path("home")).output().expect("it starts"));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.out.contains("not proved") && answer.out.contains("there is no solver"), "{answer:?}");
    assert!(answer.out.contains("\n0 of ") && !answer.out.contains("\nproved "), "{answer:?}");
    // Something else under its name, and one that answers nothing, are no solver either.
    for (solver, why) in [("/bin/true", "does not say that it is cvc5"), ("cvc5", "give the path in full")] {
        let mut command = bench.command(&["policy", "prove", "--bundle", "default"]);
        let answer = super::bench::Answer::of(command.env("CVC5", solver).output().expect("it starts"));
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.out.contains(why) && answer.out.contains("\n0 of "), "{answer:?}");
    }
    let mut command = bench.command(&["policy", "diff", "default", "cautious"]);
    let answer = super::bench::Answer::of(command.env("CVC5", "/bin/true").output().expect("it starts"));
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.err.contains("nothing is proved"), "{answer:?}");
}

#[test]
fn what_refutes_a_claim_becomes_a_row_that_fails_until_the_hole_is_closed() {
    let bench = Bench::new();
    let shipped = bench.run(&["policy", "show", "default"]).out;
    let closed = bench.path("closed.cedar");
    let open = bench.path("open.cedar");
    fs::write(&closed, &shipped).expect("writes");
    // The hole: the rule that keeps device files inside is gone.
    fs::write(
        &open,
        shipped.replace(
            r#"unless { ["file", "directory", "symlink"].containsAll(context.kinds) };"#,
            "when { false || context.kinds.contains(\"socket\") };",
        ),
    )
    .expect("writes");
    let table = bench.path("found.jsonl");
    let (open, closed, table) = (open.to_string_lossy(), closed.to_string_lossy(), table.to_string_lossy());
    let answer = with_solver(&bench, &["policy", "prove", "--file", &open, "--save", &table]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.out.contains("refuted"), "{answer:?}");
    assert!(answer.out.contains("but allowed is: User::"), "{answer:?}");
    let failing = bench.run(&["policy", "test", "--file", &open, &table]);
    assert_eq!(failing.code, Some(1), "{failing:?}");
    assert!(failing.out.contains("only-ordinary-files-leave"), "{failing:?}");
    let passing = bench.run(&["policy", "test", "--file", &closed, &table]);
    assert_eq!(passing.code, Some(0), "{passing:?}");

    let wider = with_solver(&bench, &["policy", "diff", &closed, &open]);
    assert_eq!(wider.code, Some(1), "{wider:?}");
    assert!(
        wider.out.contains("wider     apply") && wider.out.contains("alike: change-control"),
        "{wider:?}"
    );
    let narrower = with_solver(&bench, &["policy", "diff", &open, &closed, "--json"]);
    assert_eq!(narrower.code, Some(0), "{narrower:?}");
    let document: serde_json::Value = serde_json::from_str(&narrower.out).expect("is JSON");
    fits("policy-diff", &document);
    let apply = document["rows"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|row| row["action"] == "apply")
        .expect("is there");
    assert_eq!(apply["wider"]["found"], "nothing");
    assert_eq!(apply["narrower"]["found"], "something", "{document:#}");
}

#[test]
fn a_claim_of_ones_own_is_proved_or_refuted_as_well() {
    let bench = Bench::new();
    let claims = bench.path("never.cedar");
    let text = r#"
        @id("nobody-runs") @says("nothing runs at all")
        forbid (principal, action == Action::"run", resource);
        @id("no-terminal-for-agents") @says("no agent has a terminal")
        forbid (principal is Agent, action == Action::"use-terminal", resource);"#;
    fs::write(&claims, text).expect("writes");
    let claims = claims.to_string_lossy();
    let words = ["policy", "prove", "--bundle", "default", "--claim", "limits-stay", "--claims", &claims];
    let answer = with_solver(&bench, &words);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        answer.out.contains("refuted     nobody-runs") && answer.out.contains("2 of 3 claims"),
        "{answer:?}"
    );
    let missing = bench.run(&["policy", "prove", "--claim", "no-such-claim"]);
    assert_eq!(missing.code, Some(125), "{missing:?}");
    assert!(missing.err.contains("there is no claim `no-such-claim`"), "{missing:?}");
}

#[test]
fn the_record_is_decided_again_by_other_rules() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["run", "--", "ls"]).code, Some(0));
    assert_eq!(bench.sh("touch made").code, Some(0));
    assert_eq!(bench.run(&["run", "--", "cat", "README"]).code, Some(0));
    let same = bench.run(&["policy", "replay", "default"]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(
        same.out.contains("3 requests decided again by bundle `default`: 3 alike, 0 otherwise"),
        "{same:?}"
    );
    let other = bench.run(&["policy", "replay", "cautious", "--json"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    let document: serde_json::Value = serde_json::from_str(&other.out).expect("is JSON");
    fits("policy-replay", &document);
    let changes = document["changes"].as_array().expect("a list");
    let of =
        |to: &str| changes.iter().find(|change| change["to"] == to).expect("is there")["actions"].clone();
    assert_eq!((of("narrow"), of("require-approval")), (2.into(), 1.into()), "{document:#}");
    let later = bench.run(&["policy", "replay", "cautious", "--since", "2200-01-01"]);
    assert_eq!(later.code, Some(0), "{later:?}");
    assert!(later.out.contains("no request of the record was decided again"), "{later:?}");
    let joined = bench.run(&["policy", "replay", "cautious", "--since", "yesterday"]);
    assert_eq!(joined.code, Some(125), "{joined:?}");
    assert!(joined.err.contains("write for example `12h`"), "{joined:?}");
}

#[test]
fn a_suggestion_allows_the_denial_and_says_what_else_and_installs_nothing() {
    let bench = Bench::new();
    let deny = r#"@id("no-cp") @reason("no-cp") @advice("do not") @person_may_allow("true")
        forbid (principal, action == Action::"run-program", resource) when { resource.name == "cp" };"#;
    let file = rules(&bench, deny);
    bench.settings(&format!("policy = \"{file}\"\n"));
    for target in ["a", "b"] {
        assert_eq!(bench.run(&["run", "--new-task", "--", "cp", "README", target]).code, Some(126));
    }
    let before = fs::read_to_string(&file).expect("is there");
    let words = ["policy", "suggest", "--json"];
    let document = bench.json(&words);
    fits("policy-suggest", &document);
    assert_eq!(document["suggested"][0]["replaces"], "no-cp", "{document:#}");
    let text = document["suggested"][0]["text"].as_str().expect("a text");
    assert!(
        text.contains("unless { principal == User::") && text.contains("resource == Program::\"cp\""),
        "{text}"
    );
    assert_eq!(document["also_allowed"].as_array().map(Vec::len), Some(1), "{document:#}");
    assert_eq!(fs::read_to_string(&file).expect("is there"), before, "nothing is installed");
    // What it prints is what allows it.
    let all = r#"@id("all") @reason("all") permit (principal, action, resource);"#;
    fs::write(&file, format!("{all}\n{text}\n")).expect("writes");
    assert_eq!(bench.run(&["run", "--new-task", "--", "cp", "README", "c"]).code, Some(0));

    let firm = rules(&bench, &deny.replace(r#"@person_may_allow("true")"#, r#"@person_may_allow("false")"#));
    assert_eq!(bench.run(&["run", "--new-task", "--", "cp", "README", "d"]).code, Some(126));
    let refused = bench.run(&["policy", "suggest", "--file", &firm]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains("no person may change this"), "{refused:?}");
    assert!(!refused.out.contains("unless"), "{refused:?}");
}
