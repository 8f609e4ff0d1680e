//! `run`: streams, exit codes, options, and what is said about it afterwards.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

#[test]
fn standard_output_belongs_to_the_command() {
    let bench = Bench::new();
    let answer = bench.sh("printf 'a\\0\\377b\\n'; echo problem >&2; exit 7");
    assert_eq!(answer.code, Some(7));
    assert_eq!(answer.out, "a\0\u{fffd}b\n");
    assert!(
        answer.err.starts_with("problem\nfumehood: act-") && answer.err.contains("exited with 7"),
        "{answer:?}"
    );
    let quiet = bench.run(&["run", "--quiet", "--", "echo", "only this"]);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("only this\n", ""));
}

/// Runs the program with both streams in one file, as `2>&1` does, and returns what is there then.
fn into_one_file(bench: &Bench, words: &[&str]) -> String {
    let file = bench.path("both");
    let both = fs::File::create(&file).expect("a file");
    let mut command = bench.command(words);
    command.stdout(both.try_clone().expect("a second")).stderr(both);
    command.status().expect("it starts");
    fs::read_to_string(&file).expect("is text")
}

#[test]
fn what_is_said_begins_on_a_line_of_its_own() {
    let bench = Bench::new();
    let json = |text: &str| serde_json::from_str::<Value>(text.lines().last().expect("a line"));
    let ws = bench.path("ws").to_string_lossy().into_owned();
    for line in ["printf out", "printf err >&2", "printf err >&2; printf 'out\n'; printf more"] {
        for verb in [&["run"][..], &["bwrap", "--bind", &ws, &ws]] {
            let mut words = vec!["--json"];
            words.extend(verb);
            words.extend(["--", "sh", "-c", line]);
            let both = into_one_file(&bench, &words);
            assert!(
                json(&both).is_ok_and(|document| document["action"].is_string()),
                "{verb:?} {line}: {both}"
            );
        }
        let both = into_one_file(&bench, &["run", "--", "sh", "-c", line]);
        assert!(both.lines().last().is_some_and(|last| last.starts_with("fumehood: act-")), "{line}: {both}");
        assert!(!both.contains("\n\n"), "no line is left empty: {both}");
    }
    let action = bench.newest();
    let both = into_one_file(&bench, &["reproduce", "--json", &action]);
    assert!(json(&both).is_ok_and(|document| document["again"].is_object()), "{both}");
    let both = into_one_file(&bench, &["--quiet", "run", "--", "printf", "out"]);
    assert_eq!(both, "out", "nothing is added where nothing is said");
    let apart = bench.sh("printf out; printf err >&2");
    assert!(apart.out == "out" && apart.err.starts_with("err\nfumehood: "), "{apart:?}");
    let apart = bench.sh("printf out");
    assert!(apart.out == "out" && apart.err.starts_with("fumehood: "), "{apart:?}");
}

#[test]
fn the_document_is_the_last_line_also_where_changes_are_applied() {
    let bench = Bench::new();
    let line = "echo x > made; printf unfinished >&2";
    let answer = bench.run(&["--json", "run", "--apply", "clean", "--", "sh", "-c", line]);
    assert!(bench.file("made").exists(), "{answer:?}");
    let document: Value = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
}

#[test]
fn each_ending_has_its_exit_code_and_its_name() {
    let bench = Bench::new();
    for (words, code, state, ended) in [
        (&["run", "--", "sh", "-c", "exit 126"][..], 126, "ended", "exited"),
        (&["run", "--", "no-such-program"], 127, "ended", "not-found"),
        (&["run", "--timeout", "1s", "--", "sleep", "60"], 124, "ended", "limit"),
        (&["run", "--", "sh", "-c", "kill -11 $$"], 139, "ended", "signaled"),
        (&["run", "--", "/etc/hosts"], 126, "ended", "not-executable"),
    ] {
        let mut words = words.to_vec();
        words.insert(1, "--json");
        let answer = bench.run(&words);
        assert_eq!(answer.code, Some(code), "{words:?}: {answer:?}");
        let document: Value =
            serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
        fits("action", &document);
        assert_eq!((&document["state"], &document["end"]["ending"]["ended"]), (&state.into(), &ended.into()));
        assert_eq!(document["exit_code"], code);
    }
}

