//! Takes a sandbox down, and looks whether anything is left of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::evidence::Teardown;

use crate::fail_point;
use crate::native::Prepared;
use crate::quota::Quota;

/// Takes down what is left when the first process has been waited for.
///
/// The kernel has ended every process of the namespace before that, and with the last of them the mount, network,
/// IPC and other namespaces and all that was mounted in them (`namespaces(7)`). What remains is ours: descriptors
/// that keep the store alive, and the directory of the run.
pub(crate) fn tear_down(prepared: Prepared) -> Teardown {
    let Prepared {
        groups, spec, first_process, control, streams, store, reads, door, quota, gateway, ..
    } = prepared;
    let mut gone = vec![spec.workspace.layer.join("work")];
    gone.extend(spec.git_layer().map(|layer| layer.join("work")));
    let mut teardown = Teardown::default();
    teardown.gone.push("processes: the first process was waited for".to_owned());
    drop((first_process, control, streams, store, reads, door, gateway));
    if spec.gateway.is_some() {
        teardown.gone.push("gateway: its process was waited for, and its sockets are closed".to_owned());
    }
    let had_image = matches!(&quota, Quota::Image(_));
    quota.let_go();
    if had_image {
        teardown.gone.push("image: unmounted, and its file and loop device given up".to_owned());
    }
    teardown.gone.push("descriptors: store, streams, network and control socket closed".to_owned());
    fail_point::reached("teardown: the descriptors are closed");
    match groups.remove() {
        Some(Ok(gone)) => teardown.gone.push(gone),
        Some(Err(left)) => teardown.left.push(left),
        None => {}
    }
    fail_point::reached("teardown: the control groups are removed");
    // The directory of the run stays: it says that its owner lives, who has to record the end yet.
    let emptied = (spec.run_directory.clone(), clear_directory(&spec.run_directory));
    let removed = gone.into_iter().map(|directory| {
        let removed = remove_tree(&directory);
        (directory, removed)
    });
    for (directory, done) in std::iter::once(emptied).chain(removed) {
        match done {
            Ok(()) => teardown.gone.push(format!("directory: {}", directory.display())),
            Err(error) => teardown.left.push(format!("directory {}: {error}", directory.display())),
        }
    }
    fail_point::reached("teardown: the directories are removed");
    teardown
}

/// Removes a directory with all that is in it. Directories that the command closed to everybody are opened first.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_tree(directory: &Path) -> io::Result<()> {
    let first = match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result,
    };
    first.or_else(|_| {
        open_up(directory)?;
        fs::remove_dir_all(directory)
    })
}

/// Removes all that is in a directory, which stays.
///
/// # Errors
/// When something in it cannot be removed.
pub fn clear_directory(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory { remove_tree(&entry.path()) } else { fs::remove_file(entry.path()) }?;
    }
    Ok(())
}

/// Lets the owner into every directory below, without following links.
fn open_up(directory: &Path) -> io::Result<()> {
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}
