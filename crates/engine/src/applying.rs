//! Applying a task: decided, recorded and permitted like an action, and written by `apply`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gate::{Apply, ApplyMode, ApplySource, Approval, Decision, Gate, Permit, Subject as _};
use inspect::protected::classify;
use inspect::{Artifacts, Consent, Held, Inspection};
use model::action::Principal;
use model::event::HeldBack;
use model::quorum::PERSON;
use model::task::{Task, TaskState};
use model::{ActionId, Change, TaskId, Timestamp, WorkspacePath};

use crate::Engine;
use crate::apply::{self, Applied, Base, BaseStats, Below, Target};
use crate::clock::now;
use crate::error::EngineError;
use crate::intent::{Intent, Purpose};
use crate::review::{Review, Scope};
use crate::store::StoredLayer;
use crate::tasks::about;

/// What a run saw below its layer, in the layer's directory.
const BASE_STATS: &str = "base.json";
/// The largest file of a checked out base that is merged with an edit of the host.
const CONTENT_MAX: u64 = 16 << 20;
/// How long a person's yes to changes that were just shown holds.
const CONSENT_HOLDS: Duration = Duration::from_secs(300);

/// How a task is to be applied.
pub struct ApplyOrder<'a> {
    /// Who wants it.
    pub principal: Principal,
    /// How much was said beforehand.
    pub mode: ApplyMode,
    /// Whether what git ignores goes too.
    pub include_ignored: bool,
    /// Which paths are meant.
    pub only: &'a dyn Fn(&WorkspacePath) -> bool,
    /// Protected paths that a person has looked at and said yes to, and who that was.
    pub consent: Option<Consent>,
    /// Whether the task stays open even when all of it is written.
    pub stays_open: bool,
}

/// What became of applying a task.
#[derive(Debug)]
pub struct AppliedTask {
    /// What was written, and what met an edit of the host.
    pub applied: Applied,
    /// What waits for a person, or stays.
    pub held: Vec<HeldBack>,
    /// Where the task stands now.
    pub state: TaskState,
}

impl AppliedTask {
    /// Returns what it is when nothing was written.
    pub fn nothing(task: &Task) -> Self {
        Self { applied: Applied::default(), held: Vec::new(), state: task.state }
    }
}

impl Engine {
    /// Writes what a task changed to its directory on the host, as far as policy and a person let it.
    ///
    /// # Errors
    /// When the task is busy, its layers cannot be read, or nothing could be written.
    pub fn apply_task(&self, task: &Task, order: ApplyOrder<'_>) -> Result<AppliedTask, EngineError> {
        let gate = self.gate_of_task(task)?;
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let Review { inspection, layers, report } =
            self.review(task, Scope::ToApply { include_ignored: order.include_ignored })?;
        let (artifacts, held) = released(inspection, order.consent.as_ref())?;
        let all = artifacts.items().len();
        let artifacts = artifacts.narrowed(|change| (order.only)(&change.path));
        let narrowed = artifacts.items().len() < all;
        let (artifacts, refused) = self.permitted(task, &gate, &order, &layers, artifacts)?;
        if !artifacts.is_empty() {
            let permitted: Vec<Change> = artifacts.items().iter().map(|item| item.change().clone()).collect();
            self.to_approval(task, &report.changes, &permitted)?;
        }
        let mut held: Vec<HeldBack> = held.iter().map(Held::record).collect();
        held.extend(refused);
        let names = layers.iter().map(|layer| layer.action.clone()).collect();
        let stays_open = narrowed || order.stays_open;
        let intent = Intent::new(task, Purpose::Apply { layers: names, held, stays_open })?;
        let base = self.known_base(task, &layers)?;
        let applied = self.carry_out(task, &intent, |target| write(artifacts, &base, target))?;
        if applied.state == TaskState::Applied {
            self.end_requests(&task.id, "its task was applied")?;
        }
        Ok(applied)
    }

    /// Asks the policy about the changes, one group of classes at a time, and keeps those that it permits.
    fn permitted(
        &self,
        task: &Task,
        gate: &Gate,
        order: &ApplyOrder<'_>,
        layers: &[StoredLayer],
        artifacts: Artifacts,
    ) -> Result<(Artifacts, Vec<HeldBack>), EngineError> {
        let mut groups: BTreeMap<Vec<&'static str>, Vec<Change>> = BTreeMap::new();
        for item in artifacts.items() {
            groups.entry(classes_of(item.change())).or_default().push(item.change().clone());
        }
        let mut refused = Vec::new();
        for (classes, changes) in groups {
            let consent = order.consent.as_ref();
            let asked = Asked { gate, principal: &order.principal, mode: order.mode, consent };
            if let Err(why) = self.permit_group(task, &asked, layers, &classes, &changes)? {
                refused.extend(changes.into_iter().map(|change| HeldBack {
                    path: change.path.into(),
                    reason: why.0.clone(),
                    why: why.1.clone(),
                }));
            }
        }
        let is_refused =
            |change: &Change| refused.iter().any(|held| held.path.as_bytes() == change.path.as_bytes());
        let kept = artifacts.narrowed(|change| !is_refused(change));
        Ok((kept, refused))
    }

