//! Registries of packages, as the operator's settings and the caller's own clients have them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use engine::Reachable;
use model::EgressRule;
use model::egress::{NamePattern, Registry, RegistryKind};

use super::clients::ClientRegistry;
use super::key::RegistrySetting;
use super::origin::Sourced;
use super::resolved::{Settings, SettingsError};

/// A registry with all that is said of it.
struct Told {
    registry: Registry,
    inside: BTreeSet<ipnet::IpNet>,
    repositories: Option<Vec<PathBuf>>,
    private: BTreeSet<NamePattern>,
    /// Whether a table of the settings names it.
    named: bool,
}

impl Settings {
    /// Returns all registries: those that settings name, and those that only a client is told of.
    ///
    /// # Errors
    /// When a table does not say enough.
    pub fn registries(&self) -> Result<Vec<Registry>, SettingsError> {
        Ok(self.told()?.into_iter().map(|told| told.registry).collect())
    }

    /// Returns the rules of a registry; nothing when there is none of this name.
    ///
    /// # Errors
    /// When a table does not say enough.
    pub fn registry(&self, name: &str) -> Result<Option<BTreeSet<EgressRule>>, SettingsError> {
        let told = self.told()?.into_iter().find(|told| told.registry.name == name);
        Ok(told.map(|told| told.rules().into_iter().collect()))
    }

    /// Returns what of registries may be reached: what a table names.
    pub(super) fn reachable_registries(&self) -> Result<Vec<Reachable>, SettingsError> {
        let named = self.told()?.into_iter().filter(|told| told.named);
        Ok(named.map(|told| Reachable { rules: told.rules(), repositories: told.repositories }).collect())
    }

    /// Puts all registries together. What is private in one is told to the others of its kind.
    fn told(&self) -> Result<Vec<Told>, SettingsError> {
        let named = self.registries.iter().map(|(name, parts)| self.table(name, parts));
        let mut all = named.collect::<Result<Vec<_>, _>>()?;
        let unnamed = self.clients.iter().filter(|client| {
            !self.registries.contains_key(&client.name())
                && !all.iter().any(|told| told.registry.index == client.index.value)
        });
        let unnamed: Vec<Told> = unnamed.map(ClientRegistry::told).collect();
        all.extend(unnamed);
        let private: Vec<(String, RegistryKind, BTreeSet<NamePattern>)> = all
            .iter()
            .map(|told| (told.registry.name.clone(), told.registry.kind, told.private.clone()))
            .collect();
        for told in &mut all {
            let others = private
                .iter()
                .filter(|(name, kind, _)| *name != told.registry.name && *kind == told.registry.kind);
            let elsewhere =
                others.flat_map(|(name, _, all)| all.iter().map(|pattern| (pattern.clone(), name.clone())));
            told.registry.elsewhere = elsewhere.collect::<BTreeMap<_, _>>();
        }
        Ok(all)
    }

    fn table(&self, name: &str, parts: &[Sourced<RegistrySetting>]) -> Result<Told, SettingsError> {
        let wrong = |why: String| SettingsError::Registry { name: name.to_owned(), why };
        let last = |find: fn(&RegistrySetting) -> bool| {
            parts.iter().rev().map(|part| &part.value).find(|part| find(part))
        };
        let kind = match last(|part| matches!(part, RegistrySetting::Kind(_))) {
            Some(RegistrySetting::Kind(kind)) => *kind,
            _ => {
                return Err(wrong(
                    "it has no `kind`: write `kind = \"cargo\"`, `\"npm\"`, `\"pypi\"` or `\"debian\"`"
                        .to_owned(),
                ));
            }
        };
        let index = match last(|part| matches!(part, RegistrySetting::Index(_))) {
            Some(RegistrySetting::Index(index)) => Some(index.clone()),
            _ => self.client(name, kind).map(|client| client.index.value.clone()),
        };
        let index = index.ok_or_else(|| {
            wrong(format!("it has no `index`, and no settings of your own client of the kind {kind} name one: write where it lists what it has"))
        })?;
        let mut told = Told {
            registry: Registry::at(name, kind, index),
            inside: BTreeSet::new(),
            repositories: None,
            private: self.client(name, kind).map(|client| client.only.clone()).unwrap_or_default(),
            named: true,
        };
        for part in parts {
            told.add(&part.value).map_err(|pattern| {
                wrong(format!("`{pattern}` is no name of a package of the kind {kind}"))
            })?;
        }
        // Which suites a client asks for is about the very place that it asks.
        let own = self.clients.iter().filter(|client| client.index.value == told.registry.index);
        if told.registry.suites.is_empty() {
            told.registry.suites = own.flat_map(|client| client.suites.iter().cloned()).collect();
        }
        if kind == RegistryKind::Debian && told.registry.suites.is_empty() {
            return Err(wrong(
                "it has no `suites`: write for example `suites = [\"bookworm/main\"]`".to_owned(),
            ));
        }
        Ok(told)
    }

