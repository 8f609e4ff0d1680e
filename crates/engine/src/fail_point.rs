//! Places where tests let the process die.
//!
//! Tests of this crate crash in-process; those of the program end it at the same places, in a build for tests.

#[cfg(not(test))]
pub(crate) use sandbox::fail_point::reached;

#[cfg(test)]
pub(crate) use armed::{Crash, arm, at, at_nth, reached, trace};

#[cfg(test)]
mod armed {
    use std::cell::RefCell;

    /// What a test's crash unwinds with. Nothing of the product tidies up on the way: a real crash would not, either.
    #[derive(Debug)]
    pub(crate) struct Crash;

    type Action = (&'static str, usize, Box<dyn FnOnce()>);

    #[derive(Default)]
    struct State {
        crash_after: Option<usize>,
        action: Option<Action>,
        trace: Vec<&'static str>,
    }

    thread_local! {
        static STATE: RefCell<State> = RefCell::default();
    }

    /// Crashes at the place that is reached after `after` others.
    pub(crate) fn arm(after: Option<usize>) {
        STATE.with_borrow_mut(|state| *state = State { crash_after: after, ..State::default() });
    }

    /// Does something when a place is reached for the first time, as another process could.
    pub(crate) fn at(place: &'static str, action: impl FnOnce() + 'static) {
        at_nth(place, 1, action);
    }

    /// Does something when a place is reached for the `nth` time, counted from one.
    pub(crate) fn at_nth(place: &'static str, nth: usize, action: impl FnOnce() + 'static) {
        STATE.with_borrow_mut(|state| state.action = Some((place, nth, Box::new(action))));
    }

    /// Returns the places that were reached since the last arming.
    pub(crate) fn trace() -> Vec<&'static str> {
        STATE.with_borrow(|state| state.trace.clone())
    }

    pub(crate) fn reached(place: &'static str) {
        let (dies, action) = STATE.with_borrow_mut(|state| {
            let dies = state.crash_after == Some(state.trace.len());
            state.trace.push(place);
            let times = state.trace.iter().filter(|reached| **reached == place).count();
            (dies, state.action.take_if(|action| (action.0, action.1) == (place, times)))
        });
        if let Some((_, _, action)) = action {
            action();
        }
        if dies {
            std::panic::panic_any(Crash);
        }
    }
}
