//! Credentials, as the operator's settings say them: where each is, and what it is for.
//!
//! Guarantees: one that lacks something, or says what does not go together, stops every command that reads settings, with what
//! to write; a repository's own file has none. No value is read here.

use std::path::PathBuf;
use std::time::Duration;

use engine::CredentialKind;
use model::egress::{Placement, Protocol};
use model::text::escape;
use model::units::display_duration;
use model::{EgressRule, TaskId};

use super::key::{CredentialSetting, NetworkSetting, VaultPlace};
use super::resolved::{Settings, SettingsError};

/// How long an action has a credential at most, when nothing is said.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// A credential with all that settings say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialTable {
    /// Its name.
    pub name: String,
    /// What it opens.
    pub kind: CredentialKind,
    /// Who answers for it.
    pub owner: String,
    /// What it is for; each of them names it.
    pub rules: Vec<EgressRule>,
    /// The directories whose repositories may use it.
    pub repositories: Vec<PathBuf>,
    /// The tasks that may use it; all of these repositories when missing.
    pub tasks: Option<Vec<TaskId>>,
    /// The most time from its lease to its end.
    pub lifetime: Duration,
    /// Where it is put into requests.
    pub placement: Placement,
    /// The variable that has its stand-in inside.
    pub stand_in: Option<String>,
    /// Whether it may be put into requests in the clear.
    pub in_clear: bool,
    /// Where its value is.
    pub source: CredentialSource,
}

/// Where the value of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// In this variable of the environment.
    Variable(String),
    /// In this file.
    File(PathBuf),
    /// Printed by this program with these arguments.
    Command(Vec<String>),
    /// In a secret of a vault, whose token is in this file or where clients of vaults look for it.
    Vault(VaultPlace, Option<PathBuf>),
}

impl Settings {
    /// Returns all credentials.
    pub fn credential_tables(&self) -> Vec<CredentialTable> {
        self.credentials.keys().filter_map(|name| self.credential_table(name)).collect()
    }

    /// Returns one credential.
    pub fn credential_table(&self, name: &str) -> Option<CredentialTable> {
        // INVARIANT: settings that resolved have whole ones only.
        self.credentials.get(name).and_then(|_| self.put_together(name).ok())
    }

    /// Looks whether each credential is whole, and is there where one is named.
    pub(super) fn check_credentials(&self) -> Result<(), SettingsError> {
        let wrong = |name: &str, why: String| SettingsError::Credential { name: name.to_owned(), why };
        for name in self.credentials.keys() {
            self.put_together(name).map_err(|why| wrong(name, why))?;
        }
        let named = self.networks.iter().flat_map(|(network, parts)| {
            parts.iter().filter_map(move |part| match &part.value {
                NetworkSetting::Credentials(names) => Some(names.iter().map(move |name| (network, name))),
                _ => None,
            })
        });
        match named.flatten().find(|(_, name)| !self.credentials.contains_key(*name)) {
            Some((network, name)) => {
                Err(wrong(name, format!("`[network.{network}]` names it, and there is none")))
            }
            None => Ok(()),
        }
    }

    fn put_together(&self, name: &str) -> Result<CredentialTable, String> {
        let parts: Vec<&CredentialSetting> =
            self.credentials.get(name).into_iter().flatten().map(|part| &part.value).collect();
        let parts = Parts(&parts);
        let lacks = |key: &str| format!("`{key}` is missing: {}", example(key));
        let source = parts.sources();
        let [source] = source.as_slice() else {
            return Err(
                "one of `variable`, `file`, `command` and `vault` has to say where its value is".to_owned()
            );
        };
        let in_clear =
            parts.last(|part| if let CredentialSetting::InClear(is) = part { Some(*is) } else { None });
        let in_clear = in_clear.unwrap_or(false);
        Ok(CredentialTable {
            name: name.to_owned(),
            kind: parts
                .last(|part| if let CredentialSetting::Kind(kind) = part { Some(*kind) } else { None })
                .ok_or_else(|| lacks("type"))?,
            owner: parts
                .last(
                    |part| {
                        if let CredentialSetting::Owner(owner) = part { Some(owner.clone()) } else { None }
                    },
                )
                .ok_or_else(|| lacks("owner"))?,
            rules: parts.rules(name, in_clear)?,
            repositories: parts
                .last(
                    |part| {
                        if let CredentialSetting::Repositories(all) = part { Some(all.clone()) } else { None }
                    },
                )
                .ok_or_else(|| lacks("repositories"))?,
            tasks: parts
                .last(|part| if let CredentialSetting::Tasks(all) = part { Some(all.clone()) } else { None }),
            lifetime: parts
                .last(|part| if let CredentialSetting::Lifetime(time) = part { Some(*time) } else { None })
                .unwrap_or(LIFETIME),
            placement: parts
                .last(
                    |part| if let CredentialSetting::Placement(at) = part { Some(at.clone()) } else { None },
                )
                .unwrap_or(Placement::Bearer),
            stand_in: parts.last(|part| {
                if let CredentialSetting::StandIn(name) = part { Some(name.clone()) } else { None }
            }),
            in_clear,
            source: source.clone(),
        })
    }
}

