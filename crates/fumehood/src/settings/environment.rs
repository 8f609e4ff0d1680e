//! The environment of the process, read once.
//!
//! Guarantees: this is the only place in the product that reads the environment; everything else is handed values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables of the environment, as they were at the start.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads the environment of this process.
    #[allow(clippy::disallowed_methods)] // The one place.
    pub fn of_this_process() -> Self {
        std::env::vars_os().collect()
    }

    /// Returns the value of a variable, also when it is empty.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Returns the value of a variable that is set to something.
    pub fn filled(&self, name: &str) -> Option<&OsStr> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable as an absolute path. Relative ones are as good as missing, as the XDG base
    /// directory specification has it.
    pub fn directory(&self, name: &str) -> Option<&Path> {
        self.filled(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// Returns the directory of a kind (`XDG_STATE_HOME`, say), by its variable or below the home directory.
    pub fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let own = self.directory(variable).map(Path::to_path_buf);
        own.or_else(|| self.directory("HOME").map(|home| home.join(below_home)))
    }

    /// Returns the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}

impl std::fmt::Debug for Environment {
    /// Writes the names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_as_good_as_missing() {
        let environment = Environment::from([("XDG_STATE_HOME", "state"), ("HOME", "/home/ada")]);
        assert_eq!(environment.xdg("XDG_STATE_HOME", ".local/state"), Some("/home/ada/.local/state".into()));
        assert_eq!(Environment::from([("HOME", "")]).xdg("XDG_STATE_HOME", "x"), None);
    }

    #[test]
    fn values_do_not_show_in_debug_output() {
        let environment = Environment::from([("DEEPSEEK_API_KEY", "sk-very-secret")]);
        assert_eq!(format!("{environment:?}"), r#"{"DEEPSEEK_API_KEY"}"#);
    }
}
