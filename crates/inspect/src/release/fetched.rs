//! What a fetch of ours wrote to a repository: packs of objects and one branch, and nothing else of what git has.

use model::{Change, ChangeKind, FileKind, WorkspacePath};

/// Tells whether a change is what a fetch into `branch` (the path of its file) makes: a pack that is named by a
/// digest, its index, the branch, or a directory on the way to them. Git's own files lie below `git`: that is `.git/`, or
/// empty where the repository itself is what was looked at.
pub(super) fn is_fetched(change: &Change, git: &str, branch: &WorkspacePath) -> bool {
    let path = change.path.as_bytes();
    let Some(own) = path.strip_prefix(git.as_bytes()) else { return false };
    match (change.kind, change.file) {
        (ChangeKind::Created, FileKind::Directory) => {
            let above = [path, b"/"].concat();
            own == b"objects/pack" || branch.as_bytes().starts_with(&above)
        }
        (ChangeKind::Created, FileKind::File) => change.path == *branch || is_pack(own),
        (ChangeKind::Modified, FileKind::File) => change.path == *branch,
        _ => false,
    }
}

/// Tells whether a path below git's directory is that of a pack or of an index of one, as git names them.
fn is_pack(path: &[u8]) -> bool {
    let Some(name) = path.strip_prefix(b"objects/pack/pack-") else { return false };
    let mut parts = name.splitn(2, |byte| *byte == b'.');
    let (digest, ending) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_digest = matches!(digest.len(), 40 | 64)
        && digest.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest && [&b"pack"[..], b"idx", b"rev"].contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, kind: ChangeKind, file: FileKind) -> Change {
        let path = WorkspacePath::parse(path).expect("inside");
        Change { path, kind, file, mode: 0o644, size: 1, ignored: false }
    }

    #[test]
    fn packs_and_the_one_branch_are_what_a_fetch_makes() {
        let branch = WorkspacePath::parse(".git/refs/heads/fumehood/task-x").expect("inside");
        let pack = format!(".git/objects/pack/pack-{}", "0a".repeat(20));
        let (made, changed) = (ChangeKind::Created, ChangeKind::Modified);
        let fetched = [
            (format!("{pack}.pack"), made, FileKind::File),
            (format!("{pack}.idx"), made, FileKind::File),
            (".git/refs/heads/fumehood/task-x".to_owned(), made, FileKind::File),
            (".git/refs/heads/fumehood/task-x".to_owned(), changed, FileKind::File),
            (".git/refs/heads/fumehood".to_owned(), made, FileKind::Directory),
        ];
        for (path, kind, file) in &fetched {
            assert!(is_fetched(&change(path, *kind, *file), ".git/", &branch), "{path}");
            let (own, behind) = (&path[".git/".len()..], WorkspacePath::parse("refs/heads/fumehood/task-x"));
            let behind = behind.expect("inside");
            assert!(is_fetched(&change(own, *kind, *file), "", &behind), "{own}");
            assert!(!is_fetched(&change(own, *kind, *file), ".git/", &branch), "{own} of the workspace");
            assert!(!is_fetched(&change(path, *kind, *file), "", &behind), "{path} of the repository");
        }
        let others = [
            // A pack that is there already is not written again: what is in it, others believe.
            (format!("{pack}.pack"), changed, FileKind::File),
            (format!("{pack}.idx"), made, FileKind::Symlink),
            (format!("{pack}.keep"), made, FileKind::File),
            (format!("{pack}x.idx"), made, FileKind::File),
            (".git/objects/pack/pack-.idx".to_owned(), made, FileKind::File),
            (".git/refs/heads/main".to_owned(), changed, FileKind::File),
            (".git/refs/heads/fumehood/task-y".to_owned(), made, FileKind::File),
            (".git/refs/heads/fumehood/task-x".to_owned(), ChangeKind::Deleted, FileKind::File),
            (".git/hooks/post-merge".to_owned(), made, FileKind::File),
            (".git/config".to_owned(), changed, FileKind::File),
            (".git/objects/info/alternates".to_owned(), made, FileKind::File),
            ("src".to_owned(), made, FileKind::Directory),
        ];
        for (path, kind, file) in &others {
            assert!(!is_fetched(&change(path, *kind, *file), ".git/", &branch), "{path}");
        }
    }
}
