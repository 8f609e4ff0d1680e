//! What a repository says for itself: the few files at its top that we read, as a commit has them. What an agent, or
//! anybody, writes to the working tree counts for nothing before it is committed on the host.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::Ending;
use model::action::Base;
use model::task::Task;

use super::Git;
use crate::error::EngineError;
use crate::git_dirs;
use crate::{Engine, Workspace};

/// The settings of a repository, which can only tighten.
pub const REPOSITORY_SETTINGS: &str = ".fumehood.toml";
/// The rules of a repository, which can only forbid.
pub const REPOSITORY_RULES: &str = ".fumehood.cedar";

/// What a repository says for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryFiles {
    /// Its settings.
    pub settings: Option<CommittedFile>,
    /// Its rules.
    pub rules: Option<CommittedFile>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// The commit.
    pub commit: String,
    /// What the file holds.
    pub text: String,
}

/// Prints the current commit and a file of it. Ends with 3 where the branch has no commit yet, and with 4 where the commit has
/// no such file. What git could not tell is neither: a failure must not read as a repository that says nothing.
const PRINT: &str = r#"set -eu
if ! commit=$(git rev-parse --verify 'HEAD^{commit}'); then
    branch=$(git symbolic-ref --quiet HEAD)
    status=0
    git show-ref --quiet --verify "$branch" || status=$?
    [ "$status" != 1 ] || exit 3
    exit 1
fi
printf '%s\n' "$commit"
listed=$(git ls-tree "$commit" -- "$1")
[ -n "$listed" ] || exit 4
git cat-file blob "$commit:$1"
"#;

/// What stands before a kept copy: there is no such file, or its text follows.
const KEPT_NONE: &str = "none\n";
const KEPT_TEXT: &str = "text\n";

/// More than any such file needs.
const LARGEST: u64 = 1 << 20;

/// By what a change of what a repository says is seen. While all of it stands still, so does what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmoved {
    workspace: PathBuf,
    commit: Option<String>,
    /// Of the index, and of the files in the working tree.
    stamps: [Option<(u64, u64, i64, i64)>; 3],
}

impl Engine {
    /// Reads what the repository of a task says for itself: as the commit has it that the task starts from or, where it
    /// starts from the directory as it stands, the commit that is checked out there.
    ///
    /// Git is asked, in a sandbox, only where the working tree or the index have such a file: whoever took it out of both
    /// did so on the host, by hand. What git said is kept for the task, as long as the commit is the same.
    ///
    /// # Errors
    /// When git fails, or what is there, or was kept, cannot be read or written.
    pub fn repository_files(
        &self,
        task: &Task,
        workspace: &Workspace,
    ) -> Result<RepositoryFiles, EngineError> {
        if let Base::Commit { commit } = &task.base {
            let of_base = |name| self.file_of_base(task, commit, name);
            return Ok(RepositoryFiles {
                settings: of_base(REPOSITORY_SETTINGS)?,
                rules: of_base(REPOSITORY_RULES)?,
            });
        }
        if fs::symlink_metadata(workspace.path.join(".git")).is_err() {
            refuse_part_of_repository(&workspace.path)?;
            return Ok(RepositoryFiles::default());
        }
        let unmoved = Unmoved::now(&workspace.path);
        if let Some((_, files)) = self.repository_files_read().as_ref().filter(|(was, _)| *was == unmoved) {
            return Ok(files.clone());
        }
        let index = Index::of(&workspace.path);
        let committed = |name| self.committed_file(task, workspace, &index, unmoved.commit.as_deref(), name);
        let files = RepositoryFiles {
            settings: committed(REPOSITORY_SETTINGS)?,
            rules: committed(REPOSITORY_RULES)?,
        };
        // Where the commit could not be told, nothing tells that it is another.
        if unmoved.commit.is_some() {
            *self.repository_files_read() = Some((unmoved, files.clone()));
        }
        Ok(files)
    }

