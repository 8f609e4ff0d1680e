//! The files in which answers of other accounts stand.
//!
//! Guarantees: who wrote an answer is told by the owner of its file, looked at on the opened descriptor; a link, a file with
//! a second name, one that others can write, and one in a directory where somebody else could move it are no answers.
//! Leaves to others: what an answer is worth (`elsewhere`).

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::ApprovalId;
use model::text::escape;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, fchmod, openat, renameat_with, statat};
use rustix::io::Errno;

use super::elsewhere::SignedAnswer;
use crate::clock::random;
use crate::error::EngineError;

/// Who can write in a directory with the sticky bit moves and removes nothing of others (inode(7)).
const STICKY: u32 = 0o1000;
/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;
/// Whether the kernel lets only the owner of a file give it a second name (proc_sys_fs(5)). Without that an answer that was
/// taken back could come back.
const PROTECTED_LINKS: &str = "/proc/sys/fs/protected_hardlinks";
/// Who owns what has no owner in this user namespace (user_namespaces(7)): anybody.
const NOBODY: u32 = 65_534;
/// More than any answer needs.
const LARGEST: u64 = 16 << 10;
/// The most entries of the directory that are looked through, and the most answers to one request.
const MOST: [usize; 2] = [16_384, 64];

/// A directory in which people of other accounts leave their answers.
#[derive(Debug)]
pub struct AnswersDirectory {
    path: PathBuf,
    opened: File,
}

/// A file that says it is an answer.
#[derive(Debug)]
pub(super) struct Found {
    /// Its name.
    pub(super) name: String,
    /// The account that owns it.
    pub(super) owner: u32,
    /// What it says, or why it is no answer.
    pub(super) answer: Result<SignedAnswer, String>,
}

impl AnswersDirectory {
    /// Opens the directory, when nobody but root and who left an answer can do something to that.
    ///
    /// # Errors
    /// When it is not there, or somebody could.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let resolved = fs::canonicalize(path).map_err(EngineError::file("find", path))?;
        let opened = File::open(&resolved).map_err(EngineError::file("open", path))?;
        let directory = Self { path: resolved, opened };
        match directory.distrust()? {
            None => Ok(directory),
            Some(why) => Err(EngineError::Nothing(format!(
                "answers in `{}` are not taken: {why}",
                escape(&path.to_string_lossy())
            ))),
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn distrust(&self) -> Result<Option<String>, EngineError> {
        let found = self.opened.metadata().map_err(EngineError::file("look at", &self.path))?;
        if !found.is_dir() {
            return Ok(Some("it is no directory".to_owned()));
        }
        for place in self.path.ancestors() {
            let found = fs::symlink_metadata(place).map_err(EngineError::file("look at", place))?;
            if let Some(why) = distrust(found.uid(), found.mode()) {
                return Ok(Some(format!("`{}` {why}", escape(&place.to_string_lossy()))));
            }
        }
        let protected = fs::read_to_string(PROTECTED_LINKS).unwrap_or_default();
        Ok((protected.trim() != "1").then(|| {
            format!("the kernel lets others give a file a second name: write 1 to {PROTECTED_LINKS}")
        }))
    }

    /// Reads every file that says it is an answer to a request.
    pub(super) fn answers_to(&self, approval: &ApprovalId) -> Result<Vec<Found>, EngineError> {
        let entries = fs::read_dir(&self.path).map_err(EngineError::file("read", &self.path))?;
        let (start, mut names, [most_entries, most]) = (format!("{approval}."), Vec::new(), MOST);
        for (number, entry) in entries.enumerate() {
            let name = entry.map_err(EngineError::file("read", &self.path))?.file_name();
            names.extend(name.into_string().ok().filter(|name| name.starts_with(&start)));
            if number >= most_entries || names.len() > most {
                return Err(EngineError::Nothing(format!(
                    "more stands in `{}` than anybody answers: have somebody clean it up",
                    escape(&self.path.to_string_lossy())
                )));
            }
        }
        names.sort();
        Ok(names.iter().filter_map(|name| self.find(name)).collect())
    }

    /// Reads the file of this name; nothing when it is not there.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        // The name of an answer in the state is not believed either: it stays in the directory.
        if name.contains('/') {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let name = name.to_owned();
        match openat(&self.opened, &name, flags, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                let owner = file.metadata().map_or(NOBODY, |found| found.uid());
                Some(Found { answer: read(&file, &name), owner, name })
            }
            Err(Errno::NOENT) => None,
            Err(error) => {
                let owner = statat(&self.opened, &name, AtFlags::SYMLINK_NOFOLLOW);
                let owner = owner.map_or(NOBODY, |found| found.st_uid);
                let why = match error {
                    Errno::LOOP => "is a link".to_owned(),
                    error => format!("cannot be read ({error})"),
                };
                Some(Found { name, owner, answer: Err(why) })
            }
        }
    }

