//! Questions: what an action, or an apply, means in the words of the schema.
//!
//! INVARIANT: every permission that a grant can hold beyond the least has its question here. `questions_of` takes
//! the grant apart field by field, so a new field does not compile until somebody has thought about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};

use model::egress::credentials_of;
use model::grant::{Input, Network, WorkspaceAccess};
use model::limits::DiskMode;
use model::units::display_duration;
use model::{
    Action, ActionId, Effect, EgressRule, Grant, LimitKind, Limits, OsText, Place, Profile, Tool,
    WorkspacePath,
};

use crate::apply::Apply;
use crate::facts::{Classes, Facts, OtherAction, Progress};
use crate::reading::Reading;

/// The class of a path that nobody has looked at.
const UNCLASSIFIED: &str = "unclassified";

/// Classes of paths that decide nothing beyond the work itself; changing one of any other class changes a control.
const ORDINARY_WORK: [&str; 2] = ["tests", "test-runner"];

/// One question to the policy.
#[derive(Debug, Clone)]
pub(crate) enum Question<'a> {
    /// May this program be started, as an action or as the named helper?
    Start { argv: &'a [OsText], service: Option<&'a str> },
    /// May this be read, listed or searched? The whole workspace when there is no path.
    Look { tool: &'static str, path: Option<&'a WorkspacePath> },
    /// May this path be written?
    Change { tool: &'static str, path: &'a WorkspacePath, classes: Option<&'a Classes> },
    /// May it have this effect?
    Effect { effect: Cow<'a, Effect>, classes: Option<&'a Classes> },
    /// May it reach what the host reaches?
    UseNetwork,
    /// May it use the network of this other action?
    JoinNetwork { action: &'a ActionId, known: Option<OtherAction> },
    /// May it reach what this rule names, through the gateway?
    Reach { rule: &'a EgressRule, named_by_person: bool },
    /// May a limit be wider than the profile says?
    WidenLimit(Widening),
    /// May this credential of the workspace be seen?
    ShowCredential(&'a WorkspacePath),
    /// May this file or directory of the host be seen?
    ShowInput { input: &'a Input, named_by_person: bool },
    /// May it use a terminal?
    UseTerminal,
    /// May it be tried on a throwaway layer before a person is asked?
    Try,
    /// May these changes be written to the host?
    Apply(&'a Apply),
    /// May this content be read later?
    ReadRecord(&'a Reading),
}

/// A limit that is asked to be wider than the profile's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Widening {
    pub(crate) limit: String,
    pub(crate) asked: u64,
    pub(crate) profile_allows: u64,
    shown: String,
}

/// Returns all that an action with this grant must be permitted.
pub(crate) fn questions_of<'a>(
    action: &'a Action,
    grant: &'a Grant,
    facts: &'a Facts,
    service: Option<&'a str>,
) -> Vec<Question<'a>> {
    // A list of programs, reading only and hiding can but take away, so they have no question of their own.
    let Grant { workspace: _, network, profile, programs: _, inputs, shown_credentials, terminal, hidden: _ } =
        grant;
    let mut questions = questions_of_tool(&action.request().tool, facts, service);
    if service.is_none() {
        questions.extend(questions_of_effects(&action.request().tool, facts));
    }
    match network {
        Network::Loopback => {}
        Network::Host => questions.push(Question::UseNetwork),
        Network::Joined(action) => questions.push(Question::JoinNetwork { action, known: facts.joined }),
        Network::Egress(rules) => {
            questions.extend(rules.iter().map(|rule| reach(rule, facts)));
            questions.extend(credentials_of(rules).into_iter().map(uses));
        }
    }
    questions.extend(widenings(profile, &facts.profile).into_iter().map(Question::WidenLimit));
    questions.extend(shown_credentials.iter().map(Question::ShowCredential));
    questions.extend(
        inputs
            .iter()
            .map(|input| Question::ShowInput { input, named_by_person: facts.inputs.contains(input) }),
    );
    questions.extend(terminal.then_some(Question::UseTerminal));
    questions
}

fn uses<'a>(credential: String) -> Question<'a> {
    Question::Effect { effect: Cow::Owned(Effect::UseCredential { credential }), classes: None }
}

fn reach<'a>(rule: &'a EgressRule, facts: &Facts) -> Question<'a> {
    Question::Reach { rule, named_by_person: facts.egress.iter().any(|named| named.covers(rule)) }
}

fn questions_of_tool<'a>(tool: &'a Tool, facts: &'a Facts, service: Option<&'a str>) -> Vec<Question<'a>> {
    let name = tool.name();
    match tool {
        Tool::Run { argv } => vec![Question::Start { argv, service }],
        Tool::Read { path } => vec![Question::Look { tool: name, path: Some(path) }],
        Tool::List { path } | Tool::Search { path, .. } => {
            vec![Question::Look { tool: name, path: path.as_ref() }]
        }
        Tool::Write { .. } | Tool::Patch { .. } => {
            let change = |path| Question::Change { tool: name, path, classes: facts.classes.get(path) };
            tool.writes().iter().map(change).collect()
        }
    }
}

