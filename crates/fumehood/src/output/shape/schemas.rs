//! The schemas of the documents, and of the words of `model` that stand in them as they are.
//!
//! The files in `docs/schemas` are made from here; a test fails when they differ.

use model::Event;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};

use super::{
    ActionDocument, AgentDocument, AnswerDocument, ApplyDocument, ApprovalsDocument, ArtifactsDocument,
    BatchDocument, CheckpointDocument, ConfigDocument, CredentialChangeDocument, CredentialDocument,
    CredentialsDocument, DemoDocument, DepsDocument, DiffDocument, DoctorDocument, DossierDocument,
    ErrorDocument, ExplainDocument, ExportDocument, GcDocument, KeyDocument, LegalHoldsDocument, LogDocument,
    Name, NetExplainDocument, NetLogDocument, NetTestDocument, PolicyCheckDocument, PolicyDiffDocument,
    PolicyDocument, PolicyTestDocument, ProblemsDocument, ProveDocument, PruneDocument, ReplayDocument,
    ReproduceDocument, SignedDocument, StatsDocument, StopDocument, SuggestDocument, TaskDocument,
    TaskNewDocument, TaskRow, TasksDocument, UndoDocument, WhyDocument,
};

/// Returns the schema of every document, by the name of its file in `docs/schemas`.
pub fn schemas() -> Vec<(&'static str, Json)> {
    let schemas = [
        ("action", of::<ActionDocument>()),
        ("agent", of::<AgentDocument>()),
        ("apply", of::<ApplyDocument>()),
        ("approval", of::<DossierDocument>()),
        ("approval-answer", of::<AnswerDocument>()),
        ("approval-batch", of::<BatchDocument>()),
        ("approval-export", of::<ExportDocument>()),
        ("approval-list", of::<ApprovalsDocument>()),
        ("approval-signed", of::<SignedDocument>()),
        ("approval-stats", of::<StatsDocument>()),
        ("artifacts", of::<ArtifactsDocument>()),
        ("audit-checkpoint", of::<CheckpointDocument>()),
        ("audit-key", of::<KeyDocument>()),
        ("audit-prune", of::<PruneDocument>()),
        ("audit-record", audit_record()),
        ("audit-verify", audit_verify()),
        ("config-check", of::<ProblemsDocument>()),
        ("config-explain", of::<ConfigDocument>()),
        ("demo", of::<DemoDocument>()),
        ("deps", of::<DepsDocument>()),
        ("diff", of::<DiffDocument>()),
        ("doctor", of::<DoctorDocument>()),
        ("error", of::<ErrorDocument>()),
        ("credential", of::<CredentialDocument>()),
        ("credential-change", of::<CredentialChangeDocument>()),
        ("credentials", of::<CredentialsDocument>()),
        ("fumehood.toml", crate::settings::schema()),
        ("gc", of::<GcDocument>()),
        ("legal-holds", of::<LegalHoldsDocument>()),
        ("log", of::<LogDocument>()),
        ("net-explain", of::<NetExplainDocument>()),
        ("net-log", of::<NetLogDocument>()),
        ("net-test", of::<NetTestDocument>()),
        ("policy-check", of::<PolicyCheckDocument>()),
        ("policy-decide", of::<PolicyDocument>()),
        ("policy-diff", of::<PolicyDiffDocument>()),
        ("policy-explain", of::<ExplainDocument>()),
        ("policy-prove", of::<ProveDocument>()),
        ("policy-replay", of::<ReplayDocument>()),
        ("policy-suggest", of::<SuggestDocument>()),
        ("policy-test", of::<PolicyTestDocument>()),
        ("reproduce", of::<ReproduceDocument>()),
        ("stop", of::<StopDocument>()),
        ("task", of::<TaskDocument>()),
        ("task-new", of::<TaskNewDocument>()),
        ("task-list", of::<TasksDocument>()),
        ("task-row", of::<TaskRow>()),
        ("undo", of::<UndoDocument>()),
        ("why", of::<WhyDocument>()),
    ];
    schemas.map(|(name, schema)| (name, sorted(schema))).into()
}

/// Sorts keys by name: whether maps keep the order of insertion depends on what else is built in.
fn sorted(schema: Json) -> Json {
    match schema {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().collect();
            entries.sort_by(|one, two| one.0.cmp(&two.0));
            entries.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn of<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close(&mut schema);
    schema
}

/// Says of every object with named properties that it has no others, so that a document cannot grow unseen.
fn close(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            if map.contains_key("properties") {
                map.entry("additionalProperties").or_insert(json!(false));
            }
            map.values_mut().for_each(close);
        }
        Json::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn object(properties: Json) -> Schema {
    let required: Vec<String> =
        properties.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
    json_schema!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn list(items: Schema) -> Schema {
    json_schema!({"type": "array", "items": items})
}

const COUNT: fn() -> Json = || json!({"type": "integer", "minimum": 0});

pub(super) fn digest(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

pub(super) fn principal(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [
        object(json!({"kind": {"enum": ["user", "agent"]}, "name": {"type": "string"}})),
        object(json!({"kind": {"const": "engine"}})),
    ]})
}

pub(super) fn network(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [
        {"enum": ["loopback", "host"]},
        object(json!({"joined": {"type": "string"}})),
        object(json!({"egress": {"type": "array", "items": rule()}})),
    ]})
}

