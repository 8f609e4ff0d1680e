//! When there is colour, and which.

use std::fmt::Display;

use crate::args::ColorChoice;
use crate::settings::Environment;

/// Paints text for one stream, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// Paints nothing.
    pub const PLAIN: Self = Self { colour: false };
    /// Paints.
    pub const COLOURED: Self = Self { colour: true };

    /// Decides for a stream: what was asked for goes first, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM.
    pub fn decide(choice: Option<ColorChoice>, environment: &Environment, is_terminal: bool) -> Self {
        let is = |name: &str, value: &str| environment.get(name).is_some_and(|own| own == value);
        let forced = environment.filled("CLICOLOR_FORCE").is_some() && !is("CLICOLOR_FORCE", "0");
        let colour = match choice {
            Some(ColorChoice::Always) => true,
            Some(ColorChoice::Never) => false,
            Some(ColorChoice::Auto) | None if environment.filled("NO_COLOR").is_some() => false,
            Some(ColorChoice::Auto) | None if forced => true,
            Some(ColorChoice::Auto) | None => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
        };
        Self { colour }
    }

    /// Tells whether this paints.
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// For what the eye should find first.
    pub fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    /// For labels and what is only there for completeness.
    pub fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }

    /// For what held, and for what was added.
    pub fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    /// For what did not hold, and for what was taken away.
    pub fn bad(self, text: impl Display) -> String {
        self.with("31", text)
    }

    /// For what needs a look.
    pub fn caution(self, text: impl Display) -> String {
        self.with("33", text)
    }

    /// For names that can be given to another command.
    pub fn name(self, text: impl Display) -> String {
        self.with("36", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured<const N: usize>(
        choice: Option<ColorChoice>,
        environment: [(&str, &str); N],
        terminal: bool,
    ) -> bool {
        Paint::decide(choice, &Environment::from(environment), terminal).is_coloured()
    }

    #[test]
    fn colour_follows_the_flag_then_the_environment_then_the_terminal() {
        assert!(coloured(None, [], true));
        assert!(!coloured(None, [], false));
        assert!(!coloured(None, [("NO_COLOR", "1")], true));
        assert!(coloured(None, [("NO_COLOR", "")], true), "set to nothing is not set");
        assert!(coloured(None, [("CLICOLOR_FORCE", "1")], false));
        assert!(!coloured(None, [("CLICOLOR_FORCE", "0")], false));
        assert!(!coloured(None, [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true));
        assert!(!coloured(None, [("CLICOLOR", "0")], true));
        assert!(!coloured(None, [("TERM", "dumb")], true));
        assert!(coloured(Some(ColorChoice::Always), [("NO_COLOR", "1")], false));
        assert!(!coloured(Some(ColorChoice::Never), [("CLICOLOR_FORCE", "1")], true));
        assert!(!coloured(Some(ColorChoice::Auto), [("NO_COLOR", "1")], true));
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(Paint::PLAIN.bad("x"), "x");
        assert_eq!(Paint::COLOURED.bad("x"), "\x1b[31mx\x1b[0m");
    }
}
