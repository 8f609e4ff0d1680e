//! Layers that real overlay mounts made, read back; and layers that nobody should have made.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use common::{Bench, naive_changes, path, short};
use inspect::layer::{Bounds, read, strip_foreign_attributes};
use inspect::tree::Tree;
use inspect::{Finding, InspectError};
use model::FileKind;

/// Fills a base by a command of the shell.
fn bench(script: &str) -> Bench {
    let bench = Bench::new();
    let status = Command::new("bash").args(["-ec", script]).current_dir(bench.base()).status();
    assert!(status.expect("bash starts").success());
    bench
}

/// Asserts that a layer reads back as a comparison of the trees says, and returns it the short way.
fn changes_of(bench: &Bench) -> Vec<String> {
    let after = bench.flatten("after");
    let report = bench.read();
    assert_eq!(report.changes, naive_changes(&bench.base(), &after));
    assert_eq!(report.unlisted, 0);
    short(&report.changes)
}

const BASE: &str =
    "mkdir -p dir/sub gone/deep opq; echo a>dir/sub/a; echo b>dir/b; echo c>gone/deep/c; echo old>opq/old;
    echo f>file; ln -s file link; mkfifo pipe; echo h>h1; ln h1 h2; chmod 750 dir";

#[test]
fn creations_changes_and_deletions_are_read_back() {
    let mut bench = bench(BASE);
    bench.run("echo new>dir/new; echo more>>file; rm dir/b; rm -r gone; mkdir -p x/y/z; echo z>x/y/z/z");
    let expected = [
        "-dir/b",
        "+dir/new",
        "~file",
        "-gone",
        "-gone/deep",
        "-gone/deep/c",
        "+x",
        "+x/y",
        "+x/y/z",
        "+x/y/z/z",
    ];
    assert_eq!(changes_of(&bench), expected);
}

#[test]
fn a_run_that_changes_nothing_has_an_empty_list() {
    let mut bench = bench(BASE);
    bench.run("cat file dir/sub/a >/dev/null; ls -R . >/dev/null");
    assert_eq!(changes_of(&bench), [""; 0]);
    assert_eq!(bench.read(), inspect::Report::default());
}

#[test]
fn a_copy_without_a_difference_is_no_change() {
    let mut bench = bench(BASE);
    // Each of these copies the file up; times alone are no change.
    bench.run(
        "touch file dir/sub/a; touch -h link; chmod 700 dir; chmod 750 dir; echo f>file; touch dir/sub pipe",
    );
    assert!(fs::metadata(bench.upper(1).join("file")).is_ok());
    assert_eq!(changes_of(&bench), [""; 0]);
}

#[test]
fn changes_of_mode_alone_are_changes() {
    let mut bench = bench(BASE);
    bench.run("chmod 600 file; chmod 711 dir; chmod +x dir/sub/a");
    assert_eq!(changes_of(&bench), ["~dir", "~dir/sub/a", "~file"]);
}

#[test]
fn opaque_directories_expand_to_what_they_hide() {
    let mut bench = bench(BASE);
    bench.run("rm -r opq gone; mkdir opq gone; echo new>opq/new; mkdir gone/deep");
    assert_eq!(changes_of(&bench), ["-gone/deep/c", "+opq/new", "-opq/old"]);
}

#[test]
fn a_name_may_become_another_kind_of_thing() {
    let mut bench = bench(BASE);
    bench.run("rm file; mkdir file; echo in>file/in; rm -r gone; echo flat>gone; rm pipe; ln -s x pipe; rm link; mkfifo link");
    assert_eq!(
        changes_of(&bench),
        ["~file", "+file/in", "~gone", "-gone/deep", "-gone/deep/c", "~link", "~pipe"]
    );
}

#[test]
fn renames_are_a_deletion_and_a_creation() {
    let mut bench = bench(BASE);
    bench.run("mv file file2; mv dir/b gone/b; mkdir n; echo 1 >n/1; mv n n2; mv h1 h9");
    assert_eq!(changes_of(&bench), ["-dir/b", "-file", "+file2", "+gone/b", "-h1", "+h9", "+n2", "+n2/1"]);
}

