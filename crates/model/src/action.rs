//! Requests and actions: what somebody asked for, and what it turned out to be.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::{Canonical, Digest};
use crate::grant::Grant;
use crate::id::{ActionId, TaskId};
use crate::os_text::OsText;
use crate::patch::{self, PatchError};
use crate::path::{PathError, WorkspacePath};

/// What somebody asks for. Nothing in it is believed until [`Action::parse`] has looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// Who asks.
    pub principal: Principal,
    /// What is to be done.
    pub tool: Tool,
    /// Where a program starts, from the top of the workspace; the top when empty. The other tools name their files
    /// from the top and have none.
    #[serde(default)]
    pub directory: Option<WorkspacePath>,
    /// Environment variables to set; the values are never recorded.
    #[serde(default)]
    pub environment: BTreeMap<String, OsText>,
    /// What the asker says it is for. It is shown as a claim and never changes a decision.
    #[serde(default)]
    pub purpose: Option<String>,
}

/// Who asks for an action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum Principal {
    /// A person at a terminal, by user name.
    User(String),
    /// A model behind our own agent loop or somebody else's, by its name.
    Agent(String),
    /// The engine itself, for its helpers (git and the like).
    Engine,
}

/// What is to be done. Every tool is a program in the sandbox in the end; policy sees which one was meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tool {
    /// Run a program.
    Run {
        /// The program and its arguments.
        argv: Vec<OsText>,
    },
    /// Read a file of the workspace.
    Read {
        /// The file.
        path: WorkspacePath,
    },
    /// List a directory of the workspace.
    List {
        /// The directory; the top when missing.
        path: Option<WorkspacePath>,
    },
    /// Search the workspace for a regular expression (POSIX extended).
    Search {
        /// The expression.
        pattern: String,
        /// Where to search; everywhere when missing.
        path: Option<WorkspacePath>,
    },
    /// Replace a file of the workspace, or make it.
    Write {
        /// The file.
        path: WorkspacePath,
        /// What it will hold.
        content: String,
    },
    /// Change files of the workspace by a unified diff.
    Patch {
        /// The files that the diff names; no more and no fewer.
        paths: Vec<WorkspacePath>,
        /// The diff, as [`patch::parse`] writes it.
        diff: String,
    },
}

impl Tool {
    /// Returns the name by which policy and the record know the tool.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Read { .. } => "read",
            Self::List { .. } => "list",
            Self::Search { .. } => "search",
            Self::Write { .. } => "write",
            Self::Patch { .. } => "patch",
        }
    }

    /// Returns the paths that the tool says it will write.
    pub fn writes(&self) -> &[WorkspacePath] {
        match self {
            Self::Write { path, .. } => std::slice::from_ref(path),
            Self::Patch { paths, .. } => paths,
            Self::Run { .. } | Self::Read { .. } | Self::List { .. } | Self::Search { .. } => &[],
        }
    }
}

/// A request that has passed parsing: everything that it will do is fixed, and the digest covers all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    id: ActionId,
    task: TaskId,
    request: ActionRequest,
    grant: Grant,
    start: StartingPoint,
    digest: Digest,
}

/// What an action starts from: the base, and the layers of the earlier actions above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartingPoint {
    /// The workspace directory on the host, resolved.
    pub workspace: OsText,
    /// What is below the layers.
    pub base: Base,
    /// The layers of earlier actions, oldest first.
    pub layers: Vec<ActionId>,
}

/// What is below the layers of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Base {
    /// The workspace directory as it stands, which somebody may edit meanwhile.
    Live,
    /// A commit, checked out into a directory of its own that nobody edits.
    Commit {
        /// The commit's full name.
        commit: String,
    },
}

