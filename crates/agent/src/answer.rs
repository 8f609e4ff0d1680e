//! What came of a proposal, and how the model is told.
//!
//! A refusal is an answer: the model gets the rule, what it may do instead, and that another command with the same
//! effect will get the same answer. What a command claimed is never taken for what happened: the ending comes from
//! the supervisor.

use model::event::{DecisionRecord, Verdict};
use model::{Ending, Tool};
use serde::{Deserialize, Serialize};

/// What came of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ToolResult {
    /// It ran in a sandbox, and ended.
    Ran {
        /// How it ended.
        ending: Ending,
        /// What it printed.
        stdout: Stream,
        /// What it printed as errors.
        stderr: Stream,
        /// Sentences about what else is known: what a layer refused, what was held back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// It was not allowed, or not without a person.
    Denied {
        /// The decision, as it is in the record.
        decision: Box<DecisionRecord>,
        /// Sentences about what else is known: whom it was asked, and what they said.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// It did not run, for a reason that is no decision.
    NotRun {
        /// Why, and what to do.
        reason: String,
    },
    /// It was started, and nobody saw its end; nothing of it was kept.
    Unknown {
        /// What is known.
        reason: String,
    },
}

/// What was kept of an output stream: all of it, or its two ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The beginning, or all of it. Bytes that are not UTF-8 have been replaced.
    pub head: String,
    /// How many bytes between the two ends are missing.
    #[serde(default)]
    pub dropped: u64,
    /// The end, when something is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl Stream {
    /// Makes a stream of which nothing is missing.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { head: text.into(), ..Self::default() }
    }

    fn text(&self) -> String {
        match self.dropped {
            0 => format!("{}{}", self.head, self.tail),
            dropped => format!("{}\n[{dropped} bytes are missing here]\n{}", self.head, self.tail),
        }
    }
}

/// What the model reads about a call, and whether the call did what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl Told {
    pub(crate) fn failure(text: impl Into<String>) -> Self {
        Self { text: format!("error: {}", text.into()), failed: true }
    }

    pub(crate) fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: false }
    }
}

impl ToolResult {
    /// Returns what the model reads.
    pub(crate) fn told(&self, tool: &Tool) -> Told {
        match self {
            Self::Ran { ending, stdout, stderr, notes } => ran(tool, ending, stdout, stderr, notes),
            Self::Denied { decision, notes } => Told { text: denied(decision, notes), failed: true },
            Self::NotRun { reason } => Told::failure(format!("it did not run: {reason}")),
            Self::Unknown { reason } => Told::failure(format!(
                "it was started, but its end is unknown and nothing of it was kept: {reason}. Look at the state \
                 of the workspace before you repeat it"
            )),
        }
    }
}

fn ran(tool: &Tool, ending: &Ending, stdout: &Stream, stderr: &Stream, notes: &[String]) -> Told {
    let mut text = match (tool, ending) {
        (Tool::Search { .. }, Ending::Exited { status: 1 }) if stderr.head.is_empty() => {
            return Told::success(with_notes("nothing matches".to_owned(), notes));
        }
        (Tool::Read { .. } | Tool::List { .. } | Tool::Search { .. }, Ending::Exited { status: 0 }) => {
            let text = stdout.text();
            if text.is_empty() { "it is empty".to_owned() } else { text }
        }
        (Tool::Write { .. } | Tool::Patch { .. }, Ending::Exited { status: 0 }) => {
            format!("done\n{}", stdout.text())
        }
        _ => format!("the command {ending}\n{}", section("stdout", stdout)),
    };
    text = text.trim_end_matches('\n').to_owned();
    if stderr != &Stream::default() {
        text = format!("{text}\n{}", section("stderr", stderr).trim_end_matches('\n'));
    }
    Told { text: with_notes(text, notes), failed: !ending.succeeded() }
}

fn section(name: &str, stream: &Stream) -> String {
    match stream.text() {
        text if text.is_empty() => format!("{name} is empty"),
        text => format!("{name}:\n{text}"),
    }
}

fn with_notes(text: String, notes: &[String]) -> String {
    notes.iter().fold(text, |text, note| format!("{text}\nnote: {note}"))
}

/// The form in which a refusal is told; field names are part of the product.
#[derive(Serialize)]
struct Refusal<'a> {
    denied: &'a str,
    rules: &'a [String],
    advice: &'a str,
    a_person_may_allow_it: bool,
    same_effect_same_answer: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
}

