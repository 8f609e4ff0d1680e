//! Differences of layers, as people read them and as git takes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Bench, snapshot};
use inspect::diff::{Body, DiffBounds, differences, for_people, patch};

fn bench() -> Bench {
    let mut bench = Bench::new();
    let write = |name: &str, content: &str| fs::write(bench.base().join(name), content).expect("written");
    write("edit", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n");
    write("gone", "bye\n");
    write("mode", "same\n");
    write("ends", "no line feed");
    write("crlf", "one\r\ntwo\r\n");
    write("binary", "a\0b");
    write("blank name", "old\n");
    write("becomes", "a file\n");
    symlink("edit", bench.base().join("link")).expect("linked");
    let upper = bench.empty_layer();
    let write = |name: &str, content: &str| fs::write(upper.join(name), content).expect("written");
    write("edit", "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\neight\nnine\n");
    write("mode", "same\n");
    fs::set_permissions(upper.join("mode"), fs::Permissions::from_mode(0o755)).expect("set");
    write("ends", "with one\n");
    write("crlf", "one\r\n2\r\n");
    write("binary", "a\0c");
    write("blank name", "new\n");
    write("empty", "");
    write("n\u{e9}w \"quoted\"\n", "x");
    symlink("mode", upper.join("link")).expect("linked");
    symlink("edit", upper.join("becomes")).expect("linked");
    fs::create_dir(upper.join("dir")).expect("made");
    write("dir/in", "\u{1b}[2Jclear\u{202e}\n");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        upper.join("gone"),
        rustix::fs::FileType::CharacterDevice,
        0.into(),
        0,
    )
    .expect("marked");
    bench
}

#[test]
fn people_read_what_changed_and_nothing_drives_their_terminal() {
    let bench = bench();
    let all = differences(&bench.stack(1), &bench.read().changes, &DiffBounds::default()).expect("are read");
    let expected = r#"changed becomes (link, was file)
+-> edit
changed binary
  it is no text
changed blank name
@@ -1 +1 @@
-old
+new
changed crlf
  each line ends in a carriage return
@@ -1,2 +1,2 @@
 one
-two
+2
created dir (directory)
created dir/in (mode 0644)
@@ -0,0 +1 @@
+\u{1b}[2Jclear\u{202e}
changed edit
@@ -1,8 +1,9 @@
 one
 two
-three
+THREE
 four
 five
 six
 seven
 eight
+nine
created empty (mode 0644)
changed ends
@@ -1 +1 @@
-no line feed
\ no line feed at the end
+with one
deleted gone
@@ -1 +0,0 @@
-bye
changed link
--> edit
+-> mode
changed mode (mode 0755, was 0644)
created néw "quoted"\n (mode 0644)
@@ -0,0 +1 @@
+x
\ no line feed at the end
"#;
    assert_eq!(for_people(&all), expected);
    let json = serde_json::to_string(&all).expect("has a JSON form");
    let back: Vec<inspect::diff::Difference> = serde_json::from_str(&json).expect("is read back");
    assert_eq!(back, all);
}

#[test]
fn git_applies_the_patch() {
    let bench = bench();
    let patch = patch(&bench.stack(1), &bench.read().changes, 1 << 20).expect("is written");
    assert_eq!(patch.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(), ["binary"]);
    let after = bench.flatten("after");
    let applied = bench.dir.path().join("applied");
    assert!(
        Command::new("cp").arg("-a").arg(bench.base()).arg(&applied).status().expect("cp starts").success()
    );
    git_apply(&applied, &patch.bytes);
    let (mut wanted, got) = (snapshot(&after), snapshot(&applied));
    wanted.insert("binary".into(), got[Path::new("binary")].clone());
    assert_eq!(got, wanted);
}

fn git_apply(directory: &Path, patch: &[u8]) {
    let mut git = Command::new("git")
        .args(["-c", "core.fileMode=true", "apply", "--whitespace=nowarn"])
        .current_dir(directory)
        .env("GIT_CEILING_DIRECTORIES", directory.parent().expect("in a directory"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git starts");
    std::io::Write::write_all(&mut git.stdin.take().expect("a pipe"), patch).expect("written");
    assert!(git.wait().expect("ends").success(), "{}", String::from_utf8_lossy(patch));
}

#[test]
fn what_is_too_long_is_cut_and_said_to_be() {
    let mut bench = Bench::new();
    let upper = bench.empty_layer();
    fs::write(upper.join("long"), "line\n".repeat(1000)).expect("written");
    fs::write(upper.join("more"), "line\n".repeat(1000)).expect("written");
    fs::write(upper.join("large"), "x".repeat(5000)).expect("written");
    let bounds = DiffBounds { file: 5000, lines_of_file: 600, lines: 1000 };
    fs::write(upper.join("larger"), "x".repeat(5001)).expect("written");
    let all = differences(&bench.stack(1), &bench.read().changes, &bounds).expect("are read");
    let left_out: Vec<Option<u64>> = all
        .iter()
        .map(|difference| match &difference.body {
            Body::Text { lines_left_out, .. } => Some(*lines_left_out),
            _ => None,
        })
        .collect();
    assert_eq!(left_out, [Some(0), None, Some(400), Some(601)]);
    assert!(for_people(&all).contains("  601 more lines are not shown\n"));
    assert!(for_people(&all).contains("created larger (mode 0644)\n  it is too large to be compared here\n"));
}

#[test]
fn texts_that_are_dear_to_compare_do_not_hang() {
    let mut bench = Bench::new();
    let text = |seed: u64| {
        let mut state = seed;
        let mut line = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{}\n", state >> 60)
        };
        (0..100_000).map(|_| line()).collect::<String>()
    };
    fs::write(bench.base().join("a"), text(1)).expect("written");
    let upper = bench.empty_layer();
    fs::write(upper.join("a"), text(2)).expect("written");
    let started = std::time::Instant::now();
    let changes = bench.read().changes;
    differences(&bench.stack(1), &changes, &DiffBounds::default()).expect("are read");
    // Without the deadline this takes minutes.
    assert!(started.elapsed().as_secs() < 60);
}