    /// Returns what the client of a kind is told: of this name, or for all names that have no registry of their own.
    fn client(&self, name: &str, kind: RegistryKind) -> Option<&ClientRegistry> {
        let of_kind = || self.clients.iter().filter(move |client| client.kind == kind);
        of_kind()
            .find(|client| client.name() == name)
            .or_else(|| of_kind().find(|client| client.only.is_empty()))
    }
}

impl ClientRegistry {
    /// Returns the name that it goes by: its kind, and the scope that it is for.
    pub(super) fn name(&self) -> String {
        if self.kind == RegistryKind::Debian {
            let last = self.index.value.path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            let rest = last.strip_prefix(self.kind.as_str()).unwrap_or(&last);
            let parts =
                rest.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
            return std::iter::once(self.kind.as_str()).chain(parts).collect::<Vec<_>>().join("-");
        }
        let scope = self.only.iter().map(ToString::to_string).next().unwrap_or_default();
        let plain: String = scope.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.to_ascii_lowercase().as_str() {
            "" => self.kind.to_string(),
            scope => format!("{}-{scope}", self.kind),
        }
    }

    fn told(&self) -> Told {
        let registry = Registry::at(&self.name(), self.kind, self.index.value.clone());
        Told {
            registry: Registry { suites: self.suites.clone(), ..registry },
            inside: BTreeSet::new(),
            repositories: None,
            private: self.only.clone(),
            named: false,
        }
    }
}

impl Told {
    fn rules(&self) -> Vec<EgressRule> {
        let with = |rule: EgressRule| EgressRule { inside: self.inside.clone(), ..rule };
        self.registry.rules().into_iter().map(with).collect()
    }

    /// Adds what one key says. A later file adds to lists, and replaces what is one thing.
    fn add(&mut self, part: &RegistrySetting) -> Result<(), NamePattern> {
        let kind = self.registry.kind;
        let registry = &mut self.registry;
        let of = |all: &[NamePattern]| {
            let one = |pattern: &NamePattern| pattern.of(kind).ok_or_else(|| pattern.clone());
            all.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        match part {
            RegistrySetting::Kind(_) | RegistrySetting::Index(_) => {}
            RegistrySetting::Downloads(places) => registry.downloads.extend(places.iter().cloned()),
            RegistrySetting::Suites(suites) => registry.suites.extend(suites.iter().cloned()),
            RegistrySetting::Inside(inside) => self.inside.extend(inside.iter().copied()),
            RegistrySetting::Repositories(some) => {
                self.repositories.get_or_insert_default().extend(some.iter().cloned())
            }
            RegistrySetting::Allow(names) => registry.allow.extend(of(names)?),
            RegistrySetting::Deny(names) => registry.deny.extend(of(names)?),
            RegistrySetting::Private(names) => self.private.extend(of(names)?),
            RegistrySetting::Known(names) => registry.known.extend(of(names)?),
            RegistrySetting::Scripts(names) => registry.scripts.extend(of(names)?),
            RegistrySetting::Cooldown(time) => registry.cooldown_s = time.as_secs(),
            RegistrySetting::UnknownAge(unlisted) => registry.unknown_age = *unlisted,
            RegistrySetting::NewNames(unlisted) => registry.new_names = *unlisted,
            RegistrySetting::Lockfile(lockfile) => registry.lockfile = *lockfile,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, Origin, SettingsFile, Source};
    use super::*;

    fn settings(text: &str, clients: &[(RegistryKind, &str, &str)]) -> Settings {
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into())).expect("is right");
        let settings = Settings::resolve(vec![file], &Environment::from([("HOME", "/home/ada")]), Vec::new());
        let client = |(kind, index, only): &(RegistryKind, &str, &str)| ClientRegistry {
            kind: *kind,
            index: Sourced {
                value: index.parse().expect("a place"),
                origin: Origin::Client("/home/ada/.npmrc".into()),
            },
            only: only.parse().into_iter().collect(),
            suites: BTreeSet::new(),
        };
        Settings { clients: clients.iter().map(client).collect(), ..settings.expect("resolves") }
    }