/// A rule for what may be reached through the gateway.
fn rule() -> Json {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "host": {"type": "string", "description": "A name, `*.` and a name for all below it, or an address."},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "protocol": {"enum": ["https", "http", "tcp"]},
            "methods": texts, "path": {"type": "string"},
            "credential": {"type": "string"}, "registry": {"type": "string"}, "inside": texts,
        },
        "required": ["host", "port", "protocol"],
        "additionalProperties": false,
    })
}

pub(super) fn verdict(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["allow", "narrow", "require-approval", "deny"]})
}

fn level() -> Json {
    json!({"enum": ["absent", "watched", "hard"]})
}

pub(super) fn held(_: &mut SchemaGenerator) -> Schema {
    list(object(json!({"layer": {"type": "string"}, "level": level(), "by": {"type": "string"}})))
}

pub(super) fn probes(_: &mut SchemaGenerator) -> Schema {
    list(json_schema!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "layer": {"type": "string"},
            "held": {"type": "boolean"},
            "observed": {"type": "string", "description": "What was seen inside."},
            "control": {"type": "string", "description": "What the positive control outside showed."},
        },
        "required": ["name", "layer", "held", "observed"],
        "additionalProperties": false,
    }))
}

pub(super) fn shortfalls(_: &mut SchemaGenerator) -> Schema {
    list(object(json!({
        "layer": {"type": "string"},
        "needs": level(),
        "has": level(),
        "why": {"type": "string"},
        "fix": {"type": "string"},
    })))
}

pub(super) fn ending(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [
        object(json!({"ended": {"const": "exited"}, "status": {"type": "integer", "minimum": 0, "maximum": 255}})),
        object(json!({"ended": {"const": "signaled"}, "signal": {"type": "integer"}})),
        object(json!({"ended": {"const": "limit"}, "limit": {"type": "string"}})),
        object(json!({"ended": {"enum": ["stopped", "not-found"]}})),
        object(json!({"ended": {"const": "not-executable"}, "errno": {"type": "integer"}})),
        object(json!({"ended": {"const": "no-directory"}, "errno": {"type": "integer"}})),
        object(json!({"ended": {"const": "unlisted-program"}, "file": generator.subschema_for::<Name>()})),
    ]})
}

pub(super) fn observed(generator: &mut SchemaGenerator) -> Schema {
    let name = generator.subschema_for::<Name>();
    let pid = json!({"type": "integer"});
    let program = object(
        json!({"file": name.clone(), "argv": {"type": "array", "items": name.clone()}, "pid": pid.clone()}),
    );
    let refused = object(json!({
        "file": name.clone(),
        "argv": {"type": "array", "items": name.clone()},
        "pid": pid.clone(),
        "layer": {"type": "string", "description": "What stands in its way: `root` where the file is not there, `landlock` where it is."},
    }));
    let reads = json!({
        "files": list(name.clone()),
        "complete": {"type": "boolean", "description": "Whether these are all that were opened."},
    });
    let connection = object(json!({"address": {"type": "string"}, "pid": pid}));
    json_schema!({
        "type": "object",
        "description": "What was seen while the command ran: evidence, never a control.",
        "properties": {
            "programs": list(program),
            "programs_dropped": COUNT(),
            "unlisted_programs": list(refused),
            "unlisted_programs_dropped": COUNT(),
            "connections": list(connection),
            "connections_dropped": COUNT(),
            "network": network_use(),
            "reads": {"anyOf": [object(reads), {"type": "null"}]},
            "renames_healed": COUNT(),
            "limits_touched": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["programs", "programs_dropped", "connections", "connections_dropped"],
    })
}

/// Equal attempts to reach something, as the gateway told them.
pub(super) fn attempt_count(_: &mut SchemaGenerator) -> Schema {
    counted_attempt()
}

fn counted_attempt() -> Schema {
    let text = json!({"type": ["string", "null"]});
    let bytes = json!({"type": "integer", "minimum": 0});
    let verdict = json!({
        "type": "object",
        "properties": {
            "verdict": {"enum": ["allowed", "refused", "failed"]},
            "rule": {"type": "string", "description": "The rule that allows it, as it is written."},
            "reason": {"type": "string", "description": "The stable code of a refusal."},
            "why": {"type": "string", "description": "A sentence for people; of a refusal, with what would be needed."},
            "needs": {"type": "string", "description": "The rule that would let what was refused, where a rule would."},
        },
        "required": ["verdict"],
    });
    let mut attempt = object(json!({
        "at": {"type": "integer", "description": "When the first of them began, in nanoseconds since 1970."},
        "door": {"enum": ["dns", "direct", "proxy", "socks"]},
        "name": text, "port": {"type": ["integer", "null"]}, "address": text, "method": text, "path": text,
        "verdict": verdict, "sent": bytes, "received": bytes,
    }));
    // Only a request to a registry is about one.
    if let Some(properties) = attempt.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert("package".to_owned(), package());
    }
    object(json!({"attempt": attempt, "times": COUNT()}))
}

