//! Answers that people give from accounts of their own.
//!
//! The machine's settings are those of a mount namespace that each program of such a test gets, so nothing of the machine
//! changes. They need root: two accounts are part of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::approvals::state;
use super::bench::{Answer, Bench, fits};
use super::terminal::Person;

/// An account that is nobody's here; it has the role of a release manager.
const GRACE: u32 = 64_777;
/// Another one, without that role.
const LIN: u32 = 64_778;
/// What is not tried runs later, with the yes.
const LATER: [&str; 6] = ["run", "--env", "A=1", "--", "touch", "made"];
/// Shows the machine's settings to a program, as an account that logged in as itself; the program may stand where that account
/// cannot go.
const ON_THE_MACHINE: &str = r#"top=$1; program=$2; account=$3; shift 3
mount -t overlay overlay -o "lowerdir=$top/etc:/etc" /etc && mount --bind "$program" "$top/fumehood" || exit 99
{ echo "$account" > /proc/self/loginuid; } 2>/dev/null || :
exec setpriv --reuid "$account" --regid "$account" --clear-groups "$top/fumehood" "$@""#;

/// A machine whose settings say where people of other accounts answer.
struct Machine {
    bench: Bench,
}

impl Machine {
    /// Returns a machine under whose rules every run of `touch` needs this; nothing where we are not root, and cannot be
    /// two accounts.
    fn wanting(quorum: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let bench = Bench::wanting(quorum);
        fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).expect("is ours");
        for (directory, mode) in
            [("etc", 0o755), ("etc/fumehood", 0o755), ("answers", 0o1777), ("out", 0o755)]
        {
            fs::create_dir(bench.path(directory)).expect("makes a directory");
            fs::set_permissions(bench.path(directory), fs::Permissions::from_mode(mode)).expect("is ours");
        }
        fs::write(bench.path("fumehood"), "").expect("writes");
        let machine = Self { bench };
        machine.settings(&format!("[role.release-manager]\npeople = [{GRACE}, 0]\n"));
        Some(machine)
    }

    fn settings(&self, roles: &str) {
        let answers = self.bench.path("answers");
        let text = format!("[approvals]\nanswers = \"{}\"\n{roles}", answers.display());
        fs::write(self.bench.path("etc/fumehood/fumehood.toml"), text).expect("writes");
    }

    /// Returns the program as an account, root's with the state of the owner and another's with nothing.
    fn command(&self, account: u32, words: &[&str]) -> Command {
        let mut command = self.bench.command_of(Path::new("/usr/bin/unshare"), &["--mount", "sh", "-c"]);
        command.args([ON_THE_MACHINE, "sh"]).arg(self.bench.path("")).arg(env!("CARGO_BIN_EXE_fumehood"));
        command.arg(account.to_string()).args(words);
        if account != 0 {
            command.env("HOME", "/").env_remove("FUMEHOOD_STATE_DIR").current_dir("/");
        }
        command
    }

    fn run(&self, account: u32, words: &[&str]) -> Answer {
        Answer::of(self.command(account, words).output().expect("it starts"))
    }

    fn json(&self, words: &[&str]) -> Value {
        let answer = self.run(0, words);
        serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    /// Runs what needs a yes, and returns the request.
    fn asks(&self, words: &[&str]) -> String {
        let answer = self.run(0, words);
        assert_eq!(answer.code, Some(126), "{answer:?}");
        self.json(&["show", "--json"])["approval"]["approval"].as_str().expect("is asked").to_owned()
    }

    fn export(&self, approval: &str) -> PathBuf {
        let file = self.bench.path("out").join(format!("{approval}.json"));
        let name = file.to_str().expect("UTF-8");
        let document = self.json(&["approvals", "export", approval, "--to", name, "--json"]);
        fits("approval-export", &document);
        file
    }

    fn sign(&self, account: u32, file: &Path, answer: &str) -> Answer {
        let file = file.to_str().expect("UTF-8");
        self.run(
            account,
            &["approvals", "sign", file, "--answer", answer, "--reason", "read it", "--yes", "--json"],
        )
    }

    /// Signs, and returns the file of the answer.
    fn signed(&self, account: u32, file: &Path, answer: &str) -> PathBuf {
        let signed = self.sign(account, file, answer);
        let document: Value =
            serde_json::from_str(&signed.out).unwrap_or_else(|error| panic!("{error}: {signed:?}"));
        fits("approval-signed", &document);
        document["answers"][0]["file"].as_str().expect("a path").into()
    }

    /// Looks at a request, and returns where it stands.
    fn looks(&self, approval: &str) -> String {
        let document = self.json(&["approvals", "show", approval, "--json"]);
        fits("approval", &document);
        document["approval"]["state"].as_str().expect("a word").to_owned()
    }

    fn events(&self, name: &str) -> usize {
        self.run(0, &["audit", "show"]).out.lines().filter(|line| line.contains(&format!(" {name} "))).count()
    }

    /// Puts a file among the answers as an account would.
    fn leaves(&self, account: u32, name: &str, text: &str) -> PathBuf {
        let path = self.bench.path("answers").join(name);
        fs::write(&path, text).expect("writes");
        chown(&path, Some(account), Some(account)).expect("is root");
        path
    }

    /// Looks at a request whose only new answer is to be refused for a reason, and not silently.
    fn refuses(&self, approval: &str, why: &str) {
        let before = self.events("approval-refused");
        let shown = self.run(0, &["approvals", "show", approval]);
        assert!(shown.err.contains("is not taken") && shown.err.contains(why), "{why}: {shown:?}");
        assert_eq!(self.events("approval-refused"), before + 1, "{why}: it is on the record");
        let again = self.run(0, &["approvals", "show", approval]);
        assert!(!again.err.contains("is not taken"), "once: {again:?}");
        assert_eq!(self.events("approval-refused"), before + 1, "{why}: once");
        assert_eq!(self.looks(approval), "open", "{why}");
    }
}

