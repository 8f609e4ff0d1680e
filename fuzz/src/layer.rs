//! A layer as a hostile command could leave it: odd names, planted attributes, whiteouts and links in any combination.
//! It is read, compared and judged as after a run.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use inspect::layer::{self, Bounds};
use inspect::{Rules, Stack, Tree};
use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags};

/// Steps of one layer; more make no new shapes and cost time.
const STEPS_MAX: usize = 24;
/// Attributes that a command may try to plant.
const ATTRIBUTES: [&str; 5] = [
    "user.overlay.opaque",
    "user.overlay.whiteout",
    "user.overlay.redirect",
    "user.overlay.metacopy",
    "user.ordinary",
];

/// Each line is a step: a letter, a path, and behind a tab what belongs to it.
pub(crate) fn run(bytes: &[u8]) -> String {
    let top = tempfile::tempdir().expect("a directory");
    let (base, upper) = (top.path().join("base"), top.path().join("upper"));
    for directory in [&base, &upper, &base.join("dir")] {
        fs::create_dir(directory).expect("makes");
    }
    for file in ["file", "dir/inner"] {
        fs::write(base.join(file), "below\n").expect("writes");
    }
    for line in bytes.split(|byte| *byte == b'\n').take(STEPS_MAX) {
        // A step that the kernel refuses is one that a command cannot make either.
        let _ = step(&upper, line);
    }
    let open = |path: &Path| Tree::open(path).expect("a directory");
    let stack = || Stack::new(vec![open(&upper)], vec![open(&base)]);
    let report = match layer::read(&stack(), Bounds::default()) {
        Ok(report) => report,
        Err(error) => return error.to_string(),
    };
    let kinds: Vec<_> = report.changes.iter().map(|change| (change.kind, change.file)).collect();
    let held = match inspect::inspect(stack(), &report, Rules::built_in()) {
        Ok(inspection) => inspection.held().len(),
        Err(error) => return error.to_string(),
    };
    let (findings, held) = (report.findings.len().min(9), held.min(9));
    format!("{} {} {kinds:?}", "f".repeat(findings), "h".repeat(held))
}

fn step(upper: &Path, line: &[u8]) -> std::io::Result<()> {
    let Some((kind, rest)) = line.split_first() else { return Ok(()) };
    let mut parts = rest.splitn(2, |byte| *byte == b'\t');
    let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let relative = Path::new(OsStr::from_bytes(name));
    // The test itself stays in its directory.
    let plain = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !plain || name.is_empty() || name.contains(&0) {
        return Ok(());
    }
    let path = upper.join(relative);
    match kind {
        // Opening a FIFO that nobody reads would wait for a reader for ever; without waiting the kernel refuses it.
        b'f' => {
            let (write, no_wait) = (OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC, OFlags::NONBLOCK);
            let file = rustix::fs::open(path, write | no_wait | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?;
            fs::File::from(file).write_all(value)
        }
        b'd' => fs::create_dir(path),
        b'l' => std::os::unix::fs::symlink(OsStr::from_bytes(value), path),
        b'h' => {
            let to = Path::new(OsStr::from_bytes(value));
            let inside = to.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if inside { fs::hard_link(path, upper.join(to)) } else { Ok(()) }
        }
        b'w' => Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?),
        b'p' => Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0)?),
        b'm' => {
            let bits = value.iter().fold(0u32, |bits, byte| (bits << 3) | u32::from(byte & 7)) & 0o7777;
            // Whoever reads the layer must get into it, as the engine does when it opens it up.
            Ok(rustix::fs::chmod(path, Mode::from_raw_mode(bits | 0o700))?)
        }
        digit => {
            let attribute = ATTRIBUTES[usize::from(*digit) % ATTRIBUTES.len()];
            Ok(rustix::fs::lsetxattr(path, attribute, value, XattrFlags::empty())?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_onto_a_fifo_waits_for_nobody() {
        let held = run(b"ffile\tabove\nppipe\nfpipe\ttext");
        assert!(held.contains("Fifo"), "{held}");
    }
}
