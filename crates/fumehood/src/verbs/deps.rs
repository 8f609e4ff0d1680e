//! `deps`: the packages that came from registries, for whom, and as a bill of materials.

use std::collections::BTreeSet;

use engine::store::StoredPackage;
use model::egress::RegistryKind;

use super::context::Context;
use crate::args::{DepsListArgs, DepsSbomArgs, DepsWhoUsedArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{DepsDocument, DepsRow, SbomDocument};

/// Lists what came.
pub(super) fn list(context: &Context<'_>, args: &DepsListArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let packages = engine.store().read(|reader| {
        let task = args.task.as_ref().map(|named| reader.find_task(named.as_str())).transpose()?;
        reader.packages_of_task(task.as_ref().map(|task| &task.id))
    })?;
    answer(context, packages);
    Ok(Exit::Success)
}

/// Finds for whom a package came.
pub(super) fn who_used(context: &Context<'_>, args: &DepsWhoUsedArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    // Each kind has its own form of a name, and nobody has to know which kind it was.
    let names: BTreeSet<String> =
        RegistryKind::ALL.iter().filter_map(|kind| kind.name(&args.package.name)).collect();
    let mut packages = Vec::new();
    for name in names {
        let found =
            engine.store().read(|reader| reader.packages_named(&name, args.package.version.as_deref()))?;
        packages.extend(
            found.into_iter().filter(|one| one.kind.name(&args.package.name).as_ref() == Some(&one.name)),
        );
    }
    let found = !packages.is_empty();
    answer(context, packages);
    Ok(Exit::answer(found))
}

fn answer(context: &Context<'_>, packages: Vec<StoredPackage>) {
    let document = DepsDocument { packages: packages.into_iter().map(row).collect() };
    context.console.answer(&document, |paint| render::deps(&document, paint));
}

fn row(package: StoredPackage) -> DepsRow {
    DepsRow {
        kind: package.kind.to_string(),
        name: package.name,
        version: package.version,
        registry: package.registry,
        digest: package.digest.to_string(),
        locked: package.locked,
        task: package.task,
        action: package.action,
        at: package.at,
    }
}

/// Writes what came for an action as a bill of materials.
pub(super) fn sbom(context: &Context<'_>, args: &DepsSbomArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let (action, packages) = engine.store().read(|reader| {
        let action = reader.find_action(args.action.as_str())?;
        let packages = reader.packages_of_action(&action.id)?;
        Ok((action, packages))
    })?;
    let document = SbomDocument::of(&action.id, &packages);
    context.console.print_bytes(&document.bytes());
    Ok(Exit::Success)
}