fn package() -> Json {
    json!({
        "type": "object",
        "description": "The package that a request to a registry was about.",
        "properties": {
            "registry": {"type": "string", "description": "The name of the registry in the settings."},
            "kind": {"enum": ["cargo", "npm", "pypi", "debian"]},
            "name": {"type": "string"},
            "version": {"type": "string", "description": "When one of its files was asked for."},
            "digest": {"type": "string", "description": "What came, once all of it did and was what it must be."},
            "published": {"type": "integer", "description": "When, in nanoseconds since 1970, as the registry tells it."},
            "locked": {"type": "boolean", "description": "Whether a lockfile names this version; missing when not."},
        },
        "required": ["registry", "kind", "name"],
        "additionalProperties": false,
    })
}

pub(super) fn network_so_far(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [network_use(), {"type": "null"}]})
}

/// What was done through the gateway; missing where there was none.
fn network_use() -> Json {
    json!({
        "type": "object",
        "description": "What was tried over the network, as the gateway told it.",
        "properties": {
            "attempts": list(counted_attempt()),
            "attempts_dropped": COUNT(),
            "untold": COUNT(),
            "restarts": COUNT(),
            "alerts": {"type": "array", "description": "What a person should hear of credentials.", "items": object(json!({
                "kind": {"enum": ["value-came-back", "stand-in-elsewhere", "canary", "canary-kept"]},
                "credential": {"type": "string", "description": "The credential, or the variable of a canary."},
                "host": {"type": "string", "description": "The host that was asked."},
            }))},
            "closed": {"type": "string", "description": "Why nothing was reached any longer before the end."},
        },
        "required": ["attempts", "attempts_dropped", "untold", "restarts"],
    })
}

pub(super) fn inputs(generator: &mut SchemaGenerator) -> Schema {
    let source = generator.subschema_for::<Name>();
    list(object(json!({"name": {"type": "string"}, "source": source})))
}

pub(super) fn held_back(generator: &mut SchemaGenerator) -> Schema {
    let path = generator.subschema_for::<Name>();
    list(object(json!({"path": path, "reason": {"type": "string"}, "why": {"type": "string"}})))
}

pub(super) fn teardown(_: &mut SchemaGenerator) -> Schema {
    let names = json!({"type": "array", "items": {"type": "string"}});
    let found = object(json!({"gone": names.clone(), "left": names}));
    json_schema!({"anyOf": [found, {"type": "null"}]})
}

/// One line of `audit show --json` and of an export: `event` is, byte for byte, what the digest was made over.
fn audit_record() -> Json {
    let digest = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One record of the log",
        "type": "object",
        "properties": {
            "format": {"enum": [1, 2]},
            "seq": {"type": "integer", "minimum": 1},
            "time": {"type": "integer", "minimum": 0, "description": "Nanoseconds since the start of 1970 in UTC."},
            "task": {"type": ["string", "null"]},
            "action": {"type": ["string", "null"]},
            "event": {"type": "object", "properties": {"event": {"enum": Event::NAMES}}, "required": ["event"]},
            "previous": digest,
            "digest": digest,
        },
        "required": ["format", "seq", "time", "task", "action", "event", "previous", "digest"],
        "additionalProperties": false,
    })
}

fn audit_verify() -> Json {
    let digest = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    let number = json!({"type": "integer", "minimum": 0});
    let head = object(json!({"log": {"type": "string"}, "seq": number, "digest": digest}));
    let flaw = json!({"type": "object", "properties": {"flaw": {"type": "string"}}, "required": ["flaw"]});
    let range = object(json!({"first": number, "last": number}));
    let ranges = json!({"type": "array", "items": range});
    let pruned = object(json!({"number": number, "records": ranges, "not_anchored": number}));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the check of a log found",
        "oneOf": [
            object(json!({"result": {"const": "consistent"}, "end": head, "pruned": pruned})),
            object(json!({"result": {"const": "anchored"}, "end": head, "anchored": number, "signed_heads": number, "pruned": pruned})),
            object(json!({"result": {"const": "extends"}, "from": number, "end": head})),
            object(json!({"result": {"const": "broken"}, "record": number, "flaw": flaw})),
        ],
    })
}
