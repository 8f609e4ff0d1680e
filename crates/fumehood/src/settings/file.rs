//! Settings files: exactly what was written, with every unknown key refused.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use model::Profile;
use model::quorum::{PERSON, is_role};
use model::text::escape;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{
    APPROVALS, AUDIT, CANARY, CREDENTIAL, GATEWAY, Key, LIMITS, MINIMUM, MODEL, NETWORK, PROFILE,
    ProfileSetting, REGISTRY, REPOSITORY, REPOSITORY_TABLES, ROLE, RoleSetting, Setting, TOP,
};
use super::load::MACHINE_FILE;
use super::nearest;
use super::origin::{Place, Source};
use super::retention::RETENTION;
use super::value::{Value, ValueError};

/// A settings file: exactly what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// The file.
    pub source: Source,
    /// What it sets, in the order in which it is written, and where.
    pub settings: Vec<(Setting, Place)>,
}

/// One thing that is wrong in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: ProblemKind,
}

/// What can be wrong in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// It is not TOML.
    #[error("{}", escape(.0))]
    Syntax(String),
    /// There is no such key.
    #[error("`{}` is not a setting: {}", escape(.key), advice(.nearest.as_deref(), .valid))]
    UnknownKey {
        /// The key, with the tables that it is in.
        key: String,
        /// The valid key that looks most like it.
        nearest: Option<String>,
        /// The valid keys in its place.
        valid: Vec<String>,
    },
    /// The value is not what the key needs.
    #[error("`{}`: {error}", escape(.key))]
    Value {
        /// The key.
        key: String,
        /// What is wrong.
        error: ValueError,
    },
    /// A table was expected.
    #[error("`{}` is a table: write `[{}]` and its keys below", escape(.0), escape(.0))]
    NoTable(String),
    /// A profile that comes with the program was to be changed.
    #[error("the built-in profile `{0}` stays as it is: choose another name, with `based_on = \"{0}\"`")]
    BuiltInProfile(String),
    /// A profile is based on something that does not come with the program.
    #[error("`{}` is not a built-in profile: `based_on` takes default, strict or strict-build", escape(.0))]
    BasedOn(String),
    /// A profile has a name that could not be given on a command line.
    #[error("`{}` cannot be the name of a profile: use letters, digits, `_` and `-`", escape(.0))]
    ProfileName(String),
    /// A role has a name that policy could not ask for, or is the one that everybody has.
    #[error(
        "`{}` cannot be the name of a role: use small letters, digits and `-`; everybody has the role `person`",
        escape(.0)
    )]
    RoleName(String),
    /// A table has a name that could not be given on a command line.
    #[error("`{}` cannot be the name of a {of}: use small letters, digits and `-`", escape(.name))]
    TableName {
        /// What has a name: a network, a credential, a registry.
        of: String,
        /// The name.
        name: String,
    },
    /// A repository is named by something that depends on where we stand, or that the repository itself says.
    #[error("`{}` names no directory: write its path in full, `[repository.\"/path/of/the/repository\"]`", escape(.0))]
    RepositoryPath(String),
    /// A repository's own file sets something that only the operator may set.
    #[error(
        "only the operator may set `{}`: a repository's own file may only tighten, with `[ceiling]` and `[minimum]`",
        escape(.0)
    )]
    OperatorOnly(String),
    /// A user's own file sets something that would let the user answer for others.
    #[error(
        "only the machine's file ({MACHINE_FILE}) may set `{}`: whoever names the place of answers can answer for others",
        escape(.0)
    )]
    MachineOnly(String),
}

