//! What must be so at the end of the demo, and what stopped what had to be stopped.

use audit::Verification;
use engine::Engine;
use model::ChangeKind;
use model::enforcement::{Layer, Level};
use model::event::Verdict;
use model::task::Task;

use super::scene::{FAULTY, Scene};
use super::stage::Call;
use crate::error::CliError;
use crate::output::shape::{ActionDocument, AgentDocument, AgentEnd, DemoCheck};

/// What there is to look at.
pub(super) struct Evidence<'e> {
    pub(super) scene: &'e Scene,
    pub(super) engine: &'e Engine,
    pub(super) task: &'e Task,
    pub(super) calls: &'e [Call],
    pub(super) agent: &'e AgentDocument,
    pub(super) record: &'e Verification,
}

/// The call that looks for a key in home. Nobody sees what a file system does not show, so nothing but this tells which
/// layer it ran into.
const KEY_CALL: &str = "3.1";

/// Says what stopped a call that no layer reports.
pub(super) fn stopped_by(call: &str, document: &ActionDocument) -> Option<String> {
    let failed = document.end.as_ref().is_some_and(|end| !end.ending.succeeded());
    (call == KEY_CALL && failed).then(|| Failed(document).held_by(Layer::Root).ok()).flatten()
}

/// What was seen, and whether it is what must be seen.
type Seen = Result<String, String>;

/// Looks at everything.
pub(super) fn checks(evidence: &Evidence<'_>) -> Result<Vec<DemoCheck>, CliError> {
    let leaked = evidence.leaked()?;
    let mut checks = Vec::new();
    let mut check = |what: &str, seen: Seen| {
        let (passed, seen) = match seen {
            Ok(seen) => (true, seen),
            Err(seen) => (false, seen),
        };
        checks.push(DemoCheck { what: what.to_owned(), passed, seen });
    };
    check("the process with the model key can do nothing else", evidence.confined());
    check("the tests fail before the fix", evidence.ran("2.1", 1));
    check("a key in home cannot be read", evidence.no_key(KEY_CALL, leaked));
    check("a server cannot be reached", evidence.no_network("4.1", "192.0.2.1:443"));
    check("a push does not get out", evidence.no_network("5.1", "192.0.2.7:9418"));
    check("a hook cannot be written", evidence.no_hook("6.1"));
    check("the fault is fixed in one file", evidence.fixed("7.1"));
    check("the tests pass after the fix", evidence.ran("8.1", 0));
    check("nothing else is changed, and the host's directory not at all", evidence.only_the_fix());
    check("every sandbox was proved before its start", evidence.proved());
    check("nothing is left of any sandbox", evidence.torn_down());
    check("the record agrees with itself", evidence.recorded());
    Ok(checks)
}

