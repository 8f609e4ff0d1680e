//! `apply --commits` where the workspace is a linked worktree: the commits come to the repository behind it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::bench::{Answer, Bench, fits};

const COMMIT: &str = "git -c user.name=t -c user.email=t@example.org commit -q";

/// A repository with a linked worktree, in which everything runs.
struct Worktree {
    bench: Bench,
    directory: PathBuf,
}

impl Worktree {
    fn new() -> Self {
        Self::of(Bench::new())
    }

    fn of(bench: Bench) -> Self {
        let directory = bench.path("tree");
        bench.git(&["worktree", "add", "--quiet", "-b", "topic", directory.to_str().expect("text")]);
        Self { bench, directory }
    }

    fn run(&self, words: &[&str]) -> Answer {
        let mut command: Command = self.bench.command(words);
        Answer::of(command.current_dir(&self.directory).output().expect("it starts"))
    }

    fn sh(&self, line: &str) -> Answer {
        let answer = self.run(&["run", "--", "sh", "-c", line]);
        assert_eq!(answer.code, Some(0), "{line}: {answer:?}");
        answer
    }

    fn import(&self) -> serde_json::Value {
        let answer = self.run(&["apply", "--commits", "--json"]);
        let document =
            serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        fits("apply", &document);
        document
    }

    fn head_inside(&self) -> String {
        self.sh("git rev-parse HEAD").out.trim().to_owned()
    }

    fn branch(&self) -> String {
        let shown = self.run(&["task", "show", "--json"]).out;
        let task: serde_json::Value = serde_json::from_str(&shown).expect("is JSON");
        format!("fumehood/{}", task["task"]["task"].as_str().or(task["task"].as_str()).expect("a task"))
    }

