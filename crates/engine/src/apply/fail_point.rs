//! Places where tests let the process die.

/// Marks a place between two steps that a crash could part.
#[cfg(not(test))]
#[inline]
pub(super) fn reached(_: &'static str) {}

#[cfg(test)]
pub(super) use armed::{Crash, arm, at, reached, trace};

#[cfg(test)]
mod armed {
    use std::cell::RefCell;

    /// What a test's crash unwinds with. Nothing of the product tidies up on the way: a real crash would not, either.
    #[derive(Debug)]
    pub(in crate::apply) struct Crash;

    type Action = (&'static str, Box<dyn FnOnce()>);

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
    pub(in crate::apply) fn arm(after: Option<usize>) {
        STATE.with_borrow_mut(|state| *state = State { crash_after: after, ..State::default() });
    }

    /// Does something when a place is reached for the first time, as another process could.
    pub(in crate::apply) fn at(place: &'static str, action: impl FnOnce() + 'static) {
        STATE.with_borrow_mut(|state| state.action = Some((place, Box::new(action))));
    }

    /// Returns the places that were reached since the last arming.
    pub(in crate::apply) fn trace() -> Vec<&'static str> {
        STATE.with_borrow(|state| state.trace.clone())
    }

    pub(in crate::apply) fn reached(place: &'static str) {
        let (dies, action) = STATE.with_borrow_mut(|state| {
            let dies = state.crash_after == Some(state.trace.len());
            state.trace.push(place);
            (dies, state.action.take_if(|action| action.0 == place))
        });
        if let Some((_, action)) = action {
            action();
        }
        if dies {
            std::panic::panic_any(Crash);
        }
    }
}
