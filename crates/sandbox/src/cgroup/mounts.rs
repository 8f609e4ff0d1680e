//! Which hierarchies are mounted, and where this process stands in each.
//!
//! Guarantees: any bytes may stand in the two files that are read; what does not make sense is passed over. Leaves to
//! others: whether a group can be made at that place.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::files::failed;
use super::{CgroupError, place};

/// Which interface a hierarchy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller or few of them.
    V1,
    /// One hierarchy for all.
    V2,
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub version: Version,
    /// The controllers of a hierarchy of version 1; those of version 2 stand in its files.
    pub controllers: Vec<String>,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// The directory of this process's own group; `None` when it lies outside of what is mounted.
    pub own: Option<PathBuf>,
    /// Whether the mount can be written.
    pub writable: bool,
}

/// The hierarchies of a host, as one process sees them.
#[derive(Debug, Clone)]
pub struct Hierarchies {
    pub(super) list: Vec<Hierarchy>,
    /// Asks whether this process may write; tests answer it themselves.
    pub(super) may_write: fn(&Path) -> bool,
}

/// Reads which hierarchies this process sees.
///
/// # Errors
/// When `/proc` cannot be read. A host without control groups is no error.
pub fn detect() -> Result<Hierarchies, CgroupError> {
    let read = |path: &'static str| {
        let bytes = File::open(path).and_then(read_bytes);
        bytes.map_err(|error| failed("read", Path::new(path), error))
    };
    let mut found = Hierarchies::parse(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?);
    found.list.retain(is_real);
    Ok(found)
}

impl Hierarchies {
    /// Reads the text of `/proc/PID/mountinfo` and `/proc/PID/cgroup`.
    pub fn parse(mountinfo: &[u8], cgroup: &[u8]) -> Self {
        let own: Vec<Membership> = cgroup.split(|byte| *byte == b'\n').filter_map(membership).collect();
        let mut list: Vec<Hierarchy> = Vec::new();
        for mount in mountinfo.split(|byte| *byte == b'\n').filter_map(mount) {
            let hierarchy = mount.hierarchy(&own);
            let same = |other: &&mut Hierarchy| {
                other.version == hierarchy.version && other.controllers == hierarchy.controllers
            };
            match list.iter_mut().find(same) {
                // A second mount of the same hierarchy: the one that can be used.
                Some(other) if !other.is_usable() => *other = hierarchy,
                Some(_) => {}
                None => list.push(hierarchy),
            }
        }
        Self { list, may_write: place::may_write }
    }

    /// Returns the versions that are mounted, the newer first.
    pub fn versions(&self) -> Vec<Version> {
        let has = |version: &Version| self.list.iter().any(|hierarchy| hierarchy.version == *version);
        [Version::V2, Version::V1].into_iter().filter(has).collect()
    }
}

impl Hierarchy {
    pub(super) fn is_usable(&self) -> bool {
        self.writable && self.own.is_some()
    }

    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }
}

/// One line of `mountinfo` that is about control groups.
struct Mount {
    version: Version,
    controllers: Vec<String>,
    root: PathBuf,
    mount: PathBuf,
    writable: bool,
}

/// One line of `/proc/self/cgroup`.
struct Membership {
    version: Version,
    controllers: Vec<String>,
    path: PathBuf,
}

impl Mount {
    fn hierarchy(self, own: &[Membership]) -> Hierarchy {
        let is_ours = |member: &&Membership| {
            member.version == self.version
                && (self.version == Version::V2
                    || member.controllers.iter().any(|c| self.controllers.contains(c)))
        };
        let member = own.iter().find(is_ours);
        let own = member.and_then(|member| self.directory(&member.path));
        let Self { version, mount, writable, .. } = self;
        // What the process says is shorter than the mount's options, which hold more than controllers.
        let controllers = member.map(|member| member.controllers.clone()).unwrap_or(self.controllers);
        Hierarchy { version, controllers, mount, own, writable }
    }