/// What is said of one credential, oldest first.
struct Parts<'p>(&'p [&'p CredentialSetting]);

impl Parts<'_> {
    fn last<T>(&self, of: impl Fn(&CredentialSetting) -> Option<T>) -> Option<T> {
        self.0.iter().rev().find_map(|part| of(part))
    }

    /// Returns where the value is said to be: the last of each kind.
    fn sources(&self) -> Vec<CredentialSource> {
        let variable = self.last(|part| match part {
            CredentialSetting::Variable(name) => Some(CredentialSource::Variable(name.clone())),
            _ => None,
        });
        let file = self.last(|part| match part {
            CredentialSetting::File(path) => Some(CredentialSource::File(path.clone())),
            _ => None,
        });
        let command = self.last(|part| match part {
            CredentialSetting::Command(words) => Some(CredentialSource::Command(words.clone())),
            _ => None,
        });
        let token = self.last(|part| match part {
            CredentialSetting::VaultToken(file) => Some(file.clone()),
            _ => None,
        });
        let vault = self.last(|part| match part {
            CredentialSetting::Vault(place) => Some(CredentialSource::Vault(place.clone(), token.clone())),
            _ => None,
        });
        variable.into_iter().chain(file).chain(command).chain(vault).collect()
    }

    /// Returns what it is for, each with its name.
    fn rules(&self, name: &str, in_clear: bool) -> Result<Vec<EgressRule>, String> {
        let rules = self.last(|part| match part {
            CredentialSetting::Rules(rules) => Some(rules.clone()),
            _ => None,
        });
        let rules = rules.filter(|rules| !rules.is_empty());
        let rules = rules.ok_or_else(|| format!("`rules` is missing: {}", example("rules")))?;
        let inside = self.last(|part| match part {
            CredentialSetting::Inside(networks) => Some(networks.iter().copied().collect()),
            _ => None,
        });
        let inside: std::collections::BTreeSet<ipnet::IpNet> = inside.unwrap_or_default();
        let named = |rule: EgressRule| match rule.protocol {
            Protocol::Tcp => Err(format!("nobody looks into `{rule}`, so no credential can be put there")),
            Protocol::Http if !in_clear => {
                Err(format!("`{rule}` is in the clear: write `https://`, or add `in_clear = true`"))
            }
            Protocol::Http | Protocol::Https => {
                Ok(EgressRule { credential: Some(name.to_owned()), inside: inside.clone(), ..rule })
            }
        };
        rules.into_iter().map(named).collect()
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "type" => "write `type = \"development\"`, or `\"production\"` for one that serves no sandbox",
        "owner" => "write who answers for it, for example `owner = \"ada\"`",
        "repositories" => {
            "write the directories whose repositories may use it, for example `[\"/src/project\"]`"
        }
        _ => "write what it is for, for example `rules = [\"https://api.example.com/v1/**\"]`",
    }
}

impl CredentialSetting {
    /// Returns its key, and its value for people.
    pub(super) fn shown(&self) -> (&'static str, String) {
        let all = |values: Vec<String>| values.join(", ");
        match self {
            Self::Kind(kind) => ("type", kind.name().to_owned()),
            Self::Owner(owner) => ("owner", owner.clone()),
            Self::Rules(rules) => ("rules", all(rules.iter().map(ToString::to_string).collect())),
            Self::Inside(networks) => ("inside", all(networks.iter().map(ToString::to_string).collect())),
            Self::Repositories(places) => {
                ("repositories", all(places.iter().map(|at| at.to_string_lossy().into_owned()).collect()))
            }
            Self::Tasks(tasks) => ("tasks", all(tasks.iter().map(ToString::to_string).collect())),
            Self::Lifetime(time) => ("lifetime", display_duration(*time)),
            Self::Placement(placement) => ("placement", placement.to_string()),
            Self::StandIn(name) => ("stand_in", name.clone()),
            Self::InClear(is) => ("in_clear", is.to_string()),
            Self::Variable(name) => ("variable", name.clone()),
            Self::File(path) => ("file", path.to_string_lossy().into_owned()),
            Self::Command(words) => ("command", words.join(" ")),
            Self::Vault(VaultPlace { url, field }) => ("vault", format!("{url}#{field}")),
            Self::VaultToken(file) => ("vault_token", file.to_string_lossy().into_owned()),
        }
    }
}

