//! What a command does to its workspace, through real overlays.

mod bench;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use bench::{Bench, read};
use model::grant::WorkspaceAccess;
use model::{Profile, Tool, WorkspacePath};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).expect("a path")
}

/// A directory with nested directories in the base, which an overlay alone cannot rename.
fn with_directories(profile: Profile) -> Bench {
    let bench = Bench::under(profile);
    bench.file("old/one.txt", "1");
    bench.file("old/deep/two.txt", "2");
    bench.file("other/three.txt", "3");
    bench
}

#[test]
fn a_directory_of_the_base_is_renamed_with_all_that_is_in_it() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        let mut bench = with_directories(profile);
        let run = bench.shell("set -e; mv old new; test ! -e old; cat new/one.txt new/deep/two.txt");
        assert_eq!(run.stdout(), "12", "{}", run.stderr());
        assert!(run.0.observed.renames_healed > 0);
        assert_eq!(bench.shell("cat new/deep/two.txt; ls").stdout(), "2new\nother\n");
    }
}

#[test]
fn a_renamed_directory_keeps_its_mode_and_times() {
    let mut bench = with_directories(Profile::default_profile());
    let script =
        "set -e; touch -d '2001-02-03 04:05:06.7 UTC' old; chmod 750 old; mv old new; stat -c '%a %Y' new";
    assert_eq!(bench.shell(script).stdout(), "750 981173106\n");
}

#[test]
fn renames_refuse_what_rename_refuses() {
    let mut bench = with_directories(Profile::default_profile());
    let script = r#"
import os, errno
def refused(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
print(refused(lambda: os.rename("old", "other")), refused(lambda: os.rename("old", "old/below")), refused(lambda: os.rename("old", "old/deep/below")))
os.mkdir("empty"); os.rename("old", "empty"); print(sorted(os.listdir("empty")))
"#;
    let run = bench.run(&["python3", "-c", script]);
    assert_eq!(run.stdout(), "ENOTEMPTY EINVAL EINVAL\n['deep', 'one.txt']\n", "{}", run.stderr());
}

#[test]
fn two_directories_of_the_base_are_exchanged() {
    let mut bench = with_directories(Profile::default_profile());
    let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b"old", -100, b"other", 2) == 0, os.strerror(ctypes.get_errno())
print(sorted(os.listdir("old")), sorted(os.listdir("other")))
"#;
    let run = bench.run(&["python3", "-c", script]);
    assert_eq!(run.stdout(), "['three.txt'] ['deep', 'one.txt']\n", "{}", run.stderr());
}

#[test]
fn git_moves_a_directory() {
    let mut bench = with_directories(Profile::default_profile());
    let script = "set -e; git init -q .; git add .; git -c user.name=t -c user.email=t@example.invalid commit -qm m; \
                  git mv old new; git status --short";
    let run = bench.shell(script);
    assert_eq!(
        run.stdout(),
        "R  old/deep/two.txt -> new/deep/two.txt\nR  old/one.txt -> new/one.txt\n",
        "{}",
        run.stderr()
    );
}

#[test]
fn a_masked_file_cannot_be_read_and_leaves_no_trace_in_the_layer() {
    let mut bench = Bench::new();
    bench.file("secret.env", "TOKEN=hunter2\n");
    bench.masks.push(path("secret.env"));
    let run = bench.shell("cat secret.env; echo x > secret.env; rm -f secret.env; mv secret.env y; ls");
    assert!(!run.stdout().contains("hunter2"));
    assert_eq!(run.stdout(), "secret.env\n");
    assert!(!run.upper("secret.env").exists());
    assert_eq!(read(bench.workspace().join("secret.env")), "TOKEN=hunter2\n");
}

#[test]
fn a_covered_file_shows_other_contents() {
    let mut bench = Bench::new();
    bench.file(".git/config", "[remote \"o\"]\n\turl = https://me:hunter2@example.invalid/\n");
    let shown = (bench.workspace().join(".git/config"), b"[core]\n".to_vec());
    bench.covers.push(shown);
    assert_eq!(bench.shell("cat .git/config").stdout(), "[core]\n");
}

