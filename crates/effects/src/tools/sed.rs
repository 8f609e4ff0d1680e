//! `sed`: a program of its own that can write files and run commands.

use crate::account::Account;
use crate::arg::Arg;
use crate::options::Order;

const OPTIONS: &str = "-nErsuz -e: -f: -i? -l: --quiet --silent --expression: --file: --in-place? --line-length: --posix \
    --regexp-extended --separate --sandbox --unbuffered --null-data --debug --follow-symlinks";

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if name != "sed" {
        return false;
    }
    let parsed = account.options(name, OPTIONS, Order::Anywhere, args);
    let scripts = scripts(args, &parsed.operands, parsed.has("-e") || parsed.has("--expression"));
    if parsed.has("-f") || parsed.has("--file") {
        account.unknown("sed runs a program from a file");
    }
    let by_option =
        parsed.has("-e") || parsed.has("--expression") || parsed.has("-f") || parsed.has("--file");
    for script in &scripts {
        if !only_prints(script) {
            account.unknown(format!("what sed does by `{script}` is not known here"));
        }
    }
    let in_place = parsed.has("-i") || parsed.has("--in-place");
    for file in parsed.operands.iter().skip(usize::from(!by_option)) {
        account.read(file);
        if in_place {
            account.write(file);
        }
    }
    if scripts.is_empty() && !by_option {
        account.unknown("what sed does is known only at run time");
    }
    true
}

/// Returns the programs: the values of `-e`, or the first operand.
fn scripts(args: &[Arg], operands: &[&Arg], by_option: bool) -> Vec<String> {
    if !by_option {
        return operands.first().and_then(|script| script.exact()).map(str::to_owned).into_iter().collect();
    }
    let mut scripts = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.exact() else { continue };
        if text == "--" {
            break;
        }
        if let Some(script) = text.strip_prefix("--expression=") {
            scripts.push(script.to_owned());
        } else if text == "--expression" {
            scripts.extend(rest.next().map(known));
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
            // The letters before the first that takes a value.
            match letters.split_once(['e', 'f', 'l', 'i']) {
                Some((before, script)) if letters.as_bytes()[before.len()] == b'e' => {
                    scripts.push(if script.is_empty() {
                        rest.next().map(known).unwrap_or_default()
                    } else {
                        script.to_owned()
                    });
                }
                _ => {}
            }
        }
    }
    scripts
}

/// Returns a program, or one that is sure not to be understood where it is not known.
fn known(arg: &Arg) -> String {
    arg.exact().unwrap_or("?").to_owned()
}

/// Tells whether a program only chooses, changes and prints lines: each command is an address and one of a few
/// letters, or an `s` whose flags neither write nor run.
fn only_prints(script: &str) -> bool {
    script.split(['\n', ';']).all(|command| {
        let command = command.trim();
        command.is_empty() || without_address(command).is_some_and(prints)
    }) || is_one_substitution(script.trim())
}

/// A substitution may have a `;` in it, so it is tried as a whole too.
fn is_one_substitution(script: &str) -> bool {
    without_address(script).is_some_and(|command| command.starts_with('s') && prints(command))
}

/// Takes away numbers, `$`, and regular expressions between slashes.
fn without_address(command: &str) -> Option<&str> {
    let mut rest = command;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "$,+~! ".contains(c));
        match rest.strip_prefix('/') {
            Some(inside) => rest = behind(inside, '/')?,
            None => return Some(rest),
        }
    }
}

/// Returns what stands behind the next `end` that has no backslash before it.
fn behind(text: &str, end: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // Inside brackets the end would be a character like others; who is not sure does not guess.
            '[' if end != '[' => {
                let rest = &text[at + 1..];
                let odd = ["]", "^]", "["].iter().any(|start| rest.starts_with(start));
                if odd || rest.split(']').next().is_some_and(|inside| inside.contains(end)) {
                    return None;
                }
            }
            c if c == end => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

fn prints(command: &str) -> bool {
    if matches!(
        command,
        "p" | "P" | "d" | "D" | "q" | "Q" | "=" | "n" | "N" | "h" | "H" | "g" | "G" | "x" | "l"
    ) {
        return true;
    }
    let Some((separator, rest)) = command.strip_prefix('s').and_then(|rest| {
        let separator = rest.chars().next()?;
        Some((separator, &rest[separator.len_utf8()..]))
    }) else {
        return false;
    };
    if separator.is_alphanumeric() || separator == '\\' || separator.is_whitespace() {
        return false;
    }
    let flags = behind(rest, separator).and_then(|rest| behind(rest, separator));
    flags.is_some_and(|flags| flags.trim_end().chars().all(|c| c.is_ascii_digit() || "gpiI".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_only_prints_is_told_from_one_that_writes_or_runs() {
        for script in
            ["1,20p", "$p", "/a/,/b/p", "s/a/b/", "s|a;b|c|gp", "5q", "/^x/d;s/y/z/2", "1!G;h", "s/[0-9]*//"]
        {
            assert!(only_prints(script), "{script}");
        }
        for script in [
            "1e touch p",
            "e",
            "w out",
            "s/a/b/w out",
            "s/a/b/e",
            "s/a/b/gpe",
            "r /etc/passwd",
            "1{p;w x\n}",
            "s/[/]/x/w y",
            "s/[]/]/p;/w out/p",
            "s/[[:alpha:]/]/p;/w o/p",
            "s/[^]/]/p;/w o/p",
            "b",
            "y/a/b/;w x",
            "s/a/\nb/e",
            "/a/w x",
        ] {
            assert!(!only_prints(script), "{script}");
        }
    }
}
