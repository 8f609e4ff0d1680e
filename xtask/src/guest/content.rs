//! What is in the guest: busybox, the test programs at the paths that they have here, their libraries, and the modules
//! of the kernel that a sandbox needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Program;
use super::archive::Archive;
use super::debian::Kernel;
use super::scenario::Scenario;
use crate::repo::Repo;
use crate::run;

/// Modules of the kernel, in the order in which they are loaded; a kernel may have them built in.
const MODULES: [&str; 1] = ["kernel/fs/overlayfs/overlay.ko"];

const DIRECTORIES: [&str; 10] =
    ["dev", "proc", "sys", "tmp", "new", "root", "var/tmp", "usr/bin", "usr/lib", "usr/lib64"];
/// As on every Debian of today.
const LINKS: [(&str, &str); 4] =
    [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];
const PASSWD: &str = "root:x:0:0:root:/root:/usr/bin/sh\nuser:x:1000:1000:user:/tmp:/usr/bin/sh\n";
const GROUP: &str = "root:x:0:\nuser:x:1000:\n";

/// Makes the archive.
pub(super) fn archive(
    repo: &Repo,
    programs: &[Program],
    scenarios: &[&Scenario],
    kernel: &Kernel,
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    DIRECTORIES.iter().for_each(|path| archive.directory(path));
    LINKS.iter().for_each(|(path, target)| archive.link(path, target));
    // The kernel opens it for the first program before anything is mounted.
    archive.device("dev/console", (5, 1));
    archive.file("init", 0o755, include_bytes!("init.sh"));
    archive.file("main", 0o755, include_bytes!("main.sh"));
    archive.file(
        "scenarios",
        0o644,
        scenarios.iter().map(|scenario| scenario.line()).collect::<String>().as_bytes(),
    );
    archive.file("programs", 0o644, lines(programs).as_bytes());
    archive.file("etc/passwd", 0o644, PASSWD.as_bytes());
    archive.file("etc/group", 0o644, GROUP.as_bytes());
    let busybox = run::system_program("busybox").context("there is no busybox")?;
    let mut executables = vec![repo.tested_fumehood()];
    executables.extend(programs.iter().map(|program| program.binary.executable.clone()));
    let libraries = libraries(executables.iter().chain([&busybox]))?;
    archive.file("usr/bin/busybox", 0o755, &read(&busybox)?);
    for file in executables.iter().chain(&libraries) {
        archive.file(&inside(file)?, 0o755, &read(file)?);
    }
    for module in MODULES {
        if let Some(file) = ["", ".xz"]
            .map(|end| kernel.modules.join(format!("{module}{end}")))
            .into_iter()
            .find(|file| file.is_file())
        {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archive.file(&format!("modules/{name}"), 0o644, &read(&file)?);
        }
    }
    Ok(archive.finish())
}

fn lines(programs: &[Program]) -> String {
    let line = |program: &Program| format!("{} {}\n", program.binary.executable.display(), program.filter);
    programs.iter().map(line).collect()
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))
}

/// Returns the path that a file has inside, where `/lib` is a link.
fn inside(file: &Path) -> Result<String> {
    let path = file.to_str().with_context(|| format!("`{}` is no text", file.display()))?;
    if path.contains([' ', '\'', '\n']) {
        bail!("the guest's script cannot name `{path}`: move the target directory");
    }
    let is_linked = LINKS.iter().any(|(link, _)| path.starts_with(&format!("/{link}/")));
    Ok(if is_linked { format!("/usr{path}") } else { path.to_owned() })
}

/// Returns the shared libraries of some programs, with the loader.
fn libraries<'p>(programs: impl Iterator<Item = &'p PathBuf>) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for program in programs {
        // It ends with 1 for a program without any.
        let listed = run::command("ldd").arg(program).output().context("cannot start `ldd`")?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        if let Some(missing) = listed.lines().find(|line| line.contains("not found")) {
            bail!("a library of `{}` is missing here: {missing}", program.display());
        }
        found.extend(paths(&listed));
    }
    Ok(found)
}

/// Reads `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn paths(listed: &str) -> impl Iterator<Item = PathBuf> {
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    listed.lines().filter_map(path).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_read_from_what_ldd_prints() {
        let listed = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x3)\n\tstatically linked\n";
        let found: Vec<PathBuf> = paths(listed).collect();
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_lies_behind_a_link_is_put_where_the_link_leads() {
        let at = |path: &str| inside(Path::new(path)).expect("a plain path");
        assert_eq!(at("/lib/x86_64-linux-gnu/libc.so.6"), "/usr/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(at("/usr/lib/libm.so.6"), "/usr/lib/libm.so.6");
        assert_eq!(at("/library/target/debug/x"), "/library/target/debug/x");
        inside(Path::new("/a b/x")).expect_err("the script could not name it");
    }
}
