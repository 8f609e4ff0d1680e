//! Why a change must stay, or wait for a person.

use std::collections::{BTreeMap, BTreeSet};

use model::event::HeldBack;
use model::{Change, ChangeKind, FileKind, OsText, WorkspacePath};
use serde::{Deserialize, Serialize};

use super::links::{Leads, Resolver};
use super::nested::NestedRepositories;
use crate::error::InspectError;
use crate::layer::{Finding, Report};
use crate::protected::{Class, InTurn, Rules};
use crate::tree::{Finder, Stack};

/// The code of files that hold a credential.
pub const CREDENTIAL: &str = "credential";

/// Why a change must stay, or wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Reason {
    /// It is on a protected path.
    Protected {
        /// The class.
        class: Class,
        /// Why paths like it are protected.
        because: String,
    },
    /// It is not among what the task may change.
    NotAccepted {
        /// Why.
        because: String,
    },
    /// It holds a credential.
    Credential {
        /// What it holds, and how that was seen.
        because: String,
    },
    /// It has a set-user-id, set-group-id or sticky bit.
    SetId,
    /// It is a pipe, a socket or a device.
    Special,
    /// It is a link that leads out of the workspace, or would once something on its way is replaced.
    LinkOut {
        /// Where it points.
        target: OsText,
    },
    /// It is a link to a protected path: who writes to it writes there.
    LinkToProtected {
        /// Where it points.
        target: OsText,
        /// The class of that path.
        class: Class,
    },
    /// It is in a directory that git takes for a repository, whose configuration names programs.
    NestedRepository {
        /// The directory.
        directory: OsText,
    },
    /// We may not read it, so nobody knows what it holds.
    Unreadable,
    /// It cannot go because something in it must stay.
    Contains {
        /// What stays.
        path: WorkspacePath,
    },
    /// It cannot go where it belongs because what it is in must stay as it is.
    Within {
        /// What it is in.
        path: WorkspacePath,
    },
    /// There is more than anybody could look at, so nothing of it may leave.
    TooMany {
        /// How many names were not listed.
        unlisted: u64,
    },
}

impl Reason {
    /// Returns the code by which programs know the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Protected { class, .. } => class.code(),
            Self::Credential { .. } => CREDENTIAL,
            Self::NotAccepted { .. } => "not-accepted",
            Self::SetId => "set-id",
            Self::Special => "special-file",
            Self::LinkOut { .. } => "link-out",
            Self::LinkToProtected { .. } => "link-to-protected",
            Self::NestedRepository { .. } => "nested-repository",
            Self::Unreadable => "unreadable",
            Self::Contains { .. } => "contains-held",
            Self::Within { .. } => "within-held",
            Self::TooMany { .. } => "too-many",
        }
    }

    /// Tells whether a person's yes lets the change out. What `apply` never writes, no yes lets out.
    pub fn person_may_lift(&self) -> bool {
        match self {
            Self::Protected { class, .. } | Self::LinkToProtected { class, .. } => {
                *class != Class::GitInternals
            }
            Self::NestedRepository { .. } | Self::Credential { .. } | Self::NotAccepted { .. } => true,
            Self::SetId | Self::Special | Self::LinkOut { .. } | Self::Unreadable => false,
            Self::Contains { .. } | Self::Within { .. } | Self::TooMany { .. } => false,
        }
    }

    /// Tells of a code on a record whether a person's yes may let such a change out. A link may still lead to what
    /// nobody lets out.
    pub fn person_may_lift_code(code: &str) -> bool {
        const NEVER: [&str; 7] =
            ["set-id", "special-file", "link-out", "unreadable", "contains-held", "within-held", "too-many"];
        code != Class::GitInternals.code() && !NEVER.contains(&code)
    }

    /// Says the reason in a sentence without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            Self::Protected { class, because } => format!("{}: {because}", class.meaning()),
            Self::Credential { because } => {
                format!("a credential ({because}), which later actions of the task do not see")
            }
            Self::NotAccepted { because } => because.clone(),
            Self::SetId => "it has a set-user-id, set-group-id or sticky bit: take the bit away".to_owned(),
            Self::Special => {
                "it is a pipe, a socket or a device, and only files, directories and links leave".to_owned()
            }
            Self::LinkOut { target } => format!(
                "it is a link to `{target}`, which leads out of the workspace or climbs: point it to a path inside"
            ),
            Self::LinkToProtected { target, class } => {
                format!("it is a link to `{target}`: {}", class.meaning())
            }
            Self::NestedRepository { directory } => {
                format!("git would take `{directory}` for a repository and run what its configuration names")
            }
            Self::Unreadable => {
                "it cannot be read, so nobody knows what it holds: give it read permission".to_owned()
            }
            Self::Contains { path } => format!("`{path}` in it stays"),
            Self::Within { path } => format!("`{path}` stays as it is"),
            Self::TooMany { unlisted } => {
                format!(
                    "{unlisted} more names than can be looked at: undo the action, or delete what is not wanted"
                )
            }
        }
    }
}

