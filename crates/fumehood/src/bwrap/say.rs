//! What the caller of `bwrap` reads on standard error, in the form that its harness looks for.
//!
//! DeepSeek Harness sorts the output of a command that failed by two texts. A line with [`FATAL`] says that no sandbox
//! could be had. `Permission denied` or `Read-only file system` says that a person may allow more, and the agent is
//! invited to ask. So what a person may allow is said with the second, and what is final with neither.

use model::text::escape;

use crate::output::shape::DecisionPart;

/// What a line starts with when no sandbox could be had; the harness is told to look for it.
pub const FATAL: &str = "fumehood: fatal";

/// What a harness takes for "ask a person".
const INVITES: [&str; 2] = ["Permission denied", "Read-only file system"];

/// Says that no sandbox could be had.
pub fn fatal(error: &str) -> String {
    format!("{FATAL}: {}", final_text(error))
}

/// Says what policy decided, so that the agent is invited to ask a person only where a person could help.
pub fn denial(decision: &DecisionPart) -> String {
    let (reason, advice) = (final_text(&decision.reason), final_text(&decision.advice));
    if decision.person_may_allow {
        format!("fumehood: {} ({reason}): {advice}; a person may allow it", INVITES[0])
    } else {
        format!(
            "fumehood: denied by policy ({reason}): {advice}; another command with the same effect gets the same answer"
        )
    }
}

/// Says in one line what was asked for beyond policy, and what is given instead; nothing when nothing was.
pub fn narrowed(narrowed: &[String]) -> Option<String> {
    (!narrowed.is_empty()).then(|| format!("fumehood: narrowed: {}", final_text(&narrowed.join(", "))))
}

/// Returns foreign text escaped, with the harness's own words broken up in it.
fn final_text(text: &str) -> String {
    let escaped = escape(text).into_owned();
    let signatures = INVITES.iter().chain(&[FATAL]);
    signatures.fold(escaped, |text, signature| text.replace(signature, &signature.replace(' ', "_")))
}

#[cfg(test)]
mod tests {
    use model::event::Verdict;
    use model::{Digest, Timestamp};

    use super::*;

    fn decision(person_may_allow: bool, advice: &str) -> DecisionPart {
        DecisionPart {
            at: Timestamp::from_nanos(0),
            verdict: Verdict::Deny,
            rules: Vec::new(),
            reason: "push-denied".to_owned(),
            advice: advice.to_owned(),
            person_may_allow,
            grant: None,
            policy: Digest::of(b""),
        }
    }

    fn invites(text: &str) -> bool {
        INVITES.iter().any(|signature| text.contains(signature))
    }

    #[test]
    fn only_what_a_person_may_allow_invites_to_ask() {
        assert!(invites(&denial(&decision(true, "commit instead"))));
        let last = denial(&decision(false, "no: Permission denied\nRead-only file system fumehood: fatal"));
        assert!(!invites(&last) && !last.contains(FATAL) && !last.contains('\n'), "{last}");
        let fatal = fatal("`Permission denied` is a directory");
        assert!(fatal.starts_with(FATAL) && !invites(&fatal), "{fatal}");
        let line = narrowed(&["/Read-only file system (not shown)".to_owned()]).expect("something was");
        assert!(!invites(&line), "{line}");
        assert_eq!(narrowed(&[]), None);
    }
}
