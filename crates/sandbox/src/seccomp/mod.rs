//! The filters for system calls.
//!
//! Guarantees: a filter is made from a table whose every row has a reason, by a compiler that is compared with the
//! table number by number and argument by argument; what stands in no row is answered with `ENOSYS`. Leaves to
//! others: everything that is not in the registers of a call, see [`command`]; reading and answering the
//! notifications; and putting the filter on at the right moment, which is last.

mod calls;
mod command;
mod compile;
mod load;
mod page;
mod probes;
mod program;
mod rules;
mod service;

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod table_tests;

pub use calls::{Arch, Call};
pub use load::{Listener, Threads, load, load_with_listener, set_no_new_privs};
pub use page::{markdown, summary};
pub use probes::{FOREIGN_CALL, PROBES, Probe};
pub use program::{MAX_INSTRUCTIONS, Program, SockFilter};
pub use rules::{Answer, ArgTest, Errno, Group, Row, Switch, Test};

use compile::Source;

/// What a profile may change about the filter of commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Lets programs make user namespaces of their own, for browsers that build a sandbox themselves.
    pub nested_user_namespaces: bool,
    /// Reports every opening of a file, at the cost of a round trip each.
    pub observe_opens: bool,
    /// Only listed programs may be started: no code comes from a file in memory either.
    pub listed_programs: bool,
    /// Takes one group away, to see whether the proof notices.
    #[cfg(any(test, feature = "mutants"))]
    pub without: Option<Group>,
}

/// One of our own processes that runs beside a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Speaks with a model and holds its key; may only propose.
    Agent,
    /// The same with a replayed model that answers on the loopback from the same process.
    AgentWithReplay,
    /// The only way out of a sandbox: accepts at sockets that it was handed, and connects.
    Gateway,
}

/// Returns the filter for commands, for this machine. It notifies: load it with [`load_with_listener`].
pub fn command_filter(options: &Options) -> Program {
    command_filter_for(options, Arch::NATIVE)
}

/// Returns the filter for the first process of a sandbox, to be put on once the command is started.
pub fn first_process_filter() -> Program {
    source(service::FIRST_PROCESS, &[], Arch::NATIVE).compile()
}

/// Returns the filter for one of our own processes.
pub fn service_filter(service: Service) -> Program {
    let (table, switches): (_, &[Switch]) = match service {
        Service::Agent => (service::AGENT, &[]),
        Service::AgentWithReplay => (service::AGENT, &[Switch::Listens]),
        Service::Gateway => (service::GATEWAY, &[]),
    };
    source(table, switches, Arch::NATIVE).compile()
}

/// Returns the groups of the command's filter that hold something back: each has a probe, and a mutant.
pub fn walls() -> Vec<Group> {
    // What only a list of programs brings has a probe of its own, which the filter's table does not hold.
    let always = |row: &Row| row.only != Some(Switch::ListedPrograms);
    let refuses = |group: Group| {
        command::TABLE.iter().any(|row| row.group == group && row.answer.refuses() && always(row))
    };
    Group::ALL.iter().copied().filter(|group| refuses(*group) || *group == Group::ForeignTables).collect()
}

/// Returns the rows of the command's table that are in the filter with these options, in order.
pub fn command_rows(options: &Options) -> Vec<&'static Row> {
    rows(command::TABLE, &switches(options))
}

fn command_filter_for(options: &Options, arch: Arch) -> Program {
    let source = source(command::TABLE, &switches(options), arch);
    #[cfg(any(test, feature = "mutants"))]
    let source = Source { without: options.without, ..source };
    source.compile()
}

fn switches(options: &Options) -> Vec<Switch> {
    let nested = options.nested_user_namespaces.then_some(Switch::NestedUserNamespaces);
    let opens = options.observe_opens.then_some(Switch::ObserveOpens);
    let listed = options.listed_programs.then_some(Switch::ListedPrograms);
    nested.into_iter().chain(opens).chain(listed).collect()
}

fn rows(table: &'static [Row], switches: &[Switch]) -> Vec<&'static Row> {
    table.iter().filter(|row| row.only.is_none_or(|switch| switches.contains(&switch))).collect()
}

fn source(table: &'static [Row], switches: &[Switch], arch: Arch) -> Source<'static> {
    Source { rows: rows(table, switches), default: command::DEFAULT, arch, without: None }
}
