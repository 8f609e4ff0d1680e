//! The JSON that programs read: one type for each document. Their schemas are in `docs/schemas`.
//!
//! Times are RFC 3339 in UTC, spans are milliseconds, sizes are bytes. Arguments and paths are strings where they are
//! UTF-8 and `{"hex": "…"}` where they are not.

mod action;
mod agent;
mod answers;
mod approval;
mod audit;
mod credential;
mod demo;
mod deps;
mod hold;
mod intake;
mod net;
mod policy;
mod policy_tools;
mod prune;
mod reproduce;
mod schemas;
mod stop;
mod why;

use std::time::Duration;

use model::Timestamp;
use model::action::Principal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serializer;

pub(crate) use action::shell_word;
pub use action::{
    ActionDocument, AppliedPart, ChangePart, DecisionPart, DeniedPart, EndPart, GrantPart, InspectionPart,
    JoiningPart, LimitsPart, NotStartedPart, OutputPart, Ran, RequestPart, SandboxPart, State, StepPart,
    UsagePart,
};
pub use agent::{AgentDocument, AgentEnd, AgentFailure, Refused, SandboxUse};
pub use answers::{
    ApplyDocument, ArtifactRow, ArtifactsDocument, CommitsRow, ConfigDocument, ConfigRow, ConflictRow,
    DiffDocument, DoctorDocument, ErrorDocument, ErrorPart, GcDocument, GcRow, HostFact, LogDocument, LogRow,
    ProblemRow, ProblemsDocument, StagePart, TaskDocument, TaskRow, TasksDocument, UndoDocument,
};
pub use approval::{
    AgentsPart, AnswerDocument, AnswerPart, ApprovalPart, ApprovalRow, ApprovalsDocument, BatchDocument,
    BatchRow, DossierDocument, ExportDocument, ExportedPart, MeasuredPart, SignedDocument, SignedRow,
    StatsDocument, WantedPart,
};
pub use audit::{CheckpointDocument, KeyDocument};
pub use credential::{
    CredentialChangeDocument, CredentialDocument, CredentialRow, CredentialsDocument, LeaseRow, RevocationRow,
};
pub use demo::{DemoCheck, DemoDocument};
pub use deps::{DepsDocument, DepsRow, SbomDocument};
pub use hold::{LegalHoldRow, LegalHoldsDocument};
pub use intake::{IntakePart, TaskNewDocument};
pub use net::{
    NetExplainDocument, NetLogDocument, NetLogRow, NetPolicy, NetRefusal, NetTestDocument, allow_net,
    refusals, what,
};
pub use policy::{
    AskedPart, EffectRow, FindingKind, FindingRow, PolicyAnswer, PolicyCheckDocument, PolicyDocument,
    VariablePart, WayBack,
};
pub use policy_tools::{
    AllowedRow, ClaimRow, ClaimWord, DirectionPart, DirectionWord, ExamplePart, ExplainDocument, LayerPart,
    LayerWord, LeftOut, PolicyDiffDocument, PolicyDiffRow, PolicyTestDocument, ProveDocument, QuestionPart,
    RecordedPart, ReplayChange, ReplayDocument, ReplayExample, RowFailure, RulePart, SuggestDocument,
    SuggestedRule,
};
pub use prune::{PruneDocument, PruneRow};
pub use reproduce::{Difference, ReproduceDocument, differences};
pub use schemas::schemas;
pub use stop::{HoldRow, StopDocument};
pub use why::{Cause, HIDDEN_STAYS, WhyDocument, why};

/// The schema of an argument or a path.
pub(crate) struct Name;

impl JsonSchema for Name {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An argument or a path: a string, or the bytes in hexadecimal where they are not UTF-8.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"hex": {"type": "string", "pattern": "^([0-9a-f]{2})*$"}},
                    "required": ["hex"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// The schema of a moment.
pub(crate) struct Moment;

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time", "pattern": "Z$"})
    }
}

/// Names who asks or answers.
pub(crate) fn who(principal: &Principal) -> String {
    match principal {
        Principal::User(name) | Principal::Agent(name) => name.clone(),
        Principal::Engine => "the engine".to_owned(),
    }
}

/// Writes a moment.
pub(crate) fn moment<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&::audit::rfc3339(*time))
}

/// Writes a moment that may be missing.
pub(crate) fn moment_or_none<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => moment(time, to),
        None => to.serialize_none(),
    }
}

/// Writes a span in milliseconds, with the part after the point to the microsecond.
pub(crate) fn milliseconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let microseconds = u32::try_from(time.as_micros() % 1000).unwrap_or(0);
    let whole = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    to.serialize_f64(f64::from(whole) + f64::from(microseconds) / 1000.0)
}
