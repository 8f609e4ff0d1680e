//! Settings as they hold: the files, the environment and the command line together.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use model::intake::Sensitivity;
use model::text::escape;

use super::clients::ClientRegistry;
use super::environment::Environment;
use super::file::{Problem, SettingsFile};
use super::key::{
    AuditSetting, CredentialSetting, LimitSetting, MinimumSetting, ModelSetting, NetworkSetting,
    ProfileSetting, RegistrySetting, RoleSetting, Setting, VARIABLES, is_no_setting,
};
use super::nearest;
use super::origin::{Origin, Sourced};
use super::retention::RetentionSettings;
use super::value::{Value, ValueError};

/// Settings as they hold, with units, each with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where tasks, layers and the record are kept.
    pub state_dir: Sourced<PathBuf>,
    /// The profile of a run that names none.
    pub default_profile: Sourced<String>,
    /// The bundle, or the file of rules, that decides.
    pub policy: Sourced<String>,
    /// How long what is kept stays, and how much of it.
    pub retention: RetentionSettings,
    /// The user that commands run as when we are root and the workspace is root's; `None` leaves it to the sandbox.
    pub run_as: Option<Sourced<u32>>,
    /// Which model, and how it is reached.
    pub model: ModelSettings,
    /// The file that signed heads of the record are appended to, if any.
    pub anchor_file: Option<Sourced<PathBuf>>,
    /// The most that any run may use. All of them hold, so their order does not matter.
    pub ceiling: Vec<Sourced<LimitSetting>>,
    /// The least that must hold in every run. All of them hold.
    pub minimum: Vec<Sourced<MinimumSetting>>,
    /// Parts of the operator's own profiles; a later one goes before an earlier one.
    pub profiles: BTreeMap<String, Vec<Sourced<ProfileSetting>>>,
    /// Who has which role.
    pub roles: BTreeMap<String, Vec<Sourced<RoleSetting>>>,
    /// What may be reached over the network.
    pub networks: BTreeMap<String, Vec<Sourced<NetworkSetting>>>,
    /// Parts of credentials; a later one goes before an earlier one.
    pub credentials: BTreeMap<String, Vec<Sourced<CredentialSetting>>>,
    /// Files with certificates that gateways verify servers by, beside the system's. All of them hold.
    pub roots: Vec<Sourced<Vec<PathBuf>>>,
    /// The variables inside that hold canaries. All of them hold.
    pub canaries: Vec<Sourced<Vec<String>>>,
    /// What may come from registries of packages.
    pub registries: BTreeMap<String, Vec<Sourced<RegistrySetting>>>,
    /// What the caller's own clients say of registries.
    pub clients: Vec<ClientRegistry>,
    /// How sensitive what is in a directory is.
    pub repositories: BTreeMap<PathBuf, Sourced<Sensitivity>>,
    /// Where people of other accounts leave their answers, as the machine's file says it.
    pub answers: Option<Sourced<PathBuf>>,
}

/// Which model, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// Its name.
    pub name: Sourced<String>,
    /// The address of its API.
    pub base_url: Sourced<String>,
    /// Where the key is, if anywhere.
    pub key: Option<Sourced<KeySource>>,
}

/// Where the key of the model is. The key itself is read by who needs it, and is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In this variable of the environment.
    Variable(&'static str),
    /// In this file.
    File(PathBuf),
}

/// The variable that holds the key of the model.
const KEY_VARIABLE: &str = "DEEPSEEK_API_KEY";
const DEFAULT_MODEL: &str = "deepseek-flash";
const DEFAULT_BASE_URL: &str = "https://api.deepseek.com";

