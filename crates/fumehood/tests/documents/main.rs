//! What programs and people are shown: documents against their schemas, and text that cannot drive a terminal.

mod samples;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fumehood::exit::Exit;
use fumehood::output::shape::{
    ActionDocument, ApplyDocument, ArtifactRow, ArtifactsDocument, CommitsRow, ConfigDocument, ConfigRow,
    ConflictRow, CredentialChangeDocument, CredentialDocument, CredentialRow, CredentialsDocument,
    DepsDocument, DepsRow, DiffDocument, DoctorDocument, ErrorDocument, ErrorPart, GcDocument, GcRow,
    HoldRow, HostFact, IntakePart, LeaseRow, LegalHoldRow, LegalHoldsDocument, LogDocument, LogRow,
    NetExplainDocument, NetLogDocument, NetLogRow, NetPolicy, NetTestDocument, PolicyAnswer, ProblemRow,
    ProblemsDocument, PruneDocument, Ran, ReproduceDocument, RevocationRow, StagePart, StopDocument,
    TaskDocument, TaskNewDocument, TaskRow, TasksDocument, UndoDocument, differences, schemas, why,
};
use fumehood::output::{Paint, render};
use model::action::Principal;
use model::event::{Event, Verdict};
use model::grant::WorkspaceAccess;
use model::hold::HoldScope;
use model::intake::{Acceptance, Budget, Ceiling, ChangeName, Intake, Sensitivity, WorkLevel};
use model::stage::Stage;
use model::task::TaskState;
use model::text::is_hidden;
use model::{Ending, LimitKind, TaskId, Timestamp};
use samples::{
    HOSTILE, decided, document, documents, ended, id, inspected, not_started, requested, started, text,
};
use serde::Serialize;
use serde_json::Value as Json;

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas").join(format!("{name}.json"))
}

fn schema(name: &str) -> Json {
    let text = std::fs::read_to_string(committed(name)).expect("the schema is committed");
    serde_json::from_str(&text).expect("is JSON")
}

fn fits(name: &str, value: &impl Serialize) {
    let value = serde_json::to_value(value).expect("has a JSON form");
    let validator = jsonschema::validator_for(&schema(name)).expect("the schema is one");
    if let Err(error) = validator.validate(&value) {
        panic!("{name}: {error} at {}\n{value:#}", error.instance_path());
    }
}

#[test]
fn the_committed_schemas_are_those_of_the_documents() {
    for (name, schema) in schemas() {
        let text = std::fs::read_to_string(committed(name)).unwrap_or_default();
        let same = text == format!("{schema:#}\n");
        assert!(same, "docs/schemas/{name}.json differs: cargo run -p fumehood --example schemas");
    }
    let files = std::fs::read_dir(committed("x").parent().expect("a directory")).expect("is there").count();
    assert_eq!(files, schemas().len(), "a schema without a document");
}

#[test]
fn the_committed_schema_of_a_record_lists_every_event() {
    let text = std::fs::read_to_string(committed("audit-record")).expect("is committed");
    let schema: Json = serde_json::from_str(&text).expect("is JSON");
    let listed = &schema["properties"]["event"]["properties"]["event"]["enum"];
    // Every name is that of a variant, and every variant has one: `model` holds that.
    assert_eq!(*listed, serde_json::json!(model::Event::NAMES));
}

#[test]
fn the_documentation_names_every_schema_and_every_exit_code() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let json = std::fs::read_to_string(docs.join("json.md")).expect("is there");
    for (name, _) in schemas() {
        assert!(json.contains(&format!("`{name}.json`")), "docs/json.md does not name {name}.json");
    }
    let cli = std::fs::read_to_string(docs.join("cli.md")).expect("is there");
    let exits = [Exit::Success, Exit::Negative, Exit::TimedOut, Exit::Failed, Exit::Denied, Exit::NoProgram];
    for exit in exits {
        assert!(cli.contains(&format!("\n| {} |", exit.code())), "docs/cli.md does not list {exit:?}");
    }
    assert!(cli.contains("| the command's own |") && cli.contains("| 128+n |"));
}

