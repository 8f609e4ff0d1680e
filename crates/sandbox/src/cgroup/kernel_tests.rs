//! Groups in the kernel of this machine: as root they limit, end and go; as a user the answer is a reason.
//!
//! `cargo xtask guest` runs them in a virtual machine that has only version 2, and says by `FUMEHOOD_TEST_GROUPS` whether
//! this user must get a group there that holds everything (`hard`) or none (`watched`).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::Bytes;

use super::group::Part;
use super::*;

const SOON: Duration = Duration::from_secs(5);

fn request(label: &str) -> Request<'_> {
    let (memory, swap) = (Bytes::mib(64), Bytes::new(0));
    Request { label, memory, swap, pids: 10, cpu: Cpu::Millis(200) }
}

/// Makes a group; `None` on a host that delegates nothing, where the answer must say why and what helps.
#[allow(clippy::disallowed_methods, reason = "tests have no settings module")]
fn group(label: &str) -> Option<Group> {
    let demanded = std::env::var("FUMEHOOD_TEST_GROUPS").ok();
    match detect().unwrap().create(&request(label)).unwrap() {
        Creation::Made(group) => {
            assert_ne!(demanded.as_deref(), Some("watched"), "{group:?}");
            let by_new = |support: &Support| support.by == Ok("a control group (version 2)");
            assert!(demanded.is_none() || group.support().iter().all(by_new), "{:?}", group.support());
            Some(group)
        }
        Creation::NotDelegated(no) => {
            assert_ne!(demanded.as_deref(), Some("hard"), "{no:?}");
            assert!(!no.why.is_empty() && !no.fix.is_empty());
            None
        }
    }
}

/// Forks a child into a group. It may only call the kernel.
fn child_in(entries: &[OwnedFd], body: impl FnOnce()) -> i32 {
    // SAFETY: the child makes system calls on memory that is its own, and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        for entry in entries {
            // What is a directory is entered through the list in it; what is a file is no place for a name.
            // SAFETY: the name is a C string.
            let list = unsafe { libc::openat(entry.as_raw_fd(), c"cgroup.procs".as_ptr(), libc::O_WRONLY) };
            let into = if list < 0 { entry.as_raw_fd() } else { list };
            // SAFETY: one byte is there to be written.
            if unsafe { libc::write(into, c"0".as_ptr().cast(), 1) } != 1 {
                // SAFETY: ends the child.
                unsafe { libc::_exit(99) };
            }
        }
        body();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    assert!(pid > 0);
    pid
}

fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid, "{}", io::Error::last_os_error());
    status
}

fn could_not_enter(status: i32) -> bool {
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 99
}

/// Waits until so many processes are in every part of a group.
fn until_inside(group: &Group, count: usize) {
    let until = Instant::now() + SOON;
    let inside =
        |directory: &PathBuf| fs::read_to_string(directory.join("cgroup.procs")).unwrap().lines().count();
    while group.directories().iter().any(|directory| inside(directory) < count) {
        assert!(Instant::now() < until, "nobody comes");
        std::thread::yield_now();
    }
}

fn sleep_for_ever() {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

fn gone(directories: &[PathBuf]) {
    for directory in directories {
        assert!(!directory.exists(), "{}", directory.display());
    }
}

#[test]
fn the_memory_limit_ends_a_process_that_passes_it_and_is_counted() {
    let Some(group) = group("memory").filter(|group| group.holds(Resource::Memory)) else { return };
    let status = wait(child_in(&group.entries().unwrap(), || {
        const SIZE: usize = 200 << 20;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_WRITE, flags, -1, 0) };
        for page in (0..SIZE).step_by(4096) {
            // SAFETY: within the mapping.
            let byte = unsafe { memory.cast::<u8>().add(page) };
            // SAFETY: the mapping can be written.
            unsafe { byte.write_volatile(1) };
        }
    }));
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL, "{status:#x}");
    let usage = group.usage().unwrap();
    assert!(usage.oom_kills.is_some_and(|kills| kills >= 1), "{usage:?}");
    let peak = usage.memory_peak.unwrap();
    assert!(peak <= Bytes::mib(64) && peak > Bytes::mib(60), "{peak}");
    let directories = group.directories();
    group.remove(SOON).unwrap();
    gone(&directories);
}