/// Says why there are no settings to go by.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Files hold something wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    File(Vec<Problem>),
    /// A file is there and cannot be read.
    #[error("cannot read the settings in `{}`", escape(&.path.to_string_lossy()))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file could have been written by somebody else.
    #[error("the settings in `{}` are not used: {why}", escape(&.path.to_string_lossy()))]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who could have written it, and what to do.
        why: String,
    },
    /// A variable with our prefix means nothing.
    #[error("`{}` in the environment is not a setting: {}", escape(.name), match .nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("valid are {}", VARIABLES.iter().map(|v| v.name).collect::<Vec<_>>().join(", ")),
    })]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The one that looks most like it.
        nearest: Option<&'static str>,
    },
    /// A variable has a value that it cannot have.
    #[error("{name} in the environment: {error}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong.
        error: ValueError,
    },
    /// A credential lacks something, or says what does not go together.
    #[error("`[credential.{}]`: {why}", escape(.name))]
    Credential {
        /// Its name.
        name: String,
        /// What is wrong, and what to write.
        why: String,
    },
    /// There is no place for the state.
    #[error(
        "there is no place for tasks and the record: HOME is not set; give --state-dir or FUMEHOOD_STATE_DIR"
    )]
    NoStateDir,
    /// A policy bundle was named that does not ship with the program.
    #[error("there is no policy bundle `{}` (from {origin}): {}", escape(.name), match .nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "`fumehood policy show` knows default and cautious".to_owned(),
    })]
    UnknownBundle {
        /// The name.
        name: String,
        /// Who named it.
        origin: Origin,
        /// The one that looks most like it.
        nearest: Option<String>,
    },
    /// A file of rules is named by a path that depends on where we stand.
    #[error("the policy `{}` (from {origin}) is no absolute path: write it in full, starting with `/`", escape(.path))]
    RelativePolicy {
        /// The path.
        path: String,
        /// Who named it.
        origin: Origin,
    },
    /// A registry cannot be gone by.
    #[error("the registry `{name}` of the settings: {why}")]
    Registry {
        /// Its name.
        name: String,
        /// What is missing, and what to do.
        why: String,
    },
    /// A profile was asked for that does not exist.
    #[error("there is no profile `{}` (from {origin}): {}", escape(.name), match .nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "`fumehood config explain profile` lists them".to_owned(),
    })]
    UnknownProfile {
        /// The name.
        name: String,
        /// Who named it.
        origin: Origin,
        /// The one that looks most like it.
        nearest: Option<String>,
    },
}

