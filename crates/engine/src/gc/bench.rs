//! An engine whose tasks have files and events that no action ever made, for tests of what goes when.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use model::action::{Base, Principal, StartingPoint};
use model::event::{DecisionRecord, Verdict};
use model::evidence::Teardown;
use model::task::{Task, TaskState, WorkspaceKey};
use model::{
    Action, ActionId, ActionRequest, Digest, Ending, Event, Grant, KeptClass, LegalScope, OsText, Profile,
    Subject, TaskId, Tool, Usage,
};
use sandbox::Identity;
use tempfile::TempDir;

use crate::clock::now;
use crate::store::ActionState;
use crate::{Config, Engine, Garbage, PolicySource, Retention, Roles};

/// The engine, and where its state and its workspaces are.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) engine: Engine,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = Engine::open(config(&directory)).expect("opens");
        Self { directory, engine }
    }

    pub(crate) fn again(self) -> Self {
        let Self { directory, engine } = self;
        drop(engine);
        let engine = Engine::open(config(&directory)).expect("opens");
        Self { directory, engine }
    }

    pub(crate) fn task(&self, name: &str) -> Task {
        let path = self.directory.path().join(name);
        fs::create_dir_all(&path).expect("a workspace");
        let path = OsText::try_from(path.to_str().expect("is text")).expect("no NUL");
        let workspace = WorkspaceKey { path, device: 1, inode: 1 };
        let (id, owner) = (TaskId::from_random(crate::clock::random().expect("random")), ada());
        let (state, title, base) = (TaskState::Open, None, Base::Live);
        let task = Task { id, workspace, base, owner, title, state, opened: now() };
        self.engine.store().write(|rows| rows.insert_task(&task)).expect("is written");
        self.engine.make_task_directory(&task.id).expect("is made");
        task
    }

    /// An action that ended with this status, with a layer, an artifact and output of so many bytes.
    pub(crate) fn act(&self, task: &Task, status: u8, bytes: usize) -> ActionId {
        let id = ActionId::from_random(crate::clock::random().expect("random"));
        let start =
            StartingPoint { workspace: task.workspace.path.clone(), base: Base::Live, layers: Vec::new() };
        let request = ActionRequest {
            principal: ada(),
            tool: Tool::Run { argv: vec![OsText::literal("true")] },
            directory: None,
            environment: BTreeMap::new(),
            purpose: None,
        };
        let grant = Grant::under(Profile::default_profile());
        let action = Action::parse(id.clone(), task.id.clone(), request, grant, start).expect("is one");
        let ended = (&Ending::Exited { status }, &Usage::default());
        let written = self.engine.store().write(|rows| {
            rows.insert_action(&action, "action", now())?;
            rows.set_decision(&id, &allowed(), now())?;
            rows.set_started(&id, now())?;
            rows.set_ended(&id, ActionState::Ended, ended, now())?;
            rows.add_layer(&task.id, &id)
        });
        written.expect("is written");
        for place in self.places(task, &id) {
            let file = if place.extension().is_some() { place } else { place.join("upper/file") };
            fs::create_dir_all(file.parent().expect("has one")).expect("is made");
            fs::write(file, vec![b'x'; bytes]).expect("is written");
        }
        id
    }

    /// Records what is on the record of an action that ran, as far as it can be pruned and beside it.
    pub(crate) fn tell(&self, task: &Task, action: &ActionId) {
        let decided = Event::Decided { digest: Digest::of(b"action"), decision: allowed() };
        let gone = vec!["a-word-of-this-run".to_owned()];
        let torn_down = Event::TornDown { teardown: Teardown { gone, left: Vec::new() } };
        let ended = Event::GatewayEnded { why: "a-word-of-its-gateway".to_owned(), again: false };
        [decided, torn_down, ended].iter().for_each(|event| self.note(task, Some(action), event));
    }

    pub(crate) fn note(&self, task: &Task, action: Option<&ActionId>, event: &Event) {
        let subject = Subject { task: Some(task.id.clone()), action: action.cloned() };
        self.engine.record(&subject, event, |_, _| Ok(())).expect("is recorded");
    }

    pub(crate) fn places(&self, task: &Task, action: &ActionId) -> [PathBuf; 3] {
        let places = self.engine.places();
        [
            places.layer(&task.id, action),
            places.artifacts(&task.id, action),
            places.outputs(&task.id).join(format!("{action}.stdout")),
        ]
    }

    pub(crate) fn is_there(&self, task: &Task, action: &ActionId) -> [bool; 3] {
        self.places(task, action).map(|place| place.exists())
    }

    pub(crate) fn close(&self, task: &Task) {
        self.engine.set_task_state(&task.id, TaskState::Discarded).expect("is written");
    }

    pub(crate) fn collect(&self, retention: &Retention) -> Garbage {
        self.engine.collect_garbage(retention, false, &|_, _| {}).expect("collects")
    }

    pub(crate) fn would(&self, retention: &Retention) -> Garbage {
        self.engine.collect_garbage(retention, true, &|_, _| {}).expect("looks")
    }

    pub(crate) fn hold(&self, scope: LegalScope) -> model::LegalHold {
        self.engine.hold_legally(scope, &ada(), "a court", None).expect("is written")
    }

    /// The names of what the record says was removed, by classes.
    pub(crate) fn removed(&self) -> BTreeMap<KeptClass, Vec<String>> {
        let mut all: BTreeMap<KeptClass, Vec<String>> = BTreeMap::new();
        for record in self.engine.log().records(0) {
            if let Ok(Event::Removed { classes, .. }) = record.expect("is read").parse_event() {
                for of in classes {
                    all.entry(of.class).or_default().extend(of.names);
                }
            }
        }
        all
    }
}

pub(crate) fn config(directory: &TempDir) -> Config {
    Config {
        state_dir: directory.path().join("state"),
        run_as: Identity { uid: 64_500, gid: 64_500 },
        user: "ada".to_owned(),
        account: 1000,
        owners: [1000].into(),
        egress: Vec::new(),
        gateway: None,
        roles: Roles::default(),
        home: directory.path().join("home"),
        environment: BTreeMap::new(),
        secrets: Vec::new(),
        canaries: Vec::new(),
        registries: Vec::new(),
        credentials: Vec::new(),
        anchor: None,
        service_manager: None,
        answers: None,
        policy: PolicySource::Bundle("default".to_owned()),
        helper_profile: Profile::default_profile(),
    }
}

pub(crate) fn ada() -> Principal {
    Principal::User("ada".to_owned())
}

pub(crate) fn allowed() -> DecisionRecord {
    DecisionRecord {
        verdict: Verdict::Allow,
        rules: Vec::new(),
        reason: "build".to_owned(),
        advice: String::new(),
        person_may_allow: false,
        grant: None,
        policy: Digest::of(b"policy"),
    }
}

pub(crate) fn all() -> Retention {
    Retention::of(Duration::ZERO)
}

pub(crate) const LONG: Duration = Duration::from_secs(86_400);
