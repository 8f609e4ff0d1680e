//! Managers of tools and packages, found in the caller's home: what was fetched outside is installed or run inside,
//! without a network.

use crate::bench::{Bench, lines};

/// A home of its own with tools in it, so that the caller's own is left alone.
fn bench_with_home() -> (Bench, String) {
    let bench = Bench::new();
    let home = bench.beside("home");
    std::fs::create_dir(&home).expect("a home");
    // Yarn keeps the packages that root fetched in a place that only root's yarn looks at.
    let line = format!(
        "export HOME='{0}' PATH=\"{0}/bin:{0}/.local/bin:$PATH\" YARN_CACHE_FOLDER='{0}/.cache/yarn'; unset CARGO_HOME;",
        home.display()
    );
    (bench, line)
}

#[test]
fn npm_pnpm_and_yarn_install_from_their_caches() {
    const MANAGERS: [(&str, &str); 3] = [
        ("npm install --silent --no-audit --no-fund", "npm ci"),
        ("pnpm install --silent", "pnpm install --offline --frozen-lockfile"),
        ("yarn install --silent", "yarn install --offline --frozen-lockfile"),
    ];
    let (bench, home) = bench_with_home();
    bench.prepare(&format!("{home} npm install -g --silent --prefix \"$HOME\" pnpm@9.15.0 yarn@1.22.22"));
    for (fetch, install) in MANAGERS {
        // Each has a directory of its own, because each would read the others' lock files.
        let name = install.split(' ').next().unwrap_or_default();
        let package = r#"{"name": "x", "version": "1.0.0", "dependencies": {"ms": "2.1.3"}}"#;
        bench.file(&format!("{name}/package.json"), package);
        bench.prepare(&format!("{home} cd {name} && {fetch} && rm -rf node_modules"));
        let script = format!("cd {name} && {install} >/dev/null && node -p 'require(\"ms\")(\"1s\")'");
        let ran = bench.inside_at_home(&home, &script);
        assert_eq!(lines(&ran.stdout), ["1000"], "{install}: {ran:?}");
    }
}

#[test]
fn uv_and_pipx_use_what_they_fetched() {
    let (bench, home) = bench_with_home();
    bench.prepare(&format!(
        "{home} python3 -m venv \"$HOME/tools\" && \"$HOME/tools/bin/pip\" install -q uv==0.5.14 pipx==1.7.1 \
         && mkdir -p \"$HOME/bin\" && ln -s ../tools/bin/uv ../tools/bin/pipx \"$HOME/bin\" \
         && uv venv -q .venv && uv pip install -q --python .venv iniconfig==2.0.0 && rm -rf .venv \
         && pipx install -q cowsay==6.1"
    ));
    let ran = bench.inside_at_home(
        &home,
        "uv venv -q .venv && uv pip install -q --python .venv iniconfig==2.0.0 \
         && .venv/bin/python -c 'import iniconfig; print(\"found\")'",
    );
    assert_eq!(lines(&ran.stdout), ["found"], "{ran:?}");
    let ran = bench.inside_at_home(&home, "cowsay -t moo");
    assert!(ran.stdout.contains("moo"), "{ran:?}");
}

#[test]
fn cargo_builds_with_packages_that_were_fetched_for_another_project() {
    let bench = Bench::new();
    bench.file(
        "Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\n",
    );
    bench.file("src/main.rs", "fn main() {\n    println!(\"{}\", itoa::Buffer::new().format(42));\n}\n");
    bench.prepare("cargo fetch -q && rm Cargo.lock");
    // Without a lock file cargo would ask the registry for newer versions; inside it solves with what is there.
    let ran = bench.inside("cargo run -q");
    assert_eq!(lines(&ran.stdout), ["42"], "{ran:?}");
}

impl Bench {
    /// Runs a shell command inside, for a caller with another home.
    fn inside_at_home(&self, home: &str, script: &str) -> crate::bench::Ran {
        let state = self.beside("state");
        let script = script.replace('\'', "'\\''");
        self.outside(&format!(
            "{home} export FUMEHOOD_STATE_DIR='{}'; '{}' run --apply never -- bash -c '{script}'",
            state.display(),
            env!("CARGO_BIN_EXE_fumehood")
        ))
    }
}
