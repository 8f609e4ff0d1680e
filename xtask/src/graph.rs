//! The arrows between our crates, as `ARCHITECTURE.md` draws them.

use crate::repo::Metadata;

/// Each of our crates, and which of our crates it may know.
pub const MAY_KNOW: &[(&str, &[&str])] = &[
    ("fumehood-model", &[]),
    ("fumehood-launcher", &[]),
    ("fumehood-audit", &["fumehood-model"]),
    ("fumehood-effects", &["fumehood-model"]),
    ("fumehood-gate", &["fumehood-model", "fumehood-audit"]),
    ("fumehood-prove", &["fumehood-model", "fumehood-audit", "fumehood-gate"]),
    ("fumehood-sandbox", &["fumehood-model", "fumehood-audit", "fumehood-gate", "fumehood-launcher"]),
    ("fumehood-inspect", &["fumehood-model", "fumehood-audit", "fumehood-gate", "fumehood-sandbox"]),
    (
        "fumehood-engine",
        &[
            "fumehood-model",
            "fumehood-effects",
            "fumehood-audit",
            "fumehood-gate",
            "fumehood-sandbox",
            "fumehood-inspect",
        ],
    ),
    ("fumehood-agent", &["fumehood-model"]),
    // Of the launcher it knows the packets with descriptors.
    ("fumehood-egress", &["fumehood-model", "fumehood-launcher"]),
    (
        "fumehood",
        &[
            "fumehood-model",
            "fumehood-audit",
            "fumehood-gate",
            "fumehood-prove",
            "fumehood-sandbox",
            "fumehood-inspect",
            "fumehood-engine",
            "fumehood-agent",
            "fumehood-egress",
        ],
    ),
    (
        "fumehood-fuzz",
        &[
            "fumehood-model",
            "fumehood-effects",
            "fumehood-launcher",
            "fumehood-audit",
            "fumehood-gate",
            "fumehood-sandbox",
            "fumehood-inspect",
            "fumehood-engine",
            "fumehood-agent",
            "fumehood-egress",
            "fumehood",
        ],
    ),
    ("xtask", &["fumehood-model"]),
];

/// The crates in which `unsafe` may stand.
pub const MAY_BE_UNSAFE: [&str; 2] = ["fumehood-sandbox", "fumehood-launcher"];

/// Names every arrow that is not in [`MAY_KNOW`], and every crate that the list does not know.
pub fn wrong_arrows(metadata: &Metadata) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in metadata.members() {
        let Some((_, allowed)) = MAY_KNOW.iter().find(|(name, _)| *name == package.name) else {
            wrong.push(format!("{} has no place in the graph", package.name));
            continue;
        };
        let ours = package.dependencies.iter().filter(|to| MAY_KNOW.iter().any(|(name, _)| *name == to.name));
        // A package may name itself to switch features on for its own tests.
        let foreign = ours.filter(|to| to.name != package.name && !allowed.contains(&to.name.as_str()));
        wrong.extend(foreign.map(|to| format!("{} must not know {}", package.name, to.name)));
    }
    wrong
}

/// Names every source file that starts a library or program and does not forbid `unsafe` though it must.
pub fn without_the_ban(metadata: &Metadata) -> Vec<String> {
    let mut without = Vec::new();
    for package in metadata.members().filter(|package| !MAY_BE_UNSAFE.contains(&package.name.as_str())) {
        for target in &package.targets {
            let ships = target.kind.iter().any(|kind| kind == "lib" || kind == "bin");
            let text = std::fs::read_to_string(&target.src_path).unwrap_or_default();
            if ships && !text.contains("#![forbid(unsafe_code)]") {
                without.push(target.src_path.display().to_string());
            }
        }
    }
    without
}
