//! The straight path: one action from its request to its outcome.

use std::sync::Arc;

use audit::Entry;
use gate::stages::Proposal;
use gate::{Authorization, Decision, Facts, Gate};
use inspect::credentials::is_secret_variable;
use model::action::{Principal, StartingPoint};
use model::event::Event;
use model::task::Task;
use model::{
    Action, ActionId, ActionRequest, ApprovalState, Grant, OsText, Profile, Subject, Timestamp, Tool,
    WorkspacePath,
};
use sandbox::fail_point;
use sandbox::{Io, Prepared, SandboxError};

use crate::approvals::{Asks, closed};
use crate::clock::{now, random};
use crate::deadline::Moment;
use crate::denials::Met;
use crate::error::EngineError;
use crate::facts::PendingAction;
use crate::holds::halted;
use crate::lock::Lock;
use crate::outcome::{NotStarted, Outcome};
use crate::parked::{Parked, Waiting};
use crate::run::Run;
use crate::stages::Due;
use crate::start::Start;
use crate::store::{Halt, Starter, StoreError, StoredApproval, Writer};
use crate::{Engine, Workspace};

/// What somebody orders.
#[derive(Debug)]
pub struct Order {
    /// What is to be done.
    pub request: ActionRequest,
    /// What it asks to touch.
    pub grant: Grant,
    /// The profile that it names, as the operator defines it.
    pub profile: Profile,
    /// The directory on the host.
    pub workspace: Workspace,
    /// The layer that a mutant of the builder leaves out; only builds for tests take it.
    pub mutant: Option<String>,
}

/// How an order is taken, beside what it says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner<'m> {
    /// The service of our own that it is for. What it writes is no layer of the task.
    pub(crate) service: Option<&'static str>,
    /// Whether such a service stands on the layers of the task. Else it sees the host's directory as it stands.
    pub(crate) on_layers: bool,
    /// The call of an agent that it carries out.
    pub(crate) call: Option<&'m str>,
}

/// A decision, with what it means for people.
struct Ruled {
    decision: Decision,
    /// What becomes of an action that needs somebody's yes.
    asks: Option<Asks>,
    /// The yes that is spent on an action that was allowed.
    spends: Option<StoredApproval>,
    /// What a denial adds to the memory of the task.
    met: Met,
    /// The stage that an action which was allowed is.
    proposal: Option<Due<Proposal>>,
}

impl Ruled {
    /// Returns the yes that a sandbox is built for.
    fn permitted(&self) -> Option<&Authorization> {
        match &self.decision {
            Decision::Allow(yes) | Decision::Narrow(yes) => Some(yes),
            Decision::RequireApproval(_) => self.asks.as_ref().and_then(Asks::trial),
            Decision::Deny(_) => None,
        }
    }

    /// Returns the events that record it. The last one is that of the yes, when there is one: its receipt makes the
    /// permit.
    fn events(&self) -> Vec<Event> {
        let spent = self.spends.iter().map(|approval| closed(approval, ApprovalState::Used, ""));
        let mut events: Vec<Event> = spent.collect();
        events.push(self.decision.event());
        events.extend(self.met.events().iter().cloned());
        events.extend(self.asks.as_ref().map(Asks::event));
        events.extend(self.asks.as_ref().and_then(Asks::trial).map(Authorization::event));
        events
    }

    /// Writes down what it changes. A yes that somebody else spent meanwhile undoes all of it.
    fn write(&self, writer: &Writer<'_>, action: &Action, time: Timestamp) -> Result<(), StoreError> {
        self.met.write(writer, action.task(), time)?;
        if let Some(approval) = &self.spends {
            let (from, to) = (ApprovalState::Given, ApprovalState::Used);
            writer.move_approval(&approval.id, &[from], to, None, time)?;
        }
        self.asks.as_ref().map_or(Ok(()), |asks| asks.write(writer, action.id(), time))
    }
}

