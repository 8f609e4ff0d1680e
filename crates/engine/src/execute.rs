//! The second half of the path: the sandbox of an action, its run, and what is kept of it.

use std::cell::Cell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use audit::Entry;
use gate::Permit;
use inspect::layer::{self, Bounds};
use inspect::tree::Time;
use inspect::{Report, Rules, Stack, Tree};
use model::action::Base;
use model::egress::ToGateway;
use model::event::{Event, HeldBack};
use model::{ApprovalState, Grant, OsText, Subject};
use sandbox::fail_point;
use sandbox::{
    Execution, GatewaySpec, Io, Joined, Prepared, Report as Built, SandboxError, Spec, Started, Unstarted,
};

use crate::Engine;
use crate::apply::BaseStats;
use crate::checkpoint::holds_something;
use crate::clock::now;
use crate::config::GatewayProgram;
use crate::credentials;
use crate::credentials::{CanaryIn, Lease, with_the_action};
use crate::denials::Met;
use crate::error::EngineError;
use crate::holds::halted;
use crate::host_edits;
use crate::ignore_rules;
use crate::layers::GIT_UPPER;
use crate::masks;
use crate::outcome::{Finished, Outcome};
use crate::run::Run;
use crate::start::open;
use crate::store::{ActionState, Evidence, StoreError, Writer};

/// Why a request is worth nothing whose trial did what was denied before.
const DENIED_BEFORE: &str = "when it was tried, it did what was denied before";

/// Changes that one event lists; the rest is counted. All of them stay in the layer.
const CHANGES_MAX: usize = 1000;
/// The roots that programs verify servers by, in one file, on Debian and its kin.
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What was found in a layer.
#[derive(Debug, Default)]
struct Looked {
    report: Report,
    held: Vec<inspect::Held>,
    host_edits: Vec<OsText>,
    /// Canaries that were written to files.
    canaries: Vec<Event>,
}

impl Engine {
    /// Puts the sandbox of an authorized action together.
    pub(crate) fn spec(&self, run: &Run, grant: &Grant) -> Result<Spec, EngineError> {
        let grant = grant.clone();
        let places = self.places();
        let mut covers = run.start.covers.clone();
        let gateway = self.gateway(run, &grant, &mut covers)?;
        let mut view = self.view(&run.start.workspace, run.start.identity, &grant)?;
        let canaries = if run.start.is_helper { Vec::new() } else { self.canaries(&run.task) };
        view.environment.extend(credentials::variables(&run.leases, &canaries));
        Ok(Spec {
            identity: run.start.identity,
            view,
            workspace: sandbox::Workspace {
                path: run.start.workspace.path.clone(),
                base: run.start.base.clone(),
                base_owner: run.start.base_owner,
                layers: run.start.lowers.clone(),
                layer: places.layer(&run.task, &run.action),
            },
            masks: run.start.masked.clone(),
            covers,
            git_directory: run.start.git_directory.clone(),
            joined: grant.network.joined().map(|action| Joined {
                action: action.clone(),
                run_directory: places.runs().join(action.as_str()),
            }),
            gateway,
            grant,
            service_manager: self.config.service_manager.clone(),
            run_directory: run.directory.clone(),
            artifacts: places.artifacts(&run.task, &run.action),
            cache: places.cache(&run.task),
            images: places.images(),
            mutant: run.start.mutant.clone(),
        })
    }

    /// Returns the gateway of an action that may reach something. Where it looks into TLS, clients inside are shown the roots of
    /// the machine with its authority among them.
    fn gateway(
        &self,
        run: &Run,
        grant: &Grant,
        covers: &mut Vec<(PathBuf, Vec<u8>)>,
    ) -> Result<Option<GatewaySpec>, EngineError> {
        let ours = self.config.gateway.as_ref().filter(|_| grant.network.egress().is_some());
        let Some(GatewayProgram { program, arguments, begin, authority, roots: files }) = ours.cloned()
        else {
            return Ok(None);
        };
        let mut also = self.about_packages(run, grant)?;
        if grant.network.looks_into_tls() {
            let signing = authority(self.store().directory(), now()).map_err(EngineError::Nothing)?;
            let mut roots = std::fs::read(ROOTS).map_err(EngineError::file("read", ROOTS))?;
            roots.extend_from_slice(b"\n");
            roots.extend_from_slice(signing.certificate.as_bytes());
            covers.push((ROOTS.into(), roots));
            also.push(ToGateway::Authority(Box::new(signing)));
            for file in files {
                let text = std::fs::read_to_string(&file).map_err(EngineError::file("read", &file))?;
                also.extend(certificates(&text).map(ToGateway::Root));
            }
        }
        also.extend(credentials::told(&run.leases, self.canaries(&run.task)));
        Ok(Some(GatewaySpec { program, arguments, begin, also }))
    }