/// Returns a question for each effect. A tool that names its files says itself what it does; what a command does has
/// been read from its words.
fn questions_of_effects<'a>(tool: &'a Tool, facts: &'a Facts) -> Vec<Question<'a>> {
    let at = |path: Option<&WorkspacePath>| path.cloned().map_or(Place::Workspace, Place::Path);
    let effects: Vec<Cow<'a, Effect>> = match tool {
        Tool::Run { .. } => match &facts.declared {
            Some(declared) => declared.iter().map(Cow::Borrowed).collect(),
            None => vec![Cow::Owned(Effect::Unknown { why: "nobody looked".to_owned() })],
        },
        Tool::Read { path } => vec![Cow::Owned(Effect::Read { place: at(Some(path)) })],
        Tool::List { path } | Tool::Search { path, .. } => {
            vec![Cow::Owned(Effect::Read { place: at(path.as_ref()) })]
        }
        Tool::Write { .. } | Tool::Patch { .. } => {
            tool.writes().iter().map(|path| Cow::Owned(Effect::Write { place: at(Some(path)) })).collect()
        }
    };
    let classes = |effect: &Effect| effect.changes().and_then(|path| facts.classes.get(path));
    // What a command declares has them already.
    let own = if matches!(tool, Tool::Run { .. }) { Vec::new() } else { controls(&facts.classes) };
    let controls =
        own.into_iter().map(|control| Question::Effect { effect: Cow::Owned(control), classes: None });
    let effects = effects.into_iter().map(|effect| Question::Effect { classes: classes(&effect), effect });
    effects.chain(controls).collect()
}

/// Returns the controls that are changed where paths of these classes are.
pub fn controls(classes: &BTreeMap<WorkspacePath, Classes>) -> Vec<Effect> {
    let changed: BTreeSet<&String> =
        classes.values().flatten().filter(|class| !ORDINARY_WORK.contains(&class.as_str())).collect();
    changed.into_iter().map(|class| Effect::ChangeControl { control: class.clone() }).collect()
}

/// Returns what the asked profile allows beyond the operator's of the same name.
fn widenings(asked: &Profile, own: &Profile) -> Vec<Widening> {
    let Profile { name: _, limits, cgroup_limits, disk_limits, reads, unlisted_program } = asked;
    let wider = limits.wider_than(&own.limits).into_iter().map(|kind| {
        let shown = format!("{} instead of {}", show(limits, kind), show(&own.limits, kind));
        let (asked, profile_allows) = (number(limits, kind), number(&own.limits, kind));
        Widening { limit: kind.to_string(), asked, profile_allows, shown }
    });
    let firmness = [
        ("cgroup-firmness", *cgroup_limits, own.cgroup_limits),
        ("disk-firmness", *disk_limits, own.disk_limits),
        ("reads-firmness", *reads, own.reads),
    ];
    let looser =
        firmness.into_iter().filter(|(_, asked, own)| asked < own).map(|(name, asked, own)| Widening {
            limit: name.to_owned(),
            asked: asked as u64,
            profile_allows: own as u64,
            shown: format!("{asked} instead of {own}"),
        });
    // On a disk an ordinary user's quota is measured, in memory the kernel holds it.
    let on_disk = (limits.disk_mode, own.limits.disk_mode) == (DiskMode::Disk, DiskMode::Memory);
    let mode = on_disk.then(|| Widening {
        limit: "disk-mode".to_owned(),
        asked: 1,
        profile_allows: 0,
        shown: "disk instead of memory".to_owned(),
    });
    let milder = (*unlisted_program < own.unlisted_program).then(|| Widening {
        limit: "unlisted-program".to_owned(),
        asked: *unlisted_program as u64,
        profile_allows: own.unlisted_program as u64,
        shown: format!("{unlisted_program} instead of {}", own.unlisted_program),
    });
    wider.chain(looser).chain(mode).chain(milder).collect()
}

