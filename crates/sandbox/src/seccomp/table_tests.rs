//! The program against the table, with an interpreter of our own: every call, every argument that a row tests.

use std::collections::BTreeSet;

use super::*;

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

/// What the kernel gives a filter to look at.
struct Data {
    number: u32,
    arch: u32,
    args: [u64; 6],
}

impl Data {
    fn word(&self, offset: u32) -> u32 {
        let argument = |at: u32| self.args[(at / 8) as usize];
        match offset {
            0 => self.number,
            4 => self.arch,
            16..64 if offset.is_multiple_of(8) => argument(offset - 16) as u32,
            16..64 if offset.is_multiple_of(4) => (argument(offset - 20) >> 32) as u32,
            _ => panic!("a load from {offset}"),
        }
    }
}

/// Runs a program as the kernel would, and returns the answer and how many instructions it took.
fn run(program: &Program, data: &Data) -> (u32, usize) {
    let (mut at, mut a, mut steps) = (0usize, 0u32, 0);
    loop {
        let SockFilter { code, jt, jf, k } = program.0[at];
        steps += 1;
        at += 1;
        let mut branch = |holds: bool| at += usize::from(if holds { jt } else { jf });
        match code {
            0x20 => a = data.word(k),
            0x54 => a &= k,
            0x15 => branch(a == k),
            0x35 => branch(a >= k),
            0x45 => branch(a & k != 0),
            0x05 => at += k as usize,
            0x06 => return (k, steps),
            _ => panic!("an instruction {code:#x}"),
        }
    }
}

/// What the kernel's checker looks at before it takes a program (`bpf_check_classic`, `seccomp_check_filter`).
fn check(program: &Program) {
    let last = program.0.len() - 1;
    assert!(program.0.len() <= MAX_INSTRUCTIONS);
    assert_eq!(program.0[last].code, 0x06, "the last instruction returns");
    for (at, ins) in program.0.iter().enumerate() {
        let furthest = match ins.code {
            0x15 | 0x35 | 0x45 => at + 1 + usize::from(ins.jt.max(ins.jf)),
            0x05 => at + 1 + ins.k as usize,
            0x20 => {
                assert!(ins.k < 64 && ins.k.is_multiple_of(4));
                at
            }
            0x54 | 0x06 => at,
            code => panic!("an instruction {code:#x}"),
        };
        assert!(furthest <= last, "a jump out of the program at {at}");
    }
}

/// The answer by the table alone: the first row that applies.
fn by_table(rows: &[&Row], without: Option<Group>, call: Call, args: &[u64; 6]) -> u32 {
    let row = rows.iter().find(|row| row.calls.contains(&call) && row.applies(args));
    let (group, answer) = row.map_or((Group::Unlisted, command::DEFAULT), |row| (row.group, row.answer));
    let taken_away = without == Some(group) && answer != Answer::Allow;
    if taken_away { Answer::Allow.code() } else { answer.code() }
}

/// Numbers worth trying for an argument: what the rows name, their neighbours, and each bit where bits are tested.
fn values(rows: &[&Row], call: Call, arg: u8) -> Vec<u64> {
    let tests = rows.iter().filter(|row| row.calls.contains(&call)).flat_map(|row| row.when);
    let mut named = BTreeSet::new();
    for test in tests.filter(|test| test.arg == arg) {
        named.extend([0, u32::MAX]);
        match test.test {
            Test::AnyOf(values) => {
                named.extend(values.iter().flat_map(|v| [*v, v.wrapping_add(1), v.wrapping_sub(1)]))
            }
            Test::Masked(mask, values) => {
                named.extend(values.iter().flat_map(|value| [*value, value | !mask, value + 1]));
                named.insert(mask);
            }
            Test::HasAny(mask) | Test::OnlyBits(mask) => {
                named.extend([mask, !mask]);
                named.extend((0..32).map(|bit| 1u32 << bit));
            }
        }
    }
    if named.is_empty() {
        return vec![0x5bad_c0de];
    }
    named.into_iter().map(u64::from).collect()
}

