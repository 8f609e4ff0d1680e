//! The host changed something, too.

use super::*;

fn beside(name: &str) -> String {
    format!("{name}.fumehood-{}", TaskId::from_random([7; 10]))
}

fn conflicts(applied: &Applied) -> Vec<(String, Option<String>)> {
    let shown = |path: &WorkspacePath| path.to_string();
    applied
        .conflicts
        .iter()
        .map(|conflict| (shown(&conflict.path), conflict.beside.as_ref().map(shown)))
        .collect()
}

#[test]
fn a_conflict_keeps_both() {
    let bench = Bench::new();
    bench
        .base("a", "old\n")
        .base("b", "old\n")
        .base("s/c", "old\n")
        .made("a", "theirs\n")
        .made("b", "new\n")
        .made("s/c", "x\n")
        .ran();
    write(&bench.host("a"), "mine\n");
    fs::remove_file(bench.host("s/c")).expect("removed");
    let applied = bench.apply().expect("is applied");
    assert_eq!(paths(&applied.changes), ["b"]);
    assert_eq!(conflicts(&applied), [("a".into(), Some(beside("a"))), ("s/c".into(), Some(beside("s/c")))]);
    assert_eq!((bench.read("a"), bench.read(&beside("a"))), ("mine\n".into(), "theirs\n".into()));
    assert_eq!((bench.host("s/c").exists(), bench.read(&beside("s/c"))), (false, "x\n".into()));
    let why: Vec<_> = applied.held_back().into_iter().map(|held| (held.reason, held.why)).collect();
    assert!(
        why.iter().all(|(reason, why)| reason == "conflict" && why.contains(".fumehood-task-")),
        "{why:?}"
    );
    bench.undo().expect("is taken back");
    assert!(!bench.host(&beside("a")).exists());
}

#[test]
fn a_name_beside_never_takes_the_place_of_another_file() {
    let bench = Bench::new();
    let long = "n".repeat(255);
    bench.base("a", "old").base(&long, "old").made("a", "theirs").made(&long, "theirs").ran();
    write(&bench.host("a"), "mine");
    write(&bench.host(&long), "mine");
    write(&bench.host(&beside("a")), "also mine");
    bench.apply().expect("is applied");
    assert_eq!(bench.read(&beside("a")), "also mine");
    assert_eq!(bench.read(&format!("{}.2", beside("a"))), "theirs");
    let mark = beside("");
    assert_eq!(bench.read(&format!("{}{mark}", &long[..255 - mark.len()])), "theirs");
}

#[test]
fn the_same_edit_on_both_sides_is_no_conflict() {
    let bench = Bench::new();
    bench
        .base("a", "old\n")
        .made("a", "same\n")
        .made("new", "same\n")
        .linked("l", "a")
        .gone("b")
        .base("b", "x")
        .ran();
    for name in ["a", "new"] {
        write(&bench.host(name), "same\n");
    }
    symlink("a", bench.host("l")).expect("linked");
    fs::remove_file(bench.host("b")).expect("removed");
    // Read against the host as it is now, the layer has no change left.
    assert_eq!(bench.apply().expect("is applied"), Applied::default());
}

#[test]
fn an_edit_that_is_made_on_both_sides_while_we_look_is_no_conflict() {
    let bench = Bench::new();
    bench
        .base("a", "old\n")
        .base("b", "x")
        .made("a", "same\n")
        .made("new", "same\n")
        .linked("l", "a")
        .gone("b")
        .ran();
    let artifacts = bench.artifacts();
    for name in ["a", "new"] {
        write(&bench.host(name), "same\n");
    }
    symlink("a", bench.host("l")).expect("linked");
    fs::remove_file(bench.host("b")).expect("removed");
    let applied =
        bench.with_target(|target| apply(artifacts, &*bench.known.borrow(), target)).expect("is applied");
    assert!(applied.is_complete(), "{applied:?}");
    assert_eq!(paths(&applied.changes), ["a", "b", "l", "new"]);
}

