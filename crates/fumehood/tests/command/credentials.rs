//! `run --credential`: a value stays outside, whatever the command does; and what stands for it is of no use elsewhere.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::bench::{Answer, Bench, fits};
use super::servers::{Authority, CLIENT, Server, events};

const VALUE: &str = "tok-Real-0123456789-AbCdEf";

/// Places with a server of their own, and a credential for it.
struct Forge {
    bench: Bench,
    own: Server,
    other: Server,
}

impl Forge {
    fn new(more: &str) -> Self {
        let (bench, authority) = (Bench::new(), Authority::new());
        let (own, other) = (Server::start(&authority, "127.0.0.1"), Server::start(&authority, "127.0.0.2"));
        let root = bench.path("root.pem");
        authority.write(&root);
        let forge = Self { bench, own, other };
        let settings = format!(
            "[gateway]\nroots = [{:?}]\n\
             [network.web]\nrules = [\"GET https://{}/**\"]\n\
             [credential.forge]\ntype = \"development\"\nowner = \"ada\"\nstand_in = \"FORGE_TOKEN\"\n\
             rules = [\"GET https://{}/api/**\"]\nrepositories = [{:?}]\n{more}",
            root,
            forge.other.at(),
            forge.own.at(),
            forge.bench.path("ws"),
        );
        forge.bench.settings(&settings);
        forge
    }

    fn of_variable() -> Self {
        Self::new("variable = \"FORGE_VALUE\"\n")
    }

    fn words<'w>(options: &[&'w str], requests: &[&'w str]) -> Vec<&'w str> {
        [&["run", "--credential", "forge"], options, &["--", "python3", "-c", CLIENT], requests].concat()
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.bench.command(words);
        command.env("FORGE_VALUE", VALUE);
        command
    }

    fn run(&self, words: &[&str]) -> Answer {
        Answer::of(self.command(words).output().expect("it starts"))
    }

    /// Asks both servers for paths, each as `own|PATH|HEADER` or `other|PATH|HEADER`.
    fn ask(&self, options: &[&str], requests: &[&str]) -> Answer {
        let requests: Vec<String> = requests.iter().map(|request| self.named(request)).collect();
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        self.run(&Self::words(options, &requests))
    }

    fn named(&self, request: &str) -> String {
        let (server, rest) = request.split_once('|').expect("a server and a path");
        let at = if server == "own" { self.own.at() } else { self.other.at() };
        format!("{at}|{rest}")
    }

    fn record(&self) -> std::collections::BTreeMap<String, Vec<String>> {
        events(&self.bench.run(&["audit", "export"]).out)
    }
}

/// Tells in which file below a directory a text is.
fn holds(directory: &Path, text: &str) -> Option<String> {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("has a type");
        if kind.is_dir() {
            if let Some(found) = holds(&path, text) {
                return Some(found);
            }
        } else if kind.is_file() {
            let bytes = fs::read(&path).expect("can be read");
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                return Some(path.display().to_string());
            }
        }
    }
    None
}

