//! The caller's PATH: which of its directories are shown, and what the links in them need.
//!
//! A directory that somebody put on PATH holds programs, but nobody promised that it holds nothing else. So files in
//! it that cannot be executed, hidden directories, names of credentials and scripts with secrets in them are masked.

use std::path::{Path, PathBuf};

use super::assembly::{Assembly, Manner, Shown};
use super::credentials::script_holds_secret;
use super::data::{PREFIXES, rows};
use super::files::What;

/// PATH when the caller has none, or nothing of it is shown.
const DEFAULT: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Links from PATH that lead elsewhere are followed up to this number; each costs a mount.
const MAX_LINKED: usize = 64;

/// Scripts up to this size are searched for secrets. Larger ones are programs with data in them.
const SCRIPT_MAX: u64 = 64 * 1024;

/// Shows the directories of PATH, and returns those that are there inside, in order.
pub(crate) fn show_path(assembly: &mut Assembly<'_>) -> Vec<PathBuf> {
    let value = assembly.host.environment.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_default();
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut linked = 0;
    for directory in std::env::split_paths(&value) {
        if !kept.contains(&directory) && show_directory(assembly, &directory, &mut linked) {
            kept.push(directory);
        }
    }
    if kept.is_empty() { DEFAULT.map(PathBuf::from).to_vec() } else { kept }
}

fn show_directory(assembly: &mut Assembly<'_>, directory: &Path, linked: &mut usize) -> bool {
    if !directory.is_absolute() {
        assembly.hide(
            directory,
            "PATH names it without its full path, so it would be another place in each directory",
        );
        return false;
    }
    let walk = assembly.files.walk(directory);
    if walk.stopped {
        assembly.add_links(&walk);
        return true;
    }
    if !walk.is_directory() {
        return false;
    }
    if assembly.is_seen(&walk.real) {
        assembly.add_links(&walk);
        return true;
    }
    let whole = installation(assembly, &walk.real).map(|prefix| assembly.show(&prefix, Manner::ReadOnly));
    if matches!(whole, Some(Shown::At(_))) {
        assembly.add_links(&walk);
        return true;
    }
    let Shown::At(real) = assembly.show(directory, Manner::ReadOnly) else { return false };
    look_through(assembly, &real, linked);
    true
}

/// Returns the installation that a `bin` directory belongs to, when its programs need what stands beside it.
fn installation(assembly: &Assembly<'_>, bin: &Path) -> Option<PathBuf> {
    let prefix = bin.parent().filter(|_| bin.file_name().is_some_and(|name| name == "bin"))?;
    // ~/.local and places like it look like an installation when one package was put there, and hold much else.
    if prefix.parent().is_none() || prefix == assembly.home || prefix == assembly.home.join(".local") {
        return None;
    }
    let stands = |pattern: &str| {
        let found = assembly.files.matching(&prefix.join(pattern));
        found.iter().any(|path| assembly.files.node(path).is_some())
    };
    rows::<2>(PREFIXES).any(|[pattern, _]| stands(pattern)).then(|| prefix.to_owned())
}

fn look_through(assembly: &mut Assembly<'_>, directory: &Path, linked: &mut usize) {
    for name in assembly.files.names(directory).iter() {
        let path = directory.join(name);
        let Some(node) = assembly.files.node(&path) else { continue };
        if let Some(why) = assembly.credentials.name_of(name, node.what == What::Directory) {
            assembly.mask(&path, why);
            continue;
        }
        match node.what {
            What::Directory if name.as_encoded_bytes().starts_with(b".") => {
                assembly.mask(&path, "a hidden directory holds no programs");
            }
            What::Directory => {}
            What::File => look_at_file(assembly, &path, node.mode),
            What::Link(_) => follow(assembly, &path, linked),
            What::Other => assembly.mask(&path, "it is no program"),
        }
    }
}

fn look_at_file(assembly: &mut Assembly<'_>, path: &Path, mode: u32) {
    if mode & 0o111 == 0 && !is_library(path) {
        assembly.mask(path, "it stands among programs and cannot be executed");
    } else if is_secret_script(assembly, path) {
        assembly.mask(path, "it is a script with something that looks like a secret");
    }
}

/// Tells whether a file is a library that programs beside it load.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.") || name.ends_with(".jar") || name.ends_with(".dll")
}

fn is_secret_script(assembly: &Assembly<'_>, path: &Path) -> bool {
    let script = assembly.files.read(path, SCRIPT_MAX).and_then(|file| String::from_utf8(file).ok());
    script.is_some_and(|text| script_holds_secret(&text))
}

/// Shows the program that a link on PATH leads to, when it is not shown already.
fn follow(assembly: &mut Assembly<'_>, link: &Path, linked: &mut usize) {
    let walk = assembly.files.walk(link);
    let Some(end) = walk.end.as_ref().filter(|_| walk.is_file()) else { return };
    if assembly.is_seen(&walk.real) {
        assembly.add_links(&walk);
        return;
    }
    if end.mode & 0o111 == 0 || is_secret_script(assembly, &walk.real) {
        assembly.hide(link, "it leads to a file that is no program, or a script with a secret");
        return;
    }
    if *linked == MAX_LINKED {
        assembly.hide(link, "too many links on PATH lead elsewhere: put the directory they lead to on PATH");
        return;
    }
    let around =
        walk.real.parent().and_then(|bin| installation(assembly, bin)).or_else(|| package(&walk.real));
    let shown = match around {
        Some(around) => assembly.show(&around, Manner::ReadOnly),
        None => assembly.show(link, Manner::ReadOnly),
    };
    if matches!(shown, Shown::At(_)) {
        assembly.add_links(&walk);
        *linked += 1;
    }
}

/// Returns the package of Node.js that a file belongs to: the program needs the modules beside it.
fn package(file: &Path) -> Option<PathBuf> {
    let mut parts = file.iter();
    let mut package: PathBuf = parts.by_ref().take_while(|part| *part != "node_modules").collect();
    let name = parts.next()?;
    package.extend(["node_modules".as_ref(), name]);
    if name.as_encoded_bytes().starts_with(b"@") {
        package.push(parts.next()?);
    }
    // What is left names the file in the package.
    parts.next().map(|_| package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_beside_programs_are_told_from_other_files() {
        for name in ["libx.so", "libx.so.1", "tool.jar"] {
            assert!(is_library(Path::new(name)), "{name}");
        }
        assert!(!is_library(Path::new("notes.txt")));
    }

    #[test]
    fn a_program_of_node_belongs_to_its_package() {
        let of = |file: &str| package(Path::new(file)).map(|package| package.to_string_lossy().into_owned());
        assert_eq!(of("/h/lib/node_modules/pnpm/bin/x.cjs").as_deref(), Some("/h/lib/node_modules/pnpm"));
        assert_eq!(of("/h/node_modules/@a/b/node_modules/c/x").as_deref(), Some("/h/node_modules/@a/b"));
        for file in ["/h/node_modules/x.js", "/h/node_modules", "/h/bin/x", "/h/node_modules/@a/b"] {
            assert_eq!(of(file), None, "{file}");
        }
    }
}