fn net_explained(document: &ActionDocument) -> NetExplainDocument {
    NetExplainDocument::of(document, |_| vec![HOSTILE.to_owned()])
}

fn net_logged(document: &ActionDocument) -> NetLogDocument {
    let attempts = document.network().into_iter().flat_map(|network| network.attempts.clone());
    let attempts = attempts.map(|tried| NetLogRow { action: id(), tried }).collect();
    NetLogDocument { task: task_row().task, attempts, dropped: 3 }
}

fn net_tested() -> NetTestDocument {
    let hostile = || HOSTILE.to_owned();
    let policy =
        NetPolicy { answer: PolicyAnswer::Ask, reason: hostile(), advice: hostile(), rules: vec![hostile()] };
    NetTestDocument {
        asked: hostile(),
        rule: Some(hostile()),
        named_by: vec![hostile()],
        looks_into_tls: true,
        needs: Some(hostile()),
        policy: Some(policy),
    }
}

fn credential_shown() -> CredentialDocument {
    let hostile = || HOSTILE.to_owned();
    let since = Timestamp::from_nanos(1);
    let lease = |ended: Option<Timestamp>| LeaseRow {
        task: task_row().task,
        action: id(),
        began: since,
        expires: since,
        ended,
        why: ended.map(|_| hostile()),
    };
    let credential = CredentialRow {
        name: hostile(),
        kind: "development",
        owner: hostile(),
        rules: vec![hostile()],
        repositories: vec![hostile()],
        tasks: Some(vec![hostile()]),
        lifetime_seconds: 60,
        placement: hostile(),
        stand_in: Some(hostile()),
        in_clear: false,
        provider: hostile(),
        revoked: Some(RevocationRow { by: hostile(), reason: hostile(), since }),
        in_use: 1,
    };
    CredentialDocument { credential, leases: vec![lease(None)], ended: vec![lease(Some(since))] }
}

fn credential_changed(change: &'static str) -> CredentialChangeDocument {
    CredentialChangeDocument { credential: HOSTILE.to_owned(), change, ended: credential_shown().ended }
}

#[test]
fn every_document_fits_its_schema() {
    let documents = documents();
    for document in &documents {
        fits("action", document);
        fits("why", &why(document));
        fits("net-explain", &net_explained(document));
        fits("net-log", &net_logged(document));
    }
    let log: Vec<LogRow> = documents.iter().map(LogRow::of).collect();
    fits("log", &LogDocument { task: task_row().task, log: log.clone() });
    fits("task", &task_document(log));
    fits("task-list", &TasksDocument { tasks: vec![task_row()] });
    fits("task-row", &task_row());
    fits("apply", &apply_document());
    for document in &documents {
        fits("reproduce", &reproduce_document(document));
    }
    let refused = TaskNewDocument { task: None, intake: intake_part(), lacks: vec![HOSTILE.to_owned()] };
    fits("task-new", &refused);
    fits("task-new", &TaskNewDocument { task: Some(task_row()), ..refused });
    fits("stop", &hold_document());
    fits("net-test", &net_tested());
    fits("credential", &credential_shown());
    fits("credentials", &CredentialsDocument { credentials: vec![credential_shown().credential] });
    fits("credential-change", &credential_changed("revoked"));
    fits("net-test", &NetTestDocument { rule: None, policy: None, ..net_tested() });
    fits("legal-holds", &legal_holds_document());
    fits("audit-prune", &prune_document());
    fits("undo", &UndoDocument { task: task_row().task, layers: vec![id()] });
    fits("diff", &diff_document());
    fits("doctor", &doctor_document(true));
    fits("doctor", &doctor_document(false));
    let error = ErrorPart {
        message: HOSTILE.to_owned(),
        causes: vec![String::new()],
        ran: Ran::Unknown,
        exit_code: 125,
    };
    fits("error", &ErrorDocument { error });
    fits("config-explain", &config_document());
    fits("config-check", &problems_document());
    fits("artifacts", &artifacts_document());
    fits("deps", &deps_document());
    let classes = vec![GcRow { class: model::KeptClass::Layers, number: 1, bytes: 7 }];
    fits("gc", &GcDocument { dry_run: true, layers: vec![id()], classes, freed: 7, held: 1, incidents: 2 });
}

