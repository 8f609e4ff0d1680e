//! What a task changed, all its layers together: for diffs, and for applying.

use inspect::layer::{self, Bounds};
use inspect::protected::is_git_bookkeeping;
use inspect::{Inspection, Report, Rules, Stack, Tree};
use model::task::Task;
use model::{ActionId, WorkspacePath};

use crate::Engine;
use crate::credentials::CanaryIn;
use crate::error::EngineError;
use crate::ignore_rules;
use crate::masks;
use crate::store::StoredLayer;

/// What a task changed.
#[derive(Debug)]
pub struct Review {
    /// The changes that were asked for.
    pub report: Report,
    /// What of it may leave.
    pub inspection: Inspection,
    /// The layers that it stands on, oldest first.
    pub layers: Vec<StoredLayer>,
}

/// Which changes of a task are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those that somebody decides about before they reach the host: not what git keeps of its own state, and what git
    /// ignores only when that was asked for.
    ToApply {
        /// Whether it was.
        include_ignored: bool,
    },
}

impl Engine {
    /// Opens the layers of a task over its base.
    ///
    /// # Errors
    /// When a layer or the base cannot be opened.
    pub fn stack(&self, task: &Task, layers: &[StoredLayer]) -> Result<Stack, EngineError> {
        Ok(Stack::new(self.open_layers(&task.id, layers)?, vec![Tree::open(&self.base_of(task))?]))
    }

    /// Opens the layer of one action over what was below it.
    ///
    /// # Errors
    /// When the action has no layer, or it cannot be opened.
    pub fn stack_of_action(&self, task: &Task, action: &ActionId) -> Result<Stack, EngineError> {
        let stored = self.store().read(|reader| reader.action(action))?;
        let no_layer =
            || EngineError::Nothing(format!("action {action} left no layer: nothing was changed by it"));
        let start = stored.ok_or_else(no_layer)?.start;
        let all = self.store().read(|reader| reader.layers(&task.id))?;
        let below: Vec<StoredLayer> =
            all.iter().filter(|layer| start.layers.contains(&layer.action)).cloned().collect();
        let upper = self.places().layer(&task.id, action).join("upper");
        if !upper.exists() {
            return Err(no_layer());
        }
        let mut lowers = self.open_layers(&task.id, &below)?;
        lowers.push(Tree::open(&self.base_of(task))?);
        Ok(Stack::new(vec![Tree::open(&upper)?], lowers))
    }

    /// Reads what a task changed, and sorts what of it may leave.
    ///
    /// # Errors
    /// When a layer or the base cannot be read.
    pub fn review(&self, task: &Task, scope: Scope) -> Result<Review, EngineError> {
        let layers = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let stack = self.stack(task, &layers)?;
        let mut report = layer::read(&stack, Bounds::default())?;
        masks::add(&mut report, self.made_credentials(&task.id, &stack)?);
        let canaries = self.canaries_in(&task.id, &report, &stack)?;
        masks::add(&mut report, canaries.iter().map(CanaryIn::found).collect());
        ignore_rules::mark(&mut report.changes, &self.base_of(task), &stack);
        if let Scope::ToApply { include_ignored } = scope {
            report
                .changes
                .retain(|change| (include_ignored || !change.ignored) && !is_git_bookkeeping(&change.path));
        }
        let rules = self.accepting(self.rules(task), &task.id)?;
        let inspection = inspect::inspect(stack, &report, &rules)?;
        Ok(Review { report, inspection, layers })
    }

    /// Returns the rules for protected paths of a task: the built-in ones, and where its git looks for hooks.
    pub(crate) fn rules(&self, task: &Task) -> Rules {
        let built_in = Rules::built_in().clone();
        let config = std::fs::read(self.base_of(task).join(".git/config")).unwrap_or_default();
        let hooks = inspect::credentials::hooks_path(&config);
        let inside = hooks.and_then(|path| {
            WorkspacePath::parse(std::path::Path::new(std::ffi::OsStr::new(&*String::from_utf8_lossy(&path))))
                .ok()
        });
        inside.map_or_else(|| built_in.clone(), |path| built_in.clone().with_hooks_in(&path))
    }
}
