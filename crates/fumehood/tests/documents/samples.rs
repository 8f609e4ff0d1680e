//! Actions in every state that one can be in, made from events as the record holds them.

use std::time::Duration;

use fumehood::output::shape::{ActionDocument, JoiningPart};
use model::action::{Base, Principal, StartingPoint};
use model::change::{Change, ChangeKind, FileKind};
use model::egress::{self, Attempt, AttemptCount, Door, NetworkUse};
use model::enforcement::{Held, Layer, Level, Shortfall};
use model::event::{DecisionRecord, Event, HeldBack, OutputRecord, Verdict};
use model::evidence::{
    ConnectionAttempt, Observed, Probe, ProgramStart, ProgramTry, Reads, StepTime, Teardown,
};
use model::grant::{GrantedProgram, Input, Programs};
use model::{
    ActionId, Bytes, Digest, Effect, Ending, Grant, LimitKind, OsText, Profile, TaskId, Timestamp, Usage,
    WorkspacePath,
};

/// Text that would drive a terminal, forge a line or turn the reading direction if it were written as it is.
pub(crate) const HOSTILE: &str = "x\u{1b}]0;t\u{7}\u{1b}[2J\r\n\u{202e}y\u{200b}";

pub(crate) fn text(text: &str) -> OsText {
    OsText::try_from(text).expect("no NUL")
}

fn path(name: &str) -> WorkspacePath {
    WorkspacePath::parse(name).expect("inside")
}

pub(crate) fn id() -> ActionId {
    ActionId::from_random([7; 10])
}

pub(crate) fn document(events: &[Event]) -> ActionDocument {
    let time = |at: usize| Timestamp::from_nanos(1_764_440_834_000_000_000 + at as u64 * 1_000_000);
    ActionDocument::from_events(id(), events.iter().enumerate().map(|(at, event)| (time(at), event)))
}

pub(crate) fn requested(argv: &[&str]) -> Event {
    let mut grant = Grant::under(Profile::strict());
    grant.programs = Programs::Only(vec![GrantedProgram {
        file: text("/usr/bin/true"),
        digest: Some(Digest::of(b"true")),
    }]);
    grant.inputs =
        vec![Input { name: "data".to_owned(), source: OsText::new(b"/srv/\xff".to_vec()).expect("no NUL") }];
    grant.shown_credentials = vec![path(".env")];
    Event::Requested {
        digest: Digest::of(b"action"),
        principal: Principal::Agent(format!("model {HOSTILE}")),
        class: "action".to_owned(),
        tool: "run".to_owned(),
        argv: argv.iter().map(|argument| text(argument)).collect(),
        environment: vec![("CI".to_owned(), Digest::of(b"1"))],
        claimed_purpose: Some(format!("harmless {HOSTILE}")),
        grant: Box::new(grant),
        start: StartingPoint {
            workspace: text("/ws"),
            base: Base::Commit { commit: "0123456789abcdef".to_owned() },
            layers: vec![ActionId::from_random([1; 10])],
        },
        declared: vec![
            Effect::Run { program: format!("sh {HOSTILE}") },
            Effect::Unknown { why: format!("it says {HOSTILE}") },
        ],
    }
}

pub(crate) fn decided(verdict: Verdict) -> Event {
    let allowed = matches!(verdict, Verdict::Allow | Verdict::Narrow);
    let decision = DecisionRecord {
        verdict,
        rules: vec!["no-push".to_owned()],
        reason: "push-denied".to_owned(),
        advice: format!("commit inside, then `fumehood apply` {HOSTILE}"),
        person_may_allow: verdict == Verdict::RequireApproval,
        grant: allowed.then(|| Grant::under(Profile::strict())),
        policy: Digest::of(b"policy"),
    };
    Event::Decided { digest: Digest::of(b"action"), decision }
}

pub(crate) fn started() -> Event {
    let held = |layer, level| Held { layer, level, by: format!("mechanism {HOSTILE}") };
    Event::Started {
        backend: "native".to_owned(),
        held: vec![
            held(Layer::Seccomp, Level::Hard),
            held(Layer::Limit(LimitKind::Memory), Level::Watched),
            held(Layer::Groups, Level::Absent),
        ],
        probes: vec![probe(true)],
        masked: vec![text(".env"), text(HOSTILE)],
    }
}

