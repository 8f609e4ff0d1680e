//! Values as they are written, and what they can be read as.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use model::intake::Sensitivity;
use model::limits::DiskMode;
use model::text::escape;
use model::{Bytes, EgressRule, Level, UnlistedProgram};
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use super::key::Account;
use crate::args::Millicpus;
use crate::args::value::{positive_bytes, positive_duration};

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
            DeValue::Boolean(_) => Self::Other("a boolean"),
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
    /// How sensitive something is.
    Sensitivity,
}

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
            Self::Groups => "a list of groups: write names in quotes, for example `[\"ops\"]`",
            Self::Sensitivity => {
                "how sensitive it is: write `\"public\"`, `\"internal\"`, `\"confidential\"` or `\"restricted\"`"
            }
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
            Self::Paths => json!({"type": "array", "items": {"type": "string", "pattern": "^/"}}),
            Self::Groups => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
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
            Self::Text(_) | Self::List(_) | Self::Other(_) => Err(form.error(self)),
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
        let error = Value::Other("a boolean").count().expect_err("is no number").to_string();
        assert!(error.starts_with("a boolean is not a number"), "{error}");
    }

    #[test]
    fn root_is_not_an_unprivileged_user() {
        for wrong in ["0", "-1", "4294967295", "4294967296"] {
            assert!(Value::Number(wrong.to_owned()).user_id().is_err(), "{wrong}");
        }
    }
}
