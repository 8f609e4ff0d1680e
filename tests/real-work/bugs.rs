//! Bugs in packages of other people, each mended in the package's next version.
//!
//! A project is made of both versions: the code is that of the broken one, the tests are those of the mended one. So
//! its tests fail until somebody makes the change that the authors made. Nothing of the packages is in this
//! repository: they are fetched with the registries' own tools, at fixed versions, and must have these digests.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::bench::{Bench, cargo_results, pytest_results, tap_results};

/// A bug, and what it takes to see it.
pub(crate) struct Bug {
    package: &'static str,
    broken: Version,
    mended: Version,
    /// Puts the archive of package `NAME` in version `VERSION` into the current directory, as `archive`.
    fetch: &'static str,
    /// Makes the project one that can be tested, from within it.
    install: &'static str,
    /// What the project's `.gitignore` says.
    ignored: &'static str,
    /// The file with the fault.
    pub(crate) source: &'static str,
    /// The files with the tests that find it.
    pub(crate) tests: &'static [&'static str],
    /// The text in these files, if there is one, above which they are code.
    tests_below: Option<&'static str>,
    /// The command that tests the project.
    pub(crate) test: &'static str,
    /// Takes the counts out of what that command prints.
    pub(crate) counts: fn(&str) -> Vec<String>,
    /// The counts before the change and after it.
    pub(crate) red: &'static [&'static str],
    pub(crate) green: &'static [&'static str],
    /// Whether the tools that the tests need are beside the commit, in files that git ignores.
    pub(crate) tools_in_directory: bool,
}

struct Version {
    number: &'static str,
    sha256: &'static str,
}

const FETCH_CRATE: &str = r#"
    mkdir -p fetch/src && touch fetch/src/lib.rs
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nNAME = "=VERSION"\n' > fetch/Cargo.toml
    (cd fetch && cargo fetch -q)
    cp "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/NAME-VERSION.crate archive
"#;
const FETCH_SDIST: &str = r#"
    # Asking for a source package runs its set-up, which needs these.
    [ -d "$TOP/tools" ] || { python3 -m venv "$TOP/tools"; "$TOP/tools/bin/pip" install -q setuptools==75.6.0 wheel==0.45.1; }
    "$TOP/tools/bin/pip" download -q --no-deps --no-build-isolation --no-binary :all: NAME==VERSION
    mv NAME-VERSION.tar.gz archive
"#;
const FETCH_NPM: &str = "npm pack --silent NAME@VERSION && mv NAME-VERSION.tgz archive";

/// `shlex` for Rust: quoting leaves braces and what is not ASCII as they are, and a shell does not.
pub(crate) const SHLEX: Bug = Bug {
    package: "shlex",
    broken: Version {
        number: "1.2.0",
        sha256: "a7cee0529a6d40f580e7a5e6c495c8fbfe21b7b52795ed4bb5e62cdf92bc6380",
    },
    mended: Version {
        number: "1.2.1",
        sha256: "a2beddea41c2e08de73f2874f8b21cc2c3f42f08d8ffc30587e1e4847d3cf67f",
    },
    fetch: FETCH_CRATE,
    install: "rm -f Cargo.toml.orig .cargo_vcs_info.json && cargo generate-lockfile -q --offline",
    ignored: "/target\n",
    source: "src/bytes.rs",
    tests: &["src/bytes.rs", "src/lib.rs"],
    tests_below: Some("}\n\n#[cfg(test)]\n"),
    test: "cargo test -q --offline",
    counts: cargo_results,
    red: &["test result: FAILED. 6 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out"],
    green: &[
        "test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
    ],
    tools_in_directory: false,
};

/// `h11` for Python: what ends a chunk is thrown away unseen (CVE-2025-43859).
pub(crate) const H11: Bug = Bug {
    package: "h11",
    broken: Version {
        number: "0.15.0",
        sha256: "2a7db2d2beffd4e6c6bbe3a64305ab77d89087976e8aed8fdcff4b054744e72f",
    },
    mended: Version {
        number: "0.16.0",
        sha256: "4e35b956cf45792e4caa5885e69fba00bdbc6ffafbfa020300e549b208ee5ff1",
    },
    fetch: FETCH_SDIST,
    install: "python3 -m venv .venv && .venv/bin/pip install -q pytest==8.3.4",
    ignored: ".venv/\n__pycache__/\n.pytest_cache/\n",
    source: "h11/_readers.py",
    tests: &["h11/tests/test_io.py"],
    tests_below: None,
    test: ".venv/bin/python -m pytest -q",
    counts: pytest_results,
    red: &["1 failed, 77 passed"],
    green: &["78 passed"],
    tools_in_directory: true,
};