fn advice(nearest: Option<&str>, valid: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("valid here are {}", valid.join(", ")),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

impl SettingsFile {
    /// Reads the text of a settings file.
    ///
    /// # Errors
    /// Everything that is wrong in it, each with its place.
    pub fn parse(text: &str, source: Source) -> Result<Self, Vec<Problem>> {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader { text, source, settings: Vec::new(), problems: Vec::new() };
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            reader.problem(span, ProblemKind::Syntax(error.message().to_owned()));
        }
        if reader.problems.is_empty() {
            reader.top(table.get_ref());
        }
        if reader.problems.is_empty() {
            Ok(Self { source: reader.source, settings: reader.settings })
        } else {
            reader.problems.sort_by_key(|problem| (problem.place.line, problem.place.column));
            Err(reader.problems)
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    source: Source,
    settings: Vec<(Setting, Place)>,
    problems: Vec<Problem>,
}

type Entries<'a, 'i> = &'a DeTable<'i>;

impl Reader<'_> {
    fn problem(&mut self, span: Range<usize>, kind: ProblemKind) {
        let place = self.source.place(self.text, span.start);
        self.problems.push(Problem { place, kind });
    }

    fn top(&mut self, table: Entries<'_, '_>) {
        for (name, value) in table {
            let key = name.get_ref().as_ref();
            let known = TOP.iter().any(|top| top.name == key) || TABLES.contains(&key);
            if known && self.source.is_repository() && !REPOSITORY_TABLES.contains(&key) {
                self.problem(name.span(), ProblemKind::OperatorOnly(key.to_owned()));
                continue;
            }
            if key == "approvals" && !self.source.is_machine() {
                self.problem(name.span(), ProblemKind::MachineOnly(key.to_owned()));
                continue;
            }
            match key {
                "approvals" => self.section(key, value, APPROVALS, Setting::Answers),
                "model" => self.section(key, value, MODEL, Setting::Model),
                "audit" => self.section(key, value, AUDIT, Setting::Audit),
                "ceiling" => self.section(key, value, LIMITS, Setting::Ceiling),
                "retention" if matches!(value.get_ref(), DeValue::Table(_)) => {
                    self.section(key, value, RETENTION, Setting::Retention);
                }
                "minimum" => self.section(key, value, MINIMUM, Setting::Minimum),
                "profile" => self.profiles(value),
                "role" => self.roles(value),
                "network" => self.named(key, value, NETWORK, Setting::Network),
                "registry" => self.named(key, value, REGISTRY, Setting::Registry),
                "credential" => self.named(key, value, CREDENTIAL, Setting::Credential),
                "gateway" => self.section(key, value, GATEWAY, Setting::Roots),
                "canary" => self.section(key, value, CANARY, Setting::Canary),
                "repository" => self.repositories(value),
                _ => {
                    let mut more = TABLES.map(str::to_owned).to_vec();
                    if self.source.is_repository() {
                        more.retain(|table| REPOSITORY_TABLES.contains(&table.as_str()));
                    }
                    self.entry("", name, value, TOP, |setting| setting, &more);
                }
            }
        }
    }

    /// Reads a table whose keys are all in one list.
    fn section<T>(
        &mut self,
        at: &str,
        value: &Spanned<DeValue<'_>>,
        keys: &[Key<T>],
        wrap: fn(T) -> Setting,
    ) {
        let Some(table) = self.table(at, value) else { return };
        for (name, value) in table {
            self.entry(at, name, value, keys, wrap, &[]);
        }
    }

    fn table<'a, 'i>(&mut self, at: &str, value: &'a Spanned<DeValue<'i>>) -> Option<Entries<'a, 'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.problem(value.span(), ProblemKind::NoTable(at.to_owned()));
                None
            }
        }
    }

    fn profiles(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(table) = self.table("profile", value) else { return };
        for (name, value) in table {
            let profile = name.get_ref().as_ref();
            let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            if Profile::built_in().iter().any(|built_in| built_in.name == profile) {
                self.problem(name.span(), ProblemKind::BuiltInProfile(profile.to_owned()));
            } else if profile.is_empty() || profile.starts_with('-') || !profile.bytes().all(plain) {
                self.problem(name.span(), ProblemKind::ProfileName(profile.to_owned()));
            } else {
                self.profile(profile, value);
            }
        }
    }

    fn repositories(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(table) = self.table("repository", value) else { return };
        for (name, value) in table {
            let directory = PathBuf::from(name.get_ref().as_ref());
            if !directory.is_absolute() {
                self.problem(name.span(), ProblemKind::RepositoryPath(name.get_ref().to_string()));
                continue;
            }
            let at = format!("repository.\"{}\"", name.get_ref());
            let Some(table) = self.table(&at, value) else { continue };
            for (name, value) in table {
                let wrap = |is| Setting::Repository(directory.clone(), is);
                self.entry(&at, name, value, REPOSITORY, wrap, &[]);
            }
        }
    }

    fn profile(&mut self, profile: &str, value: &Spanned<DeValue<'_>>) {
        let at = format!("profile.{profile}");
        let Some(table) = self.table(&at, value) else { return };
        for (name, value) in table {
            let wrap = |part| Setting::Profile(profile.to_owned(), part);
            let key = name.get_ref().as_ref();
            if key == "minimum" {
                let at = format!("{at}.minimum");
                let Some(table) = self.table(&at, value) else { continue };
                for (name, value) in table {
                    self.entry(&at, name, value, MINIMUM, |part| wrap(ProfileSetting::Minimum(part)), &[]);
                }
            } else if PROFILE.iter().any(|part| part.name == key) {
                self.entry(&at, name, value, PROFILE, wrap, &[]);
                if key == "based_on" {
                    self.check_base(value);
                }
            } else {
                let more = [names(PROFILE), vec!["minimum".to_owned()]].concat();
                self.entry(&at, name, value, LIMITS, |part| wrap(ProfileSetting::Limit(part)), &more);
            }
        }
    }

    fn roles(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(table) = self.table("role", value) else { return };
        for (name, value) in table {
            let role = name.get_ref().as_ref();
            if !is_role(role) || role == PERSON {
                self.problem(name.span(), ProblemKind::RoleName(role.to_owned()));
                continue;
            }
            let at = format!("role.{role}");
            let Some(table) = self.table(&at, value) else { continue };
            if table.is_empty() {
                let place = self.source.place(self.text, name.span().start);
                self.settings.push((Setting::Role(role.to_owned(), RoleSetting::People(Vec::new())), place));
            }
            for (name, value) in table {
                self.entry(&at, name, value, ROLE, |part| Setting::Role(role.to_owned(), part), &[]);
            }
        }
    }

    /// Reads tables that have names of their own, each with its keys in one list.
    fn named<T>(
        &mut self,
        of: &str,
        value: &Spanned<DeValue<'_>>,
        keys: &[Key<T>],
        wrap: fn(String, T) -> Setting,
    ) {
        let Some(table) = self.table(of, value) else { return };
        for (name, value) in table {
            let own = name.get_ref().as_ref();
            if !is_role(own) {
                let (of, own) = (of.to_owned(), own.to_owned());
                self.problem(name.span(), ProblemKind::TableName { of, name: own });
                continue;
            }
            let at = format!("{of}.{own}");
            let Some(table) = self.table(&at, value) else { continue };
            for (name, value) in table {
                self.entry(&at, name, value, keys, |part| wrap(own.to_owned(), part), &[]);
            }
        }
    }

    fn check_base(&mut self, value: &Spanned<DeValue<'_>>) {
        if let DeValue::String(base) = value.get_ref()
            && !Profile::built_in().iter().any(|profile| profile.name == base.as_ref())
        {
            self.problem(value.span(), ProblemKind::BasedOn(base.to_string()));
        }
    }

    /// Reads one key with its value; `more` are valid names beside `keys`.
    fn entry<T>(
        &mut self,
        at: &str,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        keys: &[Key<T>],
        wrap: impl Fn(T) -> Setting,
        more: &[String],
    ) {
        let written = name.get_ref().as_ref();
        let full = if at.is_empty() { written.to_owned() } else { format!("{at}.{written}") };
        let Some(key) = keys.iter().find(|key| key.name == written) else {
            let own = if self.source.is_repository() && at.is_empty() { Vec::new() } else { names(keys) };
            let valid = [own, more.to_vec()].concat();
            let nearest = nearest(written, valid.iter().map(String::as_str)).map(str::to_owned);
            return self.problem(name.span(), ProblemKind::UnknownKey { key: full, nearest, valid });
        };
        match (key.make)(&Value::of(value.get_ref())) {
            Ok(setting) => {
                let place = self.source.place(self.text, name.span().start);
                self.settings.push((wrap(setting), place));
            }
            Err(error) => self.problem(value.span(), ProblemKind::Value { key: full, error }),
        }
    }
}