    /// Decides about one group and records that; answers with the reason when it is not permitted.
    pub(crate) fn permit_group(
        &self,
        task: &Task,
        asked: &Asked<'_>,
        layers: &[StoredLayer],
        classes: &[&'static str],
        changes: &[Change],
    ) -> Result<Result<Permit<Apply>, (String, String)>, EngineError> {
        let names: Vec<ActionId> = layers.iter().map(|layer| layer.action.clone()).collect();
        let source = ApplySource { task: &task.id, workspace: &task.workspace.path, layers: &names };
        let classes = classes.iter().map(|class| (*class).to_owned()).collect();
        let apply = Apply::new(asked.principal.clone(), asked.mode, source, changes, classes);
        let time = now();
        let approvals = approvals(asked, &apply, self.config().account, time);
        let decision = asked.gate.decide_apply(apply, &approvals, &self.config().owners, time);
        let receipt = self.log.append(&about(&task.id), &decision.event(), time)?;
        Ok(match decision {
            Decision::Allow(yes) | Decision::Narrow(yes) => {
                Ok(yes.recorded(&receipt).map_err(|mismatch| EngineError::Nothing(mismatch.to_string()))?)
            }
            other => Err((other.record().reason.clone(), other.record().advice.clone())),
        })
    }

    /// Returns what the run of an action saw below its layer, where that was kept.
    pub(crate) fn base_stats(&self, task: &TaskId, action: &ActionId) -> Option<BaseStats> {
        let bytes = fs::read(self.places().layer(task, action).join(BASE_STATS)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn known_base(&self, task: &Task, layers: &[StoredLayer]) -> Result<KnownBase, EngineError> {
        let stats = layers.iter().filter_map(|layer| self.base_stats(&layer.home, &layer.action));
        let checked_out = match task.base {
            model::action::Base::Live => None,
            model::action::Base::Commit { .. } => Some(self.base_of(task)),
        };
        let mut stats = BaseStats::of_task(stats);
        for captured in self.taken_back(&task.id) {
            apply::put_back(&captured)?.into_iter().for_each(|file| file.note(&mut stats));
        }
        Ok(KnownBase { stats, checked_out })
    }

    /// Keeps what a run saw below its layer, so that applying it can tell an edit of the host.
    pub(crate) fn keep_base_stats(
        &self,
        task: &TaskId,
        action: &ActionId,
        stats: &BaseStats,
    ) -> Result<(), EngineError> {
        let path = self.places().layer(task, action).join(BASE_STATS);
        let bytes = serde_json::to_vec(stats).map_err(std::io::Error::other);
        bytes.and_then(|bytes| fs::write(&path, bytes)).map_err(EngineError::file("write", &path))
    }
}

/// Writes what was permitted; nothing to write needs no place for what is overwritten.
pub(crate) fn write(
    artifacts: Artifacts,
    base: &KnownBase,
    target: &Target<'_>,
) -> Result<Applied, apply::ApplyError> {
    if artifacts.is_empty() { Ok(Applied::default()) } else { apply::apply(artifacts, base, target) }
}

/// Lets out what may leave: by itself, and what a person said yes to.
fn released(
    inspection: Inspection,
    consent: Option<&Consent>,
) -> Result<(Artifacts, Vec<Held>), EngineError> {
    match (inspection, consent) {
        (Inspection::Held(quarantine), Some(consent)) => Ok(quarantine.released_by(consent)?),
        (inspection, _) => Ok(inspection.without_what_is_held()),
    }
}

/// Names the classes for which a change of this kind waits for a person.
fn classes_of(change: &Change) -> Vec<&'static str> {
    classify(&change.path)
        .into_iter()
        .filter(|class| class.holds(change.kind))
        .map(|class| class.code())
        .collect()
}

/// Makes the approvals that a person's yes to these very changes stands for.
fn approvals(asked: &Asked<'_>, apply: &Apply, account: u32, time: Timestamp) -> Vec<Approval> {
    let holds = u64::try_from(CONSENT_HOLDS.as_nanos()).unwrap_or(u64::MAX);
    let consent = asked.consent.into_iter();
    consent
        .map(|consent| Approval {
            subject: apply.digest(),
            approver: Principal::User(consent.person.clone()),
            account,
            role: PERSON.to_owned(),
            expires: Timestamp::from_nanos(time.as_nanos().saturating_add(holds)),
        })
        .collect()
}

/// Who asks for changes to be written, and what they said.
pub(crate) struct Asked<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) principal: &'a Principal,
    pub(crate) mode: ApplyMode,
    pub(crate) consent: Option<&'a Consent>,
}

/// Returns the yes that lies in a person's own order; an agent's order holds none.
pub(crate) fn yes_of(principal: &Principal) -> Option<Consent> {
    match principal {
        Principal::User(name) => Some(Consent { person: name.clone(), paths: BTreeSet::new() }),
        Principal::Agent(_) | Principal::Engine => None,
    }
}

/// What is known of the base of a task: what its runs saw, and the files of a checked out commit.
pub(crate) struct KnownBase {
    pub(crate) stats: BTreeMap<WorkspacePath, Below>,
    pub(crate) checked_out: Option<PathBuf>,
}

impl Base for KnownBase {
    fn below(&self, path: &WorkspacePath) -> Below {
        match self.checked_out {
            // The commit lies in a directory of its own: the host's file has to be compared by content.
            Some(_) => Below::Unknown,
            None => self.stats.get(path).cloned().unwrap_or(Below::Unknown),
        }
    }

    fn content(&self, path: &WorkspacePath) -> Option<Vec<u8>> {
        read_plain(&self.checked_out.as_ref()?.join(path.as_path()))
    }
}

fn read_plain(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    (found.is_file() && found.len() <= CONTENT_MAX).then(|| fs::read(path).ok())?
}