#[test]
fn a_denial_has_its_own_state_beside_its_exit_code() {
    let bench = Bench::new();
    let answer = bench.run(&["--json", "run", "--profile", "strict", "--memory", "8GiB", "--", "true"]);
    let document: Value = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
    let why = bench.json(&["why", "--json"]);
    fits("why", &why);
    // Whether policy narrows or denies what is wider than the profile, it is on the record and is explained.
    let verdict = document["decision"]["verdict"].as_str().expect("was decided");
    assert!(matches!(verdict, "narrow" | "deny" | "require-approval"), "{document:#}");
    assert_eq!(answer.code == Some(126), document["state"] == "denied");
    assert!(!why["causes"].as_array().expect("a list").is_empty(), "{why:#}");
}

#[test]
fn standard_input_is_empty_unless_it_is_passed_on() {
    let bench = Bench::new();
    let fed = |words: &[&str]| {
        let mut child =
            bench.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        // A command that reads nothing may be gone before this is written.
        let _ = child.stdin.take().expect("is piped").write_all(b"from outside\n");
        Answer::of(child.wait_with_output().expect("it ends")).out
    };
    assert_eq!(fed(&["run", "--", "cat"]), "");
    assert_eq!(fed(&["run", "-i", "--", "cat"]), "from outside\n");
}

#[test]
fn only_what_is_given_of_the_environment_is_inside() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-e", "GIVEN=a=b", "-e", "PASSED", "--", "env"]);
    command.env("PASSED", "on").env("HELD_BACK", "outside").env("SOME_TOKEN", "a-secret-value");
    let answer = Answer::of(command.output().expect("it starts"));
    assert!(answer.out.contains("GIVEN=a=b\n") && answer.out.contains("PASSED=on\n"), "{answer:?}");
    assert!(!answer.out.contains("HELD_BACK") && !answer.out.contains("a-secret-value"), "{answer:?}");
    let shown = bench.json(&["show", "--json"]);
    assert_eq!(shown["request"]["environment"], serde_json::json!(["GIVEN", "PASSED"]));
    let record = bench.run(&["audit", "export"]);
    assert!(!record.out.contains("a=b"), "a value is on the record");
}

