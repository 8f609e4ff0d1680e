//! The store of root in `disk` mode: a file system of its own. Without loop devices, or as an ordinary user, the limits are
//! watched, and these tests have nothing to show.

mod bench;

use std::fs::{self, File};
use std::time::{Duration, Instant};

use bench::{Bench, silent};
use model::enforcement::{Layer, Level};
use model::{Bytes, Ending, LimitKind, OsText, Profile, Tool};
use sandbox::SandboxError;

/// A bench whose limits are small, and in an image; nothing where there are none.
fn bench(disk: Bytes, files: u64) -> Option<Bench> {
    let mut bench = Bench::under(Profile::default_profile());
    bench.grant.profile.limits.disk = disk;
    bench.grant.profile.limits.files = files;
    let prepared = bench.prepare().expect("a sandbox that holds");
    let held = prepared.report().held.iter().find(|held| held.layer == Layer::Limit(LimitKind::Disk));
    let is_image = held.is_some_and(|held| held.level == Level::Hard);
    // A container may show the device and refuse to open it.
    let has_loops = || File::options().read(true).write(true).open("/dev/loop-control").is_ok();
    assert!(is_image || !rustix::process::geteuid().is_root() || !has_loops());
    is_image.then_some(bench)
}

/// Waits until no loop device has a file with this in its name: the kernel lets go of a mount a little after its last user.
fn all_let_go(what: &str) {
    let attached = || {
        let devices = fs::read_dir("/sys/block").expect("devices").flatten();
        let files =
            devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
        files.filter(|file| file.contains(what)).collect::<Vec<_>>()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !attached().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", attached());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn all_writable_places_share_one_limit_for_bytes() {
    let Some(mut bench) = bench(Bytes::mib(32), 1000) else { return };
    let fill = "for d in \"$PWD\" /tmp /var/tmp /artifacts /cache /dev/shm; do head -c 6000000 /dev/zero > $d/a || exit 9; done; \
                cat /dev/zero > b; stat -c %s b";
    let run = bench.shell(fill);
    assert!(run.stderr().contains("No space left"), "{}", run.stderr());
    // Six times six million and what is left of 32 MiB is more than it: one of the six has met it already.
    assert_eq!(run.0.ending, Ending::Exited { status: 9 }, "{}", run.stdout());
    assert!((Bytes::mib(30)..=Bytes::mib(32)).contains(&run.0.usage.disk), "{:?}", run.0.usage);
    assert!(run.0.observed.limits_touched.contains(&LimitKind::Disk));
    let exact = bench.shell("cat /dev/zero > b; stat -c %s b");
    let written: u64 = exact.stdout().trim().parse().expect("a number");
    let limit = Bytes::mib(32).get();
    // What is missing are directories, and the map of the file.
    assert!(written <= limit && written > limit - (2 << 20), "{written} of {limit}");
    all_let_go(&bench.state().to_string_lossy());
}

#[test]
fn all_writable_places_share_one_limit_for_files() {
    let Some(mut bench) = bench(Bytes::mib(32), 100) else { return };
    let script = "i=0; for d in /tmp /artifacts \"$PWD\" /cache; do j=0; while [ $j -lt 50 ]; do : > $d/f$j || exit 0; \
                  i=$((i+1)); j=$((j+1)); echo $i; done; done";
    let run = bench.shell(script);
    let made: u64 = run.stdout().lines().last().unwrap_or_default().parse().expect("a number");
    assert_eq!(made, 100);
    assert!(run.0.observed.limits_touched.contains(&LimitKind::Files));
}

#[test]
fn the_cache_of_a_task_is_kept_and_never_grows_beyond_the_limits() {
    let Some(mut bench) = bench(Bytes::mib(32), 100) else { return };
    let script = "mkdir -p /cache/a/b /cache/c; echo 1 > /cache/a/b/f; echo 2 > /cache/c/g; ln /cache/c/g /cache/c/h; ln -s f /cache/l";
    assert!(bench.shell(script).succeeded());
    let run = bench.shell(
        "cat /cache/a/b/f /cache/c/h; readlink /cache/l; rm -r /cache/c; mkdir /cache/c; rm /cache/l; \
                           echo 3 > /cache/a/b/f; mv /cache/a/b/f /cache/a/e",
    );
    assert_eq!((run.stdout().as_str(), run.stderr().as_str()), ("1\n2\nf\n", ""));
    let run = bench.shell("cd /cache; find . | sort | tr '\\n' ' '; cat a/e; stat -c %U:%a . >&2");
    assert_eq!(run.stdout(), ". ./a ./a/b ./a/e ./c 3\n");
    // The next two together hold more than one action may write.
    assert!(bench.shell("head -c 20000000 /dev/zero > /cache/one").succeeded());
    let run = bench.shell("ls /cache; head -c 20000000 /dev/zero > /cache/two");
    assert_eq!((run.stdout().as_str(), run.succeeded()), ("a\nc\none\n", true));
    assert_eq!(bench.shell("ls /cache").stdout(), "", "it was emptied");
    let cache = bench.state().join("cache");
    assert!(bench.shell("mkdir /cache/x").succeeded());
    assert_eq!(fs::read_dir(cache).expect("the cache").count(), 1);
}

#[test]
fn a_small_disk_bounds_what_can_be_written_and_a_full_one_starts_nothing() {
    if bench(Bytes::mib(32), 100).is_none() {
        return;
    }
    let small = Bytes::mib(64);
    let Some(disk) = SmallDisk::mount(small) else { return };
    let mut bench = Bench::under(Profile::default_profile());
    bench.state_at = Some(disk.0.path().join("state"));
    let prepared = bench.prepare().expect("a sandbox that holds");
    let held = prepared.report().held.iter().find(|held| held.layer == Layer::Limit(LimitKind::Disk));
    let by = held.map(|held| held.by.clone()).unwrap_or_default();
    assert!(by.contains("bounded to "), "{by}");
    drop(prepared);
    let run = bench.shell("cat /dev/zero > b");
    assert!(run.stderr().contains("No space left"), "{}", run.stderr());
    assert!(run.upper("b").metadata().expect("copied out").len() > 16 << 20);
    let (touched, usage) = (&run.0.observed.limits_touched, &run.0.usage);
    assert!(touched.contains(&LimitKind::Disk), "{by}: {touched:?} {usage:?}");
    // What is left is less than a start needs.
    match bench.prepare() {
        Err(error @ SandboxError::Prepare { .. }) => {
            let text = std::error::Error::source(&error).expect("a reason").to_string();
            assert!(text.contains("free: make room there"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_action_ends_before_others_fill_the_disk() {
    if bench(Bytes::mib(32), 100).is_none() {
        return;
    }
    let Some(disk) = SmallDisk::mount(Bytes::mib(128)) else { return };
    let mut bench = Bench::under(Profile::default_profile());
    bench.state_at = Some(disk.0.path().join("state"));
    let prepared = bench.prepare().expect("a sandbox that holds");
    let tool = ["sh", "-c", "head -c 30000000 /dev/zero > a; sleep 20"].map(OsText::literal).into();
    let permit = bench.permit(Tool::Run { argv: tool });
    let running = std::thread::spawn(move || prepared.run(permit, silent()));
    std::thread::sleep(std::time::Duration::from_millis(400));
    fs::write(disk.0.path().join("other"), vec![1; 70 << 20]).expect("room for it");
    let execution = running.join().expect("it ended").expect("a run");
    assert_eq!(execution.ending, Ending::Limit { limit: LimitKind::Disk });
    assert_eq!(execution.layer().join("upper/a").metadata().expect("copied out").len(), 30_000_000);
}

#[test]
fn without_its_means_the_limits_are_watched_or_nothing_runs() {
    let Some(mut bench) = bench(Bytes::mib(32), 100) else { return };
    // Where the templates should be is a file: none can be made.
    fs::remove_dir_all(bench.state().join("images")).expect("removed");
    fs::write(bench.state().join("images"), "").expect("written");
    let prepared = bench.prepare().expect("a sandbox that holds");
    let held = prepared.report().held.iter().find(|held| held.layer == Layer::Limit(LimitKind::Disk));
    let held = held.expect("said").clone();
    assert_eq!(held.level, Level::Watched);
    assert!(held.by.contains("no image can be had: "), "{}", held.by);
    drop(prepared);
    assert!(bench.shell("echo x > a; test -w /cache").succeeded());
    bench.grant.profile.disk_limits = Level::Hard;
    match bench.prepare() {
        Err(SandboxError::NotEnforceable(short)) => assert!(short[0].why.contains("no image"), "{short:?}"),
        other => panic!("{other:?}"),
    }
}

/// A small disk of its own, in memory.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one; nothing where that is not allowed.
    fn mount(size: Bytes) -> Option<Self> {
        let place = tempfile::tempdir().expect("a directory");
        let options = std::ffi::CString::new(format!("size={},mode=0755", size.get())).expect("an option");
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("small", place.path(), "tmpfs", flags, Some(options.as_c_str())).ok()?;
        Some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH);
    }
}
