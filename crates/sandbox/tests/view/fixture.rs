//! A made-up host in a temporary directory.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use model::OsText;
use model::grant::{GrantedProgram, Programs};
use sandbox::view::{Host, Identity, Piece, View, ViewError};

/// A host whose files are below a temporary directory, with a caller named ada.
pub(crate) struct Bench {
    top: tempfile::TempDir,
    pub(crate) host: Host,
}

impl Bench {
    /// A small Debian with an empty home and a project in it.
    pub(crate) fn debian() -> Self {
        let bench = Self::bare();
        for (link, to) in
            [("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/lib64", "usr/lib64")]
        {
            bench.link(link, to);
        }
        for directory in ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/local/bin", "/opt", "/tmp"]
        {
            bench.directory(directory);
        }
        bench.program("/usr/bin/bash");
        bench
    }

    /// A host with nothing but a home and a project.
    pub(crate) fn bare() -> Self {
        let top = tempfile::tempdir().unwrap();
        let owner = std::fs::metadata(top.path()).unwrap();
        let ada = Identity { uid: owner.uid(), gid: owner.gid() };
        let host = Host {
            root: top.path().to_owned(),
            home: "/home/ada".into(),
            user: "ada".to_owned(),
            caller: ada,
            inside: ada,
            environment: BTreeMap::new(),
            workspace: "/home/ada/project".into(),
            state_dir: "/home/ada/.local/state/fumehood".into(),
            mount_points: Vec::new(),
            terminal: false,
            offline: true,
            gateway: false,
            looked_into: false,
            registries: Vec::new(),
        };
        let bench = Self { top, host };
        bench.directory("/home/ada/project");
        bench.directory("/home/ada/.local/state/fumehood");
        bench.variable("PATH", "/usr/local/bin:/usr/bin:/bin")
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.host.environment.insert(name.into(), value.into());
        self
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn directory(&self, path: &str) {
        std::fs::create_dir_all(self.at(path)).unwrap();
    }

    pub(crate) fn file(&self, path: &str, contents: &str) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, contents).unwrap();
    }

    pub(crate) fn program(&self, path: &str) {
        self.file(path, "#!/bin/sh\n");
        self.mode(path, 0o755);
    }

    pub(crate) fn mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn link(&self, path: &str, to: &str) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    }

    pub(crate) fn try_view(&self) -> Result<View, ViewError> {
        View::of(&self.host, &Programs::Any)
    }

    pub(crate) fn view(&self) -> Seen {
        Seen { view: self.try_view().unwrap(), root: self.top.path().to_owned() }
    }

    pub(crate) fn view_of(&self, programs: &[&str]) -> Result<Seen, ViewError> {
        let list = programs
            .iter()
            .map(|program| GrantedProgram::whatever_it_holds(OsText::try_from(*program).unwrap()))
            .collect();
        let view = View::of(&self.host, &Programs::Only(list))?;
        Ok(Seen { view, root: self.top.path().to_owned() })
    }
}

/// A view, with questions that a command inside could ask.
pub(crate) struct Seen {
    pub(crate) view: View,
    root: PathBuf,
}

impl Seen {
    /// Returns the innermost piece around a path.
    pub(crate) fn around(&self, path: impl AsRef<Path>) -> Option<&Piece> {
        let path = path.as_ref();
        self.view.pieces.iter().rfind(|piece| path.starts_with(piece.target()))
    }

    pub(crate) fn piece(&self, path: &str) -> Option<&Piece> {
        self.view.pieces.iter().find(|piece| piece.target() == Path::new(path))
    }

    /// Reads a file as a command inside would, following links: nothing when it is not there.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        self.read_on(Path::new(path), 20)
    }

    fn read_on(&self, path: &Path, left: usize) -> Option<String> {
        let mut so_far = PathBuf::from("/");
        let parts: Vec<_> = path.iter().skip(1).collect();
        for (at, part) in parts.iter().enumerate() {
            if *part == ".." {
                so_far.pop();
                continue;
            }
            so_far.push(part);
            if let Some(to) = self.link_at(&so_far).filter(|_| left > 0) {
                let mut rest = so_far.parent()?.join(to);
                rest.extend(&parts[at + 1..]);
                return self.read_on(&rest, left - 1);
            }
        }
        match self.around(&so_far)? {
            Piece::Generated { contents, target, .. } if *target == so_far => {
                String::from_utf8(contents.clone()).ok()
            }
            Piece::ReadOnly { source, target, .. } | Piece::Overlay { lower: source, target, .. } => {
                let below = so_far.strip_prefix(target).ok()?;
                let at = if below.as_os_str().is_empty() { source.clone() } else { source.join(below) };
                std::fs::read_to_string(at).ok()
            }
            _ => None,
        }
    }

    fn link_at(&self, path: &Path) -> Option<PathBuf> {
        match self.around(path)? {
            Piece::Symlink { target, points_to } if target == path => Some(points_to.clone()),
            Piece::ReadOnly { source, target, .. } | Piece::Overlay { lower: source, target, .. } => {
                std::fs::read_link(source.join(path.strip_prefix(target).ok()?)).ok()
            }
            _ => None,
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.view.environment.get(name).and_then(OsText::as_str)
    }

    pub(crate) fn why_hidden(&self, path: &str) -> Option<&str> {
        self.view
            .hidden
            .iter()
            .find(|hidden| hidden.path == Path::new(path))
            .map(|hidden| hidden.why.as_str())
    }

    /// Returns every file of the made-up host that a command inside can read, by its path on the host.
    pub(crate) fn readable(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.walk(Path::new("/"), &mut found);
        found
    }

    fn walk(&self, directory: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(self.root.join(directory.strip_prefix("/").unwrap())) else {
            return;
        };
        for entry in entries {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.walk(&path, found);
            } else if self.is_bound(&path) {
                found.push(path);
            }
        }
    }

    fn is_bound(&self, path: &Path) -> bool {
        matches!(self.around(path), Some(Piece::ReadOnly { .. } | Piece::Overlay { .. }))
    }
}
