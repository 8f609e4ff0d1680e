//! Workspaces, homes, state directories and PATH in odd places.

use sandbox::view::{Identity, Piece, ViewError};

use crate::fixture::Bench;

fn error_for(change: impl FnOnce(&mut Bench)) -> ViewError {
    let mut bench = Bench::debian();
    change(&mut bench);
    bench.try_view().unwrap_err()
}

#[test]
fn workspaces_that_hold_a_home_or_the_system_are_refused() {
    for workspace in ["/home/ada", "/home", "/"] {
        let error = error_for(|bench| bench.host.workspace = workspace.into());
        let expected =
            matches!(error, ViewError::WorkspaceHoldsHome { .. } | ViewError::WorkspaceIsSystem { .. });
        assert!(expected, "{workspace}: {error}");
    }
    for workspace in ["/usr", "/etc", "/proc/self", "/dev/shm", "/sys/kernel", "/var", "/run"] {
        let error = error_for(|bench| bench.host.workspace = workspace.into());
        assert!(matches!(error, ViewError::WorkspaceIsSystem { .. }), "{workspace}: {error}");
    }
    let linked = error_for(|bench| {
        bench.directory("/data/ada");
        bench.link("/home/bob", "/data/ada");
        bench.host.home = "/home/bob".into();
        bench.host.workspace = "/data".into();
    });
    assert!(matches!(linked, ViewError::WorkspaceHoldsHome { .. }), "{linked}");
}

#[test]
fn the_state_directory_is_never_seen() {
    for state in ["/home/ada/project/.state", "/home/ada"] {
        let error = error_for(|bench| bench.host.state_dir = state.into());
        assert!(matches!(error, ViewError::StateInWorkspace { .. }), "{state}: {error}");
    }
    let error = error_for(|bench| {
        bench.directory("/opt/state");
        bench.host.state_dir = "/opt/state".into();
    });
    assert!(matches!(error, ViewError::StateIsShown { .. }), "{error}");
    let mut bench = Bench::debian().variable("PATH", "/home/ada/tools:/home/ada/tools/state:/usr/bin");
    bench.file("/home/ada/tools/state/key", "secret");
    bench.host.state_dir = "/home/ada/tools/state".into();
    let seen = bench.view();
    assert_eq!(seen.read("/home/ada/tools/state/key"), None);
    assert_eq!(seen.variable("PATH"), Some("/usr/bin"));
}

#[test]
fn what_is_not_absolute_is_refused() {
    let error = error_for(|bench| bench.host.workspace = "project".into());
    assert!(matches!(error, ViewError::Relative { what: "workspace", .. }), "{error}");
}

#[test]
fn path_keeps_only_what_is_there_inside() {
    let path =
        "/usr/bin:.::/home/ada/none:/home/ada:/home:/:/home/ada/project/bin:/home/ada/tools:/usr/bin:/tmp";
    let bench = Bench::debian().variable("PATH", path);
    bench.program("/home/ada/tools/tool");
    bench.program("/home/ada/project/bin/own");
    let seen = bench.view();
    assert_eq!(seen.variable("PATH"), Some("/usr/bin:/home/ada/project/bin:/home/ada/tools"));
    assert!(seen.why_hidden("/home/ada").unwrap().contains("holds the home"));
    assert_eq!(
        Bench::debian().variable("PATH", "/none").view().variable("PATH"),
        Some("/usr/local/bin:/usr/bin:/bin")
    );
}

#[test]
fn a_tool_home_in_the_workspace_comes_with_the_workspace() {
    let bench = Bench::debian()
        .variable("CARGO_HOME", "/home/ada/project/.cargo-home")
        .variable("PATH", "/home/ada/project/.cargo-home/bin:/usr/bin");
    bench.program("/home/ada/project/.cargo-home/bin/cargo");
    let seen = bench.view();
    assert_eq!(seen.variable("CARGO_HOME"), Some("/home/ada/project/.cargo-home"));
    assert_eq!(seen.variable("PATH"), Some("/home/ada/project/.cargo-home/bin:/usr/bin"));
    let inside = |piece: &&Piece| piece.target().starts_with("/home/ada/project");
    assert_eq!(seen.view.pieces.iter().find(inside), None);
}

#[test]
fn a_link_in_the_workspace_does_not_choose_what_is_shown() {
    let bench = Bench::debian()
        .variable("CARGO_HOME", "/home/ada/project/cargo")
        .variable("JAVA_HOME", "/home/ada/java")
        .variable("PATH", "/home/ada/project/bin:/home/ada/java/bin:/usr/bin");
    bench.file("/home/ada/private/registry/x", "secret");
    bench.file("/home/ada/private/bin/x", "secret");
    bench.link("/home/ada/project/cargo", "/home/ada/private");
    bench.link("/home/ada/project/bin", "/home/ada/private/bin");
    bench.link("/home/ada/java", "/home/ada/project/cargo");
    assert_eq!(bench.view().readable().iter().find(|path| path.starts_with("/home/ada/private")), None);
}

#[test]
fn a_workspace_inside_a_shown_directory_is_possible() {
    for workspace in ["/usr/src/app", "/opt/app", "/home/ada/go/pkg/mod/x"] {
        let mut bench = Bench::debian();
        bench.directory(workspace);
        bench.file("/home/ada/go/pkg/mod/y/go.mod", "x");
        bench.host.workspace = workspace.into();
        bench.try_view().unwrap();
    }
}

#[test]
fn users_without_a_home_get_an_empty_one() {
    for home in ["/nonexistent", "/", "/usr/sbin"] {
        let mut bench = Bench::debian();
        bench.host.home = home.into();
        bench.host.workspace = "/srv/project".into();
        bench.directory("/srv/project");
        let seen = bench.view();
        assert_eq!(seen.variable("HOME"), Some("/home/ada"), "{home}");
        assert!(matches!(seen.piece("/home/ada"), Some(Piece::Private { .. })));
        assert!(seen.read("/usr/bin/bash").is_some());
    }
}

