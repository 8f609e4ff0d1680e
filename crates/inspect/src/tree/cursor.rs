//! A place in several trees at once: the one before an action and the one after it.

use std::ffi::CStr;

use rustix::io::Errno;

use super::attributes::Attributes;
use super::node::Node;
use super::position::{Position, Seen};
use super::{Tree, node};
use crate::error::InspectError;

/// A place in a stack of trees. Uppers are what is looked at, lowers are what was there before; both newest first.
#[derive(Debug)]
pub(crate) struct Cursor {
    trees: Vec<Position>,
    members: Vec<Members>,
    path: Vec<u8>,
}

/// The trees that have a directory where we are.
#[derive(Debug, Clone)]
struct Members {
    uppers: Vec<usize>,
    lowers: Vec<usize>,
    /// Whether the lowers show through the uppers.
    lowers_show: bool,
}

/// Where a name was found, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The tree, by its place in the stack.
    pub(crate) tree: usize,
    /// What it is.
    pub(crate) node: Node,
}

/// What a name was before, and what it is after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) before: Option<Hit>,
    pub(crate) after: Option<Hit>,
    /// Whether one of the uppers decided what is there after.
    pub(crate) from_upper: bool,
}

/// What a chain of trees has under a name: an answer, or nothing that would stop the search.
enum Answer {
    Open,
    Gone,
    Found(Hit),
}

impl Cursor {
    pub(crate) fn new(uppers: &[Tree], lowers: &[Tree]) -> Self {
        let trees: Vec<Position> = uppers.iter().chain(lowers).cloned().map(Position::new).collect();
        let members = Members {
            uppers: (0..uppers.len()).collect(),
            lowers: (uppers.len()..trees.len()).collect(),
            lowers_show: true,
        };
        Self { trees, members: vec![members], path: Vec::new() }
    }

    /// Returns the path of the directory where we are, empty at the top.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// Returns how many levels below the top we are.
    pub(crate) fn depth(&self) -> usize {
        self.members.len() - 1
    }

    /// Returns the path of a name in the directory where we are.
    pub(crate) fn path_of(&self, name: &CStr) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.count_bytes());
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        path
    }

    /// Returns the directory of one tree where we are.
    pub(crate) fn directory(&self, tree: usize) -> std::os::fd::BorrowedFd<'_> {
        self.trees[tree].directory()
    }

    /// Tells whether a tree is the last one, which has nothing below it.
    pub(crate) fn is_base(&self, tree: usize) -> bool {
        tree + 1 == self.trees.len()
    }

    /// Returns what a tree's directory says to overlay.
    pub(crate) fn attributes(&self, tree: usize) -> Attributes {
        self.trees[tree].attributes()
    }

    /// Returns the uppers that have a directory here.
    pub(crate) fn uppers(&self) -> &[usize] {
        &self.here().uppers
    }

    /// Returns the lowers that have a directory here.
    pub(crate) fn lowers(&self) -> &[usize] {
        &self.here().lowers
    }

    /// Tells whether names that only the lowers have are still there.
    pub(crate) fn lowers_show(&self) -> bool {
        self.here().lowers_show
    }

    /// Looks up a name in both.
    pub(crate) fn look(&self, name: &CStr) -> Result<Pair, InspectError> {
        let here = self.here();
        let upper = self.search(&here.uppers, name)?;
        let before = match self.search(&here.lowers, name)? {
            Answer::Found(hit) => Some(hit),
            Answer::Open | Answer::Gone => None,
        };
        Ok(match upper {
            Answer::Found(hit) => Pair { before, after: Some(hit), from_upper: true },
            Answer::Gone => Pair { before, after: None, from_upper: true },
            Answer::Open if here.lowers_show => Pair { after: before.clone(), before, from_upper: false },
            Answer::Open => Pair { before, after: None, from_upper: false },
        })
    }

    /// Goes down into a name. Trees that have no directory there, or one that is hidden, do not come along.
    pub(crate) fn enter(&mut self, name: &CStr) -> Result<(), InspectError> {
        let here = self.here().clone();
        let mut below = Members { uppers: Vec::new(), lowers: Vec::new(), lowers_show: here.lowers_show };
        let stopped = self.enter_chain(&here.uppers, name, &mut below.uppers);
        let entered = stopped.and_then(|stopped| {
            below.lowers_show &= !stopped;
            self.enter_chain(&here.lowers, name, &mut below.lowers)
        });
        if let Err(errno) = entered {
            let path = self.path_of(name);
            for &tree in below.uppers.iter().chain(&below.lowers) {
                self.trees[tree].leave().map_err(|errno| InspectError::at("leave", &path, errno))?;
            }
            // It was a directory when it was looked up.
            let moved = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
            return Err(match moved {
                true => InspectError::Moved { path: crate::error::shown(&path) },
                false => InspectError::at("open the directory", &path, errno),
            });
        }
        self.path = self.path_of(name);
        self.members.push(below);
        Ok(())
    }

    /// Goes back up; at the top it stays.
    pub(crate) fn leave(&mut self) -> Result<(), InspectError> {
        if self.depth() == 0 {
            return Ok(());
        }
        let left = self
            .members
            .pop()
            .into_iter()
            .flat_map(|members| members.uppers.into_iter().chain(members.lowers));
        for tree in left.collect::<Vec<_>>() {
            match self.trees[tree].leave() {
                Ok(true) => {}
                Ok(false) => return Err(InspectError::Moved { path: crate::error::shown(&self.path) }),
                Err(errno) => return Err(InspectError::at("return from", &self.path, errno)),
            }
        }
        let end = self.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.path.truncate(end);
        Ok(())
    }

    fn here(&self) -> &Members {
        // INVARIANT: the top is never taken off.
        &self.members[self.members.len() - 1]
    }

    fn search(&self, chain: &[usize], name: &CStr) -> Result<Answer, InspectError> {
        for &tree in chain {
            match self.trees[tree].see(name) {
                Ok(Seen::Nothing) => {}
                Ok(Seen::Whiteout) => return Ok(Answer::Gone),
                Ok(Seen::Node(node)) => return Ok(Answer::Found(Hit { tree, node })),
                Err(errno) => return Err(InspectError::at("look up", &self.path_of(name), errno)),
            }
        }
        Ok(Answer::Open)
    }

    /// Enters a name in each tree of a chain until one of them hides the rest; tells whether one did.
    fn enter_chain(&mut self, chain: &[usize], name: &CStr, entered: &mut Vec<usize>) -> Result<bool, Errno> {
        for &tree in chain {
            match self.trees[tree].see(name)? {
                Seen::Nothing => continue,
                Seen::Node(node) if is_directory(&node) => {}
                Seen::Whiteout | Seen::Node(_) => return Ok(true),
            }
            self.trees[tree].enter(name)?;
            entered.push(tree);
            if self.trees[tree].attributes() == Attributes::Opaque {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_directory(node: &node::Node) -> bool {
    node.kind == model::FileKind::Directory
}
