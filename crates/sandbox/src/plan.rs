//! Turns a [`Spec`] into the launcher's [`Plan`].

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use launcher::plan::{
    IdMap, Identity, Instruction, LANDLOCK_CANARY, Network, Plan, ProbeFacts, ProgramList, Rlimit, Source,
    SourceIndex, Step, Upper, Watch,
};
use model::grant::{Programs, WorkspaceAccess};
use model::{Profile, UnlistedProgram};
use rustix::process::{Resource as Kind, getrlimit};

use crate::cgroup::Resource;
use crate::groups::{Groups, rlimit_processes};
use crate::quota::Quota;
use crate::spec::Spec;
use crate::view::{Executables, Listed, PROC_MASKED, PROC_READ_ONLY, Piece};
use crate::{seccomp, way_out};

/// The host name inside: it must say nothing about the host.
pub(crate) const HOSTNAME: &str = "fumehood";
/// What the root itself may hold: only directories, links and generated files are in it.
const ROOT_BYTES: u64 = 16 << 20;
const ROOT_FILES: u64 = 8192;
/// Files of ours in the store for one overlay: its directory, `upper`, `work`, and what the kernel makes in that.
const OVERLAY_FILES: u64 = 7;
/// Files of ours in every store: the other private directories, and the overlays of workspace, cache and repository.
const OTHER_FILES: u64 = 4 + 3 * OVERLAY_FILES;
/// Devices that programs expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev` that programs expect.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Makes the plan of one sandbox, whose control group holds what it can.
pub(crate) fn plan(spec: &Spec, probe: ProbeFacts, groups: &Groups, quota: &Quota) -> Plan {
    let watch_memory = groups.support(Resource::Memory).is_err();
    let mut builder =
        Builder { spec, quota, sources: Vec::new(), steps: Vec::new(), writable: BTreeSet::new() };
    builder.root_and_store();
    // A home can lie below `/dev/shm`, and what is mounted later covers what was before.
    builder.devices();
    builder.pieces();
    builder.proc_and_landlock();
    builder.outputs_and_inputs();
    builder.git_directory();
    builder.workspace();
    builder.masks();
    let limits = &spec.grant.profile.limits;
    Plan {
        identity: Identity {
            uid: spec.identity.uid,
            gid: spec.identity.gid,
            switch: rustix::process::geteuid().is_root(),
        },
        hostname: HOSTNAME.to_owned(),
        network: if spec.joined.is_some() { Network::Joined } else { Network::Own },
        way_out: way_out::of(spec),
        writable: builder.writable.iter().map(|path| bytes(path)).collect(),
        programs: match &spec.view.executables {
            Executables::Any => None,
            Executables::Only(listed) => Some(program_list(listed, &spec.grant.profile)),
        },
        rlimits: rlimits(spec, groups.support(Resource::Pids).is_ok()),
        command_filter: command_filter(spec),
        first_process_filter: instructions(&seccomp::first_process_filter()),
        terminal: spec.grant.terminal,
        probe: ProbeFacts {
            workspace: bytes(&spec.workspace.path),
            masked_file: masked_file(spec),
            unlisted_file: unlisted_file(spec),
            ..probe
        },
        filter_probes: crate::proof::filter_probes(),
        watch: Watch { memory: watch_memory.then_some(limits.memory.get()), interval_ms: 50 },
        nested_user_namespaces: false,
        mutant: spec.mutant.clone(),
        sources: builder.sources,
        steps: builder.steps,
    }
}

fn command_filter(spec: &Spec) -> Vec<Instruction> {
    let options = seccomp::Options {
        #[cfg(feature = "mutants")]
        without: spec
            .mutant
            .as_deref()
            .and_then(|name| name.strip_prefix("seccomp-"))
            .and_then(|group| seccomp::Group::ALL.iter().copied().find(|known| known.name() == group)),
        listed_programs: spec.grant.programs != Programs::Any,
        ..seccomp::Options::default()
    };
    instructions(&seccomp::command_filter(&options))
}

