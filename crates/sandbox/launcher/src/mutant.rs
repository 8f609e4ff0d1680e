//! Mutants: one layer left out of the builder, so that tests can show that the unchanged prober notices.

use launcher::plan::Plan;

use crate::failure::{Done, Failure};

/// Refuses a plan that asks for a mutant, unless this launcher was built to have them.
pub(crate) fn refuse_unless_built_in(plan: &Plan) -> Done {
    match &plan.mutant {
        Some(name) if !cfg!(feature = "mutants") => {
            Err(Failure::new("mutant", format!("this launcher cannot leave out {name}")))
        }
        _ => Ok(()),
    }
}

/// Tells whether this plan leaves out the layer of that name.
pub(crate) fn leaves_out(plan: &Plan, layer: &str) -> bool {
    cfg!(feature = "mutants") && plan.mutant.as_deref() == Some(layer)
}