    /// Returns the directory of a group; `None` when it lies outside of the mount.
    fn directory(&self, group: &Path) -> Option<PathBuf> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let below = group.strip_prefix(&self.root).ok()?;
        below.components().all(plain).then(|| self.mount.join(below).components().collect())
    }
}

/// Reads `36 35 98:0 /root /mount options [tags] - type source options` (proc(5)).
fn mount(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let end = fields.iter().position(|field| *field == b"-")?;
    let (before, after) = (fields.get(..end)?, fields.get(end + 1..)?);
    let version = match *after.first()? {
        b"cgroup" => Version::V1,
        b"cgroup2" => Version::V2,
        _ => return None,
    };
    let options = |field: &[u8]| -> Vec<String> {
        field.split(|byte| *byte == b',').map(|option| String::from_utf8_lossy(option).into_owned()).collect()
    };
    let (own, whole) = (options(before.get(5)?), options(after.get(2)?));
    let read_only = own.iter().chain(&whole).any(|option| option == "ro");
    Some(Mount {
        version,
        controllers: if version == Version::V1 { whole } else { Vec::new() },
        root: path(before.get(3)?),
        mount: path(before.get(4)?),
        writable: !read_only,
    })
}

/// Reads `4:memory:/path`, or `0::/path` for version 2 (cgroups(7)).
fn membership(line: &[u8]) -> Option<Membership> {
    let mut fields = line.splitn(3, |byte| *byte == b':');
    let (number, names, group) = (fields.next()?, fields.next()?, fields.next()?);
    let group = Path::new(std::ffi::OsStr::from_bytes(group)).to_owned();
    let version = if number == b"0" && names.is_empty() { Version::V2 } else { Version::V1 };
    let controllers = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
    let controllers = controllers.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    Some(Membership { version, controllers, path: group })
}

