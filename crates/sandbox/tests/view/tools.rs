//! Tools in homes and elsewhere are found, shown, and can be used.

use std::path::Path;

use sandbox::view::Piece;

use crate::fixture::Bench;

#[test]
fn a_rust_installation_is_shown_with_private_writable_homes() {
    let bench = Bench::debian().variable("PATH", "/home/ada/.cargo/bin:/usr/bin");
    bench.program("/home/ada/.cargo/bin/cargo");
    bench.file("/home/ada/.cargo/registry/cache/x.crate", "x");
    bench.file("/home/ada/.rustup/settings.toml", "default_toolchain = \"stable\"\n");
    bench.program("/home/ada/.rustup/toolchains/stable/bin/rustc");
    let seen = bench.view();
    assert!(matches!(seen.piece("/home/ada/.cargo/bin"), Some(Piece::ReadOnly { .. })));
    assert!(matches!(seen.piece("/home/ada/.cargo/registry"), Some(Piece::Overlay { .. })));
    assert!(matches!(seen.piece("/home/ada/.rustup/toolchains"), Some(Piece::ReadOnly { .. })));
    assert!(matches!(seen.piece("/home/ada/.cargo"), Some(Piece::Directory { .. })));
    assert!(matches!(seen.piece("/home/ada"), Some(Piece::Private { .. })));
    assert_eq!(seen.read("/home/ada/.rustup/settings.toml").unwrap(), "default_toolchain = \"stable\"\n");
    assert_eq!(seen.variable("PATH"), Some("/home/ada/.cargo/bin:/usr/bin"));
}

#[test]
fn tool_homes_outside_the_home_become_writable_and_keep_their_variables() {
    let bench = Bench::debian()
        .variable("CARGO_HOME", "/usr/local/cargo")
        .variable("RUSTUP_HOME", "/data/rustup")
        .variable("GOPATH", "/data/go:/home/ada/go")
        .variable("PATH", "/usr/local/cargo/bin:/usr/bin");
    bench.program("/usr/local/cargo/bin/cargo");
    bench.file("/usr/local/cargo/registry/index/x", "x");
    bench.file("/usr/local/cargo/credentials.toml", "[registry]\ntoken = \"x\"\n");
    bench.program("/data/rustup/toolchains/stable/bin/rustc");
    bench.file("/data/go/pkg/mod/x/go.mod", "x");
    bench.program("/home/ada/go/bin/tool");
    let seen = bench.view();
    assert!(matches!(seen.piece("/usr/local/cargo"), Some(Piece::Private { .. })));
    assert!(matches!(seen.piece("/usr/local/cargo/registry"), Some(Piece::Overlay { .. })));
    assert!(seen.read("/usr/local/cargo/bin/cargo").is_some());
    assert_eq!(seen.read("/usr/local/cargo/credentials.toml"), None);
    assert!(matches!(seen.piece("/data/rustup"), Some(Piece::Private { .. })));
    assert!(seen.read("/data/rustup/toolchains/stable/bin/rustc").is_some());
    assert!(seen.read("/data/go/pkg/mod/x/go.mod").is_some() && seen.read("/home/ada/go/bin/tool").is_some());
    for (name, value) in [("CARGO_HOME", "/usr/local/cargo"), ("GOPATH", "/data/go:/home/ada/go")] {
        assert_eq!(seen.variable(name), Some(value));
    }
}