fn denied(decision: &DecisionRecord, notes: &[String]) -> String {
    let refusal = Refusal {
        denied: &decision.reason,
        rules: &decision.rules,
        advice: &decision.advice,
        a_person_may_allow_it: decision.person_may_allow || decision.verdict == Verdict::RequireApproval,
        same_effect_same_answer: true,
        notes,
    };
    // A struct of strings and booleans always has a JSON form.
    serde_json::to_string(&refusal).unwrap_or_else(|_| format!("denied: {}", decision.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Digest, LimitKind, OsText, WorkspacePath};

    fn run() -> Tool {
        Tool::Run { argv: vec![OsText::try_from("true").expect("no NUL")] }
    }

    fn read() -> Tool {
        Tool::Read { path: WorkspacePath::parse("a").expect("inside") }
    }

    fn ended(ending: Ending, stdout: &str, stderr: &str) -> ToolResult {
        ToolResult::Ran {
            ending,
            stdout: Stream::whole(stdout),
            stderr: Stream::whole(stderr),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_command_is_told_with_its_ending_and_both_streams() {
        let told = ended(Ending::Exited { status: 1 }, "out\n", "bad\n").told(&run());
        assert_eq!(told.text, "the command exited with 1\nstdout:\nout\nstderr:\nbad");
        assert!(told.failed);
        let told = ended(Ending::Exited { status: 0 }, "", "").told(&run());
        assert_eq!(told, Told::success("the command exited with 0\nstdout is empty"));
    }

    #[test]
    fn a_file_is_told_as_it_is() {
        assert_eq!(ended(Ending::Exited { status: 0 }, "x = 1\n", "").told(&read()), Told::success("x = 1"));
        assert_eq!(ended(Ending::Exited { status: 0 }, "", "").told(&read()), Told::success("it is empty"));
        let told =
            ended(Ending::Exited { status: 1 }, "", "cat: a: No such file or directory\n").told(&read());
        assert!(told.failed && told.text.contains("No such file"), "{}", told.text);
    }

    #[test]
    fn a_search_without_a_match_is_no_failure() {
        let search = Tool::Search { pattern: "x".into(), path: None };
        assert_eq!(
            ended(Ending::Exited { status: 1 }, "", "").told(&search),
            Told::success("nothing matches")
        );
        assert!(ended(Ending::Exited { status: 2 }, "", "bad pattern").told(&search).failed);
    }

    #[test]
    fn what_is_missing_and_what_else_is_known_are_told() {
        let told = ToolResult::Ran {
            ending: Ending::Limit { limit: LimitKind::WallTime },
            stdout: Stream { head: "a".into(), dropped: 7, tail: "z".into() },
            stderr: Stream::default(),
            notes: vec!["a connection to `192.0.2.1:443` was refused".into()],
        }
        .told(&run());
        assert!(told.failed);
        assert!(told.text.contains("a\n[7 bytes are missing here]\nz"), "{}", told.text);
        assert!(told.text.ends_with("note: a connection to `192.0.2.1:443` was refused"), "{}", told.text);
    }

    #[test]
    fn a_refusal_is_told_with_its_rule_and_what_may_be_done_instead() {
        let decision = DecisionRecord {
            verdict: Verdict::Deny,
            rules: vec!["git-internals".into()],
            reason: "protected-path".into(),
            advice: "leave hooks to a person".into(),
            person_may_allow: false,
            grant: None,
            policy: Digest::of(b"policy"),
        };
        let notes = vec!["a person said no: use the mirror".to_owned()];
        let told = ToolResult::Denied { decision: Box::new(decision.clone()), notes }.told(&run());
        let json: serde_json::Value = serde_json::from_str(&told.text).expect("is JSON");
        assert_eq!(json["notes"][0], "a person said no: use the mirror");
        let told = ToolResult::Denied { decision: Box::new(decision), notes: Vec::new() }.told(&run());
        let json: serde_json::Value = serde_json::from_str(&told.text).expect("is JSON");
        assert_eq!(json.get("notes"), None);
        assert!(told.failed);
        assert_eq!(json["denied"], "protected-path");
        assert_eq!(json["rules"][0], "git-internals");
        assert_eq!(json["a_person_may_allow_it"], false);
        assert_eq!(json["same_effect_same_answer"], true);
    }

    #[test]
    fn an_unknown_end_is_never_told_as_a_success() {
        let told = ToolResult::Unknown { reason: "the engine was stopped".into() }.told(&run());
        assert!(told.failed && told.text.contains("unknown"));
    }
}
