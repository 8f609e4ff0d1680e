//! The tables as a page for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::command;
use super::rules::{Answer, Group, Row, Switch};
use super::service;

/// Returns the page `docs/seccomp.md`.
pub fn markdown() -> String {
    let mut page = String::from(HEAD);
    for group in Group::ALL {
        let rows: Vec<&Row> = command::TABLE.iter().filter(|row| row.group == *group).collect();
        if !rows.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(page, "\n### {}\n\n{}\n\n", group.name(), group.about());
            table(&mut page, &rows);
        }
    }
    page.push_str(SERVICES);
    let services = [
        ("The first process", service::FIRST_PROCESS),
        ("The agent", service::AGENT),
        ("The gateway", service::GATEWAY),
    ];
    for (title, rows) in services {
        let _ = write!(page, "\n### {title}\n\n");
        table(&mut page, &rows.iter().collect::<Vec<_>>());
    }
    page
}

fn table(page: &mut String, rows: &[&Row]) {
    page.push_str("| calls | when | answer | reason |\n| --- | --- | --- | --- |\n");
    for row in rows {
        let calls: Vec<String> = row.calls.iter().map(|call| format!("`{}`", call.name())).collect();
        let when: Vec<&str> = row.when.iter().map(|test| test.text).chain(row.only.map(option)).collect();
        let when = if when.is_empty() { "always".to_owned() } else { when.join("; ") };
        let _ = writeln!(page, "| {} | {when} | {} | {} |", calls.join(" "), answer(row.answer), row.reason);
    }
}

const fn option(switch: Switch) -> &'static str {
    match switch {
        Switch::NestedUserNamespaces => "the profile allows nested user namespaces",
        Switch::ObserveOpens => "the profile asks for the files that are read",
        Switch::ListedPrograms => "the grant lists the programs that may be started",
        Switch::Listens => "a model is replayed",
    }
}

const fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Allow => "allowed",
        Answer::Fail(errno) => errno.name(),
        Answer::Notify => "reported, then allowed",
        Answer::Trap => "SIGSYS",
    }
}

/// Counts the calls of the command's table by what the last row for each says.
pub fn summary() -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for call in super::Call::ALL {
        let rows: Vec<&Row> =
            command::TABLE.iter().filter(|row| row.only.is_none() && row.calls.contains(call)).collect();
        let kind = match rows.as_slice() {
            [] => "without a row",
            [row] if row.answer == Answer::Allow => "always allowed",
            [row] if row.answer == Answer::Notify => "reported",
            [_] => "always refused",
            _ => "by argument",
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

const HEAD: &str = "\
# The system call filter

Written from the tables in `crates/sandbox/src/seccomp`; change those, then run
`cargo test -p fumehood-sandbox --test seccomp_page -- --ignored`.

The filter of a command is an allow-list for x86_64 and aarch64. For each call the first row that applies decides, in
the order of the table in `command.rs`; a number without a row gets `ENOSYS`. Conditions look at the low 32 bits of an
argument, as the kernel does for each of these. A call through the 32-bit table of the machine (`int 0x80`, a 32-bit
program) gets `SIGSYS`, and the x32 numbers get `ENOSYS`.

The filter is one wall of several. It cannot see what lies in memory: paths, addresses, and the mode that `openat2`
creates a file with. The set-group-id bit may be set, since directories of shared repositories have it; writable places
are mounted `nosuid`, and neither bit leaves through a layer. Where an unprivileged program would hear `EPERM` from the
kernel as well, the filter says `EACCES`, so that the proof can tell whose answer it got.

A program that wants to answer notifications itself (`SECCOMP_FILTER_FLAG_NEW_LISTENER`) gets `EBUSY` from the kernel,
which allows one listener for a process. Everything else of seccomp and Landlock is open to programs that confine
themselves.

## Commands
";

const SERVICES: &str = "
## Our own processes

None of these filters reports anything. A number without a row gets `ENOSYS`.
";
