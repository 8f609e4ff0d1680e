//! Every key of a settings file, as data: its name, its form, what it is for, and what it sets.
//!
//! The parser, the list of valid keys in errors, the JSON schema and `config explain` all read these tables.

mod reach;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use model::intake::Sensitivity;
use model::limits::DiskMode;
use model::{Bytes, Level, LimitKind, Limits, UnlistedProgram};

pub use reach::VaultPlace;
pub(super) use reach::{
    CANARY, CREDENTIAL, CredentialSetting, GATEWAY, NETWORK, NetworkSetting, REGISTRY, RegistrySetting,
};

use super::retention::RetentionSetting;
use super::value::{Form, Value, ValueError};

/// One thing that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// Where tasks, layers and the record are kept.
    StateDir(PathBuf),
    /// The profile of a run that names none.
    DefaultProfile(String),
    /// The bundle, or the file of rules, that decides.
    Policy(String),
    /// How long what is kept stays, or how much of it.
    Retention(RetentionSetting),
    /// The user that commands run as when we are root and the workspace is root's.
    RunAs(u32),
    /// Which model, and how it is reached.
    Model(ModelSetting),
    /// How the record is kept.
    Audit(AuditSetting),
    /// The most that any run may use, whatever its profile.
    Ceiling(LimitSetting),
    /// The least that must hold in every run, whatever its profile.
    Minimum(MinimumSetting),
    /// Part of a profile of the operator's own.
    Profile(String, ProfileSetting),
    /// Who has a role.
    Role(String, RoleSetting),
    /// Part of what may be reached over the network.
    Network(String, NetworkSetting),
    /// Part of a credential.
    Credential(String, CredentialSetting),
    /// The variables inside that hold canaries.
    Canary(Vec<String>),
    /// Files with certificates that gateways verify servers by, beside the system's.
    Roots(Vec<PathBuf>),
    /// Part of what may come from a registry of packages.
    Registry(String, RegistrySetting),
    /// How sensitive the repository in a directory is.
    Repository(PathBuf, Sensitivity),
    /// Where people of other accounts leave their answers.
    Answers(PathBuf),
}

/// Who has a role. All that is said of it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleSetting {
    /// These people.
    People(Vec<Account>),
    /// Everybody in these groups.
    Groups(Vec<String>),
}

/// An account of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// By its name.
    Name(String),
    /// By its number.
    Number(u32),
}

/// Which model, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSetting {
    /// Its name.
    Name(String),
    /// The address of its API.
    BaseUrl(String),
    /// The file that holds the key.
    KeyFile(PathBuf),
}

/// How the record is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditSetting {
    /// The file that its signed heads are appended to.
    AnchorFile(PathBuf),
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitSetting {
    /// [`Limits::memory`].
    Memory(Bytes),
    /// [`Limits::processes`].
    Processes(u32),
    /// [`Limits::millicpus`].
    Millicpus(u32),
    /// [`Limits::wall_time`].
    WallTime(Duration),
    /// [`Limits::disk`].
    Disk(Bytes),
    /// [`Limits::files`].
    Files(u64),
    /// [`Limits::disk_mode`].
    DiskMode(DiskMode),
    /// [`Limits::output`].
    Output(Bytes),
    /// [`Limits::open_files`].
    OpenFiles(u64),
    /// [`Limits::file_size`].
    FileSize(Bytes),
}

impl LimitSetting {
    /// Sets the limit, wider or tighter.
    pub fn set(&self, limits: &mut Limits) {
        match *self {
            Self::Memory(bytes) => limits.memory = bytes,
            Self::Processes(number) => limits.processes = number,
            Self::Millicpus(number) => limits.millicpus = Some(number),
            Self::WallTime(time) => limits.wall_time = time,
            Self::Disk(bytes) => limits.disk = bytes,
            Self::Files(number) => limits.files = number,
            Self::DiskMode(mode) => limits.disk_mode = mode,
            Self::Output(bytes) => limits.output = bytes,
            Self::OpenFiles(number) => limits.open_files = number,
            Self::FileSize(bytes) => limits.file_size = bytes,
        }
    }

    /// Sets the limit where that makes it tighter, and tells whether it did.
    pub fn tighten(&self, limits: &mut Limits) -> bool {
        let mut alone = limits.clone();
        self.set(&mut alone);
        let tightest = limits.tightest(&alone);
        let tighter = tightest != *limits;
        *limits = tightest;
        tighter
    }
}

/// The least firmness that must hold. Memory and processors are held by one mechanism, disk and files by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumSetting {
    /// For the memory and processor limits.
    MemoryAndCpu(Level),
    /// For the disk and file limits.
    DiskAndFiles(Level),
    /// For the observation of the files that are read.
    Reads(Level),
}

/// Part of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileSetting {
    /// The built-in profile that it starts from.
    BasedOn(String),
    /// A limit.
    Limit(LimitSetting),
    /// A least firmness.
    Minimum(MinimumSetting),
    /// What becomes of an action that tries a program which is not listed.
    UnlistedProgram(UnlistedProgram),
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// One key: `T` is what it sets.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) about: &'static str,
    pub(super) make: fn(&Value) -> Result<T, ValueError>,
}