impl Settings {
    /// Puts together what files, environment and command line say; each goes before the ones before it, except for
    /// what can only tighten, where all of them hold.
    ///
    /// # Errors
    /// When a variable is unknown or wrong, or there is no place for the state.
    pub fn resolve(
        files: Vec<SettingsFile>,
        environment: &Environment,
        flags: Vec<(Setting, &'static str)>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::built_in(environment);
        for file in files {
            settings.add_file(file);
        }
        for (setting, origin) in variables(environment)? {
            settings.add(setting, origin);
        }
        if environment.filled(KEY_VARIABLE).is_some() {
            let (value, origin) = (KeySource::Variable(KEY_VARIABLE), Origin::Environment(KEY_VARIABLE));
            settings.model.key = Some(Sourced { value, origin });
        }
        for (setting, flag) in flags {
            settings.add(setting, Origin::Flag(flag));
        }
        if settings.state_dir.value.as_os_str().is_empty() {
            return Err(SettingsError::NoStateDir);
        }
        settings.profile(None)?;
        settings.check_credentials()?;
        Ok(settings)
    }

    /// Adds a repository's own file. Whatever it says, the result allows no more than before.
    pub fn tightened_by(mut self, repository: SettingsFile) -> Self {
        let tightens = |setting: &Setting| matches!(setting, Setting::Ceiling(_) | Setting::Minimum(_));
        let settings = repository.settings.into_iter().filter(|(setting, _)| tightens(setting)).collect();
        self.add_file(SettingsFile { source: repository.source, settings });
        self
    }

    /// Returns how sensitive a directory is: as the highest of all that is said of it and of what it is in. What nobody says
    /// anything of is restricted.
    pub fn sensitivity_of(&self, directory: &Path) -> Sensitivity {
        let said = self.repositories.iter().filter(|(of, _)| directory.starts_with(of));
        said.map(|(_, sensitivity)| sensitivity.value).max().unwrap_or_default()
    }

    fn built_in(environment: &Environment) -> Self {
        let state_dir = environment.xdg("XDG_STATE_HOME", ".local/state").map(|dir| dir.join("fumehood"));
        Self {
            state_dir: Sourced::built_in(state_dir.unwrap_or_default()),
            default_profile: Sourced::built_in("default".to_owned()),
            policy: Sourced::built_in("default".to_owned()),
            retention: RetentionSettings::built_in(),
            run_as: None,
            model: ModelSettings {
                name: Sourced::built_in(DEFAULT_MODEL.to_owned()),
                base_url: Sourced::built_in(DEFAULT_BASE_URL.to_owned()),
                key: None,
            },
            anchor_file: None,
            ceiling: Vec::new(),
            minimum: Vec::new(),
            profiles: BTreeMap::new(),
            roles: BTreeMap::new(),
            networks: BTreeMap::new(),
            credentials: BTreeMap::new(),
            roots: Vec::new(),
            canaries: Vec::new(),
            registries: BTreeMap::new(),
            clients: Vec::new(),
            repositories: BTreeMap::new(),
            answers: None,
        }
    }

    fn add_file(&mut self, file: SettingsFile) {
        for (setting, place) in file.settings {
            self.add(setting, Origin::File(place));
        }
    }

    fn add(&mut self, setting: Setting, origin: Origin) {
        match setting {
            Setting::StateDir(value) => self.state_dir = Sourced { value, origin },
            Setting::DefaultProfile(value) => self.default_profile = Sourced { value, origin },
            Setting::Policy(value) => self.policy = Sourced { value, origin },
            Setting::Retention(value) => self.retention.add(value, origin),
            Setting::RunAs(value) => self.run_as = Some(Sourced { value, origin }),
            Setting::Model(ModelSetting::Name(value)) => self.model.name = Sourced { value, origin },
            Setting::Model(ModelSetting::BaseUrl(value)) => self.model.base_url = Sourced { value, origin },
            Setting::Model(ModelSetting::KeyFile(path)) => {
                self.model.key = Some(Sourced { value: KeySource::File(path), origin });
            }
            Setting::Audit(AuditSetting::AnchorFile(value)) => {
                self.anchor_file = Some(Sourced { value, origin });
            }
            Setting::Ceiling(value) => self.ceiling.push(Sourced { value, origin }),
            Setting::Minimum(value) => self.minimum.push(Sourced { value, origin }),
            Setting::Repository(directory, value) => {
                self.repositories.insert(directory, Sourced { value, origin });
            }
            Setting::Answers(value) => self.answers = Some(Sourced { value, origin }),
            Setting::Profile(name, value) => {
                self.profiles.entry(name).or_default().push(Sourced { value, origin });
            }
            Setting::Network(name, value) => {
                self.networks.entry(name).or_default().push(Sourced { value, origin });
            }
            Setting::Credential(name, value) => {
                self.credentials.entry(name).or_default().push(Sourced { value, origin });
            }
            Setting::Roots(value) => self.roots.push(Sourced { value, origin }),
            Setting::Canary(value) => self.canaries.push(Sourced { value, origin }),
            Setting::Registry(name, value) => {
                self.registries.entry(name).or_default().push(Sourced { value, origin });
            }
            Setting::Role(name, value) => self.roles.entry(name).or_default().push(Sourced { value, origin }),
        }
    }
}

fn variables(environment: &Environment) -> Result<Vec<(Setting, Origin)>, SettingsError> {
    let ours = environment.iter().filter_map(|(name, value)| {
        let name = name.to_string_lossy();
        name.starts_with("FUMEHOOD_").then(|| (name.into_owned(), value))
    });
    let mut settings = Vec::new();
    for (name, value) in ours.filter(|(name, _)| !is_no_setting(name)) {
        let Some(variable) = VARIABLES.iter().find(|variable| variable.name == name) else {
            let nearest = nearest(&name, VARIABLES.iter().map(|variable| variable.name));
            return Err(SettingsError::UnknownVariable { name, nearest });
        };
        if value.is_empty() {
            continue; // Set to nothing is how a shell says "not set" for one command.
        }
        let word = match value.to_str() {
            Some(text) => Value::Word(text.to_owned()),
            None => Value::Other("text that is not UTF-8"),
        };
        let setting = (variable.make)(&word);
        let setting = setting.map_err(|error| SettingsError::Variable { name: variable.name, error })?;
        settings.push((setting, Origin::Environment(variable.name)));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::super::origin::Source;
    use super::*;

    fn file(path: &str, text: &str) -> SettingsFile {
        SettingsFile::parse(text, Source::Operator(path.into())).expect("is right")
    }

    fn home() -> Environment {
        Environment::from([("HOME", "/home/ada")])
    }

    #[test]
    fn later_sources_go_first_and_every_value_says_where_it_came_from() {
        let files = vec![
            file(
                "/etc/f.toml",
                "retention = \"1d\"\nrun_as = 7\n[model]\nname = \"a\"\nbase_url = \"https://a\"\n",
            ),
            file("/home/f.toml", "retention = \"2d\"\n[model]\nname = \"b\"\n"),
        ];
        let environment =
            Environment::from([("HOME", "/h"), ("FUMEHOOD_MODEL", "c"), ("FUMEHOOD_RUN_AS", "9")]);
        let flags = vec![(Setting::StateDir("/s".into()), "--state-dir")];
        let settings = Settings::resolve(files, &environment, flags).expect("resolves");
        let two_days = std::time::Duration::from_hours(48);
        assert_eq!(settings.retention.resolved(None, None).age(model::KeptClass::Layers), two_days);
        assert_eq!(
            (settings.model.name.value.as_str(), settings.model.name.origin),
            ("c", Origin::Environment("FUMEHOOD_MODEL"))
        );
        assert_eq!(settings.model.base_url.origin.to_string(), "/etc/f.toml:5:1");
        assert_eq!(settings.run_as.expect("is set").value, 9);
        assert_eq!(settings.state_dir, Sourced { value: "/s".into(), origin: Origin::Flag("--state-dir") });
        assert_eq!(settings.default_profile.origin, Origin::BuiltIn);
    }

    #[test]
    fn the_state_lives_below_home_unless_told_otherwise() {
        let settings = Settings::resolve(Vec::new(), &home(), Vec::new()).expect("resolves");
        assert_eq!(settings.state_dir.value.to_str(), Some("/home/ada/.local/state/fumehood"));
        let nowhere = Settings::resolve(Vec::new(), &Environment::default(), Vec::new());
        assert!(matches!(nowhere, Err(SettingsError::NoStateDir)));
    }

    #[test]
    fn how_sensitive_a_repository_is_comes_from_the_operator_and_unknown_is_the_highest() {
        let text = "[repository.\"/src\"]\nsensitivity = \"internal\"\n[repository.\"/src/keys\"]\nsensitivity = \"confidential\"\n\
                    [repository.\"/src/open\"]\nsensitivity = \"public\"\n";
        let settings = Settings::resolve(vec![file("f.toml", text)], &home(), Vec::new()).expect("resolves");
        let is = |path: &str| settings.sensitivity_of(Path::new(path));
        assert_eq!((is("/src/a"), is("/src/keys/b")), (Sensitivity::Internal, Sensitivity::Confidential));
        assert_eq!(is("/src/open"), Sensitivity::Internal, "no entry lowers another one");
        assert_eq!((is("/other"), is("/src-2")), (Sensitivity::Restricted, Sensitivity::Restricted));
        for wrong in [
            "[repository.\"src\"]\nsensitivity = \"public\"\n",
            "[repository.\"https://example.org/r.git\"]\nsensitivity = \"public\"\n",
            "[repository.\"/src\"]\nsensitivity = \"low\"\n",
            "[repository.\"/src\"]\nsensitive = true\n",
            "[repository]\nsensitivity = \"public\"\n",
        ] {
            assert!(SettingsFile::parse(wrong, Source::Operator("f.toml".into())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mistyped_variable_is_an_error_and_an_empty_one_is_none() {
        let wrong = Environment::from([("HOME", "/h"), ("FUMEHOOD_PROFIL", "strict")]);
        let error = Settings::resolve(Vec::new(), &wrong, Vec::new()).expect_err("is refused").to_string();
        assert!(error.ends_with("did you mean FUMEHOOD_PROFILE?"), "{error}");
        let fine = Environment::from([
            ("HOME", "/h"),
            ("FUMEHOOD_PROFILE", ""),
            ("FUMEHOOD_ARTIFACTS", "/artifacts"),
        ]);
        assert!(Settings::resolve(Vec::new(), &fine, Vec::new()).is_ok());
        let relative = Environment::from([("HOME", "/h"), ("FUMEHOOD_STATE_DIR", "state")]);
        assert!(matches!(
            Settings::resolve(Vec::new(), &relative, Vec::new()),
            Err(SettingsError::Variable { .. })
        ));
    }

    #[test]
    fn the_key_in_the_environment_goes_before_the_file() {
        let files = || vec![file("f.toml", "[model]\nkey_file = \"/k\"\n")];
        let settings = Settings::resolve(files(), &home(), Vec::new()).expect("resolves");
        assert_eq!(settings.model.key.map(|key| key.value), Some(KeySource::File("/k".into())));
        let environment = Environment::from([("HOME", "/h"), ("DEEPSEEK_API_KEY", "sk-secret")]);
        let settings = Settings::resolve(files(), &environment, Vec::new()).expect("resolves");
        assert!(!format!("{settings:?}").contains("sk-secret"));
        assert_eq!(settings.model.key.map(|key| key.value), Some(KeySource::Variable("DEEPSEEK_API_KEY")));
    }

    #[test]
    fn a_default_profile_that_does_not_exist_is_refused_at_once() {
        let files = vec![file("f.toml", "default_profile = \"strickt\"\n")];
        let error = Settings::resolve(files, &home(), Vec::new()).expect_err("is refused").to_string();
        assert_eq!(error, "there is no profile `strickt` (from f.toml:1:1): did you mean `strict`?");
    }
}
