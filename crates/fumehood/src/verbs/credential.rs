//! `credential`: which there are, who has one, and taking one back at once.

use engine::{Credential, Engine};

use super::ancestry::refuse_agents;
use super::context::Context;
use super::order::no_credential;
use crate::args::{CredentialRevokeArgs, CredentialRotateArgs, CredentialShowArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{
    CredentialChangeDocument, CredentialDocument, CredentialRow, CredentialsDocument, LeaseRow,
};

/// How many ended leases are shown.
const SHOWN: u32 = 20;

/// Lists the credentials of the settings.
pub(super) fn list(context: &Context<'_>) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let rows = engine.config().credentials.iter().map(|credential| row(&engine, credential));
    let document = CredentialsDocument { credentials: rows.collect::<Result<_, _>>()? };
    context.console.answer(&document, |paint| render::credentials(&document, paint));
    Ok(Exit::Success)
}

fn row(engine: &Engine, credential: &Credential) -> Result<CredentialRow, CliError> {
    let name = &credential.name;
    let (revoked, open) =
        engine.store().read(|reader| Ok((reader.revocation(name)?, reader.open_leases(Some(name))?)))?;
    Ok(CredentialRow::of(credential, revoked, open.len()))
}

/// Shows one, with who has it and who had it.
pub(super) fn show(context: &Context<'_>, args: &CredentialShowArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let credential = chosen(context, &engine, &args.credential)?;
    let name = &credential.name;
    let (open, last) = engine
        .store()
        .read(|reader| Ok((reader.open_leases(Some(name))?, reader.last_leases(name, SHOWN)?)))?;
    let document = CredentialDocument {
        credential: row(&engine, credential)?,
        leases: open.into_iter().map(LeaseRow::of).collect(),
        ended: last.into_iter().filter(|lease| lease.ended.is_some()).map(LeaseRow::of).collect(),
    };
    context.console.answer(&document, |paint| render::credential(&document, paint));
    Ok(Exit::Success)
}

/// Takes one back. Everybody may: it only takes something away.
pub(super) fn revoke(context: &Context<'_>, args: &CredentialRevokeArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let name = &args.credential;
    let is_used = !engine.store().read(|reader| reader.open_leases(Some(name)))?.is_empty();
    if engine.credential(name).is_none() && !is_used {
        return Err(no_credential(&context.settings, name));
    }
    let ended = engine.revoke_credential(name, &context.principal(), &args.reason)?;
    changed(context, name, "revoked", ended)
}

/// Goes on with a new value.
pub(super) fn rotate(context: &Context<'_>, args: &CredentialRotateArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    refuse_agents(&engine, "rotate a credential")?;
    let credential = chosen(context, &engine, &args.credential)?.clone();
    let ended = engine.rotate_credential(&credential, &context.principal())?;
    changed(context, &credential.name, "rotated", ended)
}

fn chosen<'e>(context: &Context<'_>, engine: &'e Engine, name: &str) -> Result<&'e Credential, CliError> {
    engine.credential(name).ok_or_else(|| no_credential(&context.settings, name))
}

fn changed(
    context: &Context<'_>,
    name: &str,
    change: &'static str,
    ended: Vec<engine::store::StoredLease>,
) -> Result<Exit, CliError> {
    let ended = ended.into_iter().map(LeaseRow::of).collect();
    let document = CredentialChangeDocument { credential: name.to_owned(), change, ended };
    context.console.answer(&document, |paint| render::credential_changed(&document, paint));
    Ok(Exit::Success)
}
