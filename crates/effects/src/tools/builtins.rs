//! Commands that a shell carries out itself.

use crate::account::Account;
use crate::arg::Arg;

/// Commands that only say or end something.
const QUIET: [&str; 13] = [
    ":", "true", "false", "echo", "pwd", "exit", "return", "break", "continue", "shift", "type", "times",
    "umask",
];

/// Reads a command of the shell itself; tells whether it is one.
pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    match name {
        "cd" => cd(account, args),
        "eval" => eval(account, args),
        "exec" => another(account, name, without_name(args)),
        "builtin" => another(account, name, args),
        "command" => match args.first().and_then(Arg::exact) {
            Some("-v" | "-V") => {}
            _ => another(account, name, args),
        },
        "test" | "[" => test(account, name, args),
        "printf" => printf(account, args),
        "read" => args.iter().for_each(|arg| match arg.exact() {
            Some("-r" | "-s") => {}
            Some(variable) if !variable.starts_with('-') => account.sets(variable),
            _ => account.unknown_argument(name, arg),
        }),
        // `jobs -x` runs a command, and `wait -p` gives a value to a variable.
        "jobs" | "wait" => {
            let number = |arg: &Arg| arg.exact().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit()));
            args.iter().filter(|arg| !number(arg)).for_each(|arg| account.unknown_argument(name, arg));
        }
        "set" => args
            .iter()
            .filter(|arg| !only_makes_stricter(arg))
            .for_each(|arg| account.unknown_argument(name, arg)),
        "trap" => trap(account, args),
        "source" | "." => {
            args.iter().for_each(|arg| account.read(arg));
            account.unknown("the script runs another one, which is not read here");
        }
        // The shell carries these out for itself: functions, names for commands, variables and options.
        "alias" | "bind" | "declare" | "disown" | "enable" | "export" | "getopts" | "hash" | "let"
        | "local" | "mapfile" | "pushd" | "popd" | "readarray" | "readonly" | "shopt" | "typeset"
        | "ulimit" | "unalias" | "unset" | "fc" | "history" | "complete" | "compgen" | "coproc" | "fg"
        | "bg" | "suspend" | "logout" | "kill" | "caller" | "dirs" => {
            account.unknown(format!("`{name}` can change what later commands do"))
        }
        quiet => return QUIET.contains(&quiet),
    }
    true
}

fn cd(account: &mut Account<'_>, args: &[Arg]) {
    match args {
        [] => account.enter(&Arg::exactly("~")),
        [only] if !only.may_be_option() => account.enter(only),
        [dashes, only] if dashes.exact() == Some("--") => account.enter(only),
        _ => {
            account.enter(&Arg::unknown());
            account.unknown("where `cd` goes is not known here");
        }
    }
}

fn eval(account: &mut Account<'_>, args: &[Arg]) {
    let script: Option<Vec<&str>> = args.iter().map(Arg::exact).collect();
    match script {
        Some(words) => account.deeper(|account| account.script(&words.join(" "))),
        None => account.unknown("what `eval` runs is known only at run time"),
    }
}

/// Leaves out what `exec -a NAME` calls the program: the file that follows is what runs.
fn without_name(args: &[Arg]) -> &[Arg] {
    match args {
        [option, _, rest @ ..] if option.exact() == Some("-a") => rest,
        _ => args,
    }
}

fn another(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    match args.first() {
        Some(first) if first.may_be_option() => account.unknown_argument(name, first),
        _ => account.deeper(|account| account.shell_argv(args)),
    }
}

/// Tells whether a text would be a path outside the directory where a command is.
pub(crate) fn names_elsewhere(text: &str) -> bool {
    text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..")
}

/// Operators of `test` between two words.
const BETWEEN: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

/// `test -v` evaluates what it is given, so each word must be known, or surely be none of the operators.
fn test(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    let words = match args.split_last() {
        Some((last, words)) if name == "[" && last.exact() == Some("]") => words,
        _ => args,
    };
    let exact: Vec<Option<&str>> = words.iter().map(Arg::exact).collect();
    let surely_values = match exact.as_slice() {
        [_, Some(between), _] | [Some("!"), _, Some(between), _] if BETWEEN.contains(between) => true,
        [Some(_), _] => true,
        [Some("!"), Some(operator), _] => operator.starts_with('-'),
        all => all.iter().all(Option::is_some),
    };
    let evaluates = |arg: &&Arg| matches!(arg.exact(), Some("-v" | "-R"));
    let unsure = words.iter().find(|arg| evaluates(arg) || !arg.is_one());
    if let Some(arg) = unsure.or_else(|| words.iter().find(|arg| !surely_values && arg.exact().is_none())) {
        account.unknown_argument(name, arg);
    }
    // Whether a file is there, and of what kind, is read as well.
    words.iter().filter(|arg| names_elsewhere(&arg.text)).for_each(|arg| account.read(arg));
}

fn printf(account: &mut Account<'_>, args: &[Arg]) {
    match args.first() {
        Some(first) if first.may_be_option() && first.exact() != Some("--") => {
            account.unknown_argument("printf", first)
        }
        _ => {}
    }
    // `%n` gives a value to a variable.
    let format = args.iter().find(|arg| arg.exact() != Some("--"));
    let sets = |format: &str| {
        let conversions = format.split('%').skip(1);
        conversions
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.*'".contains(c)))
            .any(|part| part.starts_with('n'))
    };
    if let Some(format) = format.filter(|format| format.exact().is_none_or(sets)) {
        account.unknown_argument("printf", format);
    }
}

/// Tells whether an argument of `set`, or of a shell's `-o`, only makes a shell stop earlier or say more.
pub(crate) fn only_makes_stricter(arg: &Arg) -> bool {
    let Some(text) = arg.exact() else { return false };
    let names = ["pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber"];
    let letters = |letters: &str| letters.bytes().all(|letter| b"euxfCo".contains(&letter));
    names.contains(&text) || text.strip_prefix(['-', '+']).is_some_and(letters)
}

fn trap(account: &mut Account<'_>, args: &[Arg]) {
    match args.first() {
        None => {}
        Some(script) => match script.exact() {
            Some("-" | "-l" | "-p" | "") => {}
            // It runs wherever the shell is then, which may be where it is now.
            Some(script) => {
                account.inside(|account| account.script(script));
                account.somewhere(|account| account.script(script));
            }
            None => account.unknown("what `trap` runs is known only at run time"),
        },
    }
}
