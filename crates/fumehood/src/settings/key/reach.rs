//! Keys about what is reached: networks, credentials, the gateway and registries of packages.

use std::path::PathBuf;
use std::time::Duration;

use engine::CredentialKind;
use model::egress::{Lockfile, NamePattern, Place, Placement, RegistryKind, Unlisted};
use model::{EgressRule, TaskId};

use super::super::value::Form;
use super::Key;

/// What may be reached over the network, by the name of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSetting {
    /// The rules.
    Rules(Vec<EgressRule>),
    /// Networks that their names may lead to though they are not public.
    Inside(Vec<ipnet::IpNet>),
    /// The directories for whose repositories it is; without it for all.
    Repositories(Vec<PathBuf>),
    /// Credentials that are used for what they are for.
    Credentials(Vec<String>),
}

/// A field of a secret in a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultPlace {
    /// The address of the secret.
    pub url: String,
    /// The field of it.
    pub field: String,
}

/// Part of a credential. Of two that say the same, the later one holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSetting {
    /// What it opens.
    Kind(CredentialKind),
    /// Who answers for it.
    Owner(String),
    /// What it is for.
    Rules(Vec<EgressRule>),
    /// Networks that the names of these may lead to though they are not public.
    Inside(Vec<ipnet::IpNet>),
    /// The directories whose repositories may use it.
    Repositories(Vec<PathBuf>),
    /// The tasks that may use it.
    Tasks(Vec<TaskId>),
    /// The most time from its lease to its end.
    Lifetime(Duration),
    /// Where it is put into requests.
    Placement(Placement),
    /// The variable that has its stand-in inside.
    StandIn(String),
    /// Whether it may be put into requests in the clear.
    InClear(bool),
    /// It is in this variable of ours.
    Variable(String),
    /// It is in this file.
    File(PathBuf),
    /// This command prints it.
    Command(Vec<String>),
    /// It is in this field of a secret of a vault.
    Vault(VaultPlace),
    /// The file with the token of the vault.
    VaultToken(PathBuf),
}

/// What may come from a registry of packages, by the name of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrySetting {
    /// What it speaks.
    Kind(RegistryKind),
    /// Where it lists what it has.
    Index(Place),
    /// More places from which it gives files.
    Downloads(Vec<Place>),
    /// Of Debian: the suites with their components.
    Suites(Vec<String>),
    /// Networks that its hosts may lead to though they are not public.
    Inside(Vec<ipnet::IpNet>),
    /// The directories for whose repositories it is; without it for all.
    Repositories(Vec<PathBuf>),
    /// The names that may come; all without it.
    Allow(Vec<NamePattern>),
    /// Names that never come.
    Deny(Vec<NamePattern>),
    /// Names that no other registry of the kind may give.
    Private(Vec<NamePattern>),
    /// Names that a person looked at.
    Known(Vec<NamePattern>),
    /// Names that may bring code that runs when they are installed.
    Scripts(Vec<NamePattern>),
    /// How long a release waits.
    Cooldown(Duration),
    /// What becomes of a release whose age nobody tells.
    UnknownAge(Unlisted),
    /// What becomes of a name that nobody here has used.
    NewNames(Unlisted),
    /// What a lockfile holds.
    Lockfile(Lockfile),
}

/// Keys of `[network.NAME]`.
pub(in crate::settings) const NETWORK: &[Key<NetworkSetting>] = &[
    Key {
        name: "rules",
        form: Form::Rules,
        about: "What actions may reach, for example `https://example.com` or `GET https://example.com/v1/**`.",
        make: |value| value.rules().map(NetworkSetting::Rules),
    },
    Key {
        name: "inside",
        form: Form::Networks,
        about: "Networks that the names of these rules may lead to though they are not public.",
        make: |value| value.networks().map(NetworkSetting::Inside),
    },
    Key {
        name: "repositories",
        form: Form::Paths,
        about: "The directories for whose repositories it is; without it for all.",
        make: |value| value.paths().map(NetworkSetting::Repositories),
    },
    Key {
        name: "credentials",
        form: Form::Names,
        about: "Credentials of `[credential.NAME]` that it uses, for what they are for.",
        make: |value| value.names().map(NetworkSetting::Credentials),
    },
];