#[test]
fn the_process_limit_refuses_and_is_counted() {
    let Some(group) = group("pids").filter(|group| group.holds(Resource::Pids)) else { return };
    let pid = child_in(&group.entries().unwrap(), || {
        for _ in 0..20 {
            // SAFETY: the child of the child only waits.
            if unsafe { libc::fork() } == 0 {
                sleep_for_ever();
            }
        }
    });
    wait(pid);
    assert!(group.usage().unwrap().pids_refused.is_some_and(|refused| refused >= 1), "{:?}", group.usage());
    group.remove(SOON).unwrap();
}

#[test]
fn processor_time_is_shared_out_and_counted() {
    let Some(group) = group("cpu").filter(|group| group.holds(Resource::Cpu)) else { return };
    wait(child_in(&group.entries().unwrap(), || {
        let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Twenty times what one period has for it.
        while used.tv_nsec < 400_000_000 && used.tv_sec == 0 {
            // SAFETY: `used` is valid.
            unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
        }
    }));
    // What the kernel counted, and not how long it took: an emulated processor may stand still for longer than a period.
    let usage = group.usage().unwrap();
    assert!(usage.throttled_periods.is_some_and(|periods| periods >= 1), "{usage:?}");
    assert!(usage.throttled.is_some_and(|time| time > Duration::ZERO), "{usage:?}");
    assert!(usage.cpu_time.is_some_and(|time| time > Duration::from_millis(200)), "{usage:?}");
    group.remove(SOON).unwrap();
}

#[test]
fn a_tree_of_processes_that_left_its_session_ends_with_the_group() {
    let Some(group) = group("kill") else { return };
    let (read, write) = io::pipe().unwrap();
    let pid = child_in(&group.entries().unwrap(), || {
        for _ in 0..3 {
            // SAFETY: the child leaves the session, forks once more and waits.
            if unsafe { libc::fork() } == 0 {
                // SAFETY: changes nothing but the session.
                unsafe { libc::setsid() };
                // SAFETY: ignoring a signal runs no code.
                unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
                // SAFETY: as above.
                unsafe { libc::fork() };
                sleep_for_ever();
            }
        }
        sleep_for_ever();
    });
    drop(write);
    until_inside(&group, 7);
    group.end_all(SOON).unwrap();
    assert_eq!(libc::WTERMSIG(wait(pid)), libc::SIGKILL);
    // The pipe is at its end only when every process that had a copy of it is gone.
    assert_eq!(io::read_to_string(read).unwrap(), "");
    let directories = group.directories();
    group.remove(SOON).unwrap();
    gone(&directories);
}

#[test]
fn a_dropped_group_leaves_nothing() {
    let Some(group) = group("drop") else { return };
    let directories = group.directories();
    let pid = child_in(&group.entries().unwrap(), sleep_for_ever);
    assert!(directories.iter().all(|directory| directory.exists()));
    until_inside(&group, 1);
    drop(group);
    gone(&directories);
    assert_eq!(libc::WTERMSIG(wait(pid)), libc::SIGKILL);
}

#[test]
fn who_comes_while_the_group_goes_is_ended_or_finds_it_gone() {
    for _ in 0..20 {
        let Some(group) = group("late") else { return };
        let directories = group.directories();
        let pid = child_in(&group.entries().unwrap(), sleep_for_ever);
        group.remove(SOON).unwrap();
        gone(&directories);
        let status = wait(pid);
        let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        assert!(killed || could_not_enter(status), "{status:#x}");
    }
}

#[test]
fn a_process_can_be_started_right_inside() {
    let Some(group) = group("clone") else { return };
    let is_directory = |entry: &OwnedFd| {
        let stat = rustix::fs::fstat(entry).unwrap();
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    };
    let Some(directory) = group.entries().unwrap().into_iter().find(is_directory) else { return };
    let mut arguments: libc::clone_args = libc::clone_args {
        flags: 0x2_0000_0000,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: directory.as_raw_fd() as u64,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
    };
    // SAFETY: like a fork: the child only waits.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) };
    if pid == 0 {
        sleep_for_ever();
    }
    let members = fs::read_to_string(group.directories()[0].join("cgroup.procs")).unwrap();
    assert_eq!(members.trim(), pid.to_string());
    group.remove(SOON).unwrap();
    wait(i32::try_from(pid).unwrap());
}

