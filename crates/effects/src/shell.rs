//! The shell: reads a script and finds the commands in it, wherever they stand.
//!
//! Every part of the grammar is visited; the parser's tree is matched without a catch-all, so that a new kind of node
//! does not go by unseen.

use std::panic::resume_unwind;
use std::thread::{self, Builder};

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, BinaryPredicate, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SimpleCommand, SubshellCommand, UnaryPredicate,
    Word,
};
use brush_parser::{Parser, ParserOptions};

use crate::account::Account;
use crate::arg::{Arg, Known};
use crate::place::PROCESS;
use crate::tools::builtins::names_elsewhere;
use crate::variables::{is_harmless, is_of_a_script};

/// The longest script that is read, in bytes. A longer one is no command that somebody types.
const LENGTH_MAX: usize = 16 << 10;
/// How many brackets may be open at once: the parser tries several ways for each, one inside the other.
const OPEN_MAX: usize = 24;
/// How many round brackets may be open at once.
const ROUND_MAX: usize = 10;
/// How many words may open a body, whether or not they are closed again: the parser goes down by some calls for each.
const OPENERS_MAX: usize = 400;
/// The stack for a script, in bytes; memory is taken only for what is used of it.
const STACK: usize = 256 << 20;

/// How a shell reads a script that it is given by `-c`: without its extended patterns, so that `!(…)` is a command.
pub(crate) fn options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

