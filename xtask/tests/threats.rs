//! Every threat of `docs/threats.md` is shown by tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::guarantees::{self, Guarantee};
use xtask::repo::Repo;

/// The threats that need a test of our own.
const NEEDED: [u32; 21] =
    [43, 44, 46, 47, 109, 111, 113, 115, 117, 119, 120, 121, 122, 123, 154, 155, 156, 159, 161, 164, 166];

fn rows(root: &Path) -> Vec<Guarantee> {
    let document = fs::read_to_string(root.join("docs/threats.md")).expect("the document is there");
    guarantees::parse_threats(&document).expect("its table is understood")
}

#[test]
fn every_threat_names_tests_that_exist() {
    let repo = Repo::find().expect("cargo reads the manifests");
    let rows = rows(&repo.root);
    assert_eq!(guarantees::missing(&repo.root, &rows).expect("the cases are there"), [""; 0]);
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let missing: Vec<String> =
        NEEDED.iter().map(|id| format!("T-{id:03}")).filter(|id| !ids.contains(id.as_str())).collect();
    assert_eq!(missing, [""; 0]);
}

/// Where a process is ended by its number, and why that number cannot be another one's by then.
const BY_NUMBER: [(&str, &str); 6] = [
    ("crates/sandbox/src/native.rs", "a group of our own child, which nobody has waited for yet"),
    ("crates/sandbox/launcher/src/first.rs", "a child of the first process of its own namespace"),
    (
        "crates/sandbox/launcher/src/sys.rs",
        "a child that nobody has waited for yet, and all of its own namespace",
    ),
    (
        "crates/sandbox/launcher/src/prober.rs",
        "a try that must fail, from a namespace in which nobody else is",
    ),
    ("crates/sandbox/src/service/spawn.rs", "a group of our own child, which nobody has waited for yet"),
    ("crates/sandbox/src/fail_point.rs", "this process"),
];

#[test]
fn no_process_is_ended_by_a_number_that_could_be_another_one_s() {
    let repo = Repo::find().expect("cargo reads the manifests");
    let mut found = BTreeSet::new();
    sources(&repo.root.join("crates"), &mut |path, text| {
        let calls = ["kill_process(", "kill_process_group(", "libc::kill(", "SYS_tgkill", "SYS_kill"];
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let ends = product.lines().any(|line| {
            // Asking whether a signal could be sent ends nothing.
            calls.iter().any(|call| line.contains(call))
                && !line.trim().starts_with("//")
                && !line.contains(", 0)")
        });
        if ends {
            found.insert(path.strip_prefix(&repo.root).expect("is below").display().to_string());
        }
    });
    let known: BTreeSet<String> = BY_NUMBER.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known);
}

fn sources(directory: &Path, each: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).expect("can be read").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "examples", "target"].contains(&name.as_str()) {
                sources(&path, each);
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            each(&path, &fs::read_to_string(&path).unwrap_or_default());
        }
    }
}
