//! Named steps of the path at which a build for tests can be ended, as a power cut or an out-of-memory kill would, or at
//! which a test does what another process could do just then.
//!
//! Guarantees: a release build has none of this: there [`reached`] is empty, and nothing arms it. In a build with debug
//! assertions or the feature `fail-points` the process is ended by SIGKILL, so that nothing of ours tidies up.
//! Leaves to others: reading from outside what to arm, and looking at what is left.

pub use armed::{act, arm, reached};

/// Tells whether this build can be ended at a step.
pub fn is_compiled_in() -> bool {
    cfg!(any(debug_assertions, feature = "fail-points"))
}

#[cfg(not(any(debug_assertions, feature = "fail-points")))]
mod armed {
    use std::ffi::OsStr;

    /// Does nothing in this build.
    pub fn arm(_: Option<&OsStr>, _: Option<&OsStr>) {}

    /// Does nothing in this build.
    pub fn act(_: &'static str, _: impl FnOnce() + Send + 'static) {}

    /// Marks a place between two steps that a crash could part.
    #[inline]
    pub fn reached(_: &'static str) {}
}

#[cfg(any(debug_assertions, feature = "fail-points"))]
mod armed {
    use std::ffi::OsStr;
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    static ARMED: OnceLock<Armed> = OnceLock::new();
    static ACT: Mutex<Option<Act>> = Mutex::new(None);

    type Act = (&'static str, Box<dyn FnOnce() + Send>);

    struct Armed {
        dies_at: Option<(String, u32)>,
        times: AtomicU32,
        trace: Option<File>,
    }

    /// Sets the step to die at, once for the process: its name, and `#2` behind it for the second time that it is
    /// reached. Each step that is reached is added to the file `trace`, one a line.
    pub fn arm(at: Option<&OsStr>, trace: Option<&OsStr>) {
        let named = at.map(|at| at.to_string_lossy().into_owned());
        let dies_at = named.map(|at| match at.rsplit_once('#') {
            Some((name, nth)) => (name.to_owned(), nth.parse().unwrap_or(1)),
            None => (at, 1),
        });
        let trace = trace.and_then(|path| OpenOptions::new().create(true).append(true).open(path).ok());
        if dies_at.is_some() || trace.is_some() {
            let _ = ARMED.set(Armed { dies_at, times: AtomicU32::new(0), trace });
        }
    }

    /// Does something when a step is reached the next time, whoever reaches it.
    pub fn act(step: &'static str, action: impl FnOnce() + Send + 'static) {
        *ACT.lock().unwrap_or_else(PoisonError::into_inner) = Some((step, Box::new(action)));
    }

    /// Marks a place between two steps that a crash could part.
    pub fn reached(step: &'static str) {
        let act = ACT.lock().unwrap_or_else(PoisonError::into_inner).take_if(|act| act.0 == step);
        if let Some((_, action)) = act {
            action();
        }
        let Some(armed) = ARMED.get() else { return };
        if let Some(mut trace) = armed.trace.as_ref() {
            // A test that misses a line says so.
            let _ = trace.write_all(format!("{step}\n").as_bytes());
        }
        let Some((_, nth)) = armed.dies_at.as_ref().filter(|(name, _)| name == step) else { return };
        if armed.times.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}