fn instructions(program: &seccomp::Program) -> Vec<Instruction> {
    program
        .instructions()
        .into_iter()
        .map(|(code, jump_true, jump_false, k)| Instruction { code, jump_true, jump_false, k })
        .collect()
}

/// Returns a file whose mask the prober can see: one that is there, and no link, which a mask does not follow.
fn masked_file(spec: &Spec) -> Option<Vec<u8>> {
    let is_covered = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
    let covered = spec.masks.iter().find(|mask| is_covered(&spec.workspace.base.join(mask.as_path())))?;
    Some(bytes(&spec.workspace.path.join(covered.as_path())))
}

fn program_list(listed: &Listed, profile: &Profile) -> ProgramList {
    let all = |paths: &[PathBuf]| paths.iter().map(|path| bytes(path)).collect();
    ProgramList {
        files: all(&listed.programs),
        loaders: all(&listed.loaders),
        names: listed.names.iter().map(|name| name.as_bytes().to_vec()).collect(),
        ends: profile.unlisted_program == UnlistedProgram::End,
    }
}

/// Returns a library with the permission to be executed: where a list of programs lets it be mapped, only Landlock
/// keeps it from being executed, so the prober can see that.
fn unlisted_file(spec: &Spec) -> Option<Vec<u8>> {
    let Executables::Only(listed) = &spec.view.executables else { return None };
    let is_program = |path: &&PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 == 0o111)
    };
    listed
        .libraries
        .iter()
        .filter(|path| !listed.loaders.contains(path))
        .find(is_program)
        .map(|path| bytes(path))
}

fn rlimits(spec: &Spec, group_holds_processes: bool) -> Vec<Rlimit> {
    let limits = &spec.grant.profile.limits;
    let wanted = [
        // The first process counts too; it is the same user in the same namespace.
        (Kind::Nproc, libc::RLIMIT_NPROC, rlimit_processes(limits, group_holds_processes)),
        (Kind::Nofile, libc::RLIMIT_NOFILE, limits.open_files),
        (Kind::Fsize, libc::RLIMIT_FSIZE, limits.file_size.get()),
        // A core file could hold a secret, and would be written wherever the host says.
        (Kind::Core, libc::RLIMIT_CORE, 0),
    ];
    let least = |(resource, number, value): (Kind, libc::__rlimit_resource_t, u64)| {
        // A limit can only be lowered by those who may not raise it.
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        Rlimit { resource: number, value: value.min(most) }
    };
    wanted.into_iter().map(least).collect()
}

struct Builder<'a> {
    spec: &'a Spec,
    quota: &'a Quota,
    sources: Vec<Source>,
    steps: Vec<Step>,
    writable: BTreeSet<PathBuf>,
}

/// Returns how many files of ours are in the store of a run: they do not count in its limit.
pub(crate) fn own_files(spec: &Spec) -> u64 {
    let of_piece = |piece: &Piece| match piece {
        Piece::Private { .. } => 1,
        Piece::Overlay { .. } => OVERLAY_FILES,
        _ => 0,
    };
    // What is shown inside a private directory hangs on something that is made there.
    let pieces = &spec.view.pieces;
    let private = |path: &Path| {
        let mut above = path.ancestors().skip(1);
        above
            .any(|above| pieces.iter().any(|p| matches!(p, Piece::Private { target, .. } if target == above)))
    };
    let shown = pieces.iter().map(Piece::target).chain([spec.workspace.path.as_path()]);
    let shown = shown.chain(spec.git_directory.as_ref().map(|git| git.path.as_path()));
    let hangs_on: BTreeSet<&Path> = shown.flat_map(Path::ancestors).filter(|path| private(path)).collect();
    pieces.iter().map(of_piece).sum::<u64>() + hangs_on.len() as u64 + OTHER_FILES
}