#[test]
fn the_record_fits_its_schema() {
    let head = audit::Head::genesis(audit::LogId::from_random([1; 10]));
    let log = audit::Log::open(audit::MemoryStorage::new(head.log.clone())).expect("opens");
    for event in [requested(&["true"]), decided(Verdict::Deny), started(), inspected()] {
        let receipt =
            log.append(&model::Subject::default(), &event, Timestamp::from_nanos(5)).expect("appends");
        assert_eq!(receipt.event_name(), event.name());
    }
    for record in log.records(1) {
        let line = record.expect("is there").to_line().expect("has a line");
        fits("audit-record", &serde_json::from_str::<Json>(&line).expect("is JSON"));
    }
    let broken = audit::Broken { record: 3, flaw: audit::Flaw::Swapped { found: 4 } };
    fits("audit-verify", &audit::Verification::Broken(broken));
    let records = vec![model::RecordRange { first: 2, last: 4 }];
    let pruned = audit::Pruned { number: 3, records, not_anchored: 1 };
    let found = audit::Verification::Consistent { end: head.clone(), pruned: pruned.clone() };
    fits("audit-verify", &found);
    let end = head.clone();
    fits("audit-verify", &audit::Verification::Anchored { end, anchored: 0, signed_heads: 1, pruned });
    fits("audit-verify", &audit::Verification::Extends { from: 0, end: head });
}

#[test]
fn nothing_that_is_shown_can_drive_a_terminal() {
    let mut shown = Vec::new();
    for document in documents() {
        shown.push(render::action(&document, Paint::PLAIN, true));
        shown.push(render::action(&document, Paint::PLAIN, false));
        shown.push(render::outcome_line(&document, Paint::PLAIN));
        shown.push(render::reproduced(&reproduce_document(&document), Paint::PLAIN));
        shown.push(render::why(&document, &why(&document), Paint::PLAIN));
        shown.push(render::log(&[LogRow::of(&document)], Paint::PLAIN));
        shown.push(render::net_explain(&net_explained(&document), Paint::PLAIN));
        shown.push(render::net_log(&net_logged(&document), Paint::PLAIN));
    }
    shown.push(render::task(&task_document(Vec::new()), Paint::PLAIN));
    let refused = TaskNewDocument { task: None, intake: intake_part(), lacks: vec![HOSTILE.to_owned()] };
    shown.push(render::task_refused(&refused, Paint::PLAIN));
    shown.push(render::stopped(&hold_document(), Paint::PLAIN));
    shown.push(render::legal_holds(&legal_holds_document(), Paint::PLAIN));
    shown.push(render::pruned(&prune_document(), Paint::PLAIN));
    shown.push(render::tasks(&TasksDocument { tasks: vec![task_row()] }, Paint::PLAIN));
    let document = diff_document();
    shown.push(render::diff(&document.patch, &document.held_back, Paint::PLAIN));
    shown.push(render::changes(&diff_document(), Paint::PLAIN));
    shown.push(render::applied(&apply_document(), Paint::PLAIN));
    shown.push(render::net_test(&net_tested(), Paint::PLAIN));
    shown.push(render::credential(&credential_shown(), Paint::PLAIN));
    let credentials = vec![credential_shown().credential];
    shown.push(render::credentials(&CredentialsDocument { credentials }, Paint::PLAIN));
    for change in ["revoked", "rotated"] {
        shown.push(render::credential_changed(&credential_changed(change), Paint::PLAIN));
    }
    shown.push(render::doctor(&doctor_document(false), Paint::PLAIN));
    shown.push(render::config(&config_document(), Paint::PLAIN));
    shown.push(render::problems(&problems_document(), Paint::PLAIN));
    shown.push(render::artifacts(&artifacts_document(), Paint::PLAIN));
    shown.push(render::deps(&deps_document(), Paint::PLAIN));
    for text in shown {
        let driven: Vec<char> = text.chars().filter(|c| is_hidden(*c) && *c != '\n' && *c != '\t').collect();
        assert!(driven.is_empty(), "{driven:?} in\n{text}");
        assert!(!text.contains("\ny"), "a line was forged:\n{text}");
    }
}