#[test]
fn a_secret_in_the_environment_is_refused_by_its_shape_or_its_name() {
    let bench = Bench::new();
    let random = "kQ3v9ZtR8mW1xY6bN4cL7dF2gH5jP0sAuE+iO/Tq";
    for (given, why) in [
        (format!("AWS_SECRET_ACCESS_KEY={random}"), "a secret key of AWS"),
        ("ANYTHING=glpat-k3v9ZtR8mW1xY6bN4cL7".to_owned(), "GitLab"),
    ] {
        let answer = bench.run(&["run", "-e", &given, "--", "true"]);
        assert!(answer.code == Some(125) && answer.err.contains(why), "{given}: {answer:?}");
        assert!(!answer.err.contains(given.split_once('=').expect("a value").1), "{answer:?}");
    }
    let answer = bench.run(&["run", "-e", &format!("CHECKSUM={random}"), "--", "true"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn a_part_of_the_workspace_can_be_left_out() {
    let bench = Bench::new();
    let seen = |options: &[&str]| {
        let words = [
            &["run", "-q"],
            options,
            &["--", "sh", "-c", "cat README src/code docs/page 2>/dev/null; git log -1 --format=%s"],
        ];
        bench.run(&words.concat()).out
    };
    assert_eq!(seen(&[]), "one\ntwo\nthree\ncode\npage\nstate\n");
    assert_eq!(seen(&["--hide", "docs"]), "one\ntwo\nthree\ncode\nstate\n");
    assert_eq!(seen(&["--only", "docs", "--only", ":(glob)*"]), "one\ntwo\nthree\npage\nstate\n");
    bench.sh("echo made > src/made");
    let made =
        bench.run(&["run", "-q", "--hide", "src/ma*", "--", "sh", "-c", "cat src/made || cat src/code"]);
    assert_eq!(made.out, "code\n", "what an earlier layer made is hidden, too");
}

#[test]
fn an_input_is_shown_read_only_under_its_name() {
    let bench = Bench::new();
    fs::create_dir(bench.path("data")).expect("makes a directory");
    fs::write(bench.path("data/set"), "numbers\n").expect("writes");
    let input = format!("data={}", bench.path("data").display());
    let answer = bench.run(&[
        "run",
        "-q",
        "--input",
        &input,
        "--",
        "sh",
        "-c",
        "cat /inputs/data/set; echo x > /inputs/data/set",
    ]);
    assert_eq!(answer.out, "numbers\n", "{answer:?}");
    assert_ne!(answer.code, Some(0));
    assert_eq!(fs::read_to_string(bench.path("data/set")).expect("is there"), "numbers\n");
}

#[test]
fn credentials_in_an_input_are_covered_and_one_alone_is_no_input() {
    let bench = Bench::new();
    for (file, text) in [
        ("data/set", "numbers\n"),
        ("data/.env", "API_TOKEN=9f8c2d7e41b05a6f\n"),
        (
            "data/a/.git/config",
            "[core]\n[remote \"o\"]\nurl = https://me:hunter22secret@example.org/long/path\n",
        ),
        ("data/b/.git/config", "[remote \"o\"]\nurl = https://me:other2secret@example.org/x\n"),
    ] {
        fs::create_dir_all(bench.path(file).parent().expect("has one")).expect("makes directories");
        fs::write(bench.path(file), text).expect("writes");
    }
    let input = |file: &str| format!("data={}", bench.path(file).display());
    let line = "cd /inputs/data; cat set .env; grep -h url a/.git/config; echo; cat b/.git/config";
    let answer = bench.run(&["run", "-q", "--input", &input("data"), "--", "sh", "-c", line]);
    let shown = "numbers\nurl = https://example.org/long/path\n\n\
                 [remote \"o\"]\nurl = https://example.org/x\n";
    assert_eq!(answer.out, shown, "{answer:?}");
    let masked = &bench.json(&["show", "--json"])["sandbox"]["masked"];
    assert!(masked.as_array().is_some_and(|all| all.contains(&"/inputs/data/.env".into())), "{masked}");
    let refused = bench.run(&["run", "--input", &input("data/.env"), "--", "true"]);
    assert!(refused.code == Some(125) && refused.err.contains("it is a credential"), "{refused:?}");
}

#[test]
fn an_input_never_shows_the_record_or_the_host() {
    let bench = Bench::new();
    bench.run(&["run", "-q", "--", "true"]);
    let state = bench.path("state");
    let above = state.parent().expect("a parent").to_owned();
    for place in [state.join("key"), state, above, "/proc".into(), "/".into()] {
        let answer = bench.run(&["run", "--input", &format!("x={}", place.display()), "--", "ls", "/inputs"]);
        assert_eq!(answer.code, Some(125), "{answer:?}");
        assert!(answer.err.contains("cannot be an input"), "{answer:?}");
    }
}

#[test]
fn streams_can_be_opened_by_name() {
    let answer =
        Bench::new().run(&["run", "-q", "--", "sh", "-c", "echo out > /dev/stdout; echo err > /dev/stderr"]);
    assert_eq!((answer.out.as_str(), answer.err.as_str()), ("out\n", "err\n"), "{answer:?}");
}

#[test]
fn many_files_are_applied_where_a_process_may_hold_few() {
    let bench = Bench::new();
    bench.run(&["run", "-q", "--", "sh", "-c", "mkdir d; seq 1 1500 | while read n; do : > d/$n; done"]);
    let words = bench.command(&["apply", "--yes"]);
    let line = format!("ulimit -Sn 256; exec {} apply --yes", words.get_program().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).env_clear().current_dir(words.get_current_dir().expect("a directory"));
    shell.envs(words.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let answer = Answer::of(shell.output().expect("it starts"));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(fs::read_dir(bench.file("d")).expect("is there").count(), 1500);
}

#[test]
fn a_command_starts_where_the_person_stands() {
    let bench = Bench::new();
    let mut command = bench.command(&["run", "-q", "--", "pwd"]);
    let answer = Answer::of(command.current_dir(bench.file("src")).output().expect("it starts"));
    assert_eq!(answer.out.trim(), bench.file("src").to_str().expect("text"));
    let named = bench.run(&["run", "-q", "-C", "docs", "--", "cat", "page"]);
    assert_eq!(named.out, "page\n");
    let nowhere = bench.run(&["run", "-C", "nowhere", "--", "touch", "here"]);
    assert_eq!(nowhere.code, Some(125), "{nowhere:?}");
    assert!(nowhere.err.contains("its directory could not be entered: No such file"), "{nowhere:?}");
    assert_eq!(bench.json(&["show", "--json"])["ran"], "no");
    assert!(bench.run(&["why"]).out.contains("--cwd"));
}

#[test]
fn signals_reach_the_command_or_end_it() {
    let bench = Bench::new();
    let trap = bench.start(&[
        "run",
        "--",
        "sh",
        "-c",
        "trap 'echo caught; exit 9' INT; echo ready; sleep 60 & wait",
    ]);
    let answer = signalled(trap, rustix::process::Signal::INT);
    assert_eq!((answer.code, answer.out.as_str()), (Some(9), "ready\ncaught\n"), "{answer:?}");
    let stopped = bench.start(&["run", "--", "sh", "-c", "echo ready; exec sleep 60"]);
    let answer = signalled(stopped, rustix::process::Signal::TERM);
    assert_eq!(answer.code, Some(137), "{answer:?}");
    assert_eq!(bench.json(&["show", "--json"])["end"]["ending"]["ended"], "stopped");
}

/// Sends a signal once the command has printed something.
fn signalled(mut child: std::process::Child, signal: rustix::process::Signal) -> Answer {
    use std::io::Read;
    let mut first = [0; 6];
    child.stdout.as_mut().expect("is piped").read_exact(&mut first).expect("it prints");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it lives");
    let mut answer = Answer::of(child.wait_with_output().expect("it ends"));
    answer.out.insert_str(0, &String::from_utf8_lossy(&first));
    answer
}

#[test]
fn the_second_of_two_waits_or_runs_on_a_fork() {
    let bench = Bench::new();
    let mut first = bench.start(&["run", "--", "sh", "-c", "echo first > order; echo started; sleep 2"]);
    let begin = Instant::now();
    while bench.json(&["task", "list", "--json"])["tasks"][0]["actions"]
        .as_u64()
        .is_none_or(|actions| actions == 0)
    {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not start");
        sleep(Duration::from_millis(50));
    }
    let task =
        bench.json(&["task", "list", "--json"])["tasks"][0]["task"].as_str().expect("an id").to_owned();
    let forked = bench.run(&["run", "--fork", "--", "echo", "at once"]);
    assert!(forked.out == "at once\n" && forked.err.contains("a fork of it"), "{forked:?}");
    let waited = bench.run(&["run", "--task", &task, "--", "cat", "order"]);
    assert!(waited.out == "first\n" && waited.err.contains("waiting for its end"), "{waited:?}");
    assert!(first.wait().expect("it ends").success());
}

#[test]
fn who_interrupts_before_the_command_is_started_does_not_wait_for_it() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;

    let bench = Bench::new();
    let mut first = bench.start(&["run", "--", "sh", "-c", "echo started; exec sleep 60"]);
    let mut printed = BufReader::new(first.stdout.take().expect("is piped")).lines();
    assert_eq!(printed.next().expect("it prints").expect("text"), "started");
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        let mut second = bench.start(&["run", "--", "true"]);
        let mut said = BufReader::new(second.stderr.take().expect("is piped")).lines().map_while(Result::ok);
        assert!(said.any(|line| line.contains("waiting for its end")));
        kill_process(Pid::from_child(&second), signal).expect("it lives");
        assert!(said.any(|line| line.contains("nothing ran")), "{number}");
        assert_eq!(second.wait().expect("it ends").signal(), Some(number));
    }
    kill_process(Pid::from_child(&first), Signal::TERM).expect("it lives");
    assert!(!first.wait().expect("it ends").success());
    let tasks = bench.json(&["task", "list", "--json"]);
    assert_eq!(tasks["tasks"][0]["actions"], 1, "{tasks:#}");
}

#[test]
fn a_repository_s_own_rules_take_away_and_their_check_says_what_is_wrong() {
    let bench = Bench::new();
    let rule = "@id(\"no-make\") @reason(\"no-make-here\") @advice(\"use `./build`\") @person_may_allow(\"true\")\n\
                forbid (principal, action == Action::\"run-program\", resource) when { resource.name == \"make\" };\n";
    bench.write(".fumehood.cedar", rule);
    assert_eq!(bench.run(&["policy", "check", ".fumehood.cedar"]).code, Some(0));
    assert_ne!(bench.run(&["run", "--", "make"]).code, Some(126), "the working tree does not count");
    bench.commit();
    let denied = bench.run(&["run", "--", "make"]);
    assert_eq!(denied.code, Some(126));
    assert!(denied.err.contains("use `./build`"), "{denied:?}");
    let why = bench.run(&["why"]);
    assert!(why.out.contains("repository/no-make") && why.out.contains("no-make-here"), "{why:?}");
    bench.write(".fumehood.cedar", "@id(\"all\") @reason(\"all\") permit (principal, action, resource);");
    let checked = bench.run(&["policy", "check", ".fumehood.cedar"]);
    assert!(checked.code == Some(1) && checked.out.contains("can only forbid"), "{checked:?}");
}

#[test]
fn a_repository_s_own_settings_count_as_its_commit_has_them() {
    let bench = Bench::new();
    bench.write(".fumehood.toml", "[ceiling]\nprocesses = 7\n");
    let processes = || bench.json(&["show", "--json"])["request"]["grant"]["limits"]["processes"].clone();
    bench.sh("true");
    assert_ne!(processes(), 7, "the working tree does not count");
    bench.commit();
    bench.write(".fumehood.toml", "[ceiling]\nprocesses = 900\n");
    bench.sh("true");
    assert_eq!(processes(), 7);
    bench.git(&["rm", "--quiet", "--force", ".fumehood.toml"]);
    bench.git(&["commit", "--quiet", "--message", "gone"]);
    bench.sh("true");
    assert_ne!(processes(), 7);
    bench.write(".fumehood.toml", "[model]\nbase_url = \"https://attacker.example\"\n");
    bench.commit();
    let refused = bench.sh("true");
    assert!(
        refused.code == Some(125) && refused.err.contains("only the operator may set `model`"),
        "{refused:?}"
    );
}

#[test]
fn artifacts_are_listed_and_fetched() {
    let bench = Bench::new();
    bench.sh("mkdir $FUMEHOOD_ARTIFACTS/r; echo first > $FUMEHOOD_ARTIFACTS/r/x; ln -s /etc/passwd $FUMEHOOD_ARTIFACTS/link");
    let first = bench.newest();
    bench.sh("mkdir $FUMEHOOD_ARTIFACTS/r; echo second > $FUMEHOOD_ARTIFACTS/r/x");
    let list = bench.json(&["artifacts", "list", "--json"]);
    fits("artifacts", &list);
    assert_eq!(list["artifacts"].as_array().expect("a list").len(), 2, "links are not listed: {list:#}");
    assert_eq!(bench.run(&["artifacts", "get", "r/x"]).out, "second\n");
    assert_eq!(bench.run(&["artifacts", "get", "r/x", "--from", &first]).out, "first\n");
    assert_eq!(bench.run(&["artifacts", "get", "link", "--from", &first]).code, Some(125));
}

#[test]
fn the_record_is_shown_verified_and_exported() {
    let bench = Bench::new();
    bench.sh("true");
    let shown = bench.run(&["audit", "show", "--json"]);
    for line in shown.out.lines() {
        fits("audit-record", &serde_json::from_str(line).expect("is JSON"));
    }
    assert!(shown.out.lines().count() >= 6, "{shown:?}");
    let head = bench.run(&["audit", "show", "--head"]).out.trim().to_owned();
    let alone = bench.run(&["audit", "verify"]);
    assert!(alone.code == Some(0) && alone.out.contains("internally consistent, not anchored"), "{alone:?}");
    let file = bench.path("record.jsonl");
    let file = file.to_str().expect("text");
    assert_eq!(bench.run(&["audit", "export", "--file", file]).code, Some(0));
    assert_eq!(bench.run(&["audit", "verify", file, "--head", &head]).code, Some(0));
    let text = fs::read_to_string(file).expect("is there");
    fs::write(file, text.replacen("\"verdict\":\"allow\"", "\"verdict\":\"deny\"", 1)).expect("writes");
    let edited = bench.run(&["audit", "verify", file, "--json"]);
    assert_eq!(edited.code, Some(1));
    fits("audit-verify", &serde_json::from_str(&edited.out).expect("is JSON"));
}

#[test]
fn doctor_builds_a_sandbox_and_says_what_held() {
    let bench = Bench::new();
    let answer = bench.run(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&answer.out).expect("is JSON");
    fits("doctor", &document);
    assert_eq!((answer.code, &document["ready"]), (Some(0), &Value::Bool(true)), "{document:#}");
    assert!(
        document["held"].as_array().expect("a list").len() > 20
            && document["probes"].as_array().expect("a list").len() > 20
    );
    let text = bench.run(&["doctor"]);
    assert!(text.out.contains("enforced") && text.out.contains("commands can run here"), "{text:?}");
}

#[test]
fn an_edit_of_the_host_during_a_run_is_told() {
    let bench = Bench::new();
    let line = "echo inside > README; echo x >> src/code; sleep 3";
    let mut running = bench.start(&["run", "--", "sh", "-c", line]);
    while bench.json(&["log", "--json"])["log"].as_array().is_none_or(Vec::is_empty)
        || bench.json(&["show", "--json"])["sandbox"].is_null()
    {
        sleep(Duration::from_millis(20));
    }
    bench.write("README", "ours\n");
    bench.write("src/other", "new\n");
    bench.commit();
    running.wait().expect("it ends");
    let mut said = String::new();
    std::io::Read::read_to_string(running.stderr.as_mut().expect("is piped"), &mut said).expect("is text");
    assert!(said.contains("2 changes, 3 edits of the host meanwhile"), "{said}");
    let document = bench.json(&["show", "--json"]);
    fits("action", &document);
    assert_eq!(document["request"]["live"], true);
    assert_eq!(document["inspection"]["host_edits"], serde_json::json!([".git/logs/HEAD", "README", "src"]));
    assert!(bench.run(&["show"]).out.contains("so it proves nothing: .git/logs/HEAD, README, src"));

    bench.sh("echo again > README");
    assert_eq!(bench.json(&["show", "--json"])["inspection"]["host_edits"], serde_json::json!([]));
}