/// Keys of `[credential.NAME]`.
pub(in crate::settings) const CREDENTIAL: &[Key<CredentialSetting>] = &[
    Key {
        name: "type",
        form: Form::CredentialKind,
        about: "What it opens: `development`, or `production`, which serves no sandbox.",
        make: |value| value.credential_kind().map(CredentialSetting::Kind),
    },
    Key {
        name: "owner",
        form: Form::Text,
        about: "Who answers for it.",
        make: |value| value.text().map(CredentialSetting::Owner),
    },
    Key {
        name: "rules",
        form: Form::Rules,
        about: "What it is for, for example `GET,POST https://api.example.com/v1/**`. No other request gets it.",
        make: |value| value.rules().map(CredentialSetting::Rules),
    },
    Key {
        name: "inside",
        form: Form::Networks,
        about: "Networks that the names of these rules may lead to though they are not public.",
        make: |value| value.networks().map(CredentialSetting::Inside),
    },
    Key {
        name: "repositories",
        form: Form::Paths,
        about: "The directories whose repositories may use it.",
        make: |value| value.paths().map(CredentialSetting::Repositories),
    },
    Key {
        name: "tasks",
        form: Form::Tasks,
        about: "The tasks that may use it; without it all of these repositories.",
        make: |value| value.tasks().map(CredentialSetting::Tasks),
    },
    Key {
        name: "lifetime",
        form: Form::Time,
        about: "The most time from the start of an action that has it to its end there: 1h when nothing is said.",
        make: |value| value.time().map(CredentialSetting::Lifetime),
    },
    Key {
        name: "placement",
        form: Form::Placement,
        about: "Where it is put into requests: `bearer` when nothing is said.",
        make: |value| value.placement().map(CredentialSetting::Placement),
    },
    Key {
        name: "stand_in",
        form: Form::VariableName,
        about: "The variable inside that holds a made-up value in its place, for clients that send nothing without one.",
        make: |value| value.variable_name().map(CredentialSetting::StandIn),
    },
    Key {
        name: "in_clear",
        form: Form::Truth,
        about: "Whether it may be put into requests that are not encrypted.",
        make: |value| value.truth().map(CredentialSetting::InClear),
    },
    Key {
        name: "variable",
        form: Form::VariableName,
        about: "The variable of your environment that has the value.",
        make: |value| value.variable_name().map(CredentialSetting::Variable),
    },
    Key {
        name: "file",
        form: Form::Path,
        about: "The file that has the value. Nobody else may be able to read it.",
        make: |value| value.path().map(CredentialSetting::File),
    },
    Key {
        name: "command",
        form: Form::Command,
        about: "A program with its arguments that prints the value, for example `[\"/usr/bin/pass\", \"show\", \"x\"]`.",
        make: |value| value.command().map(CredentialSetting::Command),
    },
    Key {
        name: "vault",
        form: Form::Vault,
        about: "The address of a secret in a vault (key-value store, version 2), with a field of it behind `#`.",
        make: |value| value.vault().map(CredentialSetting::Vault),
    },
    Key {
        name: "vault_token",
        form: Form::Path,
        about: "The file with the token of the vault; else VAULT_TOKEN or ~/.vault-token has it.",
        make: |value| value.path().map(CredentialSetting::VaultToken),
    },
];

/// Keys of `[canary]`.
pub(in crate::settings) const CANARY: &[Key<Vec<String>>] = &[Key {
    name: "variables",
    form: Form::VariableNames,
    about: "Variables inside that hold a made-up credential: where one is on its way out, the task is frozen.",
    make: |value| value.variable_names(),
}];

/// Keys of `[gateway]`.
pub(in crate::settings) const GATEWAY: &[Key<Vec<PathBuf>>] = &[Key {
    name: "roots",
    form: Form::Files,
    about: "Files with certificates (PEM) that servers are verified by, beside the system's.",
    make: |value| value.files(),
}];

/// Keys of `[registry.NAME]`.
pub(in crate::settings) const REGISTRY: &[Key<RegistrySetting>] = &[
    Key {
        name: "kind",
        form: Form::RegistryKind,
        about: "What it speaks: cargo, npm, pypi or debian.",
        make: |value| value.registry_kind().map(RegistrySetting::Kind),
    },
    Key {
        name: "index",
        form: Form::Place,
        about: "Where it lists what it has. Without it, where your own client of that kind is told to look.",
        make: |value| value.place().map(RegistrySetting::Index),
    },
    Key {
        name: "downloads",
        form: Form::Places,
        about: "More places from which it gives files, where they are not below its index.",
        make: |value| value.places().map(RegistrySetting::Downloads),
    },
    Key {
        name: "suites",
        form: Form::Suites,
        about: "Of Debian: the suites with their components. Without it, those of the machine's sources of apt.",
        make: |value| value.suites().map(RegistrySetting::Suites),
    },
    Key {
        name: "inside",
        form: Form::Networks,
        about: "Networks that its hosts may lead to though they are not public.",
        make: |value| value.networks().map(RegistrySetting::Inside),
    },
    Key {
        name: "repositories",
        form: Form::Paths,
        about: "The directories for whose repositories it is; without it for all.",
        make: |value| value.paths().map(RegistrySetting::Repositories),
    },
    Key {
        name: "allow",
        form: Form::Packages,
        about: "The names that may come; without it all that nothing else stops.",
        make: |value| value.packages().map(RegistrySetting::Allow),
    },
    Key {
        name: "deny",
        form: Form::Packages,
        about: "Names that never come.",
        make: |value| value.packages().map(RegistrySetting::Deny),
    },
    Key {
        name: "private",
        form: Form::Packages,
        about: "Names that no other registry of this kind may give.",
        make: |value| value.packages().map(RegistrySetting::Private),
    },
    Key {
        name: "known",
        form: Form::Packages,
        about: "Names that a person looked at, beside those of lockfiles and those that were used before.",
        make: |value| value.packages().map(RegistrySetting::Known),
    },
    Key {
        name: "scripts",
        form: Form::Packages,
        about: "Names that may bring code that runs when they are installed: install scripts of npm, source distributions of Python.",
        make: |value| value.packages().map(RegistrySetting::Scripts),
    },
    Key {
        name: "cooldown",
        form: Form::Wait,
        about: "How long a release waits after it was published.",
        make: |value| value.wait().map(RegistrySetting::Cooldown),
    },
    Key {
        name: "unknown_age",
        form: Form::Unlisted,
        about: "What becomes of a release when the registry does not tell when it was published.",
        make: |value| value.unlisted().map(RegistrySetting::UnknownAge),
    },
    Key {
        name: "new_names",
        form: Form::Unlisted,
        about: "What becomes of a name that no lockfile has and nobody has used here. One that looks like a used one never comes.",
        make: |value| value.unlisted().map(RegistrySetting::NewNames),
    },
    Key {
        name: "lockfile",
        form: Form::Lockfile,
        about: "With a lockfile in the repository, `enforce` lets only what it names come, `record` also others. A changed hash never passes.",
        make: |value| value.lockfile().map(RegistrySetting::Lockfile),
    },
];
