//! Privileges and the second wall: what the first process takes away from itself, and so from all that follow.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use launcher::message::LandlockReport;
use launcher::plan::Plan;
use rustix::fs::FileType;

use crate::failure::{Context, Done, Failure};
use crate::mutant::leaves_out;
use crate::root::path_of;
use crate::sys;

/// The highest capability number that any kernel knows today, with room (`linux/capability.h`: 40).
const CAPABILITIES: u64 = 64;
/// Locks the rule that root has no capabilities by being root, and that ids can not be changed to get any.
const SECUREBITS_LOCKED: u64 = 0b1010_1111;

/// Empties the bounding set and all capability sets, and forbids to gain privileges by `execve`.
pub(crate) fn drop_privileges(plan: &Plan) -> Done {
    if !leaves_out(plan, "capabilities") {
        sys::prctl(libc::PR_SET_SECUREBITS, SECUREBITS_LOCKED, 0).during("capabilities", "securebits")?;
        drop_bounding_set()?;
        sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64, 0)
            .during("capabilities", "ambient")?;
        sys::drop_capabilities().during("capabilities", "capset")?;
    }
    if !leaves_out(plan, "no-new-privs") {
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).during("no-new-privs", "")?;
    }
    Ok(())
}

fn drop_bounding_set() -> Done {
    for capability in 0..CAPABILITIES {
        match sys::prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error).during("capabilities", "bounding set"),
        }
    }
    Ok(())
}

/// Puts this process and all that follow into a Landlock domain: everything shown can be read, only the places of
/// the plan can be written, and signals and abstract sockets stay inside.
pub(crate) fn enter_landlock(plan: &Plan) -> Done<LandlockReport> {
    if leaves_out(plan, "landlock") {
        return Ok(LandlockReport::default());
    }
    let wrong = |error: &dyn std::error::Error| Failure::new("landlock", error.to_string());
    let abi = ABI::V6;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|ruleset| match leaves_out(plan, "landlock-scope") {
            true => Ok(ruleset),
            false => ruleset.set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(abi)),
        })
        .and_then(|ruleset| ruleset.create())
        .map_err(|error| wrong(&error))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let top = if plan.programs.is_some() { read } else { read | AccessFs::Execute };
    let mut rules = vec![(b"/".as_slice(), top)];
    for program in plan.programs.iter().flat_map(|list| list.files.iter().chain(&list.loaders)) {
        rules.push((program, AccessFs::ReadFile | AccessFs::Execute));
    }
    let write = AccessFs::from_all(ABI::V5) & !AccessFs::Execute;
    rules.extend(plan.writable.iter().map(|place| (place.as_slice(), write)));
    for (path, access) in rules {
        let place = PathFd::new(path_of(path)).map_err(|error| wrong(&error))?;
        let rule = PathBeneath::new(place, access_for(path_of(path), access)?);
        ruleset = ruleset.add_rule(rule).map_err(|error| wrong(&error))?;
    }
    // The flag is set by [`drop_privileges`]; set twice, nobody would notice that the first time is missing.
    let status = ruleset.no_new_privs(false).restrict_self().map_err(|error| wrong(&error))?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32).cast_unsigned()
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    let full = status.ruleset == RulesetStatus::FullyEnforced;
    Ok(LandlockReport { abi, full, scoped: full && abi >= 6 })
}

/// Returns the part of the access that fits the kind of thing: Landlock refuses directory rights for a file.
fn access_for(
    path: &std::path::Path,
    access: landlock::BitFlags<AccessFs>,
) -> Done<landlock::BitFlags<AccessFs>> {
    let stat = rustix::fs::stat(path).during("landlock", path.as_os_str().as_encoded_bytes())?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    Ok(if is_directory { access } else { access & AccessFs::from_file(ABI::V5) })
}