#[test]
fn links_pipes_and_sockets_are_read_without_following_them() {
    let mut bench = bench(BASE);
    bench.run(
        "ln -sfn /etc/passwd link; ln -s nowhere dangling; mkfifo p2;
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    );
    assert_eq!(changes_of(&bench), ["+dangling", "~link", "+p2", "+sock"]);
    let kinds: Vec<FileKind> = bench.read().changes.iter().map(|change| change.file).collect();
    assert_eq!(kinds, [FileKind::Symlink, FileKind::Symlink, FileKind::Fifo, FileKind::Socket]);
    let entry = bench.stack(1).after().find(&path(b"link")).expect("found").expect("there");
    assert_eq!(entry.link_target().expect("a link").as_bytes(), b"/etc/passwd");
    assert!(matches!(entry.open(), Err(InspectError::Kind { .. })));
}

#[test]
fn groups_of_hard_links_and_split_ones_are_reported() {
    let mut bench = bench(BASE);
    bench.run("echo x>>h1; echo 1 >one; ln one two; mkdir d; ln one d/three");
    assert_eq!(changes_of(&bench), ["+d", "+d/three", "~h1", "+one", "+two"]);
    let report = bench.read();
    assert_eq!(report.link_groups, [vec![path(b"d/three"), path(b"one"), path(b"two")]]);
    assert_eq!(report.findings, [Finding::LinkSplit { path: "h1".try_into().expect("no NUL") }]);
}

#[test]
fn odd_names_and_deep_paths_survive() {
    let mut bench =
        bench("mkdir -p $'a\\nb' ; echo 1 > $'a\\nb/\\xff\\xfe'; echo 2 > ' '; echo 3 > $'\\x1b[2J'");
    bench.run(
        r#"echo 9 > $'a\nb/\xff\xfe'; echo 4 > $'\\'; rm ' '; echo 5 > '...'
        python3 - <<'P'
import os
for i in range(40):
    os.mkdir('d'*200); os.chdir('d'*200)
open('end','w').write('x')
P"#,
    );
    let report = bench.read();
    assert_eq!(report.changes.len(), 4 + 40 + 1);
    let deepest = report.changes.iter().max_by_key(|change| change.path.as_bytes().len()).expect("one");
    assert!(deepest.path.as_bytes().len() > 8000, "deeper than one path of the kernel");
    let entry = bench.stack(1).after().find(&deepest.path).expect("found").expect("there");
    assert_eq!(entry.read(10).expect("is read"), b"x");
}

#[test]
fn very_deep_trees_need_few_descriptors_and_are_cut_at_the_bound() {
    let mut bench = bench("mkdir keep");
    bench.run("python3 -c 'import os\nfor i in range(8000): os.mkdir(\"d\"); os.chdir(\"d\")'");
    let report = bench.read();
    assert_eq!(report.changes.len(), 8_000);
    let bounds = Bounds { path: 1001, ..Bounds::default() };
    let cut = read(&bench.stack(1), bounds).expect("is read");
    assert_eq!((cut.changes.len(), cut.unlisted), (501, 1));
    assert!(matches!(cut.findings.as_slice(), [Finding::PathTooLong { .. }]));
}

#[test]
fn sparse_files_cost_what_they_hold() {
    let mut bench =
        bench("truncate -s 1T hole same; printf x | dd of=same bs=1 seek=900G conv=notrunc status=none");
    let upper = bench.empty_layer();
    for name in ["hole", "same"] {
        let file = fs::File::create(upper.join(name)).expect("made");
        file.set_len(1 << 40).expect("set");
    }
    let file = fs::OpenOptions::new().write(true).open(upper.join("same")).expect("opened");
    std::os::unix::fs::FileExt::write_all_at(&file, b"x", 900 << 30).expect("written");
    assert!(bench.read().changes.is_empty());
    std::os::unix::fs::FileExt::write_all_at(&file, b"y", 900 << 30).expect("written");
    assert_eq!(short(&bench.read().changes), ["~same"]);
}

#[test]
fn several_layers_are_read_as_one() {
    let mut bench = bench(BASE);
    bench.run("echo 1 >one; rm file; rm -r gone; echo x>>dir/b");
    bench.run("rm one; echo f>file; mkdir gone; echo two>two; rm dir/b");
    bench.run("echo b>dir/b; echo 3 >gone/3; mv two three; rm -r opq; mkdir opq");
    bench.run("echo old>opq/old; mkdir -p a/b; rm h1");
    let after = bench.flatten("after");
    let all = read(&bench.stack(4), Bounds::default()).expect("is read");
    assert_eq!(all.changes, naive_changes(&bench.base(), &after));
    assert_eq!(short(&all.changes), ["+a", "+a/b", "+gone/3", "-gone/deep", "-gone/deep/c", "-h1", "+three"]);
}