/// Every combination for the arguments that some row of the call tests, once as it is and once with nonsense in the
/// upper halves.
pub(super) fn combinations(rows: &[&Row], call: Call) -> Vec<[u64; 6]> {
    let low = (0..6u8).fold(vec![[0u64; 6]], |so_far, arg| {
        let values = values(rows, call, arg);
        let with = |args: &[u64; 6], value: u64| {
            let mut args = *args;
            args[usize::from(arg)] = value;
            args
        };
        so_far.iter().flat_map(|args| values.iter().map(move |value| with(args, *value))).collect()
    });
    let nonsense = |args: &[u64; 6]| args.map(|arg| arg | 0xdead_beef_0000_0000);
    low.iter().flat_map(|args| [*args, nonsense(args)]).collect()
}

fn every_options() -> Vec<Options> {
    let mut all = Vec::new();
    for nested_user_namespaces in [false, true] {
        for observe_opens in [false, true] {
            for listed_programs in [false, true] {
                all.push(Options { nested_user_namespaces, observe_opens, listed_programs, without: None });
            }
        }
    }
    let mutants = walls().into_iter().chain([Group::Recorded]);
    all.extend(mutants.map(|group| Options { without: Some(group), ..Options::default() }));
    all
}

/// Compares a program with its table and returns how many answers were compared and the longest way to one.
fn compare(
    program: &Program,
    rows: &[&Row],
    without: Option<Group>,
    arch: Arch,
    named: bool,
) -> (usize, usize) {
    let (mut compared, mut longest) = (0, 0);
    for call in Call::ALL {
        let Some(number) = call.number(arch) else { continue };
        let all = combinations(rows, *call);
        let all = if named { all } else { all.into_iter().step_by(97).collect() };
        for args in all {
            let (answer, steps) = run(program, &Data { number, arch: arch.audit(), args });
            let expected = by_table(rows, without, *call, &args);
            assert_eq!(answer, expected, "{} {args:#x?} on {arch:?} without {without:?}", call.name());
            compared += 1;
            longest = longest.max(steps);
        }
    }
    (compared, longest)
}

#[test]
fn the_program_answers_what_the_table_says() {
    for arch in ARCHES {
        for (nth, options) in every_options().iter().enumerate() {
            let program = command_filter_for(options, arch);
            check(&program);
            // All combinations for what is shipped, and a sample for the mutants.
            let (compared, longest) =
                compare(&program, &command_rows(options), options.without, arch, nth < 4);
            if nth == 0 {
                println!("{compared} answers, {longest} instructions at most, {} in all", program.0.len());
                assert!(compared > 9_000, "{compared} answers compared");
                assert!(longest < 80, "{longest} instructions for one answer");
                assert!(program.0.len() < 1000, "{} instructions", program.0.len());
            }
        }
    }
}

#[test]
fn the_programs_of_services_answer_what_their_tables_say() {
    for arch in ARCHES {
        for (table, switches) in [
            (service::FIRST_PROCESS, &[][..]),
            (service::AGENT, &[]),
            (service::AGENT, &[Switch::Listens]),
            (service::GATEWAY, &[]),
        ] {
            let source = source(table, switches, arch);
            let program = source.compile();
            check(&program);
            compare(&program, &rows(table, switches), None, arch, true);
        }
    }
}

#[test]
fn a_number_without_a_name_is_answered_with_enosys() {
    for arch in ARCHES {
        let program = command_filter_for(&Options::default(), arch);
        let named: BTreeSet<u32> = Call::ALL.iter().filter_map(|call| call.number(arch)).collect();
        let x32 = (0..1024).map(|number| number | 0x4000_0000);
        let far = [u32::MAX, u32::MAX - 1, 1 << 31, 0x7fff_ffff, 1 << 16];
        for number in (0..2048).chain(x32).chain(far).filter(|number| !named.contains(number)) {
            let (answer, _) = run(&program, &Data { number, arch: arch.audit(), args: [0; 6] });
            assert_eq!(answer, 0x0005_0000 | libc::ENOSYS as u32, "{number:#x} on {arch:?}");
        }
    }
}

