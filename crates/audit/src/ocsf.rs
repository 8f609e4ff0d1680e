//! Events in the form of the Open Cybersecurity Schema Framework, for systems that collect them from many programs.
//!
//! Which class each of our events has is said in one table, [`ROWS`]; the class says which attributes are required and where
//! they come from. What OCSF has no attribute for stands in `unmapped`, so nothing is lost; but the form is not the one that
//! digests were made over, so it cannot be verified. The record itself is exported for that.

use model::action::Principal;
use model::event::{Event, Verdict};
use model::{ActionId, Ending, LogId, TaskId, Timestamp};
use serde_json::{Map, Value, json};

use crate::record::Record;
use crate::storage::Malformed;
use crate::summary::summary;

/// The version of the schema that the classes and attributes are of.
pub const VERSION: &str = "1.8.0";

/// The classes that our events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the schema")]
pub enum Class {
    ProcessActivity,
    EventLogActivity,
    DetectionFinding,
    EntityManagement,
    NetworkActivity,
    ApplicationLifecycle,
    ApiActivity,
    ScanActivity,
    ApplicationError,
}

impl Class {
    /// Returns the number of the class; its category stands before the last three digits.
    pub const fn uid(self) -> u32 {
        match self {
            Self::ProcessActivity => 1007,
            Self::EventLogActivity => 1008,
            Self::DetectionFinding => 2004,
            Self::EntityManagement => 3004,
            Self::NetworkActivity => 4001,
            Self::ApplicationLifecycle => 6002,
            Self::ApiActivity => 6003,
            Self::ScanActivity => 6007,
            Self::ApplicationError => 6008,
        }
    }

    /// Returns the name of the class.
    pub const fn caption(self) -> &'static str {
        match self {
            Self::ProcessActivity => "Process Activity",
            Self::EventLogActivity => "Event Log Activity",
            Self::DetectionFinding => "Detection Finding",
            Self::EntityManagement => "Entity Management",
            Self::NetworkActivity => "Network Activity",
            Self::ApplicationLifecycle => "Application Lifecycle",
            Self::ApiActivity => "API Activity",
            Self::ScanActivity => "Scan Activity",
            Self::ApplicationError => "Application Error",
        }
    }
}

/// How grave an event is, as `severity_id` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the schema")]
pub enum Severity {
    Informational = 1,
    Low = 2,
    Medium = 3,
    High = 4,
}

/// Whether what the event tells of came to be, as `status_id` says it. A finding has another scale, on which it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the schema")]
pub enum Status {
    Success = 1,
    Failure = 2,
}

/// What one of our events is in OCSF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name of our event.
    pub event: &'static str,
    /// Its class.
    pub class: Class,
    /// The number of the activity in that class; 99 is one that the schema does not have.
    pub activity: u32,
    /// The name of the activity.
    pub activity_name: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// Whether it came to be.
    pub status: Status,
    /// The kind of thing that it is about: the type of an entity, the name of an application.
    pub about: &'static str,
}

/// The table. The match makes sure that no event is left out.
macro_rules! rows {
    ($($event:ident $name:literal => $class:ident $activity:literal $activity_name:literal, $severity:ident $status:ident, $about:literal;)+) => {
        /// Every event of ours, with what it is in OCSF.
        pub const ROWS: &[Row] = &[$(Row {
            event: $name,
            class: Class::$class,
            activity: $activity,
            activity_name: $activity_name,
            severity: Severity::$severity,
            status: Status::$status,
            about: $about,
        }),+];

        /// Returns the row of an event, by its place in the order of the table.
        fn row(event: &Event) -> &'static Row {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "one name for each row")]
            enum Place { $($event),+ }
            let place = match event {
                $(Event::$event { .. } => Place::$event,)+
            };
            &ROWS[place as usize]
        }
    };
}

