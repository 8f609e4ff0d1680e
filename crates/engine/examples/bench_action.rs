//! Measures governed actions inside one process, for `cargo xtask bench`: decide, record durably, build, prove, run
//! `true`, tear down, inspect, record.
//!
//! ```text
//! bench_action --workspace DIR --state-dir DIR [--profile NAME] [--ballast-mib NUMBER] [--parked] [--steps]
//! ```
//!
//! It says `ready`, and after each `go` on its standard input `{"wall_us": NUMBER}`. With `--parked` a sandbox is
//! built and proved ahead of each, outside of the time. With `--steps` it says on standard error where the time went.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example speaks for itself")]
#![allow(clippy::disallowed_methods, reason = "an example has no settings module")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use engine::{Config, Engine, Io, Order, Outcome, Silent, TaskChoice, Workspace};
use model::action::Principal;
use model::task::Task;
use model::{ActionRequest, Grant, OsText, Profile, Tool};
use sandbox::Identity;

/// Who runs commands when the example runs as root.
const RUN_AS: Identity = Identity { uid: 61_184, gid: 61_184 };

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let ballast = vec![1u8; options.ballast_mib << 20];
    let engine = Engine::open(config(&options.state_dir))?;
    let nowhere = Path::new("/");
    let workspace =
        Workspace::find(Some(&options.workspace), nowhere, &engine.config().home, &options.state_dir)?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        if line? != "go" {
            return Err("only `go` is understood".into());
        }
        if options.parked {
            let task = task(&engine, &workspace)?;
            engine.park(&task, &order(&workspace, &options))?;
        }
        let start = Instant::now();
        one_action(&engine, &workspace, &options)?;
        println!("{{\"wall_us\": {}}}", start.elapsed().as_micros());
        std::io::stdout().flush()?;
    }
    drop(ballast);
    Ok(())
}

fn one_action(engine: &Engine, workspace: &Workspace, options: &Options) -> Result<(), Box<dyn Error>> {
    let task = task(engine, workspace)?;
    let io = Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None };
    match engine.handle(&task, order(workspace, options), io, || {})? {
        Outcome::Finished(finished) if finished.ending.succeeded() => {
            if options.steps {
                let total =
                    |name: &str| finished.steps.iter().find(|step| step.step == name).map(|step| step.time);
                let names = finished.steps.iter().map(|step| step.step.as_str());
                let each: Vec<String> =
                    names.map(|name| format!("{name} {:?}", total(name).unwrap_or_default())).collect();
                eprintln!("{}", each.join(", "));
            }
            Ok(())
        }
        other => Err(format!("it did not run: {other:?}").into()),
    }
}

fn task(engine: &Engine, workspace: &Workspace) -> Result<Task, Box<dyn Error>> {
    Ok(engine.task_for(workspace, &TaskChoice::Current, &owner(), None)?)
}

fn owner() -> Principal {
    Principal::User("bench".to_owned())
}

fn order(workspace: &Workspace, options: &Options) -> Order {
    Order {
        request: ActionRequest {
            principal: owner(),
            tool: Tool::Run { argv: vec![OsText::literal("true")] },
            directory: None,
            environment: BTreeMap::new(),
            purpose: None,
        },
        grant: Grant::under(options.profile.clone()),
        profile: options.profile.clone(),
        workspace: workspace.clone(),
        mutant: None,
    }
}

fn config(state_dir: &Path) -> Config {
    Config {
        state_dir: state_dir.to_owned(),
        run_as: RUN_AS,
        user: "bench".to_owned(),
        account: 1000,
        owners: [1000].into(),
        egress: Vec::new(),
        credentials: Vec::new(),
        canaries: Vec::new(),
        registries: Vec::new(),
        gateway: None,
        roles: engine::Roles::default(),
        home: std::env::var_os("HOME").map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from),
        environment: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        secrets: Vec::new(),
        anchor: None,
        service_manager: None,
        answers: None,
        policy: engine::PolicySource::Bundle("default".to_owned()),
        helper_profile: Profile::default_profile(),
    }
}

struct Options {
    workspace: PathBuf,
    state_dir: PathBuf,
    profile: Profile,
    ballast_mib: usize,
    parked: bool,
    steps: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let (mut workspace, mut state_dir) = (None, None);
        let mut options = Self {
            workspace: PathBuf::new(),
            state_dir: PathBuf::new(),
            profile: Profile::default_profile(),
            ballast_mib: 0,
            parked: false,
            steps: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
            match word.as_str() {
                "--workspace" => workspace = Some(PathBuf::from(value()?)),
                "--state-dir" => state_dir = Some(PathBuf::from(value()?)),
                "--ballast-mib" => options.ballast_mib = value()?.parse()?,
                "--profile" => {
                    let name = value()?;
                    let known = Profile::built_in().into_iter().find(|profile| profile.name == name);
                    options.profile = known.ok_or("no such profile")?;
                }
                "--parked" => options.parked = true,
                "--steps" => options.steps = true,
                other => return Err(format!("`{other}` is not understood").into()),
            }
        }
        options.workspace = workspace.ok_or("--workspace is missing")?;
        options.state_dir = state_dir.ok_or("--state-dir is missing")?;
        Ok(options)
    }
}