/// One file of each tool manager that must be readable, with the variables that lead to it.
const MANAGERS: [(&str, &[(&str, &str)]); 42] = [
    (".pyenv/versions/3.12.1/bin/python3", &[]),
    (".pyenv/shims/python3", &[]),
    (".local/share/uv/python/cpython-3.12/bin/python3", &[]),
    (".cache/uv/wheels-v1/x", &[]),
    (".local/share/pipx/venvs/black/bin/black", &[]),
    (".cache/pip/http-v2/x", &[]),
    (".cache/pypoetry/virtualenvs/x/bin/python", &[]),
    (".venvs/x/bin/python", &[("VIRTUAL_ENV", "/home/ada/.venvs/x")]),
    ("miniconda3/envs/x/bin/python", &[]),
    ("micromamba/envs/x/bin/python", &[]),
    (".nvm/versions/node/v20/bin/node", &[]),
    (".local/share/fnm/node-versions/v20/installation/bin/node", &[]),
    (".volta/tools/image/node/20/bin/node", &[]),
    (".npm/_cacache/index-v5/x", &[]),
    (".cache/yarn/v6/x", &[]),
    (".local/share/pnpm/store/v3/x", &[]),
    (".cache/deno/deps/x", &[]),
    (".bun/install/cache/x", &[]),
    ("go/pkg/mod/cache/download/x", &[]),
    (".cache/go-build/00/x", &[]),
    ("sdk/go1.22.1/bin/go", &[]),
    (".sdkman/candidates/java/17/bin/java", &[]),
    ("jdk/bin/java", &[("JAVA_HOME", "/home/ada/jdk")]),
    (".m2/repository/x/x.jar", &[]),
    (".gradle/caches/modules-2/x.jar", &[]),
    (".asdf/installs/erlang/26/bin/erl", &[]),
    (".local/share/mise/installs/node/20/bin/node", &[]),
    (".ghcup/ghc/9.6/bin/ghc", &[]),
    (".cabal/packages/x", &[]),
    (".stack/programs/x/bin/ghc", &[]),
    (".opam/default/bin/ocaml", &[]),
    (".rbenv/versions/3.3/bin/ruby", &[]),
    (".rvm/rubies/ruby-3.3/bin/ruby", &[]),
    (".gem/ruby/3.3/gems/x", &[]),
    (".cache/composer/files/x", &[]),
    (".dotnet/sdk/8/x.dll", &[]),
    (".nuget/packages/x", &[]),
    (".mix/archives/x", &[]),
    (".julia/packages/x", &[]),
    (".pub-cache/hosted/x", &[]),
    (".cache/ccache/0/x", &[]),
    (".ivy2/cache/x.jar", &[]),
];

#[test]
fn every_manager_of_tools_is_found() {
    for (path, variables) in MANAGERS {
        let mut bench = Bench::debian();
        bench.program(&format!("/home/ada/{path}"));
        for (name, value) in variables {
            bench = bench.variable(name, value);
        }
        let seen = bench.view();
        assert!(seen.read(&format!("/home/ada/{path}")).is_some(), "{path}");
        for (name, value) in variables {
            assert_eq!(seen.variable(name), Some(*value));
        }
    }
}

#[test]
fn a_whole_installation_is_shown_when_its_bin_is_on_path() {
    for marker in [
        "lib/node_modules/npm/x",
        "pyvenv.cfg",
        "lib/python3.12/os.py",
        "conda-meta/history",
        "lib/jrt-fs.jar",
    ] {
        let bench = Bench::debian().variable("PATH", "/home/ada/apps/thing/bin:/usr/bin");
        bench.program("/home/ada/apps/thing/bin/program");
        bench.file(&format!("/home/ada/apps/thing/{marker}"), "x");
        bench.file("/home/ada/apps/thing/.npmrc", "x");
        bench.file("/home/ada/apps/other", "x");
        let seen = bench.view();
        assert!(matches!(seen.piece("/home/ada/apps/thing"), Some(Piece::ReadOnly { .. })), "{marker}");
        assert_eq!(seen.read("/home/ada/apps/thing/.npmrc"), None);
        assert_eq!(seen.read("/home/ada/apps/other"), None);
    }
}

