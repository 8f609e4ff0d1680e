//! A repository's own rules: those of a commit decide beside the organisation's, and only take away.

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

use common::Bench;
use engine::{ApplyMode, ApplyOrder, EngineError, Outcome};
use model::Profile;
use model::action::Principal;
use model::event::DecisionRecord;
use model::task::Task;

const RULES: &str = ".fumehood.cedar";

fn forbid(id: &str, annotations: &str, rule: &str) -> String {
    format!(
        "@id(\"{id}\")\n@reason(\"of-the-repository\")\n@advice(\"not here\")\n@person_may_allow(\"true\")\n\
         {annotations}\nforbid ({rule};\n"
    )
}

fn no_python() -> String {
    let rule = r#"principal, action == Action::"run-program", resource) when { resource.name == "python3" }"#;
    forbid("no-python", "", rule)
}

impl Bench {
    fn commit_rules(&self, text: &str) {
        fs::write(self.repository().join(RULES), text).expect("rules");
        self.git(&["add", RULES]);
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        self.git(&[&who[..], &["commit", "--quiet", "-m", "rules"]].concat());
    }

    fn decided(&self, task: &Task, path: &Path, script: &str) -> DecisionRecord {
        let outcome = self.handle(task, self.order(&Profile::default_profile(), path, script));
        match outcome {
            Outcome::Finished(_) => {
                let newest = self.engine.store().read(|reader| reader.actions(&task.id)).expect("is read");
                newest.last().and_then(|action| action.decision.clone()).expect("was decided")
            }
            Outcome::Denied { denial, .. } => denial.record().clone(),
            other => panic!("{other:?}"),
        }
    }

    fn reason(&self, task: &Task, path: &Path, script: &str) -> String {
        self.decided(task, path, script).reason
    }
}

#[test]
fn what_is_committed_counts_and_what_is_written_does_not() {
    let bench = Bench::new();
    let repository = bench.repository();
    let task = bench.live(&repository);
    // Neither what somebody writes to the directory, nor what an agent writes and commits inside.
    fs::write(repository.join(RULES), no_python()).expect("rules");
    bench.git(&["add", RULES]);
    assert_eq!(bench.reason(&task, &repository, "python3 x.py"), "inside-the-sandbox");
    bench.commit_rules(&no_python());
    let denied = bench.decided(&task, &repository, "python3 x.py");
    assert_eq!(
        (denied.reason.as_str(), denied.rules.as_slice()),
        ("of-the-repository", &["repository/no-python".to_owned()][..])
    );
    assert_eq!(bench.reason(&task, &repository, "true"), "inside-the-sandbox");
    let inside = format!("rm {RULES}; git -c user.name=t -c user.email=t@e commit --quiet -am away");
    bench.reason(&task, &repository, &inside);
    fs::remove_file(repository.join(RULES)).expect("is there");
    assert_eq!(bench.reason(&task, &repository, "python3 y.py"), "of-the-repository");
    // Another commit is another answer, in the same process.
    bench.git(&["rm", "--quiet", "--cached", RULES]);
    bench.git(&["-c", "user.name=t", "-c", "user.email=t@e", "commit", "--quiet", "-m", "away"]);
    let fresh = bench.live(&repository);
    assert_eq!(bench.reason(&fresh, &repository, "python3 x.py"), "inside-the-sandbox");
}

#[test]
fn a_task_that_starts_from_a_commit_keeps_the_rules_of_it() {
    let bench = Bench::new();
    bench.commit_rules(&no_python());
    let task = bench.start(&bench.repository()).expect("starts");
    bench.git(&["rm", "--quiet", RULES]);
    bench.git(&["-c", "user.name=t", "-c", "user.email=t@e", "commit", "--quiet", "-m", "away"]);
    assert_eq!(bench.reason(&task, &bench.repository(), "python3 x.py"), "of-the-repository");
    let live = bench.live(&bench.repository());
    assert_eq!(bench.reason(&live, &bench.repository(), "python3 x.py"), "inside-the-sandbox");
}

#[test]
fn what_git_cannot_tell_is_not_taken_for_a_repository_that_says_nothing() {
    let bench = Bench::new();
    bench.commit_rules(&no_python());
    // Its objects lie in the other repository, which no sandbox shows.
    let shared = bench.directory.path().join("shared");
    let place = shared.to_str().expect("text");
    bench.git(&["clone", "--quiet", "--shared", ".", place]);
    let task = bench.live(&shared);
    for _ in 0..2 {
        let order = bench.order(&Profile::default_profile(), &shared, "python3 x.py");
        let io = sandbox::Io {
            stdin: None,
            stdout: Box::new(sandbox::Silent),
            stderr: Box::new(sandbox::Silent),
            controller: None,
        };
        let outcome = bench.engine.handle(&task, order, io, || {});
        assert!(matches!(outcome, Err(EngineError::Base { .. })), "{outcome:?}");
    }
    bench.git(&["-C", place, "repack", "--quiet", "-a", "-d"]);
    fs::remove_file(shared.join(".git/objects/info/alternates")).expect("is there");
    assert_eq!(bench.reason(&task, &shared, "python3 x.py"), "of-the-repository");
}

