//! Lets what this repository builds make user namespaces, on hosts where AppArmor keeps ordinary users from it
//! (Ubuntu 23.10 and later). Not run on a real host: the machine that tests this has no AppArmor.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::account::is_root;
use crate::repo::Repo;
use crate::{run, say, setup};

/// Says 1 where the restriction is on.
const SWITCH: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Where the profile of a build goes.
const PROFILE: &str = "/etc/apparmor.d/fumehood-build";

/// Installs a profile for the target directory where one is needed.
///
/// # Errors
/// When one is needed and cannot be installed from here; the error has the profile and the commands to type.
pub fn ensure(repo: &Repo) -> Result<()> {
    if is_root() || !is_restricted(Path::new(SWITCH)) {
        return Ok(());
    }
    let profile = profile(&repo.target);
    if fs::read_to_string(PROFILE).is_ok_and(|installed| installed == profile) {
        return Ok(());
    }
    say::step("install an AppArmor profile for what is built here");
    install(&profile).with_context(|| {
        format!("type this and try again:\n\n    sudo tee {PROFILE} <<'END'\n{profile}END\n    sudo apparmor_parser -r {PROFILE}\n")
    })
}

fn is_restricted(switch: &Path) -> bool {
    fs::read_to_string(switch).is_ok_and(|value| value.trim() == "1")
}

/// Returns a profile that confines nothing and allows user namespaces, for programs below `target`.
fn profile(target: &Path) -> String {
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile fumehood-build \"{}/**\" flags=(unconfined) {{\n  userns,\n}}\n",
        target.display()
    )
}

fn install(profile: &str) -> Result<()> {
    let Some(mut as_root) = setup::root_prefix() else { bail!("this needs root") };
    let mut tee = as_root();
    let mut child = tee.args(["tee", PROFILE]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("it takes no input")?.write_all(profile.as_bytes())?;
    if !child.wait()?.success() {
        bail!("cannot write `{PROFILE}`");
    }
    run::output("load the profile", as_root().args(["apparmor_parser", "-r", PROFILE])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_restriction_is_seen_where_it_is_on() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let switch = scratch.path().join("switch");
        assert!(!is_restricted(&switch));
        fs::write(&switch, "0\n").expect("it is ours");
        assert!(!is_restricted(&switch));
        fs::write(&switch, "1\n").expect("it is ours");
        assert!(is_restricted(&switch));
    }

    #[test]
    fn the_profile_names_the_target_directory_and_nothing_else() {
        let profile = profile(Path::new("/home/me/my work/target"));
        assert!(
            profile.contains("profile fumehood-build \"/home/me/my work/target/**\" flags=(unconfined)"),
            "{profile}"
        );
        assert!(profile.contains("  userns,\n"), "{profile}");
    }
}
