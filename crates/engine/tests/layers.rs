//! Long tasks: every action sees what the ones before it did, and few directories are mounted however many there are.
//! Works as root and as an ordinary user; needs git.
#![allow(clippy::disallowed_methods, reason = "the tests do on the host what the actions do inside")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::Bench;
use engine::Scope;
use model::ActionId;
use model::task::Task;

/// Says how many directories are mounted below the workspace, and then everything that is in it.
const LOOK: &str = r#"
grep -F " $PWD " /proc/self/mountinfo | sed 's/.*lowerdir[+]*=\([^,]*\).*/\1/' | tr ':' '\n' | wc -l
find . -path ./.git -prune -o -printf '%y %m %p %l\n' | LC_ALL=C sort
find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 tail -n +1
"#;

/// What the action with this number does: it makes, changes, deletes and renames files and directories of the base and of
/// all earlier actions, and puts another directory in the place of one.
fn script(number: usize) -> String {
    let (last, older) = (number.saturating_sub(1), number.saturating_sub(6));
    let mut script = format!(
        "set -e; echo {number} >> common; echo {number} > n{number}; mkdir -p d{number}/deep; echo x > d{number}/deep/x\n\
         test ! -e n{last} || mv n{last} r{last}; rm -f r{older}; test ! -e d{last} || mv d{last} e{last}\n\
         test ! -e e{older} || rm -r e{older}; chmod 7{}0 base\n",
        number % 8
    );
    match number % 5 {
        0 => {
            script.push_str(&format!("rm -f linked; rm -r other; mkdir other; echo {number} > other/only\n"))
        }
        1 => script.push_str("rm -f other/only; mkdir -p other/more; ln -sf ../common other/more/link\n"),
        2 => script
            .push_str("mv base moved; mv moved/below moved/above; mv moved base; mv base/above base/below\n"),
        3 => script.push_str("rm -rf other/more; touch other/more\n"),
        _ => script.push_str("rm other/more; ln n* linked\n"),
    }
    script
}

/// A task whose actions are done on a plain directory, too.
struct Both {
    bench: Bench,
    task: Task,
    plain: PathBuf,
    actions: Vec<ActionId>,
}

impl Both {
    fn new() -> Self {
        let bench = Bench::new();
        for directory in ["base/below", "other/more"] {
            fs::create_dir_all(bench.repository().join(directory)).expect("makes");
        }
        for file in ["base/a", "base/below/b", "other/c", "other/more/d"] {
            fs::write(bench.repository().join(file), file).expect("writes");
        }
        let task = bench.live(&bench.repository());
        let both = Self { task, plain: bench.directory.path().join("plain"), bench, actions: Vec::new() };
        both.plain_after(0);
        both
    }

    /// Makes the plain directory as it is after so many actions.
    fn plain_after(&self, actions: usize) {
        let _ = fs::remove_dir_all(&self.plain);
        let copied = Command::new("cp").arg("-a").args([&self.bench.repository(), &self.plain]).status();
        assert!(copied.expect("cp starts").success());
        (1..=actions).for_each(|number| drop(self.outside(&script(number))));
    }

    fn outside(&self, script: &str) -> String {
        let done = Command::new("sh").args(["-c", script]).current_dir(&self.plain).output().expect("starts");
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs the action with this number, and holds what it sees then against the plain directory.
    fn act(&mut self, number: usize) {
        let (finished, text) =
            self.bench.shell(&self.task, &self.bench.repository(), &format!("{}{LOOK}", script(number)));
        assert!(finished.ending.succeeded(), "action {number}: {text}");
        self.outside(&script(number));
        self.same(&text, number);
        self.actions.push(finished.action);
    }

    fn same(&self, text: &str, number: usize) {
        let (lowers, inside) = text.split_once('\n').expect("lines");
        let outside = self.outside(LOOK);
        assert_eq!(Some(inside), outside.split_once('\n').map(|(_, rest)| rest), "action {number}");
        let lowers: usize = lowers.trim().parse().expect("a number");
        assert_eq!(lowers, number.min(4), "before action {number} as many layers were there, less one");
    }

    fn looks_like_the_plain_one(&self, task: &Task) {
        let (_, text) = self.bench.shell(task, &self.bench.repository(), LOOK);
        let outside = self.outside(LOOK);
        let rest = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned());
        assert_eq!(rest(&text), rest(&outside));
    }

    fn checkpoint(&self) -> PathBuf {
        self.bench.directory.path().join("state/tasks").join(self.task.id.as_str()).join("checkpoint")
    }
}

#[test]
fn forty_actions_see_each_other_over_at_most_four_lowers_and_any_of_them_can_be_gone_back_to() {
    let mut both = Both::new();
    (1..=40).for_each(|number| both.act(number));

    // All of it together, and single actions, are read through checkpoints too.
    let review = both.bench.engine.review(&both.task, Scope::All).expect("reads");
    let mut shown: Vec<String> = review.report.changes.iter().map(|change| change.path.to_string()).collect();
    shown.retain(|path| !path.contains('/'));
    assert!(shown.contains(&"n40".to_owned()) && shown.contains(&"common".to_owned()), "{shown:?}");
    assert!(shown.contains(&"r39".to_owned()) && !shown.contains(&"n39".to_owned()), "{shown:?}");
    for number in [3, 25, 40] {
        let action = &both.actions[number - 1];
        let mut finder = both.bench.engine.stack_of_action(&both.task, action).expect("opens").after();
        let path = model::WorkspacePath::parse("common").expect("a path");
        let common = finder.find(&path).expect("finds").expect("is there").read(4096).expect("reads");
        assert_eq!(String::from_utf8_lossy(&common).lines().count(), number);
    }

    // Across what the checkpoint holds, and forward again.
    let fork = both.bench.engine.fork(&both.task, Some(&both.actions[9])).expect("forks");
    let undone = both.bench.engine.undo(&both.task, Some(&both.actions[20])).expect("goes back");
    assert_eq!(undone.len(), 20);
    both.actions.truncate(20);
    both.plain_after(20);
    both.looks_like_the_plain_one(&both.task);
    (21..=23).for_each(|number| both.act(number));
    both.plain_after(10);
    both.looks_like_the_plain_one(&fork);
}

#[test]
fn a_checkpoint_goes_with_the_layers_that_it_shares_files_with() {
    let mut both = Both::new();
    (1..=5).for_each(|number| both.act(number));
    let collect = || {
        both.bench
            .engine
            .collect_garbage(&engine::Retention::of(std::time::Duration::ZERO), false, &|_, _| {})
            .expect("collects")
    };
    assert_eq!(collect().actions.len(), 0);
    assert!(both.checkpoint().is_dir(), "the task can go on");
    both.bench.engine.discard(&both.task).expect("is idle");
    assert_eq!(collect().actions.len(), 5);
    assert!(!both.checkpoint().exists());
    let layers = fs::read_dir(both.checkpoint().with_file_name("layers")).expect("is listed");
    assert_eq!(layers.count(), 0);
}

#[test]
fn what_a_person_looks_at_stays_while_the_task_goes_on() {
    let mut both = Both::new();
    (1..=24).for_each(|number| both.act(number));
    let review = both.bench.engine.review(&both.task, Scope::All).expect("reads");
    let mut finder = both.bench.engine.stack(&both.task, &review.layers).expect("opens").after();
    (25..=27).for_each(|number| both.act(number));
    let path = model::WorkspacePath::parse("common").expect("a path");
    let common = finder.find(&path).expect("finds").expect("is there").read(4096).expect("reads");
    assert_eq!(String::from_utf8_lossy(&common).lines().count(), 24);
}
