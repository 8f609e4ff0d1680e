//! Tries that a process of its own measures, so that they can be taken in turn with others: one that is already
//! running, or one that runs as somebody else.
//!
//! It speaks a few words on its standard streams, and ends with 0 when its input does:
//!
//! ```text
//! > ready                     once, when everything that is not measured is done
//! < go                        one try
//! > {"wall_us": 5123}         how long it took
//! ```

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::bench::contest::Contender;
use crate::bench::peers;
use crate::{run, say};

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    wall_us: f64,
}

/// Returns a way that lets a process do and measure each try. It is started at the first one.
pub fn contender<'a>(name: &str, mut command: Command) -> Contender<'a> {
    let mut running: Option<Running> = None;
    let attempt = move || {
        if running.is_none() {
            running = Some(Running::start(&mut command)?);
        }
        running.as_mut().context("it was just started")?.go()
    };
    Contender { name: name.to_owned(), attempt: Box::new(attempt) }
}

/// Is such a process: runs a program for each try, and measures it. For use as somebody else.
///
/// # Errors
/// When the streams are gone or the program does not end well.
pub fn serve(argv: &[String]) -> Result<()> {
    say::result("ready");
    for line in std::io::stdin().lines() {
        if line?.trim() != "go" {
            bail!("only `go` is understood");
        }
        let [program, arguments @ ..] = argv else { bail!("there is no program to run") };
        let took = peers::milliseconds(run::command(program).args(arguments))?;
        say::result(&serde_json::to_string(&Answer { wall_us: took * 1000.0 })?);
    }
    Ok(())
}

/// A process that waits for a word.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start it")?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("it has no output")?).lines();
        let mut running = Self { child, input, output };
        match running.line()?.as_str() {
            "ready" => Ok(running),
            other => bail!("it said `{other}` where `ready` was expected"),
        }
    }

    /// Lets it do one try, and returns how long that took in milliseconds.
    fn go(&mut self) -> Result<f64> {
        let input = self.input.as_mut().context("its input is closed")?;
        input.write_all(b"go\n").context("it went away")?;
        let line = self.line()?;
        let answer: Answer = serde_json::from_str(&line).with_context(|| format!("it said `{line}`"))?;
        Ok(answer.wall_us / 1000.0)
    }

    fn line(&mut self) -> Result<String> {
        self.output.next().context("it ended")?.context("it cannot be read")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(script: &str) -> Contender<'static> {
        let mut command = run::command("sh");
        command.args(["-c", script]);
        contender("it", command)
    }

    #[test]
    fn a_try_is_what_the_process_says() {
        let mut it = told(r#"echo ready; while read word; do echo "{\"wall_us\": 2500}"; done"#);
        assert_eq!((it.attempt)().expect("it answers"), 2.5);
        assert_eq!((it.attempt)().expect("it answers again"), 2.5);
    }

    #[test]
    fn a_process_that_is_not_ready_or_goes_away_is_an_error() {
        for script in ["echo oops", "exit 1", "echo ready; exit 1", "echo ready; read word; echo hm"] {
            assert!((told(script).attempt)().is_err(), "{script}");
        }
    }
}