impl Engine {
    /// Takes an order all the way: parsed, decided, recorded, run in a proved sandbox, inspected, recorded.
    ///
    /// `waiting` is called when another action of the same task has to end first.
    ///
    /// # Errors
    /// When the engine itself fails; the error says whether the command ran.
    pub fn handle(
        &self,
        task: &Task,
        order: Order,
        io: Io,
        waiting: impl FnOnce(),
    ) -> Result<Outcome, EngineError> {
        self.take(task, order, Manner::default(), io, waiting)
    }

    /// The straight path itself.
    pub(crate) fn take(
        &self,
        task: &Task,
        order: Order,
        manner: Manner<'_>,
        mut io: Io,
        waiting: impl FnOnce(),
    ) -> Result<Outcome, EngineError> {
        self.refuse_secret_values(&order.request)?;
        self.learn_variables(&order.request);
        self.make_task_directory(&task.id)?;
        // A helper is ours, and it is one that reads what the repository says.
        let gate = match manner.service {
            Some(_) => self.gate.clone(),
            None => self.gate_of(task, &order.workspace)?,
        };
        let _one_at_a_time = Lock::take(&self.places().task(&task.id).join("lock"), waiting)?;
        let (mut run, waiting) = self.place(task, &order, manner)?;
        fail_point::reached("decision: the action has its place");
        let action = self.parse(&run, task, &order)?;
        if manner.service.is_none() {
            run.starter = Some(self.starter(task, &action.request().principal)?);
        }
        let (pending, given) = self.pending(task, &order, action, gate, (manner, io.stdin.is_some()))?;
        let about = subject(&pending.action);
        let requested = self.requested(&pending.action, &pending.facts);
        let ruled = self.ruled(task, &pending, given, &run.start.masked)?;
        run.trial = ruled.asks.as_ref().and_then(Asks::tried).cloned();
        let pending = Arc::new(pending);
        run.pending = Some(pending.clone());
        // The action is about to be on the record: what is asked from here on is for its command.
        io.about_to_start();
        let written = self.record_and_prepare(&about, &requested, &pending.action, &ruled, (run, waiting));
        let (receipt, prepared) = match written {
            Err(error) if halted(&error).is_some() => {
                return self.refuse_late(&about, &requested, &pending, &error, manner.call);
            }
            written => written?,
        };
        fail_point::reached("decision: it is on the record");
        let id = pending.action.id().clone();
        let (yes, request) = match (ruled.decision, ruled.asks) {
            (Decision::Deny(denial), _) => return Ok(Outcome::Denied { action: id, denial }),
            (Decision::Allow(yes) | Decision::Narrow(yes), _) => (yes, None),
            (Decision::RequireApproval(request), Some(Asks::New { trial: Some(yes), .. })) => {
                (*yes, Some(request))
            }
            (Decision::RequireApproval(request), _) => {
                return Ok(Outcome::NeedsApproval { action: id, request });
            }
        };
        let permit = yes.recorded(&receipt).map_err(|mismatch| EngineError::Nothing(mismatch.to_string()))?;
        let outcome = match prepared {
            Some((run, Ok(prepared))) => self.run(&about, run, prepared, permit, io)?,
            // The run keeps its place until that is on the record: nobody takes it for one that died.
            Some((_run, Err(error))) => Outcome::NotStarted(self.not_started(&about, id.clone(), &error)?),
            None => Outcome::NotStarted(self.not_started(&about, id.clone(), &SandboxError::OtherGrant)?),
        };
        Ok(match (outcome, request) {
            (Outcome::Finished(_), Some(request)) => Outcome::NeedsApproval { action: id, request },
            (outcome, _) => outcome,
        })
    }

    /// Gives an order its place: that of a sandbox which waits for one like it, or one of its own.
    fn place(
        &self,
        task: &Task,
        order: &Order,
        manner: Manner<'_>,
    ) -> Result<(Run, Option<Waiting>), EngineError> {
        let began = now();
        let start = Start::of(self, task, order, manner)?;
        let (mut run, waiting) = match self.take_parked(&start, &order.grant) {
            Some(Parked { run, sandbox }) => (run, Some(sandbox)),
            None => (Run::begin(self, start)?, None),
        };
        run.began = began;
        run.call = manner.call.map(str::to_owned);
        Ok((run, waiting))
    }

