//! Values as they are written, and what they can be read as.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use engine::CredentialKind;
use model::egress::{Lockfile, NamePattern, Place, Placement, RegistryKind, Unlisted};
use model::intake::Sensitivity;
use model::limits::DiskMode;
use model::quorum::is_role;
use model::text::escape;
use model::units::parse_duration;
use model::{Bytes, EgressRule, Level, TaskId, UnlistedProgram};
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use super::key::{Account, VaultPlace};
use crate::args::Millicpus;
use crate::args::value::{positive_bytes, positive_duration};

/// What names of variables look like, for the schema.
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// A value as it is written in a file, a variable or an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A string of a settings file.
    Text(String),
    /// A number of a settings file, as it is written.
    Number(String),
    /// A word of the environment or the command line, which has no type of its own.
    Word(String),
    /// A list of a settings file.
    List(Vec<Self>),
    /// A boolean of a settings file.
    Truth(bool),
    /// Something that no setting takes, by its name.
    Other(&'static str),
}

impl Value {
    /// Takes a value of a settings file.
    pub(super) fn of(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Self::Number(number.as_str().to_owned()),
            DeValue::Float(number) => Self::Number(number.as_str().to_owned()),
            DeValue::Integer(_) => Self::Other("a number that is not decimal"),
            DeValue::Boolean(truth) => Self::Truth(*truth),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Array(values) => {
                Self::List(values.iter().map(|value| Self::of(value.get_ref())).collect())
            }
            DeValue::Table(_) => Self::Other("a table"),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Word(text) => format!("`{}`", escape(text)),
            Self::Number(text) => format!("the number `{}`", escape(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Truth(_) => "a boolean".to_owned(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }
}

/// Says that a value cannot be what its key needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} is not {wanted}")]
pub struct ValueError {
    given: String,
    wanted: String,
}

/// What a value can be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Path,
    Url,
    Size,
    Time,
    Count,
    UserId,
    Cpus,
    Level,
    DiskMode,
    /// What becomes of an action that tries a program which is not listed.
    UnlistedProgram,
    /// Names or numbers of accounts.
    Accounts,
    /// Names of groups.
    Groups,
    /// A list of rules for the network.
    Rules,
    /// A list of networks.
    Networks,
    /// A list of directories.
    Paths,
    /// A list of files.
    Files,
    /// What a registry speaks.
    RegistryKind,
    /// A place of a registry.
    Place,
    /// A list of them.
    Places,
    /// A list of names of packages.
    Packages,
    /// A list of suites with their components.
    Suites,
    /// A time, or none.
    Wait,
    /// What becomes of something that nothing is known of.
    Unlisted,
    /// What a lockfile holds.
    Lockfile,
    /// How sensitive something is.
    Sensitivity,
    /// What a credential opens.
    CredentialKind,
    /// Where a credential is put into requests.
    Placement,
    /// The name of a variable.
    VariableName,
    /// Names of variables.
    VariableNames,
    /// Names of tables.
    Names,
    /// Names of tasks.
    Tasks,
    /// A program with its arguments.
    Command,
    /// A field of a secret in a vault.
    Vault,
    /// Yes or no.
    Truth,
}

/// A suite with its component.
const SUITE: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)+$";

impl Form {
    fn wanted(self) -> &'static str {
        match self {
            Self::Text => "a text: write it in quotes",
            Self::Path => "an absolute path: write it in quotes, starting with `/`",
            Self::Url => "the address of an API: write `https://…`, or `http://` for this machine's loopback",
            Self::Size => "a size: write for example `\"512MiB\"`",
            Self::Time => "a time: write for example `\"90s\"`, `\"10m\"` or `\"30d\"`",
            Self::Count => "a number above zero: write for example `128`",
            Self::UserId => "the number of an unprivileged user: write for example `61000`",
            Self::Cpus => "a number of processors: write for example `2` or `0.5`",
            Self::Level => "a level: write `\"hard\"`, `\"watched\"` or `\"absent\"`",
            Self::DiskMode => "a disk mode: write `\"memory\"` or `\"disk\"`",
            Self::Accounts => {
                "a list of accounts: write names in quotes or numbers, for example `[\"ada\", 1042]`"
            }
            Self::Rules => {
                "a list of rules: write for example `[\"https://example.com\", \"GET https://example.org/v1/**\"]`"
            }
            Self::Networks => "a list of networks: write for example `[\"10.0.0.0/8\"]`",
            Self::Paths => "a list of directories: write each path in full, for example `[\"/src/project\"]`",
            Self::Files => {
                "a list of files: write each path in full, for example `[\"/etc/ssl/company.pem\"]`"
            }
            Self::RegistryKind => {
                "a kind of registry: write `\"cargo\"`, `\"npm\"`, `\"pypi\"` or `\"debian\"`"
            }
            Self::Place => {
                "an address of a registry: write for example `\"https://registry.example.com/path\"`"
            }
            Self::Places => "a list of addresses: write for example `[\"https://files.example.com\"]`",
            Self::Packages => {
                "a list of names of packages: write for example `[\"serde\", \"corp-*\", \"@corp/*\"]`"
            }
            Self::Suites => "a list of suites with components: write for example `[\"bookworm/main\"]`",
            Self::Wait => "a time: write for example `\"72h\"`, or `\"0s\"` for none",
            Self::Unlisted => "what to do: write `\"refuse\"` or `\"allow\"`",
            Self::Lockfile => "what a lockfile holds: write `\"enforce\"` or `\"record\"`",
            Self::Groups => "a list of groups: write names in quotes, for example `[\"ops\"]`",
            Self::Sensitivity => {
                "how sensitive it is: write `\"public\"`, `\"internal\"`, `\"confidential\"` or `\"restricted\"`"
            }
            Self::CredentialKind => "what a credential opens: write `\"development\"` or `\"production\"`",
            Self::Placement => {
                "a place in requests: write `\"bearer\"`, `\"basic USER\"`, `\"header NAME\"`, `\"header NAME: token {}\"` or `\"query NAME\"`"
            }
            Self::VariableName => "the name of a variable: write for example `\"FORGE_TOKEN\"`",
            Self::VariableNames => "a list of variables: write for example `[\"BACKUP_TOKEN\"]`",
            Self::Names => "a list of names: write for example `[\"forge\"]`",
            Self::Tasks => {
                "a list of tasks: write their whole names, for example `[\"task-aaaaaaaaaaaaaaaa\"]`"
            }
            Self::Command => {
                "a program with its arguments: write for example `[\"/usr/bin/pass\", \"show\", \"forge\"]`"
            }
            Self::Vault => {
                "a secret of a vault: write for example `\"https://vault.example.com/v1/secret/data/ci#token\"`, or `http://` for this machine's loopback"
            }
            Self::Truth => "yes or no: write `true` or `false`, without quotes",
            Self::UnlistedProgram => "what to do about an unlisted program: write `\"refuse\"` or `\"end\"`",
        }
    }