impl Account<'_> {
    /// Reads a script.
    pub(crate) fn script(&mut self, text: &str) {
        let deep = most_open(text) > OPEN_MAX || openers(text) > OPENERS_MAX || is_slow(text);
        if text.len() > LENGTH_MAX || deep {
            self.unknown("the script is too long or too deep to be read");
            return;
        }
        // Shells end the comment there, and the parser does not always.
        if text.lines().any(|line| line.contains('#') && line.trim_end_matches('\r').ends_with('\\')) {
            self.unknown("a line with a comment seems to go on in the next one");
        }
        if self.has_room() {
            return self.script_here(text);
        }
        let read = thread::scope(|scope| {
            let account = &mut *self;
            let reading = Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                account.with_room(|account| account.script_here(text));
                true
            });
            // The parser breaks on nothing that is let through to it, as far as fuzzing goes; a release ends there.
            reading.is_ok_and(|reading| reading.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        if !read {
            self.unknown("the script could not be read");
        }
    }

    fn script_here(&mut self, text: &str) {
        match Parser::new(text.as_bytes(), &options()).parse_program() {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list)),
            Err(error) => self.unknown(format!("the script cannot be read: {error}")),
        }
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.and_or(&item.0);
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for command in &pipeline.seq {
            self.shell_command(command);
        }
    }

    fn shell_command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.redirects(redirects.as_ref());
                self.deeper(|account| account.compound(compound));
            }
            Command::Function(function) => {
                // A function can bear the name of any program, and is called without a trace of where it came from.
                self.unknown(format!("the script defines a function, `{}`", function.fname.value));
                self.redirects(function.body.1.as_ref());
                self.deeper(|account| account.compound(&function.body.0));
            }
            Command::ExtendedTest(test, redirects) => {
                self.only_of_bash("[[");
                self.redirects(redirects.as_ref());
                self.extended_test(&test.expr);
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(command) => {
                self.only_of_bash("((");
                self.arithmetic(&command.expr.value);
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.only_of_bash("for ((");
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.arithmetic(&part.value);
                }
                self.repeatedly(|account| account.list(&clause.body.list));
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.subshell(subshell),
            CompoundCommand::ForClause(clause) => {
                self.sets(&clause.variable_name);
                for value in clause.values.iter().flatten() {
                    self.expanded(value);
                }
                self.repeatedly(|account| account.list(&clause.body.list));
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition);
                    }
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.repeatedly(|account| {
                    account.list(&clause.0);
                    account.list(&clause.1.list);
                });
            }
            CompoundCommand::Coprocess(coprocess) => {
                let name = coprocess.name.as_ref().map_or("COPROC", |name| name.value.as_str());
                self.sets(name);
                self.shell_command(&coprocess.body);
            }
        }
    }

    fn subshell(&mut self, subshell: &SubshellCommand) {
        self.inside(|account| account.list(&subshell.list));
    }

    fn simple(&mut self, command: &SimpleCommand) {
        let mut assigned = Vec::new();
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            if let CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) = item {
                self.assigned(assignment);
                assigned.push(assignment.name.to_string());
            } else {
                self.argument(item);
            }
        }
        // What stands before a program is in its environment; alone it stays in the shell's.
        let is_ours = if command.word_or_name.is_some() { is_harmless } else { is_of_a_script };
        let reads = command.word_or_name.as_ref().is_some_and(|word| word.value == "read");
        let for_read = |variable: &str| reads && variable == "IFS";
        for variable in assigned.iter().filter(|variable| !is_ours(variable) && !for_read(variable)) {
            self.unknown(format!("the variable {variable} can change what programs do"));
        }
        self.named_descriptors(command);
        let Some(name) = &command.word_or_name else { return };
        let mut argv = vec![self.word(name)];
        let behind = command.suffix.iter().flat_map(|suffix| &suffix.0);
        argv.extend(behind.filter_map(|item| self.argument(item)));
        self.shell_argv(&argv);
    }

    /// `{NAME}>file` gives the number of a descriptor to a variable; the parser takes `{NAME}` for a word.
    fn named_descriptors(&mut self, command: &SimpleCommand) {
        let before = command.prefix.iter().flat_map(|prefix| &prefix.0);
        let items: Vec<_> = before.chain(command.suffix.iter().flat_map(|suffix| &suffix.0)).collect();
        let redirects = items.iter().any(|item| matches!(item, CommandPrefixOrSuffixItem::IoRedirect(_)));
        let is_name = |word: &str| word.len() > 2 && word.starts_with('{') && word.ends_with('}');
        let words = items.iter().filter_map(|item| match item {
            CommandPrefixOrSuffixItem::Word(word) => Some(word),
            _ => None,
        });
        if redirects && words.chain(&command.word_or_name).any(|word| is_name(&word.value)) {
            self.unknown("a redirection gives a value to a variable");
        }
    }

    /// Notes that a shell other than bash reads something in another way.
    fn only_of_bash(&mut self, what: &str) {
        if !self.is_bash() {
            self.unknown(format!("what `{what}` does depends on the shell: run it with bash"));
        }
    }

    /// Returns what a word becomes where a shell looks for the files that a pattern matches.
    fn expanded(&mut self, word: &Word) -> Arg {
        let arg = self.word(word);
        if arg.known == Known::Pattern {
            self.read(&arg);
        }
        arg
    }

    /// Reads what stands behind the name of a command, and returns the argument that it is, if it is one.
    fn argument(&mut self, item: &CommandPrefixOrSuffixItem) -> Option<Arg> {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                self.redirect(redirect);
                None
            }
            CommandPrefixOrSuffixItem::Word(word) => Some(self.expanded(word)),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                self.assigned(assignment);
                Some(self.word(word))
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.subshell(subshell);
                Some(Arg::exactly(PROCESS))
            }
        }
    }

    fn assigned(&mut self, assignment: &Assignment) {
        if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
            self.arithmetic(index);
        }
        match &assignment.value {
            AssignmentValue::Scalar(value) => drop(self.word(value)),
            AssignmentValue::Array(values) => {
                for (key, value) in values {
                    // A key is an arithmetic expression, and a word that begins like one may be taken for it.
                    if let Some(key) = key {
                        self.arithmetic(&key.value);
                    }
                    if value.value.starts_with('[') {
                        self.unknown("the script fills an array by keys that are evaluated");
                    }
                    key.iter().chain([value]).for_each(|word| drop(self.word(word)));
                }
            }
        }
    }

    /// Notes that the script gives a value to a variable.
    pub(crate) fn sets(&mut self, name: &str) {
        if !is_of_a_script(name) {
            self.unknown(format!("the variable {name} can change what programs do"));
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) => {
                let target = self.word(word);
                self.opened(kind, &target);
            }
            IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => {}
            IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => {
                self.subshell(subshell);
            }
            IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
                let target = self.word(word);
                // `>&NAME` writes to a file when NAME is no number; a number may be followed by one dash.
                let descriptor =
                    |text: &str| text.strip_suffix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit());
                if !target.exact().is_some_and(descriptor) {
                    self.opened(kind, &target);
                }
            }
            IoRedirect::HereDocument(_, document) if document.here_end.value.contains('$') => {
                self.unknown("where a here-document ends depends on the shell");
            }
            IoRedirect::HereDocument(_, document) if document.requires_expansion => {
                self.expanded_text(&document.doc.value);
            }
            IoRedirect::HereDocument(..) => {}
            IoRedirect::HereString(_, word) => drop(self.word(word)),
            IoRedirect::OutputAndError(word, _) => {
                let target = self.word(word);
                self.opened(&IoFileRedirectKind::Write, &target);
            }
        }
    }

    fn opened(&mut self, kind: &IoFileRedirectKind, target: &Arg) {
        // The shell itself connects to these names.
        let host = ["/dev/tcp/", "/dev/udp/"].iter().find_map(|prefix| target.text.strip_prefix(prefix));
        if let Some(host) = host {
            self.connect((target.known == Known::Exactly).then(|| host.replacen('/', ":", 1)).as_deref());
            return;
        }
        match kind {
            IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => self.read(target),
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::Clobber
            | IoFileRedirectKind::DuplicateOutput => self.write(target),
            IoFileRedirectKind::ReadAndWrite => {
                self.read(target);
                self.write(target);
            }
        }
    }

    fn extended_test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.extended_test(left);
                self.extended_test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.extended_test(inner)
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                if matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned
                        | UnaryPredicate::ShellVariableIsSetAndNameRef
                ) {
                    self.arithmetic(&word.value);
                }
                let word = self.word(word);
                if names_elsewhere(&word.text) {
                    self.read(&word);
                }
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                if is_arithmetic(predicate) {
                    self.arithmetic(&left.value);
                    self.arithmetic(&right.value);
                }
                self.word(left);
                self.word(right);
            }
        }
    }
}