#[test]
fn why_names_the_rule_the_layer_and_the_next_step() {
    let causes = |events: &[Event]| why(&document(events)).causes;
    let denied = causes(&[requested(&["git", "push"]), decided(Verdict::Deny)]);
    assert_eq!(
        (denied[0].code.as_str(), denied[0].rules.as_slice()),
        ("push-denied", ["no-push".to_owned()].as_slice())
    );
    assert_eq!(denied[0].sentence, "policy denied `git push`");
    assert_eq!(
        denied[0].next.last().map(String::as_str),
        Some("another command with the same effect gets the same answer")
    );

    let short = causes(&[requested(&["true"]), decided(Verdict::Allow), not_started()]);
    assert_eq!(short[0].layer.map(|layer| layer.to_string()).as_deref(), Some("user-namespace"));
    assert_eq!(short[0].next, ["allow user namespaces"]);
    assert_eq!(short[1].code, "probe-not-held");

    let ended = causes(&[
        decided(Verdict::Allow),
        started(),
        ended(Ending::Limit { limit: LimitKind::Memory }),
        inspected(),
    ]);
    let codes: Vec<&str> = ended.iter().map(|cause| cause.code.as_str()).collect();
    assert_eq!(
        codes,
        [
            "limit-memory",
            "limit-processes",
            "unlisted-program",
            "limit-output",
            "no-rule",
            "no-name",
            "gateway-closed",
            "masked",
            "git-hook"
        ]
    );
    assert!(ended[0].sentence.ends_with("memory 96 MiB"), "{}", ended[0].sentence);
    assert!(ended[5].sentence.contains("`203.0.113.7:443`") && !ended[5].sentence.contains("127.0.0.1"));
    assert!(ended[8].person_may_allow);
    assert!(causes(&[requested(&["true"]), decided(Verdict::Allow)]).is_empty());
}

#[test]
fn each_state_of_an_action_has_its_exit_code() {
    let state = |events: &[Event]| {
        let document = document(events);
        (document.ran, document.exit_code)
    };
    let (asked, yes, no) = (requested(&["true"]), decided(Verdict::Allow), decided(Verdict::Deny));
    assert_eq!(state(&[asked.clone(), no]), (Ran::No, Some(126)));
    assert_eq!(state(&[asked.clone(), decided(Verdict::RequireApproval)]), (Ran::No, Some(126)));
    assert_eq!(state(&[asked.clone(), yes.clone()]), (Ran::No, None));
    assert_eq!(state(&[asked.clone(), yes.clone(), not_started()]), (Ran::No, Some(125)));
    assert_eq!(state(&[asked.clone(), yes.clone(), started()]), (Ran::Unknown, None));
    let end = |ending| state(&[asked.clone(), yes.clone(), started(), ended(ending)]);
    assert_eq!(end(Ending::Exited { status: 126 }), (Ran::Yes, Some(126)));
    assert_eq!(end(Ending::Limit { limit: LimitKind::WallTime }), (Ran::Yes, Some(124)));
    assert_eq!(end(Ending::NotFound), (Ran::No, Some(127)));
    assert_eq!(end(Ending::Signaled { signal: 15 }), (Ran::Yes, Some(143)));
}

#[test]
fn spans_are_milliseconds_and_times_are_in_utc() {
    let events =
        [requested(&["true"]), decided(Verdict::Allow), started(), ended(Ending::Exited { status: 0 })];
    let json = serde_json::to_value(document(&events)).expect("has a JSON form");
    assert_eq!(json["end"]["usage"]["wall_time_ms"], 12_345.678);
    assert_eq!(json["request"]["at"], "2025-11-29T18:27:14.000000Z");
    assert_eq!(json["request"]["grant"]["limits"]["wall_time_ms"], 10_000.0);
    assert_eq!(json["request"]["grant"]["inputs"][0]["source"]["hex"], "2f7372762fff");
}

