//! Facts about the host that explain what it can and cannot hold.

use std::fs;
use std::path::Path;

use crate::output::shape::HostFact;
use crate::verbs::context::Context;

/// Returns facts about the host.
pub(super) fn facts(context: &Context<'_>) -> Vec<HostFact> {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let user = match rustix::process::geteuid().as_raw() {
        0 => "root".to_owned(),
        uid => format!("{} (ordinary user {uid})", context.user.name),
    };
    let mut facts = vec![
        fact("kernel", format!("{} {}", text(system.sysname()), text(system.release()))),
        fact("machine", text(system.machine())),
        fact("user", user),
        fact("user namespaces", user_namespaces(&read)),
        fact("control groups", control_groups(&read("/proc/self/mountinfo").unwrap_or_default())),
        fact(
            "seccomp",
            read("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_else(|| "not there".to_owned()),
        ),
        fact("security modules", read("/sys/kernel/security/lsm").unwrap_or_else(|| "not shown".to_owned())),
        fact("processors", std::thread::available_parallelism().map_or(1, usize::from).to_string()),
        fact("state directory", context.settings.state_dir.value.to_string_lossy().into_owned()),
    ];
    facts.extend(overlay(&context.cwd).map(|said| fact("this directory", said)));
    if let Some(memory) = memory(&read("/proc/meminfo").unwrap_or_default()) {
        facts.push(fact("memory", memory.to_string()));
    }
    facts
}

fn fact(name: &str, value: String) -> HostFact {
    HostFact { name: name.to_owned(), value }
}

/// Returns the text of a file without white space at its end.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

fn user_namespaces(read: &dyn Fn(&str) -> Option<String>) -> String {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text == value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        "switched off: set user.max_user_namespaces above 0 with sysctl".to_owned()
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "switched off for ordinary users: set kernel.unprivileged_userns_clone to 1 with sysctl".to_owned()
    } else if is(RESTRICTION, "1") {
        "restricted by AppArmor: ordinary users need a profile for this program".to_owned()
    } else if read("/proc/sys/user/max_user_namespaces").is_none() {
        "not built into this kernel, or /proc is masked".to_owned()
    } else {
        "allowed".to_owned()
    }
}

/// Says of a directory on an overlay, as everything is in most containers, what it is no good for.
fn overlay(directory: &Path) -> Option<String> {
    const OVERLAY: rustix::fs::FsWord = 0x794c_7630;
    let kind = rustix::fs::statfs(directory).ok()?.f_type;
    let said = "on an overlay, which shows no file under another owner: root can work here only on what another user owns";
    (kind == OVERLAY).then(|| said.to_owned())
}

/// Says which control groups are mounted.
fn control_groups(mounts: &str) -> String {
    let kinds: Vec<&str> =
        mounts.lines().filter_map(|line| line.split(" - ").nth(1)?.split(' ').next()).collect();
    match (kinds.contains(&"cgroup"), kinds.contains(&"cgroup2")) {
        (true, true) => "hybrid (version 1, and version 2 beside it)",
        (true, false) => "version 1",
        (false, true) => "version 2",
        (false, false) => "none mounted",
    }
    .to_owned()
}

fn memory(text: &str) -> Option<model::Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(model::Bytes::new(kib << 10))
}

/// Says 1 where AppArmor keeps ordinary users from user namespaces: Ubuntu 23.10 and later.
const RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Says what to install where AppArmor restricts user namespaces. Not run on a real host.
pub(super) fn advice() -> Option<String> {
    let restricted =
        read(RESTRICTION).is_some_and(|text| text == "1") && !rustix::process::geteuid().is_root();
    let program = fs::read_link("/proc/self/exe").ok().filter(|_| restricted)?;
    Some(format!(
        "To allow it, as root:\n\n    tee /etc/apparmor.d/fumehood <<'END'\n{}END\n    apparmor_parser -r /etc/apparmor.d/fumehood\n",
        profile(&program)
    ))
}

/// Returns an AppArmor profile that confines nothing and allows one program user namespaces. What the program starts
/// stays under it.
fn profile(program: &Path) -> String {
    let program = program.to_string_lossy();
    format!(
        "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile fumehood \"{program}\" flags=(unconfined) {{\n  userns,\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_switch_user_namespaces_off_is_named() {
        let host = |files: &[(&'static str, &'static str)]| {
            let files = files.to_vec();
            move |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
        };
        let max = "/proc/sys/user/max_user_namespaces";
        assert_eq!(user_namespaces(&host(&[(max, "9")])), "allowed");
        assert!(user_namespaces(&host(&[(max, "0")])).contains("user.max_user_namespaces"));
        let clone = ("/proc/sys/kernel/unprivileged_userns_clone", "0");
        assert!(user_namespaces(&host(&[(max, "9"), clone])).contains("unprivileged_userns_clone"));
        assert!(user_namespaces(&host(&[(max, "9"), (RESTRICTION, "1")])).contains("AppArmor"));
        assert!(user_namespaces(&host(&[])).contains("not built"));
    }

    #[test]
    fn control_groups_are_told_apart_by_what_is_mounted() {
        let line =
            |kind: &str| format!("30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - {kind} {kind} rw\n");
        assert_eq!(control_groups(&line("cgroup2")), "version 2");
        assert!(control_groups(&(line("cgroup2") + &line("cgroup"))).starts_with("hybrid"));
        assert_eq!(control_groups(&line("tmpfs")), "none mounted");
        assert_eq!(
            memory("MemTotal:       24642744 kB\nMemFree: 1 kB\n"),
            Some(model::Bytes::new(24_642_744 << 10))
        );
    }

    #[test]
    fn the_profile_names_this_program_and_allows_nothing_else() {
        let profile = profile(Path::new("/opt/my tools/fumehood"));
        assert!(
            profile
                .contains("profile fumehood \"/opt/my tools/fumehood\" flags=(unconfined) {\n  userns,\n}")
        );
    }
}