    /// Puts an action together with all that decides about it, and returns the yes that it could spend.
    fn pending(
        &self,
        task: &Task,
        order: &Order,
        action: Action,
        gate: Arc<Gate>,
        (manner, with_input): (Manner<'_>, bool),
    ) -> Result<(PendingAction, Option<StoredApproval>), EngineError> {
        // What was said to a command without input covers none with one, and helpers need nobody's yes.
        let can_use_a_yes = !with_input && manner.service.is_none();
        let given = if can_use_a_yes { self.given_to(&action, task)? } else { None };
        let mut facts = self.facts(&order.profile, &action)?;
        if let Some(given) = &given {
            facts.approvals = self.approvals_of(given, &Moment::now()?);
            facts.owners = self.owners_of(given);
        }
        Ok((PendingAction { gate, action, facts, service: manner.service, with_input }, given))
    }

    /// Decides, and puts beside that what it means for people: whom it asks, or whose yes it spends.
    fn ruled(
        &self,
        task: &Task,
        pending: &PendingAction,
        given: Option<StoredApproval>,
        masked: &[WorkspacePath],
    ) -> Result<Ruled, EngineError> {
        let decision = pending.decide();
        let asks = match &decision {
            Decision::RequireApproval(request) => Some(self.asks(pending, request)?),
            Decision::Allow(_) | Decision::Narrow(_) | Decision::Deny(_) => None,
        };
        let met = self.after_decision(&pending.action, &decision)?;
        let is_yes = matches!(decision, Decision::Allow(_) | Decision::Narrow(_));
        let spends = given.filter(|_| is_yes);
        let starts = is_yes && pending.service.is_none();
        let proposal = if starts { self.proposal(task, &pending.action, masked)? } else { None };
        Ok(Ruled { decision, asks, spends, met, proposal })
    }

    pub(crate) fn parse(&self, run: &Run, task: &Task, order: &Order) -> Result<Action, EngineError> {
        let start = StartingPoint {
            workspace: task.workspace.path.clone(),
            base: run.start.base_kind.clone(),
            layers: run.start.layers.iter().map(|layer| layer.action.clone()).collect(),
        };
        let id = run.action.clone();
        Ok(Action::parse(id, task.id.clone(), order.request.clone(), order.grant.clone(), start)?)
    }

    /// Records the request and the decision in one durable step. What is allowed is built meanwhile: building is not
    /// running, and the sandbox starts nothing without the permit that only the receipt makes.
    #[allow(
        clippy::type_complexity,
        reason = "the receipt, and the run with its sandbox, when one was to be built"
    )]
    fn record_and_prepare(
        &self,
        about: &Subject,
        requested: &Event,
        action: &Action,
        ruled: &Ruled,
        (mut run, waiting): (Run, Option<Waiting>),
    ) -> Result<(audit::Receipt, Option<(Run, Result<Prepared, SandboxError>)>), EngineError> {
        let (call, starter) = (run.call.clone(), run.starter.clone());
        let write = || {
            fail_point::reached("decision: it is about to be on the record");
            self.write_down(about, (requested, action), ruled, call.as_deref(), starter.as_ref())
        };
        match ruled.permitted() {
            None => {
                let receipt = write()?;
                self.end_unused(&run, waiting)?;
                Ok((receipt, None))
            }
            Some(yes) => {
                match waiting {
                    Some(waiting) if waiting.is_for(yes.grant()) => {
                        let receipt = match write() {
                            Ok(receipt) => receipt,
                            Err(error) => {
                                self.end_unused(&run, Some(waiting))?;
                                return Err(error);
                            }
                        };
                        let prepared = self.prepared(&run, yes.grant(), waiting)?;
                        return Ok((receipt, Some((run, prepared))));
                    }
                    unused => self.end_unused(&run, unused)?,
                }
                match self.leases(yes.grant())? {
                    Ok(leases) => run.leases = leases,
                    // That it was allowed is on the record all the same, and why it did not start.
                    Err(why) => return Ok((write()?, Some((run, Err(SandboxError::Credential(why)))))),
                }
                let spec = self.spec(&run, yes.grant())?;
                let (receipt, prepared) = std::thread::scope(|scope| {
                    let building = scope.spawn(|| sandbox::prepare(spec));
                    let receipt = write();
                    (receipt, building.join())
                });
                let prepared = prepared.unwrap_or(Err(SandboxError::OtherGrant));
                match receipt {
                    Ok(receipt) => Ok((receipt, Some((run, prepared)))),
                    Err(error) => {
                        drop(prepared);
                        self.make_room(&run)?;
                        Err(error)
                    }
                }
            }
        }
    }

    /// Records a request and its decision, with all that goes with them. What may start is asked about once more in the
    /// same write: who stops it comes before that or after it.
    fn write_down(
        &self,
        about: &Subject,
        (requested, action): (&Event, &Action),
        ruled: &Ruled,
        call: Option<&str>,
        starter: Option<&Starter>,
    ) -> Result<audit::Receipt, EngineError> {
        let (time, events) = (now(), ruled.events());
        let events = std::iter::once(requested).chain(&events);
        let stage = ruled.proposal.as_ref().map(|due| (due.about(), due.event()));
        let stage = stage.as_ref().map(|(subject, event)| Entry { subject, event, time });
        let own = events.map(|event| Entry { subject: about, event, time });
        let entries: Vec<Entry<'_>> = stage.into_iter().chain(own).collect();
        let starter = starter.filter(|_| ruled.permitted().is_some());
        let receipts = self.log.append_all(&entries, |writer| {
            starter.map_or(Ok(()), |starter| writer.refuse_halted(starter))?;
            if ruled.proposal.is_some() {
                writer.check_stages(action.task())?;
            }
            writer.insert_action(action, class_of(action), time)?;
            if let Some(call) = call {
                writer.add_call(action.task(), call, action.id())?;
            }
            writer.set_decision(action.id(), ruled.decision.record(), time)?;
            ruled.write(writer, action, time)
        })?;
        receipts
            .into_iter()
            .next_back()
            .ok_or_else(|| EngineError::Nothing("the record gave no receipt".into()))
    }

    /// Denies an action that somebody stopped between its decision and the record of it: nothing of that was written.
    fn refuse_late(
        &self,
        about: &Subject,
        requested: &Event,
        PendingAction { gate, action, facts, .. }: &PendingAction,
        error: &EngineError,
        call: Option<&str>,
    ) -> Result<Outcome, EngineError> {
        let facts = Facts { halted: halted(error).map(Halt::told), ..facts.clone() };
        let decision = gate.decide(action.clone(), &facts);
        let Decision::Deny(denial) = &decision else {
            return Err(EngineError::Nothing("a stop that came meanwhile was not heard: nothing ran".into()));
        };
        let outcome = Outcome::Denied { action: action.id().clone(), denial: denial.clone() };
        let (asks, spends, met) = (None, None, Met::default());
        let ruled = Ruled { decision, asks, spends, met, proposal: None };
        let _noted = self.write_down(about, (requested, action), &ruled, call, None)?;
        Ok(outcome)
    }

    /// Gives a sandbox out that waited, or another one where it was ended from outside while all was written down.
    fn prepared(
        &self,
        run: &Run,
        grant: &Grant,
        waiting: Waiting,
    ) -> Result<Result<Prepared, SandboxError>, EngineError> {
        if waiting.is_alive() {
            return Ok(Ok(waiting.into_prepared()));
        }
        self.end_unused(run, Some(waiting))?;
        Ok(sandbox::prepare(self.spec(run, grant)?))
    }

    fn requested(&self, action: &Action, facts: &Facts) -> Event {
        let request = action.request();
        let digest_of = |value: &model::OsText| self.store().value_digest(value.as_bytes());
        Event::Requested {
            digest: action.digest(),
            principal: request.principal.clone(),
            class: class_of(action).to_owned(),
            tool: request.tool.name().to_owned(),
            argv: described(&request.tool),
            environment: request
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), digest_of(value)))
                .collect(),
            claimed_purpose: request.purpose.clone(),
            grant: Box::new(action.grant().clone()),
            start: action.start().clone(),
            declared: facts.declared.iter().flatten().cloned().collect(),
        }
    }

    /// Records that an allowed action did not start, and why.
    pub(crate) fn not_started(
        &self,
        about: &Subject,
        action: ActionId,
        error: &SandboxError,
    ) -> Result<NotStarted, EngineError> {
        let not_started = NotStarted {
            action,
            reason: match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            shortfalls: match error {
                SandboxError::NotEnforceable(shortfalls) => shortfalls.clone(),
                _ => Vec::new(),
            },
            failed_probes: match error {
                SandboxError::NotProved(probes) => probes.clone(),
                _ => Vec::new(),
            },
        };
        self.keep_not_started(about, not_started)
    }

    /// Records that an allowed action did not start because somebody stopped it meanwhile.
    pub(crate) fn not_started_for(
        &self,
        about: &Subject,
        action: ActionId,
        halt: &Halt,
    ) -> Result<NotStarted, EngineError> {
        let reason = format!("{}: {}", halt.code(), halt.why());
        let (shortfalls, failed_probes) = (Vec::new(), Vec::new());
        self.keep_not_started(about, NotStarted { action, reason, shortfalls, failed_probes })
    }

    fn keep_not_started(&self, about: &Subject, not_started: NotStarted) -> Result<NotStarted, EngineError> {
        let action = not_started.action.clone();
        let event = Event::NotStarted {
            reason: not_started.reason.clone(),
            shortfalls: not_started.shortfalls.clone(),
            failed_probes: not_started.failed_probes.clone(),
        };
        self.record(about, &event, |writer, time| writer.set_not_started(&action, time))?;
        self.end_cut_off_trials()?;
        Ok(not_started)
    }

    /// Makes known what a command is given in variables: its output may show it, and it is not kept there either.
    fn learn_variables(&self, request: &ActionRequest) {
        let is_secret = |(name, value): &(&String, &OsText)| {
            is_secret_variable(name, &String::from_utf8_lossy(value.as_bytes()))
        };
        let given = request.environment.iter().filter(is_secret);
        self.store().learn_secrets(given.map(|(name, value)| (name.clone(), value.as_bytes().to_vec())));
    }

    /// Refuses values that are a secret of the caller; what a sandbox holds, everything in it can read.
    fn refuse_secret_values(&self, request: &ActionRequest) -> Result<(), EngineError> {
        for (name, value) in &request.environment {
            let is_secret =
                self.config.secrets.iter().any(|(_, secret)| secret.as_os_str() == value.as_os_str());
            let why = if is_secret {
                Some("is a secret of your environment".to_owned())
            } else {
                // Some secrets show by their names alone, as they would on a line of a file.
                let line = [name.as_bytes(), b"=", value.as_bytes()].concat();
                let shape = inspect::credentials::shape_of(value.as_bytes());
                let shape = shape.or_else(|| inspect::credentials::shape_of(&line));
                shape.map(|shape| format!("looks like {shape}"))
            };
            if let Some(why) = why {
                return Err(EngineError::SecretValue { name: name.clone(), why });
            }
        }
        Ok(())
    }
}

/// Makes the id of a new action.
pub(crate) fn new_action_id() -> Result<ActionId, EngineError> {
    Ok(ActionId::from_random(random()?))
}

/// Returns the subject of events about an action.
pub(crate) fn subject(action: &Action) -> Subject {
    Subject { task: Some(action.task().clone()), action: Some(action.id().clone()) }
}

/// Returns the program and its arguments, or what another tool is about: its paths, after what it looks for.
fn described(tool: &Tool) -> Vec<OsText> {
    let path = |path: &WorkspacePath| OsText::from(path.clone());
    match tool {
        Tool::Run { argv } => argv.clone(),
        Tool::Read { path: file } | Tool::Write { path: file, .. } => vec![path(file)],
        Tool::List { path: directory } => directory.iter().map(path).collect(),
        Tool::Search { pattern, path: below } => {
            [OsText::literal(pattern)].into_iter().chain(below.iter().map(path)).collect()
        }
        Tool::Patch { paths, .. } => paths.iter().map(path).collect(),
    }
}

fn class_of(action: &Action) -> &'static str {
    match action.request().principal {
        Principal::Engine => "internal",
        Principal::User(_) | Principal::Agent(_) => "action",
    }
}
