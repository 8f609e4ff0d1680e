//! Groups whose owner is gone: what a crash leaves behind.
//!
//! Guarantees: a group is taken for a leftover only when its name says who owned it and that process is provably
//! gone; a group of another process namespace is left alone. Leaves to others: when to look.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CgroupError;
use super::files::{Directory, failed};
use super::group::{self, OURS};
use super::mounts::Hierarchies;
use super::owner::{Fate, Owner};

/// The most directories that are looked at: a host with thousands of containers stays below it.
const LOOKED_AT_MAX: usize = 20_000;

/// A group that a dead process left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The group.
    pub path: PathBuf,
    /// Whose it was.
    pub owner: Owner,
}

impl Hierarchies {
    /// Finds leftovers wherever a process that stands where this one does may have made its groups: in its own group and
    /// those above, as far as this process may write there. Which of them is chosen depends on what each offers, and
    /// that changes with the first start. Costs one listing for each.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn leftovers(&self) -> Result<Vec<Leftover>, CgroupError> {
        let mut found = Vec::new();
        for hierarchy in self.list.iter().filter(|hierarchy| hierarchy.writable) {
            let own = hierarchy.own.iter().flat_map(|own| own.ancestors());
            let own = own.take_while(|above| above.starts_with(&hierarchy.mount));
            let mut ours = own.map(|above| above.join(OURS)).filter(|ours| (self.may_write)(ours));
            ours.try_for_each(|ours| dead_in(&ours, &mut found))?;
        }
        Ok(found)
    }

    /// Finds leftovers anywhere in the hierarchies: a crash in another session left them in that session's group.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn leftovers_everywhere(&self) -> Result<Vec<Leftover>, CgroupError> {
        let mut found = Vec::new();
        let mut looked_at = 0;
        for hierarchy in self.list.iter().filter(|hierarchy| hierarchy.writable) {
            let mut open = vec![hierarchy.mount.clone()];
            while let Some(directory) = open.pop() {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    return Ok(found);
                }
                if directory.ends_with(OURS) {
                    dead_in(&directory, &mut found)?;
                } else if let Ok(names) = Directory::open(&directory).and_then(|open| open.children()) {
                    // A group may go while it is looked at.
                    open.extend(names.iter().map(|name| directory.join(name)));
                }
            }
        }
        Ok(found)
    }
}

impl Leftover {
    /// Ends what is left in the group and removes it.
    ///
    /// # Errors
    /// When processes or directories are left after `within`.
    pub fn clear(&self, within: Duration) -> Result<(), CgroupError> {
        let (Some(above), Some(name)) =
            (self.path.parent(), self.path.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(());
        };
        let Ok(above) = Directory::open(above) else { return Ok(()) };
        // The number may have been given to a new process meanwhile; the start time still tells.
        if fate(&self.owner, &self.path)? != Fate::Dead {
            return Ok(());
        }
        if let Ok(group) = above.child(name) {
            group::end_all(&group, within)?;
        }
        group::remove_tree(&above, name, Instant::now() + within, 0)?;
        group::tidy(&above);
        Ok(())
    }
}

fn dead_in(ours: &Path, found: &mut Vec<Leftover>) -> Result<(), CgroupError> {
    let Ok(directory) = Directory::open(ours) else { return Ok(()) };
    for name in directory.children().unwrap_or_default() {
        let path = ours.join(&name);
        let Some(owner) = Owner::of(&name) else { continue };
        if fate(&owner, &path)? == Fate::Dead {
            found.push(Leftover { path, owner });
        }
    }
    Ok(())
}

fn fate(owner: &Owner, path: &Path) -> Result<Fate, CgroupError> {
    owner.fate().map_err(|error| failed("find the owner of", path, error))
}
