//! Text that only the gateway of an action may know.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A key or a password. It is said to the gateway as it is, and shown to nobody.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that is one.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Shows it, to who puts it to its use.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