fn task_row() -> TaskRow {
    TaskRow {
        task: TaskId::from_random([2; 10]),
        state: TaskState::Open,
        workspace: text(HOSTILE),
        commit: Some(HOSTILE.to_owned()),
        owner: Principal::User(HOSTILE.to_owned()),
        title: Some(HOSTILE.to_owned()),
        opened: Timestamp::from_nanos(0),
        actions: 2,
    }
}

/// What was wanted of a task, in hostile words.
fn intake_part() -> IntakePart {
    IntakePart::of(&Intake {
        user: Principal::User(HOSTILE.to_owned()),
        agent: Some(HOSTILE.to_owned()),
        repository: model::OsText::literal("/w"),
        branch: Some(HOSTILE.to_owned()),
        sensitivity: Sensitivity::default(),
        outcome: Some(HOSTILE.to_owned()),
        ceiling: Ceiling {
            level: WorkLevel::BOUNDED,
            workspace: WorkspaceAccess::ReadOnly,
            network: true,
            limits: model::Profile::strict().limits,
        },
        budget: Budget { actions: Some(1), processor_time: Some(Duration::from_secs(1)), tokens: Some(1) },
        deadline: Some(Timestamp::from_nanos(0)),
        acceptance: Acceptance {
            paths: vec![HOSTILE.to_owned()],
            kinds: [ChangeName::Deleted].into(),
            tests: vec![vec![HOSTILE.to_owned()]],
            artifacts: vec![HOSTILE.to_owned()],
        },
    })
}

fn prune_document() -> PruneDocument {
    let prune = engine::Prune {
        classes: [(model::EventClass::Runs, engine::Removed { number: 3, bytes: 7 })].into(),
        records: vec![model::RecordRange { first: 2, last: 4 }],
        held: 1,
        incidents: 2,
        whole: 3,
        left: Some(HOSTILE.to_owned()),
    };
    PruneDocument::of(true, prune)
}

fn legal_holds_document() -> LegalHoldsDocument {
    let hold = |scope| model::LegalHold {
        id: model::LegalHoldId::from_random([3; 10]),
        scope,
        tasks: vec![task_row().task],
        reason: HOSTILE.to_owned(),
        by: Principal::User(HOSTILE.to_owned()),
        since: Timestamp::from_nanos(1_764_505_632_123_456_000),
    };
    let scopes = [
        model::LegalScope::Task(task_row().task),
        model::LegalScope::Action { task: task_row().task, action: id(), ordinal: 3 },
        model::LegalScope::Directory(model::OsText::literal("/w\u{1b}[2J")),
    ];
    let holds = scopes.map(|scope| LegalHoldRow::of(hold(scope))).to_vec();
    LegalHoldsDocument { holds, lifted: Some(model::LegalHoldId::from_random([4; 10])) }
}

fn hold_document() -> StopDocument {
    let hold = |scope| model::Hold {
        id: model::HoldId::from_random([3; 10]),
        scope,
        reason: HOSTILE.to_owned(),
        by: Principal::User(HOSTILE.to_owned()),
        since: Timestamp::from_nanos(0),
    };
    let directory = HoldScope::Directory(model::OsText::literal("/w\u{1b}[2J"));
    let scopes = [HoldScope::All, HoldScope::User(HOSTILE.to_owned()), directory];
    StopDocument {
        holds: scopes.map(hold).into_iter().map(HoldRow::of).collect(),
        ended: vec![task_row().task],
        lifted: None,
    }
}

fn task_document(log: Vec<LogRow>) -> TaskDocument {
    TaskDocument {
        task: task_row(),
        intake: Some(intake_part()),
        stage: Some(StagePart {
            stage: Stage::Review,
            round: 2,
            without_work: vec![Stage::Inspection, Stage::Verification],
        }),
        log,
        prompt_cache_hit_tokens: 1,
        prompt_cache_miss_tokens: 2,
        completion_tokens: 3,
        cpu_time_ms: Duration::from_millis(5),
    }
}

