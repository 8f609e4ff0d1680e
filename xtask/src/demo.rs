//! The demonstration: sets the machine up, builds the program, and lets it show itself.

use anyhow::Result;

use crate::repo::Repo;
use crate::{apparmor, run, scratch, setup};

/// Runs it.
///
/// # Errors
/// When the machine cannot be set up, the program does not compile, or the demonstration fails.
pub fn run(repo: &Repo) -> Result<()> {
    setup::ensure(setup::FOR_DEMO)?;
    apparmor::ensure(repo)?;
    let fumehood = repo.build_fumehood()?;
    run::succeed("fumehood demo", run::command(fumehood).arg("demo").env("TMPDIR", scratch::place()))
}
