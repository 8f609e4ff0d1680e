//! The second act: who may say what. A migration waits for a person, and a denied push stays denied in every disguise.

use std::collections::BTreeMap;
use std::fs;

use engine::{Approver, Engine, Io, Order, Outcome, PolicySource, Silent, TaskChoice, Workspace, Yes};
use gate::DEFAULT_BUNDLE;
use model::action::Principal;
use model::task::{Task, TaskState};
use model::{ActionId, ActionRequest, Grant, OsText, Profile, Tool};

use super::scene::Scene;
use crate::error::CliError;
use crate::output::shape::{ActionDocument, DemoCheck};
use crate::verbs::context::Context;
use crate::verbs::look;

/// What the operator of the second scene adds to the shipped rules.
const NO_PUSH: &str = r#"
@id("no-push") @reason("push-denied") @advice("say that it is ready to be pushed") @person_may_allow("true")
forbid (principal is Agent, action == Action::"change-ref", resource)
when { resource.repository != "." };
"#;

/// The same push, four times: as it is, and in three disguises. The last is told by no word of the command.
const PUSHES: [&str; 4] = [
    "git push origin main",
    "env -u EDITOR git 'push' \"origin\" +main",
    "cd . && git push https://192.0.2.7/shop.git HEAD:main",
    "sh release.sh",
];

/// What ran, and where.
struct Act<'a> {
    context: &'a Context<'a>,
    engine: Engine,
    task: Task,
    workspace: Workspace,
    profile: Profile,
}

/// Plays both scenes, and says what was seen.
pub(super) fn checks(scene: &Scene, context: &Context<'_>) -> Result<Vec<DemoCheck>, CliError> {
    let migration = Act::open(scene, context, "migration", PolicySource::Bundle("cautious".to_owned()))?;
    let migration = migration.migrates(scene)?;
    let rules = PolicySource::Rules(format!("{DEFAULT_BUNDLE}\n{NO_PUSH}"));
    let push = Act::open(scene, context, "push", rules)?.pushes()?;
    let check = |what: &str, seen: Result<String, String>| {
        let passed = seen.is_ok();
        DemoCheck { what: what.to_owned(), passed, seen: seen.unwrap_or_else(|seen| seen) }
    };
    Ok(vec![
        check("a migration is tried, shown and approved, and that very layer is kept", migration),
        check("a denied push stays denied in three disguises, and the task is frozen", push),
    ])
}

impl<'a> Act<'a> {
    fn open(
        scene: &Scene,
        context: &'a Context<'a>,
        name: &str,
        policy: PolicySource,
    ) -> Result<Self, CliError> {
        let engine = context.engine_under(scene.state(name), policy)?;
        let workspace = context.workspace(Some(&scene.shop()))?;
        let profile = context.settings.profile(None)?.profile;
        let task = engine.task_for(&workspace, &TaskChoice::New, &context.principal(), Some(name))?;
        Ok(Self { context, engine, task, workspace, profile })
    }

    /// An agent's order to run a script.
    fn order(&self, script: &str) -> Order {
        let request = ActionRequest {
            principal: Principal::Agent("demo".to_owned()),
            tool: Tool::Run { argv: ["sh", "-c", script].map(OsText::literal).to_vec() },
            directory: None,
            environment: BTreeMap::new(),
            purpose: None,
        };
        let grant = Grant::under(self.profile.clone());
        let (profile, workspace) = (self.profile.clone(), self.workspace.clone());
        let mutant = crate::verbs::mutant::chosen(&self.context.environment);
        Order { request, grant, profile, workspace, mutant }
    }

    fn run(&self, script: &str) -> Result<ActionDocument, CliError> {
        let io = Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None };
        let outcome = self.engine.handle(&self.task, self.order(script), io, || {})?;
        let action: ActionId = match outcome {
            Outcome::Denied { action, .. } | Outcome::NeedsApproval { action, .. } => action,
            Outcome::NotStarted(not_started) => not_started.action,
            Outcome::Finished(finished) => finished.action,
        };
        look::document(&self.engine, &action)
    }

    /// Has a migration tried, says yes to what it did, and looks at what became of it.
    fn migrates(&self, scene: &Scene) -> Result<Result<String, String>, CliError> {
        let script = "sh migrate.sh";
        let tried = self.run(script)?;
        let Some(asked) = tried.approval.as_ref().filter(|_| tried.is_only_tried()) else {
            return Ok(Err("it was not tried before a person was asked".to_owned()));
        };
        let shown = tried.inspection.as_ref().map_or(0, |part| part.changes.len());
        let stored = self.engine.store().read(|reader| reader.find_approval(asked.approval.as_str()))?;
        let by =
            Approver { name: self.context.user.name.clone(), account: self.context.user.account, file: None };
        let yes = self.engine.say_yes(&stored, &by, Some("read the patch"), &self.profile)?;
        let printed = self.run("cat customers.tsv")?;
        let kept = self.engine.output(&self.task.id, &printed.action)?;
        let has_country =
            kept.iter().any(|kept| String::from_utf8_lossy(&kept.bytes).contains("Ada\tunknown"));
        let host = fs::read_to_string(scene.shop().join("customers.tsv")).unwrap_or_default();
        let seen =
            format!("{shown} changes were shown to a person before the yes, and are the task's after it");
        Ok(match yes {
            Yes::Kept if has_country && shown == 2 && !host.contains("country") => Ok(seen),
            other => Err(format!("{seen}; {other:?}, in the task: {has_country}")),
        })
    }

    /// Has a push tried in four ways.
    fn pushes(&self) -> Result<Result<String, String>, CliError> {
        let mut reasons = Vec::new();
        for push in PUSHES {
            let document = self.run(push)?;
            let denied = document.decision.as_ref().filter(|decision| !decision.is_yes());
            let reason =
                document.evaded().map(|part| &part.reason).or(denied.map(|decision| &decision.reason));
            reasons.push(reason.cloned().unwrap_or_else(|| format!("`{push}` was not stopped")));
        }
        let task = self.engine.store().read(|reader| reader.find_task(self.task.id.as_str()))?;
        let one_reason = reasons.iter().all(|reason| reason == "push-denied");
        let seen = format!("each of the four was answered with `{}`; the task is {}", reasons[0], task.state);
        Ok(if one_reason && task.state == TaskState::Frozen { Ok(seen) } else { Err(reasons.join(", ")) })
    }
}
