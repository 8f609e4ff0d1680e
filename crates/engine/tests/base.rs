//! Tasks that start from a commit: git runs in a sandbox, and what it leaves is below the layers. Works as root and as
//! an ordinary user; needs git.
#![allow(clippy::disallowed_methods, reason = "the tests make repositories with git")]

mod common;

use std::fs;
use std::process::Command;

use common::Bench;
use model::Profile;
use model::action::{Base, Principal};
use model::event::Event;
use model::task::TaskState;

#[test]
fn a_task_starts_from_the_commit_and_git_works_inside() {
    let bench = Bench::new();
    let repository = bench.repository();
    bench.git(&["remote", "add", "origin", "https://ada:s3cret@example.invalid/repo.git"]);
    fs::write(repository.join("a.txt"), "edited since\n").expect("a file");
    fs::write(repository.join("untracked"), "x\n").expect("a file");
    let commit = bench.git(&["rev-parse", "HEAD"]);
    let task = bench.start(&repository).expect("starts");
    assert_eq!(task.base, Base::Commit { commit: commit.clone() });
    let stored = bench.engine.store().read(|reader| reader.find_task(task.id.as_str())).expect("is there");
    assert_eq!((&stored.base, stored.state), (&task.base, TaskState::Open));

    let script = "cat a.txt; ls -A; git status --short; git rev-parse HEAD; git remote -v";
    let (finished, text) = bench.shell(&task, &repository, script);
    assert!(finished.ending.succeeded(), "{text}");
    assert_eq!(
        text,
        format!(
            "committed\n.git\na.txt\n{commit}\norigin\thttps://example.invalid/repo.git (fetch)\n\
             origin\thttps://example.invalid/repo.git (push)\n"
        )
    );
    let (_, text) = bench.shell(
        &task,
        &repository,
        "echo new > a.txt && git -c user.name=t -c user.email=t commit -qam x && git log --oneline | wc -l",
    );
    assert_eq!(text, "2\n");
    let host = fs::read_to_string(repository.join("a.txt")).expect("is there");
    assert_eq!(host, "edited since\n", "the host's directory is not touched");
    assert_eq!(bench.git(&["rev-parse", "HEAD"]), commit);
}

#[test]
fn the_helper_is_on_the_record_as_one_of_ours() {
    let bench = Bench::new();
    let task = bench.start(&bench.repository()).expect("starts");
    let actions = bench.engine.store().read(|reader| reader.actions(&task.id)).expect("reads");
    assert_eq!(actions.len(), 2);
    for action in &actions {
        assert_eq!(action.class, "internal");
        assert_eq!(action.request.principal, Principal::Engine);
        let decision = action.decision.as_ref().expect("is decided");
        assert_eq!(decision.rules, ["own-helpers"], "{decision:?}");
    }
    let events = bench.engine.events_of_task(&task.id).expect("reads");
    let made = events.iter().find_map(|event| match event {
        Event::BaseMade { by, .. } => Some(by.clone()),
        _ => None,
    });
    assert_eq!(made, Some(Some(actions[1].id.clone())));
}

#[test]
fn tasks_from_one_commit_share_what_is_checked_out() {
    let bench = Bench::new();
    let first = bench.start(&bench.repository()).expect("starts");
    bench.shell(&first, &bench.repository(), "echo mine > a.txt");
    let second = bench.start(&bench.repository()).expect("starts");
    let (_, text) = bench.shell(&second, &bench.repository(), "cat a.txt");
    assert_eq!(text, "committed\n");
    let fork = bench.engine.fork(&first, None).expect("forks");
    let (_, text) = bench.shell(&fork, &bench.repository(), "cat a.txt");
    assert_eq!(text, "mine\n");
    let bases = fs::read_dir(bench.directory.path().join("state/bases")).expect("is there");
    assert_eq!(bases.flatten().filter(|entry| entry.path().is_dir()).count(), 1);
}

#[test]
fn a_linked_worktree_starts_from_its_own_commit() {
    let bench = Bench::new();
    let tree = bench.directory.path().join("tree");
    bench.git(&["worktree", "add", "--quiet", tree.to_str().expect("text"), "-b", "side"]);
    fs::write(tree.join("side.txt"), "side\n").expect("a file");
    let output = Command::new("sh")
        .arg("-c")
        .arg("git add . && git -c user.name=t -c user.email=t commit -qm side")
        .current_dir(&tree)
        .output()
        .expect("starts");
    assert!(output.status.success(), "{output:?}");
    let task = bench.start(&tree).expect("starts");
    let (finished, text) = bench.shell(&task, &tree, "cat side.txt; git log --oneline | wc -l");
    assert!(finished.ending.succeeded(), "{text}");
    assert_eq!(text, "side\n2\n");
}

