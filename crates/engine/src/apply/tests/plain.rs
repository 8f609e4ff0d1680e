//! Applying when nothing comes in between.

use super::*;

/// A base and a layer that has one change of each kind.
pub(super) fn one_of_each() -> Bench {
    let bench = Bench::new();
    bench.base("keep", "keep\n").base("edit", "old\n").base("src/mode", "m\n").base("src/edit", "old\n");
    bench
        .base("gone", "g\n")
        .base("dir/a", "a\n")
        .base("dir/sub/b", "b\n")
        .base("flat", "f\n")
        .base("deep/x/y", "y\n");
    symlink("keep", bench.host("link")).expect("linked");
    bench.made("edit", "new\n").made("src/mode", "m\n").made("src/edit", "new\n").made("src/new", "n\n");
    bench
        .made("made/in/here", "h\n")
        .gone("gone")
        .gone("dir/a")
        .gone("dir/sub")
        .linked("link", "edit")
        .linked("src/up", "../keep");
    bench.gone("flat").gone("deep/x");
    fs::remove_file(bench.upper("flat")).expect("removed");
    bench.made("flat/now/a", "dir\n");
    fs::remove_file(bench.upper("deep/x")).expect("removed");
    bench.made("deep/x", "file\n");
    for (name, mode) in [
        ("src/mode", 0o755),
        ("src/new", 0o600),
        ("made/in/here", 0o640),
        ("made/in", 0o750),
        ("made", 0o700),
    ] {
        fs::set_permissions(bench.upper(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    bench.ran();
    bench
}

/// The same, with host files that have another name elsewhere: those are captured by copying them.
pub(super) fn one_of_each_with_other_names() -> Bench {
    let bench = one_of_each();
    let files: Vec<PathBuf> =
        bench.tree().into_keys().filter(|path| bench.host("").join(path).is_file()).collect();
    for (number, path) in files.iter().enumerate().filter(|(_, path)| path.as_path() != Path::new("link")) {
        fs::hard_link(bench.host("").join(path), bench.outside().join(number.to_string())).expect("linked");
    }
    bench.ran();
    bench
}

/// What a mount of the layer over the base would show.
pub(super) fn expected(bench: &Bench) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = bench.tree();
    let report = layer::read(&bench.stack(), Bounds::default()).expect("is read");
    let upper = tree(&bench.upper(""));
    for change in report.changes {
        let path = change.path.as_path().to_owned();
        match upper.get(&path).filter(|_| change.kind != model::ChangeKind::Deleted) {
            Some(new) => all.insert(path, new.clone()),
            None => all.remove(&path),
        };
    }
    all
}

#[test]
fn the_host_becomes_what_the_layer_shows() {
    let bench = one_of_each();
    let expected = expected(&bench);
    let changes = bench.artifacts().items().len();
    let applied = bench.apply().expect("is applied");
    assert!(applied.is_complete(), "{applied:?}");
    assert_eq!(bench.tree(), expected);
    assert_eq!(applied.changes.len(), changes);
    assert!(
        !bench.host("").join("gone").exists()
            && bench.read("flat/now/a") == "dir\n"
            && bench.read("deep/x") == "file\n"
    );
}

#[test]
fn times_are_kept_to_the_nanosecond() {
    let bench = Bench::new();
    bench.base("a", "1").made("a", "2").made("d/b", "3").linked("l", "a").ran();
    let stamp = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 123_456_789 };
    let times = rustix::fs::Timestamps { last_access: stamp, last_modification: stamp };
    for name in ["a", "d/b", "d", "l"] {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, bench.upper(name), &times, flags).expect("set");
    }
    bench.apply().expect("is applied");
    for name in ["a", "d/b", "d", "l"] {
        let metadata = fs::symlink_metadata(bench.host(name)).expect("is there");
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 123_456_789), "{name}");
    }
}

#[test]
fn holes_stay_holes_and_odd_names_stay_odd() {
    use std::os::unix::fs::FileExt;
    let bench = Bench::new();
    let file = fs::File::create(bench.upper("sparse")).expect("made");
    file.set_len(1 << 34).expect("set");
    file.write_all_at(b"end", 1 << 33).expect("written");
    let odd = std::ffi::OsStr::from_bytes(b"a\xff\n\x1b[2J");
    fs::write(bench.upper("").join(odd), "odd").expect("written");
    bench.ran();
    assert!(bench.apply().expect("is applied").is_complete());
    let sparse = fs::metadata(bench.host("sparse")).expect("is there");
    assert!(sparse.len() == 1 << 34 && sparse.blocks() < 1000);
    assert_eq!(fs::read(bench.host("").join(odd)).expect("is read"), b"odd");
}