#[test]
fn what_only_a_group_can_read_is_not_shown() {
    let bench = Bench::debian().variable("PATH", "/home/ada/tools:/srv/team/bin:/usr/bin");
    bench.program("/home/ada/tools/tool");
    bench.program("/srv/team/bin/tool");
    let other = Identity { uid: bench.host.caller.uid + 1, gid: bench.host.caller.gid + 1 };
    let mut bench = bench;
    // To somebody else, the fixture's files are a stranger's: only what everyone may read is shown.
    bench.host.caller = other;
    bench.host.inside = other;
    bench.mode("/srv/team/bin", 0o750);
    bench.mode("/", 0o755);
    let seen = bench.view();
    assert!(seen.read("/home/ada/tools/tool").is_some());
    assert_eq!(seen.read("/srv/team/bin/tool"), None);
    assert!(seen.why_hidden("/srv/team/bin").unwrap().contains("everyone"));
    bench.mode("/srv/team/bin", 0o755);
    bench.mode("/srv/team", 0o750);
    assert_eq!(bench.view().read("/srv/team/bin/tool"), None);
}

#[test]
fn root_lends_its_tools_to_the_command_with_its_ids_mapped() {
    let mut bench = Bench::debian();
    bench.file("/home/ada/.cargo/registry/x", "x");
    bench.file("/home/ada/.rustup/toolchains/x", "x");
    bench.mode("/home/ada/.rustup/toolchains", 0o700);
    bench.host.inside = Identity { uid: bench.host.caller.uid + 1, gid: bench.host.caller.gid + 1 };
    let seen = bench.view();
    assert!(matches!(seen.piece("/home/ada/.cargo/registry"), Some(Piece::Overlay { map_owner: true, .. })));
    let toolchains = seen.piece("/home/ada/.rustup/toolchains");
    assert!(matches!(toolchains, Some(Piece::ReadOnly { map_owner: true, .. })), "{toolchains:?}");
    assert!(matches!(seen.piece("/usr"), Some(Piece::ReadOnly { map_owner: false, .. })));
}

/// Makes the project a linked worktree of a repository beside it.
fn worktree() -> Bench {
    let bench = Bench::debian();
    let main = "/home/ada/main/.git";
    bench.file("/home/ada/project/.git", &format!("gitdir: {main}/worktrees/project\n"));
    bench.file(&format!("{main}/worktrees/project/gitdir"), "/home/ada/project/.git\n");
    bench.file(&format!("{main}/worktrees/project/commondir"), "../..\n");
    bench.file(&format!("{main}/worktrees/project/HEAD"), "ref: refs/heads/x\n");
    bench.file(&format!("{main}/worktrees/other/HEAD"), "ref: refs/heads/y\n");
    bench.file(&format!("{main}/HEAD"), "ref: refs/heads/main\n");
    bench.file(&format!("{main}/config"), "[remote \"o\"]\n\turl = https://ada:hunter2@host.example/\n");
    bench.file(&format!("{main}/objects/pack/x.pack"), "x");
    bench.file(&format!("{main}/refs/heads/x"), "0\n");
    bench.file("/home/ada/main/.env", "hunter2");
    bench
}

#[test]
fn the_repository_of_a_linked_worktree_is_shown_with_layers_above() {
    let bench = worktree();
    let seen = bench.view();
    for path in ["objects/pack/x.pack", "refs/heads/x", "worktrees/project/HEAD", "HEAD"] {
        assert!(seen.read(&format!("/home/ada/main/.git/{path}")).is_some(), "{path}");
    }
    for path in ["objects", "refs", "worktrees/project"] {
        let piece = seen.piece(&format!("/home/ada/main/.git/{path}"));
        assert!(matches!(piece, Some(Piece::Overlay { .. })), "{piece:?}");
    }
    assert_eq!(seen.read("/home/ada/main/.git/worktrees/other/HEAD"), None);
    assert_eq!(seen.read("/home/ada/main/.env"), None);
    let config = seen.read("/home/ada/main/.git/config").unwrap();
    assert!(config.contains("https://host.example/") && !config.contains("hunter2"), "{config}");
}

#[test]
fn a_repository_that_does_not_name_the_workspace_is_not_shown() {
    let bench = worktree();
    bench.file("/home/ada/main/.git/worktrees/project/gitdir", "/home/ada/elsewhere/.git\n");
    let seen = bench.view();
    assert_eq!(seen.read("/home/ada/main/.git/HEAD"), None);
    assert!(seen.why_hidden("/home/ada/main/.git/worktrees/project").unwrap().contains("in return"));
    bench.file("/home/ada/project/.git", "gitdir: /home/ada/.ssh\n");
    bench.file("/home/ada/.ssh/id_rsa", "hunter2");
    assert_eq!(bench.view().read("/home/ada/.ssh/id_rsa"), None);
}

#[test]
fn the_repository_of_a_submodule_is_shown() {
    let bench = Bench::debian();
    let own = "/home/ada/outer/.git/modules/project";
    bench.file("/home/ada/project/.git", "gitdir: ../outer/.git/modules/project\n");
    bench.file(&format!("{own}/config"), "[core]\n\tworktree = ../../../../project\n");
    bench.file(&format!("{own}/objects/x"), "x");
    bench.file(&format!("{own}/HEAD"), "ref: refs/heads/main\n");
    let seen = bench.view();
    assert!(seen.read(&format!("{own}/objects/x")).is_some() && seen.read(&format!("{own}/HEAD")).is_some());
}
