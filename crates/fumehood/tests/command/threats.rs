//! What `docs/threats.md` names and no other test shows.

use serde_json::Value;

use super::bench::{Answer, Bench};

/// Returns how each layer of the newest action was held.
fn held(bench: &Bench) -> Vec<(String, String)> {
    let document = bench.json(&["show", "--json"]);
    let rows = document["held"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (text(&row["layer"]), text(&row["level"]))).collect()
}

#[test]
fn every_way_to_start_something_goes_into_the_same_sandbox() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(0));
    let plain = held(&bench);
    assert!(plain.len() > 10, "{plain:?}");
    let first = bench.newest();
    for words in [
        &["run", "--new-task", "--", "true"][..],
        &["run", "--agent", "somebody", "--", "true"],
        &["run", "--", "sh", "-c", "true & wait"],
        &["shell", "--", "true"],
        &["reproduce", &first],
    ] {
        let answer = bench.run(words);
        assert_eq!(answer.code, Some(0), "{words:?}: {answer:?}");
        assert_eq!(held(&bench), plain, "{words:?}");
    }
}

#[test]
fn the_strictest_profile_is_the_one_on_the_record_by_whichever_way_it_was_set() {
    let named = |bench: &Bench, answer: &Answer| {
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let document = bench.json(&["show", "--json"]);
        document["decision"]["grant"]["profile"].as_str().unwrap_or_default().to_owned()
    };
    let by_flag = Bench::new();
    let answer = by_flag.run(&["run", "--profile", "strict", "--", "true"]);
    assert_eq!(named(&by_flag, &answer), "strict");
    let by_file = Bench::new();
    by_file.settings("default_profile = \"strict\"\n");
    let answer = by_file.run(&["run", "--", "true"]);
    assert_eq!(named(&by_file, &answer), "strict");
    let by_variable = Bench::new();
    let mut command = by_variable.command(&["run", "--", "true"]);
    let answer = Answer::of(command.env("FUMEHOOD_PROFILE", "strict").output().expect("it starts"));
    assert_eq!(named(&by_variable, &answer), "strict");
    // One that nobody knows is no other one.
    let answer = by_variable.run(&["run", "--profile", "strikt", "--", "touch", "made"]);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(!by_variable.run(&["run", "--", "ls"]).out.contains("made"));
}

#[test]
fn other_search_paths_and_copies_of_a_program_are_answered_alike() {
    let bench = Bench::forbidding(
        r#"forbid (principal, action == Action::"change-ref", resource)
            when { resource.repository != "." && resource.name == "main" };"#,
    );
    for words in [
        &["git", "push", "origin", "main"][..],
        &["/usr/bin/git", "push", "origin", "main"],
        &["env", "PATH=/usr/bin:/bin", "git", "push", "origin", "main"],
    ] {
        let answer = bench.run(&[&["run", "--"], words].concat());
        assert_eq!(answer.code, Some(126), "{words:?}: {answer:?}");
        assert_eq!(bench.json(&["show", "--json"])["decision"]["reason"], "not-that", "{words:?}");
    }
    // A copy has another name, and no way out either.
    bench.git(&["init", "--quiet", "--bare", "../bare.git"]);
    let bare = bench.path("bare.git");
    let copy = format!("cp \"$(command -v git)\" ./tool; ./tool push -q {} main", bare.display());
    let answer = bench.sh(&copy);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    assert!(!bare.join("refs/heads/main").exists());
}

#[test]
fn what_the_product_keeps_of_the_workspace_cannot_be_reached_from_inside() {
    let bench = Bench::new();
    assert_eq!(bench.sh("echo kept > kept").code, Some(0));
    let state = bench.path("state");
    for line in ["ls", "rm -rf", "find", "touch"] {
        let answer = bench.sh(&format!("{line} {}/* {0}", state.display()));
        assert!(!answer.out.contains("fumehood.db"), "{answer:?}");
    }
    assert!(state.join("fumehood.db").exists());
    assert_eq!(bench.sh("cat kept").out, "kept\n");
    assert_eq!(bench.run(&["audit", "verify"]).code, Some(0));
}
