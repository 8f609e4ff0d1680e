//! Where groups can be made, and what they can limit there.
//!
//! Guarantees: a place is chosen by looking only. The nearest group that offers the most is taken, so that a sandbox
//! stays within what its caller has. Leaves to others: making the group; the kernel has the last word then.

use std::fs;
use std::path::{Path, PathBuf};

use super::group::OURS;
use super::mounts::{Hierarchies, Hierarchy, Version};
use super::{NotDelegated, Resource, Support};

/// A directory in which our own directory can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub version: Version,
    /// The directory.
    pub directory: PathBuf,
    /// What can be limited below it.
    pub resources: Vec<Resource>,
    /// Whether this process must first leave the directory for a group of its own below it: version 2 gives
    /// controllers to the groups below only when no process is left above.
    pub move_self: bool,
}

impl Place {
    /// Says why a resource cannot be limited below this place of version 2.
    fn lacks(&self, resource: Resource) -> NotDelegated {
        let controller = resource.controller();
        let offered = fs::read_to_string(self.directory.join("cgroup.controllers")).unwrap_or_default();
        if !offered.split_ascii_whitespace().any(|word| word == controller) {
            return not_offered(controller);
        }
        NotDelegated {
            why: format!(
                "`{}` holds processes of others and cannot give `{controller}` on",
                shown(&self.directory)
            ),
            fix: format!("start fumehood in a group of its own, for example with `{SCOPE}`"),
        }
    }
}

/// How a user gets a group from systemd.
const SCOPE: &str = "systemd-run --user --scope --property=Delegate=yes -- fumehood ...";

/// The places that are used together, and why a resource is missing.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub list: Vec<Place>,
    pub support: Vec<Support>,
}

/// Tells whether this process may write to a file or make something in a directory.
pub(super) fn may_write(path: &Path) -> bool {
    rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::WRITE_OK, rustix::fs::AtFlags::EACCESS)
        .is_ok()
}

impl Hierarchies {
    /// Says for each resource whether the kernel can hold a limit on it here, and if not, why.
    pub fn support(&self) -> Vec<Support> {
        self.places().support
    }

    /// Tells whether version 2 has the controller of a resource on this host, whoever may use it.
    pub(crate) fn could_hold(&self, resource: Resource) -> bool {
        let modern = self.list.iter().find(|hierarchy| hierarchy.version == Version::V2);
        let offered = modern.map(|modern| fs::read_to_string(modern.mount.join("cgroup.controllers")));
        let offered = offered.and_then(Result::ok).unwrap_or_default();
        offered.split_ascii_whitespace().any(|word| word == resource.controller())
    }

    /// Chooses the places: version 2 for what it offers, version 1 for the rest.
    pub(super) fn places(&self) -> Places {
        let modern = self.modern_place();
        let mut list: Vec<Place> = modern.iter().cloned().collect();
        let mut support = Vec::new();
        for resource in Resource::ALL {
            let by = match &modern {
                Ok(place) if place.resources.contains(&resource) => Ok("a control group (version 2)"),
                modern => {
                    let missing = modern.as_ref().map_or_else(Clone::clone, |place| place.lacks(resource));
                    self.old_place(resource, missing).map(|place| {
                        add(&mut list, place, resource);
                        "a control group (version 1)"
                    })
                }
            };
            support.push(Support { resource, by });
        }
        // Without version 2 only the freezer ends all processes of a group at once.
        if modern.is_err()
            && !list.is_empty()
            && let Ok(freezer) = self.directory_of_old("freezer")
        {
            // First, so that it has stopped everything before the others look for processes.
            let resources = Vec::new();
            list.insert(0, Place { version: Version::V1, directory: freezer, resources, move_self: false });
        }
        Places { list, support }
    }

    /// Chooses a group of version 2: of those above this process the one that offers most, and the nearest of these.
    fn modern_place(&self) -> Result<Place, NotDelegated> {
        let hierarchy = self.modern()?;
        let own = hierarchy.own.as_ref().ok_or_else(outside)?;
        // After a first group this process may stand in one of ours, where no other group belongs.
        let is_ours = |above: &&Path| {
            above.strip_prefix(&hierarchy.mount).is_ok_and(|below| below.iter().any(|part| part == OURS))
        };
        let above = own.ancestors().take_while(|above| above.starts_with(&hierarchy.mount));
        let above = above.filter(|above| !is_ours(above));
        let mut best: Option<Place> = None;
        for place in above.filter_map(|directory| self.try_modern(directory, own)) {
            if best.as_ref().is_none_or(|best| best.resources.len() < place.resources.len()) {
                best = Some(place);
            }
        }
        best.ok_or_else(|| not_ours(own, Version::V2))
    }

    fn modern(&self) -> Result<&Hierarchy, NotDelegated> {
        let found = self.list.iter().find(|hierarchy| hierarchy.version == Version::V2);
        let hierarchy = found.ok_or_else(|| NotDelegated {
            why: "no hierarchy of version 2 is mounted".to_owned(),
            fix: "mount cgroup2 on /sys/fs/cgroup".to_owned(),
        })?;
        if hierarchy.writable { Ok(hierarchy) } else { Err(read_only(&hierarchy.mount)) }
    }

