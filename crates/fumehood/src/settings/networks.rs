//! Networks: what actions may reach, as the operator's settings say it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::Reachable;
use model::EgressRule;

use super::key::NetworkSetting;
use super::origin::Sourced;
use super::resolved::{Settings, SettingsError};

impl Settings {
    /// Returns all that may be reached, table by table.
    ///
    /// # Errors
    /// When the table of a registry does not say enough.
    pub fn reachable(&self) -> Result<Vec<Reachable>, SettingsError> {
        let tables = self.networks.values().map(|parts| self.whole(parts));
        // What a credential is for was named with it.
        let own = self.credential_tables().into_iter().map(|credential| Reachable {
            rules: credential.rules,
            repositories: Some(credential.repositories),
        });
        Ok(tables.chain(own).chain(self.reachable_registries()?).collect())
    }

    /// Returns the rules of one table; nothing when there is none of this name.
    pub fn network(&self, name: &str) -> Option<BTreeSet<EgressRule>> {
        self.networks.get(name).map(|parts| self.whole(parts).rules.into_iter().collect())
    }

    /// Returns a table with what its credentials are for.
    fn whole(&self, parts: &[Sourced<NetworkSetting>]) -> Reachable {
        let mut whole = table(parts);
        let names = parts.iter().filter_map(|part| match &part.value {
            NetworkSetting::Credentials(names) => Some(names),
            _ => None,
        });
        let tables: Vec<_> = names.flatten().filter_map(|name| self.credential_table(name)).collect();
        whole.rules.extend(tables.into_iter().flat_map(|table| table.rules));
        whole
    }
}

/// Puts one table together. A later file adds rules, and what an earlier one says of its directories and networks still holds.
fn table(parts: &[Sourced<NetworkSetting>]) -> Reachable {
    let (mut rules, mut inside, mut repositories) = (Vec::new(), BTreeSet::new(), None::<Vec<PathBuf>>);
    for part in parts {
        match &part.value {
            NetworkSetting::Rules(some) => rules.extend(some.iter().cloned()),
            NetworkSetting::Inside(some) => inside.extend(some.iter().copied()),
            NetworkSetting::Repositories(some) => {
                repositories.get_or_insert_default().extend(some.iter().cloned());
            }
            // They reach what they are for, and not the networks of this table.
            NetworkSetting::Credentials(_) => {}
        }
    }
    let with = |rule: EgressRule| EgressRule { inside: inside.clone(), ..rule };
    Reachable { rules: rules.into_iter().map(with).collect(), repositories }
}

#[cfg(test)]
mod tests {
    use super::super::{Environment, SettingsFile, Source};
    use super::*;

    fn settings(text: &str) -> Settings {
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into())).expect("is right");
        Settings::resolve(vec![file], &Environment::from([("HOME", "/home/ada")]), Vec::new())
            .expect("resolves")
    }

    #[test]
    fn a_table_gives_its_rules_with_what_holds_for_all_of_them() {
        let settings = settings(
            "[network.api]\nrules = [\"https://a.test\", \"GET https://b.test/v1/**\"]\ninside = [\"10.0.0.0/8\"]\nrepositories = [\"/src\"]\n\
             [network.empty]\nrules = []\n",
        );
        let shown: Vec<String> =
            settings.network("api").expect("is there").iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["https://a.test in 10.0.0.0/8", "GET https://b.test/v1/** in 10.0.0.0/8"]);
        assert_eq!(settings.network("empty").map(|rules| rules.len()), Some(0));
        assert_eq!(settings.network("other"), None);
        let reachable = settings.reachable().expect("is right");
        assert_eq!(reachable[0].repositories, Some(vec![PathBuf::from("/src")]));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_place_and_nothing_means_nothing() {
        for wrong in [
            "[network.a]\nrules = \"https://a.test\"\n",
            "[network.a]\nrules = [\"a.test\"]\n",
            "[network.a]\nrules = [\"https://127.1\"]\n",
            "[network.a]\nallow = [\"https://a.test\"]\n",
            "[network.a]\nrules = [null]\n",
            "[network.a]\ninside = [\"10.0.0.0\"]\n",
            "[network.a]\nrepositories = [\"src\"]\n",
            "[network.\"A b\"]\nrules = []\n",
            "network = true\n",
        ] {
            assert!(SettingsFile::parse(wrong, Source::Operator("f.toml".into())).is_err(), "{wrong}");
        }
        for nothing in ["[network.a]\n", "[network.a]\nrules = []\n", ""] {
            assert!(
                settings(nothing).reachable().expect("is right").iter().all(|table| table.rules.is_empty()),
                "{nothing}"
            );
        }
    }
}