    /// Writes an answer of the caller, and returns the name of its file. Whoever may read the directory may read it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, answer: SignedAnswer) -> Result<String, EngineError> {
        let nonce: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let account = rustix::process::geteuid().as_raw();
        let name = format!("{}.{account}.{nonce}.json", answer.approval);
        let unfinished = format!(".{nonce}.new");
        let failed = || EngineError::file("leave an answer in", &self.path);
        let text = serde_json::to_string(&SignedAnswer { name: name.clone(), ..answer });
        let text = text.map_err(|error| failed()(error.into()))?;
        if text.len() as u64 > LARGEST {
            return Err(EngineError::Nothing("the reason is longer than an answer may be".to_owned()));
        }
        self.publish(&unfinished, &name, &text).map_err(failed())?;
        Ok(name)
    }

    /// Gives a file its name when all of it is there: half an answer would be refused, and that on the record.
    fn publish(&self, unfinished: &str, name: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.opened, unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text.as_bytes())?;
        fchmod(&file, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)?;
        file.sync_all()?;
        renameat_with(&self.opened, unfinished, &self.opened, name, RenameFlags::NOREPLACE)?;
        Ok(())
    }
}

/// Says why a directory of this owner and mode does not keep files apart.
fn distrust(owner: u32, mode: u32) -> Option<String> {
    if owner != 0 {
        return Some(format!("belongs to user {owner}: it must be root's"));
    }
    let open = mode & OTHERS_WRITE != 0 && mode & STICKY == 0;
    open.then(|| "can be written by others who could then move what is in it: `chmod +t` it".to_owned())
}

/// Reads an opened file, when its owner alone can have written it.
fn read(file: &File, name: &str) -> Result<SignedAnswer, String> {
    let unreadable = |error: io::Error| format!("cannot be read ({error})");
    let found = file.metadata().map_err(unreadable)?;
    if let Some(why) = no_answer(&found) {
        return Err(why.to_owned());
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    let answer = SignedAnswer::parse(&text)?;
    // Else a copy under another name would be a second answer.
    if answer.name == name {
        Ok(answer)
    } else {
        Err("has another name than it was written under".to_owned())
    }
}

fn no_answer(found: &fs::Metadata) -> Option<&'static str> {
    if !found.is_file() {
        return Some("is no ordinary file");
    }
    if found.nlink() != 1 {
        return Some("has a second name");
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Some("can be written by others");
    }
    if found.uid() == NOBODY {
        return Some("belongs to nobody in particular");
    }
    (found.len() > LARGEST).then_some("is larger than an answer is")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_keeps_files_apart_when_it_is_root_s_and_sticky_where_others_write() {
        for (owner, mode, trusted) in [
            (0, 0o755, true),
            (0, 0o1777, true),
            (0, 0o1733, true),
            (0, 0o777, false),
            (0, 0o775, false),
            (1000, 0o755, false),
            (1000, 0o1777, false),
        ] {
            assert_eq!(distrust(owner, mode).is_none(), trusted, "{owner} {mode:o}");
        }
    }

    #[test]
    fn what_somebody_else_could_have_made_or_kept_is_no_answer() {
        let top = tempfile::tempdir().expect("a directory");
        let opened = File::open(top.path()).expect("opens");
        let directory = AnswersDirectory { path: top.path().to_owned(), opened };
        let why = |name: &str| match directory.find(name).expect("is there").answer {
            Err(why) => why,
            Ok(answer) => panic!("{answer:?}"),
        };
        let write = |name: &str, bytes: &[u8], mode| {
            let path = top.path().join(name);
            fs::write(&path, bytes).expect("writes");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("is ours");
        };
        write("twice", b"{}", 0o644);
        fs::hard_link(top.path().join("twice"), top.path().join("again")).expect("links");
        assert_eq!((why("twice"), why("again")), ("has a second name".into(), "has a second name".into()));
        write("open", b"{}", 0o664);
        assert_eq!(why("open"), "can be written by others");
        write("large", &vec![b' '; 20 << 10], 0o644);
        assert_eq!(why("large"), "is larger than an answer is");
        symlink(top.path().join("large"), top.path().join("link")).expect("links");
        assert_eq!(why("link"), "is a link");
        fs::create_dir(top.path().join("directory")).expect("makes");
        assert_eq!(why("directory"), "is no ordinary file");
        write("nothing", b"", 0o644);
        assert!(why("nothing").starts_with("does not say what an answer says"));
        assert!(directory.find("gone").is_none() && directory.find("../x").is_none());
    }
}
