//! Our own regular expressions over bytes.
//!
//! Letters, digits, blanks and cases are those of ASCII: what is looked for is written in it, and tables for every script
//! would cost each run more than all that it looks at.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// Compiles an expression. One that cannot be read is a mistake of ours, which every test finds.
pub(super) fn compile(expression: &str) -> Regex {
    let compiled = RegexBuilder::new(expression).unicode(false).build();
    compiled.unwrap_or_else(|error| unreachable!("an expression of ours: {error}"))
}

/// An expression that is compiled when it is first needed: of a list, most never are.
pub(super) struct Expression {
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Expression {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    pub(super) fn get(&self) -> &Regex {
        self.compiled.get_or_init(|| compile(self.text))
    }
}
