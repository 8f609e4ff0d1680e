//! Which rules decide: a bundle by its name, or a file of the operator's own.

use std::path::Path;

use engine::PolicySource;
use gate::BUNDLES;

use super::load::text_of;
use super::nearest;
use super::origin::Origin;
use super::resolved::{Settings, SettingsError};

impl Settings {
    /// Returns the rules that these settings name: an absolute path is that of a file, a word the name of a bundle.
    ///
    /// # Errors
    /// When there is no such bundle, or the file cannot be read or could have been written by somebody else. Then
    /// nothing runs.
    pub fn policy(&self) -> Result<PolicySource, SettingsError> {
        let named = &self.policy.value;
        if named.starts_with('/') {
            return text_of(Path::new(named)).map(PolicySource::Rules);
        }
        if named.contains('/') || named.ends_with(".cedar") {
            // From where it is read, a repository could stand in.
            let (path, origin) = (named.clone(), self.policy.origin.clone());
            return Err(SettingsError::RelativePolicy { path, origin });
        }
        bundle(named, self.policy.origin.clone())
    }
}

/// Returns the rules of a bundle that ships with the program.
///
/// # Errors
/// When there is none of that name.
pub fn bundle(name: &str, origin: Origin) -> Result<PolicySource, SettingsError> {
    let names = || BUNDLES.iter().map(|(name, _)| *name);
    if names().any(|known| known == name) {
        return Ok(PolicySource::Bundle(name.to_owned()));
    }
    let nearest = nearest(name, names()).map(str::to_owned);
    Err(SettingsError::UnknownBundle { name: name.to_owned(), origin, nearest })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::{Environment, SettingsFile, Source};
    use super::*;

    fn with(policy: &str) -> Settings {
        let text = format!("policy = \"{policy}\"\n");
        let file = SettingsFile::parse(&text, Source::Operator("f.toml".into())).expect("is right");
        let environment = Environment::from([("HOME", "/home/ada")]);
        Settings::resolve(vec![file], &environment, Vec::new()).expect("resolves")
    }

    #[test]
    fn a_bundle_is_known_by_its_name() {
        assert_eq!(with("cautious").policy().expect("is there"), PolicySource::Bundle("cautious".to_owned()));
        let error = with("cautius").policy().expect_err("is refused").to_string();
        assert_eq!(error, "there is no policy bundle `cautius` (from f.toml:1:1): did you mean `cautious`?");
    }

    #[test]
    fn rules_that_others_can_write_are_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rules.cedar");
        for relative in ["./rules.cedar", "rules.cedar", "~/rules.cedar"] {
            assert!(
                matches!(with(relative).policy(), Err(SettingsError::RelativePolicy { .. })),
                "{relative}"
            );
        }
        let settings = with(&path.to_string_lossy());
        assert!(matches!(settings.policy(), Err(SettingsError::Read { .. })), "it is not there");
        fs::write(&path, "permit (principal, action, resource);").expect("writes");
        assert!(matches!(settings.policy(), Ok(PolicySource::Rules(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("is ours");
        assert!(matches!(settings.policy(), Err(SettingsError::Untrusted { .. })));
    }
}
