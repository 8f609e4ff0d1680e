//! `awk`: a language that can start programs, write files and read others.

use crate::account::Account;
use crate::arg::Arg;
use crate::options::Order;

const OPTIONS: &str = "-F: -v: --field-separator: --assign: --posix --re-interval --sandbox -S";

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if !["awk", "gawk", "mawk", "nawk", "original-awk"].contains(&name) {
        return false;
    }
    // Options end at the program, as POSIX has it.
    let parsed = account.options(name, OPTIONS, Order::First, args);
    match parsed.operands.split_first() {
        Some((program, files)) => {
            if !program.exact().is_some_and(only_prints) {
                account.unknown(format!("what {name} does by `{}` is not known here", program.text));
            }
            for file in files {
                // `NAME=VALUE` is an assignment, and reading a file of that name too much is no harm.
                account.read(file);
            }
        }
        None => account.unknown(format!("{name} is given no program")),
    }
    true
}

/// Tells whether a program has none of the signs and words by which awk reaches out: pipes, redirections, `system`,
/// `getline`, `close`, and the calls of functions by their names in text.
fn only_prints(program: &str) -> bool {
    let program = ["||", ">=", "<=", "\\n", "\\t"]
        .iter()
        .fold(program.to_owned(), |text, plain| text.replace(plain, " "));
    let signs = ['|', '>', '<', '@', '`', '\\'];
    let words = [
        "system", "getline", "close", "fflush", "include", "load", "ARGV", "ENVIRON", "PROCINFO", "SYMTAB",
        "FUNCTAB", "function", "func",
    ];
    !program.contains(signs) && !words.iter().any(|word| program.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_only_prints_is_told_from_one_that_reaches_out() {
        for program in [
            "{print $1}",
            "NR==3",
            "NR>=10 && NR<=20 || /x/",
            "{printf \"%d\\n\", $1}",
            "/x/ {n++} END {print n}",
            "BEGIN{FS=\":\"} {print $2}",
        ] {
            assert!(only_prints(program), "{program}");
        }
        for program in [
            "BEGIN{system(\"touch p\")}",
            "{print > \"x\"}",
            "{print | \"sh\"}",
            "BEGIN{\"id\" | getline x}",
            "@load \"x\"",
            "{f=\"sys\" \"tem\"; @f(\"id\")}",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
