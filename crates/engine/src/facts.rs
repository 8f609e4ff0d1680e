//! What policy is told of an action beside what it asks for.
//!
//! Guarantees: there is one way to put that together, so whoever decides an action, now or ahead of it, decides on the
//! same facts.

use std::collections::BTreeMap;

use gate::Facts;
use inspect::protected::classify;
use model::Action;
use model::action::Principal;

use crate::Engine;
use crate::clock::now;
use crate::error::EngineError;
use crate::handle::Order;

impl Engine {
    /// Returns everything that policy is told of an action.
    pub(crate) fn facts(&self, order: &Order, action: &Action) -> Result<Facts, EngineError> {
        let writes = action.request().tool.writes();
        let codes = |path| classify(path).into_iter().map(|class| class.code().to_owned()).collect();
        let classes: BTreeMap<_, _> = writes.iter().map(|path| (path.clone(), codes(path))).collect();
        // Who asks for an input is who named it; what an agent asks for was named by nobody.
        let inputs = match action.request().principal {
            Principal::User(_) | Principal::Engine => order.grant.inputs.clone(),
            Principal::Agent(_) => Vec::new(),
        };
        let joined = self.joined_action(action.task(), action.grant())?;
        // Written out in full, so that no fact is forgotten.
        Ok(Facts {
            profile: order.profile.clone(),
            inputs,
            classes,
            joined,
            approvals: Vec::new(),
            now: now(),
        })
    }
}