/// `shell-quote` for Node: a backquote before a colon gets through unquoted (CVE-2021-42740).
pub(crate) const SHELL_QUOTE: Bug = Bug {
    package: "shell-quote",
    broken: Version {
        number: "1.7.2",
        sha256: "acbfa9bdcca8afb26b9a674de099c0abbea59c2556e372e30d87fa56f714b04a",
    },
    mended: Version {
        number: "1.7.3",
        sha256: "568d0eddf164f1c4eb1b3a0024d5d4b2069c0ee657ee976315b08689ad0d204b",
    },
    fetch: FETCH_NPM,
    install: "npm install --silent --no-audit --no-fund --no-save tape@4.0.0",
    ignored: "node_modules/\n",
    source: "index.js",
    tests: &["test/quote.js"],
    tests_below: None,
    test: "npm test --silent",
    counts: tap_results,
    red: &["# tests 102", "# pass  101", "# fail  1"],
    green: &["# tests 102", "# pass  102"],
    tools_in_directory: true,
};

/// A project with a bug.
pub(crate) struct Project<'b> {
    pub(crate) bench: &'b Bench,
    pub(crate) bug: &'b Bug,
}

impl<'b> Project<'b> {
    /// Fetches both versions and makes a repository with one commit, whose tests fail as they should.
    pub(crate) fn new(bench: &'b Bench, bug: &'b Bug) -> Self {
        let project = Self { bench, bug };
        for (name, version) in [("broken", &bug.broken), ("mended", &bug.mended)] {
            project.fetch(name, version);
        }
        bench.prepare("cp -R ../broken/. .");
        for name in bug.tests {
            let text = project.with_tests_of_mended(name);
            fs::write(bench.project().join(name), text).expect("a file");
        }
        bench.file(".gitignore", bug.ignored);
        bench.prepare(bug.install);
        bench.prepare(
            "git init -q . && git add -A && git -c user.name=t -c user.email=t@example.com commit -qm start",
        );
        let red = bench.outside(bug.test);
        assert_ne!(red.code, Some(0), "{red:?}");
        assert_eq!((bug.counts)(&red.stdout), bug.red, "{red:?}");
        project
    }

    /// Unpacks a version beside the project, when its archive is the very one.
    fn fetch(&self, name: &str, version: &Version) {
        let (package, number) = (self.bug.package, version.number);
        let directory = self.bench.beside(name);
        fs::create_dir(&directory).expect("a directory");
        let fetch = self.bug.fetch.replace("NAME", package).replace("VERSION", number);
        let fetched = self.bench.outside(&format!(
            "set -eu; TOP=$(dirname \"$PWD\"); cd '{0}'\n{fetch}\n\
             echo '{1}  archive' | sha256sum -c --quiet >&2 && tar xzf archive --strip-components=1\n\
             rm -rf archive fetch",
            directory.display(),
            version.sha256
        ));
        assert_eq!(
            fetched.code,
            Some(0),
            "cannot fetch {package} {number}: this test needs the package registry, and the archive must have the \
             digest that is named here:\n{}{}",
            fetched.stdout,
            fetched.stderr
        );
    }

    /// Returns what a file with tests holds: all of it from the mended version, or only what is below the mark.
    fn with_tests_of_mended(&self, name: &str) -> String {
        let [broken, mended] = ["broken", "mended"].map(|version| self.text(version, name));
        let Some(mark) = self.bug.tests_below else { return mended };
        let [code, tests] = [&broken, &mended].map(|text| text.find(mark).expect("there are tests"));
        format!("{}{}", &broken[..code], &mended[tests..])
    }

    fn text(&self, version: &str, name: &str) -> String {
        fs::read_to_string(self.bench.beside(version).join(name)).expect("it is in the package")
    }

    /// Returns the change that the authors made to the code, as a unified diff.
    pub(crate) fn patch(&self) -> String {
        let script = format!("diff -u --label a/{0} --label b/{0} {0} ../mended/{0}", self.bug.source);
        let diff = self.bench.outside(&script);
        assert_eq!(diff.code, Some(1), "{diff:?}");
        diff.stdout
    }

    /// Returns every file of the project with its mode and its content.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        collect(&self.bench.project(), &mut files);
        files
    }

    /// Returns the files that there should be after the change, and nothing else.
    pub(crate) fn mended(&self, before: &Files) -> Files {
        let mut files = before.clone();
        let source = files.get_mut(&self.bench.project().join(self.bug.source)).expect("it is there");
        source.1 = self.text("mended", self.bug.source).into_bytes();
        files
    }
}

/// Files with their modes and their contents; the content of a link is where it leads.
pub(crate) type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn collect(directory: &Path, files: &mut Files) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let found = fs::symlink_metadata(&path).expect("it is there");
        if found.is_dir() {
            collect(&path, files);
        }
        let content = match found.file_type() {
            kind if kind.is_symlink() => {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            }
            kind if kind.is_file() => fs::read(&path).expect("it is read"),
            _ => Vec::new(),
        };
        files.insert(path, (found.mode(), content));
    }
}

/// Names what is different, without printing what the files hold.
pub(crate) fn differences(before: &Files, after: &Files) -> Vec<PathBuf> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}
