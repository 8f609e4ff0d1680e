//! Arguments as they are known before a command runs.

use model::OsText;

/// One argument, without the quotes that a shell takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arg {
    /// What is known of it. Bytes that are not UTF-8 are replaced, so they are part of no name that we know.
    pub(crate) text: String,
    pub(crate) known: Known,
}

/// How much of an argument is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is this text.
    Exactly,
    /// It is a pattern of a shell, which becomes the names that match, or stays as it is.
    Pattern,
    /// It is one argument that begins with this text; the rest is known only at run time.
    Beginning,
    /// It is known only at run time, and may be any number of arguments.
    Not,
}

impl Arg {
    /// Takes an argument that no shell changes any more.
    pub(crate) fn given(text: &OsText) -> Self {
        Self::exactly(String::from_utf8_lossy(text.as_bytes()))
    }

    pub(crate) fn exactly(text: impl Into<String>) -> Self {
        Self { text: text.into(), known: Known::Exactly }
    }

    /// Tells whether it is one argument, whatever it holds.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self.known, Known::Exactly | Known::Beginning)
    }

    /// Returns an argument of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self { text: String::new(), known: Known::Not }
    }

    /// Returns the text, where it is known to the last character.
    pub(crate) fn exact(&self) -> Option<&str> {
        (self.known == Known::Exactly).then_some(self.text.as_str())
    }

    /// Tells whether it may turn out to be an option.
    pub(crate) fn may_be_option(&self) -> bool {
        match self.known {
            Known::Exactly => self.text.starts_with('-') && self.text != "-",
            Known::Beginning => self.text.is_empty() || self.text.starts_with('-'),
            // A name can begin with a dash, so a pattern that begins with a wildcard can become an option.
            Known::Pattern => self.text.starts_with(['-', '*', '?', '[']),
            Known::Not => true,
        }
    }
}