/// The file name of a repository's own settings.
pub const REPOSITORY_FILE: &str = engine::REPOSITORY_SETTINGS;

/// Tables that a repository's own file may hold: they can only tighten.
pub(super) const REPOSITORY_TABLES: [&str; 2] = ["ceiling", "minimum"];

/// Keys at the top of the file.
pub(super) const TOP: &[Key<Setting>] = &[
    Key {
        name: "state_dir",
        form: Form::Path,
        about: "Where tasks, layers and the record are kept.",
        make: |value| value.path().map(Setting::StateDir),
    },
    Key {
        name: "default_profile",
        form: Form::Text,
        about: "The profile of a run that names none.",
        make: |value| value.text().map(Setting::DefaultProfile),
    },
    Key {
        name: "policy",
        form: Form::Text,
        about: "What decides: the name of a bundle that ships with the program, or the path of a file of Cedar rules.",
        make: |value| value.text().map(Setting::Policy),
    },
    Key {
        name: "retention",
        form: Form::Time,
        about: "How long what tasks made stays: layers, outputs and artifacts. As a table it says more.",
        make: |value| value.time().map(RetentionSetting::Work).map(Setting::Retention),
    },
    Key {
        name: "run_as",
        form: Form::UserId,
        about: "The user that commands run as when Fumehood is root and the workspace is root's.",
        make: |value| value.user_id().map(Setting::RunAs),
    },
];

/// Keys of `[model]`.
pub(super) const MODEL: &[Key<ModelSetting>] = &[
    Key {
        name: "name",
        form: Form::Text,
        about: "The model.",
        make: |value| value.text().map(ModelSetting::Name),
    },
    Key {
        name: "base_url",
        form: Form::Url,
        about: "The address of its API.",
        make: |value| value.url().map(ModelSetting::BaseUrl),
    },
    Key {
        name: "key_file",
        form: Form::Path,
        about: "The file that holds the key. DEEPSEEK_API_KEY goes before it.",
        make: |value| value.path().map(ModelSetting::KeyFile),
    },
];

/// Keys of `[audit]`.
pub(super) const AUDIT: &[Key<AuditSetting>] = &[Key {
    name: "anchor_file",
    form: Form::Path,
    about: "The file that each signed head of the record is appended to. It vouches for something only where who can write the state directory cannot change it.",
    make: |value| value.path().map(AuditSetting::AnchorFile),
}];

/// Keys of `[approvals]`, which the machine's file alone may hold.
pub(super) const APPROVALS: &[Key<PathBuf>] = &[Key {
    name: "answers",
    form: Form::Path,
    about: "The directory in which people of other accounts leave their answers. Only the machine's file can name it.",
    make: |value| value.path(),
}];

/// Keys of `[repository."/DIRECTORY"]`.
pub(super) const REPOSITORY: &[Key<Sensitivity>] = &[Key {
    name: "sensitivity",
    form: Form::Sensitivity,
    about: "How sensitive the repositories in this directory are: it bounds the level of tasks. What nobody says is \
            restricted.",
    make: |value| value.sensitivity(),
}];

/// Keys of `[minimum]` and `[profile.NAME.minimum]`.
pub(super) const MINIMUM: &[Key<MinimumSetting>] = &[
    Key {
        name: "memory_and_cpu",
        form: Form::Level,
        about: "The least for the memory and processor limits, or nothing runs.",
        make: |value| value.level().map(MinimumSetting::MemoryAndCpu),
    },
    Key {
        name: "disk_and_files",
        form: Form::Level,
        about: "The least for the disk and file limits, or nothing runs.",
        make: |value| value.level().map(MinimumSetting::DiskAndFiles),
    },
    Key {
        name: "reads",
        form: Form::Level,
        about: "`watched` demands that the files that are read are on the record, which needs root, or nothing runs.",
        make: |value| value.level().map(MinimumSetting::Reads),
    },
];

/// Keys of `[profile.NAME]` besides the limits.
pub(super) const PROFILE: &[Key<ProfileSetting>] = &[
    Key {
        name: "based_on",
        form: Form::Text,
        about: "The built-in profile that it starts from: default, strict or strict-build.",
        make: |value| value.text().map(ProfileSetting::BasedOn),
    },
    Key {
        name: "unlisted_program",
        form: Form::UnlistedProgram,
        about: "With a list of programs, what another one that is tried does to the action: it is always refused, and \
                `end` ends the action.",
        make: |value| value.unlisted_program().map(ProfileSetting::UnlistedProgram),
    },
];

/// Keys of `[role.NAME]`.
pub(super) const ROLE: &[Key<RoleSetting>] = &[
    Key {
        name: "people",
        form: Form::Accounts,
        about: "Who has the role: names or numbers of accounts.",
        make: |value| value.accounts().map(RoleSetting::People),
    },
    Key {
        name: "groups",
        form: Form::Groups,
        about: "Groups of the system: everybody in one of them has the role.",
        make: |value| value.groups().map(RoleSetting::Groups),
    },
];