    fn error(self, value: &Value) -> ValueError {
        ValueError { given: value.shown(), wanted: self.wanted().to_owned() }
    }

    /// Returns the JSON schema of the form in a settings file.
    pub(super) fn schema(self) -> Json {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1}),
            Self::Path => json!({"type": "string", "pattern": "^/"}),
            Self::Url => json!({"type": "string", "pattern": "^https?://"}),
            Self::Size => json!({"anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": "^[0-9]+ *([kKmMgGtT]?[bB]?|[kKmMgGtT][iI][bB])$"},
            ]}),
            Self::Time => json!({"type": "string", "pattern": "^[0-9]+ *(ms|s|m|min|h|d)$"}),
            Self::Count => json!({"type": "integer", "minimum": 1}),
            Self::UserId => json!({"type": "integer", "minimum": 1, "maximum": u32::MAX - 1}),
            Self::Cpus => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Level => json!({"enum": ["absent", "watched", "hard"]}),
            Self::DiskMode => json!({"enum": ["memory", "disk"]}),
            Self::Sensitivity => json!({"enum": ["public", "internal", "confidential", "restricted"]}),
            Self::UnlistedProgram => json!({"enum": ["refuse", "end"]}),
            Self::Accounts => json!({"type": "array", "items": {"anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "integer", "minimum": 0, "maximum": u32::MAX - 1},
            ]}}),
            Self::Rules => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^([A-Z][A-Z, -]* )?(https?|tcp)://"}})
            }
            Self::Networks => json!({"type": "array", "items": {"type": "string", "pattern": "/[0-9]+$"}}),
            Self::CredentialKind => json!({"enum": ["development", "production"]}),
            Self::Placement => json!({"type": "string", "pattern": "^(bearer$|basic |header |query )"}),
            Self::VariableName => json!({"type": "string", "pattern": VARIABLE}),
            Self::VariableNames => json!({"type": "array", "items": {"type": "string", "pattern": VARIABLE}}),
            Self::Names => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}})
            }
            Self::Tasks => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^task-[a-z2-7]{16}$"}})
            }
            Self::Command => json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            Self::Vault => json!({"type": "string", "pattern": "^https?://[^#]+/v1/[^#]+/data/[^#]+#[^#]+$"}),
            Self::Truth => json!({"type": "boolean"}),
            Self::Paths | Self::Files => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^/"}})
            }
            Self::Groups => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
            Self::RegistryKind => json!({"enum": ["cargo", "npm", "pypi", "debian"]}),
            Self::Place => json!({"type": "string", "pattern": "^(sparse\\+)?https?://"}),
            Self::Places => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^(sparse\\+)?https?://"}})
            }
            Self::Packages => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9@/_.+~-]*[*]?$", "minLength": 1}})
            }
            Self::Suites => json!({"type": "array", "items": {"type": "string", "pattern": SUITE}}),
            Self::Wait => json!({"type": "string", "pattern": "^[0-9]+ *(ms|s|m|min|h|d)$"}),
            Self::Unlisted => json!({"enum": ["refuse", "allow"]}),
            Self::Lockfile => json!({"enum": ["enforce", "record"]}),
        }
    }
}

