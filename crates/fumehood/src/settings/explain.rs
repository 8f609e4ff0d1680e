//! Every setting with its value and where it came from.

use model::egress::{Lockfile, Unlisted};
use model::units::display_duration;

use super::key::{
    APPROVALS, AUDIT, CANARY, CREDENTIAL, CredentialSetting, GATEWAY, LIMITS, MINIMUM, MODEL, NETWORK,
    NetworkSetting, PROFILE, REGISTRY, REPOSITORY, ROLE, RegistrySetting, RoleSetting, TOP,
};
use super::origin::{Origin, Sourced};
use super::profile::{ResolvedProfile, limit_text};
use super::resolved::{KeySource, Settings, SettingsError};

/// One setting as it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key, with the tables that it is in.
    pub key: String,
    /// The value, as a person would write it.
    pub value: String,
    /// Where it came from.
    pub origin: String,
    /// What it is for.
    pub about: &'static str,
}

/// Returns all settings as they hold, profiles with every ceiling and minimum on them.
///
/// # Errors
/// Never for settings that were resolved: their profiles exist.
pub fn rows(settings: &Settings) -> Result<Vec<Row>, SettingsError> {
    let mut rows = top(settings);
    rows.extend(settings.retention.rows());
    rows.extend(settings.repositories.iter().map(|(directory, is)| {
        let key = format!("repository.\"{}\".sensitivity", directory.to_string_lossy());
        row(&key, &is.value.to_string(), &is.origin, about(REPOSITORY, "sensitivity"))
    }));
    for name in settings.profile_names() {
        let resolved = settings.profile(Some(&name))?;
        rows.extend(profile(&name, &resolved));
    }
    rows.extend(settings.roles.iter().flat_map(|(name, parts)| role(name, parts)));
    rows.extend(settings.networks.iter().flat_map(|(name, parts)| network(name, parts)));
    rows.extend(settings.credentials.iter().flat_map(|(name, parts)| credential(name, parts)));
    rows.extend(settings.roots.iter().map(|part| {
        let files: Vec<_> = part.value.iter().map(|file| file.to_string_lossy()).collect();
        row("gateway.roots", &files.join(", "), &part.origin, about(GATEWAY, "roots"))
    }));
    rows.extend(settings.canaries.iter().map(|part| {
        row("canary.variables", &part.value.join(", "), &part.origin, about(CANARY, "variables"))
    }));
    rows.extend(settings.registries.iter().flat_map(|(name, parts)| registry(name, parts)));
    rows.extend(
        settings.clients.iter().filter(|client| !settings.registries.contains_key(&client.name())).map(
            |client| {
                let key = format!("registry.{}.index", client.name());
                row(&key, &client.index.value.to_string(), &client.index.origin, CLIENT)
            },
        ),
    );
    Ok(rows)
}

fn credential(name: &str, parts: &[Sourced<CredentialSetting>]) -> Vec<Row> {
    let one = |part: &Sourced<CredentialSetting>| {
        let (key, value) = part.value.shown();
        row(&format!("credential.{name}.{key}"), &value, &part.origin, about(CREDENTIAL, key))
    };
    parts.iter().map(one).collect()
}

/// What an index of a registry is that no settings name.
const CLIENT: &str =
    "Where your own client lists packages. Without a table of your settings it needs a person's yes.";

fn registry(name: &str, parts: &[Sourced<RegistrySetting>]) -> Vec<Row> {
    let one = |part: &Sourced<RegistrySetting>| {
        let (key, value) = registry_part(&part.value);
        row(&format!("registry.{name}.{key}"), &value, &part.origin, about(REGISTRY, key))
    };
    parts.iter().map(one).collect()
}

