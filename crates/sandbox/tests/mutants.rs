//! Takes every layer away in the builder, one at a time, and requires that the unchanged prober notices and nothing
//! runs. Needs the feature `mutants`.
#![cfg(feature = "mutants")]

mod bench;
mod fake_gateway;

use bench::{Bench, silent};
use model::enforcement::{Held, Layer, Level};
use model::grant::{GrantedProgram, Programs};
use model::{LimitKind, OsText, Profile, Tool, WorkspacePath};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sandbox::seccomp::walls;
use sandbox::{Io, MUTANTS, Request, SandboxError, controller};

/// A bench with something to mask, so that the masks have something to show.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.file("secret.env", "TOKEN=x");
    bench.masks.push(WorkspacePath::parse("secret.env").expect("a path"));
    bench
}

fn list_programs(bench: &mut Bench) {
    let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
    bench.grant.programs = Programs::Only(vec![GrantedProgram::whatever_it_holds(
        OsText::try_from(shell.as_path()).expect("a path"),
    )]);
}

/// Gives this process another limit of open files than any profile has: without the mutant's limit that one is left, and
/// an ordinary user's usual one is the same as that of `strict`.
fn unlike_any_profile() {
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1000), ..now }).expect("it can be lowered");
}

/// Says what is wrong when a mutant is not noticed.
fn noticed(name: &str) -> Result<(), String> {
    noticed_in(bench(), name)
}

fn noticed_in(mut bench: Bench, name: &str) -> Result<(), String> {
    bench.mutant = Some(name.to_owned());
    // What a list of programs adds is there only with one.
    if matches!(name, "noexec" | "seccomp-programs") {
        list_programs(&mut bench);
    }
    match bench.prepare() {
        Err(SandboxError::NotProved(probes)) if !probes.is_empty() => Ok(()),
        Err(SandboxError::Setup { .. } | SandboxError::NotEnforceable(_)) => Ok(()),
        Err(SandboxError::Prepare { step: "workspace options", .. }) => Ok(()),
        Err(other) => Err(format!("{name}: {other:?}")),
        Ok(_) => Err(format!("{name}: the sandbox was taken for whole")),
    }
}

fn has_control_groups() -> bool {
    let prepared = bench().prepare().expect("a sandbox that holds");
    prepared.report().probes.iter().any(|probe| probe.name == "control-group-members")
}

#[test]
fn every_layer_that_is_left_out_is_noticed() {
    unlike_any_profile();
    let root = rustix::process::geteuid().is_root();
    let mut missed = Vec::new();
    for mutant in MUTANTS {
        // An ordinary user cannot clear groups in the first place, and the report says so.
        if mutant.name == "groups" && !root {
            continue;
        }
        // Where the host gives us no control group, none is claimed.
        if mutant.name == "control-groups" && !has_control_groups() {
            continue;
        }
        // Only root has an image, and only a way out has routes: see below.
        if !matches!(mutant.name, "disk-image" | "prohibited-routes" | "low-ports") {
            missed.extend(noticed(mutant.name).err());
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}

#[test]
fn an_image_that_is_left_out_or_exchanged_is_noticed() {
    for mutant in ["disk", "disk-image"] {
        let bench = Bench::under(Profile::default_profile());
        if bench.prepare().expect("a sandbox that holds").report().held.iter().all(is_no_image) {
            return;
        }
        let missed = noticed_in(bench, mutant);
        assert!(missed.is_ok(), "{missed:?}");
    }
}

fn is_no_image(held: &Held) -> bool {
    held.layer != Layer::Limit(LimitKind::Disk) || held.level != Level::Hard
}

#[test]
fn every_group_of_the_filter_that_is_left_out_is_noticed() {
    let missed: Vec<_> =
        walls().into_iter().filter_map(|group| noticed(&format!("seccomp-{}", group.name())).err()).collect();
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}

#[test]
fn what_holds_a_list_of_programs_is_proved_part_by_part() {
    let mut whole = bench();
    list_programs(&mut whole);
    let prepared = whole.prepare().expect("a sandbox that holds");
    let landlock = prepared.report().probes.iter().find(|probe| probe.name == "unlisted-program");
    // Without Landlock nothing is built, so that this probe was made is all that can be shown.
    assert!(landlock.is_some_and(|probe| probe.observed.starts_with("Permission denied")), "{landlock:?}");
    for (mutant, probe) in [("noexec", "written-code"), ("seccomp-programs", "file-in-memory")] {
        let mut bench = bench();
        list_programs(&mut bench);
        bench.mutant = Some(mutant.to_owned());
        let Err(SandboxError::NotProved(probes)) = bench.prepare() else {
            panic!("{mutant} was not noticed")
        };
        assert!(probes.iter().any(|failed| failed.name == probe), "{mutant}: {probes:?}");
    }
}

#[test]
fn what_holds_in_a_joined_network_is_proved_part_by_part() {
    let first = bench();
    let (prepared, joined) = first.prepare_to_be_joined();
    let (handle, controller) = controller().expect("a controller");
    let running = std::thread::spawn(move || {
        let sleep = Tool::Run { argv: ["sleep", "60"].map(OsText::literal).into() };
        prepared.run(first.permit(sleep), Io { controller: Some(controller), ..silent() })
    });
    for (mutant, probe) in [
        ("joined-network", "network"),
        ("network-namespace", "network"),
        ("landlock-scope", "foreign-abstract-socket"),
    ] {
        let mut bench = bench();
        bench.join(&joined);
        bench.mutant = Some(mutant.to_owned());
        match bench.prepare() {
            Err(SandboxError::NotProved(probes)) => {
                assert!(probes.iter().any(|failed| failed.name == probe), "{mutant}: {probes:?}");
            }
            other => panic!("{mutant} was not noticed: {other:?}"),
        }
    }
    handle.ask(Request::Kill);
    running.join().expect("it ended").expect("a run");
}

#[test]
#[ignore = "started by another test as a gateway"]
fn gateway() {
    fake_gateway::serve();
}

#[test]
fn what_holds_on_the_way_to_a_gateway_is_proved_part_by_part() {
    for (mutant, probe) in [("prohibited-routes", "other-address"), ("low-ports", "proxy-port")] {
        let mut bench = bench();
        bench.reach(&["https://allowed.test"], "gateway");
        bench.mutant = Some(mutant.to_owned());
        match bench.prepare() {
            Err(SandboxError::NotProved(probes)) => {
                assert!(probes.iter().any(|failed| failed.name == probe), "{mutant}: {probes:?}");
            }
            other => panic!("{mutant} was not noticed: {other:?}"),
        }
    }
}

#[test]
fn no_layer_that_a_sandbox_claims_is_without_a_mutant() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        let prepared = Bench::under(profile).prepare().expect("a sandbox that holds");
        for held in prepared.report().held.iter().filter(|held| held.level == Level::Hard) {
            let has_mutant = MUTANTS.iter().any(|mutant| mutant.layer == held.layer);
            let claims_nothing = held.by == "no limit was asked for";
            assert!(has_mutant || claims_nothing, "{} has no mutant", held.layer);
        }
    }
}

#[test]
fn the_whole_sandbox_holds() {
    assert!(bench().prepare().is_ok_and(|prepared| prepared.report().probes.iter().all(|probe| probe.held)));
}
