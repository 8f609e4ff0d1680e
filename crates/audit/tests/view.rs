//! The view for people: whatever stands in an event, its record is one line that cannot drive a terminal.
#![allow(clippy::unwrap_used)]

mod common;

use audit::{Log, MemoryStorage, view};
use common::{log_id, subject};
use model::event::Event;
use model::text::is_hidden;
use model::{Grant, Profile, Timestamp};
use serde_json::{Value, json};

const HOSTILE: &str = "x\n     9  decided allow\r\u{1b}[2J\u{202e}\u{2028}\u{200b}\\\u{9b}";

fn sample(name: &str) -> Value {
    let digest = "ab".repeat(32);
    let action = "act-aaaaaaaaaaaaaaaa";
    let probe = json!({"name": HOSTILE, "layer": "seccomp", "held": false, "observed": HOSTILE});
    let change = json!({"path": HOSTILE, "kind": "created", "file": "file", "mode": 420, "size": u64::MAX, "ignored": false});
    let held_back = json!({"path": HOSTILE, "reason": HOSTILE, "why": HOSTILE});
    let workspace = json!({"path": HOSTILE, "device": u64::MAX, "inode": u64::MAX});
    let time = json!({"secs": u64::MAX, "nanos": 999_999_999});
    match name {
        "task-opened" => {
            json!({"workspace": workspace, "owner": {"kind": "user", "name": HOSTILE}, "title": HOSTILE})
        }
        "requested" => json!({
            "digest": digest, "principal": {"kind": "agent", "name": HOSTILE}, "class": HOSTILE, "tool": HOSTILE,
            "argv": [HOSTILE, {"hex": "ff0a1b"}], "environment": [[HOSTILE, digest]], "claimed_purpose": HOSTILE,
            "grant": Grant::under(Profile::strict()),
            "start": {"workspace": HOSTILE, "base": {"kind": "live"}, "layers": []},
        }),
        "decided" => json!({"digest": digest, "decision": {
            "verdict": "deny", "rules": [HOSTILE, HOSTILE], "reason": HOSTILE, "advice": HOSTILE,
            "person_may_allow": true, "grant": null, "policy": digest,
        }}),
        "started" => json!({"backend": HOSTILE, "held": [], "probes": [probe], "masked": [HOSTILE]}),
        "gateway-started" => json!({"rules": [HOSTILE], "probes": [probe]}),
        "network-attempts" => json!({"attempts": [{
            "at": 1, "door": "direct", "name": HOSTILE, "port": u16::MAX, "address": null, "method": HOSTILE,
            "path": HOSTILE, "verdict": {"verdict": "refused", "reason": HOSTILE, "why": HOSTILE},
            "sent": u64::MAX, "received": u64::MAX,
        }], "dropped": u64::MAX}),
        "credential-leased" => {
            json!({"credential": HOSTILE, "owner": HOSTILE, "rules": [HOSTILE], "expires": u64::MAX})
        }
        "credential-ended" => json!({"credential": HOSTILE, "why": HOSTILE}),
        "credential-revoked" => {
            json!({"credential": HOSTILE, "by": {"kind": "user", "name": HOSTILE}, "reason": HOSTILE})
        }
        "credential-rotated" => json!({"credential": HOSTILE, "by": {"kind": "user", "name": HOSTILE}}),
        "credential-alert" => json!({"alert": {"kind": "canary", "credential": HOSTILE, "host": HOSTILE}}),
        "gateway-ended" => json!({"why": HOSTILE, "again": false}),
        "not-started" => json!({"reason": HOSTILE, "shortfalls": [
            {"layer": "memory", "needs": "hard", "has": "absent", "why": HOSTILE, "fix": HOSTILE},
        ], "failed_probes": [probe]}),
        "ended" => json!({
            "ending": {"ended": "signaled", "signal": i32::MIN}, "steps": [{"step": HOSTILE, "time": time}],
            "usage": {
                "wall_time": time, "cpu_time": time, "memory_peak": u64::MAX, "processes_peak": u32::MAX,
                "disk": u64::MAX, "files": u64::MAX, "output": u64::MAX, "memory_byte_seconds": u64::MAX,
            },
            "observed": {
                "programs": [{"file": HOSTILE, "argv": [HOSTILE], "pid": -1}], "programs_dropped": u64::MAX,
                "connections": [{"address": HOSTILE, "pid": -1}], "connections_dropped": u64::MAX,
                "renames_healed": u64::MAX, "limits_touched": [],
            },
            "output": [{"stream": HOSTILE, "digest": digest, "kept": u64::MAX, "dropped": u64::MAX}],
        }),
        "inspected" => {
            json!({"changes": [change], "changes_dropped": u64::MAX, "held_back": [held_back, held_back]})
        }
        "torn-down" => json!({"teardown": {"gone": [HOSTILE], "left": [HOSTILE]}}),
        "applied" | "applied-undone" => json!({"changes": [change], "held_back": [held_back]}),
        "undone" | "removed" => json!({"layers": [action, action]}),
        "forked" => json!({"from": "task-aaaaaaaaaaaaaaaa", "layers": [action]}),
        "task-state" => json!({"state": "discarded"}),
        "model-turn" => json!({"model": HOSTILE, "request": digest, "response": digest, "tokens": {
            "prompt_cache_hit": u64::MAX, "prompt_cache_miss": u64::MAX, "completion": u64::MAX,
        }}),
        "base-made" => json!({"commit": HOSTILE, "by": action}),
        "agent-started" => json!({
            "model": HOSTILE, "server": HOSTILE, "transcript": digest, "from_commit": true, "turns": u32::MAX,
            "profile": Profile::strict(),
        }),
        "agent-confined" => json!({"probes": [probe]}),
        "agent-ended" => json!({"finished": false, "reason": HOSTILE}),
        "recovered" => json!({"removed": [HOSTILE], "unknown": [action]}),
        other => panic!("{other}"),
    }
}

#[test]
fn no_field_of_any_event_can_drive_a_terminal() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let names = [
        "task-opened",
        "requested",
        "decided",
        "started",
        "gateway-started",
        "network-attempts",
        "credential-leased",
        "credential-ended",
        "credential-revoked",
        "credential-rotated",
        "credential-alert",
        "gateway-ended",
        "not-started",
        "ended",
        "inspected",
        "torn-down",
        "applied",
        "applied-undone",
        "undone",
        "forked",
        "task-state",
        "model-turn",
        "base-made",
        "agent-started",
        "agent-confined",
        "agent-ended",
        "recovered",
        "removed",
    ];
    for name in names {
        let mut event = sample(name);
        event["event"] = name.into();
        let event: Event = serde_json::from_value(event).expect(name);
        let _receipt = log.append(&subject(1), &event, Timestamp::from_nanos(u64::MAX)).unwrap();
    }
    let records: Vec<_> = log.records(0).map(Result::unwrap).collect();
    for (record, name) in records.iter().zip(names) {
        let line = view(record);
        assert!(!line.chars().any(is_hidden), "{line:?}");
        assert!(line.contains(&format!("  {name}")), "{line}");
        assert!(line.chars().count() < 800, "{line}");
        assert!(record.to_line().is_ok());
    }
}