    /// Reads a file of the commit that is checked out below a task.
    fn file_of_base(
        &self,
        task: &Task,
        commit: &str,
        name: &str,
    ) -> Result<Option<CommittedFile>, EngineError> {
        let base = self.base_of(task);
        if !base.is_dir() {
            let why = "what was checked out for the task is not there any more: start another one".to_owned();
            return Err(EngineError::Base { path: base, why });
        }
        let path = base.join(name);
        let mut options = File::options();
        // A link would have somebody else's file read.
        options.read(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EngineError::file("read", &path)(error)),
        };
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(EngineError::file("read", &path))?;
        if text.len() as u64 > LARGEST {
            let why = format!("`{name}` of the commit is larger than 1 MiB");
            return Err(EngineError::Base { path, why });
        }
        Ok(Some(CommittedFile { commit: commit.to_owned(), text }))
    }

    /// Reads a file of the commit that is checked out in the workspace.
    fn committed_file(
        &self,
        task: &Task,
        workspace: &Workspace,
        index: &Index,
        current: Option<&str>,
        name: &str,
    ) -> Result<Option<CommittedFile>, EngineError> {
        if !index.may_have(name) && fs::symlink_metadata(workspace.path.join(name)).is_err() {
            return Ok(None);
        }
        let kept = current.map(|commit| self.place_of_committed(task, commit, name));
        if let (Some(commit), Some(found)) = (current, kept.as_deref().and_then(read_kept)) {
            return Ok(found.map(|text| CommittedFile { commit: commit.to_owned(), text }));
        }
        let profile = &self.config().helper_profile;
        let found = Git { engine: self, task, workspace, profile }.committed(name)?;
        if let (Some(kept), Some(commit)) = (kept, current)
            && found.as_ref().is_none_or(|found| found.commit == commit)
        {
            self.make_task_directory(&task.id)?;
            let text = found.as_ref().map(|found| found.text.as_str());
            keep(&kept, text).map_err(EngineError::file("write", &kept))?;
        }
        Ok(found)
    }

    fn place_of_committed(&self, task: &Task, commit: &str, name: &str) -> PathBuf {
        self.places().task(&task.id).join(format!("committed-{commit}-{}", name.replace('/', "-")))
    }
}

impl Git<'_> {
    fn committed(&self, name: &str) -> Result<Option<CommittedFile>, EngineError> {
        let finished = self.run(&["sh", "-c", PRINT, "committed-file", name])?;
        if matches!(finished.ending, Ending::Exited { status: 3 | 4 }) {
            return Ok(None);
        }
        let printed = self.succeeded(&finished)?;
        let (commit, text) = printed.split_once('\n').unwrap_or_default();
        let too_large =
            text.len() as u64 > LARGEST || finished.printed.iter().any(|(_, printed)| printed.dropped > 0);
        match (is_commit(commit), too_large) {
            (false, _) => Err(self.failed("git did not name a commit")),
            (true, true) => Err(self.failed(format!("`{name}` of the commit is larger than 1 MiB"))),
            (true, false) => Ok(Some(CommittedFile { commit: commit.to_owned(), text: text.to_owned() })),
        }
    }
}

/// Refuses a directory that is a part of a repository which says something for itself: its rules name paths from its top.
fn refuse_part_of_repository(workspace: &Path) -> Result<(), EngineError> {
    let is_top = |directory: &&Path| fs::symlink_metadata(directory.join(".git")).is_ok();
    let Some(top) = workspace.ancestors().skip(1).find(is_top) else { return Ok(()) };
    let index = Index::of(top);
    let has = |name: &&'static str| index.may_have(name) || fs::symlink_metadata(top.join(name)).is_ok();
    match [REPOSITORY_SETTINGS, REPOSITORY_RULES].into_iter().find(has) {
        None => Ok(()),
        Some(name) => Err(EngineError::Base {
            path: workspace.to_owned(),
            why: format!(
                "it is a part of a repository with a `{name}`, which holds for all of it: work on its top, {}",
                top.display()
            ),
        }),
    }
}

/// Reads a kept copy: nothing where there is none that is whole.
fn read_kept(kept: &Path) -> Option<Option<String>> {
    let text = fs::read_to_string(kept).ok()?;
    match text.strip_prefix(KEPT_TEXT) {
        Some(text) => Some(Some(text.to_owned())),
        None => (text == KEPT_NONE).then_some(None),
    }
}

/// Keeps a copy as a whole or not at all: half of the rules would be rules, too.
fn keep(kept: &Path, text: Option<&str>) -> io::Result<()> {
    let written = text.map_or_else(|| KEPT_NONE.to_owned(), |text| format!("{KEPT_TEXT}{text}"));
    let new = kept.with_extension(format!("{}.new", std::process::id()));
    let mut file = File::create(&new)?;
    file.write_all(written.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, kept)
}

impl Unmoved {
    fn now(workspace: &Path) -> Self {
        let index = git_dirs::git_directory(workspace).join("index");
        let files = [REPOSITORY_SETTINGS, REPOSITORY_RULES].map(|name| workspace.join(name));
        let [settings, rules] = files.map(|file| stamp(&file));
        Self {
            workspace: workspace.to_owned(),
            commit: current_commit(workspace),
            stamps: [stamp(&index), settings, rules],
        }
    }
}

