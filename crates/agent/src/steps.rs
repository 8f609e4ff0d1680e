//! What comes next in a conversation: a pure function of the messages so far.
//!
//! Guarantees: because nothing but the stored messages decides, a task that was stopped anywhere goes on exactly
//! as it would have. Leaves to others: doing the step.

use crate::answer::Told;
use crate::conversation::{Answered, CallId, Message, ToolCall, Turn};
use crate::protocol::{Failure, FailureKind, Proposal, Start};
use crate::tools::{Meaning, parse};

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Add this message.
    Say(Message),
    /// Ask the model.
    Ask,
    /// Propose this, and add its answer under the model's name for the call.
    Propose(Proposal, String),
    /// The task is done.
    Finish(String),
    /// The task cannot go on.
    Fail(Failure),
}

/// What the model is told about where it is: short and true.
const SYSTEM: &str = "\
You are a coding agent. You work on a repository in a sandbox, only by the tools that you are offered.

- Every call is decided by a policy before it runs, and recorded. There is no network, there are no credentials, and \
nothing outside the workspace can be changed.
- A denied call will be denied again, and so will any other way to the same effect. Do not look for one: go on without \
it, or finish and say what is missing.
- Your changes are kept apart from the user's files until a person applies them. Pushing, publishing and deploying are \
not yours to do.
- Each command starts afresh: a directory that you change into and variables that you set are gone in the next call.
- Look before you change. Run the tests that show the fault, change as little as is needed, and run them again.
- Say what you saw, not what you expect. When you are done, or cannot go on, call `finish` alone with a summary.";

const NUDGE: &str = "You ended your turn without a call. If the task is done, or cannot be done, call `finish` with a \
                     summary. Otherwise go on.";
const NUDGE_CUT: &str =
    "Your turn was cut because it reached the limit of its length. Go on in smaller steps.";

/// How often the same call may fail, one after the other, before it is not made any more.
const SAME_CALLS: usize = 3;
/// After how many equal calls in a row the task is given up.
const STUCK: usize = 6;
/// How much of what the model says beside a call is passed on as its purpose, in characters.
const PURPOSE: usize = 300;

/// Returns what comes next.
pub(crate) fn next(start: &Start, messages: &[Message], tokens_used: u64) -> Step {
    match messages.len() {
        0 => return Step::Say(Message::System { content: SYSTEM.to_owned() }),
        1 => return Step::Say(Message::User { content: start.text.clone() }),
        _ => {}
    }
    let turns = messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
    let turns = u32::try_from(turns).unwrap_or(u32::MAX);
    let Some((turn, after)) = last_turn(messages) else {
        return ask(start, turns, tokens_used);
    };
    let answered = after.iter().filter(|message| matches!(message, Message::Tool(_))).count();
    if let Some(call) = turn.tool_calls.get(answered) {
        let id = CallId { turn: turns, call: u32::try_from(answered).unwrap_or(u32::MAX).saturating_add(1) };
        return make(start, messages, turn, call, id);
    }
    if after.iter().any(|message| matches!(message, Message::User { .. })) {
        return ask(start, turns, tokens_used);
    }
    match turn.tool_calls.as_slice() {
        [] => without_call(messages, turn),
        [only] => match parse(only, start.workspace.as_path()) {
            Ok(Meaning::Finish { summary }) => Step::Finish(summary),
            _ => go_on(start, messages, turns, tokens_used),
        },
        _ => go_on(start, messages, turns, tokens_used),
    }
}

/// Returns the last turn of the model, and what came after it.
fn last_turn(messages: &[Message]) -> Option<(&Turn, &[Message])> {
    let at = messages.iter().rposition(|message| matches!(message, Message::Assistant(_)))?;
    match &messages[at] {
        Message::Assistant(turn) => Some((turn, &messages[at + 1..])),
        _ => None,
    }
}

fn ask(start: &Start, turns: u32, tokens_used: u64) -> Step {
    let limits = start.limits;
    if turns >= limits.turns {
        let message =
            format!("the task used its {} turns: raise the limit and resume it, or split it", limits.turns);
        return fail(FailureKind::Turns, message);
    }
    if tokens_used >= limits.tokens {
        let message = format!(
            "the task used {tokens_used} tokens and may use {}: raise the limit and resume it, or split it",
            limits.tokens
        );
        return fail(FailureKind::Tokens, message);
    }
    Step::Ask
}

/// What follows when all calls of the last turn are answered.
fn go_on(start: &Start, messages: &[Message], turns: u32, tokens_used: u64) -> Step {
    let calls = answered_calls(messages);
    let stuck = calls.last().is_some_and(|last| equal_failures(&calls, last.0) >= STUCK);
    if stuck {
        let message =
            format!("the model made the same failing call {STUCK} times in a row: look at its conversation");
        return fail(FailureKind::Stuck, message);
    }
    ask(start, turns, tokens_used)
}

fn fail(kind: FailureKind, message: impl Into<String>) -> Step {
    Step::Fail(Failure { kind, message: message.into() })
}

