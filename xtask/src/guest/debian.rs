//! Gets a kernel and, where the installed one is too old, an emulator from Debian, without installing either.
//!
//! Guarantees: packages come through apt, which checks their signatures; they are only unpacked, below the target
//! directory, and nothing of the host is changed. What is there already is not fetched again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{run, say};

/// The sandbox wants Landlock ABI 5.
const KERNEL_AT_LEAST: (u32, u32) = (6, 10);
/// Tried: 7.2 corrupts the flags register of a guest with Linux 6.12, which then dies at random places; 10.0 does not.
const EMULATOR_AT_LEAST: (u32, u32) = (10, 0);

/// A package that names the newest kernel for virtual machines by what it depends on.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The emulator, what it reads, and its BIOS.
const EMULATOR: [&str; 4] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"];

/// An unpacked kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) version: String,
    pub(super) image: PathBuf,
    /// The directory of its modules.
    pub(super) modules: PathBuf,
}

/// An emulator that can be started.
#[derive(Debug)]
pub(super) struct Emulator {
    pub(super) version: String,
    pub(super) program: PathBuf,
    /// Where its data is, when it is not the installed one.
    pub(super) data: Vec<PathBuf>,
}

/// Unpacks a kernel: from the package that is given, else from the newest one of this Debian that is new enough.
pub(super) fn kernel(place: &Path, given: Option<&Path>) -> Result<Kernel> {
    let into = match given {
        Some(package) => {
            let name = package.file_stem().context("the kernel's package has no name")?;
            let into = place.join(name);
            unpack_once(&into, |_| Ok(vec![package.to_owned()]))?;
            into
        }
        None => {
            let into = place.join("kernel");
            unpack_once(&into, |scratch| {
                let source = Source::of(place, KERNEL, KERNEL_AT_LEAST)?;
                let image = source.kernel_behind(KERNEL)?;
                source.download(scratch, &[&image])
            })
            .context("name a kernel with `cargo xtask guest --kernel FILE.deb`, or")?;
            into
        }
    };
    let image = only_entry(&into.join("boot"), "vmlinuz-")?;
    let version = image.file_name().unwrap_or_default().to_string_lossy().replace("vmlinuz-", "");
    let modules = ["usr/lib/modules", "lib/modules"].map(|modules| into.join(modules).join(&version));
    let modules = modules.into_iter().find(|modules| modules.is_dir());
    Ok(Kernel { modules: modules.context("the kernel's package has no modules")?, version, image })
}

/// Finds an emulator that is new enough: the installed one, else that of Debian's backports.
pub(super) fn emulator(place: &Path) -> Result<Emulator> {
    let installed = run::system_program("qemu-system-x86_64").context("there is no QEMU")?;
    let version = version_of(&installed)?;
    if is_new_enough(&version, EMULATOR_AT_LEAST) {
        return Ok(Emulator { version: format!("QEMU {version}"), program: installed, data: Vec::new() });
    }
    let into = place.join("qemu");
    unpack_once(&into, |scratch| {
        Source::of(place, EMULATOR[0], EMULATOR_AT_LEAST)?.download(scratch, &EMULATOR)
    })
    .with_context(|| {
        format!(
            "the installed QEMU {version} emulates wrongly, {}.{} is needed; where there are backports: \
             `sudo apt-get install -t CODENAME-backports qemu-system-x86`, or",
            EMULATOR_AT_LEAST.0, EMULATOR_AT_LEAST.1
        )
    })?;
    let program = into.join("usr/bin/qemu-system-x86_64");
    let version = version_of(&program)?;
    let data = ["usr/share/qemu", "usr/share/seabios"].map(|data| into.join(data)).to_vec();
    Ok(Emulator { version: format!("QEMU {version}"), program, data })
}

fn version_of(emulator: &Path) -> Result<String> {
    let said = run::output("ask QEMU for its version", run::command(emulator).arg("--version"))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.split_whitespace().skip_while(|word| *word != "version").nth(1);
    Ok(version.context("QEMU does not say its version")?.to_owned())
}

/// Tells whether a version as Debian writes it (`1:10.0.2+ds-2`) is at least this one.
fn is_new_enough(version: &str, (major, minor): (u32, u32)) -> bool {
    let upstream = version.rsplit(':').next().unwrap_or_default();
    let mut numbers = upstream.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let found: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found >= (major, minor)
}

/// Fills a directory with unpacked packages, or leaves it as it is when it was filled before.
fn unpack_once(into: &Path, packages: impl FnOnce(&Path) -> Result<Vec<PathBuf>>) -> Result<()> {
    if into.is_dir() {
        return Ok(());
    }
    let half = into.with_extension("half");
    let scratch = into.with_extension("packages");
    for directory in [&half, &scratch] {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory).with_context(|| format!("cannot make `{}`", directory.display()))?;
    }
    for package in packages(&scratch)? {
        run::output("unpack a package", run::command("dpkg-deb").arg("-x").arg(&package).arg(&half))?;
    }
    fs::remove_dir_all(&scratch)?;
    fs::rename(&half, into).with_context(|| format!("cannot name `{}`", into.display()))
}

