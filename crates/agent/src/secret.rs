//! Text that must not be shown.

use std::fmt;

/// A key or another text that nobody may see: it has no JSON form, and shows itself as `[secret]`.
///
/// It crosses the pipe in [`crate::protocol::Start`] only, by a form that is private to that module.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text that must not be shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Tells whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::new("sk-do-not-show");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "[secret] Some([secret])");
    }
}