fn number(limits: &Limits, kind: LimitKind) -> u64 {
    match kind {
        LimitKind::Memory => limits.memory.get(),
        LimitKind::Processes => limits.processes.into(),
        LimitKind::Cpu => limits.millicpus.map_or(u64::MAX, u64::from),
        LimitKind::WallTime => u64::try_from(limits.wall_time.as_millis()).unwrap_or(u64::MAX),
        LimitKind::Disk => limits.disk.get(),
        LimitKind::Files => limits.files,
        LimitKind::Output => limits.output.get(),
        LimitKind::OpenFiles => limits.open_files,
        LimitKind::FileSize => limits.file_size.get(),
    }
}

fn show(limits: &Limits, kind: LimitKind) -> String {
    match kind {
        LimitKind::Memory => limits.memory.to_string(),
        LimitKind::Disk => limits.disk.to_string(),
        LimitKind::Output => limits.output.to_string(),
        LimitKind::FileSize => limits.file_size.to_string(),
        LimitKind::WallTime => display_duration(limits.wall_time),
        LimitKind::Cpu => {
            limits.millicpus.map_or_else(|| "all".to_owned(), |cpus| format!("{cpus} thousandths"))
        }
        LimitKind::Processes | LimitKind::Files | LimitKind::OpenFiles => number(limits, kind).to_string(),
    }
}

impl Question<'_> {
    /// Returns the effect that it asks about, when it is one; starting a program is one too, and so is changing a file.
    pub(crate) fn effect(&self) -> Option<Effect> {
        match self {
            Self::Effect { effect, .. } => Some(effect.clone().into_owned()),
            Self::Start { argv: [program, ..], service: None } => {
                Some(Effect::Run { program: String::from_utf8_lossy(program.as_bytes()).into_owned() })
            }
            Self::Change { path, .. } => Some(Effect::Write { place: Place::Path((*path).clone()) }),
            _ => None,
        }
    }

    /// Returns the name of the action in the schema.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Self::Start { service: None, .. } => "run",
            Self::Start { service: Some(_), .. } => "internal",
            Self::Look { tool, .. } | Self::Change { tool, .. } => tool,
            Self::Effect { effect, .. } => effect.class(),
            Self::UseNetwork => "use-network",
            Self::JoinNetwork { .. } => "join-network",
            Self::Reach { .. } => "reach",
            Self::WidenLimit(_) => "widen-limit",
            Self::ShowCredential(_) => "show-credential",
            Self::ShowInput { .. } => "show-input",
            Self::UseTerminal => "use-terminal",
            Self::Try => "try",
            Self::Apply(_) => "apply",
            Self::ReadRecord(_) => "read-record",
        }
    }
}

impl fmt::Display for Question<'_> {
    /// Says what is asked, to follow after "may this".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { argv, service } => {
                write!(f, "run `{}`", argv.first().map_or_else(String::new, ToString::to_string))?;
                service.map_or(Ok(()), |service| write!(f, " for `{}`", model::text::escape(service)))
            }
            Self::Look { tool, path: Some(path) } | Self::Change { tool, path, .. } => {
                write!(f, "{tool} `{path}`")
            }
            Self::Look { tool, path: None } => write!(f, "{tool} the workspace"),
            Self::Effect { effect, .. } => effect.fmt(f),
            Self::UseNetwork => f.write_str("use the host's network"),
            Self::JoinNetwork { action, known } => {
                write!(f, "use the network of {action}{}", standing(*known))
            }
            Self::Reach { rule, .. } => write!(f, "reach `{rule}`"),
            Self::WidenLimit(Widening { limit, shown, .. }) => {
                write!(f, "have a wider limit ({limit}: {shown})")
            }
            Self::ShowCredential(path) => write!(f, "see the credential file `{path}`"),
            Self::ShowInput { input, .. } => write!(f, "see `{}` of the host", input.source),
            Self::UseTerminal => f.write_str("use a terminal"),
            Self::Try => f.write_str("be tried on a throwaway layer"),
            Self::Apply(apply) => apply.fmt(f),
            Self::ReadRecord(reading) => reading.fmt(f),
        }
    }
}

