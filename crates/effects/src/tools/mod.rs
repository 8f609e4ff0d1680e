//! Programs that are known: what their arguments make them do.
//!
//! Most stand in a table, [`table`]; those whose arguments are a language of their own have a module.

pub(crate) mod builtins;

mod awk;
mod database;
mod files;
mod find;
mod git;
mod interpreters;
mod network;
mod packages;
mod release;
mod sed;
mod table;
mod wrappers;

use crate::account::Account;
use crate::arg::Arg;

/// Reads the arguments of a program by its name.
pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    let modules = [
        files::read,
        find::read,
        sed::read,
        awk::read,
        git::read,
        wrappers::read,
        packages::read,
        release::read,
        network::read,
        database::read,
        interpreters::read,
        table::read,
    ];
    if !only_asks_for_the_version(name, args) && !modules.iter().any(|module| module(account, name, args)) {
        account.unknown(format!("what {name} does is not known here"));
    }
}

/// Programs that do nothing else when they are asked for their version, whatever directory they are in. Those that let a
/// project choose their version run what it chose.
const SAY_THEIR_VERSION: [&str; 26] = [
    "awk", "bash", "clang", "cmake", "curl", "docker", "gcc", "gdb", "git", "grep", "java", "javac", "jq",
    "make", "node", "perl", "php", "pip", "pip3", "psql", "python", "python3", "rg", "sed", "sqlite3", "tar",
];

fn only_asks_for_the_version(name: &str, args: &[Arg]) -> bool {
    let asks = matches!(args, [only] if only.exact() == Some("--version"));
    asks && SAY_THEIR_VERSION.contains(&name)
}