#[test]
fn a_group_of_a_dead_owner_is_found_and_cleared_and_that_of_a_living_one_is_not() {
    let hierarchies = detect().unwrap();
    let Some(place) = hierarchies.places().list.into_iter().next() else { return };
    let living = Owner::current().unwrap();
    let dead = Owner { start: living.start + 1, ..living };
    let foreign = Owner { namespace: living.namespace + 1, ..dead };
    let [mine, left, theirs] =
        [living, dead, foreign].map(|owner| Part::make(&place, &owner.name("leftover"), &owner).unwrap());
    let entry = left.group.open_for_writing("cgroup.procs").unwrap();
    let pid = child_in(&[entry], sleep_for_ever);
    while left.group.processes().unwrap().is_empty() {
        std::thread::yield_now();
    }
    for found in [hierarchies.leftovers().unwrap(), hierarchies.leftovers_everywhere().unwrap()] {
        let paths: Vec<_> = found.iter().map(|leftover| &leftover.path).collect();
        assert!(paths.contains(&&left.group.path) && !paths.contains(&&mine.group.path), "{paths:?}");
        assert!(!paths.contains(&&theirs.group.path));
    }
    let leftover = Leftover { path: left.group.path.clone(), owner: dead };
    leftover.clear(SOON).unwrap();
    wait(pid);
    gone(std::slice::from_ref(&left.group.path));
    Leftover { path: mine.group.path.clone(), owner: living }.clear(SOON).unwrap();
    assert!(mine.group.path.exists(), "the owner lives");
    mine.remove(SOON).unwrap();
    theirs.remove(SOON).unwrap();
}

#[test]
fn groups_made_and_removed_at_the_same_time_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    if let Some(group) = group("many") {
                        let directories = group.directories();
                        group.remove(SOON).unwrap();
                        gone(&directories);
                    }
                }
            });
        }
    });
}

#[test]
fn a_label_that_is_no_plain_name_is_refused() {
    for label in ["", "../x", "A", "a/b", "a b", "a\n", &"a".repeat(33)] {
        let result = detect().unwrap().create(&Request { label, ..request("a") });
        assert!(matches!(result, Err(CgroupError::Label(_))), "{label}");
    }
}

#[test]
fn a_limit_that_the_kernel_does_not_take_makes_no_group() {
    let hierarchies = detect().unwrap();
    if hierarchies.places().list.is_empty() {
        return;
    }
    // More processes than the kernel can number.
    let result = hierarchies.create(&Request { pids: u32::MAX, ..request("refused") });
    if hierarchies.support().iter().any(|support| support.resource == Resource::Pids && support.by.is_ok()) {
        let error = result.unwrap_err();
        assert!(matches!(error, CgroupError::File { .. } | CgroupError::NotHeld { .. }), "{error:?}");
    }
    for place in hierarchies.places().list {
        let ours = place.directory.join("fumehood");
        let names = fs::read_dir(ours).into_iter().flatten().flatten();
        assert!(!names.into_iter().any(|name| name.file_name().to_string_lossy().ends_with("-refused")));
    }
}

/// Not a test but a measurement: what a group costs.
#[test]
#[ignore = "a measurement"]
fn measure() {
    let hierarchies = detect().unwrap();
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..50 {
        let start = Instant::now();
        let detected = detect().unwrap();
        times[0].push(start.elapsed());
        let start = Instant::now();
        let Creation::Made(group) = detected.create(&request("measure")).unwrap() else { return };
        times[1].push(start.elapsed());
        let entries = group.entries().unwrap();
        let start = Instant::now();
        wait(child_in(&entries, || {}));
        times[2].push(start.elapsed());
        let start = Instant::now();
        group.remove(SOON).unwrap();
        times[3].push(start.elapsed());
    }
    let start = Instant::now();
    let everywhere = hierarchies.leftovers_everywhere().unwrap().len();
    println!("leftovers everywhere: {everywhere} in {:?}", start.elapsed());
    for (name, mut times) in ["detect", "create", "fork, enter all, end", "remove"].into_iter().zip(times) {
        times.sort_unstable();
        println!("{name}: median {:?}, smallest {:?}, largest {:?}", times[25], times[0], times[49]);
    }
}
