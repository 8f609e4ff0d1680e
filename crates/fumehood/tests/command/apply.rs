//! `apply` and `run --apply`: what reaches the host's directory, and what does not.

use std::fs;

use super::bench::{Bench, fits};

#[test]
fn a_task_is_applied_in_full_and_closed() {
    let bench = Bench::new();
    bench.sh(
        "sed -i s/two/TWO/ README; mkdir new; echo n > new/file; rm -r docs; mkdir build; echo o > build/o",
    );
    let look = bench.json(&["apply", "--dry-run", "--json"]);
    fits("apply", &look);
    assert_eq!(bench.read("README"), "one\ntwo\nthree\n", "it was only looked at");
    let done = bench.json(&["apply", "--json"]);
    fits("apply", &done);
    assert_eq!(
        (&done["state"], done["held_back"].as_array().map(Vec::len)),
        (&"applied".into(), Some(0)),
        "{done:#}"
    );
    assert_eq!(bench.read("README"), "one\nTWO\nthree\n");
    assert!(bench.file("new/file").exists() && !bench.file("docs").exists());
    assert!(!bench.file("build").exists(), "git ignores it");
    let closed = bench.run(&["apply"]);
    assert!(closed.code == Some(125) && closed.err.contains("no open task"), "{closed:?}");
}

#[test]
fn what_is_protected_waits_and_the_rest_goes() {
    let bench = Bench::new();
    let line = "echo x > plain; mkdir -p .github/workflows; echo ci > .github/workflows/ci.yml; echo h > .git/hooks/pre-commit";
    let answer = bench.run(&["run", "--apply", "clean", "--", "sh", "-c", line]);
    assert_eq!(answer.code, Some(0), "the command's own: {answer:?}");
    assert!(bench.file("plain").exists() && !bench.file(".github").exists());
    assert!(!bench.file(".git/hooks/pre-commit").exists());
    assert!(answer.err.contains("held back") && answer.err.contains(".github"), "{answer:?}");
    let named = bench.run(&["apply", "--protected", ".github/workflows/ci.yml"]);
    assert_eq!(bench.read(".github/workflows/ci.yml"), "ci\n", "{named:?}");
    assert!(!bench.file(".git/hooks/pre-commit").exists(), "git's own files are never applied");
}

