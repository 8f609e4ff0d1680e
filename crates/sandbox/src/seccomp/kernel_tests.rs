//! The filters in the kernel of this machine, on children that try what the tables refuse.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::*;

/// A call by number.
type Raw = (u32, [u64; 6]);

/// How a child ended, and what each call answered: 0 or more, or the error with a minus.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    status: i32,
    answers: Vec<i64>,
}

impl Ended {
    fn signal(&self) -> Option<i32> {
        libc::WIFSIGNALED(self.status).then(|| libc::WTERMSIG(self.status))
    }
}

/// Whether a child keeps the capabilities that the test has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Capabilities {
    Kept,
    Dropped,
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: the kernel writes two descriptors, for which there is room.
    assert_eq!(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the descriptor is new, and nobody else has it.
    let end = |fd| unsafe { OwnedFd::from_raw_fd(fd) };
    (end(fds[0]), end(fds[1]))
}

fn raw((number, args): Raw) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the calls are refused by the filter, or name neither memory nor objects of this process; whatever they
    // change is a child's that ends next.
    let result = unsafe { libc::syscall(i64::from(number), a, b, c, d, e, f) };
    if result < 0 { -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { result }
}

fn drop_capabilities() {
    #[repr(C)]
    struct Header(u32, i32);
    let (header, sets) = (Header(0x2008_0522, 0), [0u32; 6]);
    // SAFETY: the header names version 3 and the calling thread, which take three times two words.
    unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
}

/// Runs `body` in a child, which may do nothing but call the kernel: another thread may have held a lock at the fork.
fn child(count: usize, body: impl FnOnce(&mut [i64])) -> Ended {
    let (read, write) = pipe();
    let mut answers = vec![i64::MIN; count];
    // SAFETY: the child makes system calls on memory that is its own, and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        body(&mut answers);
        let bytes = size_of_val(answers.as_slice());
        // SAFETY: the slice is valid for its length.
        unsafe { libc::write(write.as_raw_fd(), answers.as_ptr().cast(), bytes) };
        // SAFETY: runs nothing of the parent's.
        unsafe { libc::_exit(0) };
    }
    drop(write);
    let mut bytes = Vec::new();
    File::from(read).read_to_end(&mut bytes).unwrap();
    let mut status = 0;
    // SAFETY: `status` is valid, and the child is ours and not waited for by anybody else.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    let answers = bytes.as_chunks::<8>().0.iter().map(|word| i64::from_ne_bytes(*word)).collect();
    Ended { status, answers }
}

fn confined(program: Option<&Program>, capabilities: Capabilities, calls: &[Raw]) -> Ended {
    child(calls.len(), |answers| {
        if capabilities == Capabilities::Dropped {
            drop_capabilities();
        }
        set_no_new_privs().unwrap();
        if let Some(program) = program {
            load(&program.0, Threads::Calling).unwrap();
        }
        for (answer, call) in answers.iter_mut().zip(calls) {
            *answer = raw(*call);
        }
    })
}

/// What the filter answers, as [`Ended`] has it.
fn expected(answer: Answer) -> Option<i64> {
    match answer {
        Answer::Fail(errno) => Some(-i64::from(errno as u16)),
        _ => None,
    }
}

/// One set of arguments for each row of a call that refuses: the row applies, and none before it.
fn refused(rows: &[&'static Row]) -> Vec<(&'static Row, Call, Raw)> {
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.answer.refuses()) {
        for call in row.calls {
            let Some(number) = call.number(Arch::NATIVE) else { continue };
            let is_first = |args: &[u64; 6]| {
                let first = rows.iter().find(|row| row.calls.contains(call) && row.applies(args));
                first.is_some_and(|first| std::ptr::eq(*first, *row))
            };
            let candidates = super::table_tests::combinations(rows, *call);
            let fitting = candidates.into_iter().filter(is_first).take(40);
            all.extend(fitting.map(|args| (*row, *call, (number, args))));
        }
    }
    all
}

