//! Tasks and their layers: `task`, `log`, `diff`, `undo`, `fork`, `discard`, `reproduce`, `gc`.

use super::bench::{Bench, fits};

#[test]
fn runs_in_one_directory_see_each_other_and_the_host_sees_none() {
    let bench = Bench::new();
    bench.sh("echo more >> README; echo new > made; rm docs/page");
    assert_eq!(bench.sh("cat README made; ls docs").out, "one\ntwo\nthree\nmore\nnew\n");
    assert_eq!(bench.read("README"), "one\ntwo\nthree\n");
    assert!(!bench.file("made").exists() && bench.file("docs/page").exists());
    let diff = bench.json(&["diff", "--json"]);
    fits("diff", &diff);
    let kinds: Vec<_> = diff["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|c| (c["path"].as_str(), c["kind"].as_str()))
        .collect();
    let expected = [("README", "modified"), ("docs/page", "deleted"), ("made", "created")];
    assert_eq!(kinds, expected.map(|(path, kind)| (Some(path), Some(kind))));
    assert_eq!(bench.run(&["run", "-q", "--new-task", "--", "cat", "README"]).out, "one\ntwo\nthree\n");
}

#[test]
fn a_diff_is_for_people_for_git_and_for_scripts() {
    let bench = Bench::new();
    bench.sh("sed -i s/two/TWO/ README; mkdir build; echo o > build/o; printf '\\033[2J' > odd");
    let people = bench.run(&["diff"]).out;
    assert!(people.contains("changed README\n") && people.contains("\n-two\n+TWO\n"), "{people}");
    assert!(people.contains("\\u{1b}[2J") && !people.contains("build/o"), "{people}");
    assert_eq!(bench.run(&["diff", "--name-only", "--", "READ*"]).out, "README\n");
    assert_eq!(
        bench.run(&["diff", "--name-only", "--include-ignored", "--", "build"]).out,
        "build\nbuild/o\n"
    );
    assert_eq!(bench.run(&["diff", "--exit-code", "--stat"]).code, Some(1));
    let patch = bench.run(&["diff", "--patch"]);
    std::fs::write(bench.path("task.patch"), patch.out).expect("writes");
    bench.git(&["apply", "../task.patch"]);
    assert_eq!(bench.read("README"), "one\nTWO\nthree\n");
}

#[test]
fn a_cache_that_ignores_itself_is_no_change_and_nothing_else_can_be_hidden() {
    let bench = Bench::new();
    let cache = bench.sh("mkdir -p .cache/v; echo '*' > .cache/.gitignore; echo x > .cache/v/x");
    assert!(cache.err.ends_with("; no changes but 4 that git ignores\n"), "{cache:?}");
    let again = bench.sh("echo y > .cache/v/y");
    assert!(again.err.ends_with("; no changes but 1 that git ignores\n"), "{again:?}");
    bench.sh("echo '*' > src/.gitignore; echo hidden > src/new; echo '*' >> .gitignore; echo other > other; mkdir empty");
    let names = bench.run(&["diff", "--name-only"]).out;
    assert_eq!(names, ".gitignore\nempty\nother\nsrc/.gitignore\nsrc/new\n");
}

#[test]
fn the_next_step_is_named_where_a_verb_has_nothing_to_say() {
    let bench = Bench::new();
    let missing = bench.run(&["run", "--", "nosuch"]);
    assert!(
        missing.code == Some(127) && missing.err.contains("found no program `nosuch` in the sandbox"),
        "{missing:?}"
    );
    bench.sh("echo more >> README; exit 3");
    let why = bench.run(&["why"]).out;
    assert!(why.contains("it exited with 3 by itself") && why.contains("work offline"), "{why}");
    assert_eq!(bench.run(&["apply"]).code, Some(0));
    let undo = bench.run(&["undo"]);
    assert!(undo.code == Some(125) && undo.err.contains("`fumehood undo --applied`"), "{undo:?}");
}

#[test]
fn what_git_changed_of_its_own_is_one_matter_and_no_change() {
    let bench = Bench::new();
    let commit = "git -c user.name=t -c user.email=t@example.org commit --quiet --all --allow-empty -m";
    let first = bench.sh(&format!("{commit} empty"));
    assert!(first.err.ends_with("; no changes but git's own\n"), "{first:?}");
    let second = bench.sh(&format!(
        "echo more >> README; mkdir -p build .github/workflows; echo o > build/o; echo x > .github/workflows/y; {commit} two"
    ));
    assert!(second.err.ends_with("; 4 changes, 3 held back\n"), "{second:?}");
    let log = bench.json(&["log", "--json"]);
    assert_eq!((&log["log"][0]["changes"], &log["log"][1]["changes"]), (&0.into(), &4.into()), "{log:#}");
    let why = bench.json(&["why", "--json"]);
    fits("why", &why);
    let causes: Vec<_> = why["causes"].as_array().expect("a list").iter().collect();
    let facts: Vec<_> =
        causes.iter().map(|cause| (cause["code"].as_str(), cause["person_may_allow"].as_bool())).collect();
    assert!(facts.contains(&(Some("git-internals"), Some(false))), "{why:#}");
    assert!(facts.contains(&(Some("ci-files"), Some(true))), "{why:#}");
    assert_eq!(facts.iter().filter(|(code, _)| *code == Some("git-internals")).count(), 1, "{why:#}");
    let applied = bench.run(&["apply", "--no-commits"]);
    assert!(applied.out.contains("`fumehood apply --protected PATH` takes one path over"), "{applied:?}");
    let ignored = bench.sh("echo o > build/p");
    assert!(ignored.err.ends_with("; no changes but 1 that git ignores\n"), "{ignored:?}");
    let nothing = bench.run(&["diff", &bench.newest()]);
    assert_eq!(nothing.out, "no changes\n");
    assert!(nothing.err.contains("git ignores 1 change"), "{nothing:?}");
}

#[test]
fn layers_are_taken_off_and_branched_off() {
    let bench = Bench::new();
    for number in ["1", "2", "3"] {
        bench.sh(&format!("echo {number} > n{number}"));
    }
    let second = bench.json(&["log", "--json"])["log"][1]["action"].as_str().expect("an id").to_owned();
    let fork = bench.run(&["fork", "--at", &second]).out.trim().to_owned();
    assert_eq!(bench.run(&["run", "-q", "--task", &fork, "--", "sh", "-c", "ls n*"]).out, "n1\nn2\n");
    let undone = bench.run(&["undo", "--json", "--task-is-open"]);
    assert_eq!(undone.code, Some(125), "an option that does not exist");
    let task =
        bench.json(&["task", "list", "--json"])["tasks"][1]["task"].as_str().expect("an id").to_owned();
    let undone = bench.json(&["undo", "--json", &task]);
    fits("undo", &undone);
    assert_eq!(bench.run(&["run", "-q", "--task", &task, "--", "sh", "-c", "ls n*"]).out, "n1\nn2\n");
    assert_eq!(bench.run(&["undo", &task, "--last", "9"]).code, Some(0));
    assert_eq!(bench.run(&["run", "-q", "--task", &task, "--", "sh", "-c", "ls n*"]).code, Some(2));
    let nothing = bench.run(&["undo", &task]);
    assert!(nothing.code == Some(125) && nothing.err.contains("nothing to undo"), "{nothing:?}");
    let log = bench.json(&["log", "--json", &task]);
    fits("log", &log);
    assert_eq!(log["log"].as_array().expect("a list").iter().filter(|row| row["undone"] == true).count(), 3);
}

#[test]
fn tasks_are_listed_stopped_resumed_and_discarded() {
    let bench = Bench::new();
    bench.sh("echo x > x");
    let tasks = bench.json(&["task", "list", "--json"]);
    fits("task-list", &tasks);
    let task = tasks["tasks"][0]["task"].as_str().expect("an id").to_owned();
    fits("task", &bench.json(&["task", "show", "--json"]));
    let mut running = bench.start(&["run", "--", "sleep", "60"]);
    while bench.json(&["log", "--json"])["log"][1]["ending"] != "runs" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let stopped = bench.json(&["task", "stop", "--json"]);
    fits("task-row", &stopped);
    assert_eq!(running.wait().expect("it ends").code(), Some(137), "what ran was ended");
    let refused = bench.run(&["run", "--task", &task, "--", "true"]);
    assert!(refused.code == Some(125) && refused.err.contains("task resume"), "{refused:?}");
    assert_eq!(bench.run(&["task", "resume", &task[..12]]).code, Some(0), "the start of an id is enough");
    assert_eq!(bench.run(&["run", "--task", &task, "--", "cat", "x"]).out, "x\n");
    assert_eq!(bench.run(&["discard"]).code, Some(0));
    assert_eq!(bench.json(&["task", "list", "--json"])["tasks"].as_array().map(Vec::len), Some(0));
    let kept = bench.json(&["gc", "--dry-run", "--json"]);
    fits("gc", &kept);
    assert_eq!(kept["layers"].as_array().map(Vec::len), Some(0), "retention is not over");
}

#[test]
fn an_action_is_run_again_and_compared() {
    let bench = Bench::new();
    bench.sh("echo base > base");
    bench.run(&["run", "-e", "WORD=hi", "--", "sh", "-c", "cat base; echo $WORD; echo made > made"]);
    let same = bench.newest();
    bench.sh("echo later > base");
    let missing = bench.run(&["reproduce", &same]);
    assert!(missing.code == Some(1) && missing.err.contains("`WORD` was set then"), "{missing:?}");
    let again = bench.run(&["reproduce", "-e", "WORD=hi", &same]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "base\nhi\n"), "{again:?}");
    assert!(again.err.contains("are the same"), "{again:?}");
    bench.sh("date +%s%N > when");
    let differs = bench.run(&["reproduce", "--json", &bench.newest()]);
    let document = serde_json::from_str(differs.err.lines().last().expect("a line")).expect("is JSON");
    fits("reproduce", &document);
    assert!(differs.code == Some(1) && document["differs"][0]["what"] == "`when`", "{document:#}");
}

