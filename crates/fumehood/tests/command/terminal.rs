//! At a terminal: one of the command's own, questions, colour, and output that cannot drive ours.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::bench::Bench;

/// How long a test waits for something to be printed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A person at a terminal, and what they have seen so far.
pub(crate) struct Person {
    terminal: File,
    printed: Receiver<Vec<u8>>,
    seen: String,
    child: std::process::Child,
}

impl Person {
    /// Starts a program at a terminal of 33 lines and 99 columns.
    pub(crate) fn at_terminal(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("is ours");
        unlockpt(&terminal).expect("is ours");
        let name = ptsname(&terminal, Vec::new()).expect("has a name").into_string().expect("is text");
        let own = OpenOptions::new().read(true).write(true).open(name).expect("opens");
        tcsetwinsize(&own, Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 })
            .expect("takes a size");
        let end = || own.try_clone().expect("a descriptor");
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().expect("it starts");
        drop((own, command));
        let terminal = File::from(terminal);
        let mut reader = terminal.try_clone().expect("a descriptor");
        let (sender, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other end is closed answers with an error.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let _ = sender.send(bytes[..read].to_vec());
            }
        });
        Self { terminal, printed, seen: String::new(), child }
    }

    /// Waits until something is printed.
    pub(crate) fn sees(&mut self, text: &str) {
        let begin = Instant::now();
        while !self.seen.contains(text) {
            assert!(begin.elapsed() < PATIENCE, "`{text}` did not come: {}", self.seen);
            if let Ok(bytes) = self.printed.recv_timeout(Duration::from_millis(100)) {
                self.seen.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// Types a line after something was printed.
    pub(crate) fn answers(&mut self, question: &str, line: &str) {
        self.sees(question);
        self.seen.clear();
        self.terminal.write_all(format!("{line}\n").as_bytes()).expect("takes a line");
    }

    /// Waits for the end, and returns the exit code and what was printed since the last answer.
    pub(crate) fn leaves(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it ends").code();
        while let Ok(bytes) = self.printed.recv_timeout(Duration::from_millis(500)) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (code, self.seen)
    }
}

#[test]
fn a_command_gets_a_terminal_of_its_own() {
    let bench = Bench::new();
    let line = "tty; stty size; printf '\\033[1mbold\\033[0m\\n'; read word; echo \"got $word\"; exit 5";
    let mut person = Person::at_terminal(bench.command(&["run", "-t", "--", "sh", "-c", line]));
    person.sees("33 99");
    person.sees("\x1b[1mbold");
    person.sees("/dev/pts/0");
    person.answers("bold", "a word");
    let (code, seen) = person.leaves();
    assert!(code == Some(5) && seen.contains("got a word"), "{code:?} {seen}");
}

#[test]
fn a_shell_is_one_action() {
    let bench = Bench::new();
    let mut person = Person::at_terminal(bench.command(&["shell", "--apply", "never", "--", "/bin/sh"]));
    person.answers("$", "echo $((6*7)) > answer; exit 4");
    assert_eq!(person.leaves().0, Some(4));
    assert_eq!(bench.sh("cat answer").out, "42\n");
    let log = bench.json(&["log", "--json"]);
    assert_eq!(log["log"].as_array().map(Vec::len), Some(2), "{log:#}");
}

#[test]
fn output_cannot_drive_a_terminal_that_is_not_the_command_s_own() {
    let bench = Bench::new();
    let line = "printf '\\033[2J\\033]0;title\\007ok\\n'";
    let (code, seen) = Person::at_terminal(bench.command(&["run", "--", "sh", "-c", line])).leaves();
    assert_eq!(code, Some(0));
    assert!(seen.contains("\\u{1b}[2J\\u{1b}]0;title\\u{7}ok") && !seen.contains("\x1b[2J"), "{seen}");
}

#[test]
fn what_is_said_begins_on_a_line_of_its_own_at_a_terminal_too() {
    let bench = Bench::new();
    for words in [&["run", "--", "printf", "here"][..], &["run", "-t", "--", "printf", "here"]] {
        let (code, seen) = Person::at_terminal(bench.command(words)).leaves();
        assert!(
            code == Some(0) && seen.contains("here\r\n") && seen.contains("\nfumehood: "),
            "{words:?} {seen}"
        );
    }
}

#[test]
fn a_person_is_asked_before_anything_is_applied() {
    let bench = Bench::new();
    let line = "echo x > made; mkdir -p .github/workflows; echo ci > .github/workflows/ci.yml";
    let ask = || Person::at_terminal(bench.command(&["run", "--", "sh", "-c", line]));
    let mut person = ask();
    person.answers("write 1 changes to", "n");
    assert_eq!(person.leaves().0, Some(0), "the command's own");
    assert!(!bench.file("made").exists());
    let mut person = Person::at_terminal(bench.command(&["apply"]));
    person.answers("write 1 changes to", "y");
    person.answers("is protected", "no");
    let (code, seen) = person.leaves();
    assert!(code == Some(1) && seen.contains("held back"), "{code:?} {seen}");
    assert!(bench.file("made").exists() && !bench.file(".github").exists());
    let mut person = Person::at_terminal(bench.command(&["apply"]));
    person.answers("is protected", "y");
    person.leaves();
    assert_eq!(bench.read(".github/workflows/ci.yml"), "ci\n");
}

#[test]
fn colour_follows_the_terminal_and_the_wish() {
    let bench = Bench::new();
    bench.sh("echo more >> README");
    let shown = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = bench.command(words);
        command.envs(variables.iter().copied());
        Person::at_terminal(command).leaves().1
    };
    assert!(shown(&[], &["diff"]).contains("\x1b[32m+more"));
    assert!(!shown(&[("NO_COLOR", "1")], &["diff"]).contains('\x1b'));
    assert!(!shown(&[], &["diff", "--no-color"]).contains('\x1b'));
    assert!(!bench.run(&["diff"]).out.contains('\x1b'), "a pipe");
    assert!(bench.run(&["diff", "--color", "always"]).out.contains('\x1b'));
}