#[test]
fn a_mask_behind_a_link_does_not_cover_what_the_link_points_to() {
    let mut bench = Bench::new();
    bench.file("real.txt", "plain");
    std::os::unix::fs::symlink("real.txt", bench.workspace().join("link.env")).expect("a link");
    bench.masks.push(path("link.env"));
    assert_eq!(bench.shell("cat real.txt").stdout(), "plain");
}

#[test]
fn a_read_only_workspace_is_listed_as_it_is() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        let mut bench = Bench::under(profile);
        bench.file("a.txt", "x");
        bench.file("directory/b.txt", "x");
        bench.grant.workspace = WorkspaceAccess::ReadOnly;
        let run = bench.shell("ls -A . directory");
        assert_eq!(run.stdout(), ".:\na.txt\ndirectory\n\ndirectory:\nb.txt\n", "{}", run.stderr());
    }
}

#[test]
fn a_read_only_workspace_takes_no_writes() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        let mut bench = Bench::under(profile);
        bench.file("a.txt", "x");
        bench.grant.workspace = WorkspaceAccess::ReadOnly;
        let run = bench.shell("cat a.txt; echo y > a.txt; echo z > b.txt");
        assert_eq!(run.stdout(), "x");
        assert!(run.stderr().contains("Read-only file system"), "{}", run.stderr());
        assert!(run.stderr().matches("Read-only").count() == 2);
    }
}

#[test]
fn a_layer_taken_out_of_a_store_keeps_what_it_holds() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        layer_keeps_what_it_holds(profile);
    }
}

fn layer_keeps_what_it_holds(profile: Profile) {
    let mut bench = Bench::under(profile);
    bench.file("gone.txt", "x");
    bench.file("swept/inside.txt", "x");
    let script = "set -e; rm gone.txt; rm -r swept; mkdir swept; echo a > f; ln f g; ln -s f l; chmod 640 f; \
                  touch -d '2001-02-03 04:05:06.123456789 UTC' f; mkfifo p; truncate -s 8M hole; mkdir closed; \
                  echo in > closed/in; chmod 000 closed; printf x > \"$(printf 'odd\\nname')\"";
    assert!(bench.shell(script).succeeded());
    let upper = bench.layers[0].join("upper");
    let stat = |name: &str| fs::symlink_metadata(upper.join(name)).expect(name);
    assert_eq!((stat("gone.txt").rdev(), stat("gone.txt").file_type().is_file()), (0, false));
    assert_eq!(stat("f").ino(), stat("g").ino());
    assert_eq!(stat("f").permissions().mode() & 0o7777, 0o640);
    assert_eq!((stat("f").mtime(), stat("f").mtime_nsec()), (981_173_106, 123_456_789));
    assert_eq!(fs::read_link(upper.join("l")).expect("a link"), PathBuf::from("f"));
    assert_eq!(stat("hole").len(), 8 << 20);
    assert!(stat("hole").blocks() < 64, "the hole was filled");
    assert_eq!(stat("closed").permissions().mode() & 0o7777, 0);
    assert!(upper.join("odd\nname").exists());
    let run = bench.shell("ls swept; chmod 700 closed; cat closed/in; ls -l p | cut -c1");
    assert_eq!(run.stdout(), "in\np\n", "{}", run.stderr());
}

#[test]
fn the_tools_of_an_agent_do_what_they_say() {
    let mut bench = Bench::new();
    bench.file("src/a.txt", "one\ntwo\n");
    let read = Tool::Read { path: path("src/a.txt") };
    assert_eq!(bench.run_tool(read).stdout(), "one\ntwo\n");
    let search = Tool::Search { pattern: "t.o".to_owned(), path: None };
    assert_eq!(bench.run_tool(search).stdout(), "./src/a.txt:2:two\n");
    let write = Tool::Write { path: path("new/deep/b.txt"), content: "$(id)\n".to_owned() };
    assert!(bench.run_tool(write).succeeded());
    let diff = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n".to_owned();
    let patch = bench.run_tool(Tool::Patch { paths: vec![path("src/a.txt")], diff });
    assert!(patch.succeeded(), "{}", patch.stderr());
    assert_eq!(bench.shell("cat src/a.txt new/deep/b.txt").stdout(), "1\ntwo\n$(id)\n");
    let list = bench.run_tool(Tool::List { path: Some(path("new")) });
    assert!(list.stdout().contains("deep"));
}