impl Value {
    fn words(&self, form: Form) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::Word(text) if !text.is_empty() && !text.contains('\0') => Ok(text),
            _ => Err(form.error(self)),
        }
    }

    fn digits(&self, form: Form) -> Result<&str, ValueError> {
        match self {
            Self::Number(text) | Self::Word(text) => Ok(text),
            Self::Text(_) | Self::List(_) | Self::Truth(_) | Self::Other(_) => Err(form.error(self)),
        }
    }

    pub(super) fn accounts(&self) -> Result<Vec<Account>, ValueError> {
        let form = Form::Accounts;
        self.list(form, |value| match value {
            Self::Number(digits) => {
                let number = digits.parse().ok().filter(|number| *number != u32::MAX);
                number.map(Account::Number).ok_or_else(|| form.error(value))
            }
            _ => value.words(form).map(|name| Account::Name(name.to_owned())),
        })
    }

    pub(super) fn rules(&self) -> Result<Vec<EgressRule>, ValueError> {
        self.list(Form::Rules, |value| value.parsed(Form::Rules))
    }

    pub(super) fn networks(&self) -> Result<Vec<ipnet::IpNet>, ValueError> {
        self.list(Form::Networks, |value| value.parsed(Form::Networks))
    }

    pub(super) fn paths(&self) -> Result<Vec<PathBuf>, ValueError> {
        self.list(Form::Paths, Self::path)
    }

    pub(super) fn files(&self) -> Result<Vec<PathBuf>, ValueError> {
        self.list(Form::Files, |value| value.path().map_err(|_| Form::Files.error(value)))
    }

    pub(super) fn names(&self) -> Result<Vec<String>, ValueError> {
        self.list(Form::Names, |value| {
            let name = value.words(Form::Names)?;
            if is_role(name) { Ok(name.to_owned()) } else { Err(Form::Names.error(value)) }
        })
    }

    pub(super) fn tasks(&self) -> Result<Vec<TaskId>, ValueError> {
        self.list(Form::Tasks, |value| value.parsed(Form::Tasks))
    }

    pub(super) fn placement(&self) -> Result<Placement, ValueError> {
        self.parsed(Form::Placement)
    }

    pub(super) fn variable_name(&self) -> Result<String, ValueError> {
        self.variable(Form::VariableName)
    }

    pub(super) fn variable_names(&self) -> Result<Vec<String>, ValueError> {
        self.list(Form::VariableNames, |value| value.variable(Form::VariableNames))
    }

    fn variable(&self, form: Form) -> Result<String, ValueError> {
        let name = self.words(form)?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_one = name.bytes().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit());
        if is_one { Ok(name.to_owned()) } else { Err(form.error(self)) }
    }

    pub(super) fn command(&self) -> Result<Vec<String>, ValueError> {
        let words = self.list(Form::Command, |value| value.words(Form::Command).map(str::to_owned))?;
        let is_one = words.first().is_some_and(|program| program.starts_with('/'));
        if is_one { Ok(words) } else { Err(Form::Command.error(self)) }
    }

    pub(super) fn vault(&self) -> Result<VaultPlace, ValueError> {
        let wrong = || Form::Vault.error(self);
        let (url, field) = self.words(Form::Vault)?.split_once('#').ok_or_else(wrong)?;
        let url = Self::Text(url.to_owned()).url().map_err(|_| wrong())?;
        let names_one = url.contains("/v1/") && url.contains("/data/") && !url.contains('?');
        if !names_one || field.is_empty() || field.contains('#') {
            return Err(wrong());
        }
        Ok(VaultPlace { url, field: field.to_owned() })
    }

    pub(super) fn truth(&self) -> Result<bool, ValueError> {
        match self {
            Self::Truth(truth) => Ok(*truth),
            _ => Err(Form::Truth.error(self)),
        }
    }

    pub(super) fn credential_kind(&self) -> Result<CredentialKind, ValueError> {
        match self.words(Form::CredentialKind)? {
            "development" => Ok(CredentialKind::Development),
            "production" => Ok(CredentialKind::Production),
            _ => Err(Form::CredentialKind.error(self)),
        }
    }

    pub(super) fn place(&self) -> Result<Place, ValueError> {
        self.parsed(Form::Place)
    }

    pub(super) fn places(&self) -> Result<Vec<Place>, ValueError> {
        self.list(Form::Places, |value| value.parsed(Form::Places))
    }

    pub(super) fn packages(&self) -> Result<Vec<NamePattern>, ValueError> {
        self.list(Form::Packages, |value| value.parsed(Form::Packages))
    }

    pub(super) fn registry_kind(&self) -> Result<RegistryKind, ValueError> {
        let word = self.words(Form::RegistryKind)?;
        let kind = RegistryKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| Form::RegistryKind.error(self))
    }

    pub(super) fn unlisted(&self) -> Result<Unlisted, ValueError> {
        match self.words(Form::Unlisted)? {
            "refuse" => Ok(Unlisted::Refuse),
            "allow" => Ok(Unlisted::Allow),
            _ => Err(Form::Unlisted.error(self)),
        }
    }

    pub(super) fn lockfile(&self) -> Result<Lockfile, ValueError> {
        match self.words(Form::Lockfile)? {
            "enforce" => Ok(Lockfile::Enforce),
            "record" => Ok(Lockfile::Record),
            _ => Err(Form::Lockfile.error(self)),
        }
    }

    pub(super) fn suites(&self) -> Result<Vec<String>, ValueError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        self.list(Form::Suites, |value| {
            let text = value.words(Form::Suites)?;
            let part =
                |part: &str| part.bytes().all(plain) && part.starts_with(|c: char| c.is_ascii_alphanumeric());
            let whole = text.contains('/') && text.split('/').all(part);
            if whole { Ok(text.to_owned()) } else { Err(Form::Suites.error(value)) }
        })
    }

    /// Reads a time that may be none.
    pub(super) fn wait(&self) -> Result<Duration, ValueError> {
        let text = self.words(Form::Wait)?;
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        let time = parse_duration(text).ok().filter(|_| has_unit);
        time.ok_or_else(|| Form::Wait.error(self))
    }

    fn parsed<T: FromStr>(&self, form: Form) -> Result<T, ValueError> {
        self.words(form)?.parse().map_err(|_| form.error(self))
    }

    pub(super) fn groups(&self) -> Result<Vec<String>, ValueError> {
        self.list(Form::Groups, |value| value.words(Form::Groups).map(str::to_owned))
    }

    fn list<T>(
        &self,
        form: Form,
        one: impl Fn(&Self) -> Result<T, ValueError>,
    ) -> Result<Vec<T>, ValueError> {
        match self {
            Self::List(values) => values.iter().map(one).collect(),
            _ => Err(form.error(self)),
        }
    }

    pub(super) fn text(&self) -> Result<String, ValueError> {
        self.words(Form::Text).map(str::to_owned)
    }

    pub(super) fn path(&self) -> Result<PathBuf, ValueError> {
        let path = PathBuf::from(self.words(Form::Path)?);
        if path.is_absolute() { Ok(path) } else { Err(Form::Path.error(self)) }
    }

    pub(super) fn url(&self) -> Result<String, ValueError> {
        let url = self.words(Form::Url)?;
        let plain = url.bytes().all(|b| b.is_ascii_graphic());
        if plain && (url.starts_with("https://") || is_loopback_http(url)) {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        Err(Form::Url.error(self))
    }

    pub(super) fn size(&self) -> Result<Bytes, ValueError> {
        let text = self.words(Form::Size).or_else(|_| self.digits(Form::Size))?;
        positive_bytes(text).map_err(|_| Form::Size.error(self))
    }

    pub(super) fn time(&self) -> Result<Duration, ValueError> {
        let text = self.words(Form::Time)?;
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        let time = positive_duration(text).ok().filter(|_| has_unit);
        time.ok_or_else(|| Form::Time.error(self))
    }

    pub(super) fn count(&self) -> Result<u64, ValueError> {
        let number = self.digits(Form::Count)?.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| Form::Count.error(self))
    }

    pub(super) fn small_count(&self) -> Result<u32, ValueError> {
        u32::try_from(self.count()?).map_err(|_| Form::Count.error(self))
    }

    pub(super) fn user_id(&self) -> Result<u32, ValueError> {
        let id: Option<u32> = self.digits(Form::UserId)?.parse().ok();
        // Zero is root itself, and the largest number stands for "leave it" in the kernel's calls.
        id.filter(|id| *id > 0 && *id < u32::MAX).ok_or_else(|| Form::UserId.error(self))
    }

    pub(super) fn millicpus(&self) -> Result<u32, ValueError> {
        let number = self.digits(Form::Cpus)?.parse::<Millicpus>();
        number.map(|cpus| cpus.0).map_err(|_| Form::Cpus.error(self))
    }

    pub(super) fn sensitivity(&self) -> Result<Sensitivity, ValueError> {
        match self.words(Form::Sensitivity)? {
            "public" => Ok(Sensitivity::Public),
            "internal" => Ok(Sensitivity::Internal),
            "confidential" => Ok(Sensitivity::Confidential),
            "restricted" => Ok(Sensitivity::Restricted),
            _ => Err(Form::Sensitivity.error(self)),
        }
    }

    pub(super) fn level(&self) -> Result<Level, ValueError> {
        match self.words(Form::Level)? {
            "absent" => Ok(Level::Absent),
            "watched" => Ok(Level::Watched),
            "hard" => Ok(Level::Hard),
            _ => Err(Form::Level.error(self)),
        }
    }

    pub(super) fn disk_mode(&self) -> Result<DiskMode, ValueError> {
        match self.words(Form::DiskMode)? {
            "memory" => Ok(DiskMode::Memory),
            "disk" => Ok(DiskMode::Disk),
            _ => Err(Form::DiskMode.error(self)),
        }
    }

    pub(super) fn unlisted_program(&self) -> Result<UnlistedProgram, ValueError> {
        match self.words(Form::UnlistedProgram)? {
            "refuse" => Ok(UnlistedProgram::Refuse),
            "end" => Ok(UnlistedProgram::End),
            _ => Err(Form::UnlistedProgram.error(self)),
        }
    }
}

