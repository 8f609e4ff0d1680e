//! Transcripts: what a model would say, written down. The format is described in `docs/replay-format.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lines::{Line, read_line};

/// The version of the format.
const VERSION: u32 = 1;
/// The longest line, in bytes.
const LINE_MAX: usize = 16 << 20;
/// The most turns.
const TURNS_MAX: usize = 10_000;
/// The most calls in one turn.
const CALLS_MAX: usize = 128;

/// A transcript that has been read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    header: Header,
    turns: Vec<PlayedTurn>,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the format.
    pub fumehood_replay: u32,
    /// The model that the server says it is.
    pub model: String,
    /// What the agent is asked to do.
    pub task: String,
}

/// One turn of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlayedTurn {
    /// Its place, from 1.
    pub turn: usize,
    /// What the model thinks.
    #[serde(default)]
    pub reasoning: String,
    /// What it says.
    #[serde(default)]
    pub content: String,
    /// What it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Call>,
    /// Why the turn ends; by the calls when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// What the server counts; made up from sizes when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Figures>,
    /// How the answer is sent.
    #[serde(default)]
    pub delivery: Delivery,
    /// What goes wrong, one after the other, before the turn is played well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// The arguments: an object, or a text that is sent as it is, also when it is not JSON.
    pub arguments: Value,
}

impl Call {
    /// Returns the arguments as they are sent.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Tokens that the server says it counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Of the prompt, found in the cache.
    pub hit: u64,
    /// Of the prompt, not found.
    pub miss: u64,
    /// Of the answer.
    pub completion: u64,
}

/// How an answer is sent. None of it changes what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Delivery {
    /// Signs of life before the answer begins.
    pub keep_alive: u16,
    /// Characters in one piece of thoughts, text and arguments.
    pub split: u16,
    /// Bytes in one write to the connection; as many as there are when 0.
    pub write: u16,
    /// Whether the tokens come in an event of their own, after the one that ends the turn.
    pub usage_apart: bool,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { keep_alive: 1, split: 24, write: 0, usage_apart: false }
    }
}

/// Something that goes wrong once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// The server answers with an error.
    Status {
        /// The status, 300 to 599.
        status: u16,
        /// How many seconds it asks to wait.
        retry_after: Option<u64>,
        /// Where it sends the request.
        location: Option<String>,
        /// What it says.
        message: Option<String>,
    },
    /// The server closes the connection instead of answering.
    Close {},
    /// The server closes the connection in the middle of its answer.
    Cut {
        /// After this many events.
        after: usize,
    },
    /// The server falls silent in the middle of its answer, and then closes the connection.
    Stall {
        /// After this many events.
        after: usize,
        /// For this long, in milliseconds.
        ms: u64,
    },
    /// The server reports an error in the middle of its answer.
    Report {
        /// What it says.
        message: String,
    },
    /// The server ends its answer because it ran out of resources.
    Exhausted {},
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    /// How many turns there are.
    end: usize,
}

/// Says where and why a transcript cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the transcript: {fault}")]
pub struct TranscriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: TranscriptFault,
}

