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
