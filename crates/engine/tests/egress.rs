//! An action that reaches something: through a gateway that the engine starts, and with each of its words on the record.
//!
//! The gateway is this very program. It decides nothing, and tells of one name as soon as it serves.
#![allow(clippy::disallowed_methods, reason = "tests have no settings module")]

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::{Bench, config};
use engine::{Config, Engine, EngineError, GatewayProgram, Order, Outcome, PolicySource};
use model::egress::{Attempt, Begin, Bounds, Door, EgressRule, FromGateway, Ranges, ToGateway, Verdict};
use model::evidence::Probe;
use model::grant::Network;
use model::{ActionId, Bytes, Event, Layer, Profile, TaskId, Timestamp};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tempfile::TempDir;

/// The shipped rules, and one that lets an action reach what a person named.
const SHIPPED: &str = gate::DEFAULT_BUNDLE;
const REACH: &str = r#"
@id("what-a-test-names")
@reason("named-by-a-test")
permit (principal, action == Action::"reach", resource)
when { context.named_by_person };
"#;
/// And one that denies what the words of a command want to reach.
const SAID: &str = r#"
@id("nothing-that-is-said")
@reason("said-by-a-command")
@advice("say nothing")
@person_may_allow("false")
forbid (principal, action == Action::"connect", resource);
"#;

#[test]
#[ignore = "started by the other tests as a gateway"]
fn gateway() {
    let socket = std::io::stdin();
    let say = |message: &FromGateway| {
        send(&socket, &serde_json::to_vec(message).expect("JSON"), SendFlags::empty()).expect("it is heard");
    };
    let mut packet = vec![0; 64 << 10];
    loop {
        let (read, _) = recv(&socket, packet.as_mut_slice(), RecvFlags::empty()).expect("a packet");
        match serde_json::from_slice(&packet[..read]).expect("as agreed") {
            ToGateway::Open => {
                say(&FromGateway::Ready(vec![probe()]));
                say(&FromGateway::Attempts(vec![attempt("while-it-runs.test")]));
            }
            ToGateway::Finish => {
                let rule = "https://let-out.test".to_owned();
                let let_out = Attempt {
                    door: Door::Direct,
                    port: Some(443),
                    verdict: Verdict::Allowed { rule },
                    ..attempt("let-out.test")
                };
                say(&FromGateway::Attempts(vec![attempt("at-the-end.test"), let_out]));
                std::process::exit(0);
            }
            _ => {}
        }
    }
}

fn probe() -> Probe {
    let (name, observed) = ("open-file".to_owned(), "refused".to_owned());
    Probe { name, layer: Layer::Landlock, held: true, observed, control: None }
}

fn attempt(name: &str) -> Attempt {
    Attempt {
        at: Timestamp::from_nanos(1),
        door: Door::Dns,
        name: Some(name.to_owned()),
        port: None,
        address: None,
        method: None,
        path: None,
        package: None,
        verdict: Verdict::Refused {
            reason: "no-rule".to_owned(),
            why: "no rule names it".to_owned(),
            needs: None,
        },
        sent: Bytes::new(0),
        received: Bytes::new(0),
        continued: false,
    }
}

fn rules() -> BTreeSet<EgressRule> {
    BTreeSet::from(["https://allowed.test".parse().expect("a rule")])
}

fn with_gateway(directory: &TempDir) -> Config {
    let program = GatewayProgram {
        authority: |_, _| Err("no rule of these tests looks inside".to_owned()),
        roots: Vec::new(),
        program: std::env::current_exe().expect("our own file"),
        arguments: ["--exact", "gateway", "--ignored", "--nocapture"].map(Into::into).into(),
        begin: Begin { ranges: Ranges::default(), resolvers: Vec::new(), bounds: Bounds::default() },
    };
    Config {
        policy: PolicySource::Rules(format!("{SHIPPED}{REACH}")),
        egress: vec![engine::Reachable { rules: rules().into_iter().collect(), repositories: None }],
        credentials: Vec::new(),
        canaries: Vec::new(),
        gateway: Some(program),
        ..config(directory)
    }
}

fn bench(change: impl FnOnce(&mut Config)) -> Bench {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(directory.path().join("home")).expect("a home");
    fs::create_dir(directory.path().join("work")).expect("a workspace");
    let mut config = with_gateway(&directory);
    change(&mut config);
    Bench { engine: Engine::open(config).expect("opens"), directory }
}

fn order(bench: &Bench, network: Network) -> Order {
    let place = bench.directory.path().join("work");
    let mut order = bench.order(&Profile::default_profile(), &place, "cat /etc/resolv.conf; env; sleep 0.3");
    order.grant.network = network;
    order
}