/// Says of another action what stands in the way of joining it.
fn standing(known: Option<OtherAction>) -> &'static str {
    match known {
        None => ", of which nothing is known",
        Some(OtherAction { progress: Progress::NotStarted, .. }) => ", which has not started",
        Some(OtherAction { progress: Progress::Ended, .. }) => ", which has ended",
        Some(OtherAction { same_task: false, progress: Progress::Running }) => ", which runs in another task",
        Some(OtherAction { same_task: true, progress: Progress::Running }) => "",
    }
}

/// Returns the classes of a path, or the one that says that nobody has looked.
pub(crate) fn classes_or_unknown(classes: Option<&Classes>) -> Classes {
    classes.cloned().unwrap_or_else(|| BTreeSet::from([UNCLASSIFIED.to_owned()]))
}

/// Returns the name by which policy knows the access to the workspace.
pub(crate) fn access_name(access: WorkspaceAccess) -> &'static str {
    match access {
        WorkspaceAccess::ReadOnly => "read-only",
        WorkspaceAccess::ReadWrite => "read-write",
    }
}

/// Tells whether a program, as it was written, is a file of the workspace.
///
/// A name without a slash is looked up in PATH, inside. Links are not followed here: this describes the request to
/// the policy, it is not what holds the program.
pub(crate) fn is_in_workspace(program: &OsText, workspace: &Path, directory: Option<&WorkspacePath>) -> bool {
    if !program.as_bytes().contains(&b'/') {
        return false;
    }
    let start =
        directory.map_or_else(|| workspace.to_owned(), |directory| workspace.join(directory.as_path()));
    without_dots(&start.join(program.as_path())).starts_with(without_dots(workspace))
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(program: &str, directory: Option<&str>) -> bool {
        let directory = directory.map(|directory| WorkspacePath::parse(directory).expect("inside"));
        is_in_workspace(&OsText::try_from(program).expect("no NUL"), Path::new("/ws"), directory.as_ref())
    }

    #[test]
    fn a_program_of_the_workspace_is_known_however_it_is_written() {
        assert!(inside("./build.sh", None));
        assert!(inside("target/debug/x", None));
        assert!(inside("../build.sh", Some("sub")));
        assert!(inside("/ws/build.sh", None));
        assert!(inside("/usr/../ws/./build.sh", None));
    }

    #[test]
    fn a_program_elsewhere_is_not_taken_for_one_of_the_workspace() {
        assert!(!inside("cargo", None));
        assert!(!inside("/usr/bin/cargo", None));
        assert!(!inside("../ws-evil/x", None));
        assert!(!inside("/ws/../usr/bin/env", None));
    }

    #[test]
    fn every_way_of_asking_for_more_than_the_profile_is_found() {
        let strict = Profile {
            reads: model::Level::Watched,
            unlisted_program: model::UnlistedProgram::End,
            ..Profile::strict()
        };
        let mut asked = Profile { limits: Profile::default_profile().limits, ..strict.clone() };
        asked.disk_limits = model::Level::Absent;
        asked.cgroup_limits = model::Level::Absent;
        asked.reads = model::Level::Absent;
        asked.unlisted_program = model::UnlistedProgram::Refuse;
        let found: Vec<String> =
            widenings(&asked, &strict).into_iter().map(|widening| widening.limit).collect();
        let limits =
            ["memory", "processes", "wall-time", "disk", "files", "output", "open-files", "file-size"];
        let others = ["cgroup-firmness", "disk-firmness", "reads-firmness", "disk-mode", "unlisted-program"];
        assert_eq!(found, [limits.as_slice(), &others].concat());
        assert!(widenings(&strict, &asked).is_empty());
    }
}
