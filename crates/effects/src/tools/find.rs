//! `find`: an expression that looks, removes, writes or starts programs.

use crate::account::Account;
use crate::arg::{Arg, Known};

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if name == "find" {
        find(account, args);
        return true;
    }
    false
}

/// Tests and actions without an argument.
const ALONE: [&str; 30] = [
    "!",
    "(",
    ")",
    ",",
    "-a",
    "-and",
    "-o",
    "-or",
    "-not",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-follow",
    "-empty",
    "-executable",
    "-false",
    "-nogroup",
    "-nouser",
    "-readable",
    "-true",
    "-writable",
    "-ls",
    "-print",
    "-print0",
    "-prune",
    "-daystart",
    "-noleaf",
    "-warn",
    "-nowarn",
];
/// Tests with one.
const WITH_ONE: [&str; 36] = [
    "-maxdepth",
    "-mindepth",
    "-amin",
    "-atime",
    "-cmin",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-mmin",
    "-mtime",
    "-name",
    "-path",
    "-perm",
    "-regex",
    "-regextype",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
    "-context",
    "-printf",
    "-D",
    "-O",
    "-newermt",
];

fn find(account: &mut Account<'_>, args: &[Arg]) {
    let starts = |arg: &&Arg| !matches!(arg.text.as_bytes().first(), Some(b'-' | b'(' | b'!'));
    let mut rest = args.iter().peekable();
    let mut roots = Vec::new();
    while rest.next_if(|arg| matches!(arg.exact(), Some("-H" | "-L" | "-P"))).is_some() {}
    while let Some(root) = rest.next_if(|arg| arg.known == Known::Exactly && starts(arg)) {
        roots.push(root.clone());
    }
    // A pattern that begins with a name is one as well; what may turn out to be anything is not.
    while let Some(root) = rest.next_if(|arg| arg.known == Known::Pattern && !arg.may_be_option()) {
        roots.push(root.clone());
    }
    if roots.is_empty() {
        roots.push(Arg::exactly("."));
    }
    roots.iter().for_each(|root| account.read(root));
    while let Some(arg) = rest.next() {
        match arg.exact() {
            Some(word) if ALONE.contains(&word) || word == "-quit" => {}
            Some(word) if WITH_ONE.contains(&word) => match rest.next() {
                Some(value) if !value.is_one() => account.unknown_argument("find", value),
                _ => {}
            },
            Some("-newer" | "-anewer" | "-cnewer" | "-samefile") => {
                if let Some(file) = one(account, rest.next()) {
                    account.read(file);
                }
            }
            Some("-delete") => roots.iter().for_each(|root| account.delete(root)),
            Some("-fprint" | "-fprint0" | "-fls") => {
                if let Some(file) = one(account, rest.next()) {
                    account.write(file);
                }
            }
            Some("-fprintf") => {
                if let Some(file) = one(account, rest.next()) {
                    account.write(file);
                }
                match rest.next() {
                    Some(format) if !format.is_one() => account.unknown_argument("find", format),
                    _ => {}
                }
            }
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let mut argv: Vec<Arg> = Vec::new();
                let mut ended = false;
                for word in rest.by_ref() {
                    let behind_braces = argv.last().is_some_and(|last| last.text == "{}");
                    match word.exact() {
                        Some(";") => {
                            ended = true;
                            break;
                        }
                        Some("+") if behind_braces => {
                            ended = true;
                            break;
                        }
                        _ => argv.push(word.clone()),
                    }
                }
                // A word that is not known may be the one that ends the command.
                let may_end = |arg: &&Arg| !arg.is_one() || arg.exact().is_none() && arg.text.is_empty();
                if let Some(word) = argv.iter().find(may_end) {
                    account.unknown_argument("find", word);
                }
                if !ended {
                    account.unknown("a command of find has no end");
                }
                if arg.text.ends_with("dir") {
                    account.somewhere(|account| executed(account, &argv, &roots));
                } else {
                    executed(account, &argv, &roots);
                }
            }
            _ => account.unknown_argument("find", arg),
        }
    }
}

/// Returns an argument where it is surely one; the words behind it would be read as something else otherwise.
fn one<'a>(account: &mut Account<'_>, arg: Option<&'a Arg>) -> Option<&'a Arg> {
    let unsure = arg.filter(|arg| !arg.is_one());
    unsure.inspect(|arg| account.unknown_argument("find", arg));
    arg.filter(|arg| arg.is_one())
}

/// Returns what stands for anything that is found there.
fn below(root: &Arg) -> Arg {
    Arg { text: format!("{}/*", root.text), known: Known::Pattern }
}

/// Reads the command that is started for what was found; `{}` is any file below the places where it looks.
fn executed(account: &mut Account<'_>, argv: &[Arg], roots: &[Arg]) {
    let is_found = |arg: &Arg| arg.text.contains("{}");
    let whole = argv.iter().skip(1).all(|arg| !is_found(arg) || arg.text == "{}");
    if !whole || argv.first().is_some_and(is_found) {
        account.unknown("what find starts is known only at run time");
        return;
    }
    // The names begin with the place where it looks, so they are no options unless that is one.
    for root in roots {
        let argv: Vec<Arg> =
            argv.iter().map(|arg| if is_found(arg) { below(root) } else { arg.clone() }).collect();
        account.deeper(|account| account.command(&argv));
    }
}
