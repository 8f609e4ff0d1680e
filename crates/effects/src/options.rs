//! Options: reads arguments the way programs do, by a short notation of what a program knows.
//!
//! The notation is a list of words. `-abc` are letters without a value, `-o:` is one with a value, `-i?` one whose value
//! may follow in the same argument, and `-L=` one that stands alone and takes its value from the next argument. `--name`,
//! `--name:` and `--name?` are likewise; `-#` is any number. Behind a colon, a question mark or an equals sign stands what
//! the value is used for, see [`Use`]. What a list does not name is not guessed at, and shortened long options are not
//! completed.

use crate::account::Account;
use crate::arg::{Arg, Known};

/// What is done with the value of an option, or with an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is no name of a file, program or host.
    Text,
    /// The file is read.
    Read,
    /// The file is made or changed.
    Write,
    /// The file is removed.
    Delete,
    /// It is a command for a shell.
    Shell,
    /// It starts, or is, code that is not read here.
    Code,
    /// It names another machine.
    Host,
}

/// Whether options may stand behind operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// They may.
    Anywhere,
    /// The first operand ends the options: it is a program with arguments of its own.
    First,
    /// They may, and none of them does any harm: what may turn out to be one is an operand.
    Tame,
}

/// What was read of the arguments.
#[derive(Debug, Default)]
pub(crate) struct Parsed<'a> {
    /// The options that were given, as the notation names them: `-o`, `--name`.
    pub(crate) given: Vec<String>,
    /// What is left.
    pub(crate) operands: Vec<&'a Arg>,
}

impl Parsed<'_> {
    pub(crate) fn has(&self, option: &str) -> bool {
        self.given.iter().any(|given| given == option)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value(Use),
    Attached(Use),
    Alone(Use),
}

impl Account<'_> {
    /// Reads the arguments of a program, notes what its options do, and returns the operands.
    pub(crate) fn options<'a>(
        &mut self,
        program: &str,
        known: &str,
        order: Order,
        args: &'a [Arg],
    ) -> Parsed<'a> {
        let mut parsed = Parsed::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg.exact() == Some("--") {
                break;
            }
            if !arg.may_be_option() {
                parsed.operands.push(arg);
                if order == Order::First {
                    break;
                }
                continue;
            }
            if let Some((name, _)) = arg.text.split_once('=').filter(|(name, _)| is_named(arg, known, name)) {
                parsed.given.push(name.to_owned());
                continue;
            }
            let Some(text) = arg.exact() else {
                if order != Order::Tame {
                    self.unknown_argument(program, arg);
                }
                parsed.operands.push(arg);
                continue;
            };
            let read = match text.strip_prefix("--") {
                Some(name) => self.long(program, known, name, &mut rest, &mut parsed.given),
                None => self.short(program, known, &text[1..], &mut rest, &mut parsed.given),
            };
            if !read {
                self.unknown_argument(program, arg);
            }
        }
        parsed.operands.extend(rest);
        parsed
    }

    fn long<'a>(
        &mut self,
        program: &str,
        known: &str,
        option: &str,
        rest: &mut impl Iterator<Item = &'a Arg>,
        given: &mut Vec<String>,
    ) -> bool {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(Arg::exactly(value))),
            None => (option, None),
        };
        let Some(takes) = look_up_long(known, name) else { return false };
        given.push(format!("--{name}"));
        match (takes, value) {
            (Takes::Nothing, Some(_)) | (Takes::Alone(_), _) => return false,
            (Takes::Nothing | Takes::Attached(_), None) => {}
            (Takes::Value(usage) | Takes::Attached(usage), Some(value)) => {
                self.use_of(program, usage, &value)
            }
            (Takes::Value(usage), None) => match rest.next() {
                Some(value) => self.use_of_value(program, usage, value),
                None => return false,
            },
        }
        true
    }

    fn short<'a>(
        &mut self,
        program: &str,
        known: &str,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a Arg>,
        given: &mut Vec<String>,
    ) -> bool {
        if is_number(letters) && known.split_ascii_whitespace().any(|word| word == "-#") {
            return true;
        }
        for (at, letter) in letters.char_indices() {
            let Some(takes) = look_up_short(known, letter) else { return false };
            given.push(format!("-{letter}"));
            let attached = &letters[at + letter.len_utf8()..];
            match takes {
                Takes::Nothing => {}
                Takes::Alone(usage) => {
                    let Some(value) = rest.next().filter(|_| letters.len() == 1) else { return false };
                    self.use_of_value(program, usage, value);
                }
                Takes::Attached(usage) => {
                    if !attached.is_empty() {
                        self.use_of(program, usage, &Arg::exactly(attached));
                    }
                    return true;
                }
                Takes::Value(usage) => {
                    let attached = (!attached.is_empty()).then(|| Arg::exactly(attached));
                    let Some(value) = attached.as_ref().or_else(|| rest.next()) else { return false };
                    self.use_of_value(program, usage, value);
                    return true;
                }
            }
        }
        true
    }

    /// Notes what is done with the value of an option. A pattern can become several words, of which only the first is the
    /// value.
    fn use_of_value(&mut self, program: &str, usage: Use, value: &Arg) {
        if value.is_one() {
            self.use_of(program, usage, value);
        } else {
            self.unknown_argument(program, value);
        }
    }

    /// Notes what is done with an argument.
    pub(crate) fn use_of(&mut self, program: &str, usage: Use, arg: &Arg) {
        match usage {
            Use::Text => {}
            Use::Read => self.read(arg),
            Use::Write => self.write(arg),
            Use::Delete => self.delete(arg),
            Use::Shell => match arg.exact() {
                Some(script) => self.script_of("sh", script),
                None => self.unknown_argument(program, arg),
            },
            Use::Code => self.unknown(format!("{program} runs code: `{}`", arg.text)),
            Use::Host => self.connect(arg.exact()),
        }
    }
}

