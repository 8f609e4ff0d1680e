//! The repository of a workspace that is a linked git worktree or a submodule: it lies outside the workspace.
//!
//! A worktree's `.git` is a file that names a directory of the main repository. The agent may write that file, so it
//! is believed only when the repository, which the agent cannot write, names the workspace in return. What is shown
//! has private layers above it: a commit made inside is seen until the command ends, and the host's repository stays.

use std::path::{Component, Path, PathBuf};

use super::assembly::{Assembly, Manner, Shown};
use super::credentials::{names_secret, without_secret};
use super::piece::Piece;
use super::tools::copy;

/// Directories of a repository that git writes to.
const WRITTEN: [&str; 7] = ["objects", "refs", "logs", "info", "modules", "lfs", "rr-cache"];

/// Files of a repository. Git replaces them, so they are copies: a bound file cannot be replaced.
const COPIED: [&str; 5] = ["HEAD", "packed-refs", "description", "shallow", "FETCH_HEAD"];

/// One line in a `.git` file or a back link; no path is longer (`PATH_MAX`).
const LINE_MAX: u64 = 4096 + 16;

/// Shows the repository of the workspace where it is not in the workspace itself.
pub(crate) fn show_repository(assembly: &mut Assembly<'_>) {
    let workspace = assembly.host.workspace.clone();
    let link = workspace.join(".git");
    let Some(named) = line(assembly, &link).and_then(|line| Some(line.strip_prefix("gitdir: ")?.to_owned()))
    else {
        return;
    };
    // The workspace has no links in its path, so climbing out of it is plain arithmetic; a walk would stop there.
    let own = assembly.files.walk(&climbed(&workspace, Path::new(&named)));
    if own.stopped || !own.is_directory() {
        return;
    }
    let own = own.real.clone();
    let common = if own.parent().is_some_and(|parent| parent.ends_with("worktrees")) {
        common_of_worktree(assembly, &own, &link)
    } else {
        names_as_worktree(assembly, &own, &workspace).then(|| own.clone())
    };
    match common {
        Some(common) => show_parts(assembly, &common, &own),
        None => {
            assembly.hide(
                &own,
                "the workspace names it as its repository, and it does not name the workspace in return",
            );
        }
    }
}

/// Returns the main repository of a linked worktree that names the workspace in return.
fn common_of_worktree(assembly: &Assembly<'_>, own: &Path, link: &Path) -> Option<PathBuf> {
    let back = own.join(line(assembly, &own.join("gitdir"))?);
    let common = own.join(line(assembly, &own.join("commondir"))?);
    let common = assembly.files.walk(&common).real.clone();
    let is_below = own.parent().and_then(Path::parent) == Some(&common);
    (is_below && leads_to(assembly, &back, link)).then_some(common)
}

/// Tells whether the repository of a submodule says that its files are in the workspace.
fn names_as_worktree(assembly: &Assembly<'_>, own: &Path, workspace: &Path) -> bool {
    let config = assembly.files.read(&own.join("config"), 64 * 1024).unwrap_or_default();
    let config = String::from_utf8_lossy(&config);
    let values = config.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "worktree").then(|| value.trim().trim_matches('"').to_owned())
    });
    values.into_iter().any(|value| leads_to(assembly, &own.join(value), workspace))
}

fn climbed(from: &Path, path: &Path) -> PathBuf {
    let ups = path.components().take_while(|part| *part == Component::ParentDir).count();
    let base = from.ancestors().nth(ups).unwrap_or(Path::new("/"));
    base.join(path.components().skip(ups).collect::<PathBuf>())
}

fn leads_to(assembly: &Assembly<'_>, path: &Path, place: &Path) -> bool {
    let walk = assembly.files.walk(path);
    walk.stopped && walk.real == place
}

fn line(assembly: &Assembly<'_>, path: &Path) -> Option<String> {
    let text = String::from_utf8(assembly.files.read(path, LINE_MAX)?).ok()?;
    Some(text.trim_end_matches('\n').to_owned())
}

fn show_parts(assembly: &mut Assembly<'_>, common: &Path, own: &Path) {
    let mut shown = 0;
    for part in WRITTEN {
        shown += usize::from(matches!(assembly.show(&common.join(part), Manner::Overlay), Shown::At(_)));
    }
    if shown == 0 {
        return;
    }
    assembly.insert(Piece::Private { target: common.to_owned(), mode: 0o755 });
    if own != common {
        assembly.show(own, Manner::Overlay);
    }
    assembly.show(&common.join("hooks"), Manner::ReadOnly);
    for name in COPIED {
        copy(assembly, &common.join(name), |file| Ok((file.to_owned(), None)));
    }
    for name in ["config", "config.worktree"] {
        copy(assembly, &common.join(name), |file| {
            let text =
                std::str::from_utf8(file).map_err(|_| "it is not text, so secrets in it could be missed")?;
            let (text, reason) = without_secrets(text);
            Ok((text.into_bytes(), reason))
        });
    }
}

/// Returns a repository's settings without passwords, headers and helpers.
fn without_secrets(config: &str) -> (String, Option<String>) {
    let mut kept = String::new();
    let mut changed = false;
    let mut section_is_kept = true;
    for line in config.lines() {
        let text = without_secret(line).filter(|_| !sets_secret(line));
        if line.trim_start().starts_with('[') {
            section_is_kept = text.is_some();
        }
        changed |= !section_is_kept || text.as_deref() != Some(line);
        if let Some(text) = text.filter(|_| section_is_kept) {
            kept.push_str(&text);
            kept.push('\n');
        }
    }
    (kept, changed.then(|| "a copy is shown without passwords, headers and helpers".to_owned()))
}

fn sets_secret(line: &str) -> bool {
    let name = line.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
    !name.starts_with('[')
        && (names_secret(&name) || matches!(&name[..], "extraheader" | "helper" | "sshcommand"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repositorys_settings_lose_what_is_secret() {
        let config = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://ada:hunter2@host.example/x\n\
                      [http]\n\textraHeader = Authorization: Basic eA==\n[credential]\n\thelper = store\n";
        let (kept, reason) = without_secrets(config);
        let expected = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://host.example/x\n[http]\n[credential]\n";
        assert_eq!(kept, expected);
        assert!(reason.is_some());
        assert_eq!(without_secrets("[core]\n\tbare = false\n").1, None);
    }
}