/// What follows a turn without a call: one reminder, then the end.
fn without_call(messages: &[Message], turn: &Turn) -> Step {
    if turn.finish_reason == "content_filter" {
        return fail(
            FailureKind::Withheld,
            "the server withheld the answer because of its content: change the task",
        );
    }
    let cut = turn.finish_reason == "length";
    let reminded = matches!(messages, [.., Message::User { content }, Message::Assistant(_)]
        if content == NUDGE || content == NUDGE_CUT);
    match (reminded, turn.content.trim()) {
        (false, _) => Step::Say(Message::User { content: if cut { NUDGE_CUT } else { NUDGE }.to_owned() }),
        (true, "") => {
            fail(FailureKind::Silent, "the model gave an empty answer twice: try again, or another model")
        }
        (true, said) => Step::Finish(said.to_owned()),
    }
}

/// What follows for a call that waits for its answer.
fn make(start: &Start, messages: &[Message], turn: &Turn, call: &ToolCall, id: CallId) -> Step {
    let answer = |told: Told| {
        let answered = Answered { tool_call_id: call.id.clone(), content: told.text, failed: told.failed };
        Step::Say(Message::Tool(answered))
    };
    if equal_failures(&answered_calls(messages), call) >= SAME_CALLS {
        return answer(Told::failure(
            "this call failed several times in a row, so it was not made again: do something else, or finish and say what is missing",
        ));
    }
    match parse(call, start.workspace.as_path()) {
        Err(reason) if turn.finish_reason == "length" => answer(Told::failure(format!(
            "{reason}. Your turn was cut because it reached the limit of its length: write less at a time"
        ))),
        Err(reason) => answer(Told::failure(reason)),
        Ok(Meaning::Finish { .. }) if turn.tool_calls.len() > 1 => answer(Told::failure(
            "`finish` must be the only call of its turn: look at the other answers first, then call it alone",
        )),
        Ok(Meaning::Finish { .. }) => answer(Told::success("the task is finished")),
        Ok(Meaning::Propose { tool, directory }) => {
            Step::Propose(Proposal { call: id, tool, directory, purpose: purpose(turn) }, call.id.clone())
        }
    }
}

fn purpose(turn: &Turn) -> Option<String> {
    let said = turn.content.trim();
    (!said.is_empty()).then(|| said.chars().take(PURPOSE).collect())
}

/// Returns each call that was answered, in order, with its answer.
fn answered_calls(messages: &[Message]) -> Vec<(&ToolCall, &Answered)> {
    let mut waiting = std::collections::VecDeque::new();
    let mut calls = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(turn) => waiting.extend(&turn.tool_calls),
            Message::Tool(answer) => calls.extend(waiting.pop_front().map(|call| (call, answer))),
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    calls
}

/// Returns how many of the latest calls were this one and failed. Our own refusal to make it again counts as well.
fn equal_failures(calls: &[(&ToolCall, &Answered)], call: &ToolCall) -> usize {
    let same = |other: &ToolCall| other.name == call.name && other.arguments == call.arguments;
    calls.iter().rev().take_while(|(other, answer)| same(other) && answer.failed).count()
}

#[cfg(test)]
mod tests {
    use model::{OsText, TaskId};

    use super::*;
    use crate::protocol::AgentLimits;
    use crate::secret::Secret;

    fn start() -> Start {
        Start {
            task: TaskId::from_random([0; 10]),
            text: "fix it".into(),
            workspace: OsText::try_from("/ws").expect("no NUL"),
            model: "m".into(),
            effort: None,
            key: Secret::new("k"),
            secrets: Vec::new(),
            limits: AgentLimits { turns: 8, ..AgentLimits::default() },
            tokens_used: 0,
        }
    }

    fn said(content: &str, calls: &[(&str, &str)], finish_reason: &str) -> Message {
        let call = |(at, (name, arguments)): (usize, &(&str, &str))| ToolCall {
            id: format!("c{at}"),
            name: (*name).into(),
            arguments: (*arguments).into(),
        };
        Message::Assistant(Turn {
            content: content.into(),
            reasoning_content: Some("hm".into()),
            tool_calls: calls.iter().enumerate().map(call).collect(),
            finish_reason: finish_reason.into(),
        })
    }

    fn answered(id: &str, content: &str, failed: bool) -> Message {
        Message::Tool(Answered { tool_call_id: id.into(), content: content.into(), failed })
    }

    fn after(rest: Vec<Message>) -> Step {
        let begun = [Message::System { content: "s".into() }, Message::User { content: "t".into() }];
        let messages: Vec<Message> = begun.into_iter().chain(rest).collect();
        next(&start(), &messages, 0)
    }

    fn answer_of(step: Step) -> Answered {
        match step {
            Step::Say(Message::Tool(answer)) => answer,
            other => panic!("no answer but {other:?}"),
        }
    }

    fn failure_of(step: Step) -> FailureKind {
        match step {
            Step::Fail(failure) => failure.kind,
            other => panic!("no failure but {other:?}"),
        }
    }

