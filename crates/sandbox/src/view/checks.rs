//! Refuses workspaces and state directories that would show what must not be seen.

use std::path::Path;

use super::assembly::Assembly;
use super::error::ViewError;
use super::files::Files;
use super::host::Host;
use super::piece::Piece;

/// Parts of the system that are no home and no workspace, nor is anything in them.
const SYSTEM_PLACES: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/boot", "/dev", "/proc", "/sys",
];

/// Parts of the system in which a workspace may lie, but which are none themselves.
const AROUND: [&str; 6] = ["/", "/usr", "/etc", "/var", "/run", "/home"];

/// Parts of the system in which no workspace may lie.
const WITHIN: [&str; 4] = ["/boot", "/dev", "/proc", "/sys"];

/// Checks what the caller tells about the host.
pub(crate) fn check(host: &Host) -> Result<(), ViewError> {
    for (what, path) in
        [("home", &host.home), ("workspace", &host.workspace), ("state directory", &host.state_dir)]
    {
        if !path.is_absolute() {
            return Err(ViewError::Relative { what, path: path.clone() });
        }
    }
    check_system(&host.workspace)?;
    check_home(host)?;
    let (state, workspace) = (host.state_dir.clone(), host.workspace.clone());
    if state.starts_with(&workspace) || workspace.starts_with(&state) {
        return Err(ViewError::StateInWorkspace { state, workspace });
    }
    Ok(())
}

fn check_system(workspace: &Path) -> Result<(), ViewError> {
    let is_or_holds =
        SYSTEM_PLACES.iter().chain(&AROUND).find(|system| Path::new(system).starts_with(workspace));
    let lies_in = WITHIN.iter().find(|system| workspace.starts_with(system) && !lies_in_memory(workspace));
    match is_or_holds.or(lies_in) {
        Some(system) => Err(ViewError::WorkspaceIsSystem { workspace: workspace.to_owned(), system }),
        None => Ok(()),
    }
}

/// Tells whether a path is a part of the system that is no home, nor is anything in it.
pub(crate) fn is_system(path: &Path) -> bool {
    SYSTEM_PLACES.iter().any(|place| path.starts_with(place)) && !lies_in_memory(path)
}

/// Tells whether a path lies in the place for files in memory, which holds ordinary directories of ordinary users: in a
/// container it may be the only one that is no overlay.
fn lies_in_memory(workspace: &Path) -> bool {
    workspace.strip_prefix("/dev/shm").is_ok_and(|below| below != Path::new(""))
}

fn check_home(host: &Host) -> Result<(), ViewError> {
    let real = Files::of(host).walk(&host.home).real.clone();
    let held = [&host.home, &real].into_iter().find(|home| home.starts_with(&host.workspace));
    match held {
        Some(home) => {
            Err(ViewError::WorkspaceHoldsHome { workspace: host.workspace.clone(), home: home.clone() })
        }
        None => Ok(()),
    }
}

/// Checks that the state directory lies in nothing that is shown.
pub(crate) fn check_state(assembly: &Assembly<'_>) -> Result<(), ViewError> {
    let state = &assembly.host.state_dir;
    match assembly.covering(state) {
        Some(piece @ (Piece::ReadOnly { .. } | Piece::Overlay { .. })) => {
            Err(ViewError::StateIsShown { state: state.clone(), piece: piece.target().to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_memory_can_be_a_workspace() {
        assert!(check_system(Path::new("/dev/shm/project")).is_ok());
        for place in ["/dev/shm", "/dev", "/dev/shmem", "/dev/mqueue/project"] {
            assert!(check_system(Path::new(place)).is_err(), "{place}");
        }
    }
}
