//! Where values of credentials are read from, when an action was allowed to use one.
//!
//! Guarantees: a file that others can read is not read; a program gets no other variables than those that say where its owner's
//! files are, and has half a minute and 64 KiB; no value is in an error or in anything that is printed.

use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Credential, Provider};
use model::egress::Secret;
use model::text::escape;
use sandbox::service::ask_provider;

use super::vault;
use crate::settings::{CredentialSource, CredentialTable, Environment, VaultPlace};

/// The longest that is read: longer than any value that is used.
const READ_MAX: u64 = 64 << 10;
/// How long a program has.
const WITHIN: Duration = Duration::from_secs(30);
/// Where clients of vaults have their token: in a variable, or in this file of the home.
const VAULT_TOKEN: &str = "VAULT_TOKEN";
const VAULT_TOKEN_FILE: &str = ".vault-token";
/// The variables that a program gets: they say where files and servers of its owner are.
const PASSED: [&str; 10] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "GNUPGHOME",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Makes a credential of the settings one that can be read.
pub(super) fn credential(table: CredentialTable, environment: &Environment, roots: &[PathBuf]) -> Credential {
    let CredentialTable {
        name,
        kind,
        owner,
        rules,
        repositories,
        tasks,
        lifetime,
        placement,
        stand_in,
        in_clear,
        source,
    } = table;
    let named = match &source {
        CredentialSource::Variable(name) => environment.get(name).map(OsString::from),
        CredentialSource::Vault(_, None) => environment.get(VAULT_TOKEN).map(OsString::from),
        CredentialSource::File(_) | CredentialSource::Command(_) | CredentialSource::Vault(..) => None,
    };
    let passed = PASSED.iter().filter_map(|name| Some((*name, environment.get(name)?.to_owned()))).collect();
    let (named, roots) = (named.map(Hidden), roots.to_vec());
    let provider = Arc::new(Source { source, named, passed, roots });
    Credential {
        name,
        kind,
        owner,
        rules,
        repositories,
        tasks,
        lifetime,
        placement,
        stand_in,
        in_clear,
        provider,
    }
}

/// Where a value is, with what is needed to read it.
#[derive(Debug)]
struct Source {
    source: CredentialSource,
    /// What the variable has.
    named: Option<Hidden>,
    passed: Vec<(&'static str, OsString)>,
    /// Files with certificates that servers are verified by, beside the system's.
    roots: Vec<PathBuf>,
}

/// A value of the environment, which shows in no error.
struct Hidden(OsString);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Provider for Source {
    fn read(&self) -> Result<Secret, String> {
        let text = match &self.source {
            CredentialSource::Variable(name) => {
                let value = self.named.as_ref().and_then(|value| value.0.to_str()).map(str::to_owned);
                value.ok_or_else(|| format!("{} is not set, or is no text", escape(name)))
            }
            CredentialSource::File(path) => in_file(path),
            CredentialSource::Command(words) => self.printed(words),
            CredentialSource::Vault(place, token) => self.in_vault(place, token.as_deref()),
        }?;
        match text.trim() {
            "" => Err(format!("{self} has no value")),
            value => Ok(Secret::new(value.to_owned())),
        }
    }
}

impl Source {
    fn in_vault(&self, place: &VaultPlace, token: Option<&Path>) -> Result<String, String> {
        let token = match (token, &self.named) {
            (Some(file), _) => in_file(file)?,
            (None, Some(named)) => named.0.to_str().unwrap_or_default().to_owned(),
            (None, None) => {
                let home = self.passed.iter().find(|(name, _)| *name == "HOME");
                let home = home.ok_or_else(|| format!("{VAULT_TOKEN} is not set, and neither is HOME"))?;
                in_file(&Path::new(&home.1).join(VAULT_TOKEN_FILE))?
            }
        };
        let roots = self.roots.iter().map(std::fs::read_to_string);
        let roots: Vec<String> = roots
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the roots of the settings cannot be read: {error}"))?;
        let place = vault::Place { url: &place.url, field: &place.field };
        vault::read(&place, token.trim(), &roots)
    }

    fn printed(&self, words: &[String]) -> Result<String, String> {
        let (program, arguments) = words.split_first().ok_or_else(|| "there is no command".to_owned())?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let passed: Vec<_> = self.passed.iter().map(|(name, value)| (*name, value.as_os_str())).collect();
        ask_provider(Path::new(program), &arguments, &passed, WITHIN, READ_MAX)
            .map_err(|error| format!("{self} gave nothing: {error}"))
    }
}

/// Reads a file that nobody else can read, and which is no link.
fn in_file(path: &Path) -> Result<String, String> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let failed = |error: std::io::Error| format!("`{shown}` cannot be read: {error}");
    // A FIFO would keep us waiting for somebody to write.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let us = rustix::process::geteuid().as_raw();
    if !about.is_file() {
        return Err(format!("`{shown}` is no ordinary file"));
    }
    if about.mode() & 0o077 != 0 || ![0, us].contains(&about.uid()) {
        return Err(format!(
            "`{shown}` is not yours alone: make it so with `chmod 600`, and put another value there"
        ));
    }
    let mut text = String::new();
    file.take(READ_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn read(source: CredentialSource) -> Result<String, String> {
        let named = Some(Hidden("from-the-Environment-1".into()));
        let passed = vec![("HOME", OsString::from("/home/ada"))];
        let source = Source { source, named, passed, roots: Vec::new() };
        assert!(!format!("{source:?}").contains("from-the-Environment"));
        source.read().map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn a_file_has_to_be_its_owners_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("token"), directory.path().join("link"));
        std::fs::write(&file, "tok-0123456789\n").expect("written");
        let mode =
            |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
        mode(0o600);
        assert_eq!(read(CredentialSource::File(file.clone())).as_deref(), Ok("tok-0123456789"));
        for open in [0o640, 0o604, 0o620] {
            mode(open);
            let why = read(CredentialSource::File(file.clone())).expect_err("is open");
            assert!(why.contains("chmod 600") && !why.contains("tok-"), "{why}");
        }
        mode(0o600);
        symlink(&file, &link).expect("a link");
        for no_file in [link, directory.path().to_owned(), directory.path().join("gone")] {
            assert!(read(CredentialSource::File(no_file)).is_err());
        }
    }

    #[test]
    fn a_program_has_few_variables_and_its_output_is_bounded() {
        let command = |script: &str| {
            let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
            read(CredentialSource::Command(words))
        };
        assert_eq!(command("echo tok-$HOME-$FUMEHOOD_TEST_X").as_deref(), Ok("tok-/home/ada-"));
        assert!(command("true").expect_err("prints nothing").contains("has no value"));
        assert!(command("head -c 70000 /dev/zero").is_err());
        assert!(command("echo tok-0123456789; exit 1").is_err());
        assert_eq!(read(CredentialSource::Variable("X".to_owned())).as_deref(), Ok("from-the-Environment-1"));
    }
}