fn diff_document() -> DiffDocument {
    let changes = document(&[inspected()]).inspection.expect("was inspected").changes;
    let patch = format!("--- a/{}\n+++ b/x\n@@ -1 +1 @@\n-a\u{1b}[2J\n+b\u{202e}\n", "x");
    let held_back = vec![samples::held_back()];
    DiffDocument {
        task: task_row().task,
        action: Some(id()),
        changes,
        changes_dropped: 1,
        held_back,
        patch,
        not_in_patch: vec![model::WorkspacePath::parse(HOSTILE).expect("inside")],
    }
}

fn reproduce_document(now: &fumehood::output::shape::ActionDocument) -> ReproduceDocument {
    let before = document(&[requested(&["true"]), decided(Verdict::Allow)]);
    let differs = differences(&before, now);
    ReproduceDocument { action: id(), again: now.clone(), notes: vec![HOSTILE.to_owned()], differs }
}

#[test]
fn what_two_runs_came_to_is_compared() {
    let run = |ending| document(&[decided(Verdict::Allow), started(), ended(ending), inspected()]);
    let (one, two) = (run(Ending::Exited { status: 0 }), run(Ending::Exited { status: 1 }));
    assert!(differences(&one, &one.clone()).is_empty());
    let differs = differences(&one, &two);
    assert_eq!(
        (differs.len(), differs[0].what.as_str(), differs[0].now.as_str()),
        (1, "ending", "exited with 1")
    );
    let nothing = document(&[decided(Verdict::Allow), started(), ended(Ending::Exited { status: 0 })]);
    assert_eq!(differences(&one, &nothing).len(), 5, "each change is named");
}

fn apply_document() -> ApplyDocument {
    let path = || model::WorkspacePath::parse(HOSTILE).expect("inside");
    ApplyDocument {
        task: task_row().task,
        state: TaskState::Applied,
        dry_run: false,
        changes: document(&[inspected()]).inspection.expect("was inspected").changes,
        merged: vec![path()],
        conflicts: vec![ConflictRow { path: path(), beside: None, why: HOSTILE.to_owned() }],
        held_back: vec![samples::held_back()],
        commits: Some(CommitsRow { branch: HOSTILE.to_owned(), commit: HOSTILE.to_owned(), number: 2 }),
    }
}

fn doctor_document(ready: bool) -> DoctorDocument {
    let built = document(&[started(), samples::torn_down(ready)]);
    let failed = document(&[not_started()]).not_started.expect("did not start");
    let sandbox = built.sandbox.expect("was built");
    DoctorDocument {
        profile: HOSTILE.to_owned(),
        ready,
        held: built.held,
        shortfalls: if ready { Vec::new() } else { failed.shortfalls },
        probes: if ready { sandbox.probes } else { failed.failed_probes },
        teardown: built.teardown,
        failure: (!ready).then(|| HOSTILE.to_owned()),
        host: vec![HostFact { name: "kernel".to_owned(), value: HOSTILE.to_owned() }],
    }
}

fn config_document() -> ConfigDocument {
    let row = || HOSTILE.to_owned();
    ConfigDocument { settings: vec![ConfigRow { key: row(), value: row(), origin: row(), about: row() }] }
}

fn problems_document() -> ProblemsDocument {
    let source = fumehood::settings::Source::Operator("f\u{1b}.toml".into());
    let problems =
        fumehood::settings::SettingsFile::parse("\"x\\u001b\" = 1\n", source).expect_err("is wrong");
    let row = |problem: &fumehood::settings::Problem| ProblemRow {
        place: problem.place.to_string(),
        message: problem.kind.to_string(),
    };
    ProblemsDocument { files: vec!["f".to_owned()], problems: problems.iter().map(row).collect() }
}

fn deps_document() -> DepsDocument {
    let text = || HOSTILE.to_owned();
    let row = DepsRow {
        kind: text(),
        name: text(),
        version: text(),
        registry: text(),
        digest: text(),
        locked: true,
        task: TaskId::from_random([2; 10]),
        action: id(),
        at: Timestamp::from_nanos(1),
    };
    DepsDocument { packages: vec![row] }
}

fn artifacts_document() -> ArtifactsDocument {
    ArtifactsDocument { artifacts: vec![ArtifactRow { name: text(HOSTILE), action: id(), size: 1 << 20 }] }
}