    /// Returns what the host's repository has, but for objects and logs: names and contents.
    fn git_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut left = vec![self.bench.file(".git")];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).expect("lists").flatten() {
                match entry.file_type().expect("a type").is_dir() {
                    true if entry.file_name() == "objects" => {}
                    true => left.push(entry.path()),
                    false => found.push((entry.path(), fs::read(entry.path()).expect("reads"))),
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn commits_of_a_linked_worktree_come_to_the_repository_behind_it() {
    let tree = Worktree::new();
    let before = tree.git_files();
    let behind = tree.bench.file(".git");
    tree.sh(&format!(
        "echo more >> README; {COMMIT} -am one; echo x > src/new; git add .; {COMMIT} -m two; git branch other; \
         git config core.pager evil; hook={}/hooks/post-merge; echo '#!/bin/sh' > $hook; chmod +x $hook",
        behind.display()
    ));
    let head = tree.head_inside();
    let plain = tree.run(&["apply"]);
    assert!(plain.err.contains("apply --commits"), "what is left inside is said: {plain:?}");
    assert_eq!(tree.git_files(), before, "nothing of git is applied");

    let done = tree.import();
    let branch = format!("fumehood/{}", done["task"].as_str().expect("a task"));
    assert_eq!(done["commits"], serde_json::json!({"branch": branch, "commit": head, "number": 2}));
    assert_eq!(tree.bench.git_says(&["rev-parse", &branch]), head);
    tree.bench.git(&["fsck", "--strict"]);
    let mut expected = before;
    expected.push((behind.join("refs/heads").join(&branch), format!("{head}\n").into_bytes()));
    expected.sort();
    assert_eq!(tree.git_files(), expected, "the branch came, and nothing else but objects");
    assert_eq!(tree.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn commits_come_where_branches_are_packed() {
    let tree = Worktree::new();
    tree.bench.git(&["pack-refs", "--all"]);
    // What waits for a person keeps the task open.
    tree.sh(&format!(
        "mkdir -p .github/workflows; echo ci > .github/workflows/ci.yml; {COMMIT} --allow-empty -m one"
    ));
    let head = tree.head_inside();
    let branch = tree.branch();
    assert_eq!(tree.import()["commits"]["commit"], head.as_str());
    assert_eq!(tree.bench.git_says(&["rev-parse", &branch]), head);

    // The branch itself is packed now, and is as it was; then it moves on.
    tree.bench.git(&["pack-refs", "--all"]);
    assert_eq!(tree.import()["commits"]["commit"], head.as_str());
    assert_eq!(tree.bench.git_says(&["rev-parse", &branch]), head);
    tree.sh(&format!("{COMMIT} --allow-empty -m two"));
    let next = tree.head_inside();
    assert_eq!(tree.import()["commits"]["number"], 2);
    assert_eq!(tree.bench.git_says(&["rev-parse", &branch]), next);

    // What came from the task may be taken back in it: its branch follows.
    tree.sh(&format!("git reset -q --hard HEAD~2; {COMMIT} --allow-empty -m other"));
    let other = tree.head_inside();
    assert_eq!(tree.import()["commits"]["commit"], other.as_str());
    assert_eq!(tree.bench.git_says(&["rev-parse", &branch]), other);
}

#[test]
fn commits_that_belong_to_no_branch_come_too() {
    let tree = Worktree::new();
    tree.sh(&format!("git checkout -q --detach; {COMMIT} --allow-empty -m one"));
    let head = tree.head_inside();
    assert_eq!(tree.import()["commits"]["commit"], head.as_str());
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let tree = Worktree::new();
    tree.sh(&format!("{COMMIT} --allow-empty -m one"));
    let branch = tree.branch();
    tree.bench.git(&["branch", "fumehood"]);
    let before = tree.git_files();
    let refused = tree.run(&["apply", "--commits"]);
    assert!(refused.code == Some(125) && refused.err.contains("fumehood"), "{refused:?}");
    assert_eq!(tree.git_files(), before);
    tree.bench.git(&["branch", "-D", "fumehood"]);

    tree.bench.git(&["checkout", "-q", "-b", &branch]);
    tree.bench.git(&["commit", "-q", "--allow-empty", "-m", "somebody else's"]);
    tree.bench.git(&["checkout", "-q", "main"]);
    let before = tree.git_files();
    let refused = tree.run(&["apply", "--commits"]);
    assert!(refused.code == Some(125) && refused.err.contains("git branch -m"), "{refused:?}");
    assert!(refused.err.starts_with("fumehood: cannot import commits"), "{refused:?}");
    assert_eq!(tree.git_files(), before);
    tree.bench.git(&["branch", "-m", &branch, "mine"]);
    assert_eq!(tree.import()["commits"]["number"], 1);
}

#[test]
fn where_there_is_nothing_to_import_nothing_is_written() {
    let tree = Worktree::new();
    tree.sh("echo x > made");
    let before = tree.git_files();
    let none = tree.run(&["apply", "--commits"]);
    assert!(none.code == Some(0) && none.err.contains("no commit was made inside"), "{none:?}");
    tree.sh("git switch -q -c elsewhere");
    let none = tree.run(&["apply", "--commits"]);
    assert!(none.err.contains("has every commit"), "{none:?}");
    assert_eq!(tree.git_files(), before);
}

#[test]
fn objects_that_a_repository_borrows_from_elsewhere_are_not_shown() {
    let bench = Bench::new();
    bench.git(&["clone", "--quiet", "--bare", ".", "../lender"]);
    let lender = format!("{}\n", bench.path("lender/objects").display());
    let tree = Worktree::of(bench);
    let alternates = tree.bench.file(".git/objects/info/alternates");
    fs::write(&alternates, lender).expect("writes");
    // What it has itself is enough.
    tree.sh(&format!("{COMMIT} --allow-empty -m one"));
    let head = tree.head_inside();
    assert_eq!(tree.import()["commits"]["commit"], head.as_str());

    // What it has not itself is missing inside: git says so there, and nothing comes of it.
    let borrowed = tree.bench.git_says(&["rev-parse", "main"]);
    let (there, object) = borrowed.split_at(2);
    fs::remove_file(tree.bench.file(".git/objects").join(there).join(object)).expect("it was loose");
    let before = tree.git_files();
    let refused = tree.run(&["run", "--", "sh", "-c", &format!("{COMMIT} --allow-empty -m two")]);
    assert!(refused.code == Some(128) && refused.err.contains("fatal"), "{refused:?}");
    let none = tree.run(&["apply", "--commits"]);
    assert!(none.code != Some(0) || none.err.contains("no commit was made inside"), "{none:?}");
    assert_eq!(tree.git_files(), before);
}