#[test]
fn edits_of_other_lines_are_merged_where_the_base_is_known() {
    let bench = Bench::new();
    let base = "one\ntwo\nthree\nfour\nfive\n";
    bench
        .base("a", base)
        .base("b", base)
        .made("a", "ONE\ntwo\nthree\nfour\nfive\n")
        .made("b", "1\ntwo\nthree\nfour\nfive\n");
    fs::set_permissions(bench.upper("a"), fs::Permissions::from_mode(0o755)).expect("set");
    bench.ran();
    bench.known.borrow_mut().contents = [(path("a"), base.into()), (path("b"), base.into())].into();
    write(&bench.host("a"), "one\ntwo\nthree\nfour\nFIVE\n");
    write(&bench.host("b"), "eins\ntwo\nthree\nfour\nfive\n");
    let applied = bench.apply().expect("is applied");
    assert_eq!(
        (paths(&applied.changes), applied.merged.as_slice()),
        (vec!["a".to_owned()], [path("a")].as_slice())
    );
    assert_eq!(bench.read("a"), "ONE\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(mode(&bench.host("a")), 0o755);
    assert_eq!(conflicts(&applied), [("b".into(), Some(beside("b")))]);
    assert!(bench.undo().expect("is taken back").is_complete());
    assert_eq!(bench.read("a"), "one\ntwo\nthree\nfour\nFIVE\n");
}

#[test]
fn a_file_that_was_only_touched_is_as_it_was_where_the_base_is_known() {
    let bench = Bench::new();
    bench.base("a", "old\n").base("b", "old\n").made("a", "new\n").gone("b").ran();
    bench.known.borrow_mut().contents = [(path("a"), b"old\n".into()), (path("b"), b"old\n".into())].into();
    for name in ["a", "b"] {
        write(&bench.host(name), "old\n");
    }
    assert!(bench.apply().expect("is applied").is_complete());
    assert!(bench.read("a") == "new\n" && !bench.host("b").exists());
}

#[test]
fn what_the_host_changed_is_not_deleted() {
    let bench = Bench::new();
    bench.base("d/a", "old").base("d/b", "old").base("e/c", "old").gone("d").gone("e").ran();
    write(&bench.host("d/a"), "mine");
    write(&bench.host("e/new"), "mine");
    let applied = bench.apply().expect("is applied");
    assert_eq!(conflicts(&applied), [("d/a".into(), None), ("e/new".into(), None)]);
    assert_eq!(
        bench.tree().into_keys().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        ["d", "d/a", "e", "e/new"]
    );
    let failed: Vec<_> = applied.failed.iter().map(|held| format!("{} {}", held.path, held.reason)).collect();
    assert_eq!(failed, ["d not-empty", "e not-empty"]);
    assert_eq!(paths(&applied.changes), ["d/b", "e/c"]);
}

#[test]
fn a_base_of_which_nothing_is_known_counts_as_changed() {
    let bench = Bench::new();
    bench.base("a", "old").base("d/b", "old").made("a", "new").made("new", "n").gone("d/b");
    let applied = bench.apply().expect("is applied");
    assert_eq!(paths(&applied.changes), ["new"]);
    assert_eq!(conflicts(&applied), [("a".into(), Some(beside("a"))), ("d/b".into(), None)]);
}

#[test]
fn an_edit_during_the_run_is_seen() {
    let bench = Bench::new();
    let started = now();
    std::thread::sleep(std::time::Duration::from_millis(50));
    bench.base("a", "edited while it ran").base("d/b", "1").made("a", "new").made("d/c", "new");
    let report = layer::read(&bench.stack(), Bounds::default()).expect("is read");
    let stats = BaseStats::take(&report, &bench.stack(), started).expect("looked at");
    assert_eq!(stats.edited().map(ToString::to_string).collect::<Vec<_>>(), ["a"]);
    // The first run of a task that changed a path saw its base.
    let later = BaseStats::take(&report, &bench.stack(), now()).expect("looked at");
    let all = BaseStats::of_task([later, stats]);
    assert!(matches!(all.get(&path("a")), Some(Below::There(_))));
}

#[test]
fn a_link_or_a_directory_in_the_way_is_a_conflict() {
    let bench = Bench::new();
    bench.base("d/a", "old").made("d/a", "new").made("n/x", "1").made("m", "1").ran();
    fs::rename(bench.host("d"), bench.host("d2")).expect("moved");
    symlink(bench.outside(), bench.host("d")).expect("linked");
    write(&bench.host("n"), "a file");
    write(&bench.host("m/in"), "a directory");
    let applied = bench.apply().expect("is applied");
    assert_eq!(
        conflicts(&applied).into_iter().map(|(path, _)| path).collect::<Vec<_>>(),
        ["d", "d/a", "m", "m/in", "n"]
    );
    assert_eq!(applied.failed.iter().map(|held| held.path.to_string()).collect::<Vec<_>>(), ["n/x"]);
    assert_eq!(fs::read_dir(bench.outside()).expect("is listed").count(), 0);
    assert_eq!(
        (bench.read("n"), bench.read("d2/a"), bench.read("m/in")),
        ("a file".into(), "old".into(), "a directory".into())
    );
}