/// Returns by what another state of a file is told.
fn stamp(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

/// What git's index says about names.
struct Index(Option<Vec<u8>>);

impl Index {
    fn of(workspace: &Path) -> Self {
        let git = git_dirs::git_directory(workspace);
        // The names of a split index stand in another file.
        let is_shared = |name: &OsString| name.as_encoded_bytes().starts_with(b"sharedindex.");
        let entries = fs::read_dir(&git).into_iter().flatten().flatten();
        if entries.map(|entry| entry.file_name()).any(|name| is_shared(&name)) {
            return Self(None);
        }
        Self(match fs::read(git.join("index")) {
            // Version 4 cuts what a name shares with the one before it.
            Ok(index) if index.starts_with(b"DIRC\0\0\0\x02") || index.starts_with(b"DIRC\0\0\0\x03") => {
                Some(index)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Some(Vec::new()),
            Ok(_) | Err(_) => None,
        })
    }

    /// Tells whether it has a file. In an index of a form that cannot be searched, it may be there.
    fn may_have(&self, name: &str) -> bool {
        let has = |index: &Vec<u8>| memchr::memmem::find(index, name.as_bytes()).is_some();
        self.0.as_ref().is_none_or(has)
    }
}

/// Returns the current commit where it can be read without git: a branch in a file of its own, or no branch at all.
fn current_commit(workspace: &Path) -> Option<String> {
    let own = git_dirs::git_directory(workspace);
    let head = small(&own.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        Some(branch) if branch.starts_with("refs/") && !branch.contains("..") => {
            // Of a linked worktree the branches lie in the repository behind it.
            let shared = git_dirs::repository_of_worktree(workspace).unwrap_or(own);
            small(&shared.join(branch))?
        }
        Some(_) => return None,
        None => head,
    };
    Some(commit.trim().to_owned()).filter(|commit| is_commit(commit))
}

fn small(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.len() < 4096).then(|| fs::read_to_string(path).ok())?
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_commit_is_read_where_that_is_safe() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = directory.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).expect("makes a directory");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let current = || current_commit(directory.path());
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("writes");
        assert_eq!(current(), None, "a branch that is packed, or not born");
        fs::write(git.join("refs/heads/main"), format!("{commit}\n")).expect("writes");
        assert_eq!(current().as_deref(), Some(commit));
        fs::write(git.join("HEAD"), format!("{commit}\n")).expect("writes");
        assert_eq!(current().as_deref(), Some(commit));
        fs::write(git.join("HEAD"), "ref: ../../elsewhere\n").expect("writes");
        assert_eq!(current(), None);
    }

    #[test]
    fn git_is_not_asked_for_what_is_nowhere() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path();
        fs::create_dir(top.join(".git")).expect("makes a directory");
        let may_have = || Index::of(top).may_have(REPOSITORY_RULES);
        assert!(!may_have());
        let write = |index: &[u8]| fs::write(top.join(".git/index"), index).expect("writes");
        write(b"DIRC\0\0\0\x02....src/main.rs...");
        assert!(!may_have());
        write(b"DIRC\0\0\0\x02....\x00.fumehood.cedar\0");
        assert!(may_have());
        write(b"DIRC\0\0\0\x04....");
        assert!(may_have(), "it could be there in a form that is cut");
        write(b"DIRC\0\0\0\x02....src/main.rs...");
        fs::write(top.join(".git/sharedindex.0123"), "").expect("writes");
        assert!(may_have(), "it could be there in the other file");
    }

    #[test]
    fn a_copy_that_is_not_whole_is_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = directory.path().join("committed-0123-.fumehood.cedar");
        assert_eq!(read_kept(&kept), None);
        for text in [None, Some(""), Some("forbid\n")] {
            keep(&kept, text).expect("is kept");
            assert_eq!(read_kept(&kept), Some(text.map(str::to_owned)));
        }
        for broken in ["", "none", "tex", "permit"] {
            fs::write(&kept, broken).expect("writes");
            assert_eq!(read_kept(&kept), None, "{broken}");
        }
    }

    #[test]
    fn another_commit_index_or_file_is_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path();
        fs::create_dir_all(top.join(".git/refs/heads")).expect("makes a directory");
        let mut known = vec![Unmoved::now(top)];
        for (name, text) in [
            (".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n"),
            (".git/HEAD", "1123456789abcdef0123456789abcdef01234567\n"),
            (".git/index", "DIRC"),
            (REPOSITORY_RULES, "x"),
            (REPOSITORY_SETTINGS, "x"),
        ] {
            fs::write(top.join(name), text).expect("writes");
            let now = Unmoved::now(top);
            assert!(!known.contains(&now), "{name}");
            known.push(now);
        }
        assert_eq!(known.last(), Some(&Unmoved::now(top)));
    }
}