/// Says why a request is not an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// No program was named.
    #[error("no program is named: give a command after `--`, for example `-- cargo test`")]
    NoProgram,
    /// An environment variable has a name that no shell can set.
    #[error("`{}` cannot be the name of an environment variable: use letters, digits and `_`", crate::text::escape(.0))]
    VariableName(String),
    /// A patch names a path outside the workspace.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A patch is not a unified diff.
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// A patch is not what was read of it: policy would be asked about other files than it changes.
    #[error(
        "the diff does not change exactly the files that are named with it: name every file of its `---` and `+++` lines"
    )]
    PatchPaths,
    /// A directory was given to a tool that names files.
    #[error(
        "only a command starts in a directory: give the paths of other tools from the top of the workspace"
    )]
    Directory,
    /// A search without anything to look for.
    #[error("the search pattern is empty: give a regular expression")]
    EmptyPattern,
}

impl Action {
    /// Parses a request, and fixes the digest over all that will decide what it does.
    ///
    /// # Errors
    /// When the request names no program, an impossible variable, a patch that changes other files than it names, or
    /// a directory for what does not start in one.
    pub fn parse(
        id: ActionId,
        task: TaskId,
        request: ActionRequest,
        grant: Grant,
        start: StartingPoint,
    ) -> Result<Self, ActionError> {
        match &request.tool {
            Tool::Run { argv } if argv.first().is_none_or(|program| program.as_bytes().is_empty()) => {
                return Err(ActionError::NoProgram);
            }
            Tool::Patch { paths, diff } => check_patch(paths, diff)?,
            Tool::Search { pattern, .. } if pattern.is_empty() => return Err(ActionError::EmptyPattern),
            _ => {}
        }
        if request.directory.is_some() && !matches!(request.tool, Tool::Run { .. }) {
            return Err(ActionError::Directory);
        }
        if let Some(name) = request.environment.keys().find(|name| !is_variable_name(name)) {
            return Err(ActionError::VariableName(name.clone()));
        }
        let digest = digest_of(&task, &request, &grant, &start);
        Ok(Self { id, task, request, grant, start, digest })
    }

    /// Returns the name of this action.
    pub fn id(&self) -> &ActionId {
        &self.id
    }

    /// Returns the task that it belongs to.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// Returns what was asked for.
    pub fn request(&self) -> &ActionRequest {
        &self.request
    }

    /// Returns the grant that was asked for.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns what it starts from.
    pub fn start(&self) -> &StartingPoint {
        &self.start
    }

