//! Projects of other people, at fixed versions: built and tested inside and outside.

use crate::bench::{Bench, cargo_results, lines, pytest_results, tap_results};

/// Unpacks a package of crates.io, whose name and version are in `$1`, into the project.
const FETCH_CRATE: &str = r#"
    set -eu
    fetched=$(mktemp -d)
    mkdir "$fetched/src" && touch "$fetched/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n' NAME VERSION > "$fetched/Cargo.toml"
    (cd "$fetched" && cargo fetch -q)
    cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/NAME-VERSION*/. .
    rm -rf .cargo-ok "$fetched"
"#;

fn fetch_crate(bench: &Bench, name: &str, version: &str) {
    bench.prepare(&FETCH_CRATE.replace("NAME", name).replace("VERSION", version));
    bench.prepare(
        "git init -q . && git add -A && git -c user.name=t -c user.email=t@example.com commit -qm start",
    );
}

#[test]
fn a_rust_program_with_many_dependencies_is_built_and_tested() {
    let bench = Bench::new();
    fetch_crate(&bench, "hexyl", "0.16.0");
    bench.prepare("cargo fetch -q --locked");
    let packages = bench.outside("grep -c '^name = ' Cargo.lock").stdout.trim().parse::<u32>();
    assert!(packages.is_ok_and(|packages| packages > 50), "at least 50 dependencies");
    let test = "cargo build -q --locked --config profile.dev.debug=false \
                && cargo test -q --locked --config profile.dev.debug=false";
    let ran = bench.same(test, cargo_results);
    assert_eq!(ran.code, Some(0));
    // The layer holds the build: the next action finds it fresh.
    let again =
        bench.inside("cargo build --locked --config profile.dev.debug=false 2>&1 | grep -c Compiling");
    assert_eq!(again.stdout.trim(), "0", "{again:?}");
}

#[test]
fn a_python_project_is_tested_in_a_virtual_environment() {
    let bench = Bench::new();
    bench.prepare(
        "python3 -m venv .venv && .venv/bin/pip install -q pytest==8.3.4 flit_core==3.10.1 \
         && .venv/bin/pip download -q --no-deps --no-build-isolation --no-binary :all: more-itertools==10.5.0 \
         && tar xzf more*itertools-10.5.0.tar.gz --strip-components=1",
    );
    let ran = bench.same(".venv/bin/python -m pytest -q tests", pytest_results);
    assert_eq!(ran.code, Some(0));
    let counts = pytest_results(&ran.stdout);
    assert!(counts.iter().any(|line| line.contains("passed")), "{counts:?}");
}

#[test]
fn a_node_project_is_tested() {
    let bench = Bench::new();
    bench.prepare(
        "npm pack --silent concat-map@0.0.1 && tar xzf concat-map-0.0.1.tgz --strip-components=1 \
         && npm install --silent --no-audit --no-fund",
    );
    assert_eq!(bench.same("npm test", tap_results).code, Some(0));
}

#[test]
fn a_c_library_is_built_by_parallel_make_and_works() {
    let bench = Bench::new();
    // The package of crates.io carries bzip2 1.0.8 with its own Makefile.
    fetch_crate(&bench, "bzip2-sys", "0.1.11");
    let script = "cd bzip2-1.0.8 && make -j4 libbz2.a bzip2 bzip2recover >/dev/null \
                  && ./bzip2 -c bzlib.c | ./bzip2 -dc | sha256sum && ar t libbz2.a | wc -l";
    assert_eq!(bench.same(script, lines).code, Some(0));
}

#[test]
fn a_failing_test_fails_inside_as_outside() {
    let bench = Bench::new();
    bench.file("Cargo.toml", "[package]\nname = \"red\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    bench.file("src/lib.rs", "#[test]\nfn red() {\n    assert_eq!(1, 2);\n}\n#[test]\nfn green() {}\n");
    assert_eq!(bench.same("cargo test -q --offline", cargo_results).code, Some(101));
}