#[test]
fn paths_longer_than_the_kernel_takes_are_written() {
    let bench = Bench::new();
    let mut directory = rustix::fs::open(bench.upper(""), rustix::fs::OFlags::PATH, 0.into()).expect("open");
    let name = "d".repeat(200);
    for _ in 0..40 {
        rustix::fs::mkdirat(&directory, &name, 0o755.into()).expect("made");
        directory = rustix::fs::openat(&directory, &name, rustix::fs::OFlags::PATH, 0.into()).expect("open");
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    rustix::fs::openat(&directory, "end", flags, 0o644.into()).expect("made");
    bench.ran();
    let applied = bench.apply().expect("is applied");
    assert!(applied.is_complete() && applied.changes.len() == 41);
    assert!(bench.undo().expect("is taken back").is_complete());
    assert!(bench.tree().is_empty());
}

#[test]
fn what_was_applied_is_taken_back() {
    let bench = one_of_each();
    let before = bench.tree();
    let edited = fs::metadata(bench.host("edit")).expect("is there");
    bench.apply().expect("is applied");
    let undone = bench.undo().expect("is taken back");
    assert!(undone.is_complete(), "{undone:?}");
    assert_eq!(bench.tree(), before);
    let now = fs::metadata(bench.host("edit")).expect("is there");
    assert_eq!((now.mtime(), now.mtime_nsec()), (edited.mtime(), edited.mtime_nsec()));
    assert!(matches!(bench.undo(), Err(ApplyError::Repeated { .. })));
    assert!(matches!(bench.apply(), Err(ApplyError::Repeated { .. })));
}

#[test]
fn what_the_host_changed_since_stays() {
    let bench = one_of_each();
    bench.apply().expect("is applied");
    write(&bench.host("edit"), "mine\n");
    write(&bench.host("made/in/other"), "mine\n");
    write(&bench.host("gone"), "mine\n");
    let undone = bench.undo().expect("is taken back");
    assert_eq!(bench.read("edit"), "mine\n");
    assert_eq!(bench.read("gone"), "mine\n");
    assert_eq!(bench.read("made/in/other"), "mine\n");
    assert_eq!(bench.read("src/edit"), "old\n");
    assert!(!bench.host("made/in/here").exists());
    let conflicts: Vec<_> = undone.conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
    assert_eq!(conflicts, ["gone", "edit"]);
    let failed: Vec<_> = undone.failed.iter().map(|held| format!("{} {}", held.path, held.reason)).collect();
    assert_eq!(failed, ["made not-empty", "made/in not-empty"]);
}

#[test]
fn nothing_is_taken_back_where_nothing_was_applied() {
    let bench = Bench::new();
    assert!(matches!(bench.undo(), Err(ApplyError::NothingApplied)));
    assert_eq!(bench.with_target(completed).expect("looked at"), None);
}

#[test]
fn attributes_and_owners_of_the_host_stay_with_its_files() {
    let bench = Bench::new();
    bench.base("a", "1").base("b", "1").made("a", "2").made("new", "n").made("d/x", "x");
    let set = |path: PathBuf, name: &str| {
        rustix::fs::lsetxattr(&path, name, b"v", rustix::fs::XattrFlags::empty()).expect("set");
    };
    set(bench.host("a"), "user.comment");
    set(bench.upper("a"), "user.from_the_layer");
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(bench.host(""), Some(1234), Some(1235)).expect("given");
        std::os::unix::fs::chown(bench.host("a"), Some(1236), Some(1237)).expect("given");
    }
    bench.ran();
    assert!(bench.apply().expect("is applied").is_complete());
    let value = |name: &str| rustix::fs::lgetxattr(bench.host("a"), name, &mut [0u8; 8]);
    assert_eq!(value("user.comment"), Ok(1));
    assert_eq!(value("user.from_the_layer"), Err(rustix::io::Errno::NODATA));
    if root {
        let owner =
            |name: &str| fs::metadata(bench.host(name)).map(|m| (m.uid(), m.gid())).expect("is there");
        assert_eq!(
            (owner("a"), owner("new"), owner("d"), owner("d/x")),
            ((1236, 1237), (1234, 1235), (1234, 1235), (1234, 1235))
        );
    }
}

#[test]
fn names_of_one_host_file_are_parted_and_the_other_name_keeps_its_content() {
    let bench = Bench::new();
    bench.base("one", "old").made("one", "new");
    fs::hard_link(bench.host("one"), bench.host("two")).expect("linked");
    bench.ran();
    assert!(bench.apply().expect("is applied").is_complete());
    assert_eq!((bench.read("one"), bench.read("two")), ("new".into(), "old".into()));
    fs::write(bench.host("two"), "edited in place").expect("written");
    assert!(bench.undo().expect("is taken back").is_complete());
    assert_eq!((bench.read("one"), bench.read("two")), ("old".into(), "edited in place".into()));
}