    #[test]
    fn a_conversation_begins_with_where_the_model_is_and_what_it_is_to_do() {
        assert!(matches!(next(&start(), &[], 0), Step::Say(Message::System { .. })));
        let one = [Message::System { content: "s".into() }];
        assert_eq!(next(&start(), &one, 0), Step::Say(Message::User { content: "fix it".into() }));
        assert_eq!(after(vec![]), Step::Ask);
    }

    #[test]
    fn calls_are_made_one_after_the_other_and_named_by_their_place() {
        let turn = said("look", &[("read_file", r#"{"path":"a"}"#), ("list_directory", "")], "tool_calls");
        let id_of = |step| match step {
            Step::Propose(proposal, id) => (proposal.call.to_string(), id, proposal.purpose),
            other => panic!("no proposal but {other:?}"),
        };
        let purpose = Some("look".to_owned());
        assert_eq!(id_of(after(vec![turn.clone()])), ("1.1".into(), "c0".into(), purpose.clone()));
        let second = after(vec![turn.clone(), answered("c0", "x", false)]);
        assert_eq!(id_of(second), ("1.2".into(), "c1".into(), purpose));
        assert_eq!(after(vec![turn, answered("c0", "x", false), answered("c1", "y", false)]), Step::Ask);
    }

    #[test]
    fn finish_is_taken_alone_only() {
        let finish = ("finish", r#"{"summary":"done"}"#);
        let alone = said("", &[finish], "tool_calls");
        assert!(!answer_of(after(vec![alone.clone()])).failed);
        assert_eq!(after(vec![alone, answered("c0", "ok", false)]), Step::Finish("done".into()));
        let beside = said("", &[finish, ("list_directory", "")], "tool_calls");
        assert!(answer_of(after(vec![beside.clone()])).content.contains("only call"));
        let both = vec![beside, answered("c0", "error", true), answered("c1", "x", false)];
        assert_eq!(after(both), Step::Ask);
    }

    #[test]
    fn wrong_arguments_are_handed_back() {
        let answer = answer_of(after(vec![said("", &[("read_file", "{oops")], "tool_calls")]));
        assert!(answer.failed && answer.content.contains("not JSON"), "{}", answer.content);
        let answer = answer_of(after(vec![said("", &[("read_file", "{\"path\":\"a")], "length")]));
        assert!(answer.content.contains("write less at a time"), "{}", answer.content);
    }

    #[test]
    fn a_turn_without_a_call_is_reminded_once_and_then_taken_for_the_end() {
        let quiet = said("I think it is fixed.", &[], "stop");
        let Step::Say(nudge) = after(vec![quiet.clone()]) else { panic!("no reminder") };
        assert_eq!(after(vec![quiet.clone(), nudge.clone()]), Step::Ask);
        let twice = after(vec![quiet.clone(), nudge.clone(), quiet.clone()]);
        assert_eq!(twice, Step::Finish("I think it is fixed.".into()));
        let empty = after(vec![quiet.clone(), nudge.clone(), said("", &[], "stop")]);
        assert_eq!(failure_of(empty), FailureKind::Silent);
        // A call in between earns a new reminder.
        let call = said("", &[("list_directory", "")], "tool_calls");
        let again = after(vec![quiet.clone(), nudge, call, answered("c0", "x", false), quiet]);
        assert!(matches!(again, Step::Say(Message::User { .. })));
    }

    #[test]
    fn a_withheld_answer_ends_the_task() {
        assert_eq!(failure_of(after(vec![said("", &[], "content_filter")])), FailureKind::Withheld);
    }

    #[test]
    fn the_same_failing_call_is_not_made_for_ever() {
        let call = || said("", &[("run_command", r#"{"command":"false"}"#)], "tool_calls");
        let failures = |n: usize| (0..n).flat_map(|_| [call(), answered("c0", "exited with 1", true)]);
        assert!(matches!(after(failures(2).chain([call()]).collect()), Step::Propose(..)));
        let refused = answer_of(after(failures(3).chain([call()]).collect()));
        assert!(refused.content.contains("not made again"));
        assert_eq!(failure_of(after(failures(6).collect())), FailureKind::Stuck);
        // Something else in between, and it is worth another try.
        let other = [said("", &[("list_directory", "")], "tool_calls"), answered("c0", "x", false)];
        assert!(matches!(after(failures(3).chain(other).chain([call()]).collect()), Step::Propose(..)));
    }

    #[test]
    fn turns_and_tokens_are_bounded() {
        let turn = || [said("", &[("list_directory", "")], "tool_calls"), answered("c0", "x", false)];
        let messages: Vec<Message> = (0..8).flat_map(|_| turn()).collect();
        assert_eq!(failure_of(after(messages)), FailureKind::Turns);
        let begun = [Message::System { content: "s".into() }, Message::User { content: "t".into() }];
        assert_eq!(failure_of(next(&start(), &begun, 20_000_000)), FailureKind::Tokens);
    }
}
