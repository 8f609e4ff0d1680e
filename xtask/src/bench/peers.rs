//! The programs that Fumehood is compared with, each as the command line that builds a comparable sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::contest::Contender;
use crate::run;

/// The line that is the yardstick for starting a sandbox.
const BWRAP: [&str; 12] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "true",
];

/// The same namespaces with nothing built in them.
const UNSHARE: [&str; 9] =
    ["--user", "--map-current-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "true"];

/// Returns the yardstick.
pub fn bwrap() -> Command {
    let mut command = run::command("bwrap");
    command.args(BWRAP);
    command
}

/// Returns the namespaces alone.
pub fn unshare() -> Command {
    let mut command = run::command("unshare");
    command.args(UNSHARE);
    command
}

/// Returns a way that runs a command and takes its wall time in milliseconds.
pub fn timed<'a>(name: &str, mut make: impl FnMut() -> Command + 'a) -> Contender<'a> {
    Contender { name: name.to_owned(), attempt: Box::new(move || milliseconds(&mut make())) }
}

/// Runs a command quietly and returns its wall time in milliseconds.
///
/// # Errors
/// When it cannot be started, or ends with anything but zero; then with the first line of what it said.
pub fn milliseconds(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = Instant::now();
    let child =
        command.spawn().with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    let done = child.wait_with_output()?;
    let took = started.elapsed();
    if !done.status.success() {
        let said =
            String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("it said nothing").to_owned();
        bail!("ended with {}: {said}", done.status);
    }
    Ok(took.as_secs_f64() * 1000.0)
}

/// Returns a way that takes the peak memory of a command and everything it waited for, in KiB.
pub fn peak_memory<'a>(name: &str, mut make: impl FnMut() -> Command + 'a) -> Contender<'a> {
    let attempt = move || {
        let command = make();
        let mut time = run::command("/usr/bin/time");
        time.args(["-f", "%M", "--"]).arg(command.get_program()).args(command.get_args());
        if let Some(directory) = command.get_current_dir() {
            time.current_dir(directory);
        }
        command.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(time.env(name, value)),
            None => drop(time.env_remove(name)),
        });
        let done = time.stdin(Stdio::null()).output().context("cannot start `time`, a Debian package")?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let last = said.lines().last().unwrap_or_default();
        if !done.status.success() {
            bail!("ended with {}: {}", done.status, said.lines().next().unwrap_or_default());
        }
        last.trim().parse().with_context(|| format!("`{last}` is no number of KiB"))
    };
    Contender { name: name.to_owned(), attempt: Box::new(attempt) }
}

/// A bundle for runc and crun: the host's programs read-only, the same namespaces, `true`.
#[derive(Debug)]
pub struct Bundle {
    directory: PathBuf,
    started: u32,
}

impl Bundle {
    /// Makes the bundle that `runtime spec` proposes, with the host's programs in place of an image.
    ///
    /// # Errors
    /// When the runtime is not there, or its proposal is not understood.
    pub fn new(runtime: &str, directory: &Path) -> Result<Self> {
        let directory = directory.join(runtime);
        fs::create_dir_all(directory.join("rootfs"))?;
        run::output("make a bundle", run::command(runtime).arg("spec").current_dir(&directory))?;
        let path = directory.join("config.json");
        let mut config: Value = serde_json::from_slice(&fs::read(&path)?)?;
        config["process"]["terminal"] = json!(false);
        config["process"]["args"] = json!(["true"]);
        let mounts = config["mounts"].as_array_mut().context("the proposal has no mounts")?;
        mounts.extend(["/usr", "/bin", "/lib", "/lib64", "/etc"].iter().map(
            |path| json!({ "destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"] }),
        ));
        fs::write(&path, serde_json::to_vec(&config)?)?;
        for mountpoint in ["usr", "bin", "lib", "lib64", "etc", "proc", "sys", "dev"] {
            fs::create_dir_all(directory.join("rootfs").join(mountpoint))?;
        }
        Ok(Self { directory, started: 0 })
    }

    /// Returns a command that runs it under a name that was not used yet.
    pub fn command(&mut self, runtime: &str) -> Command {
        self.started += 1;
        let mut command = run::command(runtime);
        command.arg("run").arg("--bundle").arg(&self.directory);
        command.arg(format!("fumehood-bench-{}-{}", std::process::id(), self.started));
        command
    }
}
