//! Words of a shell: what is left of them when the shell has taken its quotes away, and the commands inside them.

use brush_parser::ast::Word;
use brush_parser::word::{self, Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource};

use crate::account::Account;
use crate::arg::{Arg, Known};
use crate::shell::options;

impl Account<'_> {
    /// Returns what a word becomes, and reads the commands inside it.
    pub(crate) fn word(&mut self, word: &Word) -> Arg {
        self.word_text(&word.value)
    }

    pub(crate) fn word_text(&mut self, text: &str) -> Arg {
        match word::parse(text, &options()) {
            Ok(pieces) => {
                let mut read = Read::new();
                self.pieces(&pieces, text, Quoting::None, &mut read);
                read.finished()
            }
            Err(_) => {
                self.unknown(format!("`{text}` cannot be read as a word of a shell"));
                Arg::unknown()
            }
        }
    }

    /// Reads the commands inside a text that a shell expands and passes on, as a here-document.
    pub(crate) fn expanded_text(&mut self, text: &str) {
        match word::parse_heredoc(text, &options()) {
            Ok(pieces) => {
                let mut read = Read::new();
                self.pieces(&pieces, text, Quoting::Document, &mut read);
            }
            Err(_) => self.unknown("a here-document cannot be read"),
        }
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], source: &str, quoting: Quoting, read: &mut Read) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => read.plain(text, quoting),
                WordPiece::SingleQuotedText(text) => read.literal(text),
                WordPiece::AnsiCQuotedText(text) => match ansi_c(text).filter(|_| self.is_bash()) {
                    Some(text) => read.literal(&text),
                    None => {
                        self.unknown("what `$'…'` means, and where it ends, depends on the shell");
                        read.unknown(Quoting::None);
                    }
                },
                WordPiece::EscapeSequence(text) => read.literal(escaped(text)),
                WordPiece::DoubleQuotedSequence(inner) => self.pieces(inner, source, Quoting::Double, read),
                // What a translation says is known to nobody here.
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(inner, source, Quoting::Double, read);
                    read.unknown(Quoting::None);
                }
                WordPiece::TildeExpansion(TildeExpr::Home) => read.literal("~"),
                WordPiece::TildeExpansion(_) => read.unknown(Quoting::None),
                WordPiece::CommandSubstitution(script) => {
                    self.inside(|account| account.script(script));
                    read.unknown(quoting);
                }
                WordPiece::BackquotedCommandSubstitution(script) => {
                    if quoting == Quoting::Document && script.contains("\\\"") {
                        self.unknown("what `\\\"` is in back quotes of a here-document depends on the shell");
                    }
                    let script = unescaped_in_backquotes(script, quoting);
                    self.inside(|account| account.script(&script));
                    read.unknown(quoting);
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.arithmetic(&expression.value);
                    read.unknown(quoting);
                }
                WordPiece::ParameterExpansion(parameter) => {
                    self.parameter(parameter, source.get(piece.start_index..piece.end_index));
                    let one = if is_one(parameter) { quoting } else { Quoting::None };
                    read.unknown(one);
                }
            }
        }
    }

    /// Reads an arithmetic expression. The value of a name is evaluated again, and what stands in the brackets of
    /// an array there is expanded, commands in it too: only numbers are sure to do nothing.
    pub(crate) fn arithmetic(&mut self, expression: &str) {
        let numbers = |c: char| c.is_ascii_digit() || " \t()+-*/%<>=!&|^~?:,".contains(c);
        if !expression.chars().all(numbers) {
            self.unknown("an arithmetic expression with names in it is evaluated again at run time");
        }
    }

    /// Reads the expansion of a parameter.
    fn parameter(&mut self, expression: &ParameterExpr, source: Option<&str>) {
        let plain = match expression {
            ParameterExpr::Parameter { parameter, indirect: false } => !is_indexed(parameter),
            ParameterExpr::ParameterLength { parameter, indirect: false } => !is_indexed(parameter),
            ParameterExpr::UseDefaultValues { parameter, indirect: false, .. }
            | ParameterExpr::UseAlternativeValue { parameter, indirect: false, .. }
            | ParameterExpr::RemoveSmallestSuffixPattern { parameter, indirect: false, .. }
            | ParameterExpr::RemoveLargestSuffixPattern { parameter, indirect: false, .. }
            | ParameterExpr::RemoveSmallestPrefixPattern { parameter, indirect: false, .. }
            | ParameterExpr::RemoveLargestPrefixPattern { parameter, indirect: false, .. } => {
                // Shells differ in what quotes mean in here, and bash starts what stands in `<(…)`.
                let inside = source.unwrap_or("${$").get(2..).unwrap_or("$");
                !is_indexed(parameter) && !inside.contains(['$', '`', '\'', '"', '\\', '<', '>', '('])
            }
            _ => false,
        };
        if !plain {
            self.unknown("an expansion of a variable can set others or run commands");
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
    /// A here-document: as in double quotes, which are characters like others there.
    Document,
}

/// What was read of a word so far.
struct Read {
    arg: Arg,
    /// What no quotes protect: a shell looks for patterns and braces in it.
    bare: String,
}

impl Read {
    fn new() -> Self {
        Self { arg: Arg::exactly(""), bare: String::new() }
    }

    /// Adds text that no shell changes. What stands behind something unknown says nothing about how a word begins.
    fn literal(&mut self, text: &str) {
        if self.arg.known == Known::Exactly {
            self.arg.text.push_str(text);
        }
    }

    /// Adds text that stands for itself.
    fn plain(&mut self, text: &str, quoting: Quoting) {
        self.literal(text);
        if quoting == Quoting::None {
            self.bare.push_str(text);
        }
    }

    /// Adds something that is known only at run time; outside quotes it can be several words.
    fn unknown(&mut self, quoting: Quoting) {
        self.arg.known = match (self.arg.known, quoting) {
            (Known::Exactly | Known::Beginning, Quoting::Double | Quoting::Document) => Known::Beginning,
            _ => Known::Not,
        };
    }

    fn finished(mut self) -> Arg {
        let bare = &self.bare;
        let braces = bare.contains('{') && (bare.contains(',') || bare.contains(".."));
        // An open bracket is one of a pattern only where it is closed; alone it is a program.
        let pattern = bare.contains(['*', '?']) || bare.contains('[') && bare.contains(']');
        self.arg.known = match (self.arg.known, braces, pattern) {
            (_, true, _) | (Known::Beginning, _, true) => Known::Not,
            (Known::Exactly, false, true) => Known::Pattern,
            (known, false, _) => known,
        };
        self.arg
    }
}

/// Tells whether an expansion is one word in double quotes.
fn is_one(expression: &ParameterExpr) -> bool {
    match expression {
        ParameterExpr::Parameter { parameter, indirect: false } => {
            matches!(parameter, Parameter::Positional(_) | Parameter::Named(_))
        }
        ParameterExpr::ParameterLength { .. } => true,
        _ => false,
    }
}

fn is_indexed(parameter: &Parameter) -> bool {
    matches!(parameter, Parameter::NamedWithIndex { .. })
}

/// Takes the backslash away from a character.
fn escaped(text: &str) -> &str {
    match text.strip_prefix('\\') {
        // A line that goes on in the next one.
        Some("\n") => "",
        Some(rest) => rest,
        None => text,
    }
}

/// Inside back quotes a backslash before `$`, a back quote or a backslash belongs to those, and before a double quote
/// where the back quotes stand in such.
fn unescaped_in_backquotes(script: &str, quoting: Quoting) -> String {
    let mut text = String::with_capacity(script.len());
    let mut characters = script.chars().peekable();
    while let Some(c) = characters.next() {
        match characters.peek() {
            Some('$' | '`' | '\\') if c == '\\' => text.extend(characters.next()),
            Some('"') if c == '\\' && quoting == Quoting::Double => text.extend(characters.next()),
            _ => text.push(c),
        }
    }
    text
}

/// Decodes `$'…'` as bash does; nothing where that has bytes that are no characters, or an escape that we do not know.
fn ansi_c(text: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        let c = rest.next()?;
        let (digits, radix) = match c {
            'a' => ("", 7),
            'b' => ("", 8),
            'e' | 'E' => ("", 27),
            'f' => ("", 12),
            'n' => ("", 10),
            'r' => ("", 13),
            't' => ("", 9),
            'v' => ("", 11),
            '\\' | '\'' | '"' | '?' => ("", u32::from(c)),
            'x' => (digits(rest.as_str(), 16, 2), 16),
            'u' => (digits(rest.as_str(), 16, 4), 16),
            'U' => (digits(rest.as_str(), 16, 8), 16),
            '0'..='7' => {
                let length = digits(rest.as_str(), 8, 2).len();
                let code = u32::from_str_radix(&format!("{c}{}", &rest.as_str()[..length]), 8).ok()?;
                rest = rest.as_str()[length..].chars();
                decoded.push(ascii(code)?);
                continue;
            }
            _ => return None,
        };
        if matches!(c, 'x' | 'u' | 'U') {
            let code = u32::from_str_radix(digits, radix).ok()?;
            rest = rest.as_str()[digits.len()..].chars();
            decoded.push(if c == 'x' {
                ascii(code)?
            } else {
                char::from_u32(code).filter(|c| *c != '\0')?
            });
        } else {
            decoded.push(char::from_u32(radix)?);
        }
    }
    Some(decoded)
}

/// Returns the character of a byte, where a byte is one. A NUL would end the text.
fn ascii(code: u32) -> Option<char> {
    char::from_u32(code).filter(|c| c.is_ascii() && *c != '\0')
}

fn digits(text: &str, radix: u32, most: usize) -> &str {
    let length = text.chars().take(most).take_while(|c| c.is_digit(radix)).count();
    &text[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_c_quotes_are_decoded() {
        assert_eq!(ansi_c(r"\x72\155\u0020-\e").as_deref(), Some("rm -\x1b"));
        assert_eq!(ansi_c(r"a\'b\n").as_deref(), Some("a'b\n"));
        for odd in [r"\xff", r"\0", r"\q", r"\x", r"\cA", r"\u0"] {
            assert_eq!(ansi_c(odd), None, "{odd}");
        }
    }
}