fn registry_part(part: &RegistrySetting) -> (&'static str, String) {
    fn all<T: ToString>(values: &[T]) -> String {
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
    let unlisted = |is: Unlisted| match is {
        Unlisted::Refuse => "refuse".to_owned(),
        Unlisted::Allow => "allow".to_owned(),
    };
    match part {
        RegistrySetting::Kind(kind) => ("kind", kind.to_string()),
        RegistrySetting::Index(index) => ("index", index.to_string()),
        RegistrySetting::Downloads(places) => ("downloads", all(places)),
        RegistrySetting::Suites(suites) => ("suites", all(suites)),
        RegistrySetting::Inside(inside) => ("inside", all(inside)),
        RegistrySetting::Repositories(some) => {
            ("repositories", all(&some.iter().map(|at| at.to_string_lossy()).collect::<Vec<_>>()))
        }
        RegistrySetting::Allow(names) => ("allow", all(names)),
        RegistrySetting::Deny(names) => ("deny", all(names)),
        RegistrySetting::Private(names) => ("private", all(names)),
        RegistrySetting::Known(names) => ("known", all(names)),
        RegistrySetting::Scripts(names) => ("scripts", all(names)),
        RegistrySetting::Cooldown(time) => ("cooldown", display_duration(*time)),
        RegistrySetting::UnknownAge(is) => ("unknown_age", unlisted(*is)),
        RegistrySetting::NewNames(is) => ("new_names", unlisted(*is)),
        RegistrySetting::Lockfile(Lockfile::Enforce) => ("lockfile", "enforce".to_owned()),
        RegistrySetting::Lockfile(Lockfile::Record) => ("lockfile", "record".to_owned()),
    }
}

fn network(name: &str, parts: &[Sourced<NetworkSetting>]) -> Vec<Row> {
    let all = |values: Vec<String>| values.join(", ");
    let one = |part: &Sourced<NetworkSetting>| {
        let (key, value) = match &part.value {
            NetworkSetting::Credentials(names) => ("credentials", all(names.clone())),
            NetworkSetting::Rules(rules) => ("rules", all(rules.iter().map(ToString::to_string).collect())),
            NetworkSetting::Inside(inside) => {
                ("inside", all(inside.iter().map(ToString::to_string).collect()))
            }
            NetworkSetting::Repositories(directories) => (
                "repositories",
                all(directories.iter().map(|at| at.to_string_lossy().into_owned()).collect()),
            ),
        };
        row(&format!("network.{name}.{key}"), &value, &part.origin, about(NETWORK, key))
    };
    parts.iter().map(one).collect()
}

fn top(settings: &Settings) -> Vec<Row> {
    let Settings { state_dir, default_profile, policy, run_as, model, anchor_file, answers, .. } = settings;
    let (run_as, run_as_origin) = match run_as {
        Some(id) => (id.value.to_string(), &id.origin),
        None => ("the sandbox's own choice".to_owned(), &Origin::BuiltIn),
    };
    let (key, key_origin) = match &model.key {
        Some(key) => (key_text(&key.value), &key.origin),
        None => ("none".to_owned(), &Origin::BuiltIn),
    };
    let (anchor, anchor_origin) = match anchor_file {
        Some(file) => (file.value.to_string_lossy().into_owned(), &file.origin),
        None => ("none".to_owned(), &Origin::BuiltIn),
    };
    let (answers, answers_origin) = match answers {
        Some(place) => (place.value.to_string_lossy().into_owned(), &place.origin),
        None => ("none".to_owned(), &Origin::BuiltIn),
    };
    vec![
        row("approvals.answers", &answers, answers_origin, about(APPROVALS, "answers")),
        row("state_dir", &state_dir.value.to_string_lossy(), &state_dir.origin, about(TOP, "state_dir")),
        row(
            "default_profile",
            &default_profile.value,
            &default_profile.origin,
            about(TOP, "default_profile"),
        ),
        row("policy", &policy.value, &policy.origin, about(TOP, "policy")),
        row("run_as", &run_as, run_as_origin, about(TOP, "run_as")),
        row("audit.anchor_file", &anchor, anchor_origin, about(AUDIT, "anchor_file")),
        row("model.name", &model.name.value, &model.name.origin, about(MODEL, "name")),
        row("model.base_url", &model.base_url.value, &model.base_url.origin, about(MODEL, "base_url")),
        row("model.key_file", &key, key_origin, about(MODEL, "key_file")),
    ]
}

fn key_text(key: &KeySource) -> String {
    match key {
        KeySource::Variable(name) => format!("in ${name}"),
        KeySource::File(path) => path.to_string_lossy().into_owned(),
    }
}

fn profile(name: &str, resolved: &ResolvedProfile) -> Vec<Row> {
    let limits = LIMITS.iter().map(|key| {
        let value = limit_text(&resolved.profile.limits, key.name);
        row(&format!("profile.{name}.{}", key.name), &value, resolved.origin(key.name), key.about)
    });
    let levels = [
        ("minimum.memory_and_cpu", resolved.profile.cgroup_limits, about(MINIMUM, "memory_and_cpu")),
        ("minimum.disk_and_files", resolved.profile.disk_limits, about(MINIMUM, "disk_and_files")),
        ("minimum.reads", resolved.profile.reads, about(MINIMUM, "reads")),
    ];
    let levels = levels.map(|(key, level, about)| {
        row(&format!("profile.{name}.{key}"), &level.to_string(), resolved.origin(key), about)
    });
    let unlisted = resolved.profile.unlisted_program.to_string();
    let key = "unlisted_program";
    let unlisted =
        row(&format!("profile.{name}.{key}"), &unlisted, resolved.origin(key), about(PROFILE, key));
    limits.chain(levels).chain([unlisted]).collect()
}

fn role(name: &str, parts: &[Sourced<RoleSetting>]) -> Vec<Row> {
    let one = |part: &Sourced<RoleSetting>| {
        let (key, value) = match &part.value {
            RoleSetting::People(people) => {
                ("people", people.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            RoleSetting::Groups(groups) => ("groups", groups.clone()),
        };
        row(&format!("role.{name}.{key}"), &value.join(", "), &part.origin, about(ROLE, key))
    };
    parts.iter().map(one).collect()
}

pub(super) fn row(key: &str, value: &str, origin: &Origin, about: &'static str) -> Row {
    Row { key: key.to_owned(), value: value.to_owned(), origin: origin.to_string(), about }
}

pub(super) fn about<T>(keys: &[super::key::Key<T>], name: &str) -> &'static str {
    keys.iter().find(|key| key.name == name).map_or("", |key| key.about)
}

#[cfg(test)]
mod tests {
    use super::super::environment::Environment;
    use super::super::file::SettingsFile;
    use super::super::origin::Source;
    use super::*;

    #[test]
    fn every_setting_says_where_it_came_from() {
        let text = "retention = \"7d\"\n[ceiling]\nmemory = \"1GiB\"\n[profile.ci]\nbased_on = \"strict\"\n";
        let file = SettingsFile::parse(text, Source::Operator("f.toml".into())).expect("is right");
        let environment = Environment::from([("HOME", "/h"), ("DEEPSEEK_API_KEY", "sk-secret")]);
        let settings = Settings::resolve(vec![file], &environment, Vec::new()).expect("resolves");
        let rows = rows(&settings).expect("resolves");
        let find = |key: &str| {
            let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"));
            (row.value.as_str(), row.origin.as_str())
        };
        assert_eq!(find("retention.layers"), ("7d", "f.toml:1:1"));
        assert_eq!(find("profile.default.memory"), ("1 GiB", "f.toml:3:1"));
        assert_eq!(find("profile.ci.memory"), ("96 MiB", "built in"));
        assert_eq!(find("profile.ci.wall_time"), ("10s", "built in"));
        assert_eq!(find("model.key_file"), ("in $DEEPSEEK_API_KEY", "$DEEPSEEK_API_KEY"));
        assert!(rows.iter().all(|row| !row.about.is_empty() && !row.value.contains("sk-secret")));
    }
}