fn only_entry(directory: &Path, prefix: &str) -> Result<PathBuf> {
    let found = fs::read_dir(directory).with_context(|| format!("cannot list `{}`", directory.display()))?;
    let found = found.flatten().find(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    Ok(found.with_context(|| format!("there is no `{prefix}…` in `{}`", directory.display()))?.path())
}

/// Where packages are looked for: the sources of this machine, or the backports of its Debian.
struct Source {
    options: Vec<String>,
}

impl Source {
    /// Chooses the one that has a package new enough.
    fn of(place: &Path, package: &str, at_least: (u32, u32)) -> Result<Self> {
        let own = Self { options: Vec::new() };
        if own.newest(package).is_ok_and(|version| is_new_enough(&version, at_least)) {
            return Ok(own);
        }
        let backports = Self::backports(place)?;
        let version = backports.newest(package)?;
        if !is_new_enough(&version, at_least) {
            bail!("`{package}` is {version} in the backports, and {}.{} is needed", at_least.0, at_least.1);
        }
        Ok(backports)
    }

    /// Reads the backports of this Debian, with lists of their own.
    fn backports(place: &Path) -> Result<Self> {
        let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
        let value = |name: &str| {
            let line = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim_matches('"').to_owned()
        };
        let (system, codename) = (value("ID"), value("VERSION_CODENAME"));
        if system != "debian" || codename.is_empty() {
            bail!("the packages of this system are too old, and it is no Debian whose backports are known");
        }
        let apt = place.join("apt");
        for directory in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(directory))?;
        }
        let list = apt.join("backports.list");
        let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let signed = if Path::new(key).is_file() { format!("[signed-by={key}] ") } else { String::new() };
        fs::write(&list, format!("deb {signed}{} {codename}-backports main\n", mirror(&codename)?))?;
        let source = Self {
            options: [
                format!("Dir::Etc::SourceList={}", list.display()),
                "Dir::Etc::SourceParts=/dev/null".to_owned(),
                format!("Dir::State::Lists={}", apt.join("lists").display()),
                format!("Dir::Cache={}", apt.join("cache").display()),
            ]
            .to_vec(),
        };
        run::output("read the list of backports", source.apt("apt-get").args(["-qq", "update"]))?;
        Ok(source)
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = run::command(program);
        // The directories are those of whoever builds, which the account `_apt` may not be able to reach.
        apt.args(["-o", "APT::Sandbox::User=root"]);
        self.options.iter().for_each(|option| {
            apt.args(["-o", option]);
        });
        apt
    }

    /// Returns one field of the newest package of a name.
    fn field(&self, package: &str, field: &str) -> Result<String> {
        let mut show = self.apt("apt-cache");
        let shown = run::output("look a package up", show.args(["show", "--no-all-versions"]).arg(package))?;
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let line = shown.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        Ok(line.with_context(|| format!("`{package}` says no {field}"))?.to_owned())
    }

    fn newest(&self, package: &str) -> Result<String> {
        self.field(package, "Version")
    }

    /// Returns the package that holds the kernel which another one depends on.
    fn kernel_behind(&self, package: &str) -> Result<String> {
        let depends = self.field(package, "Depends")?;
        let mut words = depends.split([' ', ',']);
        let image = words.find(|word| word.starts_with("linux-image-"));
        Ok(image.with_context(|| format!("`{package}` depends on no kernel"))?.to_owned())
    }

    fn download(&self, into: &Path, packages: &[&str]) -> Result<Vec<PathBuf>> {
        say::note(&format!("downloading {} (unpacked below the target directory only)", packages.join(", ")));
        let mut download = self.apt("apt-get");
        run::output(
            "download packages",
            download.args(["-qq", "download"]).args(packages).current_dir(into),
        )?;
        let files: Vec<PathBuf> = fs::read_dir(into)?.flatten().map(|entry| entry.path()).collect();
        if files.len() == packages.len() { Ok(files) } else { bail!("apt did not download {packages:?}") }
    }
}

/// Returns where this machine gets Debian from.
fn mirror(codename: &str) -> Result<String> {
    let mut targets = run::command("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let listed = run::output("ask apt for its sources", targets.arg(format!("Codename: {codename}")))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    Ok(listed.lines().next().context("apt has no source of this Debian")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_debian_writes_them() {
        for new in ["6.12.95-1~bpo12+1", "1:10.0.2+ds-2+deb13u1~bpo12+1", "6.10", "7.0~rc1"] {
            assert!(is_new_enough(new, (6, 10)), "{new}");
        }
        for old in ["6.1.172-1", "1:5.19+dfsg-7", "", "x", "6.9.99"] {
            assert!(!is_new_enough(old, (6, 10)), "{old}");
        }
    }

    #[test]
    fn a_directory_is_filled_whole_or_not_at_all() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let into = scratch.path().join("kernel");
        unpack_once(&into, |_| bail!("no network")).expect_err("nothing was fetched");
        assert!(!into.exists());
        unpack_once(&into, |_| Ok(Vec::new())).expect("there is nothing to unpack");
        unpack_once(&into, |_| bail!("is not asked again")).expect("it is there");
    }
}
