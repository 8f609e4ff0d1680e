use std::ffi::OsString;

use super::super::parse::{Parsed, parse};
use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

fn mapped_in(arguments: &[OsString], cwd: &str) -> Result<Mapped, Refusal> {
    let parsed = parse(arguments, &|_| Ok(Vec::new())).expect("is right");
    let Parsed::Request(request) = parsed else { panic!("{parsed:?}") };
    // On this host `/bin` and `/link` are links, and nothing is missing but `/missing`.
    let resolve = |path: &Path| {
        let led = |from, to: &str| path.strip_prefix(from).ok().map(|rest: &Path| Path::new(to).join(rest));
        let led = led("/bin", "/usr/bin").or_else(|| led("/link", "/src"));
        (!path.starts_with("/missing")).then(|| led.unwrap_or_else(|| path.to_owned()))
    };
    let home = Some(PathBuf::from("/home/ada"));
    map(&request, &Caller { cwd: cwd.into(), home, uid: 1000, gid: 1000, resolve: &resolve })
}

fn mapped(line: &str) -> Result<Mapped, Refusal> {
    mapped_in(&words(line), "/src/project/sub")
}

/// The arguments of mini-swe-agent 2.4.6, as its bubblewrap environment puts them together.
fn mini_swe_agent(cwd: &str, command: &str) -> Vec<OsString> {
    let mut arguments = words(
        "--unshare-user-try --ro-bind /usr /usr --ro-bind /bin /bin --ro-bind /lib /lib --ro-bind /lib64 /lib64 \
         --ro-bind /etc /etc --tmpfs /tmp --proc /proc --dev /dev --new-session --setenv PATH \
         /usr/local/bin:/usr/sbin:/usr/bin:/bin",
    );
    arguments.retain(|word| !word.is_empty());
    arguments.extend(words(&format!("--bind {cwd} {cwd} --chdir {cwd} --setenv PAGER cat")));
    arguments.extend(["bash".into(), "-c".into(), command.into()]);
    arguments
}

/// The arguments of DeepSeek Harness 0.2.1, in its two modes.
fn deepseek_harness(workspace: Option<&str>, command: &str) -> Vec<OsString> {
    let mut arguments = words("--ro-bind / / --dev /dev --unshare-pid --proc /proc --die-with-parent");
    if let Some(workspace) = workspace {
        arguments.extend(words(&format!("--tmpfs /tmp --bind {workspace} {workspace}")));
    }
    arguments.extend(["--".into(), "bash".into(), "-c".into(), command.into()]);
    arguments
}

#[test]
fn mini_swe_agent_gets_its_directory_and_no_network() {
    let mapped =
        mapped_in(&mini_swe_agent("/tmp/minisweagent-1a2b3c4d", "ls -la"), "/src").expect("is honoured");
    assert_eq!(mapped.workspace, Workspace::Exactly("/tmp/minisweagent-1a2b3c4d".into()));
    assert!(!mapped.read_only);
    assert_eq!(mapped.directory, Path::new("/tmp/minisweagent-1a2b3c4d"));
    assert_eq!(mapped.argv, words("bash -c").into_iter().chain(["ls -la".into()]).collect::<Vec<_>>());
    let path = OsString::from("/usr/local/bin:/usr/sbin:/usr/bin:/bin");
    assert_eq!(mapped.environment, [("PAGER".to_owned(), "cat".into()), ("PATH".to_owned(), path)]);
    assert_eq!(mapped.narrowed, ["environment (only what --setenv gives)", "network (own loopback only)"]);
}

#[test]
fn deepseek_harness_gets_its_workspace_and_no_host() {
    let mapped =
        mapped_in(&deepseek_harness(Some("/src/project"), "make"), "/src/project/sub").expect("is honoured");
    assert_eq!(mapped.workspace, Workspace::Exactly("/src/project".into()));
    assert!(!mapped.read_only);
    assert_eq!(mapped.directory, Path::new("/src/project/sub"));
    assert_eq!(
        mapped.narrowed,
        [
            "/ (system directories and the workspace only)",
            "environment (only what --setenv gives)",
            "network (own loopback only)"
        ]
    );
}

#[test]
fn deepseek_harness_reads_where_it_may_not_write() {
    let mapped = mapped_in(&deepseek_harness(None, "ls"), "/src/project/sub").expect("is honoured");
    assert_eq!(mapped.workspace, Workspace::Around("/src/project/sub".into()));
    assert!(mapped.read_only);
    assert_eq!(mapped.directory, Path::new("/src/project/sub"));
}

#[test]
fn the_whole_host_to_write_becomes_the_workspace_to_write() {
    let mapped = mapped("--bind / / --unshare-net --clearenv true").expect("is narrowed");
    assert_eq!((mapped.workspace, mapped.read_only), (Workspace::Around("/src/project/sub".into()), false));
    assert_eq!(mapped.narrowed, ["/ (system directories and the workspace only)"]);
}