/// A change that must stay, or wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The change.
    pub change: Change,
    /// Why. There is at least one reason.
    pub reasons: Vec<Reason>,
}

impl Held {
    /// Tells whether a person's yes to this path, and to what is in it or above it, would let it out.
    pub fn person_may_release(&self) -> bool {
        let depends = |reason: &Reason| matches!(reason, Reason::Contains { .. } | Reason::Within { .. });
        self.reasons.iter().all(|reason| reason.person_may_lift() || depends(reason))
    }

    /// Returns the form that the record holds: the first reason stands for all.
    pub fn record(&self) -> HeldBack {
        let first = self.reasons.first();
        HeldBack {
            path: self.change.path.clone().into(),
            reason: first.map(Reason::code).unwrap_or_default().to_owned(),
            why: first.map(Reason::sentence).unwrap_or_default(),
        }
    }
}

/// Finds the reasons that each change has by itself.
pub(super) fn reasons(
    stack: &Stack,
    report: &Report,
    rules: &Rules,
) -> Result<Vec<(Change, Vec<Reason>)>, InspectError> {
    let unreadable: BTreeSet<&[u8]> = report.findings.iter().filter_map(unreadable).collect();
    let credentials: BTreeMap<&[u8], &str> = report.findings.iter().filter_map(credential).collect();
    let mut look = Look {
        rules,
        in_turn: InTurn::new(rules),
        unreadable,
        credentials,
        unlisted: report.unlisted,
        // Findings that were not listed may be of files that nobody could read.
        all_unreadable: report.findings_dropped > 0,
        after: stack.after(),
        top_mode: stack.top_mode()?,
        links: Resolver::new(stack),
        nested: NestedRepositories::new(stack),
    };
    let mut all = Vec::with_capacity(report.changes.len());
    for change in &report.changes {
        all.push((change.clone(), look.at(change)?));
    }
    Ok(all)
}

fn unreadable(finding: &Finding) -> Option<&[u8]> {
    match finding {
        Finding::Unreadable { path } => Some(path.as_bytes()),
        _ => None,
    }
}

fn credential(finding: &Finding) -> Option<(&[u8], &str)> {
    match finding {
        Finding::Credential { path, why } => Some((path.as_bytes(), why)),
        _ => None,
    }
}

struct Look<'a> {
    rules: &'a Rules,
    in_turn: InTurn<'a>,
    credentials: BTreeMap<&'a [u8], &'a str>,
    unreadable: BTreeSet<&'a [u8]>,
    unlisted: u64,
    all_unreadable: bool,
    after: Finder,
    /// The mode of the workspace itself.
    top_mode: u32,
    links: Resolver,
    nested: NestedRepositories,
}

