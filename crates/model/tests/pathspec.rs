//! Pathspecs against git itself, which says what they mean.

use std::fs;
use std::path::Path;

use model::{Pathspecs, WorkspacePath};

const FILES: [&str; 22] = [
    "A.RS",
    "Src/B",
    "[x",
    "a",
    "a*b",
    "a]",
    "abc/abc",
    "axb",
    "b.rs",
    "d[r/f",
    "dir/f",
    "dur/g/h",
    "foo.c",
    "foo/bar/baz.c",
    "foobar",
    "src/a.rs",
    "src/ab.rs",
    "src/deep/x/a.rs",
    "src/gen/a",
    "target/x",
    "x/y/z",
    "x/z",
];

const PATHSPECS: [&str; 74] = [
    "[[:]x",
    "[[:]*",
    "[[:a]*",
    "[[[:]*",
    "a[[:]:]*",
    "src",
    "src/",
    "src/a",
    "*.rs",
    "*.c",
    "s*",
    "s*/a*",
    "src/?.rs",
    "src/??.rs",
    "d?r",
    "d?r/f",
    "[a-c]*",
    "[!a-c]*",
    "a\\*b",
    "a*b",
    ":(literal)a*b",
    ":(icase)src",
    ":(icase)*.rs",
    ":(glob)*.rs",
    ":(glob)**/a.rs",
    ":(glob)src/**/a.rs",
    ":(glob)src/**",
    ":(glob)**",
    ":(glob)foo/**/baz.c",
    ":(glob)**/z",
    ":!src",
    ":^*.rs",
    ":(exclude)x",
    ":/x",
    ":(top)x/z",
    "::a",
    ".",
    "./src",
    "src/..",
    "a]",
    "a[]]",
    "[x",
    "d[[]r",
    "d\\[r",
    "x/*/z",
    "x/**/z",
    "*/z",
    "**/z",
    ":(glob)x/*",
    ":(glob)x",
    "abc*",
    "*abc",
    "foo*",
    "foo?c",
    "foo[./]c",
    ":(glob)foo[./]bar*",
    ":(glob,icase)SRC/*",
    ":(icase,exclude)SRC",
    "**",
    "***",
    "*a",
    "[[:upper:]]*",
    "[[:alpha:]]",
    "[^a]*",
    "src/deep/",
    "src/deep/x",
    "src/d*p/x",
    ":(glob)src/d*p/x/a.rs",
    ":(glob)s**c/a.rs",
    "*/",
    "src/*/",
    ":(top",
    ":(literal,glob)a",
    "../x",
];

#[test]
fn pathspecs_mean_what_git_takes_them_for() {
    let directory = tempfile::tempdir().expect("a directory");
    for file in FILES {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().expect("is in one")).expect("makes directories");
        fs::write(path, "").expect("writes");
    }
    git(directory.path(), &["init", "--quiet"]);
    git(directory.path(), &["add", "--all"]);
    for pathspec in PATHSPECS {
        let theirs = git(directory.path(), &["-c", "core.quotePath=off", "ls-files", "--", pathspec]);
        assert_eq!(ours(pathspec), theirs, "{pathspec}");
    }
}

fn ours(pathspec: &str) -> Option<Vec<String>> {
    let pathspecs = Pathspecs::parse(&[pathspec], None).ok()?;
    let named = |file: &&&str| pathspecs.matches(&WorkspacePath::parse(file).expect("inside"));
    Some(FILES.iter().filter(named).map(|file| (*file).to_owned()).collect())
}

/// Returns the lines that git writes, or nothing when it refuses.
#[allow(clippy::disallowed_methods, reason = "git is asked what it would do itself")]
fn git(directory: &Path, words: &[&str]) -> Option<Vec<String>> {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "safe.directory=*"]).args(words).current_dir(directory);
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.output().expect("git is there");
    let text = String::from_utf8(output.stdout).expect("is text");
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}