fn events(bench: &Bench, task: &TaskId, action: &ActionId) -> Vec<Event> {
    let records = bench.engine.store().read(|reader| reader.records_of_action(task, action));
    let records = records.expect("it is on record");
    records.into_iter().map(|record| record.parse_event().expect("an event")).collect()
}

#[test]
fn what_a_gateway_tells_is_on_the_record_when_it_is_told() {
    let bench = bench(|_| {});
    let task = bench.live(&bench.directory.path().join("work"));
    let (finished, printed) = bench.take(&task, order(&bench, Network::Egress(rules())));
    assert!(printed.starts_with("nameserver 127.0.0.1\n"), "{printed}");
    assert!(printed.contains("\nhttps_proxy=http://127.0.0.1:1021\n"), "{printed}");
    assert!(!printed.contains("CARGO_NET_OFFLINE"), "{printed}");
    let events = events(&bench, &task.id, &finished.action);
    let names: Vec<&str> =
        events.iter().map(Event::name).filter(|name| !name.starts_with("intake")).collect();
    let began = names.iter().position(|name| *name == "started").expect("it started");
    let order = [
        "started",
        "gateway-started",
        "network-attempts",
        "network-attempts",
        "ended",
        "inspected",
        "torn-down",
    ];
    let seen: Vec<&str> = names[began..].iter().copied().filter(|name| *name != "stage").collect();
    assert_eq!(seen, order);
    let network = finished.observed.network.expect("it had a gateway");
    let tried: Vec<_> = network.attempts.iter().filter_map(|one| one.attempt.name.clone()).collect();
    assert_eq!(tried, ["while-it-runs.test", "at-the-end.test", "let-out.test"]);
    assert!(finished.teardown.left.is_empty(), "{:?}", finished.teardown);
}

/// Has a connection denied by its words, then runs a script whose words say nothing of it, and tells whether that was met.
fn meets_a_denial_of(host: &str, script: &str) -> bool {
    let rules = format!("{SHIPPED}{REACH}{SAID}");
    let bench = bench(|config| config.policy = PolicySource::Rules(rules));
    let place = bench.directory.path().join("work");
    fs::write(place.join("fetch.sh"), script).expect("a script");
    let task = bench.live(&place);
    let denied = bench.order(&Profile::default_profile(), &place, &format!("curl https://{host}"));
    let denied = bench.handle(&task, denied);
    assert!(matches!(denied, Outcome::Denied { .. }), "{denied:?}");
    let mut order = bench.order(&Profile::default_profile(), &place, "sh ./fetch.sh; sleep 0.3");
    order.grant.network = Network::Egress(self::rules());
    let (finished, _) = bench.take(&task, order);
    let events = events(&bench, &task.id, &finished.action);
    events.iter().any(|event| matches!(event, Event::DenialMet { observed: true, .. }))
}

#[test]
fn what_the_gateway_refused_is_held_against_what_was_denied_before_and_what_it_let_out_is_not() {
    assert!(meets_a_denial_of("while-it-runs.test", "true"));
    assert!(!meets_a_denial_of("other.test", "true"));
    // Its words alone are held against it, unless a rule let it out.
    assert!(meets_a_denial_of("other.test", "curl --version https://other.test"));
    assert!(!meets_a_denial_of("let-out.test", "curl --version https://let-out.test"));
}

#[test]
fn what_no_person_named_is_not_reached() {
    let bench = bench(|config| config.egress.clear());
    let task = bench.live(&bench.directory.path().join("work"));
    let outcome = bench.handle(&task, order(&bench, Network::Egress(rules())));
    assert!(matches!(outcome, Outcome::NeedsApproval { .. }), "{outcome:?}");
}

#[test]
fn an_action_whose_gateway_does_not_serve_is_not_started() {
    let bench = bench(|config| {
        config.gateway.as_mut().expect("it has one").arguments = vec!["--no-such-argument".into()];
    });
    let task = bench.live(&bench.directory.path().join("work"));
    let outcome = bench.handle(&task, order(&bench, Network::Egress(rules())));
    let Outcome::NotStarted(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.reason.starts_with("cannot give the sandbox its gateway: "), "{}", why.reason);
}

#[test]
fn an_action_with_a_gateway_is_not_joined_and_the_reason_is_said() {
    let bench = bench(|_| {});
    let task = bench.live(&bench.directory.path().join("work"));
    let (first, _) = bench.take(&task, order(&bench, Network::Egress(rules())));
    let joining = order(&bench, Network::Joined(first.action.clone()));
    let io = engine::Io {
        stdin: None,
        stdout: Box::new(sandbox::Silent),
        stderr: Box::new(sandbox::Silent),
        controller: None,
    };
    let refused = bench.engine.handle(&task, joining, io, || {}).expect_err("it is refused");
    assert!(matches!(refused, EngineError::Nothing(_)), "{refused:?}");
    assert!(refused.to_string().contains("could not be told apart"), "{refused}");
}
