//! Bytes that nobody here wrote: whatever they are, the answer is one, and what holds for all of them is held.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::Bench;
use inspect::credentials::{hooks_path, shape_of, without_credentials};
use inspect::diff::{merge_texts, patch};
use inspect::protected::{Class, classify};
use model::WorkspacePath;
use proptest::prelude::*;

/// Texts whose lines meet often.
fn a_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "",
        "long line",
        "tab\t",
        "é",
        "\\ No newline",
        "--- a/x",
        "@@ -1 +1 @@",
    ]);
    (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, ended)| {
        let end = if ended && !lines.is_empty() { "\n" } else { "" };
        lines.join("\n") + end
    })
}

/// Text that looks like the configuration of git, with addresses in it.
fn a_config() -> impl Strategy<Value = Vec<u8>> {
    let word = "[a-z]{0,12}|[A-Za-z0-9]{20,40}|[ \\t=\"\\[\\]:@/\\\\.-]{1,4}|https://|\\nurl = |\\nextraheader = |hooksPath=|\\n";
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_path_is_classified(bytes in prop::collection::vec(1u8.., 1..200)) {
        if let Ok(path) = WorkspacePath::parse(Path::new(OsStr::from_bytes(&bytes))) {
            let _ = classify(&path);
        }
    }

    #[test]
    fn git_is_found_whatever_is_put_around_it(
        before in "[a-z]{1,5}",
        upper in prop::collection::vec(any::<bool>(), 4),
        hidden in prop::sample::select(vec!["", "\u{200b}", "\u{200d}", "\u{feff}", "\u{202e}", "\u{fe0f}"]),
        at in 0usize..5,
        end in "[. ]{0,3}",
    ) {
        let name: String = ".git".chars().zip(upper).map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect();
        let (left, right) = name.split_at(at.min(4));
        let path = WorkspacePath::parse(format!("{before}/{left}{hidden}{right}{end}/config")).expect("inside");
        prop_assert!(classify(&path).contains(&Class::GitInternals), "{:?}", path);
    }

    #[test]
    fn any_bytes_have_a_shape_or_none(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = shape_of(&bytes);
        let _ = hooks_path(&bytes);
        let _ = without_credentials(&bytes);
    }

    #[test]
    fn a_configuration_without_credentials_stays_as_it_is(config in a_config()) {
        let clean = without_credentials(&config);
        prop_assert_eq!(without_credentials(&clean), clean);
    }

    #[test]
    fn an_edit_of_one_side_alone_is_the_merge(base in a_text(), edit in a_text()) {
        let merged = |ours: &str, theirs: &str| merge_texts(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        prop_assert_eq!(merged(&edit, &base), Some(edit.clone()));
        prop_assert_eq!(merged(&base, &edit), Some(edit.clone()));
        prop_assert_eq!(merged(&edit, &edit), Some(edit));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn git_makes_the_new_text_of_the_old_one_and_the_patch(
        old in a_text(),
        new in a_text(),
        name in prop::collection::vec(prop_oneof![Just(b' '), Just(b'"'), Just(b'\\'), Just(b'\t'), Just(0xe9), b'a'..=b'z'], 1..8),
    ) {
        let name = OsStr::from_bytes(&name);
        let mut bench = Bench::new();
        fs::write(bench.base().join(name), &old).expect("written");
        let upper = bench.empty_layer();
        fs::write(upper.join(name), &new).expect("written");
        let written = patch(&bench.stack(1), &bench.read().changes, 1 << 20).expect("is written");
        if !written.bytes.is_empty() {
            let mut git = Command::new("git")
                .args(["apply", "--whitespace=nowarn"])
                .current_dir(bench.base())
                .env("GIT_CEILING_DIRECTORIES", bench.dir.path())
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("git starts");
            std::io::Write::write_all(&mut git.stdin.take().expect("a pipe"), &written.bytes).expect("written");
            let output = git.wait_with_output().expect("ends");
            prop_assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&written.bytes), String::from_utf8_lossy(&output.stderr));
        }
        prop_assert_eq!(fs::read_to_string(bench.base().join(name)).expect("is read"), new);
    }
}