rows! {
    TaskOpened "task-opened" => EntityManagement 1 "Create", Informational Success, "task";
    Intake "intake" => EntityManagement 1 "Create", Informational Success, "task";
    IntakeRefused "intake-refused" => EntityManagement 1 "Create", Low Failure, "task";
    Stage "stage" => EntityManagement 3 "Update", Informational Success, "stage of a task";
    Requested "requested" => ApiActivity 1 "Create", Informational Success, "action";
    Decided "decided" => ApiActivity 99 "Decide", Informational Success, "action";
    TrialDecided "trial-decided" => ApiActivity 99 "Decide", Informational Success, "trial";
    DenialRemembered "denial-remembered" => EntityManagement 1 "Create", Informational Success, "denial";
    DenialMet "denial-met" => DetectionFinding 1 "Create", Medium Success, "denied effect tried in another way";
    TaskFrozen "task-frozen" => DetectionFinding 1 "Create", High Success, "task frozen";
    Held "held" => DetectionFinding 1 "Create", High Success, "work stopped by a person";
    HoldLifted "hold-lifted" => EntityManagement 3 "Update", Informational Success, "hold";
    LegalHoldGiven "legal-hold-given" => EntityManagement 1 "Create", Low Success, "legal hold";
    LegalHoldLifted "legal-hold-lifted" => EntityManagement 3 "Update", Medium Success, "legal hold";
    ApprovalAsked "approval-asked" => EntityManagement 1 "Create", Informational Success, "approval";
    ApprovalAskedAgain "approval-asked-again" => EntityManagement 2 "Read", Informational Success, "approval";
    ApprovalNotAsked "approval-not-asked" => EntityManagement 1 "Create", Low Failure, "approval";
    ApprovalAnswered "approval-answered" => EntityManagement 3 "Update", Informational Success, "approval";
    ApprovalClosed "approval-closed" => EntityManagement 11 "Deactivate", Informational Success, "approval";
    ApprovalRefused "approval-refused" => EntityManagement 3 "Update", Medium Failure, "approval";
    ApprovalExported "approval-exported" => EntityManagement 2 "Read", Informational Success, "approval";
    Started "started" => ProcessActivity 1 "Launch", Informational Success, "sandbox";
    GatewayStarted "gateway-started" => ApplicationLifecycle 3 "Start", Informational Success, "gateway";
    NetworkAttempts "network-attempts" => NetworkActivity 6 "Traffic", Informational Success, "gateway";
    CredentialLeased "credential-leased" => EntityManagement 10 "Activate", Informational Success, "credential";
    CredentialEnded "credential-ended" => EntityManagement 11 "Deactivate", Informational Success, "credential";
    CredentialRevoked "credential-revoked" => EntityManagement 11 "Deactivate", Medium Success, "credential";
    CredentialRotated "credential-rotated" => EntityManagement 3 "Update", Informational Success, "credential";
    CredentialAlert "credential-alert" => DetectionFinding 1 "Create", High Success, "credential where it should not be";
    GatewayEnded "gateway-ended" => ApplicationLifecycle 4 "Stop", Medium Failure, "gateway";
    NotStarted "not-started" => ProcessActivity 1 "Launch", Medium Failure, "sandbox";
    Ended "ended" => ProcessActivity 2 "Terminate", Informational Success, "sandbox";
    Inspected "inspected" => ScanActivity 2 "Completed", Informational Success, "inspection";
    TornDown "torn-down" => ApplicationLifecycle 4 "Stop", Informational Success, "sandbox";
    Applied "applied" => EntityManagement 3 "Update", Low Success, "workspace";
    AppliedUndone "applied-undone" => EntityManagement 3 "Update", Low Success, "workspace";
    CommitsImported "commits-imported" => EntityManagement 3 "Update", Low Success, "repository";
    Undone "undone" => EntityManagement 3 "Update", Informational Success, "task";
    Forked "forked" => EntityManagement 1 "Create", Informational Success, "task";
    TaskState "task-state" => EntityManagement 3 "Update", Informational Success, "task";
    ModelTurn "model-turn" => ApiActivity 99 "Ask model", Informational Success, "model";
    RecordRead "record-read" => EntityManagement 2 "Read", Informational Success, "content";
    BaseMade "base-made" => EntityManagement 1 "Create", Informational Success, "base";
    AgentStarted "agent-started" => ApplicationLifecycle 3 "Start", Informational Success, "agent";
    AgentConfined "agent-confined" => ApplicationLifecycle 99 "Confine", Informational Success, "agent";
    AgentEnded "agent-ended" => ApplicationLifecycle 4 "Stop", Informational Success, "agent";
    Recovered "recovered" => ApplicationError 1 "General Error", Low Success, "leftovers of a run";
    AnchorFailed "anchor-failed" => EventLogActivity 4 "Archive", High Failure, "signed head";
    Removed "removed" => EntityManagement 4 "Delete", Informational Success, "layers";
    RecordPruned "record-pruned" => EventLogActivity 1 "Clear", Medium Success, "record";
    Pruned "pruned" => EventLogActivity 2 "Delete", Informational Success, "event";
}

