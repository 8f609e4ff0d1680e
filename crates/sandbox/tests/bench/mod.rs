//! A bench to run real sandboxes on: a workspace, a state directory, and a permit out of the shipped policy.
#![allow(clippy::disallowed_methods, reason = "tests have no settings module")]
#![allow(dead_code, reason = "each test file uses its own part of the bench")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use audit::{Log, MemoryStorage};
use gate::{Classes, Decision, Facts, Gate, OtherAction, Permit, Policy, Progress};
use model::action::{Base, Principal, StartingPoint};
use model::egress::{Begin, Bounds, Ranges};
use model::grant::Network;
use model::{
    Action, ActionId, ActionRequest, Grant, OsText, Profile, Subject, TaskId, Timestamp, Tool, WorkspacePath,
};
use sandbox::view::{Host, View, mount_points};
use sandbox::{
    Execution, GatewaySpec, Identity, Io, Joined, Prepared, SandboxError, Silent, Spec, Workspace,
};
use tempfile::TempDir;

/// The id that runs commands when the tests run as root.
const RUN_AS: Identity = Identity { uid: 61_184, gid: 61_184 };

/// The shipped policy, and the rule that lets a test reach what it asks for.
const SHIPPED: &str = gate::DEFAULT_BUNDLE;
const REACH: &str = r#"
@id("what-a-test-asks-for")
@reason("asked-by-a-test")
permit (principal, action == Action::"reach", resource);
"#;

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Bench {
    directory: TempDir,
    state_below: String,
    /// The state directory, when it lies on another disk.
    pub(crate) state_at: Option<PathBuf>,
    pub(crate) grant: Grant,
    /// The action whose network is joined, when the grant names one.
    pub(crate) joined: Option<Joined>,
    /// The gateway, when the grant needs one.
    pub(crate) gateway: Option<GatewaySpec>,
    pub(crate) layers: Vec<PathBuf>,
    pub(crate) masks: Vec<WorkspacePath>,
    pub(crate) covers: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) environment: BTreeMap<String, OsText>,
    pub(crate) mutant: Option<String>,
    /// The caller's home; without one, that of the tests.
    pub(crate) home: Option<PathBuf>,
    gate: Gate,
    log: Log<MemoryStorage>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::under(Profile::strict())
    }

    pub(crate) fn under(profile: Profile) -> Self {
        let directory = tempfile::Builder::new().prefix("fumehood-").tempdir().expect("a directory");
        fs::create_dir_all(directory.path().join("ws")).expect("a workspace");
        let id = "log-aaaaaaaaaaaaaaaa".parse().expect("an id");
        Self {
            directory,
            state_below: String::new(),
            state_at: None,
            grant: Grant::under(profile),
            joined: None,
            gateway: None,
            layers: Vec::new(),
            masks: Vec::new(),
            covers: Vec::new(),
            environment: BTreeMap::new(),
            mutant: None,
            home: None,
            gate: Gate::new(
                Policy::parse(&format!("{SHIPPED}{REACH}")).expect("the shipped policy and one rule"),
            ),
            log: Log::open(MemoryStorage::new(id)).expect("a log"),
        }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    /// Puts a file into the workspace.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.workspace().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    /// A bench whose state directory lies further down.
    pub(crate) fn with_state_below(path: &str) -> Self {
        Self { state_below: path.to_owned(), ..Self::new() }
    }

    pub(crate) fn state(&self) -> PathBuf {
        let beside = || self.directory.path().join(&self.state_below).join("state");
        self.state_at.clone().unwrap_or_else(beside)
    }

    /// Builds a sandbox whose layer has this number.
    fn spec(&self, number: u64) -> Spec {
        let root = rustix::process::geteuid().is_root();
        let caller =
            Identity { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        let identity = if root { RUN_AS } else { caller };
        let state = self.state();
        let run_directory = state.join(format!("run-{number}"));
        fs::create_dir_all(&run_directory).expect("a run directory");
        let workspace = self.workspace();
        let owner = fs::metadata(&workspace).expect("the workspace");
        let of_tests = || PathBuf::from(std::env::var_os("HOME").expect("a home"));
        let home = self.home.clone().unwrap_or_else(of_tests);
        let host = Host {
            root: PathBuf::from("/"),
            home,
            user: "tester".to_owned(),
            caller,
            inside: identity,
            environment: std::env::vars_os().collect(),
            workspace: workspace.clone(),
            state_dir: state.clone(),
            mount_points: mount_points().expect("mount points"),
            terminal: self.grant.terminal,
            offline: self.gateway.is_none(),
            gateway: self.gateway.is_some(),
            looked_into: false,
            registries: Vec::new(),
        };
        Spec {
            identity,
            view: View::of(&host, &self.grant.programs).expect("a view"),
            workspace: Workspace {
                path: workspace.clone(),
                base: workspace,
                base_owner: Identity { uid: owner.uid(), gid: owner.gid() },
                layers: self.layers.iter().rev().map(|layer| layer.join("upper")).collect(),
                layer: state.join(format!("layer-{number}")),
            },
            masks: self.masks.clone(),
            covers: self.covers.clone(),
            git_directory: None,
            grant: self.grant.clone(),
            joined: self.joined.clone(),
            gateway: self.gateway.clone(),
            service_manager: None,
            run_directory,
            artifacts: state.join(format!("artifacts-{number}")),
            cache: state.join("cache"),
            images: state.join("images"),
            mutant: self.mutant.clone().or_else(chosen_mutant),
        }
    }

    pub(crate) fn prepare(&self) -> Result<Prepared, SandboxError> {
        sandbox::prepare(self.spec(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Prepares a sandbox that others can join, and says how.
    pub(crate) fn prepare_to_be_joined(&self) -> (Prepared, Joined) {
        let spec = self.spec(NEXT.fetch_add(1, Ordering::Relaxed));
        let action = ActionId::from_random([7; 10]);
        let joined = Joined { action, run_directory: spec.run_directory.clone() };
        (sandbox::prepare(spec).expect("a sandbox that holds"), joined)
    }

    /// Lets what is prepared next join the network of another sandbox.
    pub(crate) fn join(&mut self, joined: &Joined) {
        self.grant.network = Network::Joined(joined.action.clone());
        self.joined = Some(joined.clone());
    }

    /// Lets what is prepared next reach these through a gateway: this very program, started again.
    pub(crate) fn reach(&mut self, rules: &[&str], manner: &str) {
        let rules = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
        self.grant.network = Network::Egress(rules);
        let begin = Begin { ranges: Ranges::default(), resolvers: Vec::new(), bounds: Bounds::default() };
        self.gateway = Some(GatewaySpec {
            program: std::env::current_exe().expect("our own file"),
            arguments: ["--exact", manner, "--ignored", "--nocapture"].map(OsString::from).into(),
            begin,
            also: Vec::new(),
        });
    }

    /// Lets the shipped policy permit a command, with the decision on record.
    pub(crate) fn permit(&self, tool: Tool) -> Permit {
        let request = ActionRequest {
            principal: Principal::User("tester".to_owned()),
            tool,
            directory: None,
            environment: self.environment.clone(),
            purpose: None,
        };
        let start = StartingPoint {
            workspace: OsText::try_from(self.workspace().as_path()).expect("a path"),
            base: Base::Live,
            layers: Vec::new(),
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut random = [0; 10];
        random[2..].copy_from_slice(&number);
        let (id, task) = (ActionId::from_random(random), TaskId::from_random([0; 10]));
        let action = Action::parse(id, task, request, self.grant.clone(), start).expect("an action");
        let about = Subject { task: Some(action.task().clone()), action: Some(action.id().clone()) };
        let now = Timestamp::from_nanos(1);
        let classes =
            action.request().tool.writes().iter().map(|path| (path.clone(), Classes::new())).collect();
        let inputs = self.grant.inputs.clone();
        let joined = Some(OtherAction { same_task: true, progress: Progress::Running });
        let egress = self.grant.network.egress().into_iter().flatten().cloned().collect();
        let facts = Facts { classes, inputs, joined, egress, ..Facts::new(self.grant.profile.clone(), now) };
        let decision = self.gate.decide(action, &facts);
        let receipt = self.log.append(&about, &decision.event(), now).expect("a receipt");
        match decision {
            Decision::Allow(yes) | Decision::Narrow(yes) => yes.recorded(&receipt).expect("a permit"),
            other => panic!("not allowed: {other:?}"),
        }
    }

    pub(crate) fn run(&mut self, argv: &[&str]) -> Run {
        self.run_tool(Tool::Run { argv: argv.iter().map(|argument| OsText::literal(argument)).collect() })
    }

    pub(crate) fn run_tool(&mut self, tool: Tool) -> Run {
        let prepared = self.prepare().expect("a sandbox that holds");
        let execution = prepared.run(self.permit(tool), silent()).expect("a run");
        self.layers.push(execution.layer().to_owned());
        Run(execution)
    }

    pub(crate) fn shell(&mut self, script: &str) -> Run {
        self.run(&["sh", "-c", script])
    }
}

/// Returns what `cargo xtask disarm` leaves out.
fn chosen_mutant() -> Option<String> {
    std::env::var("FUMEHOOD_TEST_MUTANT").ok().filter(|_| cfg!(feature = "mutants"))
}

pub(crate) fn silent() -> Io {
    Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None }
}

/// A finished run, with what tests ask of it.
pub(crate) struct Run(pub(crate) Execution);

impl Run {
    pub(crate) fn stdout(&self) -> String {
        self.printed(0)
    }

    pub(crate) fn stderr(&self) -> String {
        self.printed(1)
    }

    fn printed(&self, at: usize) -> String {
        String::from_utf8_lossy(&self.0.printed[at].1.kept()).into_owned()
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.0.ending.succeeded()
    }

    pub(crate) fn upper(&self, path: &str) -> PathBuf {
        self.0.layer().join("upper").join(path)
    }
}

/// Reads a file that the run identity owns.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a file")
}