#[test]
fn a_second_account_gives_the_yes_that_the_owner_cannot_give() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    assert_eq!(machine.run(0, &["approvals", "approve", &approval, "--yes"]).code, Some(125));
    let shown = machine.run(0, &["approvals", "show", &approval]).out;
    assert!(shown.contains("approvals sign FILE --answer approve"), "it says how: {shown}");
    let file = machine.export(&approval);
    let signed = machine.sign(GRACE, &file, "approve");
    assert!(
        signed.code == Some(0) && signed.err.contains("touch") && signed.err.contains("digest"),
        "{signed:?}"
    );
    assert_eq!(machine.looks(&approval), "given");
    let answer = &machine.json(&["approvals", "show", &approval, "--json"])["answers"][0];
    assert_eq!((&answer["account"], &answer["reason"]), (&GRACE.into(), &"read it".into()), "{answer:#}");
    assert_eq!(machine.run(0, &LATER).code, Some(0));
    assert_eq!(machine.looks(&approval), "used");
    assert_ne!(machine.asks(&LATER), approval, "once");
    assert_eq!((machine.events("approval-exported"), machine.events("approval-answered")), (1, 1));
}

#[test]
fn what_was_tried_is_kept_with_the_yes_of_a_second_account_and_a_repeated_request_finds_it() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let tried = machine.asks(&["run", "--", "touch", "made"]);
    machine.signed(GRACE, &machine.export(&tried), "approve");
    assert_eq!(machine.looks(&tried), "kept");
    assert!(machine.run(0, &["run", "--quiet", "--", "ls"]).out.contains("made"));
    let later = machine.asks(&LATER);
    machine.signed(GRACE, &machine.export(&later), "approve");
    assert_eq!(machine.run(0, &LATER).code, Some(0), "nobody has to look first");
    let denied = machine.asks(&["run", "--", "touch", "other"]);
    machine.signed(GRACE, &machine.export(&denied), "deny");
    assert_eq!(machine.looks(&denied), "refused");
}