pub(crate) fn probe(held: bool) -> Probe {
    Probe {
        name: "mount".to_owned(),
        layer: Layer::Seccomp,
        held,
        observed: format!("EPERM {HOSTILE}"),
        control: Some("the canary exists".to_owned()),
    }
}

pub(crate) fn not_started() -> Event {
    let shortfall = Shortfall {
        layer: Layer::UserNamespace,
        needs: Level::Hard,
        has: Level::Absent,
        why: format!("the kernel refused {HOSTILE}"),
        fix: "allow user namespaces".to_owned(),
    };
    Event::NotStarted {
        reason: "a layer cannot be held".to_owned(),
        shortfalls: vec![shortfall],
        failed_probes: vec![probe(false)],
    }
}

fn network() -> NetworkUse {
    let attempt = Attempt {
        at: Timestamp::from_nanos(1),
        door: Door::Direct,
        name: Some(HOSTILE.to_owned()),
        port: Some(443),
        address: None,
        method: None,
        path: Some(HOSTILE.to_owned()),
        package: None,
        verdict: egress::Verdict::Refused {
            reason: "no-rule".to_owned(),
            why: HOSTILE.to_owned(),
            needs: Some(HOSTILE.to_owned()),
        },
        sent: Bytes::new(1),
        received: Bytes::new(2),
        continued: false,
    };
    let rule = "https://a.test".to_owned();
    let package = egress::PackageUse {
        registry: HOSTILE.to_owned(),
        kind: egress::RegistryKind::Npm,
        name: HOSTILE.to_owned(),
        version: Some(HOSTILE.to_owned()),
        digest: format!("sha256:{}", "ab".repeat(32)).parse().ok(),
        published: Some(Timestamp::from_nanos(1)),
        locked: true,
    };
    let allowed = Attempt {
        package: Some(Box::new(package)),
        address: Some(std::net::Ipv4Addr::LOCALHOST.into()),
        verdict: egress::Verdict::Allowed { rule: rule.clone() },
        ..attempt.clone()
    };
    let failed =
        Attempt { verdict: egress::Verdict::Failed { rule, why: HOSTILE.to_owned() }, ..attempt.clone() };
    let counted = |attempt| AttemptCount { attempt, times: 2 };
    NetworkUse {
        attempts: [attempt, allowed, failed].map(counted).to_vec(),
        attempts_dropped: 1,
        untold: 2,
        restarts: 3,
        alerts: vec![egress::CredentialAlert {
            kind: egress::AlertKind::ValueCameBack,
            credential: HOSTILE.to_owned(),
            host: HOSTILE.to_owned(),
        }],
        closed: Some(HOSTILE.to_owned()),
    }
}

pub(crate) fn ended(ending: Ending) -> Event {
    let argv = vec![text("sh"), text("-c"), text(HOSTILE)];
    let observed = Observed {
        programs: vec![ProgramStart { file: text("/bin/sh"), argv, pid: 2 }; 14],
        programs_dropped: 3,
        unlisted_programs: vec![ProgramTry {
            file: text("/bin/ls"),
            argv: vec![text("ls"), text(HOSTILE)],
            pid: 4,
            layer: Layer::Root,
        }],
        unlisted_programs_dropped: 2,
        connections: ["203.0.113.7:443", "127.0.0.1:80", HOSTILE]
            .map(|address| ConnectionAttempt { address: address.to_owned(), pid: 3 })
            .to_vec(),
        connections_dropped: 1,
        network: Some(Box::new(network())),
        reads: Some(Reads { files: vec![text("/ws/README"), text(HOSTILE)], complete: false }),
        renames_healed: 1,
        limits_touched: vec![LimitKind::Processes, LimitKind::Memory],
    };
    let usage = Usage {
        wall_time: Duration::from_micros(12_345_678),
        cpu_time: Duration::from_millis(900),
        memory_peak: Bytes::mib(40),
        processes_peak: 5,
        disk: Bytes::mib(1),
        files: 9,
        output: Bytes::new(2_000_000),
        memory_byte_seconds: 1 << 40,
    };
    Event::Ended {
        ending,
        usage,
        observed: Box::new(observed),
        steps: vec![StepTime { step: "build".to_owned(), time: Duration::from_micros(4_321) }],
        output: vec![OutputRecord {
            stream: "stdout".to_owned(),
            digest: Digest::of(b"out"),
            kept: 1 << 20,
            dropped: 951_424,
        }],
    }
}