fn is_arithmetic(predicate: &BinaryPredicate) -> bool {
    matches!(
        predicate,
        BinaryPredicate::ArithmeticEqualTo
            | BinaryPredicate::ArithmeticNotEqualTo
            | BinaryPredicate::ArithmeticLessThan
            | BinaryPredicate::ArithmeticLessThanOrEqualTo
            | BinaryPredicate::ArithmeticGreaterThan
            | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
    )
}

/// Returns how many brackets of a script are open at once, at most, quoted ones among them.
fn most_open(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' | b'[' => open += 1,
            b')' | b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Tells whether a script has forms that the parser tries in many ways, each inside the other. None of them is needed
/// for what is read here.
fn is_slow(text: &str) -> bool {
    let indexed = text.match_indices("${").filter(|(at, _)| {
        let name = text[at + 2..].trim_start_matches(|c: char| c.is_alphanumeric() || "_!#".contains(c));
        name.starts_with('[')
    });
    let cases = text.split(|c: char| !c.is_alphanumeric()).filter(|word| *word == "case");
    // A substitution that is not closed in a here-document is looked for in all that follows, again and again.
    let in_documents = text.contains("<<") && text.matches("$(").count() + text.matches('`').count() > 4;
    let round = most_open(&text.replace(['{', '}', '[', ']'], " ")) > ROUND_MAX;
    round || indexed.count() > 2 || cases.count() > 6 || in_documents || has_huge_number(text)
}

/// Tells whether there is a number that no number of the parser can hold, where it looks for one: a descriptor, a place in
/// the stack of directories, a parameter, an index. So long a one is not looked at anywhere.
fn has_huge_number(text: &str) -> bool {
    const BEFORE: [&str; 9] = ["~", "~+", "~-", "$", "${", "${#", "${!", "[", ":"];
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let length = from.bytes().take_while(u8::is_ascii_digit).count();
        let (_, after) = from.split_at(length);
        let is_one = BEFORE.iter().any(|sign| before.ends_with(sign)) || after.starts_with(['<', '>']);
        if length > 18 || (length > 8 && is_one) {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns how many words a script has that open a body, and back quotes, which open and close by the same sign.
fn openers(text: &str) -> usize {
    let opens = |word: &&str| ["if", "do", "case", "then", "else", "elif", "in", "!", "time"].contains(word);
    text.split(|c: char| c.is_ascii_whitespace() || c == ';').filter(opens).count()
        + text.matches('`').count()
}