    fn shown(rules: Option<BTreeSet<EgressRule>>) -> Vec<String> {
        rules.into_iter().flatten().map(|rule| rule.to_string()).collect()
    }

    #[test]
    fn a_table_gives_a_registry_with_rules_that_only_read() {
        let settings = settings(
            "[registry.crates]\nkind = \"cargo\"\nindex = \"sparse+https://a.test/\"\ndownloads = [\"https://b.test/x\"]\n\
             inside = [\"10.0.0.0/8\"]\nknown = [\"serde_json\"]\ncooldown = \"1h\"\nrepositories = [\"/src\"]\n",
            &[],
        );
        let rules = shown(settings.registry("crates").expect("is right"));
        assert_eq!(
            rules,
            [
                "GET,HEAD https://a.test as crates in 10.0.0.0/8",
                "GET,HEAD https://b.test/x/** as crates in 10.0.0.0/8"
            ]
        );
        let registries = settings.registries().expect("are right");
        assert_eq!(registries[0].cooldown_s, 3600);
        assert!(registries[0].known.iter().any(|pattern| pattern.matches("serde-json")));
        assert_eq!(
            settings.reachable_registries().expect("are right")[0].repositories,
            Some(vec!["/src".into()])
        );
    }

    #[test]
    fn what_a_client_is_told_is_used_where_a_table_names_it_and_reached_by_nobody_else() {
        let clients = [
            (RegistryKind::Npm, "https://mirror.test/npm", ""),
            (RegistryKind::Npm, "https://corp.test", "@corp/*"),
        ];
        let named = settings("[registry.js]\nkind = \"npm\"\n", &clients);
        assert_eq!(
            shown(named.registry("js").expect("is right")),
            ["GET,HEAD https://mirror.test/npm/** as js"]
        );
        let registries = named.registries().expect("are right");
        assert_eq!(registries.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["js", "npm-corp"]);
        // What is private in one comes from no other.
        assert!(
            registries[0]
                .elsewhere
                .iter()
                .any(|(pattern, by)| pattern.matches("@corp/x") && by == "npm-corp")
        );
        assert!(registries[1].elsewhere.is_empty());
        assert_eq!(named.reachable_registries().expect("are right").len(), 1);
        assert!(settings("", &clients).reachable_registries().expect("are right").is_empty());
        assert_eq!(shown(settings("", &clients).registry("npm").expect("is right")).len(), 1);
    }

    #[test]
    fn what_does_not_say_enough_is_said_with_what_is_missing() {
        let why = |text: &str| settings(text, &[]).registries().expect_err("is refused").to_string();
        assert!(why("[registry.a]\nindex = \"https://a.test\"\n").contains("no `kind`"));
        assert!(why("[registry.a]\nkind = \"npm\"\n").contains("no `index`"));
        assert!(
            why("[registry.a]\nkind = \"cargo\"\nindex = \"https://a.test\"\nknown = [\"@a/b\"]\n")
                .contains("`@a/b` is no name")
        );
    }
}
