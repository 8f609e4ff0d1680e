//! What a run starts from: the base, the layers above it, and what of them is covered.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inspect::credentials::FoundKind;
use inspect::{Stack, Tree};
use model::action::Base;
use model::task::Task;
use model::{TaskId, WorkspacePath};
use sandbox::{GitDirectory, Identity};

use crate::Engine;
use crate::checkpoint::Lowers;
use crate::error::EngineError;
use crate::git_dirs;
use crate::handle::{Manner, Order};
use crate::inputs::is_in_an_input;
use crate::store::StoredLayer;
use crate::workspace::Workspace;

/// What a run starts from. Two runs that start from equal things see the same workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its task.
    pub(crate) task: TaskId,
    /// The layers that it starts from, oldest first.
    pub(crate) layers: Vec<StoredLayer>,
    /// The directories that show them, newest first: a checkpoint stands for most.
    pub(crate) lowers: Vec<PathBuf>,
    /// The repository behind the workspace, when that is a linked worktree.
    pub(crate) git_directory: Option<GitDirectory>,
    /// What is below them.
    pub(crate) base_kind: Base,
    /// Where that is.
    pub(crate) base: PathBuf,
    /// Whose files it holds.
    pub(crate) base_owner: Identity,
    /// The directory on the host.
    pub(crate) workspace: Workspace,
    /// Who the command will be.
    pub(crate) identity: Identity,
    /// What is covered: credential files, and what the order hides.
    pub(crate) masked: Vec<WorkspacePath>,
    /// Files of the inputs that are not shown as they are, by their paths inside.
    pub(crate) masked_inputs: Vec<PathBuf>,
    /// What is shown with other contents than it has.
    pub(crate) covers: Vec<(PathBuf, Vec<u8>)>,
    /// The layer that a mutant of the builder leaves out.
    pub(crate) mutant: Option<String>,
    /// Whether a helper of ours runs, which leaves no layer.
    pub(crate) is_helper: bool,
}

impl Start {
    /// Looks up what an order starts from.
    pub(crate) fn of(
        engine: &Engine,
        task: &Task,
        order: &Order,
        manner: Manner<'_>,
    ) -> Result<Self, EngineError> {
        let is_helper = manner.service.is_some();
        // Most helpers look at the host's directory: it is what the task's own base is made from.
        let (base, base_kind, layers) = if is_helper && !manner.on_layers {
            (task.workspace.path.to_path_buf(), Base::Live, Vec::new())
        } else {
            let layers = engine.store().read(|reader| reader.kept_layers(&task.id))?;
            (engine.base_of(task), task.base.clone(), layers)
        };
        let Lowers { workspace: lowers, git } = engine.lowers(&task.id, &layers)?;
        let repository = git_dirs::repository_of_worktree(&base);
        let git_directory = repository.map(|path| GitDirectory { path, layers: git });
        let on_disk = std::fs::metadata(&base).map_err(EngineError::file("look at", &base))?;
        let (masked, mut covers) = engine.masked(&task.id, &base, &lowers, order)?;
        // What our own helpers are given is a repository as git needs it.
        let inputs = if is_helper { &[][..] } else { &order.grant.inputs };
        covers.extend(engine.covers_of_inputs(inputs)?);
        let masked_inputs = covers.iter().map(|(path, _)| path).filter(|path| is_in_an_input(path, inputs));
        let masked_inputs = masked_inputs.cloned().collect();
        if let Some(git) = &git_directory {
            covers.extend(git_dirs::repository_cover(&open(&git.layers, &git.path)?, &git.path));
        }
        Ok(Self {
            task: task.id.clone(),
            layers,
            lowers,
            git_directory,
            base_kind,
            base,
            base_owner: Identity { uid: on_disk.uid(), gid: on_disk.gid() },
            workspace: order.workspace.clone(),
            identity: engine.run_identity(&order.workspace),
            masked,
            masked_inputs,
            covers,
            mutant: order.mutant.clone(),
            is_helper,
        })
    }
}

impl Engine {
    /// Names what is covered in a workspace: credential files, what the order hides, and git configuration that is
    /// shown without the credentials in it.
    #[allow(clippy::type_complexity, reason = "two lists of what is covered, one with what is seen instead")]
    fn masked(
        &self,
        task: &TaskId,
        base: &Path,
        lowers: &[PathBuf],
        order: &Order,
    ) -> Result<(Vec<WorkspacePath>, Vec<(PathBuf, Vec<u8>)>), EngineError> {
        let scan = self.scan_base(base)?;
        refuse_base(&scan, base)?;
        let now = Stack::new(Vec::new(), open(lowers, base)?);
        let found = self.credentials(task, base, scan, &now)?;
        self.learn_files(&found, &now);
        let covers = git_dirs::covers(&found, &now, &order.workspace.path);
        let shown = &order.grant.shown_credentials;
        let mut masked: Vec<WorkspacePath> = found
            .into_iter()
            .filter(|found| found.kind == FoundKind::File && !shown.contains(&found.path))
            .map(|found| found.path)
            .collect();
        masked.extend(order.grant.hidden.iter().cloned());
        Ok((masked, covers))
    }
}

/// Opens what is mounted below a layer.
pub(crate) fn open(lowers: &[PathBuf], base: &Path) -> Result<Vec<Tree>, EngineError> {
    let all = lowers.iter().map(PathBuf::as_path).chain([base]);
    Ok(all.map(Tree::open).collect::<Result<_, _>>()?)
}

/// Refuses a base that a mount would read otherwise than it is, or that cannot be below an overlay.
fn refuse_base(scan: &inspect::credentials::BaseScan, base: &Path) -> Result<(), EngineError> {
    let refuse = |why: String| Err(EngineError::Workspace { path: base.to_owned(), why });
    if let Some(foreign) = scan.foreign.first() {
        let why = format!(
            "`{}` carries attributes of an overlay, which a mount would obey; remove them with `setfattr -x`",
            foreign.path()
        );
        return refuse(why);
    }
    match scan.mount_points.first() {
        Some(mounted) => refuse(format!(
            "something is mounted at `{mounted}` inside it, and the kernel puts no overlay over that; unmount it, or work \
             in a clone"
        )),
        None => Ok(()),
    }
}
