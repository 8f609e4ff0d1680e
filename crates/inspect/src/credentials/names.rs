//! What a file's name says.

use std::sync::LazyLock;

use crate::protected::{folded_names, matches_folded};

pub(super) const LIST: &str = include_str!("../../data/credential-names.txt");

static NAMES: LazyLock<Vec<Name>> = LazyLock::new(|| parse(LIST));

/// When a file with such a name is a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Never,
    Always,
    /// When it gives a variable a value.
    Values,
    /// When it gives a password, a token or a key a value.
    Token,
}

#[derive(Debug)]
pub(super) struct Name {
    pub(super) when: When,
    pub(super) reason: &'static str,
    parts: Vec<&'static str>,
    directory: bool,
}

/// Returns the first line that a path matches.
pub(super) fn line_for(path: &[u8]) -> Option<&'static Name> {
    let names = folded_names(path);
    NAMES.iter().find(|line| line.matches(&names))
}

impl Name {
    fn matches(&self, path: &[String]) -> bool {
        let matches_here = |names: &[String]| {
            self.parts.iter().zip(names).all(|(pattern, name)| matches_folded(pattern, name))
        };
        if self.directory {
            let around = &path[..path.len().saturating_sub(1)];
            return around.windows(self.parts.len()).any(matches_here);
        }
        path.len().checked_sub(self.parts.len()).is_some_and(|start| matches_here(&path[start..]))
    }
}

fn parse(text: &'static str) -> Vec<Name> {
    crate::list::lines(text)
        .filter_map(|line| {
            let [when, pattern] = line.fields.as_slice() else { return None };
            let when = match *when {
                "never" => When::Never,
                "always" => When::Always,
                "values" => When::Values,
                "token" => When::Token,
                _ => return None,
            };
            let directory = pattern.ends_with('/');
            let parts = pattern.trim_end_matches('/').split('/').collect();
            Some(Name { when, reason: line.reason, parts, directory })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_and_has_a_reason() {
        let written = LIST.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        assert_eq!(NAMES.len(), written);
        assert!(NAMES.iter().all(|line| !line.reason.is_empty()));
    }

    #[test]
    fn a_name_is_judged_by_its_end_and_a_directory_by_what_is_in_it() {
        let when = |path: &str| line_for(path.as_bytes()).map(|line| line.when);
        assert_eq!(when("deploy/.env"), Some(When::Values));
        assert_eq!(when(".env/lib/python/site.py"), None);
        assert_eq!(when(".env.example"), Some(When::Never));
        assert_eq!(when("app/.ENV.Production"), Some(When::Values));
        assert_eq!(when("keys/id_rsa"), Some(When::Always));
        assert_eq!(when("keys/id_rsa.pub"), Some(When::Never));
        assert_eq!(when("home/.ssh/work"), Some(When::Always));
        assert_eq!(when(".ssh"), None);
        assert_eq!(when(".aws/credentials"), Some(When::Always));
        assert_eq!(when("src/credentials.rs"), None);
    }
}