/// Undoes the octal escapes of `mountinfo` (space, tab, line feed, backslash).
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match octal {
            Some(digits) => {
                bytes.push(
                    digits.iter().fold(0u8, |byte, digit| byte.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

/// Tells whether the kernel's own file system is mounted there, and not something with its name on top.
fn is_real(hierarchy: &Hierarchy) -> bool {
    // linux/magic.h
    let magic = match hierarchy.version {
        Version::V1 => 0x0027_e0eb,
        Version::V2 => 0x6367_7270,
    };
    let is_directory = |own: &PathBuf| fs::metadata(own).is_ok_and(|metadata| metadata.is_dir());
    rustix::fs::statfs(&hierarchy.mount).is_ok_and(|found| found.f_type as u64 == magic)
        && hierarchy.own.as_ref().is_none_or(is_directory)
}

fn read_bytes(file: File) -> io::Result<Vec<u8>> {
    // A line for each mount: a host with ten thousand containers stays below this.
    const MOST: u64 = 16 << 20;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, MOST), &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURE_V2: &str = "24 18 0:22 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn own(found: &Hierarchies, controller: &str) -> Option<PathBuf> {
        let hierarchy = found.list.iter().find(|hierarchy| match controller {
            "" => hierarchy.version == Version::V2,
            _ => hierarchy.has(controller),
        });
        hierarchy.and_then(|hierarchy| hierarchy.own.clone())
    }

    #[test]
    fn a_pure_host_has_one_hierarchy() {
        let found =
            Hierarchies::parse(PURE_V2.as_bytes(), b"0::/user.slice/user-1000.slice/session-3.scope\n");
        assert_eq!(found.versions(), [Version::V2]);
        let expected = PathBuf::from("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
        assert_eq!(own(&found, ""), Some(expected));
    }

    #[test]
    fn a_hybrid_host_has_both() {
        let groups = b"9:name=systemd:/a\n4:memory:/one/two\n2:cpu,cpuacct:/\n0::/u\n";
        let found = Hierarchies::parse(HYBRID.as_bytes(), groups);
        assert_eq!(found.versions(), [Version::V2, Version::V1]);
        assert_eq!(own(&found, "memory"), Some("/sys/fs/cgroup/memory/one/two".into()));
        assert_eq!(own(&found, "cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(own(&found, "name=systemd"), Some("/sys/fs/cgroup/systemd/a".into()));
        assert_eq!(own(&found, ""), Some("/sys/fs/cgroup/unified/u".into()));
    }

    #[test]
    fn a_host_without_groups_has_none() {
        let found = Hierarchies::parse(b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", b"");
        assert!(found.versions().is_empty());
    }

    #[test]
    fn in_a_container_the_root_of_the_mount_is_taken_off() {
        let line = "50 40 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n";
        let found = Hierarchies::parse(line.as_bytes(), b"4:memory:/docker/abc/inner\n");
        assert_eq!(own(&found, "memory"), Some("/sys/fs/cgroup/memory/inner".into()));
        assert!(!found.list[0].writable);
    }

    #[test]
    fn a_group_outside_of_the_view_has_no_directory() {
        for group in ["0::/../../system.slice\n", "0::/a/../../b\n"] {
            assert_eq!(own(&Hierarchies::parse(PURE_V2.as_bytes(), group.as_bytes()), ""), None);
        }
        let line = "50 40 0:32 /docker/abc /cg rw - cgroup cgroup rw,memory\n";
        assert_eq!(own(&Hierarchies::parse(line.as_bytes(), b"4:memory:/docker/abcd\n"), "memory"), None);
    }

    #[test]
    fn of_two_mounts_the_one_that_can_be_written_is_used() {
        let lines = "50 40 0:32 / /ro ro - cgroup2 c rw\n51 40 0:32 / /rw rw - cgroup2 c rw\n";
        assert_eq!(own(&Hierarchies::parse(lines.as_bytes(), b"0::/x\n"), ""), Some("/rw/x".into()));
    }

    #[test]
    fn escapes_and_nonsense_are_read_without_harm() {
        let line = b"50 40 0:32 / /a\\040b\\134 rw - cgroup2 c rw\n\xff\xfe - - -\n - \n50 40 - cgroup2\n1 2 3 4 5 6 - cgroup2 x\n";
        let found = Hierarchies::parse(line, b"0::/x\n:::\n\xff:\xff\n0\n");
        assert_eq!(own(&found, ""), Some("/a b\\/x".into()));
        assert_eq!(path(b"\\777\\8\\"), Path::new(std::ffi::OsStr::from_bytes(b"\xff\\8\\")));
    }

    #[test]
    fn pieces_in_any_order_are_read_without_harm() {
        const PIECES: [&[u8]; 14] = [
            b"1",
            b" ",
            b"\n",
            b" - ",
            b"cgroup",
            b"cgroup2",
            b"/",
            b"/..",
            b"\\04",
            b"\\134",
            b":",
            b"rw,memory",
            b"\xff",
            b"\0",
        ];
        let mut state = 1u64;
        for _ in 0..5_000 {
            let mut text = Vec::new();
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.extend(PIECES[(state >> 33) as usize % PIECES.len()]);
            }
            let (mounts, groups) = text.split_at(text.len() * 2 / 3);
            for hierarchy in Hierarchies::parse(mounts, groups).list {
                let below = |own: &PathBuf| own.starts_with(&hierarchy.mount);
                assert!(hierarchy.own.as_ref().is_none_or(below), "{hierarchy:?}");
            }
        }
    }

    #[test]
    fn this_process_has_a_group_in_each_hierarchy() {
        let found = detect().unwrap();
        for hierarchy in &found.list {
            assert!(
                hierarchy.own.as_ref().is_none_or(|own| own.starts_with(&hierarchy.mount)),
                "{hierarchy:?}"
            );
        }
    }
}
