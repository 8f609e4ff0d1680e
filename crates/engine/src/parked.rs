//! Sandboxes that are built and proved ahead of the action that will run in them, while a model thinks.
//!
//! Guarantees: parking starts nothing, and nobody acts on what is decided for it. An action that gets a parked sandbox is
//! parsed, decided and recorded like every other, and gets one only when it is what would be built for it now: on the same
//! layers and base, with the same files covered, under exactly the grant that was decided. Otherwise the sandbox is torn
//! down and another one is built, and so it is when somebody outside ended it before anything was started in it. What it
//! shows of the host's tools is as of when it was built.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use gate::Decision;
use model::Grant;
use model::task::Task;
use sandbox::Prepared;

use crate::Engine;
use crate::error::EngineError;
use crate::handle::{Manner, Order};
use crate::lock::Lock;
use crate::run::Run;
use crate::start::Start;

/// How long a sandbox may wait: tools of the host that were installed or removed since are not seen in it.
const WAITS_AT_MOST: Duration = Duration::from_secs(300);
/// How many may wait: an agent reads, under one grant, and runs commands, under another.
const PLACES: usize = 2;

/// A sandbox in which nothing has run yet, with the run whose place it has.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) run: Run,
    pub(crate) sandbox: Waiting,
}

/// The sandbox itself.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// What the order asked for that it was built for.
    asked: Grant,
    /// What policy made of that.
    granted: Grant,
    prepared: Prepared,
    since: Instant,
}

impl Waiting {
    /// Tells whether it was built for exactly what an action may do.
    pub(crate) fn is_for(&self, granted: &Grant) -> bool {
        self.granted == *granted
    }

    /// Tells whether it still stands: somebody outside may have ended it.
    pub(crate) fn is_alive(&self) -> bool {
        self.prepared.is_alive()
    }

    /// Gives the sandbox out.
    pub(crate) fn into_prepared(mut self) -> Prepared {
        self.prepared.waited(self.since.elapsed());
        self.prepared
    }
}

impl Engine {
    /// Builds and proves a sandbox for an order like this one, which may come next. It does so only when no action of the
    /// task runs, and when policy would let it run.
    ///
    /// # Errors
    /// When the engine itself fails, or the sandbox cannot be built; the next action is not the worse for it.
    pub fn park(&self, task: &Task, order: &Order) -> Result<(), EngineError> {
        let Some(_alone) = Lock::try_take(&self.places().task(&task.id).join("lock"))? else { return Ok(()) };
        let start = Start::of(self, task, order, Manner::default())?;
        self.drop_unfit(&start);
        let has_one = |parked: &Parked| parked.run.start == start && parked.sandbox.asked == order.grant;
        if self.parked().iter().any(has_one) {
            return Ok(());
        }
        if let Some(parked) = self.build_ahead(task, order, start)? {
            self.put(parked);
        }
        Ok(())
    }

    /// Builds a sandbox for an order, when policy would let it run.
    fn build_ahead(&self, task: &Task, order: &Order, start: Start) -> Result<Option<Parked>, EngineError> {
        let gate = self.gate_of(task, &order.workspace)?;
        let run = Run::begin(self, start)?;
        let action = self.parse(&run, task, order)?;
        let facts = self.facts(&order.profile, &action)?;
        let (Decision::Allow(yes) | Decision::Narrow(yes)) = gate.decide(action, &facts) else {
            return Ok(None);
        };
        // What has a credential has it no longer than it runs.
        if yes.grant().network.egress().into_iter().flatten().any(|rule| rule.credential.is_some()) {
            self.remove_empty(&run)?;
            return Ok(None);
        }
        let prepared = match sandbox::prepare(self.spec(&run, yes.grant())?) {
            Ok(prepared) => prepared,
            Err(error) => {
                self.remove_empty(&run)?;
                return Err(EngineError::Sandbox(error));
            }
        };
        let (asked, granted) = (order.grant.clone(), yes.grant().clone());
        let sandbox = Waiting { asked, granted, prepared, since: Instant::now() };
        Ok(Some(Parked { run, sandbox }))
    }

    /// Lets a sandbox wait, in the place of the oldest when all are taken.
    fn put(&self, built: Parked) {
        let mut parked = self.parked();
        let oldest = (parked.len() >= PLACES).then(|| parked.remove(0));
        parked.push(built);
        drop(parked);
        oldest.into_iter().for_each(|unused| self.give_up(unused));
    }

    /// Tears down every sandbox that waits.
    pub fn unpark(&self) {
        let all = std::mem::take(&mut *self.parked());
        all.into_iter().for_each(|unused| self.give_up(unused));
    }

    /// Takes a sandbox that waits for an order that asks for this and starts from that.
    pub(crate) fn take_parked(&self, start: &Start, asked: &Grant) -> Option<Parked> {
        self.drop_unfit(start);
        let mut parked = self.parked();
        let fits = |parked: &Parked| parked.run.start == *start && parked.sandbox.asked == *asked;
        let at = parked.iter().position(fits)?;
        Some(parked.remove(at))
    }

    /// Tears down what waits and will fit no order of this task any more.
    fn drop_unfit(&self, start: &Start) {
        let of_another_time = |parked: &mut Parked| {
            let sandbox = &parked.sandbox;
            let is_stale = parked.run.task == start.task && parked.run.start != *start;
            is_stale || sandbox.since.elapsed() > WAITS_AT_MOST || !sandbox.is_alive()
        };
        let unfit: Vec<Parked> = self.parked().extract_if(.., of_another_time).collect();
        unfit.into_iter().for_each(|unused| self.give_up(unused));
    }

    /// Ends a sandbox that its action may not use, with the places that it had.
    pub(crate) fn end_unused(&self, run: &Run, unused: Option<Waiting>) -> Result<(), EngineError> {
        if unused.is_none() {
            return Ok(());
        }
        drop(unused);
        self.make_room(run)
    }

    /// Removes what a sandbox left in which nothing ran, so that another one can have its place.
    pub(crate) fn make_room(&self, run: &Run) -> Result<(), EngineError> {
        self.remove_empty(run)?;
        run.clear()
    }

    /// Ends a sandbox that nobody used.
    fn give_up(&self, Parked { run, sandbox }: Parked) {
        // What stays is found by the next start: no action has this name.
        let _ = self.end_unused(&run, Some(sandbox));
    }

    fn parked(&self) -> std::sync::MutexGuard<'_, Vec<Parked>> {
        // A panic elsewhere leaves the list whole: it is only ever pushed to and removed from.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
