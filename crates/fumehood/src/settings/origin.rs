//! Where a value came from.

use std::fmt;
use std::path::{Path, PathBuf};

use super::load::MACHINE_FILE;

/// A place in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: Source,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The operator's: in `/etc`, or in the user's own configuration directory.
    Operator(PathBuf),
    /// A repository's own, as this commit has it. It may only tighten.
    Repository {
        /// The commit; `None` when a file is only checked.
        commit: Option<String>,
        /// The name of the file.
        path: PathBuf,
    },
}

impl Source {
    /// Tells whether the file is a repository's own.
    pub fn is_repository(&self) -> bool {
        matches!(self, Self::Repository { .. })
    }

    /// Tells whether the file is the machine's own, which only its operator can write.
    pub fn is_machine(&self) -> bool {
        matches!(self, Self::Operator(path) if path == Path::new(MACHINE_FILE))
    }

    /// Returns the place of a byte of the file's text.
    pub fn place(&self, text: &str, byte: usize) -> Place {
        let before = &text[..floor_char_boundary(text, byte)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            source: self.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

fn floor_char_boundary(text: &str, byte: usize) -> usize {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |path: &PathBuf| model::text::escape(&path.to_string_lossy()).into_owned();
        match self {
            Self::Operator(path) | Self::Repository { commit: None, path } => f.write_str(&escaped(path)),
            Self::Repository { commit: Some(commit), path } => {
                let short = commit.get(..12).unwrap_or(commit);
                write!(f, "{short}:{}", escaped(path))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source, self.line, self.column)
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It comes with the program.
    BuiltIn,
    /// A settings file.
    File(Place),
    /// A variable of the environment.
    Environment(&'static str),
    /// An option of the command line.
    Flag(&'static str),
    /// A file of another program of the caller's.
    Client(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File(place) => place.fmt(f),
            Self::Environment(variable) => write!(f, "${variable}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Client(path) => f.write_str(&model::text::escape(&path.to_string_lossy())),
        }
    }
}

impl Origin {
    /// Tells whether the machine's own file says it, which only its operator can write.
    pub fn is_machine(&self) -> bool {
        matches!(self, Self::File(Place { source, .. }) if source.is_machine())
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// Takes a value that comes with the program.
    pub fn built_in(value: T) -> Self {
        Self { value, origin: Origin::BuiltIn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let source = Source::Operator("/etc/f.toml".into());
        let text = "a = 1\né = ü!\n";
        assert_eq!(source.place(text, 0).to_string(), "/etc/f.toml:1:1");
        assert_eq!(source.place(text, text.find('!').expect("there")).to_string(), "/etc/f.toml:2:6");
        assert_eq!(source.place(text, 7).line, 2, "the middle of a character");
        assert_eq!(source.place(text, 999).line, 3);
    }
}
