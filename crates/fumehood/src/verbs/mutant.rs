//! The layer that a build for tests leaves out, so that a test can show that this is noticed.

use crate::settings::Environment;

/// Returns the layer that the environment names; only builds with the feature `mutants` look.
pub(super) fn chosen(environment: &Environment) -> Option<String> {
    let named = environment.filled("FUMEHOOD_TEST_MUTANT").and_then(|name| name.to_str());
    named.filter(|_| cfg!(feature = "mutants")).map(str::to_owned)
}
