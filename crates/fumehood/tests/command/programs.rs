//! `--program`: nothing but what is listed can be executed, by whatever way it is tried, and the record says so.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

/// Where the dynamic loaders of the machines that we build for stand.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

fn loader() -> &'static str {
    LOADERS.into_iter().find(|path| Path::new(path).exists()).expect("a dynamic loader of glibc")
}

/// A workspace that holds a program of the host and a script.
fn with_tools() -> Bench {
    let bench = Bench::new();
    fs::copy("/bin/echo", bench.file("tool")).expect("copies");
    bench.write("script", "#!/bin/sh\necho RAN\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bench.file("script"), mode).expect("sets the mode");
    bench
}

/// Runs a shell line with these programs listed.
fn listed(bench: &Bench, programs: &[&str], line: &str) -> Answer {
    let mut words = vec!["run", "--quiet"];
    programs.iter().for_each(|program| words.extend(["--program", program]));
    words.extend(["--", "sh", "-c", line]);
    bench.run(&words)
}

fn observed(bench: &Bench) -> Value {
    let document = bench.json(&["show", "--json"]);
    fits("action", &document);
    document["end"]["observed"].clone()
}

#[test]
fn a_bare_name_is_found_on_path_and_a_path_from_where_the_person_stands() {
    let bench = Bench::new();
    let answer = bench.run(&["run", "-q", "--program", "cat", "--", "cat", "README"]);
    assert_eq!((answer.code, answer.out.as_str()), (Some(0), "one\ntwo\nthree\n"), "{answer:?}");
    let other = bench.run(&["run", "-q", "--program", "cat", "--", "ls"]);
    assert_eq!(other.code, Some(127), "{other:?}");
    let asked = bench.json(&["show", "--json"])["request"]["grant"]["programs"].clone();
    let cat = fs::canonicalize("/bin/cat").expect("is there");
    let digest = model::Digest::of(&fs::read(&cat).expect("can be read"));
    let granted = serde_json::json!([{ "file": cat.to_str(), "digest": digest.to_string() }]);
    assert_eq!(asked, granted, "the grant holds the file and what is in it, not the name");

    let mut from_bin = bench.command(&["run", "-q", "--program", "./cat", "-w"]);
    from_bin.arg(bench.path("ws")).args(["--", "cat", "README"]).current_dir("/bin");
    assert_eq!(Answer::of(from_bin.output().expect("it starts")).out, "one\ntwo\nthree\n");

    let missing = bench.run(&["run", "--program", "no-such-program", "--", "true"]);
    assert_eq!(missing.code, Some(125));
    assert!(missing.err.contains("no program `no-such-program` on PATH"), "{missing:?}");
}

#[test]
fn no_other_program_is_started_by_any_way_around() {
    let bench = with_tools();
    let loader = loader();
    let ways = [
        "/bin/ls /".to_owned(),
        "./tool RAN".to_owned(),
        "./script".to_owned(),
        format!("{loader} /bin/ls /"),
        format!("{loader} ./tool RAN"),
    ];
    for way in &ways {
        let answer = listed(&bench, &["sh"], way);
        assert!(answer.code != Some(0) && answer.out.is_empty(), "{way}: {answer:?}");
        let tried = observed(&bench)["unlisted_programs"].clone();
        let file = way.split(' ').next().expect("a word");
        assert!(
            tried.as_array().is_some_and(|all| all.iter().any(|one| one["file"] == file)),
            "{way}: {tried:#}"
        );
    }
    // Beside them what is listed works, and a listed interpreter does what it is told.
    let allowed =
        listed(&bench, &["sh", "cat"], &format!("cat README; sh ./script; {loader} /bin/cat README"));
    assert_eq!(allowed.out, "one\ntwo\nthree\nRAN\none\ntwo\nthree\n", "{allowed:?}");
}

#[test]
fn nothing_that_is_written_can_be_executed_wherever_it_is_written() {
    let bench = with_tools();
    let loader = loader();
    let line = format!(
        "for place in . /tmp /var/tmp /dev/shm \"$HOME\" /run/user/* /artifacts /cache; do
            for program in ./tool /bin/sh ./script; do
                cp $program $place/new && echo written
                $place/new -c 'echo RAN'; {loader} $place/new -c 'echo RAN'
                rm $place/new
            done
        done 2>/dev/null; true"
    );
    for profile in ["default", "strict"] {
        let words =
            ["run", "-q", "-p", profile, "--program", "sh", "--program", "cp", "--program", "rm", "--"];
        let answer = bench.run(&[&words[..], &["sh", "-c", &line]].concat());
        assert!(!answer.out.contains("RAN"), "{profile}: {answer:?}");
        assert!(answer.out.matches("written").count() >= 7 * 3, "{profile}: {answer:?}");
    }
}

#[test]
fn a_listed_interpreter_cannot_start_a_file_in_memory() {
    let bench = with_tools();
    let program = "
import os
def started(make):
    try:
        fd = make()
    except OSError as error:
        return error.strerror
    os.write(fd, open('tool', 'rb').read())
    try:
        os.execve(f'/proc/self/fd/{fd}', ['echo', 'RAN'], {})
    except OSError as error:
        return error.strerror
print(started(lambda: os.memfd_create('x')))
print(started(lambda: os.memfd_create('x', 8)))
print(started(lambda: os.open('/tmp', os.O_TMPFILE | os.O_RDWR, 0o700)))
";
    let answer = bench.run(&["run", "--program", "python3", "--", "python3", "-c", program]);
    let refused = "Operation not permitted\nOperation not permitted\nPermission denied\n";
    assert_eq!(answer.out, refused, "{answer:?}");
    let note = answer.err.lines().find(|line| line.contains("is an interpreter"));
    assert!(note.is_some_and(|note| note.contains("listing it grants all that it can do")), "{answer:?}");
    let held = bench.json(&["show", "--json"]);
    let root = held["held"].as_array().and_then(|all| all.iter().find(|held| held["layer"] == "root"));
    assert!(
        root.is_some_and(|root| root["by"].to_string().contains("grants all that it can do")),
        "{held:#}"
    );
}

#[test]
fn a_profile_can_end_an_action_that_tries_another_program() {
    let bench = with_tools();
    let config = bench.path("home/.config/fumehood");
    fs::create_dir_all(&config).expect("makes a directory");
    let settings = "[profile.closed]\nbased_on = \"strict\"\nunlisted_program = \"end\"\n";
    fs::write(config.join("fumehood.toml"), settings).expect("writes");
    let line = "echo before; ./tool RAN; sleep 5; echo after";
    let run =
        |profile: &str| bench.run(&["run", "-q", "-p", profile, "--program", "sh", "--", "sh", "-c", line]);
    let ended = run("closed");
    assert_eq!((ended.code, ended.out.as_str()), (Some(137), "before\n"), "{ended:?}");
    let document = bench.json(&["show", "--json"]);
    fits("action", &document);
    assert_eq!(document["end"]["ending"], serde_json::json!({"ended": "unlisted-program", "file": "./tool"}));
    let why = bench.json(&["why", "--json"]);
    assert_eq!(why["causes"][0]["code"], "unlisted-program", "{why:#}");

    let refused = run("strict");
    assert_eq!((refused.code, refused.out.as_str()), (Some(0), "before\nafter\n"), "{refused:?}");
    let why = bench.json(&["why", "--json"]);
    let cause =
        why["causes"].as_array().and_then(|all| all.iter().find(|one| one["code"] == "unlisted-program"));
    assert!(cause.is_some_and(|cause| cause["layer"] == "landlock"), "{why:#}");
}
