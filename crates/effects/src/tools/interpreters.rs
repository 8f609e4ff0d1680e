//! Programs that run code: shells, whose language is read, and others, whose is not.

use crate::account::Account;
use crate::arg::Arg;
use crate::tools::builtins::only_makes_stricter;
use crate::tools::packages::started;

/// Shells whose language is read. Others evaluate more than these.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ash"];

/// Programs that run whatever code they are given, or find in a project.
const OTHERS: [&str; 49] = [
    "ksh",
    "zsh",
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "ipython",
    "node",
    "nodejs",
    "deno",
    "bun",
    "ts-node",
    "tsx",
    "npx",
    "pnpx",
    "bunx",
    "corepack",
    "uvx",
    "pipx",
    "ruby",
    "irb",
    "perl",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "R",
    "julia",
    "java",
    "jshell",
    "scala",
    "groovy",
    "kotlin",
    "erl",
    "elixir",
    "ghci",
    "runghc",
    "ocaml",
    "tclsh",
    "wish",
    "expect",
    "osascript",
    "pwsh",
    "powershell",
    "fish",
    "csh",
    "tcsh",
    "gdb",
];

/// Programs that run what a file of the project says.
const BUILDERS: [&str; 30] = [
    "make",
    "gmake",
    "ninja",
    "cmake",
    "meson",
    "bazel",
    "buck2",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "ant",
    "rake",
    "just",
    "task",
    "tox",
    "nox",
    "pytest",
    "jest",
    "vitest",
    "mocha",
    "tsc",
    "webpack",
    "vite",
    "eslint",
    "ctest",
    "scons",
    "sbt",
    "pre-commit",
    "invoke",
];

/// Editors and readers that can start a shell.
const INTERACTIVE: [&str; 16] = [
    "vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more", "man", "most", "screen",
    "tmux", "script", "top",
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if SHELLS.contains(&name) {
        shell(account, name, args);
    } else if OTHERS.contains(&name) || is_versioned(name) {
        account.unknown(format!("{name} runs code that is not read here"));
        named(account, name, args);
    } else if BUILDERS.contains(&name) {
        account.unknown(format!("{name} runs what the files of the project say"));
    } else if INTERACTIVE.contains(&name) {
        account.unknown(format!("{name} can start a shell, and write files"));
    } else {
        return false;
    }
    true
}

/// Reads the program that an interpreter is told to run by its name: `python3 -m pip`, `npx prettier`.
fn named(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    match args {
        [first, module @ ..] if name.starts_with("python") && first.exact() == Some("-m") => {
            started(account, module);
        }
        args if ["npx", "pnpx", "uvx", "bunx", "corepack"].contains(&name) => started(account, args),
        _ => {}
    }
}

/// Tells whether a name is one of an interpreter with its version behind it, as `python3.11`.
fn is_versioned(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    plain != name && OTHERS.contains(&plain)
}

fn shell(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    let mut by_option = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let letters = match arg.exact() {
            Some("--norc" | "--noprofile" | "--posix") => continue,
            Some("--") => break,
            Some(text) => match text.strip_prefix(['-', '+']) {
                Some(letters) => letters,
                None => return operand(account, name, by_option, arg),
            },
            None => return operand(account, name, by_option, arg),
        };
        by_option |= letters.contains('c') && arg.text.starts_with('-');
        if letters.contains('o') && !rest.next().is_some_and(only_makes_stricter) {
            account.unknown(format!("an option of {name} is not known here"));
        }
        // `-l` reads what the system has for a login, and a home that is made new for each action; `-i` and `-s` read
        // commands from the standard input.
        if letters.is_empty() || !letters.bytes().all(|letter| b"lceuxfCo".contains(&letter)) {
            account.unknown_argument(name, arg);
        }
    }
    match rest.next() {
        Some(arg) => operand(account, name, by_option, arg),
        None => account.unknown(format!("{name} runs what it reads from its standard input")),
    }
}

fn operand(account: &mut Account<'_>, name: &str, by_option: bool, arg: &Arg) {
    match arg.exact() {
        Some(script) if by_option => account.script_of(name, script),
        None if by_option => account.unknown(format!("what {name} runs is known only at run time")),
        _ => {
            account.read(arg);
            account.unknown(format!("{name} runs a script, which is not read here: `{}`", arg.text));
        }
    }
}