#[test]
fn whiteouts_and_opaque_marks_of_older_layers_count() {
    let mut bench = bench(BASE);
    bench.run("rm -r opq gone; rm file; mkdir opq");
    bench.run("mkdir gone; echo n>gone/n; echo f2>file; echo 1 >opq/1");
    let report = bench.read();
    assert_eq!(short(&report.changes), ["+file", "+gone", "+gone/n", "+opq/1"]);
    let mut before = bench.stack(1).before();
    for gone in ["file", "gone/deep/c", "opq/old"] {
        assert!(before.find(&path(gone.as_bytes())).expect("looked up").is_none(), "{gone}");
    }
}

// The hostile corpus: what no mount of ours would write.

fn attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).expect("the attribute is set");
}

fn foreign(path: &str, name: &str) -> Finding {
    Finding::ForeignAttribute {
        path: path.try_into().expect("no NUL"),
        name: name.try_into().expect("no NUL"),
    }
}

#[test]
fn planted_attributes_are_reported_and_stripped() {
    let mut bench = bench(BASE);
    // The kernel writes what a program plants through the mount under an escaped name.
    let plant =
        "os.setxattr('dir', 'user.overlay.redirect', b'/etc'); os.setxattr('file', 'user.mine', b'1')";
    bench.run(&format!("python3 -c \"import os; {plant}\""));
    let upper = bench.upper(1);
    fs::write(upper.join("planted"), "").expect("written");
    attribute(&upper.join("planted"), "user.overlay.whiteout", b"y");
    attribute(&upper.join("planted"), "user.overlay.metacopy", b"");
    attribute(&upper.join("file"), "user.overlay.opaque", b"y");
    attribute(&upper, "user.overlay.redirect", b"/etc");
    let expected = [
        foreign(".", "user.overlay.redirect"),
        foreign("dir", "user.overlay.overlay.redirect"),
        foreign("file", "user.overlay.opaque"),
        foreign("planted", "user.overlay.metacopy"),
        foreign("planted", "user.overlay.whiteout"),
    ];
    let report = bench.read();
    assert_eq!(report.findings, expected);
    assert_eq!(short(&report.changes), ["+planted"]);
    assert_eq!(strip_foreign_attributes(&Tree::open(&upper).expect("a layer")).expect("stripped"), expected);
    assert_eq!(bench.read().findings, []);
    assert_eq!(rustix::fs::lgetxattr(upper.join("file"), "user.mine", &mut [0u8; 4]), Ok(1));
}

#[test]
fn a_whiteout_in_place_of_a_layer_is_refused() {
    let bench = bench(BASE);
    let fake = bench.dir.path().join("fake");
    let zero = rustix::fs::makedev(0, 0);
    rustix::fs::mknodat(rustix::fs::CWD, &fake, rustix::fs::FileType::CharacterDevice, 0o600.into(), zero)
        .expect("anybody may make a whiteout");
    assert!(matches!(Tree::open(&fake), Err(InspectError::Path { .. })));
    let link = bench.dir.path().join("link");
    symlink(bench.base(), &link).expect("made");
    assert!(Tree::open(&link).is_err());
}

#[test]
fn an_opaque_mark_at_the_top_means_nothing_as_it_does_for_the_kernel() {
    let mut bench = bench(BASE);
    bench.run("echo 1 >one");
    attribute(&bench.upper(1), "user.overlay.opaque", b"y");
    assert_eq!(changes_of(&bench), ["+one"]);
}

#[test]
fn whiteout_attributes_count_where_the_directory_says_so() {
    let mut bench = bench(BASE);
    bench.empty_layer();
    for directory in ["dir", "opq"] {
        fs::create_dir(bench.upper(1).join(directory)).expect("made");
        let mode = fs::metadata(bench.base().join(directory)).expect("there").permissions();
        fs::set_permissions(bench.upper(1).join(directory), mode).expect("set");
    }
    for name in ["dir/b", "opq/old"] {
        fs::write(bench.upper(1).join(name), "").expect("written");
        attribute(&bench.upper(1).join(name), "user.overlay.whiteout", b"");
    }
    attribute(&bench.upper(1).join("dir"), "user.overlay.opaque", b"x");
    let report = bench.read();
    // Where the directory does not say so, the file is an ordinary empty one.
    assert_eq!(short(&report.changes), ["-dir/b", "~opq/old"]);
    assert_eq!(report.findings, [foreign("opq/old", "user.overlay.whiteout")]);
}