    /// Runs a permitted action in its sandbox, looks at what came out, and records all of it.
    pub(crate) fn run(
        &self,
        about: &Subject,
        run: Run,
        prepared: Prepared,
        permit: Permit,
        io: Io,
    ) -> Result<Outcome, EngineError> {
        let (started, report) = match self.start(about, &run, prepared, permit, &io) {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => {
                return self.not_started(about, run.action.clone(), &error).map(Outcome::NotStarted);
            }
            Err(error) => {
                let Some(halt) = halted(&error) else { return Err(error) };
                self.make_room(&run)?;
                return self.not_started_for(about, run.action.clone(), halt).map(Outcome::NotStarted);
            }
        };
        let stored = self.store().read(|reader| reader.find_action(run.action.as_str()))?;
        // What its gateway tells is on the record before it goes on; a gateway whose words are not kept is closed.
        let (stop, mut ended) = (Cell::new(false), Vec::new());
        let mut record =
            |event: &Event| self.keep_told(about, &run, event, &stop).map_err(|error| chain(&error));
        let mut watch = || self.watch(about, &run, &mut ended, &stop);
        let execution = started.follow_watched(io, &mut record, &mut watch).map_err(EngineError::Sandbox)?;
        let Looked { report: changes, held: inspection, host_edits, canaries } = self.look_at_layer(&run)?;
        let evidence = Evidence {
            held: Some(report.held),
            probes: Some(report.probes),
            masked: Some(masked(&run)),
            host_edits: Some(host_edits),
            ..Evidence::default()
        };
        let not_there = || EngineError::Nothing("the decision is not in the store".into());
        let decision = stored.decision.ok_or_else(not_there)?;
        let met = self.after_run(&run, &stored.request.tool, &execution.observed, &changes)?;
        let held_back: Vec<HeldBack> = inspection.iter().map(inspect::Held::record).collect();
        let looked = (&changes, held_back.as_slice(), &met, canaries.as_slice());
        let receipt = self.record_end(about, &run, &execution, looked, evidence.clone())?;
        fail_point::reached("inspection: the end is on the record");
        Ok(Outcome::Finished(Box::new(Finished {
            action: run.action.clone(),
            task: run.task.clone(),
            decision,
            ending: execution.ending,
            usage: execution.usage,
            observed: execution.observed,
            held: evidence.held.unwrap_or_default(),
            probes: evidence.probes.unwrap_or_default(),
            masked: evidence.masked.unwrap_or_default(),
            steps: execution.steps,
            printed: execution.printed,
            report: changes,
            held_back: inspection,
            host_edits: evidence.host_edits.unwrap_or_default(),
            teardown: execution.teardown,
            receipt,
        })))
    }

    /// Records that a sandbox stands, and starts the command in it. A sandbox that was ended from outside just before is
    /// replaced by another, once: nothing ran in it, and the permit has come back whole.
    fn start(
        &self,
        about: &Subject,
        run: &Run,
        prepared: Prepared,
        permit: Permit,
        io: &Io,
    ) -> Result<Result<(Started, Built), SandboxError>, EngineError> {
        let report = prepared.report().clone();
        let starter = run.starter_now()?;
        let may = |writer: &Writer<'_>| starter.as_ref().map_or(Ok(()), |who| writer.refuse_halted(who));
        self.record_start(about, run, &report, &run.leases, |writer, time| {
            may(writer)?;
            writer.set_started(&run.action, time)?;
            run.leases.iter().try_for_each(|lease| lease.write(writer, &run.task, &run.action))
        })?;
        fail_point::reached("run: the start is on the record");
        let permit = match prepared.start(permit, io.controller.as_ref()) {
            Ok(started) => return Ok(Ok((started, report))),
            Err(Unstarted::Failed(error)) => return Ok(Err(error)),
            Err(Unstarted::Gone(permit)) => *permit,
        };
        self.make_room(run)?;
        let another = match sandbox::prepare(self.spec(run, permit.grant())?) {
            Ok(another) => another,
            Err(error) => return Ok(Err(error)),
        };
        let report = another.report().clone();
        self.record_start(about, run, &report, &[], |writer, _| may(writer))?;
        Ok(another
            .start(permit, io.controller.as_ref())
            .map(|started| (started, report))
            .map_err(SandboxError::from))
    }

