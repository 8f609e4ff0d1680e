//! The demonstration: sets the machine up, builds the program, and lets it show itself.

use anyhow::Result;

use crate::repo::Repo;
use crate::{run, setup};

/// Runs it.
///
/// # Errors
/// When the machine cannot be set up, the program does not compile, or the demonstration fails.
pub fn run(repo: &Repo) -> Result<()> {
    setup::ensure(setup::FOR_DEMO)?;
    let fumehood = repo.build_fumehood()?;
    run::succeed("fumehood demo", run::command(fumehood).arg("demo"))
}