#[test]
fn two_people_are_the_owner_and_somebody_of_another_account() {
    let Some(machine) = Machine::wanting("release-manager:2") else { return };
    let approval = machine.asks(&LATER);
    let file = machine.export(&approval);
    machine.signed(GRACE, &file, "approve");
    assert_eq!(machine.looks(&approval), "open", "one is missing");
    machine.signed(GRACE, &file, "approve");
    machine.refuses(&approval, "has said yes already");
    assert_eq!(state(&machine.run(0, &["approvals", "approve", &approval, "--yes", "--json"])), "given");
    assert_eq!(machine.run(0, &LATER).code, Some(0));
}

#[test]
fn an_answer_that_was_taken_back_before_the_start_counts_no_more() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    let answer = machine.signed(GRACE, &machine.export(&approval), "approve");
    assert_eq!(machine.looks(&approval), "given");
    fs::remove_file(&answer).expect("is there");
    assert_ne!(machine.asks(&LATER), approval, "it does not run");
    assert_eq!(machine.looks(&approval), "void");
    let other = machine.asks(&["run", "--env", "A=2", "--", "touch", "made"]);
    let answer = machine.signed(GRACE, &machine.export(&other), "approve");
    assert_eq!(machine.looks(&other), "given");
    chown(&answer, Some(LIN), Some(LIN)).expect("is root");
    assert_eq!(machine.run(0, &["run", "--env", "A=2", "--", "touch", "made"]).code, Some(126));
    assert_eq!(machine.looks(&other), "void", "whose it is is looked at again");
}

#[test]
fn what_the_database_says_of_another_account_is_no_answer_without_its_file() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    machine.signed(GRACE, &machine.export(&approval), "approve");
    assert_eq!(machine.looks(&approval), "given");
    let given = fs::read_dir(machine.bench.path("answers"))
        .expect("is there")
        .next()
        .expect("one")
        .expect("is there");
    fs::remove_file(given.path()).expect("is there");
    let database = machine.bench.path("state/fumehood.db");
    let connection = rusqlite::Connection::open(&database).expect("opens");
    let answers: String = connection
        .query_row("SELECT answers FROM approvals WHERE id = ?1", [&approval], |row| row.get(0))
        .expect("reads");
    let name = format!(",\"file\":\"{}\"", given.file_name().display());
    assert!(answers.contains(&name), "{answers}");
    drop(connection);
    for answers in [answers.clone(), answers.replace(&name, "")] {
        let connection = rusqlite::Connection::open(&database).expect("opens");
        let sql =
            "UPDATE approvals SET answers = ?1, state = 'given', closed = NULL, why = NULL WHERE id = ?2";
        connection.execute(sql, [answers.as_str(), approval.as_str()]).expect("writes");
        drop(connection);
        assert_eq!(machine.run(0, &LATER).code, Some(126), "{answers}");
        assert_eq!(machine.looks(&approval), "void");
    }
}

#[test]
fn answers_that_are_forged_copied_changed_or_about_something_else_are_refused_and_recorded() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    let file = machine.export(&approval);
    let kept = machine.signed(GRACE, &file, "approve");
    let text = fs::read_to_string(&kept).expect("is there");
    fs::remove_file(&kept).expect("is there");
    let name = |number: u32| format!("{approval}.{GRACE}.{number:020x}.json");
    let written = |number: u32, change: &dyn Fn(&mut Value)| {
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["name"] = name(number).into();
        change(&mut answer);
        answer.to_string()
    };
    let nothing: &dyn Fn(&mut Value) = &|_| {};
    machine.leaves(0, &name(1), &written(1, nothing));
    machine.refuses(&approval, "the owner's own");
    machine.leaves(LIN, &name(2), &written(2, nothing));
    machine.refuses(&approval, "none of the roles");
    machine.leaves(GRACE, &name(3), &written(3, &|answer| answer["through"] = serde_json::json!([0])));
    machine.refuses(&approval, "through the owner's account");
    machine.leaves(GRACE, &name(4), &text);
    machine.refuses(&approval, "another name");
    let other = format!("sha256:{}", "0".repeat(64));
    for (number, key, value, why) in [
        (5, "action", shaped(&text, "action", &other), "another action"),
        (6, "shown", shaped(&text, "shown", &other), "none that was written down"),
        (7, "store", "log-aaaaaaaaaaaaaaaa".into(), "another state directory"),
        (8, "expires", 7.into(), "ends at another time"),
        (9, "approval", "apr-aaaaaaaaaaaaaaaa".into(), "another request"),
        (10, "format", "fumehood-answer-9".into(), "another version"),
        (11, "answer", "taken-back".into(), "neither a yes nor a no"),
        (12, "surplus", 1.into(), "does not say what an answer says"),
    ] {
        machine.leaves(GRACE, &name(number), &written(number, &|answer| answer[key] = value.clone()));
        machine.refuses(&approval, why);
    }
    machine.leaves(GRACE, &name(13), "\u{1b}[2J");
    machine.refuses(&approval, "does not say what an answer says");
    symlink(machine.bench.path("out/elsewhere"), machine.bench.path("answers").join(name(14)))
        .expect("links");
    machine.refuses(&approval, "is a link");
    let twice = machine.leaves(GRACE, &name(15), &written(15, nothing));
    fs::hard_link(&twice, machine.bench.path("out/second")).expect("links");
    machine.refuses(&approval, "has a second name");
    let open = machine.leaves(GRACE, &name(16), &written(16, nothing));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o666)).expect("is root");
    machine.refuses(&approval, "can be written by others");
    // And what is in order is taken.
    machine.leaves(GRACE, &name(17), &written(17, nothing));
    assert_eq!(machine.looks(&approval), "given");
}

