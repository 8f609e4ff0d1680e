//! What came of an agent's work.

use std::time::Duration;

use model::enforcement::Layer;
use model::event::HeldBack;
use model::evidence::Probe;
use model::{ActionId, OsText, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::LogRow;
use super::schemas as schema;
use super::why::why;
use super::{ActionDocument, ChangePart, Name, milliseconds};

/// `agent --json` and `task resume --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The workspace directory.
    #[schemars(with = "Name")]
    pub workspace: OsText,
    /// The commit that it started from; `null` for the directory as it stood.
    pub commit: Option<String>,
    /// The model that was asked.
    pub model: String,
    /// How the work ended.
    pub ended: AgentEnd,
    /// Why the agent could not go on.
    pub failure: Option<AgentFailure>,
    /// What the model says it did: a claim.
    pub summary: Option<String>,
    /// The actions, oldest first.
    pub log: Vec<LogRow>,
    /// What was refused, and by what.
    pub refused: Vec<Refused>,
    /// What the task changed.
    pub changes: Vec<ChangePart>,
    /// What must wait for a person when it is applied.
    #[schemars(schema_with = "schema::held_back")]
    pub held_back: Vec<HeldBack>,
    /// The changes as a unified diff; what is not UTF-8 in it is replaced, and what it cannot hold is left out.
    pub patch: String,
    /// What the process that speaks with the model tried after it had given up its rights.
    #[schemars(schema_with = "schema::probes")]
    pub confinement: Vec<Probe>,
    /// Answers of the model.
    pub turns: u64,
    /// Tokens of the prompts that the server had in its cache.
    pub prompt_cache_hit_tokens: u64,
    /// Tokens of the prompts that it had not.
    pub prompt_cache_miss_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// What the actions used.
    pub used: SandboxUse,
}

/// How an agent's work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentEnd {
    /// The model says that the task is done.
    Finished,
    /// The agent could not go on.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

/// Why an agent could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailure {
    /// A stable code.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Refused {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// What it was, as a person would have typed it.
    pub command: String,
    /// A stable code: the policy's own reason, or one of ours.
    pub code: String,
    /// What happened, in a sentence.
    pub sentence: String,
    /// The rules that decided, where it was policy.
    pub rules: Vec<String>,
    /// The layer that stopped it, where it was one.
    #[schemars(with = "Option<String>")]
    pub layer: Option<Layer>,
}

impl Refused {
    /// Names what of an action was refused.
    pub fn all_of(document: &ActionDocument) -> Vec<Self> {
        let denied = document.decision.as_ref().is_some_and(|decision| !decision.is_yes());
        let causes = why(document).causes.into_iter();
        // That a credential is hidden is so whether or not anybody looks for it, and what is held back has its own list.
        let refused = causes.filter(|cause| match cause.layer {
            Some(layer) => layer != Layer::Masks,
            None => denied && !cause.rules.is_empty(),
        });
        refused
            .map(|cause| Self {
                action: document.action.clone(),
                command: document.command(),
                code: cause.code,
                sentence: cause.sentence,
                rules: cause.rules,
                layer: cause.layer,
            })
            .collect()
    }
}

/// What all actions of a task used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SandboxUse {
    /// How many ran.
    pub actions: u64,
    /// From their starts to their ends, added up.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub wall_time_ms: Duration,
    /// Processor time.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub cpu_time_ms: Duration,
    /// The most memory that one had at once, in bytes.
    pub memory_peak: u64,
    /// Bytes that they printed.
    pub output: u64,
}

impl SandboxUse {
    /// Adds what one action used.
    pub fn add(&mut self, document: &ActionDocument) {
        let Some(end) = &document.end else { return };
        self.actions += 1;
        self.wall_time_ms += end.usage.wall_time_ms;
        self.cpu_time_ms += end.usage.cpu_time_ms;
        self.memory_peak = self.memory_peak.max(end.usage.memory_peak);
        self.output += end.usage.output;
    }
}