#[test]
fn the_value_comes_to_its_server_and_is_nowhere_inside_nor_kept() {
    let forge = Forge::of_variable();
    let answer = forge.ask(
        &["--json"],
        &["own|/api/x|Authorization: Bearer $FORGE_TOKEN", "own|/api/echo", "own|/other", "other|/x"],
    );
    let stars = "*".repeat(VALUE.len());
    assert_eq!(
        answer.out,
        format!("200\n200\nauthorization: Bearer {stars}\n403 no-rule\ntunnel 403\n"),
        "{answer:?}"
    );
    let heads = forge.own.heads();
    assert_eq!(heads.len(), 2);
    assert!(
        heads.iter().all(|head| head.contains(&format!("authorization: Bearer {VALUE}\r\n"))),
        "{heads:?}"
    );
    let document = serde_json::from_str(answer.err.lines().last().expect("a line")).expect("is JSON");
    fits("action", &document);
    assert_eq!(document["end"]["observed"]["network"]["alerts"][0]["kind"], "value-came-back", "{document}");
    let told = forge.ask(&[], &["own|/api/echo"]);
    assert!(told.err.contains("sent the value of the credential `forge` back"), "{told:?}");

    let inside =
        forge.run(&["run", "--credential", "forge", "--", "sh", "-c", "env; cat /proc/*/environ; set"]);
    assert!(!inside.out.contains(VALUE) && !inside.err.contains(VALUE), "{inside:?}");
    let stand_in = |answer: &Answer| {
        let line = answer.out.lines().find_map(|line| line.strip_prefix("FORGE_TOKEN="));
        line.expect("is there").to_owned()
    };
    let again = forge.run(&["run", "--credential", "forge", "--", "env"]);
    assert!(stand_in(&inside).len() == 40 && stand_in(&inside) != stand_in(&again));
    let printed = forge.run(&["run", "--credential", "forge", "--", "echo", VALUE]);
    assert_eq!(printed.out.trim(), VALUE, "it knew the value before");
    assert_eq!(holds(&forge.bench.path("state"), VALUE), None);

    let record = forge.record();
    assert_eq!(record["credential-leased"].len(), 5, "{record:?}");
    assert_eq!(record["credential-ended"].len(), 5);
    assert!(record["credential-ended"].iter().all(|event| event.contains("its action ended: ")));
    assert!(record["credential-alert"][0].contains("value-came-back"), "{record:?}");
    assert!(record["decided"][0].contains("\"credential\":\"forge\""), "{record:?}");
}

#[test]
fn a_stand_in_for_another_server_is_refused_and_recorded() {
    let forge = Forge::of_variable();
    let answer = forge.ask(
        &["--allow-net", "web"],
        &["other|/x", "other|/x|Authorization: Bearer $FORGE_TOKEN", "other|/x?t=$FORGE_TOKEN", "own|/api/x"],
    );
    assert_eq!(answer.out, "200\n403 stand-in-elsewhere\n403 stand-in-elsewhere\n200\n", "{answer:?}");
    assert_eq!(forge.other.heads().len(), 1);
    assert!(!forge.other.heads()[0].contains("authorization"));
    assert!(forge.record()["credential-alert"][0].contains("stand-in-elsewhere"));
}

#[test]
fn a_credential_of_production_serves_no_sandbox_and_one_of_others_not_this() {
    for (more, options, reason) in [
        ("variable = \"FORGE_VALUE\"\n", &[][..], ""),
        (
            "variable = \"FORGE_VALUE\"\n[credential.live]\ntype = \"production\"\nowner = \"ops\"\nvariable = \"X\"\nrules = [\"https://a.test\"]\nrepositories = [\"/\"]\n",
            &["--credential", "live"],
            "credential-production",
        ),
        (
            "variable = \"FORGE_VALUE\"\n[credential.far]\ntype = \"development\"\nowner = \"bea\"\nvariable = \"X\"\nrules = [\"https://a.test\"]\nrepositories = [\"/no/such\"]\n",
            &["--credential", "far"],
            "credential-not-for-this",
        ),
        ("variable = \"NOT_SET\"\n", &[], "NOT_SET is not set"),
    ] {
        let forge = Forge::new(more);
        let answer = forge
            .run(&[&["run", "--json", "--credential", "forge"], options, &["--", "touch", "ran"]].concat());
        let ran = answer.code == Some(0);
        assert_eq!(ran, reason.is_empty(), "{reason}: {answer:?}");
        assert!(answer.err.contains(reason), "{reason}: {answer:?}");
    }
    // Not by the way of a rule of one's own either.
    let forge = Forge::of_variable();
    let unknown = forge.run(&["run", "--credential", "gone", "--", "true"]);
    assert!(unknown.err.contains("there is no credential `gone`: your settings have forge"), "{unknown:?}");
}