/// Returns a record of a log as one OCSF event.
///
/// # Errors
/// When it holds no event that this build knows.
pub fn event(record: &Record, log: &LogId) -> Result<Value, Malformed> {
    let event = record.parse_event().map_err(|error| Malformed::NotARecord(error.to_string()))?;
    let row = row(&event);
    let mut fields = base(record, log, row, &event)?;
    fields.extend(of_class(record, log, row, &event));
    if let Event::Decided { decision, .. } | Event::TrialDecided { decision, .. } = &event {
        let (action, disposition) = match decision.verdict {
            Verdict::Allow | Verdict::Narrow => (1, 1),
            Verdict::RequireApproval => (2, 23),
            Verdict::Deny => (2, 2),
        };
        fields.insert("action_id".to_owned(), action.into());
        fields.insert("disposition_id".to_owned(), disposition.into());
    }
    Ok(Value::Object(fields))
}

/// Returns what every class requires, and what every event of ours has.
fn base(record: &Record, log: &LogId, row: &Row, event: &Event) -> Result<Map<String, Value>, Malformed> {
    let malformed = |error: serde_json::Error| Malformed::NotARecord(error.to_string());
    let class = row.class.uid();
    let decision = matches!(event, Event::Decided { .. } | Event::TrialDecided { .. });
    let profiles: &[&str] = if decision { &["security_control"] } else { &[] };
    let fields = json!({
        "metadata": {
            "version": VERSION,
            "product": {"name": "Fumehood", "vendor_name": "Fumehood", "version": env!("CARGO_PKG_VERSION")},
            "profiles": profiles,
            "log_name": log,
            "sequence": record.seq,
            "uid": record.digest,
            "event_code": row.event,
            "correlation_uid": record.subject.task,
        },
        "time": milliseconds(record.time),
        "category_uid": class / 1000,
        "class_uid": class,
        "class_name": row.class.caption(),
        "activity_id": row.activity,
        "activity_name": row.activity_name,
        "type_uid": class * 100 + row.activity,
        "severity_id": row.severity as u32,
        "status_id": status(row),
        "message": summary(event),
        "unmapped": {
            "task": record.subject.task,
            "action": record.subject.action,
            "event": serde_json::from_str::<Value>(&record.event).map_err(malformed)?,
        },
    });
    match fields {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// A finding is new; whatever else happened did or did not.
fn status(row: &Row) -> u32 {
    if row.class == Class::DetectionFinding { 1 } else { row.status as u32 }
}

fn milliseconds(time: Timestamp) -> u64 {
    time.as_nanos() / 1_000_000
}

/// Returns what the class requires beside that.
fn of_class(record: &Record, log: &LogId, row: &Row, event: &Event) -> Map<String, Value> {
    let task = record.subject.task.as_ref().map(TaskId::as_str);
    let action = record.subject.action.as_ref().map(ActionId::as_str);
    let digest = record.digest.to_string();
    let about = action.or(task).unwrap_or(&digest);
    let actor = actor(event);
    // The record does not say on which machine it was written; its log has a name that no other has.
    let device = json!({"type_id": 0, "uid": log});
    let fields = match row.class {
        Class::ProcessActivity => {
            let exit_code = match event {
                Event::Ended { ending: Ending::Exited { status }, .. } => Some(*status),
                _ => None,
            };
            let process = json!({"uid": about, "name": row.about});
            match exit_code {
                Some(code) => {
                    json!({"actor": actor, "device": device, "process": process, "exit_code": code})
                }
                None => json!({"actor": actor, "device": device, "process": process}),
            }
        }
        Class::EventLogActivity => json!({"actor": actor, "device": device, "log_name": log}),
        Class::DetectionFinding => json!({"finding_info": {"uid": digest, "title": row.about}}),
        Class::EntityManagement => {
            json!({"actor": actor, "entity": {"uid": entity(event).as_deref().unwrap_or(about), "type": row.about}})
        }
        Class::NetworkActivity => {
            json!({"src_endpoint": {"uid": about, "svc_name": row.about}, "dst_endpoint": destination(event)})
        }
        Class::ApplicationLifecycle => json!({"app": {"name": row.about, "uid": about}}),
        Class::ApiActivity => json!({
            "actor": actor,
            "api": {"operation": row.event, "service": {"name": row.about}},
            "src_endpoint": {"svc_name": "fumehood"},
        }),
        Class::ScanActivity => json!({"scan": {"type_id": 99, "type": row.about, "uid": about}}),
        Class::ApplicationError => json!({}),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns what was to be reached first; the others stand in `unmapped`.
fn destination(event: &Event) -> Value {
    let Event::NetworkAttempts { attempts, .. } = event else { return json!({}) };
    let Some(first) = attempts.first() else { return json!({}) };
    json!({"hostname": first.name, "port": first.port, "ip": first.address})
}

/// Returns who did it, where the event says so: otherwise we did.
fn actor(event: &Event) -> Value {
    let who = match event {
        Event::TaskOpened { owner, .. } => owner,
        Event::Requested { principal, .. } => principal,
        Event::ApprovalAnswered { answer, .. } => &answer.by,
        Event::ApprovalRefused { by, .. } => by,
        Event::CredentialRevoked { by, .. } | Event::CredentialRotated { by, .. } => by,
        Event::Held { by, .. } | Event::HoldLifted { by, .. } | Event::TaskFrozen { by: Some(by), .. } => by,
        Event::LegalHoldGiven { by, .. } | Event::LegalHoldLifted { by, .. } => by,
        Event::RecordPruned { by, .. } => by,
        Event::Intake { intake } | Event::IntakeRefused { intake, .. } => &intake.user,
        _ => &Principal::Engine,
    };
    match who {
        Principal::User(name) => json!({"user": {"name": name}}),
        Principal::Agent(name) => json!({"app_name": name}),
        Principal::Engine => json!({"app_name": "fumehood"}),
    }
}

/// Returns what an event is about where that is neither its action nor its task.
fn entity(event: &Event) -> Option<String> {
    match event {
        Event::ApprovalAsked { approval, .. }
        | Event::ApprovalAskedAgain { approval, .. }
        | Event::ApprovalAnswered { approval, .. }
        | Event::ApprovalClosed { approval, .. }
        | Event::ApprovalRefused { approval, .. }
        | Event::ApprovalExported { approval, .. } => Some(approval.to_string()),
        Event::Held { hold, .. } | Event::HoldLifted { hold, .. } => Some(hold.to_string()),
        Event::LegalHoldGiven { hold, .. } | Event::LegalHoldLifted { hold, .. } => Some(hold.to_string()),
        Event::CommitsImported { branch, .. } => Some(branch.clone()),
        Event::BaseMade { commit, .. } => Some(commit.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::event::{DecisionRecord, Subject};
    use model::{Digest, OsText};

    use super::*;
    use crate::head::Head;

    fn log() -> LogId {
        LogId::from_random([1; 10])
    }

    fn of(about: &Event) -> Value {
        let subject = Subject {
            task: Some(TaskId::from_random([2; 10])),
            action: Some(ActionId::from_random([3; 10])),
        };
        let text = serde_json::to_string(about).expect("has a JSON form");
        let time = Timestamp::from_nanos(1_764_440_834_123_456_789);
        event(&Record::following(&Head::genesis(log()), subject, text, time), &log()).expect("is an event")
    }

    /// What version 1.8.0 of the schema requires of each class beside what it requires of all.
    fn required(class: Class) -> &'static [&'static str] {
        match class {
            Class::ProcessActivity => &["/actor", "/device/type_id", "/device/uid", "/process/uid"],
            Class::EventLogActivity => &["/actor", "/device/type_id", "/device/uid", "/log_name"],
            Class::DetectionFinding => &["/finding_info/uid"],
            Class::EntityManagement => &["/entity/uid"],
            Class::NetworkActivity => &["/src_endpoint/uid", "/dst_endpoint/hostname"],
            Class::ApplicationLifecycle => &["/app/name"],
            Class::ApiActivity => &["/actor", "/api/operation", "/src_endpoint/svc_name"],
            Class::ScanActivity => &["/scan/type_id"],
            Class::ApplicationError => &[],
        }
    }

    const OF_ALL: [&str; 9] = [
        "/activity_id",
        "/category_uid",
        "/class_uid",
        "/metadata/version",
        "/metadata/product/name",
        "/severity_id",
        "/time",
        "/type_uid",
        "/message",
    ];

    /// The activities that each class has in the schema.
    fn activities(class: Class) -> std::ops::RangeInclusive<u32> {
        match class {
            Class::ProcessActivity => 1..=5,
            Class::EventLogActivity | Class::ScanActivity => 1..=10,
            Class::DetectionFinding => 1..=3,
            Class::EntityManagement => 1..=13,
            Class::NetworkActivity => 1..=7,
            Class::ApplicationLifecycle => 1..=8,
            Class::ApiActivity => 1..=4,
            Class::ApplicationError => 1..=2,
        }
    }

    #[test]
    fn every_event_has_a_row() {
        let rows: Vec<&str> = ROWS.iter().map(|row| row.event).collect();
        assert_eq!(rows, Event::NAMES);
        for row in ROWS {
            assert!(activities(row.class).contains(&row.activity) || row.activity == 99, "{row:?}");
            assert!(!row.about.is_empty() && !row.activity_name.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn the_table_is_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.md");
        let page = std::fs::read_to_string(page).expect("is there");
        for row in ROWS {
            let Row { event, class, activity, activity_name, .. } = row;
            let line = format!(
                "| `{event}` | {} ({}) | {activity_name} ({activity}) |",
                class.caption(),
                class.uid()
            );
            assert!(page.contains(&line), "docs/record.md lacks the row\n{line}");
        }
    }

    #[test]
    fn an_event_has_what_its_class_requires() {
        let decision = DecisionRecord {
            verdict: Verdict::Deny,
            rules: Vec::new(),
            reason: "no".to_owned(),
            advice: String::new(),
            person_may_allow: false,
            grant: None,
            policy: Digest::of(b"policy"),
        };
        let approval = model::ApprovalId::from_random([4; 10]);
        let file = OsText::try_from("/heads").expect("no NUL");
        let attempt = serde_json::from_value(json!({
            "at": 1, "door": "dns", "name": "a.test", "port": null, "address": null, "method": null, "path": null,
            "verdict": {"verdict": "refused", "reason": "r", "why": "w"}, "sent": 0, "received": 0,
        }));
        let attempt = attempt.expect("an attempt");
        let events = [
            Event::Decided { digest: Digest::of(b"action"), decision },
            Event::TaskFrozen { why: "too many".to_owned(), by: None },
            Event::ApprovalRefused {
                approval,
                by: Principal::Agent("model".to_owned()),
                why: String::new(),
                file: None,
            },
            Event::NetworkAttempts { attempts: vec![attempt], dropped: 0 },
            Event::NotStarted { reason: "no".to_owned(), shortfalls: Vec::new(), failed_probes: Vec::new() },
            Event::Inspected {
                changes: Vec::new(),
                changes_dropped: 0,
                held_back: Vec::new(),
                host_edits: Vec::new(),
            },
            Event::AgentEnded { finished: true, reason: "finished".to_owned() },
            Event::Recovered { removed: Vec::new(), unknown: Vec::new() },
            Event::AnchorFailed { records: 7, file, why: "no space".to_owned() },
        ];
        for event in &events {
            let found = of(event);
            for pointer in OF_ALL.iter().chain(required(row(event).class)) {
                assert!(found.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}: {found:#}");
            }
            let class = found["class_uid"].as_u64().expect("is a number");
            assert_eq!(found["type_uid"], class * 100 + found["activity_id"].as_u64().expect("is a number"));
            assert_eq!(found["metadata"]["event_code"], event.name());
            assert_eq!(found["unmapped"]["event"]["event"], event.name(), "nothing of ours is lost");
        }
        let classes: std::collections::BTreeSet<u32> =
            events.iter().map(|event| row(event).class.uid()).collect();
        assert_eq!(classes.len(), 9, "each class is looked at");
        let denied = of(&events[0]);
        assert_eq!((&denied["action_id"], &denied["disposition_id"]), (&json!(2), &json!(2)));
        assert_eq!(denied["time"], 1_764_440_834_123_u64);
        assert_eq!(of(&events[2])["actor"], json!({"app_name": "model"}));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let head = Head::genesis(log());
        let record = Record::following(&head, Subject::default(), "{}".to_owned(), Timestamp::from_nanos(5));
        assert!(event(&record, &log()).is_err());
    }
}