/// Tells whether a pattern can become nothing but one option, several times: `--include=*.rs`. Its value is a text.
fn is_named(arg: &Arg, known: &str, name: &str) -> bool {
    const CHOOSE_FILES: [&str; 5] = ["include", "exclude", "exclude-dir", "glob", "iglob"];
    let name = name.strip_prefix("--").filter(|name| CHOOSE_FILES.contains(name));
    let text = |takes| matches!(takes, Takes::Value(Use::Text) | Takes::Attached(Use::Text));
    arg.known == Known::Pattern && name.and_then(|name| look_up_long(known, name)).is_some_and(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn look_up_long(known: &str, name: &str) -> Option<Takes> {
    known.split_ascii_whitespace().find_map(|word| {
        let rest = word.strip_prefix("--")?.strip_prefix(name)?;
        takes(rest)
    })
}

fn look_up_short(known: &str, letter: char) -> Option<Takes> {
    known.split_ascii_whitespace().find_map(|word| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-') && *rest != "#")?;
        match letters.find([':', '?', '=']) {
            Some(_) => takes(letters.strip_prefix(letter)?),
            None => letters.contains(letter).then_some(Takes::Nothing),
        }
    })
}

/// Reads what stands behind a name in the notation; nothing when the name goes on.
fn takes(rest: &str) -> Option<Takes> {
    let usage = |name: &str| match name {
        "" => Some(Use::Text),
        "read" => Some(Use::Read),
        "write" => Some(Use::Write),
        "delete" => Some(Use::Delete),
        "sh" => Some(Use::Shell),
        "code" => Some(Use::Code),
        "host" => Some(Use::Host),
        _ => None,
    };
    match rest.chars().next() {
        None => Some(Takes::Nothing),
        Some(':') => usage(&rest[1..]).map(Takes::Value),
        Some('?') => usage(&rest[1..]).map(Takes::Attached),
        Some('=') => usage(&rest[1..]).map(Takes::Alone),
        Some(_) => None,
    }
}

/// Tells whether a text is of the notation and no letter has two meanings, so that a list with a slip of the pen fails a
/// test.
#[cfg(test)]
pub(crate) fn is_notation(known: &str) -> bool {
    let words = known.split_ascii_whitespace().filter_map(|word| word.strip_prefix('-'));
    let letters = words.filter(|word| !word.starts_with(['-', '#'])).flat_map(|word| {
        match word.find([':', '?', '=']) {
            Some(_) => word[..1].chars(),
            None => word.chars(),
        }
    });
    let mut seen = std::collections::BTreeSet::new();
    letters.into_iter().all(|letter| seen.insert(letter)) && is_written_rightly(known)
}

#[cfg(test)]
fn is_written_rightly(known: &str) -> bool {
    known.split_ascii_whitespace().all(|word| match word.strip_prefix("--") {
        Some(name) => name.find([':', '?']).is_none_or(|at| takes(&name[at..]).is_some()),
        None => match word.strip_prefix('-') {
            Some("#") => true,
            Some(letters) => match letters.find([':', '?', '=']) {
                Some(at) => at == 1 && takes(&letters[1..]).is_some(),
                None => !letters.is_empty(),
            },
            None => false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "-ab -o:write -i?write -n: -# --all --out:write --color? --from:read";

    #[test]
    fn options_are_found_however_they_are_written() {
        for (name, takes) in [
            ('a', Some(Takes::Nothing)),
            ('o', Some(Takes::Value(Use::Write))),
            ('i', Some(Takes::Attached(Use::Write))),
            ('n', Some(Takes::Value(Use::Text))),
            ('#', None),
            ('l', None),
            (':', None),
        ] {
            assert_eq!(look_up_short(KNOWN, name), takes, "{name}");
        }
        assert_eq!(look_up_long(KNOWN, "out"), Some(Takes::Value(Use::Write)));
        assert_eq!(look_up_long(KNOWN, "color"), Some(Takes::Attached(Use::Text)));
        for unknown in ["ou", "outer", "", "fro", "a"] {
            assert_eq!(look_up_long(KNOWN, unknown), None, "{unknown}");
        }
        assert!(is_notation(KNOWN));
        assert!(!is_notation("-abo -o:write"), "a letter with two meanings");
        assert!(!is_notation("-o:writes") && !is_notation("-ab:write") && !is_notation("all"));
    }
}
