//! From a table to a program for the kernel.
//!
//! Guarantees: for every number and every argument the program answers what the first row that applies says, and the
//! default where there is none; a call made through another machine's table is stopped before its number is looked
//! at. Numbers are found by halving, so a call costs about ten comparisons, and the kernel remembers those that are
//! always allowed and runs no instruction for them. Leaves to others: the rows, and loading ([`super::load()`]).
//!
//! Why this is not `seccompiler`: a filter of that crate knows one action for what matches and one for what does not,
//! none of them is the notification, and it looks for a number by comparing with each one in turn.

use super::calls::{Arch, Call};
use super::program::{Program, SockFilter};
use super::rules::{Answer, ArgTest, Group, Row, Test};

/// A table, and what is left out of it.
pub(super) struct Source<'a> {
    /// The rows that are in the filter, in order.
    pub rows: Vec<&'a Row>,
    /// The answer where no row applies.
    pub default: Answer,
    /// The machine.
    pub arch: Arch,
    /// A group whose refusals are taken away.
    pub without: Option<Group>,
}

/// What is answered to one call: tests in order, each with its answer, and an answer at the end.
#[derive(Clone, PartialEq, Eq)]
struct Cases {
    tested: Vec<(Vec<SockFilter>, u32)>,
    last: u32,
}

/// The same while it is gathered: no row that always applies may have come yet.
#[derive(Clone, Default)]
struct OpenCases {
    tested: Vec<(Vec<SockFilter>, u32)>,
    last: Option<u32>,
}

impl OpenCases {
    fn close(self, default: u32) -> Cases {
        let mut cases = Cases { tested: self.tested, last: self.last.unwrap_or(default) };
        // Tests that change nothing would only keep the kernel from remembering the answer.
        while cases.tested.last().is_some_and(|(_, answer)| *answer == cases.last) {
            cases.tested.pop();
        }
        cases
    }
}

impl Source<'_> {
    /// Returns the program.
    pub(super) fn compile(&self) -> Program {
        let mut code = Vec::new();
        if self.without != Some(Group::ForeignTables) {
            code.push(load(ARCH));
            code.extend(jump_if(JEQ, self.arch.audit(), true, 1));
            code.push(ret(Answer::Trap.code()));
        }
        code.push(load(NUMBER));
        code.extend(search(&self.ranges()));
        Program(code)
    }

    /// Returns where each run of equal answers starts; the first is 0 and the last is open.
    fn ranges(&self) -> Vec<(u32, Cases)> {
        let default = Cases { tested: Vec::new(), last: self.answer(Group::Unlisted, self.default).code() };
        let mut numbered: Vec<(u32, Cases)> = self
            .cases()
            .into_iter()
            .zip(Call::ALL)
            .filter_map(|(open, call)| Some((call.number(self.arch)?, open.close(default.last))))
            .collect();
        numbered.sort_by_key(|(number, _)| *number);
        let mut ranges = vec![(0, default.clone())];
        for (number, cases) in numbered {
            begin(&mut ranges, number, cases);
            begin(&mut ranges, number + 1, default.clone());
        }
        ranges
    }

    /// Returns what the rows say of each call, in the order of [`Call::ALL`].
    fn cases(&self) -> Vec<OpenCases> {
        let mut all = vec![OpenCases::default(); Call::ALL.len()];
        for row in &self.rows {
            let (tests, answer) = (tests(row.when), self.answer(row.group, row.answer).code());
            for call in row.calls {
                let cases = &mut all[*call as usize];
                match cases.last {
                    Some(_) => {}
                    None if row.when.is_empty() => cases.last = Some(answer),
                    None => cases.tested.push((tests.clone(), answer)),
                }
            }
        }
        all
    }

    fn answer(&self, group: Group, answer: Answer) -> Answer {
        let taken_away = self.without == Some(group) && (answer.refuses() || answer == Answer::Notify);
        if taken_away { Answer::Allow } else { answer }
    }
}

