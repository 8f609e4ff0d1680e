//! Signals that come while a command is run: what people and supervisors send us reaches it, or ends it.
//!
//! Before the command is started a signal ends us, as it ends any program: nothing runs, and what was made is found by the
//! next start. Once the command has ended, what it left is kept first; who does not want to wait for that says so twice.

use std::sync::Arc;
use std::thread::JoinHandle;

use engine::{Handle, Phase, Request};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::terminal;
use crate::error::CliError;
use crate::output::{Console, Lines};

const NOTHING_RAN: &str = "fumehood: interrupted before the command was started; nothing ran\n";
const STILL_LOOKING: &str = "fumehood: the command has ended; what it left is being looked at. Interrupt again to leave \
                             that: the action is then on record without its end, and keeps its layer\n";

/// Passes signals on to the running command until it is dropped.
pub(super) struct Forwarding {
    handle: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

impl Forwarding {
    /// Starts passing on.
    pub(super) fn start(to: Handle, console: &Console) -> Result<Self, CliError> {
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH]);
        let mut signals = signals.map_err(CliError::system("listen for signals"))?;
        let handle = signals.handle();
        let lines = Arc::clone(&console.lines);
        let thread = std::thread::spawn(move || {
            let mut heard = Heard::default();
            for signal in signals.forever() {
                obey(heard.answer(signal, to.phase()), signal, &to, &lines);
            }
        });
        Ok(Self { handle, thread: Some(thread) })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It only passes signals on; when it panicked there is nothing to clean up.
            let _ = thread.join();
        }
    }
}

/// What is to be done about a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The command is asked.
    Ask(Request),
    /// The terminal has another size, whatever that is now.
    Resize,
    /// The person is told what they wait for.
    Tell,
    /// We end, as the signal would have it, after saying this.
    Leave(&'static str),
}

/// What was heard so far.
#[derive(Debug, Default)]
struct Heard {
    interrupts: u32,
    after_the_end: u32,
}

impl Heard {
    fn answer(&mut self, signal: i32, phase: Phase) -> Answer {
        match phase {
            _ if signal == SIGWINCH => Answer::Resize,
            Phase::Waiting => Answer::Leave(NOTHING_RAN),
            Phase::Running => Answer::Ask(self.request(signal)),
            Phase::Over => {
                self.after_the_end += 1;
                if self.after_the_end > 1 { Answer::Leave("") } else { Answer::Tell }
            }
        }
    }

    /// Returns what a signal asks of the command. A person who interrupts again wants it to end, and then to end now.
    fn request(&mut self, signal: i32) -> Request {
        match signal {
            SIGINT => {
                self.interrupts += 1;
                match self.interrupts {
                    1 => Request::Signal(SIGINT),
                    2 => Request::Stop,
                    _ => Request::Kill,
                }
            }
            SIGQUIT => Request::Signal(SIGQUIT),
            _ => Request::Stop,
        }
    }
}

fn obey(answer: Answer, signal: i32, to: &Handle, lines: &Lines) {
    // When standard error is gone, there is nobody to tell.
    match answer {
        Answer::Ask(request) => to.ask(request),
        Answer::Resize => {
            if let Some((rows, columns)) = terminal::size() {
                to.resize(rows, columns);
            }
        }
        Answer::Tell => drop(lines.say(STILL_LOOKING)),
        Answer::Leave(why) => {
            drop(lines.say(why));
            // It does not come back; should the kernel not let it, the number says the same.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_again_is_more_in_earnest() {
        let mut heard = Heard::default();
        let asked = [(); 4].map(|()| heard.answer(SIGINT, Phase::Running));
        let want = [Request::Signal(SIGINT), Request::Stop, Request::Kill, Request::Kill];
        assert_eq!(asked, want.map(Answer::Ask));
        assert_eq!(heard.answer(SIGTERM, Phase::Running), Answer::Ask(Request::Stop));
    }

    #[test]
    fn what_a_signal_means_is_decided_by_how_far_the_command_is() {
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let mut heard = Heard::default();
            assert_eq!(heard.answer(SIGWINCH, Phase::Waiting), Answer::Resize);
            assert_eq!(heard.answer(signal, Phase::Waiting), Answer::Leave(NOTHING_RAN));
            assert!(matches!(heard.answer(signal, Phase::Running), Answer::Ask(_)));
            assert_eq!(heard.answer(signal, Phase::Over), Answer::Tell, "what it left is kept first");
            assert_eq!(heard.answer(signal, Phase::Over), Answer::Leave(""), "unless somebody insists");
        }
    }

    #[test]
    fn what_is_asked_of_a_command_knows_how_far_that_is() {
        let (handle, mut controller) = engine::controller().expect("a descriptor");
        assert_eq!(handle.phase(), Phase::Waiting);
        controller.begin();
        assert_eq!(handle.phase(), Phase::Running);
        drop(controller);
        assert_eq!(handle.phase(), Phase::Over);
    }
}
