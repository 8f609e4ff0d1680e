//! Transcripts as files: the ones that we ship, and what happens when they are damaged.
#![allow(clippy::unwrap_used)]

mod common;

use agent::replay::{Transcript, TranscriptFault};
use common::demo;
use proptest::prelude::*;

const DEMO: &[u8] = include_bytes!("../transcripts/demo.jsonl");
const SLUG: &str = include_str!("../../fumehood/demo/src/slug.sh");

#[test]
fn a_transcript_cut_after_any_line_is_refused_with_that_line() {
    let ends: Vec<usize> = (0..DEMO.len()).filter(|at| DEMO[*at] == b'\n').map(|at| at + 1).collect();
    assert!(ends.len() > 5);
    for (number, end) in ends.iter().enumerate().take(ends.len() - 1) {
        let error = Transcript::parse(&DEMO[..*end]).expect_err("is cut");
        assert_eq!((error.line, &error.fault), (number + 1, &TranscriptFault::Cut));
        assert!(error.to_string().contains("it was cut"), "{error}");
    }
    Transcript::parse(DEMO).expect("is whole");
    Transcript::parse(&DEMO[..DEMO.len() - 1]).expect("the last line feed alone may be missing");
}

#[test]
fn a_transcript_without_any_one_of_its_lines_is_refused() {
    let lines: Vec<&[u8]> = DEMO.split_inclusive(|byte| *byte == b'\n').collect();
    for left_out in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(left_out);
        assert!(Transcript::parse(&rest.concat()).is_err(), "{left_out}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_transcript_cut_anywhere_is_refused(at in any::<proptest::sample::Index>()) {
        let at = at.index(DEMO.len() - 1);
        let error = Transcript::parse(&DEMO[..at]).expect_err("is cut");
        let lines = DEMO[..at].iter().filter(|byte| **byte == b'\n').count();
        prop_assert!(error.line >= 1 && error.line <= lines + 1);
    }

    #[test]
    fn a_damaged_transcript_does_not_crash(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = DEMO.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = Transcript::parse(&bytes);
    }
}

#[test]
fn the_transcripts_of_work_are_whole() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts/work");
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    assert!(files.len() >= 12);
    for file in files {
        let transcript = Transcript::parse(&std::fs::read(&file).unwrap());
        assert!(
            transcript.as_ref().is_ok_and(|read| read.turns().len() > 40),
            "{}: {transcript:?}",
            file.display()
        );
    }
}

#[test]
fn the_demo_fits_the_repository_that_it_is_about() {
    let calls: Vec<_> = demo().turns().iter().flat_map(|turn| turn.tool_calls.clone()).collect();
    let patch = calls.iter().find(|call| call.name == "apply_patch").expect("it fixes the fault");
    let patch = patch.arguments["patch"].as_str().expect("a text").to_owned();
    // The lines of the hunk, without the two lines that name the file and the one that says where.
    let body = |gone: char| {
        let kept = patch.lines().skip(3).filter(|line| !line.starts_with(gone));
        kept.map(|line| format!("{}\n", &line[1..])).collect::<String>()
    };
    let (before, after) = (body('+'), body('-'));
    assert_eq!(SLUG.matches(&before).count(), 1, "{before}");
    assert_ne!(before, after);
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let expected = [
        "list_directory",
        "read_file",
        "read_file",
        "run_command",
        "run_command",
        "run_command",
        "run_command",
        "write_file",
        "apply_patch",
        "run_command",
        "finish",
    ];
    assert_eq!(names, expected);
}
