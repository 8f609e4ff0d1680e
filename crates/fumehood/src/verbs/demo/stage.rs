//! What the audience sees while the demo runs, and what is kept of each call for the checks.

use std::path::Path;

use ::agent::protocol::Proposal;
use model::Tool;
use model::evidence::Probe;

use super::checks::stopped_by;
use super::scene::Scene;
use crate::output::shape::{ActionDocument, DemoDocument};
use crate::output::{Console, Progress, render};
use crate::verbs::agent::{Made, Watch};

/// A call of the model, and what the record says of it.
pub(super) struct Call {
    /// Its place in the transcript, `TURN.CALL`.
    pub(super) id: String,
    /// What the record says of its action.
    pub(super) document: Option<ActionDocument>,
}

/// Shows each step as it happens.
pub(super) struct Stage<'c> {
    console: &'c Console,
    progress: Option<Progress>,
    calls: Vec<Call>,
}

impl<'c> Stage<'c> {
    pub(super) fn new(console: &'c Console) -> Self {
        Self { console, progress: None, calls: Vec::new() }
    }

    pub(super) fn opens(&self, scene: &Scene) {
        self.print(&format!(
            "A model works on a small repository with a real fault. The model is played from a transcript, so no key and no\n\
             network are needed. Its process, the decisions, the record, the sandboxes and their proof are real.\n\n  \
             repository  {}\n",
            scene.repository().display()
        ));
    }

    /// Nothing more will happen.
    pub(super) fn ends(&mut self) {
        self.progress = None;
    }

    /// Returns the calls that were made.
    pub(super) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns how many tries of the probers were refused, and how many there were.
    pub(super) fn probes(&self) -> (u64, u64) {
        let sandboxes = self.calls.iter().filter_map(|call| call.document.as_ref()?.sandbox.as_ref());
        let failed = self.calls.iter().filter_map(|call| call.document.as_ref()?.not_started.as_ref());
        let all = sandboxes.clone().map(|sandbox| sandbox.probes.len()).sum::<usize>()
            + failed.map(|part| part.failed_probes.len()).sum::<usize>();
        let held = sandboxes.flat_map(|sandbox| &sandbox.probes).filter(|probe| probe.held).count();
        (held as u64, all as u64)
    }

    fn print(&self, text: &str) {
        if !self.console.json && !self.console.quiet {
            self.console.print(text);
        }
    }

    fn line(&mut self, label: &str, text: &str) {
        // The line of the progress would stand in front of ours.
        self.progress = None;
        self.print(&format!("  {}{text}\n", self.console.out.dim(format!("{label:<12}"))));
    }
}

impl Watch for Stage<'_> {
    fn confined(&mut self, probes: &[Probe]) {
        let held = probes.iter().filter(|probe| probe.held).count();
        let text = format!(
            "the process that speaks with the model was refused {held} of {} tries to start, read or reach anything else",
            probes.len()
        );
        self.line("model key", &text);
    }

    fn waits(&mut self, what: &str) {
        match &self.progress {
            Some(progress) => progress.set(what),
            None => self.progress = Some(self.console.progress(what)),
        }
    }

    fn said(&mut self, text: &str) {
        self.line("model", &self.console.out.dim(model::text::escape(text)));
    }

    fn made(&mut self, proposal: &Proposal, made: &Made) {
        let id = proposal.call.to_string();
        let text = match &made.document {
            Some(document) => render::agent_step(document, made.again, "              ", self.console.out),
            None => format!("{} is no action", proposal.tool.name()),
        };
        let label = if matches!(proposal.tool, Tool::Run { .. }) { "runs" } else { "asks" };
        self.line(label, &text);
        if let Some(by) = made.document.as_ref().and_then(|document| stopped_by(&id, document)) {
            let refused = self.console.out.caution("refused");
            self.line("", &format!("{refused} by the {by}: of home it shows nothing but tools"));
        }
        self.calls.push(Call { id, document: made.document.clone() });
    }
}

/// Shows what was found at the end.
pub(super) fn closes(console: &Console, document: &DemoDocument, kept: Option<&Path>) {
    console.answer(document, |paint| {
        let mut text = render::demo(document, paint);
        text.push_str(&match kept {
            Some(directory) => format!("kept in {}\n", model::text::escape(&directory.to_string_lossy())),
            None => "everything that the demo made is removed\n".to_owned(),
        });
        text
    });
}