#[test]
fn each_row_that_refuses_is_refused_by_the_kernel() {
    for rows in [
        command_rows(&Options::default()),
        rows(service::FIRST_PROCESS, &[]),
        rows(service::AGENT, &[]),
        rows(service::GATEWAY, &[]),
    ] {
        let program =
            Source { rows: rows.clone(), default: command::DEFAULT, arch: Arch::NATIVE, without: None };
        let refused = refused(&rows);
        for row in rows.iter().filter(|row| row.answer.refuses()) {
            let exists = row.calls.iter().any(|call| call.number(Arch::NATIVE).is_some());
            assert!(!exists || refused.iter().any(|(of, ..)| std::ptr::eq(*of, *row)), "{}", row.reason);
        }
        let calls: Vec<Raw> = refused.iter().map(|(.., raw)| *raw).collect();
        let ended = confined(Some(&program.compile()), Capabilities::Dropped, &calls);
        assert_eq!(ended.answers.len(), calls.len(), "{:?}", ended.status);
        for ((row, call, raw), answer) in refused.iter().zip(&ended.answers) {
            assert_eq!(Some(*answer), expected(row.answer), "{} {:#x?}", call.name(), raw.1);
        }
    }
}

/// Calls that would end, stop or multiply the child that tries them, that are about the file systems of the machine, or whose
/// nonsense makes something that stays: a queue of messages.
const NOT_TRIED: &[Call] = &[
    Call::exit,
    Call::exit_group,
    Call::pause,
    Call::fork,
    Call::vfork,
    Call::clone,
    Call::rt_sigreturn,
    Call::rt_sigsuspend,
    Call::restart_syscall,
    Call::uretprobe,
    Call::sync,
    Call::msgget,
];

#[test]
fn what_is_allowed_gets_the_answer_that_it_gets_without_a_filter() {
    let rows = command_rows(&Options::default());
    let nonsense = [u64::MAX; 6];
    let decides =
        |call: Call| rows.iter().find(|row| row.calls.contains(&call) && row.applies(&nonsense)).unwrap();
    let allowed: Vec<(Call, u32)> = Call::ALL
        .iter()
        .filter(|call| decides(**call).answer == Answer::Allow && !NOT_TRIED.contains(call))
        .filter_map(|call| Some((*call, call.number(Arch::NATIVE)?)))
        .collect();
    assert!(allowed.len() > 250, "{} calls", allowed.len());
    let calls: Vec<Raw> = allowed.iter().map(|(_, number)| (*number, nonsense)).collect();
    let with = confined(Some(&command_filter(&Options::default())), Capabilities::Dropped, &calls);
    let without = confined(None, Capabilities::Dropped, &calls);
    assert_eq!(with.answers.len(), calls.len());
    for (((call, _), with), without) in allowed.iter().zip(&with.answers).zip(&without.answers) {
        assert_eq!((*with).min(0), (*without).min(0), "`{}`", call.name());
    }
}

fn probes() -> Vec<(&'static Probe, Raw)> {
    PROBES.iter().filter_map(|probe| Some((probe, (probe.number(Arch::NATIVE)?, probe.args)))).collect()
}

