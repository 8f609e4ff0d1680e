//! Roles: who has which, as the operator's settings say it.
//!
//! Guarantees: what the machine's file says of a role holds, whatever a user's own file says of it; and a user's own file
//! gives a role to nobody but that user. So nobody makes somebody else, or themselves, what the machine's operator did not.

use std::collections::{BTreeMap, BTreeSet};

use model::text::escape;

use super::accounts::Accounts;
use super::key::{Account, RoleSetting, Setting};
use super::origin::{Origin, Place, Sourced};
use super::resolved::Settings;

impl Settings {
    /// Returns who has which role, by the numbers of accounts; `us` is the caller's. An account that the system does not
    /// know has none: [`problems`] says so.
    pub fn roles(&self, accounts: &Accounts, us: u32) -> BTreeMap<String, BTreeSet<u32>> {
        let of_role = |(role, parts): (&String, &Vec<Sourced<RoleSetting>>)| {
            let machine = parts.iter().any(|part| part.origin.is_machine());
            let holding = parts.iter().filter(|part| part.origin.is_machine() == machine);
            let people = holding.flat_map(|part| part.value.people(accounts));
            (role.clone(), people.filter(|account| machine || *account == us).collect())
        };
        self.roles.iter().map(of_role).collect()
    }
}

impl RoleSetting {
    /// Returns the people whom it names.
    fn people(&self, accounts: &Accounts) -> Vec<u32> {
        match self {
            Self::People(people) => people.iter().filter_map(|one| one.number(accounts)).collect(),
            Self::Groups(groups) => {
                groups.iter().filter_map(|name| accounts.members(name)).flatten().collect()
            }
        }
    }
}

impl Account {
    fn number(&self, accounts: &Accounts) -> Option<u32> {
        match self {
            Self::Name(name) => accounts.number(name),
            Self::Number(number) => Some(*number),
        }
    }
}

/// Says what is wrong with the roles of a settings file: whom the system does not know, and roles that nobody has.
pub fn problems(settings: &[(Setting, Place)], accounts: &Accounts, us: u32) -> Vec<(Place, String)> {
    let mut problems = Vec::new();
    for (setting, place) in settings {
        let Setting::Role(role, part) = setting else { continue };
        let mut wrong = unknown(role, part, accounts);
        let people = part.people(accounts);
        if wrong.is_empty() && !has_people(role, settings, accounts) {
            wrong.push(format!("nobody has the role `{role}`: name people, or a group that somebody is in"));
        }
        if !Origin::File(place.clone()).is_machine() && people.iter().any(|account| *account != us) {
            wrong.push(format!(
                "the role `{role}` is given to others than yourself, which only the machine's file \
                 ({}) can do: it holds for you alone",
                super::load::MACHINE_FILE
            ));
        }
        problems.extend(wrong.into_iter().map(|wrong| (place.clone(), wrong)));
    }
    problems
}

/// Tells whether a file gives a role to anybody.
fn has_people(role: &str, settings: &[(Setting, Place)], accounts: &Accounts) -> bool {
    settings.iter().any(|(setting, _)| match setting {
        Setting::Role(name, part) => name == role && !part.people(accounts).is_empty(),
        _ => false,
    })
}

/// Says of each account and group that the system does not know that it does not.
fn unknown(role: &str, part: &RoleSetting, accounts: &Accounts) -> Vec<String> {
    let says = |what: &str, name: &str| {
        format!(
            "there is no {what} `{}` on this machine, so it does not have the role `{role}`",
            escape(name)
        )
    };
    match part {
        RoleSetting::People(people) => {
            let unknown = people.iter().filter(|one| one.number(accounts).is_none());
            let name = |one: &Account| match one {
                Account::Name(name) => says("account", name),
                Account::Number(number) => says("account", &number.to_string()),
            };
            unknown.map(name).collect()
        }
        RoleSetting::Groups(groups) => {
            let unknown = groups.iter().filter(|name| accounts.members(name).is_none());
            unknown.map(|name| says("group", name)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accounts::tests::three;
    use super::super::load::MACHINE_FILE;
    use super::super::{Environment, SettingsFile, Source};
    use super::*;

    fn file(path: &str, text: &str) -> SettingsFile {
        SettingsFile::parse(text, Source::Operator(path.into())).expect("is right")
    }

    fn who(files: Vec<SettingsFile>, role: &str) -> Vec<u32> {
        let environment = Environment::from([("HOME", "/home/ada")]);
        let settings = Settings::resolve(files, &environment, Vec::new()).expect("resolves");
        settings.roles(&three(), 1000).remove(role).unwrap_or_default().into_iter().collect()
    }

    #[test]
    fn the_machines_file_gives_roles_to_people_and_groups() {
        let text = "[role.a]\npeople = [\"grace\", 4242, \"gone\"]\n[role.b]\ngroups = [\"ops\"]\npeople = [\"lin\"]\n";
        let files = || vec![file(MACHINE_FILE, text)];
        assert_eq!(who(files(), "a"), [1001, 4242], "an account of a directory service has a number");
        assert_eq!(who(files(), "b"), [1000, 1001, 1002]);
        assert_eq!(who(files(), "c"), [0; 0]);
    }

    #[test]
    fn a_users_own_file_gives_a_role_to_that_user_alone_and_never_against_the_machines() {
        let own = || file("/home/ada/f.toml", "[role.a]\npeople = [\"ada\", \"grace\"]\n");
        assert_eq!(who(vec![own()], "a"), [1000]);
        let machine = file(MACHINE_FILE, "[role.a]\npeople = [\"grace\"]\n");
        assert_eq!(who(vec![machine, own()], "a"), [1001]);
        let nobody = file(MACHINE_FILE, "[role.a]\ngroups = [\"empty\"]\n");
        assert_eq!(
            who(vec![nobody, own()], "a"),
            [0; 0],
            "a role that the machine gives to nobody is nobody's"
        );
    }

    #[test]
    fn what_cannot_be_meant_is_said_with_its_place() {
        let says = |path: &str, text: &str| -> Vec<String> {
            let found = problems(&file(path, text).settings, &three(), 1000).into_iter();
            found.map(|(place, wrong)| format!("{place}: {wrong}")).collect()
        };
        assert_eq!(says(MACHINE_FILE, "[role.a]\npeople = [\"ada\", \"grace\"]\n"), [""; 0]);
        let gone = says(MACHINE_FILE, "[role.a]\npeople = [\"ada\", \"gone\"]\n");
        assert_eq!(gone.len(), 1, "{gone:?}");
        assert!(
            gone[0].ends_with("there is no account `gone` on this machine, so it does not have the role `a`")
        );
        assert!(gone[0].starts_with(&format!("{MACHINE_FILE}:2:1")), "{gone:?}");
        assert!(says(MACHINE_FILE, "[role.a]\ngroups = [\"x\"]\n")[0].contains("no group `x`"));
        for empty in ["groups = [\"empty\"]", "people = []", ""] {
            let text = format!("[role.a]\n{empty}\n");
            assert!(says(MACHINE_FILE, &text)[0].contains("nobody has the role `a`"), "{empty}");
        }
        assert_eq!(says(MACHINE_FILE, "[role.a]\npeople = []\ngroups = [\"ops\"]\n"), [""; 0]);
        let others = says("/home/ada/f.toml", "[role.a]\npeople = [\"ada\", \"grace\"]\n");
        assert!(others[0].contains("for you alone"), "{others:?}");
    }
}