/// Keys of `[ceiling]`, and of `[profile.NAME]`.
pub(super) const LIMITS: &[Key<LimitSetting>] = &[
    Key {
        name: "memory",
        form: Form::Size,
        about: "Memory of all processes together.",
        make: |value| value.size().map(LimitSetting::Memory),
    },
    Key {
        name: "processes",
        form: Form::Count,
        about: "Processes and threads at once.",
        make: |value| value.small_count().map(LimitSetting::Processes),
    },
    Key {
        name: "cpus",
        form: Form::Cpus,
        about: "Processors. Without it, all but a reserve.",
        make: |value| value.millicpus().map(LimitSetting::Millicpus),
    },
    Key {
        name: "wall_time",
        form: Form::Time,
        about: "Time from the start of a command to its end.",
        make: |value| value.time().map(LimitSetting::WallTime),
    },
    Key {
        name: "disk",
        form: Form::Size,
        about: "Bytes in every writable place together.",
        make: |value| value.size().map(LimitSetting::Disk),
    },
    Key {
        name: "files",
        form: Form::Count,
        about: "Files, directories and links in every writable place together.",
        make: |value| value.count().map(LimitSetting::Files),
    },
    Key {
        name: "disk_mode",
        form: Form::DiskMode,
        about: "Where writable places are kept: `memory` holds the quota by construction, `disk` uses no memory.",
        make: |value| value.disk_mode().map(LimitSetting::DiskMode),
    },
    Key {
        name: "output",
        form: Form::Size,
        about: "Bytes kept of each output stream.",
        make: |value| value.size().map(LimitSetting::Output),
    },
    Key {
        name: "open_files",
        form: Form::Count,
        about: "Open descriptors of one process.",
        make: |value| value.count().map(LimitSetting::OpenFiles),
    },
    Key {
        name: "file_size",
        form: Form::Size,
        about: "Size of one file.",
        make: |value| value.size().map(LimitSetting::FileSize),
    },
];

/// Returns the key that sets a limit.
pub(super) fn limit_key(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Memory => "memory",
        LimitKind::Processes => "processes",
        LimitKind::Cpu => "cpus",
        LimitKind::WallTime => "wall_time",
        LimitKind::Disk => "disk",
        LimitKind::Files => "files",
        LimitKind::Output => "output",
        LimitKind::OpenFiles => "open_files",
        LimitKind::FileSize => "file_size",
    }
}

/// One variable of the environment that sets something.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) make: fn(&Value) -> Result<Setting, ValueError>,
}

/// The variables that set something.
pub(super) const VARIABLES: &[Variable] = &[
    Variable { name: "FUMEHOOD_STATE_DIR", make: |value| value.path().map(Setting::StateDir) },
    Variable { name: "FUMEHOOD_PROFILE", make: |value| value.text().map(Setting::DefaultProfile) },
    Variable {
        name: "FUMEHOOD_RETENTION",
        make: |value| value.time().map(RetentionSetting::Work).map(Setting::Retention),
    },
    Variable { name: "FUMEHOOD_RUN_AS", make: |value| value.user_id().map(Setting::RunAs) },
    Variable {
        name: "FUMEHOOD_MODEL",
        make: |value| value.text().map(ModelSetting::Name).map(Setting::Model),
    },
    Variable {
        name: "FUMEHOOD_BASE_URL",
        make: |value| value.url().map(ModelSetting::BaseUrl).map(Setting::Model),
    },
    Variable {
        name: "FUMEHOOD_KEY_FILE",
        make: |value| value.path().map(ModelSetting::KeyFile).map(Setting::Model),
    },
];

/// Tells whether a variable with our prefix means nothing to us: we set it inside a sandbox, or our own tests read it.
pub(super) fn is_no_setting(name: &str) -> bool {
    let of_tests = ["FUMEHOOD_TEST_", "FUMEHOOD_SOAK_"];
    matches!(name, "FUMEHOOD_ARTIFACTS" | "FUMEHOOD_CACHE")
        || of_tests.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use model::Profile;

    use super::*;

    #[test]
    fn tightening_never_widens() {
        let mut limits = Profile::strict().limits;
        let before = limits.clone();
        assert!(!LimitSetting::Memory(Bytes::gib(9)).tighten(&mut limits));
        assert!(!LimitSetting::DiskMode(DiskMode::Disk).tighten(&mut limits));
        assert_eq!(limits, before);
        assert!(LimitSetting::Memory(Bytes::mib(8)).tighten(&mut limits));
        assert!(LimitSetting::Millicpus(500).tighten(&mut limits));
        assert_eq!((limits.memory, limits.millicpus), (Bytes::mib(8), Some(500)));
    }

    #[test]
    fn every_limit_has_a_key() {
        for kind in LimitKind::ALL {
            assert!(LIMITS.iter().any(|key| key.name == limit_key(kind)), "{kind}");
        }
        assert_eq!(LIMITS.len(), LimitKind::ALL.len() + 1, "and the disk mode");
    }
}
