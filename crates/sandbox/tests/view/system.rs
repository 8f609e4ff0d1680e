//! The system's own directories and `/etc`, on several distributions.

use sandbox::view::{Piece, ViewError};

use crate::fixture::Bench;

#[test]
fn a_merged_system_is_shown_with_its_links() {
    let bench = Bench::debian();
    let seen = bench.view();
    assert!(matches!(seen.piece("/usr"), Some(Piece::ReadOnly { .. })));
    assert!(matches!(seen.piece("/bin"), Some(Piece::Symlink { .. })));
    assert!(matches!(seen.piece("/opt"), Some(Piece::ReadOnly { .. })));
    assert!(seen.read("/bin/bash").is_some());
    assert_eq!(seen.piece("/root"), None);
    assert_eq!(seen.piece("/var/lib"), None);
}

#[test]
fn alpine_has_directories_where_others_have_links() {
    let bench = Bench::bare();
    for path in ["/bin/sh", "/sbin/apk", "/lib/ld-musl-x86_64.so.1", "/usr/bin/env"] {
        bench.program(path);
    }
    bench.file("/etc/ssl/certs/ca-certificates.crt", "x");
    bench.link("/etc/ssl/cert.pem", "certs/ca-certificates.crt");
    bench.file("/etc/ld-musl-x86_64.path", "/lib\n");
    let seen = bench.view();
    for path in ["/bin/sh", "/sbin/apk", "/lib/ld-musl-x86_64.so.1", "/usr/bin/env", "/etc/ssl/cert.pem"] {
        assert!(seen.read(path).is_some(), "{path}");
    }
    assert_eq!(seen.read("/etc/ld-musl-x86_64.path").unwrap(), "/lib\n");
    assert_eq!(seen.variable("SHELL"), Some("/bin/sh"));
}

#[test]
fn certificates_are_found_where_fedora_and_arch_keep_them() {
    let bench = Bench::debian();
    bench.file("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "x");
    bench.link("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
    bench.link("/etc/ssl/certs", "../pki/tls/certs");
    bench.file("/etc/pki/tls/private/host.key", "secret");
    bench.file("/etc/ca-certificates/extracted/tls.pem", "x");
    let seen = bench.view();
    assert!(seen.read("/etc/ssl/certs/ca-bundle.crt").is_some());
    assert!(seen.read("/etc/ca-certificates/extracted/tls.pem").is_some());
    assert_eq!(seen.read("/etc/pki/tls/private/host.key"), None);
}

#[test]
fn certificates_of_a_store_that_is_not_in_etc_are_found() {
    let bench = Bench::debian();
    bench.file("/nix/store/abc-cacert/ca-bundle.crt", "x");
    bench.link("/etc/static/certs", "/nix/store/abc-cacert");
    bench.link("/etc/ssl/certs", "/etc/static/certs");
    assert!(bench.view().read("/etc/ssl/certs/ca-bundle.crt").is_some());
}

#[test]
fn etc_is_small_and_belongs_to_the_caller() {
    let bench = Bench::debian();
    for name in [
        "passwd",
        "shadow",
        "ssh/ssh_host_key",
        "ssl/private/x.key",
        "sudoers",
        "fstab",
        "hosts",
        "machine-id",
    ] {
        bench.file(&format!("/etc/{name}"), "the host's own");
    }
    bench.file("/etc/ld.so.cache", "cache");
    bench.file("/etc/java-17-openjdk/security/java.security", "x");
    let seen = bench.view();
    for name in ["shadow", "ssh/ssh_host_key", "ssl/private/x.key", "sudoers"] {
        assert_eq!(seen.read(&format!("/etc/{name}")), None, "{name}");
    }
    for name in ["passwd", "hosts", "fstab", "machine-id", "resolv.conf", "nsswitch.conf"] {
        assert!(!seen.read(&format!("/etc/{name}")).unwrap().contains("the host's own"), "{name}");
    }
    let ids = bench.host.inside;
    let passwd = seen.read("/etc/passwd").unwrap();
    let name = if ids.uid == 0 { "root:x:0:0" } else { "ada" };
    assert!(passwd.contains(name) || passwd.contains("ada:x:0:"), "{passwd}");
    assert_eq!(passwd.lines().filter(|line| line.starts_with("ada:")).count(), 1, "{passwd}");
    assert!(seen.read("/etc/hosts").unwrap().contains("::1 localhost"));
    assert_eq!(seen.read("/etc/ld.so.cache").unwrap(), "cache");
    assert!(seen.read("/etc/java-17-openjdk/security/java.security").is_some());
}

#[test]
fn parents_come_before_children_and_no_place_is_named_twice() {
    let bench = Bench::debian();
    bench.file("/home/ada/.cargo/registry/x", "x");
    bench.file("/home/ada/.cargo/config.toml", "");
    bench.file("/home/ada/.cargo-x/y", "x");
    let pieces = bench.view().view.pieces;
    for (at, piece) in pieces.iter().enumerate() {
        for later in &pieces[at + 1..] {
            assert_ne!(piece.target(), later.target());
            assert!(!piece.target().starts_with(later.target()), "{:?} before {later:?}", piece.target());
        }
    }
    for piece in &pieces {
        let parent = piece.target().parent().unwrap();
        let has_parent = parent.parent().is_none() || pieces.iter().any(|it| parent.starts_with(it.target()));
        assert!(has_parent, "{piece:?}");
    }
}

#[test]
fn a_terminal_and_a_language_are_known() {
    let mut bench = Bench::debian().variable("TERM", "xterm-256color");
    assert_eq!(bench.view().variable("TERM"), None);
    assert_eq!(bench.view().variable("LANG"), Some("C.UTF-8"));
    bench.host.terminal = true;
    assert_eq!(bench.view().variable("TERM"), Some("xterm-256color"));
}

#[test]
fn an_unreadable_system_is_an_error() {
    let bench = Bench::bare();
    assert_eq!(bench.try_view().unwrap_err(), ViewError::NoSystem);
}

#[test]
fn nothing_is_written_into_what_is_read_only() {
    let bench = Bench::debian().variable("PIP_CONFIG_FILE", "/usr/share/pip.conf");
    bench.file("/usr/share/pip.conf", "[global]\nindex-url = https://ada:hunter2@index.example/\n");
    bench.file("/usr/share/zoneinfo/Etc/UTC", "x");
    bench.link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
    let seen = bench.view();
    assert!(matches!(seen.piece("/usr/share/pip.conf"), Some(Piece::Mask { .. })));
    assert_eq!(seen.read("/etc/localtime").as_deref(), Some("x"));
    for piece in &seen.view.pieces {
        let parent = seen.around(piece.target().parent().unwrap());
        let is_written =
            matches!(piece, Piece::Generated { .. } | Piece::Symlink { .. } | Piece::Directory { .. });
        assert!(!(is_written && matches!(parent, Some(Piece::ReadOnly { .. }))), "{piece:?} in {parent:?}");
    }
}
