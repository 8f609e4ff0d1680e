//! Programs: which one a name means, and who reads its arguments.

use model::Effect;

use crate::account::Account;
use crate::arg::Arg;
use crate::tools;

/// Where the system has its programs. Nothing that runs in a sandbox can write there.
const SYSTEM: [&str; 6] =
    ["/usr/local/bin/", "/usr/bin/", "/bin/", "/usr/local/sbin/", "/usr/sbin/", "/sbin/"];

impl Account<'_> {
    /// Reads a command that no shell has changed: a program and its arguments.
    pub(crate) fn command(&mut self, argv: &[Arg]) {
        let Some((program, args)) = argv.split_first() else { return };
        let Some(written) = program.exact() else {
            self.unknown("which program runs is known only at run time");
            return;
        };
        self.add(Effect::Run { program: written.to_owned() });
        if !self.may_read(argv.len()) {
            return;
        }
        match system_name(written) {
            Some(name) => self.deeper(|account| tools::read(account, name, args)),
            None => self.unknown(format!("`{written}` is a program of its own, whatever its name")),
        }
    }

    /// Reads a command in a script, where some names mean the shell itself.
    pub(crate) fn shell_argv(&mut self, argv: &[Arg]) {
        let Some((name, args)) = argv.split_first() else { return };
        let built_in = name.exact().is_some_and(|name| tools::builtins::read(self, name, args));
        if !built_in {
            self.command(argv);
        }
    }
}

/// Returns the name of a program that is looked up in the search path, or lies where the system has its own.
fn system_name(written: &str) -> Option<&str> {
    let name = SYSTEM.iter().find_map(|directory| written.strip_prefix(directory)).unwrap_or(written);
    (!name.contains('/') && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_the_system_s_own_directories_are_trusted() {
        assert_eq!(system_name("ls"), Some("ls"));
        assert_eq!(system_name("/usr/bin/git"), Some("git"));
        for other in ["./ls", "bin/ls", "/tmp/x/git", "/usr/bin/../../tmp/git", "/usr/bin/", "", "~/bin/ls"] {
            assert_eq!(system_name(other), None, "{other}");
        }
    }
}
