//! A layer as a hostile command could leave it: odd names, planted attributes, whiteouts and links in any combination.
//! It is read, compared and judged as after a run.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use inspect::layer::{self, Bounds};
use inspect::{Rules, Stack, Tree};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, XattrFlags};

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
    let place = Place::find(upper, name)?;
    let path = place.path();
    match kind {
        // Opening a FIFO that nobody reads would wait for a reader for ever; without waiting the kernel refuses it.
        b'f' => {
            let how = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            let file = rustix::fs::open(path, how | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))?;
            fs::File::from(file).write_all(value)
        }
        b'd' => fs::create_dir(path),
        b'l' => std::os::unix::fs::symlink(OsStr::from_bytes(value), path),
        b'h' => fs::hard_link(path, Place::find(upper, value)?.path()),
        b'w' => Ok(rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0)?),
        b'p' => Ok(rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0)?),
        b'm' => {
            let bits = value.iter().fold(0u32, |bits, byte| (bits << 3) | u32::from(byte & 7)) & 0o7777;
            let file =
                rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::Symlink {
                return Ok(());
            }
            // Whoever reads the layer must get into it, as the engine does when it opens it up.
            let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(rustix::fs::chmod(opened, Mode::from_raw_mode(bits | 0o700))?)
        }
        digit => {
            let attribute = ATTRIBUTES[usize::from(*digit) % ATTRIBUTES.len()];
            Ok(rustix::fs::lsetxattr(path, attribute, value, XattrFlags::empty())?)
        }
    }
}

/// A name in a directory of the layer. The links that the steps make lead anywhere, and this often runs as root: none of
/// them is followed on the way, and no step follows one at the end.
struct Place {
    parent: OwnedFd,
    name: OsString,
}

impl Place {
    fn find(upper: &Path, name: &[u8]) -> std::io::Result<Self> {
        let relative = Path::new(OsStr::from_bytes(name));
        let nowhere = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let last = relative.file_name().ok_or_else(nowhere)?.to_owned();
        let above = relative.parent().filter(|above| !above.as_os_str().is_empty());
        let top = rustix::fs::open(upper, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let parent = rustix::fs::openat2(
            &top,
            above.unwrap_or(Path::new(".")),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )?;
        Ok(Self { parent, name: last })
    }

    fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.parent.as_raw_fd().to_string()).join(&self.name)
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

    #[test]
    fn no_step_follows_a_link_out_of_the_layer() {
        let outside = tempfile::tempdir().expect("a directory");
        let (kept, inner) = (outside.path().join("kept"), outside.path().join("inner"));
        fs::write(&kept, "kept").expect("writes");
        fs::create_dir(&inner).expect("makes");
        let mode = || fs::metadata(&inner).expect("is there").permissions();
        let before = mode();
        let (file, directory) = (kept.display(), inner.display());
        let steps = format!(
            "lfile\t{file}\nffile\tchanged\nldir\t{directory}\nmdir\t777\nfdir/new\ttext\nddir/made\nldir/link\tx\n\
             hfile\tdir/other\npdir/fifo\nf../up\ttext\nf{file}\ttext"
        );
        run(steps.as_bytes());
        assert_eq!(fs::read(&kept).expect("is there"), b"kept");
        assert_eq!(mode(), before);
        assert_eq!(fs::read_dir(&inner).expect("is there").count(), 0);
    }
}