#[test]
fn a_value_is_read_from_a_file_of_ones_own_or_from_a_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("token");
    fs::write(&file, format!("{VALUE}\n")).expect("writes");
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
    mode(0o600);
    for more in [
        format!("file = {file:?}\n"),
        format!("command = [\"/bin/cat\", {file:?}]\nplacement = \"basic git\"\n"),
    ] {
        let forge = Forge::new(&more);
        assert_eq!(forge.ask(&[], &["own|/api/x"]).out, "200\n", "{more}");
        let sent = if more.contains("basic") {
            "Basic Z2l0OnRvay1SZWFsLTAxMjM0NTY3ODktQWJDZEVm"
        } else {
            "Bearer tok-"
        };
        assert!(forge.own.heads()[0].contains(&format!("authorization: {sent}")), "{:?}", forge.own.heads());
    }
    mode(0o644);
    let forge = Forge::new(&format!("file = {file:?}\n"));
    let answer = forge.ask(&[], &["own|/api/x"]);
    assert!(answer.err.contains("is not yours alone") && !answer.err.contains("tok-"), "{answer:?}");
    assert!(forge.own.heads().is_empty() && forge.record()["not-started"].len() == 1);
}

/// Waits for a line of a process.
fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

#[test]
fn taking_it_back_reaches_a_run_that_goes_on_and_rotating_lets_it_be_used_again() {
    let forge = Forge::of_variable();
    let requests = [forge.named("own|/api/slow"), forge.named("own|/api/x")];
    let words = Forge::words(&[], &[&requests[0], &requests[1]]);
    let mut command = forge.command(&words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    assert_eq!(line(&mut out), "beginning");
    let listed = forge.bench.json(&["credential", "show", "forge", "--json"]);
    fits("credential", &listed);
    assert_eq!(listed["leases"].as_array().map(Vec::len), Some(1), "{listed}");
    let began = Instant::now();
    let revoked = forge.run(&["credential", "revoke", "forge", "--reason", "seen on a screen", "--json"]);
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_eq!((line(&mut out).as_str(), line(&mut out).as_str()), ("200", "403 credential-ended"));
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(child.wait().expect("ends").success());

    let refused = forge.ask(&["--json"], &["own|/api/x"]);
    assert!(
        refused.err.contains("credential-revoked") && refused.err.contains("seen on a screen"),
        "{refused:?}"
    );
    let again = forge.run(&["credential", "revoke", "forge"]);
    assert_ne!(again.code, Some(0), "{again:?}");
    let same = forge.run(&["credential", "rotate", "forge"]);
    assert!(
        same.code != Some(0) && same.err.contains("the value of `forge` that was used before"),
        "{same:?}"
    );
    let mut rotate = forge.bench.command(&["credential", "rotate", "forge", "--json"]);
    let rotated =
        Answer::of(rotate.env("FORGE_VALUE", "tok-New-9876543210-Zyxw").output().expect("it starts"));
    assert_eq!(rotated.code, Some(0), "{rotated:?}");
    let mut command = forge.bench.command(&Forge::words(&[], &[&requests[1]]));
    let used = Answer::of(command.env("FORGE_VALUE", "tok-New-9876543210-Zyxw").output().expect("it starts"));
    assert_eq!(used.out, "200\n", "{used:?}");
    assert!(forge.own.heads().last().expect("one").contains("Bearer tok-New-9876543210-Zyxw"));
    let record = forge.record();
    assert!(record["credential-revoked"][0].contains("seen on a screen"));
    assert_eq!((record["credential-rotated"].len(), record["credential-ended"].len()), (1, 2), "{record:?}");
}

#[test]
fn its_time_is_over_also_while_a_run_goes_on() {
    let forge = Forge::new("variable = \"FORGE_VALUE\"\nlifetime = \"1s\"\n");
    let answer = forge.ask(&[], &["own|/api/slow", "own|/api/x"]);
    assert_eq!(answer.out, "beginning\n200\n403 credential-ended\n", "{answer:?}");
    let record = forge.record();
    assert_eq!(record["credential-ended"].len(), 1, "{record:?}");
    assert!(record["credential-ended"][0].contains("its time is over"));
}

#[test]
fn a_lease_ends_with_its_action_however_that_ends() {
    let forge = Forge::of_variable();
    let slow = forge.named("own|/api/slow");
    let limited = forge.run(&Forge::words(&["--timeout", "2s"], &[&slow]));
    assert_eq!(limited.out, "beginning\n", "{limited:?}");
    for verb in [&["task", "stop"][..], &["task", "freeze", "--reason", "wait"]] {
        let mut command = forge.command(&Forge::words(&["--new-task"], &[&slow]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        assert_eq!(line(&mut BufReader::new(child.stdout.take().expect("a pipe"))), "beginning");
        let ended = forge.run(verb);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        child.wait().expect("ends");
        let shown = forge.bench.json(&["credential", "show", "forge", "--json"]);
        assert_eq!(shown["leases"].as_array().map(Vec::len), Some(0), "{shown}");
    }
    let ends = forge.record()["credential-ended"].clone();
    let with = |why: &str| ends.iter().filter(|event| event.contains(why)).count();
    assert_eq!((ends.len(), with("passed its wall-time limit"), with("was stopped")), (3, 1, 2), "{ends:?}");
}

#[test]
fn a_lease_whose_action_was_killed_ends_at_the_next_start() {
    let forge = Forge::of_variable();
    let slow = forge.named("own|/api/slow");
    let mut command = forge.command(&Forge::words(&[], &[&slow]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(line(&mut BufReader::new(child.stdout.take().expect("a pipe"))), "beginning");
    child.kill().expect("killed");
    child.wait().expect("ends");
    let shown = forge.bench.json(&["credential", "show", "forge", "--json"]);
    assert_eq!(shown["leases"].as_array().map(Vec::len), Some(0), "{shown}");
    let record = forge.record();
    assert!(record["credential-ended"][0].contains("nobody saw the end of its action"), "{record:?}");
}

#[test]
fn a_canary_on_its_way_out_freezes_the_task_and_ends_what_it_has() {
    let forge = Forge::new("variable = \"FORGE_VALUE\"\n[canary]\nvariables = [\"BACKUP_TOKEN\"]\n");
    let first = forge.run(&["run", "--", "sh", "-c", "echo $BACKUP_TOKEN > kept; echo $BACKUP_TOKEN"]);
    assert_eq!(first.out.trim().len(), 32, "{first:?}");
    let held = forge.bench.json(&["diff", "--json"])["held_back"].clone();
    assert!(held.to_string().contains("the canary `BACKUP_TOKEN`"), "{held}");
    let other = forge.named("other|/$BACKUP_TOKEN");
    let script = format!("{CLIENT}\nimport time\ntime.sleep(60)\n");
    let began = Instant::now();
    let answer = forge.run(&[
        "run",
        "--credential",
        "forge",
        "--allow-net",
        "web",
        "--",
        "python3",
        "-c",
        &script,
        &other,
    ]);
    assert!(began.elapsed() < Duration::from_secs(40), "it was ended");
    assert_eq!(answer.out, "403 canary\n", "{answer:?}");
    assert!(forge.other.heads().is_empty());
    let after = forge.run(&["run", "--json", "--", "true"]);
    assert!(
        after.code == Some(125)
            && after.err.contains("is frozen")
            && after.err.contains("the canary `BACKUP_TOKEN`"),
        "{after:?}"
    );
    let record = forge.record();
    let kinds = ["\"kind\":\"canary-kept\"", "\"kind\":\"canary\""];
    let alerts = &record["credential-alert"];
    assert!(alerts.iter().zip(kinds).all(|(alert, kind)| alert.contains(kind)), "{alerts:?}");
    assert_eq!(record["task-frozen"].len(), 1, "{record:?}");
    assert!(record["credential-ended"][0].contains("canary"), "{record:?}");
}