    /// Returns the digest over everything but the action's own name and the purpose that was claimed.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Checks that policy is asked about the very files that the diff changes.
fn check_patch(paths: &[WorkspacePath], diff: &str) -> Result<(), ActionError> {
    let read = patch::parse(diff)?;
    let named: BTreeSet<WorkspacePath> = paths.iter().cloned().collect();
    if read.diff != diff || read.files()? != named {
        return Err(ActionError::PatchPaths);
    }
    Ok(())
}

fn is_variable_name(name: &str) -> bool {
    let starts_well = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn digest_of(task: &TaskId, request: &ActionRequest, grant: &Grant, start: &StartingPoint) -> Digest {
    let mut canonical = Canonical::new("fumehood action 1");
    canonical.field(task.as_str().as_bytes()).value(&request.principal);
    canonical.field(request.tool.name().as_bytes());
    match &request.tool {
        Tool::Run { argv } => canonical.list(argv.iter().map(OsText::as_bytes)),
        Tool::Read { path } => canonical.field(path.as_bytes()),
        Tool::List { path } => canonical.optional(path.as_ref().map(WorkspacePath::as_bytes)),
        Tool::Search { pattern, path } => {
            canonical.field(pattern.as_bytes()).optional(path.as_ref().map(WorkspacePath::as_bytes))
        }
        Tool::Write { path, content } => canonical.field(path.as_bytes()).field(content.as_bytes()),
        Tool::Patch { paths, diff } => {
            canonical.list(paths.iter().map(WorkspacePath::as_bytes)).field(diff.as_bytes())
        }
    };
    canonical.optional(request.directory.as_ref().map(WorkspacePath::as_bytes));
    canonical.number(request.environment.len() as u64);
    for (name, value) in &request.environment {
        canonical.field(name.as_bytes()).field(value.as_bytes());
    }
    canonical.value(grant).value(start).digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    fn run(argv: &[&str]) -> ActionRequest {
        ActionRequest {
            principal: Principal::User("ada".to_owned()),
            tool: Tool::Run { argv: argv.iter().map(|a| OsText::try_from(*a).expect("no NUL")).collect() },
            directory: None,
            environment: BTreeMap::new(),
            purpose: None,
        }
    }

    fn parse(request: ActionRequest) -> Result<Action, ActionError> {
        let start = StartingPoint {
            workspace: OsText::try_from("/ws").expect("no NUL"),
            base: Base::Live,
            layers: Vec::new(),
        };
        let grant = Grant::under(Profile::strict());
        Action::parse(ActionId::from_random([0; 10]), TaskId::from_random([0; 10]), request, grant, start)
    }

    #[test]
    fn splitting_an_argument_makes_another_action() {
        let digest = |argv: &[&str]| parse(run(argv)).expect("parses").digest();
        assert_ne!(digest(&["echo", "a b"]), digest(&["echo", "a", "b"]));
        assert_ne!(digest(&["echo", "ab"]), digest(&["echo", "a", "b"]));
        assert_ne!(digest(&["echo", "ab", "c"]), digest(&["echo", "a", "bc"]));
        assert_ne!(digest(&["echo", "a"]), digest(&["echo", "a", ""]));
    }

    #[test]
    fn a_claimed_purpose_changes_nothing() {
        let plain = parse(run(&["true"])).expect("parses");
        let claimed = parse(ActionRequest { purpose: Some("urgent".to_owned()), ..run(&["true"]) });
        assert_eq!(plain.digest(), claimed.expect("parses").digest());
    }

    #[test]
    fn a_request_without_a_program_is_refused() {
        assert_eq!(parse(run(&[])), Err(ActionError::NoProgram));
        assert_eq!(parse(run(&[""])), Err(ActionError::NoProgram));
    }

    #[test]
    fn a_variable_with_an_impossible_name_is_refused() {
        for name in ["", "1A", "A=B", "A\nB"] {
            let environment = [(name.to_owned(), OsText::try_from("x").expect("no NUL"))].into();
            let request = ActionRequest { environment, ..run(&["true"]) };
            assert_eq!(parse(request), Err(ActionError::VariableName(name.to_owned())));
        }
    }
    const DIFF: &str = "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-a\n+b\n";

    fn patch(paths: &[&str], diff: &str) -> ActionRequest {
        let paths = paths.iter().map(|path| WorkspacePath::parse(path).expect("inside")).collect();
        ActionRequest { tool: Tool::Patch { paths, diff: diff.to_owned() }, ..run(&["true"]) }
    }

    #[test]
    fn a_patch_names_exactly_the_files_that_it_changes() {
        assert!(parse(patch(&["src/x"], DIFF)).is_ok());
        let hidden = format!("{DIFF}--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+sh\n");
        for (paths, diff) in [
            (&[][..], DIFF),
            (&["src/y"], DIFF),
            (&["src/x", "src/y"], DIFF),
            (&["src/x"], &hidden),
            // Read rightly only after its counts are put right: what git makes of it is not what we saw.
            (&["src/x"], &DIFF.replace("@@ -1 +1 @@", "@@ -1,4 +1,4 @@")),
        ] {
            assert_eq!(parse(patch(paths, diff)), Err(ActionError::PatchPaths), "{paths:?} {diff}");
        }
        assert!(matches!(parse(patch(&["src/x"], "rename x")), Err(ActionError::Patch(_))));
        assert!(matches!(parse(patch(&["x"], &DIFF.replace("/src/", "/../"))), Err(ActionError::Path(_))));
    }

    #[test]
    fn only_a_command_starts_in_a_directory() {
        let directory = Some(WorkspacePath::parse(".git").expect("inside"));
        assert!(parse(ActionRequest { directory: directory.clone(), ..run(&["true"]) }).is_ok());
        let write =
            Tool::Write { path: WorkspacePath::parse("hooks/x").expect("inside"), content: String::new() };
        for tool in [write, patch(&["src/x"], DIFF).tool] {
            let request = ActionRequest { directory: directory.clone(), tool, ..run(&["true"]) };
            assert_eq!(parse(request), Err(ActionError::Directory));
        }
    }
}