/// Tells whether a URL stays on this machine, where nobody on the way can read the key.
fn is_loopback_http(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return false; // What is before it is a user name, which may look like a host.
    }
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    matches!(host, "127.0.0.1" | "localhost" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_in_clear_only_on_this_machine() {
        for good in
            ["https://models.example/v1", "http://127.0.0.1:8080", "http://localhost/v1", "http://[::1]:1/"]
        {
            assert!(Value::Text(good.to_owned()).url().is_ok(), "{good}");
        }
        for bad in [
            "http://models.example",
            "http://127.0.0.1@models.example/",
            "http://127.0.0.1:1@models.example/",
            "http://localhost.models.example",
            "ftp://127.0.0.1",
            "https://a b",
            "",
        ] {
            assert!(Value::Text(bad.to_owned()).url().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_refused() {
        assert!(Value::Text("10".to_owned()).time().is_err());
        assert!(Value::Number("10".to_owned()).time().is_err());
        assert_eq!(Value::Text("10s".to_owned()).time(), Ok(Duration::from_secs(10)));
    }

    #[test]
    fn what_is_wrong_and_what_is_right_are_both_said() {
        let error = Value::Text("lots\u{1b}".to_owned()).size().expect_err("is no size").to_string();
        assert_eq!(error, "`lots\\u{1b}` is not a size: write for example `\"512MiB\"`");
        let error = Value::Truth(true).count().expect_err("is no number").to_string();
        assert!(error.starts_with("a boolean is not a number"), "{error}");
    }

    #[test]
    fn root_is_not_an_unprivileged_user() {
        for wrong in ["0", "-1", "4294967295", "4294967296"] {
            assert!(Value::Number(wrong.to_owned()).user_id().is_err(), "{wrong}");
        }
    }
}