#[test]
fn the_table_of_another_machine_is_stopped_before_the_number_is_looked_at() {
    // i386, ARM, the other one of ours, its big-endian twin, none at all.
    let foreign = [0x4000_0003, 0x4000_0028, 0xc000_003e, 0xc000_00b7, 0x8000_00b7, 0];
    for arch in ARCHES {
        let program = command_filter_for(&Options::default(), arch);
        for other in foreign.into_iter().filter(|other| *other != arch.audit()) {
            for number in 0..600 {
                let (answer, _) = run(&program, &Data { number, arch: other, args: [0; 6] });
                assert_eq!(answer, Answer::Trap.code());
            }
        }
    }
}

#[test]
fn every_call_has_a_row_that_always_applies_and_no_row_is_out_of_reach() {
    let rows = command_rows(&Options::default());
    for call in Call::ALL {
        let of_call: Vec<_> = rows.iter().filter(|row| row.calls.contains(call)).collect();
        assert!(!of_call.is_empty(), "`{}` has no row", call.name());
        let first_always = of_call.iter().position(|row| row.when.is_empty());
        assert_eq!(first_always, Some(of_call.len() - 1), "the rows of `{}`", call.name());
    }
    for row in
        command::TABLE.iter().chain(service::FIRST_PROCESS).chain(service::AGENT).chain(service::GATEWAY)
    {
        assert!(row.reason.len() > 4 && !row.reason.ends_with('.'), "the reason `{}`", row.reason);
        let calls: BTreeSet<_> = row.calls.iter().collect();
        assert_eq!(calls.len(), row.calls.len(), "a call stands twice in one row");
        assert!(row.when.iter().all(|test| test.arg < 6));
    }
}

#[test]
fn every_wall_has_a_probe_and_every_probe_a_wall() {
    for wall in walls().into_iter().filter(|wall| *wall != Group::ForeignTables) {
        for arch in ARCHES {
            let probes = |probe: &&Probe| probe.group == wall && probe.number(arch).is_some();
            assert!(PROBES.iter().any(|probe| probes(&probe)), "`{}` has no probe on {arch:?}", wall.name());
        }
    }
    for probe in PROBES {
        assert!(walls().contains(&probe.group));
        let expected = by_table(&command_rows(&Options::default()), None, probe.call, &probe.args);
        assert_eq!(probe.answer.code(), expected, "{probe:?}");
        let without =
            by_table(&command_rows(&Options::default()), Some(probe.group), probe.call, &probe.args);
        assert_eq!(without, Answer::Allow.code(), "{probe:?}");
    }
}

/// The kernel remembers calls whose answer does not depend on arguments; it follows these instructions only
/// (`seccomp_is_const_allow`).
#[test]
fn calls_that_are_always_allowed_never_look_at_an_argument() {
    let program = command_filter_for(&Options::default(), Arch::X86_64);
    for call in
        [Call::read, Call::write, Call::openat, Call::futex, Call::mmap, Call::getppid, Call::epoll_wait]
    {
        let number = call.number(Arch::X86_64).unwrap();
        let arch = Arch::X86_64.audit();
        // Loads of arguments would panic here.
        let data = Data { number, arch, args: [0; 6] };
        let loads = |program: &Program| {
            let mut at = 0;
            let mut a = 0;
            loop {
                let SockFilter { code, jt, jf, k } = program.0[at];
                at += 1;
                match code {
                    0x20 if k >= 16 => return true,
                    0x20 => a = data.word(k),
                    0x15 => at += usize::from(if a == k { jt } else { jf }),
                    0x35 => at += usize::from(if a >= k { jt } else { jf }),
                    0x05 => at += k as usize,
                    _ => return false,
                }
            }
        };
        assert!(!loads(&program), "`{}`", call.name());
    }
}

#[test]
fn the_program_survives_its_bytes() {
    let program = command_filter(&Options::default());
    assert_eq!(program.instructions().len(), program.0.len());
    assert_eq!(Program::from_bytes(&program.to_bytes()), Some(program));
}