const TABLES: [&str; 13] = [
    "approvals",
    "model",
    "audit",
    "canary",
    "ceiling",
    "credential",
    "gateway",
    "minimum",
    "network",
    "profile",
    "registry",
    "role",
    "repository",
];

fn names<T>(keys: &[Key<T>]) -> Vec<String> {
    keys.iter().map(|key| key.name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Bytes, Level};

    use super::super::key::{LimitSetting, MinimumSetting, ModelSetting};
    use super::super::retention::RetentionSetting;
    use super::*;

    fn operator(text: &str) -> Result<SettingsFile, Vec<Problem>> {
        SettingsFile::parse(text, Source::Operator(PathBuf::from("f.toml")))
    }

    fn repository(text: &str) -> Result<SettingsFile, Vec<Problem>> {
        SettingsFile::parse(text, Source::Repository { commit: None, path: ".fumehood.toml".into() })
    }

    fn problems(result: Result<SettingsFile, Vec<Problem>>) -> Vec<String> {
        result.expect_err("is refused").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_read_with_its_places() {
        let file = operator(
            "default_profile = \"ci\"\nretention = \"7d\"\n[model]\nname = \"m\"\n[ceiling]\nmemory = \"2GiB\"\n\
             [minimum]\nmemory_and_cpu = \"hard\"\n[profile.ci]\nbased_on = \"strict\"\ncpus = 1.5\n\
             [profile.ci.minimum]\ndisk_and_files = \"hard\"\n",
        )
        .expect("is right");
        let settings: Vec<_> = file.settings.iter().map(|(setting, _)| setting.clone()).collect();
        let ci = |part| Setting::Profile("ci".to_owned(), part);
        for setting in [
            Setting::DefaultProfile("ci".to_owned()),
            Setting::Retention(RetentionSetting::Work(Duration::from_secs(7 * 86_400))),
            Setting::Model(ModelSetting::Name("m".to_owned())),
            Setting::Ceiling(LimitSetting::Memory(Bytes::gib(2))),
            Setting::Minimum(MinimumSetting::MemoryAndCpu(Level::Hard)),
            ci(ProfileSetting::BasedOn("strict".to_owned())),
            ci(ProfileSetting::Limit(LimitSetting::Millicpus(1500))),
            ci(ProfileSetting::Minimum(MinimumSetting::DiskAndFiles(Level::Hard))),
        ] {
            assert!(settings.contains(&setting), "{setting:?} is not in {settings:?}");
        }
        let place =
            file.settings.iter().find(|(s, _)| matches!(s, Setting::Ceiling(_))).map(|(_, place)| place);
        assert_eq!(place.expect("is set").to_string(), "f.toml:6:1");
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest_and_its_place() {
        let text = "retention = \"7d\"\n[profile.ci]\n  memroy = \"1GiB\"\n";
        let expected = "f.toml:3:3: `profile.ci.memroy` is not a setting: did you mean `memory`?";
        assert_eq!(problems(operator(text)), [expected]);
        let answer = problems(operator("[ceiling]\nxyzzy = 1\n")).join("");
        assert!(answer.contains("valid here are memory, processes, cpus, wall_time"), "{answer}");
        let answer = problems(operator("[retention]\nlayrs = \"1d\"\n")).join("");
        assert!(answer.contains("`retention.layrs` is not a setting: did you mean `layers`?"), "{answer}");
        let answer = problems(operator("modle = 1\n")).join("");
        assert!(answer.ends_with("did you mean `model`?"), "{answer}");
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = "retention = 7\nrun_as = \"root\"\nstate_dir = \"here\"\nmodel = \"x\"\n[minimum]\ndisk_and_files = \"soft\"\n";
        let answers = problems(operator(text));
        assert_eq!(answers.len(), 5, "{answers:#?}");
        assert!(
            answers.iter().any(|a| a.starts_with("f.toml:1:13: `retention`: the number `7` is not a time"))
        );
        assert!(answers.iter().any(|a| a.starts_with("f.toml:4:9: `model` is a table")));
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_place() {
        for text in ["retention = ", "a = 1\na = 2\n", "[model\n", "= 1", "retention = \"7d"] {
            let answer = problems(operator(text)).join("\n");
            assert!(answer.starts_with("f.toml:"), "{text}: {answer}");
        }
    }

    #[test]
    fn a_built_in_profile_cannot_be_changed() {
        let answer = problems(operator("[profile.strict]\nmemory = \"9GiB\"\n")).join("");
        assert!(answer.contains("based_on = \"strict\""), "{answer}");
        assert!(
            problems(operator("[profile.a]\nbased_on = \"b\"\n")).join("").contains("not a built-in profile")
        );
        assert!(problems(operator("[profile.\"-a\"]\n")).join("").contains("name of a profile"));
    }

    #[test]
    fn a_repository_may_only_tighten() {
        assert!(repository("[ceiling]\nmemory = \"1GiB\"\n[minimum]\nmemory_and_cpu = \"hard\"\n").is_ok());
        for text in [
            "state_dir = \"/tmp/x\"\n",
            "default_profile = \"default\"\n",
            "run_as = 1\n",
            "retention = \"1s\"\n",
            "[retention]\nlayers = \"1s\"\n",
            "[model]\nbase_url = \"https://attacker.example\"\n",
            "[profile.wide]\nmemory = \"99GiB\"\n",
            "[role.release-manager]\npeople = [\"ada\"]\n",
            "[repository.\"/\"]\nsensitivity = \"public\"\n",
            "[credential.forge]\nvariable = \"TOKEN\"\n",
            "[canary]\nvariables = []\n",
        ] {
            let answer = problems(repository(text)).join("");
            assert!(answer.contains("only the operator may set"), "{text}: {answer}");
        }
        let answer = problems(repository("xyzzy = 1\n")).join("");
        assert!(answer.ends_with("valid here are ceiling, minimum"), "{answer}");
    }
}
