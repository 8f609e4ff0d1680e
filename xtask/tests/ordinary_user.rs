//! The ordinary user as whom root tests a second time: it reaches what it needs wherever that is, is not root, and
//! what it leaves running is found. The account of a task that was killed is removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use xtask::account::{Ordinary, is_root};
use xtask::repo::Repo;
use xtask::run;

/// Says who it is, whether it can read the repository and start the toolchain, and leaves a process behind.
const STORY: &str = r#"
    set -e
    [ "$(id -u)" != 0 ]
    [ "$(id -un)" = "$USER" ]
    [ -w "$HOME" ]
    test -r "$1/Cargo.toml"
    test -r "$2/kept"
    test ! -r "$2/../hidden"
    cargo --version >/dev/null
    setsid sleep 300 </dev/null >/dev/null 2>&1 &
"#;

#[test]
fn an_ordinary_user_reaches_the_repository_and_what_it_leaves_is_found() {
    if !is_root() {
        return;
    }
    let repo = Repo::find().expect("cargo reads the manifests");
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let closed = scratch.path().join("closed");
    fs::create_dir_all(closed.join("target")).expect("it is ours");
    fs::write(closed.join("target/kept"), "").expect("it is ours");
    fs::write(closed.join("hidden"), "").expect("it is ours");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let repo = Repo { target: closed.join("target"), ..repo };

    let forsaken = forsaken_account();
    let user = Ordinary::ready(&repo).expect("an account can be had");
    let name = user.name().to_owned();
    assert!(is_account(&name), "{name}");
    assert!(!is_account(&forsaken), "{forsaken} was left by a killed task, and is still there");
    let root = repo.root.display().to_string();
    let target = repo.target.display().to_string();
    let story = user.command(["sh", "-c", STORY, "story", &root, &target]).output().expect("it starts");
    let left = user.leave().expect("the account can be left");

    assert!(story.status.success(), "{}", String::from_utf8_lossy(&story.stderr));
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].command.contains("sleep 300"), "{left:?}");
    assert!(!is_account(&name), "{name} is still there");
}

/// Makes an account as a task that was killed leaves one. Returns its name.
fn forsaken_account() -> String {
    let mut ended = run::command("true").spawn().expect("it starts");
    let name = format!("fumehood-test-{}", ended.id());
    ended.wait().expect("it ends");
    let made = run::command("useradd").args(["--no-create-home", &name]).output().expect("it starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    name
}

fn is_account(name: &str) -> bool {
    run::command("getent").args(["passwd", name]).output().expect("it starts").status.success()
}