/// Returns a digest in the letters of another one.
fn shaped(text: &str, key: &str, zeros: &str) -> Value {
    let answer: Value = serde_json::from_str(text).expect("JSON");
    let digest = answer[key].as_str().expect("a digest");
    let digits = &zeros[zeros.len() - 64..];
    format!("{}{digits}", &digest[..digest.len() - 64]).into()
}

#[test]
fn an_answer_is_used_for_one_request_and_not_for_the_next_one_like_it() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let first = machine.asks(&LATER);
    let answer = machine.signed(GRACE, &machine.export(&first), "approve");
    assert_eq!(machine.run(0, &LATER).code, Some(0));
    let second = machine.asks(&LATER);
    let replayed = machine.bench.path("answers").join(format!("{second}.{GRACE}.{:020x}.json", 1));
    fs::rename(&answer, &replayed).expect("is root");
    machine.refuses(&second, "another name");
    // Somebody who looks after the end gets no answer to what is over.
    let file = machine.bench.path("out").join(format!("{first}.json"));
    machine.signed(GRACE, &file, "approve");
    let shown = machine.run(0, &["approvals", "show", &first]);
    assert!(shown.err.contains("is used already"), "{shown:?}");
}

#[test]
fn a_text_that_was_changed_on_its_way_is_not_signed_or_not_taken() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    let file = machine.export(&approval);
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut document: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("is there")).expect("JSON");
        change(&mut document);
        let path = machine.bench.path("out").join(name);
        fs::write(&path, document.to_string()).expect("writes");
        path
    };
    let harmless =
        changed("harmless", &|document| document["requests"][0]["text"] = "only a harmless list\n".into());
    machine.signed(GRACE, &harmless, "approve");
    machine.refuses(&approval, "none that was written down");
    for (name, says, change) in [
        ("hidden", "drive a terminal", ("text", Value::from("ls\u{1b}[8m"))),
        ("late", "has expired", ("expires", 7.into())),
        ("more", "nothing that this version", ("more", 1.into())),
    ] {
        let path = changed(name, &|document| document["requests"][0][change.0] = change.1.clone());
        let signed = machine.sign(GRACE, &path, "approve");
        assert!(signed.code == Some(125) && signed.out.contains(says), "{name}: {signed:?}");
    }
    for (name, text) in [("empty", ""), ("other", "{\"format\":\"x\"}"), ("list", "[]")] {
        let path = machine.bench.path("out").join(name);
        fs::write(&path, text).expect("writes");
        assert_eq!(machine.sign(GRACE, &path, "approve").code, Some(125), "{name}");
    }
}