#[test]
fn each_probe_is_answered_by_the_filter_and_by_something_else_without_its_group() {
    let probes = probes();
    let calls: Vec<Raw> = probes.iter().map(|(_, raw)| *raw).collect();
    for capabilities in [Capabilities::Kept, Capabilities::Dropped] {
        for wall in walls().into_iter().map(Some).chain([None]) {
            let program = command_filter(&Options { without: wall, ..Options::default() });
            let ended = confined(Some(&program), capabilities, &calls);
            for ((probe, _), answer) in probes.iter().zip(&ended.answers) {
                let holds = Some(*answer) == expected(probe.answer);
                assert_eq!(
                    holds,
                    Some(probe.group) != wall,
                    "{probe:?} without {wall:?}, {capabilities:?}: {answer}"
                );
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn foreign_call(number: u32) -> i64 {
    let mut result = i64::from(number);
    // SAFETY: the 32-bit table keeps all registers but the result; `getpid` takes no argument and touches no memory.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    result
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_32_bit_table_ends_the_program_with_sigsys_and_answers_without_its_group() {
    let run = |without| {
        let program = command_filter(&Options { without, ..Options::default() });
        child(1, |answers| {
            set_no_new_privs().unwrap();
            load(&program.0, Threads::Calling).unwrap();
            answers[0] = foreign_call(FOREIGN_CALL);
        })
    };
    assert_eq!(run(None).signal(), Some(libc::SIGSYS));
    assert!(run(Some(Group::ForeignTables)).answers[0] > 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_x32_numbers_are_answered_with_enosys() {
    let calls: Vec<Raw> = (0..548).map(|number| (number | 0x4000_0000, [u64::MAX; 6])).collect();
    let ended = confined(Some(&command_filter(&Options::default())), Capabilities::Dropped, &calls);
    assert!(ended.answers.iter().all(|answer| *answer == -i64::from(libc::ENOSYS)));
    assert_eq!(ended.answers.len(), calls.len());
}

#[test]
fn a_second_listener_is_refused_and_a_further_filter_is_not() {
    let program = command_filter(&Options::default());
    let harmless = Program(vec![SockFilter { code: 0x06, jt: 0, jf: 0, k: Answer::Allow.code() }]);
    let ended = child(3, |answers| {
        set_no_new_privs().unwrap();
        let first = load_with_listener(&program.0).unwrap();
        answers[0] = i64::from(first.waits_killable);
        let second = load_with_listener(&harmless.0).unwrap_err();
        answers[1] = i64::from(second.raw_os_error().unwrap());
        answers[2] = i64::from(load(&harmless.0, Threads::All).is_ok());
    });
    assert_eq!(ended.answers, [1, i64::from(libc::EBUSY), 1]);
}

#[test]
fn an_empty_and_an_overlong_program_are_refused_before_the_kernel_sees_them() {
    let ret = SockFilter { code: 0x06, jt: 0, jf: 0, k: 0 };
    for program in [vec![], vec![ret; MAX_INSTRUCTIONS + 1]] {
        assert_eq!(load(&program, Threads::Calling).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn the_first_process_can_still_wait_signal_and_end() {
    let program = first_process_filter();
    let ended = child(4, |answers| {
        // SAFETY: as in `child`; the grandchild waits to be killed.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            loop {
                // SAFETY: waits for a signal and touches nothing.
                unsafe { libc::pause() };
            }
        }
        set_no_new_privs().unwrap();
        load(&program.0, Threads::Calling).unwrap();
        // SAFETY: this is the child that was just made.
        answers[0] = i64::from(unsafe { libc::kill(pid, libc::SIGTERM) });
        let mut status = 0;
        // SAFETY: `status` is valid.
        answers[1] = i64::from(unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid);
        answers[2] = i64::from(libc::WTERMSIG(status));
        answers[3] = raw((Call::openat.number(Arch::NATIVE).unwrap(), [u64::MAX; 6]));
    });
    assert_eq!(ended.answers, [0, 1, i64::from(libc::SIGTERM), -i64::from(libc::EPERM)]);
}

/// Not a test but a measurement: what a call costs without a filter, with one of one instruction, and with ours.
#[test]
#[ignore = "a measurement"]
fn measure() {
    const ROUNDS: u32 = 100_000;
    const SAMPLES: usize = 31;
    let program = command_filter(&Options::default());
    let bare = Program(vec![SockFilter { code: 0x06, jt: 0, jf: 0, k: Answer::Allow.code() }]);
    let nanos = |program: Option<&Program>, call: Raw| {
        let ended = child(1, |answers| {
            if let Some(program) = program {
                set_no_new_privs().unwrap();
                load(&program.0, Threads::Calling).unwrap();
            }
            let start = std::time::Instant::now();
            (0..ROUNDS).for_each(|_| {
                raw(call);
            });
            answers[0] = (start.elapsed() * 10 / ROUNDS).as_nanos() as i64;
        });
        ended.answers[0]
    };
    println!("{} instructions, {} bytes, {:?}", program.0.len(), program.to_bytes().len(), summary());
    let start = std::time::Instant::now();
    (0..100).for_each(|_| drop(std::hint::black_box(command_filter(&Options::default()))));
    println!("built in {:?}", start.elapsed() / 100);
    for (name, call, args) in [
        ("getppid, always allowed", Call::getppid, [0; 6]),
        ("ioctl, by argument", Call::ioctl, [u64::MAX, 0x541b, 0, 0, 0, 0]),
        ("prctl, by argument", Call::prctl, [3, 0, 0, 0, 0, 0]),
        ("keyctl, refused", Call::keyctl, [u64::MAX, 0, 0, 0, 0, 0]),
    ] {
        let raw = (call.number(Arch::NATIVE).unwrap(), args);
        let mut times: [Vec<i64>; 3] = Default::default();
        for _ in 0..SAMPLES {
            for (times, program) in times.iter_mut().zip([None, Some(&bare), Some(&program)]) {
                times.push(nanos(program, raw));
            }
        }
        let show = |times: &mut Vec<i64>| {
            times.sort_unstable();
            format!("{:.1} ({:.1})", times[SAMPLES / 2] as f64 / 10.0, times[0] as f64 / 10.0)
        };
        let [without, one, ours] = times.each_mut().map(show);
        println!(
            "{name}: median (smallest) ns: {without} without, {one} with one instruction, {ours} with ours"
        );
    }
}