#[test]
fn a_request_within_policy_is_not_narrowed() {
    let line = "--unshare-all --clearenv --ro-bind /usr /usr --ro-bind /usr/bin /bin --tmpfs /tmp --proc /proc \
                --dev /dev --dir /run/x --symlink usr/lib /lib --ro-bind-try /missing /missing --uid 1000 --gid 1000 \
                --cap-drop ALL --die-with-parent --new-session --bind /src/project /src/project make";
    let arguments: Vec<_> = words(line).into_iter().filter(|word| !word.is_empty()).collect();
    let mapped = mapped_in(&arguments, "/").expect("is honoured");
    assert_eq!(mapped.narrowed, Vec::<String>::new());
    assert_eq!(mapped.directory, Path::new("/src/project"));
}

#[test]
fn what_is_wider_is_narrowed_and_said() {
    for (more, said) in [
        ("--ro-bind /srv/data /srv/data", "/srv/data (not shown)"),
        ("--bind /etc /etc", "/etc (cannot be written)"),
        ("--ro-bind /home/ada /home/ada", "/home/ada (a private one)"),
        ("--bind /tmp /tmp", "/tmp (a private one)"),
        ("--dev-bind /dev/kvm /dev/kvm", "/dev/kvm (no device files but the harmless ones)"),
        ("--hostname box", "host name (the sandbox's own)"),
        ("--cap-add ALL", "capabilities (none)"),
        ("--share-net", "network (own loopback only)"),
    ] {
        let mapped = mapped(&format!("--unshare-all --bind /src/project /src/project {more} true"))
            .expect("is narrowed");
        assert!(mapped.narrowed.iter().any(|narrowed| narrowed == said), "{more}: {:?}", mapped.narrowed);
        assert_eq!(mapped.workspace, Workspace::Exactly("/src/project".into()), "{more}");
    }
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    for (line, part) in [
        ("--bind /src/project /workspace true", "cannot stand at"),
        ("--bind /link/project /link/project true", "cannot stand at `/link/project`"),
        (
            "--bind /src/project /src/project --ro-bind /link/project/.git /link/project/.git true",
            "given as a whole",
        ),
        ("--bind /missing /missing true", "does not exist"),
        (
            "--bind /src/project /src/project --ro-bind /src/project/.git /src/project/.git true",
            "given as a whole",
        ),
        ("--bind /src/project /src/project --tmpfs /src/project/target true", "given as a whole"),
        ("--bind /a /a --bind /b /b true", "one workspace"),
        ("--ro-bind /usr /usr true", "no directory to work in"),
        ("--bind /src/project /src/project --chdir / true", "outside the workspace"),
        ("--bind /src/project /src/project --uid 0 true", "cannot run as user 0"),
        ("--bind /src/project /src/project --proc /p true", "the sandbox has its own"),
        ("--bind /src/project /src/project --tmpfs /etc true", "the sandbox has its own"),
        ("--bind /src/project /src/project --setenv A-B 1 true", "name of an environment variable"),
        ("--bind . . true", "not an absolute path"),
    ] {
        let refusal = mapped(line).expect_err("is refused").to_string();
        assert!(refusal.contains(part), "{line}: {refusal}");
    }
}

#[test]
fn a_later_mount_covers_an_earlier_one() {
    // The workspace is below the empty /tmp that comes after it, so the command would not have seen it.
    let covered = mapped("--bind /tmp/ws /tmp/ws --tmpfs /tmp --unshare-net true");
    assert_eq!(covered, Err(Refusal::NoWorkspace));
    let whole = mapped("--bind /a /a --bind /a/b /a/b --chdir /a true").expect("is honoured");
    assert_eq!(whole.workspace, Workspace::Exactly("/a".into()));
}

#[test]
fn among_several_the_one_where_the_command_starts_is_the_workspace() {
    let mapped =
        mapped("--bind /a /a --bind /b /b --chdir /b/c --unshare-net --clearenv true").expect("is narrowed");
    assert_eq!(mapped.workspace, Workspace::Exactly("/b".into()));
    assert_eq!(mapped.narrowed, ["/a (not shown)"]);
}

#[test]
fn dots_do_not_lead_out() {
    let mapped = mapped("--bind /src/project/../.. /src/project/../.. --unshare-net --clearenv true");
    assert_eq!(mapped.expect("is narrowed").narrowed, ["/ (system directories and the workspace only)"]);
}

#[test]
fn a_workspace_can_lie_where_memory_is_shared() {
    let mapped = mapped("--dev /dev --bind /dev/shm/ws /dev/shm/ws --unshare-net --clearenv true");
    assert_eq!(mapped.expect("is honoured").workspace, Workspace::Exactly("/dev/shm/ws".into()));
    assert_eq!(self::mapped("--dev /dev --bind /dev/shm /dev/shm true"), Err(Refusal::NoWorkspace));
    assert_eq!(self::mapped("--bind /dev/dri /dev/dri true"), Err(Refusal::NoWorkspace));
}