#[test]
fn what_git_writes_in_a_linked_worktree_is_there_for_later_actions_and_never_on_the_host() {
    let bench = Bench::new();
    bench.git(&["remote", "add", "origin", "https://ada:s3cret@example.invalid/repo.git"]);
    let tree = bench.directory.path().join("tree");
    bench.git(&["worktree", "add", "--quiet", tree.to_str().expect("text"), "-b", "side"]);
    let before = bench.git(&["rev-parse", "side"]);
    let commit = "git -c user.name=t -c user.email=t@example.org commit -qm";
    for profile in [Profile::default_profile(), Profile::strict()] {
        let task = bench.live(&tree);
        let run = |script: &str| {
            let (finished, text) = bench.shell_under(&profile, &task, &tree, script);
            assert!(finished.ending.succeeded(), "{script}: {text}");
            (finished, text)
        };
        // More than are mounted, so that some are in a checkpoint. One changes nothing but the repository.
        let (first, _) = run(&format!("echo 1 > f1; git add .; {commit} c1; git branch kept"));
        let (second, _) = run(&format!("{commit} empty --allow-empty"));
        for number in 2..=6 {
            run(&format!("echo {number} > f{number}; git add .; {commit} c{number}"));
        }
        let shown =
            run("git log --format=%s; git status --short; git branch --list kept; git remote -v | uniq").1;
        let log = "c6\nc5\nc4\nc3\nc2\nempty\nc1\nfirst\n  kept\n";
        assert!(shown.starts_with(log) && !shown.contains("s3cret"), "{shown}");

        let review = bench.engine.review(&task, engine::Scope::All).expect("reads");
        let changed: Vec<String> =
            review.report.changes.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(
            changed,
            ["f1", "f2", "f3", "f4", "f5", "f6"],
            "nothing of git is among what can be applied"
        );
        assert!(bench.engine.moved_a_branch(&task).expect("looks"));
        let undone = bench.engine.undo(&task, Some(&second.action)).expect("goes back");
        assert!(undone.len() >= 6, "{undone:?}");
        assert_eq!(run("git log --format=%s; git status --short").1, "c1\nfirst\n");
        bench.engine.undo(&task, Some(&first.action)).expect("goes back");
        assert_eq!(run("git log --format=%s").1, "first\n");
        assert!(!bench.engine.moved_a_branch(&task).expect("looks"));
    }
    assert_eq!(bench.git(&["rev-parse", "side"]), before);
    assert_eq!(bench.git(&["branch", "--list", "kept"]), "");
}

#[test]
fn what_has_no_commit_is_refused_with_what_can_be_done() {
    let bench = Bench::new();
    let plain = bench.directory.path().join("plain");
    fs::create_dir(&plain).expect("a directory");
    let error = bench.start(&plain).expect_err("is refused").to_string();
    assert!(error.contains("it is not a git repository") && error.contains("--dirty"), "{error}");
    let empty = bench.directory.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    Command::new("git").args(["init", "--quiet"]).arg(&empty).status().expect("git starts");
    let error = bench.start(&empty).expect_err("is refused").to_string();
    assert!(error.contains("it has no commit yet"), "{error}");
    let tasks = bench.engine.store().read(|reader| reader.tasks()).expect("reads");
    assert!(tasks.iter().all(|overview| overview.task.state == TaskState::Discarded));
}

#[test]
fn a_repository_runs_nothing_of_its_own_when_it_is_checked_out() {
    let bench = Bench::new();
    let repository = bench.repository();
    let witness = "touch /artifacts/base/ran /artifacts/ran 2>/dev/null; exit 0";
    for hook in ["post-checkout", "pre-commit", "reference-transaction"] {
        let path = repository.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, format!("#!/bin/sh\n{witness}\n")).expect("a file");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    fs::write(repository.join(".gitattributes"), "*.txt filter=evil\n").expect("a file");
    bench.git(&["add", ".gitattributes"]);
    bench.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t",
        "commit",
        "-qm",
        "x",
    ]);
    bench.git(&["config", "filter.evil.smudge", &format!("sh -c '{witness}'")]);
    bench.git(&["config", "core.fsmonitor", &format!("sh -c '{witness}'")]);
    let task = bench.start(&repository).expect("starts");
    let (_, text) = bench.shell(&task, &repository, "ls -A; ls .git/hooks 2>/dev/null");
    assert_eq!(text, ".git\n.gitattributes\na.txt\n");
}

#[test]
fn a_base_that_no_task_needs_any_longer_is_collected() {
    let bench = Bench::new();
    let task = bench.start(&bench.repository()).expect("starts");
    bench.shell(&task, &bench.repository(), "echo new > a.txt");
    let collect = || {
        bench
            .engine
            .collect_garbage(&engine::Retention::of(std::time::Duration::ZERO), false, &|_, _| {})
            .expect("collects")
    };
    let bases = || {
        let entries = fs::read_dir(bench.directory.path().join("state/bases")).expect("is there");
        entries.flatten().filter(|entry| entry.path().is_dir()).count()
    };
    collect();
    assert_eq!(bases(), 1, "the task can go on");
    bench.engine.discard(&task).expect("is idle");
    let garbage = collect();
    assert_eq!((garbage.actions.len(), bases()), (3, 0), "and what the helpers of ours left");
    let again = bench.start(&bench.repository()).expect("starts anew");
    let (_, text) = bench.shell(&again, &bench.repository(), "cat a.txt");
    assert_eq!(text, "committed\n");
}
