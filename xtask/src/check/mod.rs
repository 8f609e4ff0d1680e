//! Checks what can be said without running the product: format, lints, licences, banned crates, documents.

pub mod dependencies;

use anyhow::{Result, bail};

use crate::repo::Repo;
use crate::{run, say};

/// Runs every check, and stops at the first that fails.
///
/// # Errors
/// When a check fails; the tool that checks has said what and where.
pub fn run(repo: &Repo) -> Result<()> {
    run::succeed("format", &mut repo.cargo(&["fmt", "--all", "--check"]))?;
    dependencies(repo)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    run::succeed("lints", &mut repo.cargo(&clippy))?;
    let mut docs = repo.cargo(&["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"]);
    run::succeed("documents", docs.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"))
}

/// Checks the dependencies against `deny.toml`: by cargo-deny where it is installed, and always by our own reading of
/// the same file, which needs neither minutes of building nor a network.
fn dependencies(repo: &Repo) -> Result<()> {
    say::step("licences, bans and sources");
    let faults = dependencies::faults(repo)?;
    if !faults.is_empty() {
        bail!("dependencies that `deny.toml` does not allow:\n  {}", faults.join("\n  "));
    }
    let installed =
        run::command("cargo").args(["deny", "--version"]).output().is_ok_and(|done| done.status.success());
    if !installed {
        say::note(
            "cargo-deny is not installed (`cargo install --locked cargo-deny`); our own reading of deny.toml stands",
        );
        return Ok(());
    }
    let checks = ["deny", "--all-features", "check", "bans", "licenses", "sources"];
    run::succeed("cargo deny", &mut repo.cargo(&checks))
}