impl Look<'_> {
    fn at(&mut self, change: &Change) -> Result<Vec<Reason>, InspectError> {
        let credential = self.credentials.get(change.path.as_bytes());
        let credential = credential.map(|why| Reason::Credential { because: (*why).to_owned() });
        let mut reasons: Vec<Reason> = credential.into_iter().collect();
        reasons.extend(self.protected(change));
        let because = self.rules.accepts().and_then(|accepts| accepts.refuses(change));
        reasons.extend(because.map(|because| Reason::NotAccepted { because }));
        if let Some(directory) = self.nested.around(&change.path)? {
            reasons.push(Reason::NestedRepository { directory });
        }
        if change.kind != ChangeKind::Deleted {
            self.kind(change, &mut reasons)?;
        }
        if self.all_unreadable || self.unreadable.contains(change.path.as_bytes()) {
            reasons.push(Reason::Unreadable);
        }
        if self.unlisted > 0 {
            reasons.push(Reason::TooMany { unlisted: self.unlisted });
        }
        Ok(reasons)
    }

    fn protected(&mut self, change: &Change) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for rule in self.in_turn.matching(&change.path) {
            let is_new = !reasons
                .iter()
                .any(|reason| matches!(reason, Reason::Protected { class, .. } if *class == rule.class));
            if is_new && rule.class.holds(change.kind) {
                reasons.push(Reason::Protected { class: rule.class, because: rule.reason.clone() });
            }
        }
        reasons
    }

    fn kind(&mut self, change: &Change, reasons: &mut Vec<Reason>) -> Result<(), InspectError> {
        match change.file {
            FileKind::File if change.mode & 0o7000 != 0 => reasons.push(Reason::SetId),
            FileKind::Directory if change.mode & 0o7000 & !self.inherited_bits(change)? != 0 => {
                reasons.push(Reason::SetId);
            }
            FileKind::File | FileKind::Directory => {}
            FileKind::Symlink => self.link(change, reasons)?,
            FileKind::Fifo | FileKind::Socket | FileKind::Device => reasons.push(Reason::Special),
        }
        Ok(())
    }

    /// Returns the set-group-id bit where the directory around has it: every new directory inherits it.
    fn inherited_bits(&mut self, change: &Change) -> Result<u32, InspectError> {
        let around = change.path.as_path().parent().and_then(|parent| WorkspacePath::parse(parent).ok());
        let Some(around) = around else { return Ok(self.top_mode & 0o2000) };
        Ok(self.after.find(&around)?.map_or(0, |entry| entry.node.mode() & 0o2000))
    }

    fn link(&mut self, change: &Change, reasons: &mut Vec<Reason>) -> Result<(), InspectError> {
        let Some(entry) = self.after.find(&change.path)? else { return Ok(()) };
        let target = entry.link_target()?;
        match self.links.resolve(&change.path, &target)? {
            Leads::Out => reasons.push(Reason::LinkOut { target }),
            Leads::ToTop => {}
            Leads::Inside(path) => {
                let held = self
                    .rules
                    .matching(&path)
                    .into_iter()
                    .find(|rule| rule.class.holds(ChangeKind::Modified));
                // A link to a test reads it, and nobody writes a test by way of a link.
                if let Some(rule) = held.filter(|rule| rule.class != Class::Tests) {
                    reasons.push(Reason::LinkToProtected { target, class: rule.class });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_what_its_reason_says() {
        let because = String::new();
        let path = WorkspacePath::parse("a").expect("inside");
        let target = OsText::try_from("a").expect("no NUL");
        let protected = |class| Reason::Protected { class, because: because.clone() };
        for reason in [
            protected(Class::GitInternals),
            protected(Class::Tests),
            Reason::Credential { because: because.clone() },
            Reason::SetId,
            Reason::Special,
            Reason::LinkOut { target: target.clone() },
            Reason::LinkToProtected { target: target.clone(), class: Class::Hooks },
            Reason::NestedRepository { directory: target },
            Reason::Unreadable,
            Reason::Contains { path: path.clone() },
            Reason::Within { path },
            Reason::TooMany { unlisted: 1 },
        ] {
            assert_eq!(Reason::person_may_lift_code(reason.code()), reason.person_may_lift(), "{reason:?}");
        }
    }
}
