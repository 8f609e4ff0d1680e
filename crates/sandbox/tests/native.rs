//! Real sandboxes, through the crate's public face. Works as root and as an ordinary user.

mod bench;

use bench::{Bench, read};
use model::{Ending, LimitKind, Profile};

#[test]
fn a_command_runs_and_its_output_and_layer_come_out() {
    let mut bench = Bench::new();
    bench.file("a.txt", "old\n");
    let run = bench.shell("echo hello; echo new > a.txt; echo oops >&2; exit 7");
    assert_eq!(run.stderr(), "oops\n", "{:?}", run.0);
    assert_eq!(run.0.ending, Ending::Exited { status: 7 });
    assert_eq!(run.stdout(), "hello\n");
    assert_eq!(read(run.upper("a.txt")), "new\n");
    assert_eq!(read(bench.workspace().join("a.txt")), "old\n");
}

#[test]
fn a_layer_is_below_the_next_action() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        let mut bench = Bench::under(profile);
        bench.file("gone.txt", "x");
        assert!(bench.shell("echo one > made; rm gone.txt").succeeded());
        let run = bench.shell("cat made; ls");
        assert_eq!(run.stdout(), "one\nmade\n", "{}", run.stderr());
    }
}

#[test]
fn a_home_can_lie_where_the_sandbox_has_a_place_of_its_own() {
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let home = tempfile::tempdir_in(place).expect("a home");
        let cache = home.path().join(".npm/_cacache/index");
        std::fs::create_dir_all(cache.parent().expect("a parent")).expect("directories");
        std::fs::write(&cache, "known\n").expect("a file");
        let mut bench = Bench::new();
        bench.home = Some(home.path().to_owned());
        let run =
            bench.shell("cat ~/.npm/_cacache/index; echo x > ~/new; echo more >> ~/.npm/_cacache/index");
        assert_eq!(run.stdout(), "known\n", "{place}: {}", run.stderr());
        // An overlay cannot be shown under other owners, so root's cache on one stays root's.
        let may_write = !(is_root() && is_overlay(home.path()));
        assert_eq!(run.succeeded(), may_write, "{place}: {}", run.stderr());
        assert_eq!(std::fs::read_to_string(&cache).expect("the file"), "known\n");
        assert!(!home.path().join("new").exists());
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Tells whether a directory lies on an overlay (`OVERLAYFS_SUPER_MAGIC`, `linux/magic.h`), as in a container.
fn is_overlay(directory: &std::path::Path) -> bool {
    rustix::fs::statfs(directory).expect("a file system").f_type == 0x794c_7630
}

#[test]
fn the_time_limit_ends_the_command() {
    let mut bench = Bench::new();
    bench.grant.profile.limits.wall_time = std::time::Duration::from_millis(300);
    let run = bench.run(&["sleep", "30"]);
    assert_eq!(run.0.ending, Ending::Limit { limit: LimitKind::WallTime });
}

#[test]
fn a_state_directory_with_a_long_path_is_no_obstacle() {
    let mut bench = Bench::with_state_below(&"long/".repeat(60));
    let run = bench.run(&["true"]);
    assert!(run.succeeded(), "{:?}", run.0.ending);
}

/// Both families of System V and POSIX: what they make belongs to the sandbox's own namespace, and may be made there.
#[test]
fn message_queues_semaphores_and_shared_memory_can_be_made() {
    let mut bench = Bench::new();
    let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
CREATE = os.O_CREAT | os.O_RDWR
libc.sem_open.restype = ctypes.c_void_p
made = {
    "mq_open": libc.mq_open(b"/queue", CREATE, 0o600, None) >= 0,
    "shm_open": libc.shm_open(b"/memory", CREATE, 0o600) >= 0,
    "sem_open": libc.sem_open(b"/semaphore", CREATE, 0o600, 1) is not None,
    "msgget": libc.msgget(7, 0o1600) >= 0,
    "shmget": libc.shmget(7, 4096, 0o1600) >= 0,
    "semget": libc.semget(7, 1, 0o1600) >= 0,
}
print([name for name, well in made.items() if not well])
"#;
    let run = bench.run(&["python3", "-c", script]);
    assert_eq!(run.stdout(), "[]\n", "{} {}", run.0.ending, run.stderr());
}
