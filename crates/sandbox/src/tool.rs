//! Which program each tool is. Every tool runs in the sandbox, also one that only reads.

use model::{OsText, Tool, WorkspacePath};

/// A program, and what it reads from standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<OsText>,
    /// What it reads from standard input, when the tool brings something.
    pub input: Option<Vec<u8>>,
}

/// Writes standard input to the file named by the first argument, and makes the directories on the way.
const WRITE: &str = r#"set -e; d=$(dirname -- "$1"; echo .); mkdir -p -- "${d%
.}"; cat > "$1""#;

impl Program {
    /// Returns the program that carries a tool out.
    pub fn of(tool: &Tool) -> Self {
        match tool {
            Tool::Run { argv } => Self { argv: argv.clone(), input: None },
            Tool::Read { path } => Self::without_input(&["cat", "--"], Some(path)),
            Tool::List { path } => Self::without_input(&["ls", "-lA", "--"], path.as_ref()),
            Tool::Search { pattern, path } => {
                // Binary files and git's own are left out; line numbers are what a reader needs next.
                let fixed = ["grep", "-rnIE", "--exclude-dir=.git", "-e", pattern, "--"];
                Self::without_input(&fixed, path.as_ref())
            }
            Tool::Write { path, content } => Self {
                argv: texts(&["sh", "-c", WRITE, "write"]).chain([under_here(Some(path))]).collect(),
                input: Some(content.clone().into_bytes()),
            },
            Tool::Patch { diff, .. } => Self {
                // `git apply` refuses paths that leave the directory or go through links, and works outside repositories.
                argv: texts(&["git", "apply", "--whitespace=nowarn", "-"]).collect(),
                input: Some(diff.clone().into_bytes()),
            },
        }
    }

    fn without_input(fixed: &[&str], path: Option<&WorkspacePath>) -> Self {
        Self { argv: texts(fixed).chain([under_here(path)]).collect(), input: None }
    }
}

fn texts<'a>(texts: &'a [&'a str]) -> impl Iterator<Item = OsText> + 'a {
    texts.iter().map(|text| OsText::literal(text))
}

/// Returns the path so that no program takes it for an option.
fn under_here(path: Option<&WorkspacePath>) -> OsText {
    match path {
        None => OsText::literal("."),
        Some(path) => OsText::literal("./").with(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_never_taken_for_an_option() {
        let path = WorkspacePath::parse("-rf").expect("a path");
        let program = Program::of(&Tool::Read { path });
        assert_eq!(program.argv.last().map(OsText::as_bytes), Some(&b"./-rf"[..]));
    }

    #[test]
    fn what_is_written_comes_by_standard_input_and_not_as_an_argument() {
        let path = WorkspacePath::parse("a/b").expect("a path");
        let program = Program::of(&Tool::Write { path, content: "$(id)".to_owned() });
        assert_eq!(program.input.as_deref(), Some(&b"$(id)"[..]));
        assert!(program.argv.iter().all(|argument| argument.as_bytes() != b"$(id)"));
    }
}
