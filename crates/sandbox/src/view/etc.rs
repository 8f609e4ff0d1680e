//! The part of `/etc` that is written, so that the command knows its own name and nobody else's.

use std::path::Path;

use super::assembly::Assembly;
use super::clean::Format;
use super::data::{ETC, rows};
use super::host::Host;
use super::piece::Piece;
use super::tools::copy;

/// The name of the host inside.
pub const HOSTNAME: &str = "fumehood";

/// The id that stands for everyone who is not mapped.
const NOBODY: u32 = 65534;

/// Adds `/etc`: what is generated, and what the table shows of the host's.
pub(crate) fn add_etc(assembly: &mut Assembly<'_>, home: &Path, shell: &str) {
    if !assembly.host.offline && !assembly.host.gateway {
        assembly.show_settings(Path::new("/etc/resolv.conf"));
    }
    for (name, contents) in generated(assembly.host, home, shell) {
        let target = Path::new("/etc").join(name);
        assembly.insert(Piece::Generated { target, contents: contents.into_bytes(), mode: 0o644 });
    }
    let mounts = Piece::Symlink { target: "/etc/mtab".into(), points_to: "../proc/self/mounts".into() };
    assembly.insert(mounts);
    for [pattern, how, _] in rows::<3>(ETC) {
        for path in assembly.files.matching(Path::new(pattern)) {
            match how.strip_prefix("cleaned ").and_then(Format::named) {
                Some(format) => add_cleaned(assembly, &path, format),
                None => assembly.show_settings(&path),
            }
        }
    }
}

fn add_cleaned(assembly: &mut Assembly<'_>, path: &Path, format: Format) {
    copy(assembly, path, |file| {
        let cleaned =
            format.clean(file).ok_or("it cannot be read for certain, so secrets in it could be missed")?;
        let reason = cleaned.reason();
        Ok((cleaned.text.into_bytes(), reason))
    });
}

fn generated(host: &Host, home: &Path, shell: &str) -> [(&'static str, String); 8] {
    [
        ("passwd", passwd(host, home, shell)),
        ("group", group(host)),
        ("hosts", hosts()),
        ("hostname", format!("{HOSTNAME}\n")),
        ("nsswitch.conf", nsswitch(host)),
        ("resolv.conf", resolver(host)),
        // The host's own would name this machine to whoever asks. Programs that want one get one that says nothing.
        ("machine-id", "66756d65686f6f642073616e64626f78\n".to_owned()),
        ("fstab", "# Nothing is mounted by hand in a sandbox.\n".to_owned()),
    ]
}

fn resolver(host: &Host) -> String {
    if host.gateway {
        // It answers at once, and its no is final: asking again would only wait. With EDNS the reason comes along.
        return "nameserver 127.0.0.1\noptions timeout:2 attempts:1 edns0\n".to_owned();
    }
    // Without an address the C library asks its own loopback, where nothing answers; one try is enough.
    "# There is no name server in a sandbox.\noptions timeout:1 attempts:1\n".to_owned()
}

fn nsswitch(host: &Host) -> String {
    // Any other source than files would ask a daemon or the network, and wait for an answer.
    let mut lines = String::new();
    for database in ["passwd", "group", "shadow", "networks", "protocols", "services", "ethers", "rpc"] {
        lines.push_str(&format!("{database}: files\n"));
    }
    lines.push_str(if host.offline { "hosts: files\n" } else { "hosts: files dns\n" });
    lines
}

fn passwd(host: &Host, home: &Path, shell: &str) -> String {
    let mut lines = String::new();
    if host.inside.uid != 0 {
        lines.push_str("root:x:0:0:root:/root:/usr/sbin/nologin\n");
    }
    let home = home.to_string_lossy().replace([':', '\n'], "_");
    let name = user_name(host);
    lines.push_str(&format!("{name}:x:{}:{}::{home}:{shell}\n", host.inside.uid, host.inside.gid));
    if host.inside.uid != NOBODY && name != "nobody" {
        lines.push_str("nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    }
    lines
}

fn group(host: &Host) -> String {
    let mut lines = String::new();
    let name = user_name(host);
    if host.inside.gid != 0 {
        lines.push_str("root:x:0:\n");
    }
    lines.push_str(&format!("{name}:x:{}:\n", host.inside.gid));
    if host.inside.gid != NOBODY {
        lines.push_str("nogroup:x:65534:\n");
    }
    lines
}

/// Returns the user's name inside. Only id 0 is called root: programs and people draw conclusions from that name.
pub(crate) fn user_name(host: &Host) -> String {
    let name = plain_name(&host.user);
    if name == "root" && host.inside.uid != 0 { "user".to_owned() } else { name }
}

/// Returns a name that cannot break a line of the user database.
fn plain_name(name: &str) -> String {
    let plain: String = name.chars().filter(|c| !c.is_control() && !matches!(c, ':' | '/' | ' ')).collect();
    if plain.is_empty() { "user".to_owned() } else { plain }
}

fn hosts() -> String {
    format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {HOSTNAME}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_for_where_the_gateway_answers() {
        let root = tempfile::tempdir().expect("a directory");
        let mut host = Host::fixture(root.path());
        assert!(!resolver(&host).contains("nameserver") && nsswitch(&host).ends_with("hosts: files\n"));
        (host.offline, host.gateway) = (false, true);
        assert!(resolver(&host).starts_with("nameserver 127.0.0.1\n"));
        assert!(nsswitch(&host).ends_with("hosts: files dns\n"));
    }

    #[test]
    fn a_name_cannot_break_the_user_database() {
        assert_eq!(plain_name("ada"), "ada");
        assert_eq!(plain_name("a:0:0\nroot::0:0"), "a00root00");
        assert_eq!(plain_name("\n"), "user");
    }
}