pub(crate) fn inspected() -> Event {
    let change = |name: &str, kind, file, ignored| Change {
        path: path(name),
        kind,
        file,
        mode: if kind == ChangeKind::Deleted { 0 } else { 0o755 },
        size: 10,
        ignored,
    };
    Event::Inspected {
        changes: vec![
            change("src/new.rs", ChangeKind::Created, FileKind::File, false),
            change(HOSTILE, ChangeKind::Modified, FileKind::Symlink, false),
            change("old", ChangeKind::Deleted, FileKind::Directory, false),
            change("target/x", ChangeKind::Created, FileKind::Fifo, true),
            change(".git/hooks/pre-commit", ChangeKind::Created, FileKind::File, false),
        ],
        changes_dropped: 2,
        held_back: vec![held_back()],
        host_edits: vec![text("."), text(HOSTILE)],
    }
}

pub(crate) fn held_back() -> HeldBack {
    HeldBack {
        path: text(".git/hooks/pre-commit"),
        reason: "git-hook".to_owned(),
        why: format!("git runs it on your machine {HOSTILE}"),
    }
}

pub(crate) fn torn_down(clean: bool) -> Event {
    let left = if clean { Vec::new() } else { vec![format!("mount {HOSTILE}")] };
    Event::TornDown { teardown: Teardown { gone: vec!["processes".to_owned(), "mounts".to_owned()], left } }
}

/// Every ending that there is.
pub(crate) fn endings() -> Vec<Ending> {
    let mut endings = vec![
        Ending::Exited { status: 0 },
        Ending::Exited { status: 255 },
        Ending::Signaled { signal: 11 },
        Ending::Stopped,
        Ending::NotFound,
        Ending::NotExecutable { errno: 13 },
        Ending::NoDirectory { errno: 2 },
        Ending::UnlistedProgram { file: text(HOSTILE) },
    ];
    endings.extend(LimitKind::ALL.map(|limit| Ending::Limit { limit }));
    endings
}

/// Actions in every state.
pub(crate) fn documents() -> Vec<ActionDocument> {
    let verdicts = [Verdict::Allow, Verdict::Narrow, Verdict::RequireApproval, Verdict::Deny];
    let mut documents: Vec<_> =
        verdicts.map(|verdict| document(&[requested(&["git", "push", HOSTILE]), decided(verdict)])).to_vec();
    documents.push(document(&[]));
    documents.push(document(&[requested(&["true"])]));
    documents.push(document(&[requested(&["true"]), decided(Verdict::Allow), not_started()]));
    documents.push(document(&[requested(&["true"]), decided(Verdict::Allow), started()]));
    for ending in endings() {
        let applied = Event::Applied { changes: Vec::new(), held_back: vec![held_back()], intent: None };
        let taken_back = Event::AppliedUndone { changes: Vec::new(), held_back: Vec::new(), intent: None };
        let undone = Event::Undone { layers: vec![id()] };
        documents.push(document(&[
            requested(&["cargo", "test", "a b", ""]),
            decided(Verdict::Narrow),
            started(),
            ended(ending),
            inspected(),
            torn_down(true),
            applied,
            taken_back,
            undone,
        ]));
    }
    let task = TaskId::from_random([7; 10]);
    let joined_by = vec![JoiningPart { action: id(), task }];
    let alone = document(&[started(), ended(Ending::Exited { status: 1 }), torn_down(false)]);
    documents.push(ActionDocument { joined_by, ..alone });
    documents
}