/// Says why a transcript cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptFault {
    /// The file ends too early.
    #[error("the file ends here without its `end` line: it was cut, get a whole copy")]
    Cut,
    /// There is nothing.
    #[error("the file is empty: a transcript begins with a header line, see docs/replay-format.md")]
    Empty,
    /// A line is not what must stand there.
    #[error("this is no {expected}: {reason}")]
    Syntax {
        /// What must stand there.
        expected: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The format is another one.
    #[error("the format has version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// A turn is missing or stands in the wrong place.
    #[error("turn {found} stands where turn {expected} must: lines are missing or out of order")]
    Order {
        /// What must stand there.
        expected: usize,
        /// What stands there.
        found: usize,
    },
    /// The number of turns is not the one that the end names.
    #[error("the `end` line names {named} turns, but there are {found}: lines are missing")]
    Count {
        /// What the end names.
        named: usize,
        /// How many there are.
        found: usize,
    },
    /// Something follows the end.
    #[error("something follows the `end` line")]
    AfterEnd,
    /// A figure is out of range.
    #[error("{0}")]
    Range(&'static str),
    /// A line is too long.
    #[error("it is longer than {LINE_MAX} bytes")]
    TooLong,
}

impl Transcript {
    /// Reads a transcript.
    ///
    /// # Errors
    /// With the line and what is wrong there.
    pub fn parse(bytes: &[u8]) -> Result<Self, TranscriptError> {
        let lines = lines(bytes)?;
        let mut numbered = lines.iter().enumerate().map(|(at, line)| (at + 1, line.as_slice()));
        let header = match numbered.next() {
            Some((line, text)) => header(text).map_err(|fault| TranscriptError { line, fault })?,
            None => return Err(TranscriptError { line: 1, fault: TranscriptFault::Empty }),
        };
        let mut turns = Vec::new();
        while let Some((line, text)) = numbered.next() {
            let failed = |fault| TranscriptError { line, fault };
            if let Some(end) = end(text) {
                if end.end != turns.len() {
                    return Err(failed(TranscriptFault::Count { named: end.end, found: turns.len() }));
                }
                return match numbered.next() {
                    Some((line, _)) => Err(TranscriptError { line, fault: TranscriptFault::AfterEnd }),
                    None => Ok(Self { header, turns }),
                };
            }
            turns.push(turn(text, turns.len() + 1).map_err(failed)?);
        }
        Err(TranscriptError { line: lines.len(), fault: TranscriptFault::Cut })
    }

    /// Returns the first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the turns.
    pub fn turns(&self) -> &[PlayedTurn] {
        &self.turns
    }
}

/// Splits the file into lines. A last line without its line feed is taken only as the end.
fn lines(bytes: &[u8]) -> Result<Vec<Vec<u8>>, TranscriptError> {
    let mut reader = bytes;
    let mut lines = Vec::new();
    loop {
        let number = lines.len() + 1;
        let failed = |fault| TranscriptError { line: number, fault };
        // Reading from memory does not fail.
        match read_line(&mut reader, LINE_MAX).unwrap_or(Line::End) {
            Line::End => return Ok(lines),
            Line::TooLong => return Err(failed(TranscriptFault::TooLong)),
            Line::Whole(line) => lines.push(line),
            Line::Cut(line) if number > 1 && end(&line).is_some() => lines.push(line),
            Line::Cut(_) => return Err(failed(TranscriptFault::Cut)),
        }
    }
}

fn header(text: &[u8]) -> Result<Header, TranscriptFault> {
    // The version first: another one may have other fields.
    let value: Value = parsed(text, "header line")?;
    match value["fumehood_replay"].as_u64().map(u32::try_from) {
        Some(Ok(VERSION)) | None => parsed(text, "header line"),
        Some(other) => Err(TranscriptFault::Version(other.unwrap_or(u32::MAX))),
    }
}

fn end(text: &[u8]) -> Option<End> {
    serde_json::from_slice(text).ok()
}

fn turn(text: &[u8], expected: usize) -> Result<PlayedTurn, TranscriptFault> {
    let turn: PlayedTurn = parsed(text, "turn")?;
    if turn.turn != expected {
        return Err(TranscriptFault::Order { expected, found: turn.turn });
    }
    if turn.turn > TURNS_MAX || turn.tool_calls.len() > CALLS_MAX {
        return Err(TranscriptFault::Range("there may be 10000 turns, and 128 calls in one"));
    }
    if turn.tool_calls.iter().any(|call| !call.arguments.is_object() && !call.arguments.is_string()) {
        return Err(TranscriptFault::Range("`arguments` must be an object, or a text that is sent as it is"));
    }
    if turn.delivery.split == 0 {
        return Err(TranscriptFault::Range("`split` must be at least 1"));
    }
    let is_error = |fault: &Fault| !matches!(fault, Fault::Status { status: 0..300 | 600.., .. });
    if !turn.faults.iter().all(is_error) {
        return Err(TranscriptFault::Range("the `status` of a fault must be from 300 to 599"));
    }
    Ok(turn)
}

fn parsed<T: serde::de::DeserializeOwned>(text: &[u8], expected: &'static str) -> Result<T, TranscriptFault> {
    serde_json::from_slice(text).map_err(|error| TranscriptFault::Syntax {
        expected,
        reason: model::text::escape(&error.to_string()).replace(" at line 1 column ", " at column "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"fumehood_replay":1,"model":"m","task":"t"}"#;
    const CALL: &str =
        r#"{"turn":1,"tool_calls":[{"name":"f","arguments":{"a":1}},{"name":"g","arguments":"{oops"}]}"#;

    fn parse(lines: &[&str]) -> Result<Transcript, TranscriptError> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Transcript::parse(text.as_bytes())
    }

    #[test]
    fn a_transcript_is_read_with_its_arguments_in_either_form() {
        let transcript = parse(&[HEAD, CALL, r#"{"end":1}"#]).expect("is whole");
        assert_eq!(transcript.header().task, "t");
        let calls = &transcript.turns()[0].tool_calls;
        assert_eq!(
            (calls[0].arguments_text(), calls[1].arguments_text()),
            ("{\"a\":1}".into(), "{oops".into())
        );
        assert_eq!(transcript.turns()[0].delivery, Delivery::default());
    }

    #[test]
    fn each_fault_is_told_with_its_line() {
        let end = r#"{"end":1}"#;
        let cases: &[(&[&str], &str)] = &[
            (&[], "line 1 of the transcript: the file is empty"),
            (&[HEAD], "line 1 of the transcript: the file ends here without its `end` line"),
            (&[HEAD, CALL], "line 2 of the transcript: the file ends here"),
            (&["", end], "line 1 of the transcript: this is no header line: EOF"),
            (&[r#"{"fumehood_replay":2,"x":1}"#, end], "line 1 of the transcript: the format has version 2"),
            (&[r#"{"fumehood_replay":1,"model":"m"}"#, end], "missing field `task`"),
            (
                &[HEAD, r#"{"turn":1,"reasonning":""}"#, end],
                "line 2 of the transcript: this is no turn: unknown field",
            ),
            (&[HEAD, r#"{"turn":2}"#, end], "turn 2 stands where turn 1 must"),
            (
                &[HEAD, CALL, r#"{"end":2}"#],
                "line 3 of the transcript: the `end` line names 2 turns, but there are 1",
            ),
            (&[HEAD, CALL, end, ""], "line 4 of the transcript: something follows"),
            (&[HEAD, r#"{"turn":1,"tool_calls":[{"name":"f","arguments":[]}]}"#, end], "must be an object"),
            (&[HEAD, r#"{"turn":1,"delivery":{"split":0}}"#, end], "`split` must be"),
            (&[HEAD, r#"{"turn":1,"faults":[{"fault":"status","status":200}]}"#, end], "from 300 to 599"),
            (&[HEAD, r#"{"turn":1,"faults":[{"fault":"flood"}]}"#, end], "unknown variant `flood`"),
        ];
        for (lines, expected) in cases {
            let error = parse(lines).expect_err("is refused").to_string();
            assert!(error.contains(expected), "{lines:?} gave: {error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(Transcript::parse(b"\xff\xfe\n").is_err());
        assert!(Transcript::parse(&[b'['; 100_000]).is_err());
        let deep = format!("{}\n", "[".repeat(100_000));
        assert!(Transcript::parse(deep.as_bytes()).is_err());
    }
}
