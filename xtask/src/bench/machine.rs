//! Says on what machine and on which version of the sources something was measured.

use std::fs;

use anyhow::Result;

use crate::repo::Repo;
use crate::run;

/// Returns one line: date, commit, kernel, processors, load.
///
/// # Errors
/// When git or the kernel cannot be asked.
pub fn line(repo: &Repo) -> Result<String> {
    let said = |program: &str, words: &[&str]| -> Result<String> {
        let out = run::output("ask the machine", run::command(program).args(words).current_dir(&repo.root))?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    };
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!(
        "{}, commit {}, kernel {}, {} processors, load {} at the start, as {}",
        said("date", &["-u", "+%F"])?,
        said("git", &["describe", "--always", "--dirty", "--abbrev=10"])?,
        said("uname", &["-r"])?,
        std::thread::available_parallelism()?,
        load.split(' ').next().unwrap_or("unknown"),
        if crate::account::is_root() { "root" } else { "an ordinary user" },
    ))
}
