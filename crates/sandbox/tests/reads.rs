//! Which files a command opened: observed as root, said to be unobserved as an ordinary user.

mod bench;

use bench::Bench;
use model::enforcement::{Layer, Level};
use model::evidence::Reads;
use model::grant::Input;
use model::{OsText, Profile};
use sandbox::SandboxError;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a line, and returns what it opened below the workspace, without the way there.
fn opened(bench: &mut Bench, line: &str) -> (Vec<String>, bool) {
    let run = bench.shell(line);
    let Reads { files, complete } = run.0.observed.reads.clone().expect("root observes reads");
    let top = format!("{}/", bench.workspace().display());
    let name = |path: &OsText| path.to_string().replace(&top, "");
    let mut names: Vec<String> = files.iter().map(name).collect();
    names.sort_unstable();
    (names, complete)
}

#[test]
fn root_sees_which_files_of_the_workspace_and_the_inputs_are_opened() {
    let mut bench = Bench::new();
    for name in ["a.txt", "below/b.txt", "odd\n\u{1b}[31mname", "never.txt"] {
        bench.file(name, "text");
    }
    let data = tempfile::tempdir().expect("a directory");
    std::fs::write(data.path().join("set"), "numbers").expect("writes");
    let source = OsText::try_from(data.path()).expect("a path");
    bench.grant.inputs.push(Input { name: "data".to_owned(), source });
    if !is_root() {
        assert_eq!(bench.shell("cat a.txt").0.observed.reads, None, "an ordinary user cannot watch a mount");
        return;
    }
    let line =
        "cat a.txt below/b.txt a.txt odd* /inputs/data/set /etc/passwd; ls -l never.txt; echo new > made";
    let (files, complete) = opened(&mut bench, line);
    assert!(complete);
    let odd = OsText::literal("odd\n\u{1b}[31mname").to_string();
    let expected = ["/inputs/data/set", "a.txt", "below/b.txt", "made", odd.as_str()];
    assert_eq!(files, expected);
    // What an earlier action left in its layer counts as well.
    assert_eq!(opened(&mut bench, "cat made"), (vec!["made".to_owned()], true));
}

#[test]
fn each_file_is_told_once_and_too_many_are_said_to_be_too_many() {
    let mut bench = Bench::under(Profile::default_profile());
    bench.file("one", "x");
    if !is_root() {
        return;
    }
    let (files, complete) = opened(&mut bench, "i=0; while [ $i -lt 20000 ]; do : < one; i=$((i+1)); done");
    assert_eq!((files, complete), (vec!["one".to_owned()], true));
    let line =
        "mkdir d; seq 1 6000 | while read i; do : > d/$i; done; seq 1 6000 | while read i; do : < d/$i; done";
    let (files, complete) = opened(&mut bench, line);
    assert_eq!((files.len(), complete), (5000, false));
}

#[test]
fn what_cannot_be_opened_by_the_watcher_does_not_stop_it() {
    let mut bench = Bench::new();
    bench.file("plain", "x");
    if !is_root() {
        return;
    }
    // Whoever opens a pipe waits for its other end, but for who says that he will not.
    let line = "mkfifo pipe; echo through > pipe & cat pipe; : < plain; chmod 0 plain; exec 3<> pipe; cat plain; rm pipe";
    let (files, _) = opened(&mut bench, line);
    assert!(files.contains(&"plain".to_owned()), "{files:?}");
}

#[test]
fn a_profile_can_demand_that_reads_are_observed() {
    let mut bench = Bench::new();
    bench.grant.profile.reads = Level::Watched;
    match bench.prepare() {
        Ok(prepared) => {
            assert!(is_root(), "an ordinary user cannot watch a mount");
            let held = prepared.report().held.iter().find(|held| held.layer == Layer::Reads);
            assert_eq!(held.map(|held| held.level), Some(Level::Watched));
        }
        Err(SandboxError::NotEnforceable(short)) => {
            assert!(!is_root(), "{short:?}");
            assert!(short.iter().any(|short| short.layer == Layer::Reads && short.why.contains("only root")));
        }
        Err(other) => panic!("{other:?}"),
    }
}
