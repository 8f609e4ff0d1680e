//! The solver: cvc5, named by the variable `CVC5` or found on PATH, and started by `sandbox` for one question at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::text::escape;
use prove::Solver;
use sandbox::service::ask_tool;

use super::Context;

/// The longest that one question may take. The solver is told so as well, and ends by itself a little earlier.
const WITHIN: Duration = Duration::from_secs(60);
const TOLD: [&str; 3] = ["--lang", "smt", "--tlimit=55000"];

/// The most that an answer may be long, in bytes.
const ANSWER_MAX: u64 = 16 << 20;

/// cvc5.
pub(super) struct Cvc5 {
    program: PathBuf,
    /// What it says that it is.
    pub(super) version: String,
}

impl Cvc5 {
    /// Finds it, or says why there is none.
    pub(super) fn find(context: &Context<'_>) -> Result<Self, String> {
        let named = context.environment.filled("CVC5").map(PathBuf::from);
        let program = match named {
            Some(named) if named.is_absolute() => Some(named),
            Some(named) => {
                let named = named.to_string_lossy();
                return Err(format!("the variable `CVC5` names `{}`: give the path in full", escape(&named)));
            }
            None => on_path(context),
        };
        let program = program.ok_or("there is no solver: install cvc5, or name it in the variable `CVC5`")?;
        let said = ask_tool(&program, &["--version"], b"", WITHIN, ANSWER_MAX);
        let version = said.ok().as_deref().and_then(version).ok_or_else(|| {
            format!("`{}` does not say that it is cvc5", escape(&program.to_string_lossy()))
        })?;
        Ok(Self { program, version })
    }
}

impl Solver for Cvc5 {
    fn answer(&mut self, script: &[u8]) -> io::Result<String> {
        ask_tool(&self.program, &TOLD, script, WITHIN, ANSWER_MAX)
    }
}

/// Finds the solver in the directories of PATH; a relative one would depend on where somebody stands.
fn on_path(context: &Context<'_>) -> Option<PathBuf> {
    let path = context.environment.filled("PATH")?;
    let places = std::env::split_paths(path).filter(|place| place.is_absolute());
    places.map(|place| place.join("cvc5")).find(|file| Path::new(file).is_file())
}

/// Reads the version out of what `--version` says, for example `cvc5 1.0.3`.
fn version(said: &str) -> Option<String> {
    let mut words = said.split_whitespace().skip_while(|word| *word != "cvc5").skip(1);
    let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("cvc5 {}", escape(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_out_of_what_the_solver_says() {
        assert_eq!(version("This is cvc5 version 1.0.3 [git ...]\n").as_deref(), Some("cvc5 1.0.3"));
        assert_eq!(version("Z3 version 4.8"), None);
        assert_eq!(version(""), None);
    }
}