    fn try_modern(&self, directory: &Path, own: &Path) -> Option<Place> {
        let may_write = self.may_write;
        let members = directory.join("cgroup.procs");
        // Entering a group takes the right to write to the nearest group that has both the old and the new one.
        if !may_write(directory) || !may_write(&members) {
            return None;
        }
        let words = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        let offered = words("cgroup.controllers");
        let given = words("cgroup.subtree_control");
        let has = |list: &str, controller: &str| list.split_ascii_whitespace().any(|word| word == controller);
        let occupied = Occupied::of(directory);
        let can_give = occupied != Occupied::ByOthers && may_write(&directory.join("cgroup.subtree_control"));
        let can = |resource: &Resource| {
            let controller = resource.controller();
            has(&given, controller) || (can_give && has(&offered, controller))
        };
        let resources: Vec<Resource> = Resource::ALL.into_iter().filter(can).collect();
        let needs_giving = resources.iter().any(|resource| !has(&given, resource.controller()));
        let move_self = needs_giving && occupied == Occupied::ByUs && directory == own;
        Some(Place { version: Version::V2, directory: directory.to_owned(), resources, move_self })
    }

    /// Chooses a group of version 1. What is said of version 2 counts when version 1 does not have the controller.
    fn old_place(&self, resource: Resource, modern: NotDelegated) -> Result<Place, NotDelegated> {
        if self.old(resource.controller()).is_none() && !self.versions().is_empty() {
            return Err(modern);
        }
        let directory = self.directory_of_old(resource.controller())?;
        let swap = directory.join("memory.memsw.limit_in_bytes");
        if resource == Resource::Swap && !swap.exists() && !no_swap() {
            return Err(NotDelegated {
                why: "the kernel does not count swap space".to_owned(),
                fix: "start it with `swapaccount=1`, or turn swap off".to_owned(),
            });
        }
        Ok(Place { version: Version::V1, directory, resources: vec![resource], move_self: false })
    }

    fn old(&self, controller: &str) -> Option<&Hierarchy> {
        self.list.iter().find(|hierarchy| hierarchy.version == Version::V1 && hierarchy.has(controller))
    }

    fn directory_of_old(&self, controller: &str) -> Result<PathBuf, NotDelegated> {
        let hierarchy = self.old(controller).ok_or_else(|| not_offered(controller))?;
        if !hierarchy.writable {
            return Err(read_only(&hierarchy.mount));
        }
        let own = hierarchy.own.clone().ok_or_else(outside)?;
        if (self.may_write)(&own) { Ok(own) } else { Err(not_ours(&own, Version::V1)) }
    }
}

/// Puts a resource at its place; controllers that share a hierarchy share a group.
fn add(list: &mut Vec<Place>, place: Place, resource: Resource) {
    match list.iter_mut().find(|other| other.directory == place.directory) {
        Some(other) => other.resources.push(resource),
        None => list.push(place),
    }
}

/// Who is in a group of version 2.
#[derive(PartialEq, Eq)]
enum Occupied {
    /// Nobody, or it is the topmost group, which may hold processes and still give controllers on.
    No,
    ByUs,
    ByOthers,
}

impl Occupied {
    fn of(directory: &Path) -> Self {
        // The topmost group has no type.
        if !directory.join("cgroup.type").exists() {
            return Self::No;
        }
        let us = std::process::id().to_string();
        let members = fs::read_to_string(directory.join("cgroup.procs"));
        let members = members.as_deref().unwrap_or("unknown");
        match members.split_ascii_whitespace().filter(|member| **member != us).count() {
            0 if members.trim().is_empty() => Self::No,
            0 => Self::ByUs,
            _ => Self::ByOthers,
        }
    }
}

fn no_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() <= 1)
}

fn not_offered(controller: &str) -> NotDelegated {
    NotDelegated {
        why: format!("no hierarchy offers the `{controller}` controller"),
        fix: format!(
            "start the kernel with `cgroup_enable={controller}`, or mount cgroup2 on /sys/fs/cgroup"
        ),
    }
}

fn read_only(mount: &Path) -> NotDelegated {
    let mount = shown(mount);
    NotDelegated {
        why: format!("`{mount}` is mounted read-only"),
        fix: format!("give the container a cgroup namespace of its own and a writable `{mount}`"),
    }
}

fn outside() -> NotDelegated {
    NotDelegated {
        why: "the control group of this process lies outside of what is mounted here".to_owned(),
        fix: "give the container a cgroup namespace of its own".to_owned(),
    }
}

fn not_ours(directory: &Path, version: Version) -> NotDelegated {
    let fix = match version {
        Version::V2 => format!("start with `{SCOPE}`, or as root"),
        Version::V1 => "start as root, or boot with `systemd.unified_cgroup_hierarchy=1`".to_owned(),
    };
    let why = format!("`{}` is not given to this user, or holds processes of others", shown(directory));
    NotDelegated { why, fix }
}

fn shown(path: &Path) -> String {
    model::text::escape(&path.to_string_lossy()).into_owned()
}