impl std::fmt::Display for CredentialSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable {}", escape(name)),
            Self::File(path) => write!(f, "the file `{}`", escape(&path.to_string_lossy())),
            Self::Command(words) => {
                write!(f, "the command `{}`", escape(words.first().map_or("", String::as_str)))
            }
            Self::Vault(VaultPlace { url, field }, _) => {
                write!(f, "the field `{}` of `{}`", escape(field), escape(url))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, SettingsFile, Source};
    use super::*;

    const WHOLE: &str = "[credential.forge]\ntype = \"development\"\nowner = \"ada\"\nvariable = \"FORGE_TOKEN\"\n\
                         rules = [\"GET https://a.test/api/**\"]\nrepositories = [\"/src\"]\n";

    fn settings(text: &str) -> Result<Settings, String> {
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into()));
        let file = file.map_err(|problems| problems.iter().map(ToString::to_string).collect::<String>())?;
        Settings::resolve(vec![file], &Environment::from([("HOME", "/home/ada")]), Vec::new())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_credential_is_for_what_it_says_and_a_network_can_use_it() {
        let more = "placement = \"basic git\"\nstand_in = \"FORGE_TOKEN\"\nlifetime = \"10m\"\ninside = [\"10.0.0.0/8\"]\n\
                    [network.web]\nrules = [\"https://b.test\"]\ncredentials = [\"forge\"]\n";
        let settings = settings(&format!("{WHOLE}{more}")).expect("is right");
        let table = settings.credential_table("forge").expect("is there");
        assert_eq!((table.kind, table.owner.as_str()), (CredentialKind::Development, "ada"));
        assert_eq!(table.rules[0].to_string(), "GET https://a.test/api/** with forge in 10.0.0.0/8");
        assert_eq!(table.lifetime, Duration::from_secs(600));
        let network: Vec<String> =
            settings.network("web").expect("is there").iter().map(ToString::to_string).collect();
        assert_eq!(network, ["GET https://a.test/api/** with forge in 10.0.0.0/8", "https://b.test"]);
        let own = settings.reachable().expect("is right").pop().expect("its own");
        assert_eq!((own.rules.len(), own.repositories), (1, Some(vec!["/src".into()])));
    }

    #[test]
    fn what_is_not_whole_is_refused_with_what_to_write() {
        let without = |key: &str| {
            let lines: Vec<&str> = WHOLE.lines().filter(|line| !line.starts_with(key)).collect();
            lines.join("\n")
        };
        for key in ["type", "owner", "rules", "repositories", "variable"] {
            let why = settings(&without(key)).expect_err(key);
            assert!(why.starts_with("`[credential.forge]`: ") && why.contains(&format!("`{key}`")), "{why}");
        }
        for (more, why) in [
            ("file = \"/k\"\n", "has to say where"),
            ("rules = [\"tcp://a.test:1\"]\n", "duplicate"),
            ("placement = \"cookie x\"\n", "is not a place in requests"),
            ("command = [\"pass\"]\n", "is not a program"),
            ("vault = \"https://v.test/v1/secret/data/ci\"\n", "is not a secret of a vault"),
            ("vault = \"http://v.test/v1/secret/data/ci#t\"\n", "is not a secret of a vault"),
            ("vault = \"https://v.test/v1/secret/data/ci#t\"\n", "has to say where"),
            ("stand_in = \"A-B\"\n", "is not the name of a variable"),
            ("in_clear = \"yes\"\n", "is not yes or no"),
            ("tasks = [\"x\"]\n", "is not a list of tasks"),
            ("[network.web]\ncredentials = [\"gone\"]\n", "there is none"),
        ] {
            let told = settings(&format!("{WHOLE}{more}")).expect_err(more);
            assert!(told.contains(why), "{more}: {told}");
        }
        let clear = WHOLE.replace("https://", "http://");
        assert!(settings(&clear).expect_err("in the clear").contains("in_clear = true"));
        assert!(settings(&format!("{clear}in_clear = true\n")).is_ok());
        let tcp = WHOLE.replace("GET https://a.test/api/**", "tcp://a.test:1");
        assert!(settings(&tcp).expect_err("not looked into").contains("nobody looks into"));
        assert!(settings("[credential.\"A b\"]\n").expect_err("a name").contains("name of a credential"));
    }
}