impl Builder<'_> {
    fn executable(&self) -> bool {
        self.spec.grant.programs == Programs::Any
    }

    /// Tells whether a piece of the root may be mapped as code.
    fn holds_code(&self, target: &Path) -> bool {
        match &self.spec.view.executables {
            Executables::Any => true,
            Executables::Only(listed) => listed.needs_code_of(target),
        }
    }

    fn source(&mut self, path: &Path, recursive: bool, map_owner: bool) -> SourceIndex {
        let id_map = map_owner.then(|| self.id_map(crate::view::Identity { uid: 0, gid: 0 }));
        self.sources.push(Source { path: bytes(path), recursive, id_map, map_required: false });
        self.sources.len() - 1
    }

    /// Shows a place as the command's that holds the files of somebody else; without that nothing is built.
    fn show_as_own(&mut self, source: SourceIndex, disk: crate::view::Identity) {
        self.sources[source].id_map = Some(self.id_map(disk));
        self.sources[source].map_required = true;
    }

    fn id_map(&self, disk: crate::view::Identity) -> IdMap {
        let shown = self.spec.identity;
        IdMap { disk_uid: disk.uid, disk_gid: disk.gid, shown_uid: shown.uid, shown_gid: shown.gid }
    }

    fn root_and_store(&mut self) {
        let limits = &self.spec.grant.profile.limits;
        self.steps.push(Step::Root { bytes: ROOT_BYTES, inodes: ROOT_FILES });
        let executable = self.executable();
        let store = match self.quota {
            Quota::Memory => Step::MemoryStore {
                bytes: limits.disk.get(),
                inodes: limits.files + own_files(self.spec),
                executable,
            },
            Quota::Image(image) => {
                let (bytes, inodes) = image.size();
                Step::ImageStore { bytes, inodes, executable }
            }
            Quota::Watched(_) => {
                let path = self.spec.run_directory.join("store");
                Step::DiskStore { source: self.source(&path, false, false), executable }
            }
        };
        self.steps.push(store);
    }

    fn pieces(&mut self) {
        for (at, piece) in self.spec.view.pieces.iter().enumerate() {
            let target = bytes(piece.target());
            let step = match piece {
                Piece::ReadOnly { source, recursive, map_owner, .. } => Step::ReadOnly {
                    source: self.source(source, *recursive, *map_owner),
                    target,
                    executable: self.holds_code(piece.target()),
                },
                Piece::Generated { contents, mode, .. } => {
                    Step::File { target, contents: contents.clone(), mode: *mode }
                }
                Piece::Symlink { points_to, .. } => Step::Symlink { target, points_to: bytes(points_to) },
                Piece::Directory { mode, .. } => Step::Directory { target, mode: *mode },
                Piece::Private { target: place, mode } => {
                    self.writable.insert(place.clone());
                    Step::Private { name: format!("private-{at}"), target, mode: *mode }
                }
                Piece::Overlay { lower, target: place, map_owner } => {
                    self.writable.insert(place.clone());
                    let lower = self.source(lower, false, *map_owner);
                    Step::PrivateOverlay { lower, name: format!("overlay-{at}"), target }
                }
                Piece::Mask { .. } => Step::Mask { target },
            };
            self.steps.push(step);
        }
    }

    fn devices(&mut self) {
        for name in DEVICES {
            self.source(&Path::new("/dev").join(name), false, false);
            self.steps.push(Step::Device { name: name.to_owned() });
        }
        for (target, points_to) in DEVICE_LINKS {
            self.steps.push(Step::Symlink { target: target.into(), points_to: points_to.into() });
        }
        self.steps.push(Step::Terminals);
        self.steps.push(Step::Queues);
        self.private("shm", "/dev/shm", 0o1777);
        // Devices are written through their own permissions.
        self.writable.insert(PathBuf::from("/dev"));
        // The kernel looks for a queue in a mount of its own, which is below nothing: its top needs a rule.
        self.writable.insert(PathBuf::from("/dev/mqueue"));
    }

    fn proc_and_landlock(&mut self) {
        self.steps.push(Step::Proc);
        self.private("landlock", LANDLOCK_CANARY, 0o777);
        // As above, for a process's own entries.
        self.writable.insert(PathBuf::from("/proc"));
    }

    fn private(&mut self, name: &str, target: &str, mode: u32) {
        self.steps.push(Step::Private { name: name.to_owned(), target: target.into(), mode });
    }

    fn outputs_and_inputs(&mut self) {
        let spec = self.spec;
        for (name, host) in [("artifacts", &spec.artifacts), ("cache", &spec.cache)] {
            let target = format!("/{name}");
            match (self.quota, name) {
                // What is there already is below; what is written goes to the store, and is put there at the end.
                (Quota::Image(_), "cache") => {
                    let lower = self.source(host, false, false);
                    let target = target.clone().into_bytes();
                    self.steps.push(Step::PrivateOverlay { lower, name: name.to_owned(), target });
                }
                (Quota::Memory | Quota::Image(_), _) => self.private(name, &target, 0o755),
                (Quota::Watched(_), _) => {
                    let source = self.source(host, false, false);
                    self.steps.push(Step::ReadWrite { source, target: target.clone().into_bytes() });
                }
            }
            self.writable.insert(PathBuf::from(target));
        }
        for input in &spec.grant.inputs {
            let source = self.source(input.source.as_path(), true, false);
            let target = format!("/inputs/{}", input.name).into_bytes();
            self.steps.push(Step::ReadOnly { source, target, executable: self.executable() });
        }
    }

    fn workspace(&mut self) {
        let workspace = &self.spec.workspace;
        let mut lowers = Vec::new();
        for layer in &workspace.layers {
            lowers.push(self.source(layer, false, false));
        }
        let base = self.source(&workspace.base, false, false);
        if workspace.base_owner.uid != self.spec.identity.uid {
            self.show_as_own(base, workspace.base_owner);
        }
        lowers.push(base);
        let upper = match (self.spec.grant.workspace, self.quota.is_store()) {
            (WorkspaceAccess::ReadOnly, _) => None,
            (WorkspaceAccess::ReadWrite, true) => Some(Upper::Store { mode: mode_of(&workspace.base) }),
            (WorkspaceAccess::ReadWrite, false) => {
                Some(Upper::Host(self.source(&workspace.layer, false, false)))
            }
        };
        if upper.is_some() {
            self.writable.insert(workspace.path.clone());
        }
        let executable = self.executable();
        self.steps.push(Step::Workspace { lowers, upper, target: bytes(&workspace.path), executable });
    }

    fn git_directory(&mut self) {
        let spec = self.spec;
        let Some(directory) = &spec.git_directory else { return };
        let mut lowers: Vec<SourceIndex> =
            directory.layers.iter().map(|layer| self.source(layer, false, false)).collect();
        let repository = self.source(&directory.path, false, false);
        if spec.workspace.base_owner.uid != spec.identity.uid {
            self.show_as_own(repository, spec.workspace.base_owner);
        }
        lowers.push(repository);
        let on_disk = !self.quota.is_store();
        let upper = spec.git_layer().filter(|_| on_disk).map(|layer| self.source(&layer, false, false));
        self.writable.insert(directory.path.clone());
        let (mode, target) = (mode_of(&directory.path), bytes(&directory.path));
        self.steps.push(Step::GitDirectory { lowers, upper, mode, target });
    }

    fn masks(&mut self) {
        for (target, contents) in &self.spec.covers {
            self.steps.push(Step::Cover { target: bytes(target), contents: contents.clone() });
        }
        for mask in &self.spec.masks {
            let target = bytes(&self.spec.workspace.path.join(mask.as_path()));
            self.steps.push(Step::Mask { target });
        }
        self.steps
            .extend(PROC_MASKED.iter().map(|entry| Step::Mask { target: entry.path.as_bytes().to_vec() }));
        self.steps.extend(
            PROC_READ_ONLY.iter().map(|entry| Step::Freeze { target: entry.path.as_bytes().to_vec() }),
        );
    }
}

/// Returns the mode of a directory that something is shown over. What cannot be looked at cannot be mounted either.
fn mode_of(directory: &Path) -> u32 {
    std::fs::metadata(directory).map_or(0o755, |found| found.mode() & 0o7777)
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