#[test]
fn a_whiteout_of_nothing_is_no_change() {
    let mut bench = bench(BASE);
    let upper = bench.empty_layer();
    let zero = rustix::fs::makedev(0, 0);
    for name in ["never", "file"] {
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, upper.join(name), kind, 0.into(), zero).expect("made");
    }
    assert_eq!(changes_of(&bench), ["-file"]);
}

#[test]
fn names_of_the_machinery_are_ordinary_names() {
    let mut bench = bench("echo b>.wh.file; mkdir index");
    bench.run("mkdir work upper; echo w>work/w; echo x>.wh.other; echo o>.wh..wh..opq; rm .wh.file; ln -s work merged");
    let expected = ["+.wh..wh..opq", "-.wh.file", "+.wh.other", "+merged", "+upper", "+work", "+work/w"];
    assert_eq!(changes_of(&bench), expected);
}

#[test]
fn set_id_bits_are_part_of_the_mode() {
    let mut bench = bench("mkdir d; echo 1 >x");
    bench.run("chmod 6755 x; chmod 1777 d");
    let modes: Vec<u32> = bench.read().changes.iter().map(|change| change.mode).collect();
    assert_eq!(modes, [0o1777, 0o6755]);
}

#[test]
fn device_nodes_are_reported_as_what_they_are() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut bench = bench("true");
    let upper = bench.empty_layer();
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(rustix::fs::CWD, upper.join("null"), kind, 0o666.into(), rustix::fs::makedev(1, 3))
        .expect("root may");
    let report = bench.read();
    assert_eq!(report.changes.iter().map(|change| change.file).collect::<Vec<_>>(), [FileKind::Device]);
}

#[test]
fn what_may_not_be_read_is_reported_and_never_taken_for_unchanged() {
    let mut bench = bench("mkdir -p a/b; echo 1 >a/b/c; echo f>f");
    bench.run("chmod 000 a/b; mkdir closed; echo 1 >closed/1; chmod 000 closed f");
    let report = bench.read();
    if rustix::process::geteuid().is_root() {
        assert_eq!(report.findings, []);
        assert_eq!(short(&report.changes), ["~a/b", "+closed", "+closed/1", "~f"]);
    } else {
        let unreadable = |path: &str| Finding::Unreadable { path: path.try_into().expect("no NUL") };
        assert_eq!(report.findings, [unreadable("a/b"), unreadable("closed")]);
        assert_eq!(short(&report.changes), ["~a/b", "+closed", "~f"]);
    }
}

#[test]
fn a_huge_directory_is_read() {
    let mut bench = bench("mkdir d; cd d; seq 3000 | xargs touch");
    bench.run("cd d; seq 3001 6000 | xargs touch; seq 1 2 2999 | xargs rm; cd ..; mkdir e; cd e; seq 1000 | xargs touch");
    assert_eq!(changes_of(&bench).len(), 3_000 + 1_500 + 1 + 1_000);
}

#[test]
fn the_owner_of_a_path_is_found_through_all_layers() {
    let mut bench = bench(BASE);
    bench.run("echo 2 >dir/b");
    let stack = bench.stack(1);
    let (mut after, mut before) = (stack.after(), stack.before());
    let read = |finder: &mut inspect::Finder, name: &str| {
        let entry = finder.find(&path(name.as_bytes())).expect("looked up").expect("there");
        String::from_utf8(entry.read(100).expect("is read")).expect("text")
    };
    assert_eq!((read(&mut before, "dir/b"), read(&mut after, "dir/b")), ("b\n".into(), "2\n".into()));
    assert_eq!(read(&mut after, "dir/sub/a"), "a\n");
    assert_eq!(read(&mut after, "h2"), "h\n");
    // No part of a path is followed when it is a link.
    assert!(after.find(&path(b"link/x")).expect("looked up").is_none());
    let node = after.find(&path(b"dir/b")).expect("looked up").expect("there").node;
    assert_eq!(node.inode, fs::metadata(bench.upper(1).join("dir/b")).expect("there").ino());
    assert_eq!(
        node.mode(),
        fs::metadata(bench.base().join("dir/b")).expect("there").permissions().mode() & 0o7777
    );
}
