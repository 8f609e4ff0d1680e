//! The verbs, each with arguments that are right.

/// A verb with arguments that are right.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    /// What follows the name. `TASK` and `ACTION` stand for ids that nothing has.
    pub(crate) words: &'static [&'static str],
    /// Whether it reads settings.
    pub(crate) settings: bool,
    /// Whether it opens the state directory.
    pub(crate) state: bool,
    /// How it is told about a workspace: an option, or nothing.
    pub(crate) workspace: Option<&'static str>,
    /// Whether it takes a profile.
    pub(crate) profile: bool,
    /// Which words name a task or an action, when it takes one.
    pub(crate) names: &'static [&'static str],
}

const PLAIN: Verb =
    Verb { name: "", words: &[], settings: true, state: true, workspace: None, profile: false, names: &[] };
const ON_A_WORKSPACE: Verb = Verb { workspace: Some("--workspace"), ..PLAIN };

pub(crate) const VERBS: &[Verb] = &[
    Verb { name: "run", words: &["--", "true"], profile: true, names: &["--task", "TASK"], ..ON_A_WORKSPACE },
    Verb {
        name: "shell",
        words: &["--", "true"],
        profile: true,
        names: &["--task", "TASK"],
        ..ON_A_WORKSPACE
    },
    Verb {
        name: "agent",
        words: &["--replay", "session.jsonl", "x"],
        workspace: Some("--repo"),
        profile: true,
        ..PLAIN
    },
    Verb {
        name: "task new",
        words: &["--outcome", "x", "--level", "2", "--dirty"],
        profile: true,
        ..ON_A_WORKSPACE
    },
    Verb { name: "task list", ..ON_A_WORKSPACE },
    Verb { name: "task show", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "task resume", words: &["TASK"], names: &["TASK"], ..PLAIN },
    Verb { name: "task stop", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb {
        name: "task freeze",
        words: &["--reason", "x"],
        names: &["TASK", "--reason", "x"],
        ..ON_A_WORKSPACE
    },
    Verb { name: "stop", words: &["--list"], ..PLAIN },
    Verb { name: "diff", names: &["ACTION"], ..ON_A_WORKSPACE },
    Verb { name: "apply", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "discard", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "undo", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "fork", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "log", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "show", names: &["ACTION"], ..ON_A_WORKSPACE },
    Verb { name: "why", names: &["ACTION"], ..ON_A_WORKSPACE },
    Verb { name: "net log", names: &["TASK"], ..ON_A_WORKSPACE },
    Verb { name: "net explain", names: &["ACTION"], ..ON_A_WORKSPACE },
    Verb { name: "net test", words: &["https://example.com/"], state: false, ..ON_A_WORKSPACE },
    Verb { name: "credential list", ..PLAIN },
    Verb { name: "credential show", words: &["forge"], ..PLAIN },
    Verb { name: "credential revoke", words: &["forge"], ..PLAIN },
    Verb { name: "credential rotate", words: &["forge"], ..PLAIN },
    Verb { name: "doctor", state: false, profile: true, ..PLAIN },
    Verb { name: "audit show", names: &["--action", "ACTION"], ..PLAIN },
    Verb { name: "audit verify", ..PLAIN },
    Verb { name: "audit export", ..PLAIN },
    Verb { name: "audit checkpoint", ..PLAIN },
    Verb { name: "audit prune", words: &["--dry-run", "--class", "runs", "--older-than", "1d"], ..PLAIN },
    Verb { name: "audit key", ..PLAIN },
    Verb { name: "policy decide", words: &["--", "ls"], state: false, ..PLAIN },
    Verb { name: "policy check", words: &["rules.cedar"], state: false, ..PLAIN },
    Verb { name: "policy explain", words: &["--", "ls"], state: false, ..PLAIN },
    Verb { name: "policy prove", state: false, ..PLAIN },
    Verb { name: "policy diff", words: &["default", "cautious"], state: false, ..PLAIN },
    Verb { name: "policy replay", words: &["default"], ..PLAIN },
    Verb { name: "policy suggest", names: &["--action", "ACTION"], ..PLAIN },
    Verb { name: "policy test", words: &["table.jsonl"], state: false, ..PLAIN },
    Verb { name: "policy show", words: &["default"], state: false, ..PLAIN },
    Verb { name: "approvals list", ..PLAIN },
    Verb { name: "approvals show", words: &["apr-aaaaaaaaaaaaaaaa"], ..PLAIN },
    Verb { name: "approvals approve", words: &["apr-aaaaaaaaaaaaaaaa", "--yes"], ..PLAIN },
    Verb { name: "approvals deny", words: &["apr-aaaaaaaaaaaaaaaa"], ..PLAIN },
    Verb { name: "approvals revoke", words: &["apr-aaaaaaaaaaaaaaaa"], ..PLAIN },
    Verb { name: "approvals export", words: &["apr-aaaaaaaaaaaaaaaa"], ..PLAIN },
    Verb {
        name: "approvals sign",
        words: &["requests.json", "--answer", "approve", "--yes"],
        state: false,
        ..PLAIN
    },
    Verb { name: "approvals stats", ..PLAIN },
    Verb { name: "approvals render", words: &["--", "ls"], state: false, ..PLAIN },
    Verb { name: "config explain", state: false, ..PLAIN },
    Verb { name: "config check", state: false, settings: false, ..PLAIN },
    Verb { name: "config schema", state: false, settings: false, ..PLAIN },
    Verb { name: "reproduce", words: &["ACTION"], names: &["ACTION"], ..PLAIN },
    Verb { name: "artifacts list", names: &["ACTION"], ..PLAIN },
    Verb { name: "artifacts get", words: &["report"], names: &["--from", "ACTION", "report"], ..PLAIN },
    Verb { name: "deps list", names: &["TASK"], ..PLAIN },
    Verb { name: "deps who-used", words: &["serde"], ..PLAIN },
    Verb { name: "deps sbom", words: &["ACTION"], names: &["ACTION"], ..PLAIN },
    Verb {
        name: "hold add",
        words: &["--repo", ".", "--reason", "x"],
        names: &["ACTION", "--reason", "x"],
        ..PLAIN
    },
    Verb { name: "hold list", ..PLAIN },
    Verb { name: "hold lift", words: &["legal-aaaaaaaaaaaaaaaa", "--reason", "x"], ..PLAIN },
    Verb { name: "gc", words: &["--dry-run"], ..PLAIN },
    Verb { name: "bwrap", words: &["--ro-bind", "/", "/", "--", "true"], ..PLAIN },
    Verb { name: "completions", words: &["bash"], state: false, settings: false, ..PLAIN },
    Verb { name: "demo", state: false, settings: false, ..PLAIN },
];

impl Verb {
    /// Returns the words of the verb itself.
    pub(crate) fn words_of_name(&self) -> Vec<&'static str> {
        self.name.split(' ').collect()
    }

    /// Returns a whole command line that is right.
    pub(crate) fn line(&self) -> Vec<&'static str> {
        self.words_of_name().into_iter().chain(self.words.iter().copied()).map(id).collect()
    }

    /// Returns the command line with options between the verb and its arguments.
    pub(crate) fn line_with(&self, options: &[&'static str]) -> Vec<&'static str> {
        let words = self.words_of_name().into_iter().chain(options.iter().copied());
        words.chain(self.words.iter().copied()).map(id).collect()
    }

    /// Returns the command line that names a task or an action which is not there.
    pub(crate) fn line_of_nothing(&self) -> Vec<&'static str> {
        let options =
            self.names.first().is_some_and(|name| name.starts_with("--")) && !self.names.contains(&"report");
        if options {
            self.line_with(self.names)
        } else {
            self.words_of_name().into_iter().chain(self.names.iter().copied()).map(id).collect()
        }
    }
}

fn id(word: &'static str) -> &'static str {
    match word {
        "TASK" => "task-aaaaaaaaaaaaaaaa",
        "ACTION" => "act-aaaaaaaaaaaaaaaa",
        word => word,
    }
}
