//! Starts the machine, waits for its end, and returns what it said.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::debian::Emulator;
use crate::{run, say};

/// What came out of the two serial lines.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) console: String,
    pub(super) results: String,
}

/// Two processors, so that what happens at the same time inside really does.
const SHAPE: &str =
    "-machine q35,accel=tcg -cpu max -smp 2 -m 2048 -nodefaults -no-user-config -display none -no-reboot";
/// A fault of the kernel ends the machine instead of leaving it half alive.
const KERNEL_LINE: &str = "console=ttyS0 quiet loglevel=1 oops=panic panic=-1";

/// Runs the machine until it turns itself off, or until the time is over.
///
/// # Errors
/// When it cannot be started. A machine that does not end was stopped; what it said until then is the answer.
pub(super) fn run(emulator: &Emulator, kernel: &Path, initrd: &Path, most: Duration) -> Result<Said> {
    let place = initrd.parent().context("the archive is in no directory")?;
    let [console, results, errors] =
        ["console.txt", "results.txt", "emulator.txt"].map(|name| place.join(name));
    [&console, &results].iter().try_for_each(|file| fs::write(file, ""))?;
    let mut command = run::command(&emulator.program);
    emulator.data.iter().for_each(|data| {
        command.arg("-L").arg(data);
    });
    command.args(SHAPE.split(' ')).arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    command.args(["-append", KERNEL_LINE]);
    for line in [&console, &results] {
        command.arg("-serial").arg(format!("file:{}", line.display()));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors)?);
    say::while_working("the virtual machine", || until_the_end(&mut command, most))?;
    let text = |file: &Path| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let console = format!("{}{}", text(&errors), text(&console));
    Ok(Said { console, results: text(&results) })
}

fn until_the_end(command: &mut std::process::Command, most: Duration) -> Result<()> {
    let mut machine = command.spawn().with_context(|| format!("cannot start `{}`", run::shown(command)))?;
    let start = Instant::now();
    while machine.try_wait().context("cannot wait for the virtual machine")?.is_none() {
        if start.elapsed() > most {
            say::note(&format!("the virtual machine is stopped after {} s", most.as_secs()));
            machine.kill().context("cannot stop the virtual machine")?;
            machine.wait().context("cannot wait for the virtual machine")?;
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
