//! Starting beside a run that goes on: what lives is never taken for dead, however long its end takes.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{Bench, config};
use engine::Engine;
use engine::store::ActionState;

/// Reading a layer of so many files takes longer than an engine needs to open the state.
const FILES: u32 = 2000;

/// Ends the looking beside, also when an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_run_whose_sandbox_is_gone_and_whose_end_is_not_on_the_record_yet_is_alive() {
    let bench = Bench::new();
    let task = bench.live(&bench.repository());
    let over = AtomicBool::new(false);
    let opens = || {
        let mut times = 0;
        while !over.load(Ordering::Relaxed) {
            drop(Engine::open(config(&bench.directory)).expect("opens"));
            times += 1;
        }
        times
    };
    let script = format!("i=0; while [ $i -lt {FILES} ]; do : > f$i; i=$((i + 1)); done");
    let opened = thread::scope(|scope| {
        let beside = scope.spawn(opens);
        let looking = Over(&over);
        for _ in 0..3 {
            let (finished, _) = bench.shell(&task, &bench.repository(), &script);
            assert!(finished.ending.succeeded(), "{:?}", finished.ending);
            let stored = bench.engine.store().read(|reader| reader.action(&finished.action)).expect("reads");
            assert_eq!(stored.map(|action| action.state), Some(ActionState::Ended));
        }
        drop(looking);
        beside.join().expect("it opens")
    });
    assert!(opened > 3, "nobody looked meanwhile");
}
