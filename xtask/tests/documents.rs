//! Links between documents lead somewhere, and the path that the architecture names for each crate's job exists.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::repo::Repo;
use xtask::run;

fn documents(root: &Path) -> Vec<PathBuf> {
    let mut git = run::command("git");
    let listed =
        git.args(["ls-files", "-z", "--", "*.md"]).current_dir(root).output().expect("git lists files");
    let names = String::from_utf8(listed.stdout).expect("our names are text");
    let names = names.split('\0').filter(|name| !name.is_empty() && !name.starts_with("tests/cases/"));
    names.map(|name| root.join(name)).filter(|path| path.is_file()).collect()
}

/// Returns the relative targets of Markdown links.
fn links(text: &str) -> Vec<&str> {
    let after = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    after.map(|link| link.split('#').next().unwrap_or_default()).filter(|link| is_relative(link)).collect()
}

fn is_relative(link: &str) -> bool {
    !link.is_empty() && !link.contains("://") && !link.contains(' ') && !link.starts_with("mailto:")
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = Repo::find().expect("cargo reads the manifests").root;
    let documents = documents(&root);
    assert!(documents.iter().any(|path| path.ends_with("README.md")), "git lists no documents");
    for document in documents {
        let text = fs::read_to_string(&document).expect("it was just listed");
        let folder = document.parent().expect("a file has a folder");
        for link in links(&text) {
            assert!(folder.join(link).exists(), "{}: `{link}` leads nowhere", document.display());
        }
    }
}

#[test]
fn the_files_that_the_architecture_points_at_exist() {
    let root = Repo::find().expect("cargo reads the manifests").root;
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("it is there");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _job, files] = cells.as_slice() else { return None };
        let folder = root.join("crates").join(name.trim_matches('`'));
        let folder = if *name == "`xtask`" { root.join("xtask") } else { folder };
        folder
            .is_dir()
            .then(|| (folder, files.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()))
    });
    let mut seen = 0;
    for (folder, files) in rows {
        for file in files {
            let there = folder.join("src").join(&file).exists() || folder.join(&file).exists();
            assert!(there, "ARCHITECTURE.md points at `{file}` of `{}`", folder.display());
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} files are named");
}