    /// Records that a sandbox stands, with the gateway and the credentials that it has, in one durable step.
    fn record_start(
        &self,
        about: &Subject,
        run: &Run,
        report: &Built,
        leases: &[Lease],
        also: impl FnOnce(&Writer<'_>, model::Timestamp) -> Result<(), StoreError>,
    ) -> Result<(), EngineError> {
        self.record_unanchored()?;
        let (time, started) = (now(), started(run, report));
        let leased: Vec<Event> = leases.iter().map(Lease::event).collect();
        let events = std::iter::once(&started).chain(&report.gateway).chain(&leased);
        let entries: Vec<Entry<'_>> = events.map(|event| Entry { subject: about, event, time }).collect();
        let _noted = self.log.append_all(&entries, |writer| also(writer, time))?;
        Ok(())
    }

    /// Reads the new layer back against what was below it, and sorts what of it may leave.
    fn look_at_layer(&self, run: &Run) -> Result<Looked, EngineError> {
        let places = self.places();
        let upper = places.layer(&run.task, &run.action).join("upper");
        if !upper.exists() {
            // A workspace that is read-only has no layer.
            return Ok(Looked::default());
        }
        self.keep_git(run)?;
        let stack = Stack::new(vec![Tree::open(&upper)?], open(&run.start.lowers, &run.start.base)?);
        let mut report = layer::read(&stack, Bounds::default())?;
        fail_point::reached("inspection: the layer is read");
        strip(&report, &upper)?;
        masks::report_credentials(&mut report, &stack)?;
        let canaries = self.canaries_in(&run.task, &report, &stack)?;
        masks::add(&mut report, canaries.iter().map(CanaryIn::found).collect());
        let canaries = canaries.iter().map(CanaryIn::event).collect();
        let base = Tree::open(&run.start.base)?;
        let began = file_time(run.began);
        let below = Stack::new(Vec::new(), vec![base.clone()]);
        let stats = BaseStats::take(&report, &below, began)?;
        self.keep_base_stats(&run.task, &run.action, &stats)?;
        fail_point::reached("inspection: what the run saw below is kept");
        let host_edits = match run.start.base_kind {
            Base::Live => host_edits::since(began, &report, &stats, &base)?,
            Base::Commit { .. } => Vec::new(),
        };
        ignore_rules::mark(&mut report.changes, &run.start.base, &stack);
        let rules = self.accepting(Rules::built_in().clone(), &run.task)?;
        let held = inspect::inspect(stack, &report, &rules)?.held().to_vec();
        fail_point::reached("inspection: it is judged");
        Ok(Looked { report, held, host_edits, canaries })
    }

    /// Sees to it that what was written to the repository of a linked worktree can be below later actions. It is kept with
    /// the layer, and `apply` never looks at it.
    fn keep_git(&self, run: &Run) -> Result<(), EngineError> {
        let upper = self.git_upper(run);
        if holds_something(&upper) {
            layer::strip_foreign_attributes(&Tree::open(&upper)?)?;
            return Ok(());
        }
        let git = self.places().layer(&run.task, &run.action).join("git");
        sandbox::remove_tree(&git).map_err(EngineError::file("remove", &git))
    }

    fn git_upper(&self, run: &Run) -> PathBuf {
        self.places().layer(&run.task, &run.action).join(GIT_UPPER)
    }

    fn record_end(
        &self,
        about: &Subject,
        run: &Run,
        execution: &Execution,
        (report, held_back, met, canaries): (&Report, &[HeldBack], &Met, &[Event]),
        evidence: Evidence,
    ) -> Result<audit::Receipt, EngineError> {
        let output = self.keep_output(&run.task, &run.action, &execution.printed)?;
        fail_point::reached("inspection: the output is kept");
        let ended = Event::Ended {
            ending: execution.ending.clone(),
            usage: execution.usage,
            observed: Box::new(execution.observed.clone()),
            steps: execution.steps.clone(),
            output: output.clone(),
        };
        let listed = report.changes.len().min(CHANGES_MAX);
        let inspected = Event::Inspected {
            changes: report.changes[..listed].to_vec(),
            changes_dropped: (report.changes.len() - listed) as u64 + report.unlisted,
            held_back: held_back.iter().take(CHANGES_MAX).cloned().collect(),
            host_edits: evidence.host_edits.iter().flatten().take(CHANGES_MAX).cloned().collect(),
        };
        let torn_down = Event::TornDown { teardown: execution.teardown.clone() };
        let evidence = Evidence {
            observed: Some(execution.observed.clone()),
            steps: Some(execution.steps.clone()),
            output: Some(output),
            changes: Some(report.changes[..listed].to_vec()),
            held_back: Some(held_back.to_vec()),
            teardown: Some(execution.teardown.clone()),
            ..evidence
        };
        let changed = has_changes(report) || holds_something(&self.git_upper(run));
        // What did something that was denied before leaves nothing behind.
        let keeps = !run.start.is_helper && changed && met.is_empty();
        if keeps {
            self.write_out(run)?;
        }
        let time = now();
        let void = run.trial.as_ref().filter(|_| !met.is_empty()).map(|approval| Event::ApprovalClosed {
            approval: approval.clone(),
            state: ApprovalState::Void,
            why: DENIED_BEFORE.to_owned(),
        });
        let is_of_the_task = !run.start.is_helper && run.trial.is_none();
        let stage = if is_of_the_task { self.execution(&run.task, &(&ended, &inspected))? } else { None };
        let stage = stage.map(|due| (due.about(), due.event()));
        let stage = stage.as_ref().map(|(subject, event)| Entry { subject, event, time });
        let own = |event| Entry { subject: about, event, time };
        let with_it = with_the_action(&execution.ending);
        let leases = self.ends_of(&run.action, &with_it)?;
        let events =
            met.events().iter().chain(&void).chain([&ended, &inspected]).chain(canaries).chain(&leases);
        let entries: Vec<Entry<'_>> = events.map(own).chain(stage).chain([own(&torn_down)]).collect();
        let receipts = self.log.append_all(&entries, |writer| {
            if stage.is_some() {
                writer.check_stages(&run.task)?;
            }
            let end = (&execution.ending, &execution.usage);
            let to = if run.trial.is_some() { ActionState::Tried } else { ActionState::Ended };
            writer.set_ended(&run.action, to, end, time)?;
            writer.end_leases(&run.action, None, &with_it, time)?;
            writer.keep_evidence(&run.action, &evidence)?;
            met.write(writer, &run.task, time)?;
            match &run.trial {
                Some(approval) if void.is_some() => {
                    let (from, to) = (ApprovalState::Trying, ApprovalState::Void);
                    writer.move_approval(approval, &[from], to, Some(DENIED_BEFORE), time)
                }
                Some(approval) => {
                    let (from, to) = (ApprovalState::Trying, ApprovalState::Open);
                    writer.move_approval(approval, &[from], to, None, time)
                }
                None if keeps => writer.add_layer(&run.task, &run.action),
                None => Ok(()),
            }
        })?;
        if !keeps && !run.start.is_helper {
            // The end is on the record: an empty directory that stays is no reason to answer otherwise.
            let _ = self.remove_empty(run);
        }
        receipts
            .into_iter()
            .next_back()
            .ok_or_else(|| EngineError::Nothing("the record gave no receipt".into()))
    }

    /// Sees to it that a layer is on the disk before the record speaks of it.
    fn write_out(&self, run: &Run) -> Result<(), EngineError> {
        let layer = self.places().layer(&run.task, &run.action);
        let written = std::fs::File::open(&layer).and_then(|directory| Ok(rustix::fs::syncfs(&directory)?));
        written.map_err(EngineError::file("write out", &layer))
    }

    /// Removes the places of an action that changed nothing and gave nothing out.
    pub(crate) fn remove_empty(&self, run: &Run) -> Result<(), EngineError> {
        let layer = self.places().layer(&run.task, &run.action);
        sandbox::remove_tree(&layer).map_err(EngineError::file("remove", &layer))?;
        let artifacts = self.places().artifacts(&run.task, &run.action);
        match std::fs::remove_dir(&artifacts) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                Err(EngineError::file("remove", &artifacts)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the certificates in a text, each by itself.
fn certificates(text: &str) -> impl Iterator<Item = String> {
    const END: &str = "-----END CERTIFICATE-----";
    text.split_inclusive(END).filter(|one| one.contains(END)).map(str::to_owned)
}

/// Says an error with its causes.
fn chain(error: &EngineError) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn started(run: &Run, report: &Built) -> Event {
    Event::Started {
        backend: "native".to_owned(),
        held: report.held.clone(),
        probes: report.probes.clone(),
        masked: masked(run),
    }
}

fn masked(run: &Run) -> Vec<OsText> {
    let inputs = run
        .start
        .masked_inputs
        .iter()
        .filter_map(|path| OsText::try_from(path.clone().into_os_string()).ok());
    run.start.masked.iter().cloned().map(OsText::from).chain(inputs).collect()
}

/// Returns a moment by the clock that the kernel gives files.
pub(crate) fn file_time(time: model::Timestamp) -> Time {
    let nanos = time.as_nanos();
    Time {
        seconds: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        nanos: u32::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

/// Takes off a layer what a later mount would obey, before it can be below one.
fn strip(report: &Report, upper: &Path) -> Result<(), EngineError> {
    let planted = |finding: &inspect::Finding| matches!(finding, inspect::Finding::ForeignAttribute { .. });
    if report.findings.iter().any(planted) || report.findings_dropped > 0 {
        layer::strip_foreign_attributes(&Tree::open(upper)?)?;
    }
    Ok(())
}

/// A layer in which nothing changed is not mounted below later actions. What an action that did not end by itself
/// left behind stays too: it is what a person sees, and `undo` takes it away.
fn has_changes(report: &Report) -> bool {
    !report.changes.is_empty() || report.unlisted > 0
}