#[test]
fn a_link_on_path_brings_what_its_program_needs() {
    let bench = Bench::debian().variable("PATH", "/home/ada/bin:/usr/bin");
    bench.program("/home/ada/lib/node_modules/tool/bin/tool.js");
    bench.file("/home/ada/lib/node_modules/tool/dist/main.js", "x");
    bench.link("/home/ada/bin/tool", "../lib/node_modules/tool/bin/tool.js");
    bench.program("/home/ada/venvs/black/bin/black");
    bench.file("/home/ada/venvs/black/pyvenv.cfg", "x");
    bench.link("/home/ada/bin/black", "/home/ada/venvs/black/bin/black");
    bench.program("/home/ada/src/single/run");
    bench.file("/home/ada/src/single/notes", "x");
    bench.link("/home/ada/bin/run", "/home/ada/src/single/run");
    let seen = bench.view();
    for path in
        ["bin/tool", "lib/node_modules/tool/dist/main.js", "bin/black", "venvs/black/pyvenv.cfg", "bin/run"]
    {
        assert!(seen.read(&format!("/home/ada/{path}")).is_some(), "{path}");
    }
    assert_eq!(seen.read("/home/ada/src/single/notes"), None);
}

#[test]
fn links_in_homes_lead_to_the_same_places_inside() {
    let bench = Bench::debian().variable("PATH", "/home/ada/.cargo/bin:/run/user/1000/fnm/1/bin:/usr/bin");
    bench.directory("/data/home");
    std::fs::rename(bench.at("/home/ada"), bench.at("/data/home/ada")).unwrap();
    std::fs::remove_dir(bench.at("/home")).unwrap();
    bench.link("/home", "data/home");
    bench.program("/mnt/big/cargo/bin/cargo");
    bench.file("/mnt/big/cargo/registry/x", "x");
    bench.link("/data/home/ada/.cargo", "/mnt/big/cargo");
    bench.program("/data/home/ada/.local/share/fnm/node-versions/v20/bin/node");
    bench.link("/run/user/1000/fnm/1", "/home/ada/.local/share/fnm/node-versions/v20");
    let seen = bench.view();
    assert!(matches!(seen.piece("/data/home/ada"), Some(Piece::Private { .. })));
    assert!(matches!(seen.piece("/home"), Some(Piece::Symlink { .. })));
    for path in ["/home/ada/.cargo/bin/cargo", "/home/ada/.cargo/registry/x", "/run/user/1000/fnm/1/bin/node"]
    {
        assert!(seen.read(path).is_some(), "{path}");
    }
    assert!(matches!(seen.piece("/mnt/big/cargo"), Some(Piece::Private { .. })));
    assert_eq!(seen.variable("HOME"), Some("/home/ada"));
    for piece in &seen.view.pieces {
        let parents = piece.target().ancestors().skip(1);
        let through = |path: &Path| matches!(seen.piece(path.to_str().unwrap()), Some(Piece::Symlink { .. }));
        assert!(!parents.into_iter().any(through), "{} lies below a link", piece.target().display());
    }
}

#[test]
fn without_a_network_tools_are_told() {
    let bench = Bench::debian();
    bench.file("/home/ada/.m2/repository/x", "x");
    bench.file("/home/ada/.gradle/caches/x", "x");
    bench.file("/home/ada/.cache/uv/x", "x");
    let seen = bench.view();
    assert_eq!(seen.variable("CARGO_NET_OFFLINE"), Some("true"));
    assert_eq!(seen.variable("UV_LINK_MODE"), Some("copy"));
    assert!(seen.read("/home/ada/.m2/settings.xml").unwrap().contains("<offline>true</offline>"));
    assert!(seen.read("/home/ada/.gradle/init.d/offline.gradle").unwrap().contains("offline = true"));
    let mut bench = bench;
    bench.host.offline = false;
    let seen = bench.view();
    assert_eq!(seen.variable("CARGO_NET_OFFLINE"), None);
    assert_eq!(seen.read("/home/ada/.m2/settings.xml"), None);
}

#[test]
fn a_cache_with_a_mount_below_is_shown_without_a_layer() {
    let mut bench = Bench::debian();
    bench.file("/home/ada/.cargo/registry/cache/x", "x");
    bench.host.mount_points = vec![bench.at("/"), bench.at("/home/ada/.cargo/registry/cache")];
    let seen = bench.view();
    let piece = seen.piece("/home/ada/.cargo/registry");
    assert!(matches!(piece, Some(Piece::ReadOnly { recursive: true, .. })), "{piece:?}");
}
