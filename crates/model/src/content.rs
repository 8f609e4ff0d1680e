//! Classes of content that is kept beside the record: what is in it is known by digest only, there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A class of content. Each is kept under a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentClass {
    /// What a model was sent.
    Context,
    /// What commands printed.
    Output,
    /// What was said between an agent and its model.
    Transcript,
}

impl ContentClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Context, Self::Output, Self::Transcript];

    /// The classes whose content is kept in the database, and not as files.
    pub const IN_ROWS: [Self; 1] = [Self::Context];

    /// Returns the word that stands for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Output => "output",
            Self::Transcript => "transcript",
        }
    }
}

impl fmt::Display for ContentClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Says that a word names no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no class of content: `context`, `output` and `transcript` are", crate::text::escape(.0))]
pub struct ContentClassError(String);

impl FromStr for ContentClass {
    type Err = ContentClassError;

    fn from_str(word: &str) -> Result<Self, ContentClassError> {
        let class = Self::ALL.into_iter().find(|class| class.name() == word);
        class.ok_or_else(|| ContentClassError(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_word_everywhere() {
        for class in ContentClass::ALL {
            assert_eq!(class.name().parse(), Ok(class));
            assert_eq!(serde_json::to_string(&class).expect("is written"), format!("\"{class}\""));
        }
        assert!("outputs".parse::<ContentClass>().is_err());
    }
}