#[test]
fn a_part_of_a_repository_that_has_rules_is_no_way_around_them() {
    let bench = Bench::new();
    let part = bench.repository().join("src");
    fs::create_dir(&part).expect("a directory");
    let task = bench.live(&part);
    assert_eq!(bench.reason(&task, &part, "python3 x.py"), "inside-the-sandbox");
    bench.commit_rules(&no_python());
    let workspace = bench.workspace(&part);
    let refused = bench.engine.gate_of(&task, &workspace).err().expect("is refused").to_string();
    assert!(refused.contains("work on its top"), "{refused}");
}

#[test]
fn a_linked_worktree_has_the_rules_of_its_own_commit() {
    let bench = Bench::new();
    let worktree = bench.directory.path().join("worktree");
    bench.git(&["worktree", "add", "--quiet", "-b", "other", worktree.to_str().expect("text")]);
    bench.commit_rules(&no_python());
    let task = bench.live(&worktree);
    assert_eq!(bench.reason(&task, &worktree, "python3 x.py"), "inside-the-sandbox");
    bench.git(&["-C", worktree.to_str().expect("text"), "merge", "--quiet", "main"]);
    assert_eq!(bench.reason(&task, &worktree, "python3 x.py"), "of-the-repository");
}

#[test]
fn rules_that_cannot_be_used_deny_everything_and_say_which_they_are() {
    let bench = Bench::new();
    let permit = r#"@id("all") @reason("all") permit (principal, action, resource);"#;
    for (text, says) in [
        (permit, "a repository's own rules can only forbid"),
        ("forbid nonsense", "cannot be read"),
        ("// nothing", "holds no rule"),
    ] {
        bench.commit_rules(text);
        let task = bench.live(&bench.repository());
        let record = bench.decided(&task, &bench.repository(), "true");
        assert_eq!(record.reason, "no-usable-policy", "{text}");
        let commit = bench.git(&["rev-parse", "HEAD"]);
        for part in [says, RULES, &commit] {
            assert!(record.advice.contains(part), "{part}: {}", record.advice);
        }
    }
}

#[test]
fn what_is_applied_is_decided_by_them_too() {
    let bench = Bench::new();
    let rule = r#"principal, action == Action::"apply", resource) when { context.mode == "always" }"#;
    bench.commit_rules(&forbid("nothing-leaves", "", rule));
    let task = bench.live(&bench.repository());
    bench.shell(&task, &bench.repository(), "echo x > new.txt");
    let order = ApplyOrder {
        principal: Principal::User("ada".into()),
        mode: ApplyMode::Always,
        include_ignored: false,
        only: &|_| true,
        consent: None,
        stays_open: false,
    };
    let applied = bench.engine.apply_task(&task, order).expect("is decided");
    let held: Vec<(String, &str)> =
        applied.held.iter().map(|held| (held.path.to_string(), held.reason.as_str())).collect();
    assert_eq!(held, [("new.txt".to_owned(), "of-the-repository")]);
    assert!(!bench.repository().join("new.txt").exists());
}

#[test]
fn a_yes_that_a_repository_demands_is_asked_for_and_keeps_what_was_tried() {
    let bench = Bench::new();
    let rule = r#"principal, action == Action::"run-program", resource)
        when { resource.name == "touch" } unless { context.approvals.contains("person") }"#;
    bench.commit_rules(&forbid("touch-asks", "@approval(\"person\")", rule));
    let task = bench.live(&bench.repository());
    let order = bench.order(&Profile::default_profile(), &bench.repository(), "touch new.txt");
    assert!(matches!(bench.handle(&task, order), Outcome::NeedsApproval { .. }));
    let open = bench.engine.store().read(|reader| reader.approvals(true)).expect("is read");
    let by = engine::Approver { name: "ada".to_owned(), account: 1000, file: None };
    let yes = bench.engine.say_yes(&open[0], &by, None, &Profile::default_profile());
    assert!(matches!(yes, Ok(engine::Yes::Kept)), "{yes:?}");
    // Rules that came between make what was tried worth nothing.
    let order = bench.order(&Profile::default_profile(), &bench.repository(), "touch other.txt");
    assert!(matches!(bench.handle(&task, order), Outcome::NeedsApproval { .. }));
    let open = bench.engine.store().read(|reader| reader.approvals(true)).expect("is read");
    let waiting = open.iter().find(|approval| !approval.state.is_final()).expect("waits").clone();
    let rule = r#"principal, action == Action::"run-program", resource) when { resource.name == "touch" }"#;
    bench.commit_rules(&forbid("no-touch", "", rule));
    let yes = bench.engine.say_yes(&waiting, &by, None, &Profile::default_profile());
    assert!(matches!(yes, Ok(engine::Yes::Void(_)) | Err(EngineError::Approval { .. })), "{yes:?}");
}