#[test]
fn an_edit_of_the_host_is_never_overwritten() {
    let bench = Bench::new();
    bench.sh("echo theirs > README; echo theirs > docs/page");
    bench.write("README", "ours\n");
    let answer = bench.run(&["apply"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!((bench.read("README").as_str(), bench.read("docs/page").as_str()), ("ours\n", "theirs\n"));
    let beside: Vec<_> = fs::read_dir(bench.path("ws"))
        .expect("is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("README.fumehood-task-"))
        .collect();
    assert_eq!(beside.len(), 1, "both are kept: {answer:?}");
    assert_eq!(bench.read(&beside[0]), "theirs\n");
}

#[test]
fn a_part_of_a_task_can_be_applied() {
    let bench = Bench::new();
    bench.sh("echo a > src/a; echo b > docs/b");
    assert_eq!(bench.run(&["apply", "--", "src"]).code, Some(0));
    assert!(bench.file("src/a").exists() && !bench.file("docs/b").exists());
    assert_eq!(
        bench.json(&["task", "list", "--json"])["tasks"][0]["state"],
        "open",
        "the rest is still there"
    );
    assert_eq!(bench.run(&["apply"]).code, Some(0));
    assert!(bench.file("docs/b").exists());
}

#[test]
fn nothing_is_applied_unless_it_was_asked_for() {
    let bench = Bench::new();
    for mode in [&[][..], &["--apply", "never"], &["--apply", "ask"]] {
        let words = [&["run"], mode, &["--", "sh", "-c", "echo x > made"]].concat();
        bench.run(&words);
        assert!(!bench.file("made").exists(), "{mode:?}: there is no terminal");
    }
    bench.run(&["run", "--apply", "always", "--", "true"]);
    assert!(!bench.file("made").exists(), "the run itself changed nothing");
    bench.run(&["run", "--apply", "always", "--", "sh", "-c", "echo y > also"]);
    assert!(bench.file("made").exists() && bench.file("also").exists());
}

#[test]
fn what_was_taken_back_can_be_applied_again_and_an_edit_since_is_still_seen() {
    let bench = Bench::new();
    bench.sh("echo theirs > README; rm src/code; rm -r docs");
    for round in ["first", "second", "third"] {
        assert_eq!(bench.run(&["apply"]).code, Some(0), "{round}");
        assert_eq!(
            (bench.read("README").as_str(), bench.file("docs").exists()),
            ("theirs\n", false),
            "{round}"
        );
        assert_eq!(bench.run(&["undo", "--applied"]).code, Some(0), "{round}");
        assert_eq!(
            (bench.read("README").as_str(), bench.read("src/code").as_str()),
            ("one\ntwo\nthree\n", "code\n")
        );
    }
    bench.write("README", "ours\n");
    assert_eq!(bench.run(&["apply"]).code, Some(1));
    assert_eq!(bench.read("README"), "ours\n");
}

#[test]
fn what_was_applied_is_taken_back_where_nobody_changed_it_since() {
    let bench = Bench::new();
    bench.sh("echo theirs > README; echo theirs > src/code; echo made > made; rm docs/page");
    assert_eq!(bench.run(&["apply"]).code, Some(0));
    bench.write("src/code", "edited since\n");
    let back = bench.run(&["undo", "--applied", "--json"]);
    assert_eq!(back.code, Some(1), "{back:?}");
    let document = serde_json::from_str(&back.out).expect("is JSON");
    fits("apply", &document);
    assert_eq!(
        (bench.read("README").as_str(), bench.read("docs/page").as_str()),
        ("one\ntwo\nthree\n", "page\n")
    );
    assert_eq!(bench.read("src/code"), "edited since\n");
    assert!(!bench.file("made").exists());
    assert_eq!(bench.json(&["task", "list", "--json"])["tasks"][0]["state"], "open");
    assert_eq!(bench.sh("cat README").out, "theirs\n", "the layers are still there");
    let again = bench.run(&["undo", "--applied"]);
    assert!(
        again.code == Some(125) && again.err.contains("nothing is applied"),
        "taken back already: {again:?}"
    );
    assert_eq!(bench.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn commits_made_inside_come_as_a_branch_and_nothing_else_of_git_does() {
    let bench = Bench::new();
    let commit = "git config user.name t; git config user.email t@example.org; git config core.pager evil; \
                  echo more >> README; git commit -qam one; echo x > src/new; git add .; git commit -qm two; \
                  git branch other; echo '#!/bin/sh' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge";
    assert_eq!(bench.sh(commit).code, Some(0));
    let head = bench.sh("git rev-parse HEAD").out.trim().to_owned();

    let plain = bench.run(&["apply"]);
    assert_eq!(bench.read("README"), "one\ntwo\nthree\nmore\n");
    assert!(plain.err.contains("apply --commits"), "what is left inside is said: {plain:?}");
    assert_eq!(
        bench.json(&["task", "list", "--json"])["tasks"][0]["state"],
        "open",
        "the commits are still there"
    );

    let done = bench.json(&["apply", "--commits", "--json"]);
    fits("apply", &done);
    let task = done["task"].as_str().expect("a task");
    let branch = format!("fumehood/{task}");
    assert_eq!(done["commits"]["number"], 2, "{done:#}");
    assert_eq!(
        (&done["commits"]["branch"], &done["commits"]["commit"]),
        (&branch.clone().into(), &head.clone().into())
    );
    assert_eq!(bench.git_says(&["rev-parse", &branch]), head);
    bench.git(&["fsck", "--strict"]);
    assert_eq!(bench.git_says(&["branch", "--list", "other"]), "", "only the current branch comes");
    assert!(!bench.file(".git/hooks/post-merge").exists());
    assert!(!bench.read(".git/config").contains("evil"));
    assert_eq!(bench.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn commits_are_left_behind_when_nobody_wants_them() {
    let bench = Bench::new();
    bench.sh("git -c user.name=t -c user.email=t@e commit -q --allow-empty -m one; echo y > src/y");
    assert_eq!(bench.run(&["apply", "--no-commits"]).code, Some(0));
    assert_eq!(bench.json(&["task", "list", "--all", "--json"])["tasks"][0]["state"], "applied");
    assert_eq!(bench.git_says(&["branch", "--list", "fumehood/*"]), "");
}

#[test]
fn what_git_keeps_of_its_own_is_nothing_to_decide_about() {
    let bench = Bench::new();
    bench.sh("echo z > src/z; git add src/z");
    let done = bench.json(&["apply", "--json"]);
    assert_eq!((&done["state"], &done["held_back"]), (&"applied".into(), &serde_json::json!([])), "{done:#}");
}

#[test]
fn a_secret_that_came_up_in_a_run_is_covered_afterwards_shown_nowhere_and_waits_for_a_person() {
    let bench = Bench::new();
    // Put together inside, so that no command line holds one.
    let halves = |left, right| (format!("{left}{right}"), format!("printf '%s%s\\n' {left} {right}"));
    let ((password, print_password), (key, print_key)) =
        (halves("q8Zr2LxP", "0vN5tYc7"), halves("AKIAQ3EG", "WZ7LRKTN5VJB"));
    let line = format!(
        "echo PORT=1 > .env.example; echo DATABASE_PASSWORD=$({print_password}) > .env; mkdir out; \
         {print_key} > out/notes; echo plain > plain"
    );
    assert_eq!(bench.sh(&line).code, Some(0));
    let held = bench.json(&["show", "--json"])["inspection"]["held_back"].clone();
    let held: Vec<_> = held.as_array().expect("a list").iter().collect();
    let paths: Vec<_> = held.iter().map(|row| row["path"].as_str().expect("a path")).collect();
    assert_eq!(paths, [".env", "out/notes"]);
    assert!(held.iter().all(|row| row["reason"] == "credential"), "{held:?}");

    let later = bench.sh("cat .env out/notes; cat .env.example plain; echo x > .env; cat README");
    assert_eq!(later.out, "PORT=1\nplain\none\ntwo\nthree\n", "{later:?}");
    assert_eq!(
        bench.json(&["show", "--json"])["sandbox"]["masked"],
        serde_json::json!([".env", "out/notes"])
    );
    for words in
        [&["diff"][..], &["diff", "--patch"], &["diff", "--json"], &["show", "--full"], &["audit", "show"]]
    {
        let answer = bench.run(words);
        let shown = format!("{}{}", answer.out, answer.err);
        assert!(!shown.contains(&password) && !shown.contains(&key), "{words:?}");
    }
    assert!(bench.run(&["diff"]).out.contains("it holds a credential, which is not shown"));

    let applied = bench.run(&["apply"]);
    assert!(applied.code == Some(1) && applied.out.contains("a credential"), "{applied:?}");
    assert!(
        bench.file("plain").exists() && !bench.file(".env").exists() && !bench.file("out/notes").exists()
    );
    let named = bench.run(&["apply", "--protected", "out/notes"]);
    assert_eq!(bench.read("out/notes"), format!("{key}\n"), "{named:?}");
    assert!(!bench.file(".env").exists());

    assert_eq!(bench.run(&["undo"]).code, Some(0));
    bench.sh("test ! -e .env && echo API=none > .env");
    assert_eq!(bench.sh("cat .env").out, "API=none\n", "what was undone covers nothing");
}

#[test]
fn what_is_hidden_stays_and_why_says_so() {
    let bench = Bench::new();
    fs::create_dir(bench.file("conf")).expect("makes a directory");
    bench.write("conf/.env", "DATABASE_PASSWORD=q8Zr2LxP0vN5tYc7\n");
    bench.write("conf/plain", "plain\n");
    let removed = bench.sh("rm -r conf");
    assert!(removed.code == Some(1) && removed.err.contains("Device or resource busy"), "{removed:?}");
    let why = bench.json(&["why", "--json"]);
    fits("why", &why);
    let cause = &why["causes"][0];
    assert_eq!((&cause["code"], &cause["layer"]), (&"masked".into(), &"masks".into()), "{why:#}");
    assert!(cause["sentence"].as_str().is_some_and(|text| text.contains("conf/.env")), "{why:#}");
    assert!(cause["next"].to_string().contains("Device or resource busy"), "{why:#}");
    assert!(bench.run(&["why"]).out.contains("its directory cannot be removed"));
    assert_eq!(bench.sh("mv conf/.env elsewhere").code, Some(1), "nor renamed");
    assert_eq!(bench.read("conf/.env"), "DATABASE_PASSWORD=q8Zr2LxP0vN5tYc7\n");
}

#[test]
fn what_a_build_made_can_be_removed_although_it_holds_test_keys() {
    let bench = Bench::new();
    fs::create_dir_all(bench.file("node_modules/tls/test")).expect("makes a directory");
    let key =
        format!("-----BEGIN {0}-----\n{1}\n-----END {0}-----\n", "PRIVATE KEY", "Zm9vYmFyQmF6UXV4".repeat(8));
    bench.write("node_modules/tls/test/key.pem", &key);
    let make = "openssl genpkey -algorithm ed25519 > key.pem && mkdir -p build/t && cp key.pem build/t/";
    assert_eq!(bench.sh(make).code, Some(0));
    let removed = bench.sh("rm -r build node_modules && ! cat key.pem 2>/dev/null");
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let masked = bench.json(&["show", "--json"])["sandbox"]["masked"].clone();
    assert_eq!(masked, serde_json::json!(["key.pem"]), "what is neither installed nor built stays covered");
}

#[test]
fn what_git_tracks_is_applied_although_an_ignore_file_names_it() {
    let bench = Bench::new();
    fs::create_dir(bench.file("build")).expect("makes a directory");
    bench.write("build/kept.js", "old\n");
    bench.git(&["add", "--force", "build/kept.js"]);
    bench.commit();
    bench.sh("echo new > build/kept.js; echo o > build/o");
    let done = bench.json(&["apply", "--json"]);
    assert_eq!(
        (&done["state"], bench.read("build/kept.js").as_str()),
        (&"applied".into(), "new\n"),
        "{done:#}"
    );
    assert!(!bench.file("build/o").exists(), "git ignores this one");
}