#[test]
fn whoever_came_through_the_owners_account_or_an_agent_signs_nothing() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    let file = machine.export(&approval);
    let words = ["approvals", "sign", file.to_str().expect("UTF-8"), "--answer", "approve", "--yes"];
    let through = machine.command(GRACE, &words).env("SUDO_UID", "0").output().expect("it starts");
    let through = Answer::of(through);
    assert!(through.code == Some(125) && through.err.contains("came through it"), "{through:?}");
    let own = machine.sign(0, &file, "approve");
    assert!(own.code == Some(125) && own.out.contains("owns what is asked for"), "{own:?}");
    let blind = ["approvals", "sign", file.to_str().expect("UTF-8"), "--answer", "approve"];
    let blind = Answer::of(machine.command(GRACE, &blind).stdin(Stdio::null()).output().expect("it starts"));
    assert!(blind.code == Some(125) && blind.err.contains("no terminal"), "{blind:?}");
    // From now on this very process is one that an agent came through.
    let asked = machine.run(0, &["run", "--agent", "other", "--env", "A=2", "--", "touch", "made"]);
    assert_eq!(asked.code, Some(126));
    fs::remove_file(&file).expect("is there");
    let signed = machine.sign(GRACE, &machine.export(&approval), "approve");
    assert!(signed.code == Some(125) && signed.out.contains("nothing is signed"), "{signed:?}");
    assert_eq!(fs::read_dir(machine.bench.path("answers")).expect("is there").count(), 0);
}

#[test]
fn where_answers_are_is_said_by_the_machines_file_alone_and_must_keep_them_apart() {
    let Some(machine) = Machine::wanting("release-manager:not-owner") else { return };
    let approval = machine.asks(&LATER);
    let file = machine.export(&approval);
    machine.signed(GRACE, &file, "approve");
    fs::set_permissions(machine.bench.path("answers"), fs::Permissions::from_mode(0o777)).expect("is ours");
    let shown = machine.run(0, &["approvals", "show", &approval]);
    assert!(shown.err.contains("chmod +t") && shown.out.contains("needs a yes"), "{shown:?}");
    let signed = machine.sign(GRACE, &file, "approve");
    assert!(signed.code == Some(125) && signed.out.contains("chmod +t"), "{signed:?}");
    fs::set_permissions(machine.bench.path("answers"), fs::Permissions::from_mode(0o1777)).expect("is ours");
    let settings = machine.bench.path("etc/fumehood/fumehood.toml");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o664)).expect("is ours");
    let shown = machine.run(0, &["approvals", "show", &approval]);
    assert!(shown.code == Some(125) && shown.err.contains("chmod go-w"), "{shown:?}");
    fs::remove_file(&settings).expect("is there");
    machine
        .bench
        .settings(&format!("[approvals]\nanswers = \"{}\"\n", machine.bench.path("answers").display()));
    let own = machine.run(0, &["approvals", "show", &approval]);
    assert!(own.code == Some(125) && own.err.contains("only the machine's file"), "{own:?}");
    machine.bench.settings(&format!("policy = \"{}\"\n", machine.bench.path("rules.cedar").display()));
    let without = machine.run(0, &["approvals", "show", &approval]);
    assert!(without.out.contains("name no place for answers"), "{without:?}");
    assert_eq!(machine.run(0, &LATER).code, Some(126));
}

#[test]
fn a_person_signs_what_they_saw_at_a_terminal_and_only_with_a_plain_yes() {
    let Some(machine) = Machine::wanting("person:not-owner") else { return };
    let approval = machine.asks(&["run", "--", "touch", "made"]);
    let file = machine.export(&approval);
    let words = ["approvals", "sign", file.to_str().expect("UTF-8"), "--answer", "approve"];
    let answers = |word: &str| {
        let mut person = Person::at_terminal(machine.command(LIN, &words));
        person.sees("diff --git a/made b/made");
        person.answers("Say yes to exactly these 1?", word);
        person.leaves()
    };
    assert_eq!(answers("n").0, Some(1));
    assert_eq!(machine.looks(&approval), "open");
    let (code, seen) = answers("y");
    assert!(code == Some(0) && seen.contains("has your yes, as long as"), "{code:?} {seen}");
    assert_eq!(machine.looks(&approval), "kept");
}
