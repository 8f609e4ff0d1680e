//! Reading the operator's files.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::clients;
use super::environment::Environment;
use super::file::SettingsFile;
use super::key::Setting;
use super::origin::Source;
use super::resolved::{Settings, SettingsError};

/// Where the operator's files are, in the order in which they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations(pub Vec<PathBuf>);

/// The machine's file.
pub(super) const MACHINE_FILE: &str = "/etc/fumehood/fumehood.toml";

/// More than any settings file needs; what is larger is something else.
const LARGEST: u64 = 1 << 20;

impl Locations {
    /// Returns the machine's file and the user's own.
    pub fn usual(environment: &Environment) -> Self {
        let user =
            environment.xdg("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("fumehood/fumehood.toml"));
        Self([Some(PathBuf::from(MACHINE_FILE)), user].into_iter().flatten().collect())
    }

    /// Reads the files that are there.
    ///
    /// # Errors
    /// When one cannot be read, could have been written by somebody else, or holds something wrong.
    pub fn read(&self) -> Result<Vec<SettingsFile>, SettingsError> {
        let mut files = Vec::new();
        for path in &self.0 {
            match read(path) {
                Ok(file) => files.push(file),
                Err(SettingsError::Read { source, .. }) if is_missing(&source) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Reads one of the operator's files.
///
/// # Errors
/// When it cannot be read, could have been written by somebody else, or holds something wrong.
pub fn read(path: &Path) -> Result<SettingsFile, SettingsError> {
    let text = text_of(path)?;
    SettingsFile::parse(&text, Source::Operator(path.to_owned())).map_err(SettingsError::File)
}

/// Returns the text of one of the operator's files, whatever it holds.
///
/// # Errors
/// When it cannot be read, or could have been written by somebody else.
pub fn text_of(path: &Path) -> Result<String, SettingsError> {
    let failed = |source| SettingsError::Read { path: path.to_owned(), source };
    // A FIFO would keep us waiting for somebody to write.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file")));
    }
    let distrusted = if path == Path::new(MACHINE_FILE) {
        distrust_machine(path, metadata.uid(), metadata.mode()).map_err(failed)?
    } else {
        distrust(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
    };
    if let Some(why) = distrusted {
        return Err(SettingsError::Untrusted { path: path.to_owned(), why });
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LARGEST {
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB")));
    }
    Ok(text)
}

/// Says why a file of this owner and mode is not taken from the operator.
fn distrust(owner: u32, mode: u32, us: u32) -> Option<String> {
    if owner != 0 && owner != us {
        return Some(format!("user {owner} owns it; it must be yours or root's"));
    }
    (mode & 0o002 != 0).then(|| "everybody may write to it: `chmod o-w` it".to_owned())
}

/// Says why the machine's file is not its operator's: it gives roles to others and says where they answer.
fn distrust_machine(path: &Path, owner: u32, mode: u32) -> io::Result<Option<String>> {
    if let Some(why) = not_root_s_alone(owner, mode) {
        return Ok(Some(why));
    }
    for place in path.ancestors().skip(1) {
        let found = std::fs::metadata(place)?;
        if let Some(why) = not_root_s_alone(found.uid(), found.mode()) {
            return Ok(Some(format!("of `{}`, {why}", place.display())));
        }
    }
    Ok(None)
}

fn not_root_s_alone(owner: u32, mode: u32) -> Option<String> {
    if owner != 0 {
        return Some(format!("user {owner} owns it; it must be root's"));
    }
    (mode & 0o022 != 0).then(|| "others may write to it: `chmod go-w` it".to_owned())
}

impl Settings {
    /// Reads all there is: files, environment and command line.
    ///
    /// # Errors
    /// When something in them is wrong.
    pub fn load(
        environment: &Environment,
        flags: Vec<(Setting, &'static str)>,
    ) -> Result<Self, SettingsError> {
        let files = Locations::usual(environment).read()?;
        let mut settings = Self::resolve(files, environment, flags)?;
        settings.clients = clients::found(environment);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_missing_file_is_no_error_and_a_wrong_one_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let (one, two) = (dir.path().join("one.toml"), dir.path().join("two.toml"));
        let locations = Locations(vec![one.clone(), two.clone(), dir.path().join("one.toml/below")]);
        assert!(locations.read().expect("nothing is there").is_empty());
        fs::write(&one, "retention = \"1d\"\n").expect("writes");
        assert_eq!(locations.read().expect("one is there").len(), 1);
        fs::write(&two, "retention = 1\n").expect("writes");
        assert!(matches!(locations.read(), Err(SettingsError::File(problems)) if problems.len() == 1));
        fs::write(&two, b"retention = \"\xff\"\n").expect("writes");
        assert!(matches!(locations.read(), Err(SettingsError::Read { .. })));
    }

    #[test]
    fn a_file_that_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f.toml");
        fs::write(&path, "").expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("is ours");
        let error = read(&path).expect_err("is refused").to_string();
        assert!(error.contains("chmod o-w"), "{error}");
        assert!(distrust(1000, 0o644, 1000).is_none() && distrust(0, 0o644, 1000).is_none());
        assert!(distrust(1001, 0o600, 1000).expect("is refused").contains("user 1001"));
    }

    #[test]
    fn the_machines_file_is_root_s_and_nobody_else_writes_it_or_where_it_stands() {
        for (owner, mode, alone) in
            [(0, 0o644, true), (0, 0o755, true), (0, 0o664, false), (0, 0o1777, false), (1000, 0o600, false)]
        {
            assert_eq!(not_root_s_alone(owner, mode).is_none(), alone, "{owner} {mode:o}");
        }
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("is ours");
        let found = distrust_machine(&dir.path().join("f.toml"), 0, 0o644).expect("is there");
        assert!(found.is_some_and(|why| why.contains("of `")), "its directory counts too");
    }
}