/// Starts a new range, in place of one that would be empty, and not at all when nothing changes.
fn begin(ranges: &mut Vec<(u32, Cases)>, start: u32, cases: Cases) {
    if ranges.last().is_some_and(|(last, _)| *last == start) {
        ranges.pop();
    }
    if ranges.last().is_none_or(|(_, last)| *last != cases) {
        ranges.push((start, cases));
    }
}

/// Finds the range of the loaded number by halving.
fn search(ranges: &[(u32, Cases)]) -> Vec<SockFilter> {
    let (low, high) = match ranges {
        [] => return Vec::new(),
        [(_, cases)] => return leaf(cases),
        _ => ranges.split_at(ranges.len() / 2),
    };
    let below = search(low);
    let mut code = jump_if(JGE, high[0].0, true, below.len());
    code.extend(below);
    code.extend(search(high));
    code
}

fn leaf(cases: &Cases) -> Vec<SockFilter> {
    let mut code = Vec::new();
    for (tests, answer) in &cases.tested {
        code.extend(tests);
        code.push(ret(*answer));
    }
    code.push(ret(cases.last));
    code
}

/// Returns the tests of one row, which pass over the one instruction that follows unless all of them hold.
fn tests(when: &[ArgTest]) -> Vec<SockFilter> {
    when.iter().rev().fold(Vec::new(), |after, test| {
        // One more than what follows here: the answer.
        let mut code = one_test(test, after.len() + 1);
        code.extend(after);
        code
    })
}

/// Returns one test, which goes on when it holds and passes over `skip` instructions when it does not.
fn one_test(test: &ArgTest, skip: usize) -> Vec<SockFilter> {
    let mut code = vec![load(argument(test.arg))];
    match test.test {
        Test::AnyOf(values) => code.extend(any_of(values, skip)),
        Test::Masked(mask, values) => {
            code.push(SockFilter { code: AND, jt: 0, jf: 0, k: mask });
            code.extend(any_of(values, skip));
        }
        Test::HasAny(mask) => code.extend(jump_if(JSET, mask, false, skip)),
        Test::OnlyBits(mask) => code.extend(jump_if(JSET, !mask, true, skip)),
    }
    code
}

fn any_of(values: &[u32], skip: usize) -> Vec<SockFilter> {
    let Some((last, others)) = values.split_last() else {
        // No number is in an empty list.
        return vec![ja(skip)];
    };
    others.iter().rev().fold(jump_if(JEQ, *last, false, skip), |after, value| {
        let mut code = jump_if(JEQ, *value, true, after.len());
        code.extend(after);
        code
    })
}

// linux/bpf_common.h
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JA: u16 = 0x05;
const JEQ: u16 = 0x15;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;
const RET: u16 = 0x06;

// Where the words of `struct seccomp_data` begin (linux/seccomp.h). Both machines put the low half first.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

const fn argument(index: u8) -> u32 {
    16 + 8 * index as u32
}

const fn load(offset: u32) -> SockFilter {
    SockFilter { code: LOAD, jt: 0, jf: 0, k: offset }
}

const fn ret(answer: u32) -> SockFilter {
    SockFilter { code: RET, jt: 0, jf: 0, k: answer }
}

const fn ja(distance: usize) -> SockFilter {
    SockFilter { code: JA, jt: 0, jf: 0, k: distance as u32 }
}

/// Passes over `distance` instructions when the comparison comes out as `when`, and goes on otherwise.
///
/// A comparison can pass over 255 at most; a longer way takes a second instruction.
fn jump_if(code: u16, k: u32, when: bool, distance: usize) -> Vec<SockFilter> {
    match (u8::try_from(distance), when) {
        (Ok(jt), true) => vec![SockFilter { code, jt, jf: 0, k }],
        (Ok(jf), false) => vec![SockFilter { code, jt: 0, jf, k }],
        (Err(_), true) => vec![SockFilter { code, jt: 0, jf: 1, k }, ja(distance)],
        (Err(_), false) => vec![SockFilter { code, jt: 1, jf: 0, k }, ja(distance)],
    }
}