/// The places at which a checkpoint that is made for the first time can be cut off.
const STEPS: [&str; 6] = [
    "checkpoint: the directories of a new one are made",
    "checkpoint: a layer is to be merged",
    "checkpoint: a layer is merged and not noted",
    "checkpoint: the layers are noted",
    "checkpoint: the old one is put aside",
    "checkpoint: the new one is in its place",
];

#[test]
fn a_task_goes_on_after_a_kill_while_its_older_layers_are_merged() {
    let bench = Bench::new();
    for number in 1..=4 {
        bench.sh(&format!(
            "echo {number} >> log; mv README kept && mv kept README; rm -f n*; echo > n{number}"
        ));
    }
    let task =
        bench.json(&["task", "list", "--json"])["tasks"][0]["task"].as_str().expect("an id").to_owned();
    let see = ["sh", "-c", "cat log; ls n*"];
    for step in STEPS {
        // A fork has no checkpoint yet.
        let fork = bench.run(&["fork", &task]).out.trim().to_owned();
        let words = [&["run", "--task", &fork, "--"][..], &see].concat();
        let died = bench.command(&words).env("FUMEHOOD_TEST_DIE_AT", step).output().expect("it starts");
        let signal = std::os::unix::process::ExitStatusExt::signal(&died.status);
        assert_eq!(signal, Some(9), "it did not die at `{step}`: {died:?}");
        assert_eq!(bench.run(&words).out, "1\n2\n3\n4\nn4\n", "after a kill at `{step}`");
    }
}

#[test]
fn what_was_hidden_from_an_action_is_hidden_when_it_is_run_again() {
    let bench = Bench::new();
    let first = bench.run(&["run", "--hide", "README", "--", "cat", "README"]);
    assert!(first.code != Some(0) && !first.out.contains("two"), "{first:?}");
    let action = bench.newest();
    let again = bench.run(&["reproduce", &action]);
    assert_eq!(again.code, Some(0), "nothing differs: {again:?}");
    assert!(!again.out.contains("two"), "{again:?}");
}
