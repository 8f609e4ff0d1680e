//! Two policies side by side: what one allows and the other does not.

use std::collections::BTreeMap;

use gate::{BareQuestion, Policy};

use crate::symbolic::{Prover, Unproved};

/// What is different for one action of the schema.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The action.
    pub action: String,
    /// What only the second policy allows.
    pub wider: Side,
    /// What only the first policy allows.
    pub narrower: Side,
}

/// One direction.
#[derive(Debug, Clone)]
pub enum Side {
    /// Nothing: proved.
    Nothing,
    /// Something: this for example.
    Something(Box<BareQuestion>),
    /// Nobody knows.
    Unknown(Unproved),
}

impl Prover<'_> {
    /// Says what becomes wider and narrower from one policy to another, for every action; the actions that are answered
    /// alike are there too.
    pub fn compare(&mut self, from: &Policy, to: &Policy) -> Vec<Difference> {
        let mut found: BTreeMap<String, Difference> = BTreeMap::new();
        for kind in self.kinds() {
            let action = kind.action().id().unescaped().to_owned();
            let entry = found.entry(action.clone()).or_insert_with(|| Difference {
                action,
                wider: Side::Nothing,
                narrower: Side::Nothing,
            });
            let compiled = self.compile(from.cedar(), &kind);
            match compiled.and_then(|old| Ok((old, self.compile(to.cedar(), &kind)?))) {
                Ok((old, new)) => {
                    entry.wider.take(self.beyond(&new, &old), to, from);
                    entry.narrower.take(self.beyond(&old, &new), from, to);
                }
                Err(why) => {
                    entry.wider.take(Err(why.clone()), to, from);
                    entry.narrower.take(Err(why), from, to);
                }
            }
        }
        found.into_values().collect()
    }
}

impl Side {
    /// Adds what was found for one kind of request. An example counts when the authorizer answers it so.
    fn take(&mut self, found: Result<Option<BareQuestion>, Unproved>, one: &Policy, other: &Policy) {
        let allowed = |policy: &Policy, question| policy.answer(question).map(|answer| answer.allowed);
        match (found, &*self) {
            (Ok(None), _) | (_, Self::Something(_)) => {}
            (Ok(Some(question)), _) => {
                let replayed = allowed(one, &question) == Ok(true) && allowed(other, &question) == Ok(false);
                *self = match replayed {
                    true => Self::Something(Box::new(question)),
                    false => Self::Unknown(Unproved::Unreplayed),
                };
            }
            (Err(why), _) => *self = Self::Unknown(why),
        }
    }
}