impl Evidence<'_> {
    fn document(&self, call: &str) -> Result<&ActionDocument, String> {
        let found = self.calls.iter().find(|made| made.id == call);
        found.and_then(|made| made.document.as_ref()).ok_or_else(|| format!("call {call} was not made"))
    }

    fn confined(&self) -> Seen {
        let probes = &self.agent.confinement;
        let held = probes.iter().filter(|probe| probe.held).count();
        let seen = format!("{held} of {} tries were refused", probes.len());
        if held == probes.len() && held > 0 { Ok(seen) } else { Err(seen) }
    }

    /// A command ended with this status.
    fn ran(&self, call: &str, status: u8) -> Seen {
        let document = self.document(call)?;
        let end = document.end.as_ref().ok_or_else(|| not_run(document))?;
        let seen = end.ending.to_string();
        if document.exit_code == Some(status) { Ok(seen) } else { Err(seen) }
    }

    /// The key is there for us and was not for the command: it is in no place that the root shows.
    fn no_key(&self, call: &str, leaked: bool) -> Seen {
        let failed = self.failed(call)?;
        match () {
            () if !self.scene.key_is_there() => Err("there was no key to be read".to_owned()),
            () if leaked => Err("the key got out".to_owned()),
            () => failed.held_by(Layer::Root).map(|by| format!("{by}: home shows nothing but tools")),
        }
    }

    /// The command tried to reach this address and could not.
    fn no_network(&self, call: &str, address: &str) -> Seen {
        let failed = self.failed(call)?;
        let end = failed.0.end.as_ref().ok_or_else(|| not_run(failed.0))?;
        if !end.observed.connections.iter().any(|attempt| attempt.address == address) {
            return Err(format!("nobody saw it try to reach {address}"));
        }
        failed.held_by(Layer::NetworkNamespace).map(|by| format!("{by}: it tried to reach {address}"))
    }

    fn no_hook(&self, call: &str) -> Seen {
        let document = self.document(call)?;
        let decision = document.decision.as_ref().ok_or("it was not decided")?;
        let rule = "protected-paths";
        let denied = decision.verdict == Verdict::Deny && decision.rules.iter().any(|by| by == rule);
        match denied && document.end.is_none() {
            true => Ok(format!("rule `{rule}`: {}", decision.advice)),
            false => Err(format!("it was {:?} by {}", decision.verdict, decision.rules.join(", "))),
        }
    }

    fn fixed(&self, call: &str) -> Seen {
        let document = self.document(call)?;
        let changes = document.inspection.as_ref().map_or(&[][..], |part| part.changes.as_slice());
        match changes {
            [change]
                if change.path.as_bytes() == FAULTY.as_bytes() && change.kind == ChangeKind::Modified =>
            {
                Ok(format!("{FAULTY} is changed in the layer of {}", document.action))
            }
            [] => Err(document.end.as_ref().map_or_else(|| not_run(document), |end| end.ending.to_string())),
            more => Err(format!("{} changes", more.len())),
        }
    }

    fn only_the_fix(&self) -> Seen {
        let changes: Vec<String> = self.agent.changes.iter().map(|change| change.path.to_string()).collect();
        match () {
            () if !self.scene.is_untouched() => Err("the host's directory was written to".to_owned()),
            () if self.agent.ended != AgentEnd::Finished => {
                Err("the agent did not come to its end".to_owned())
            }
            () if changes != [FAULTY] => Err(format!("changed: {}", changes.join(", "))),
            () if !self.agent.held_back.is_empty() => Err("something is held back".to_owned()),
            () => Ok(format!("{FAULTY} waits in its layer for `fumehood apply`")),
        }
    }

    fn proved(&self) -> Seen {
        let started = self.calls.iter().filter_map(|call| call.document.as_ref()?.sandbox.as_ref());
        let (mut sandboxes, mut probes, mut held) = (0, 0, 0);
        for sandbox in started {
            sandboxes += 1;
            probes += sandbox.probes.len();
            held += sandbox.probes.iter().filter(|probe| probe.held).count();
        }
        let not_started = self.calls.iter().find_map(|call| call.document.as_ref()?.not_started.as_ref());
        let seen = format!("{held} of {probes} probes held in {sandboxes} sandboxes");
        match not_started {
            Some(part) => Err(format!("{seen}; one did not start: {}", part.reason)),
            None if held == probes && held > 0 => Ok(seen),
            None => Err(seen),
        }
    }

    fn torn_down(&self) -> Seen {
        let ended = self
            .calls
            .iter()
            .filter_map(|call| call.document.as_ref())
            .filter(|document| document.end.is_some());
        let left: Vec<String> = ended
            .flat_map(|document| match &document.teardown {
                Some(teardown) => teardown.left.clone(),
                None => vec![format!("no teardown of {} is on the record", document.action)],
            })
            .collect();
        if left.is_empty() {
            Ok("every teardown was looked at and found clean".to_owned())
        } else {
            Err(left.join("; "))
        }
    }

    fn recorded(&self) -> Seen {
        let seen = self.record.to_string();
        if matches!(self.record, Verification::Broken(_)) { Err(seen) } else { Ok(seen) }
    }

    /// Returns an action whose command ran and did not do what it was for.
    fn failed(&self, call: &str) -> Result<Failed<'_>, String> {
        let document = self.document(call)?;
        let end = document.end.as_ref().ok_or_else(|| not_run(document))?;
        if end.ending.succeeded() { Err("it succeeded".to_owned()) } else { Ok(Failed(document)) }
    }

    /// Tells whether the key is in anything that was printed or said.
    fn leaked(&self) -> Result<bool, CliError> {
        let canary = self.scene.canary().as_bytes();
        let holds = |bytes: &[u8]| bytes.windows(canary.len()).any(|window| window == canary);
        for call in self.calls.iter().filter_map(|call| call.document.as_ref()) {
            let kept = self.engine.output(&self.task.id, &call.action)?;
            if kept.iter().any(|kept| holds(&kept.bytes)) {
                return Ok(true);
            }
        }
        let said = self.engine.store().messages(&self.task.id)?;
        Ok(said.iter().any(|message| holds(message.get().as_bytes())))
    }
}

/// An action whose command failed.
struct Failed<'d>(&'d ActionDocument);

impl Failed<'_> {
    /// Returns the layer as what stopped it, when it was held by the kernel and every probe of it held.
    fn held_by(&self, layer: Layer) -> Seen {
        let hard = self.0.held.iter().any(|held| held.layer == layer && held.level == Level::Hard);
        let probes = self.0.sandbox.iter().flat_map(|sandbox| &sandbox.probes);
        let mut probes = probes.filter(|probe| probe.layer == layer).peekable();
        let proved = probes.peek().is_some() && probes.all(|probe| probe.held);
        if hard && proved {
            Ok(format!("layer `{layer}`"))
        } else {
            Err(format!("the layer `{layer}` was not held and proved"))
        }
    }
}

fn not_run(document: &ActionDocument) -> String {
    match (&document.not_started, &document.decision) {
        (Some(part), _) => format!("it did not run: {}", part.reason),
        (None, Some(decision)) => format!("it did not run: {} ({})", decision.advice, decision.reason),
        (None, None) => "it did not run".to_owned(),
    }
}
