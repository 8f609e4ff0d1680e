//! `audit`: the record for people, its check, and the record as a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use audit::{Anchors, AuditError, Checkpoint, Head, Proof, PublicKey, Record, Verification, view};
use engine::Engine;
use model::text::escape;

use super::context::Context;
use crate::args::{AuditCheckpointArgs, AuditExportArgs, AuditShowArgs, AuditVerifyArgs, ExportFormat};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Console;
use crate::output::shape::{CheckpointDocument, KeyDocument};

/// Shows the events of the record, one a line.
pub(super) fn show(context: &Context<'_>, args: &AuditShowArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    if args.head {
        let head = engine.log().head()?;
        context.console.answer(&head, |_| format!("{head}\n"));
        return Ok(Exit::Success);
    }
    let most = args.number.unwrap_or(u64::MAX);
    let wanted = |record: &Record| record.seq >= args.from;
    if let Some(records) = of_one(&engine, args)? {
        for record in
            records.iter().filter(|record| wanted(record)).take(usize::try_from(most).unwrap_or(usize::MAX))
        {
            if !print(context.console, record)? {
                break;
            }
        }
        return Ok(Exit::Success);
    }
    for (number, record) in engine.log().records(args.from).enumerate() {
        if number as u64 >= most || !print(context.console, &record.map_err(unreadable)?)? {
            break;
        }
    }
    Ok(Exit::Success)
}

/// Returns the records of the task or action that is named.
fn of_one(engine: &Engine, args: &AuditShowArgs) -> Result<Option<Vec<Record>>, CliError> {
    let store = engine.store();
    if let Some(named) = &args.action {
        let action = store.read(|reader| reader.find_action(named.as_str()))?;
        return Ok(Some(store.read(|reader| reader.records_of_action(&action.task, &action.id))?));
    }
    let Some(named) = &args.task else { return Ok(None) };
    let task = store.read(|reader| reader.find_task(named.as_str()))?;
    Ok(Some(store.read(|reader| reader.records_of_task(&task.id))?))
}

/// Writes one record, and tells whether somebody still reads.
fn print(console: &Console, record: &Record) -> Result<bool, CliError> {
    if !console.json {
        return Ok(console.print(&(view(record) + "\n")));
    }
    let line = record.to_line().map_err(|error| unreadable(error.into()))?;
    Ok(console.print(&(line + "\n")))
}

fn unreadable(error: audit::ReadError) -> CliError {
    CliError::Cannot(format!("the record cannot be read: {error}; `fumehood audit verify` says where"))
}

/// Checks the record, or a proof about two of its heads.
pub(super) fn verify(context: &Context<'_>, args: &AuditVerifyArgs) -> Result<Exit, CliError> {
    let progress = context.console.progress("checking the record");
    let signed = signed_heads(context, args)?;
    let found = match (&args.proof, &args.file) {
        (Some(proof), _) => check_proof(context, args, proof, &signed)?,
        (None, Some(file)) => {
            let path = context.cwd.join(file);
            let file = File::open(&path).map_err(CliError::file("read", &path))?;
            audit::verify_export(BufReader::new(file), &anchors(args, signed))?
        }
        (None, None) => context.engine()?.log().verify(&anchors(args, signed))?,
    };
    drop(progress);
    context.console.answer(&found, |paint| {
        let text = format!("{found}\n");
        if found.end().is_some() { paint.good(text) } else { paint.bad(text) }
    });
    Ok(Exit::answer(!matches!(found, Verification::Broken(_))))
}

/// Reads the signed heads that were kept elsewhere, from all files that were named.
fn signed_heads(context: &Context<'_>, args: &AuditVerifyArgs) -> Result<Vec<Checkpoint>, CliError> {
    let Some(key) = &args.key else { return Ok(Vec::new()) };
    let mut heads = Vec::new();
    for file in &args.checkpoint {
        heads.extend(heads_in(&context.cwd.join(file), key)?);
    }
    Ok(heads)
}

fn heads_in(path: &Path, key: &PublicKey) -> Result<Vec<Checkpoint>, CliError> {
    let file = File::open(path).map_err(CliError::file("read", path))?;
    audit::read_checkpoints(BufReader::new(file), key)
        .map_err(|error| CliError::Cannot(format!("`{}`: {error}", escape(&path.to_string_lossy()))))
}

fn anchors(args: &AuditVerifyArgs, signed: Vec<Checkpoint>) -> Anchors {
    let anchors = Anchors::default().and_signed(signed);
    match &args.head {
        Some(head) => anchors.and_head(head.clone()),
        None => anchors,
    }
}

/// Checks by a proof that its head adds to the newest of those that were kept: that one vouches for all before it.
fn check_proof(
    context: &Context<'_>,
    args: &AuditVerifyArgs,
    proof: &Path,
    kept: &[Checkpoint],
) -> Result<Verification, CliError> {
    let path = context.cwd.join(proof);
    let newest = kept.iter().max_by_key(|head| head.head().seq);
    let (Some(newest), Some(key)) = (newest, &args.key) else {
        return Err(CliError::Cannot(
            "a proof needs a head to start from: give --checkpoint and --key".to_owned(),
        ));
    };
    let text = read_small(&path)?;
    let proof = Proof::open(&text, key)
        .map_err(|error| CliError::Cannot(format!("`{}`: {error}", escape(&path.to_string_lossy()))))?;
    Ok(proof.check(newest))
}

fn read_small(path: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let file = File::open(path).map_err(CliError::file("read", path))?;
    file.take(audit::MAX_NOTE as u64 + 1).read_to_string(&mut text).map_err(CliError::file("read", path))?;
    Ok(text)
}

/// Writes the record as JSON lines.
pub(super) fn export(context: &Context<'_>, args: &AuditExportArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let progress = context.console.progress("writing the record");
    let head = match &args.file {
        Some(file) => write(&engine, args.format, BufWriter::new(new_file(&context.cwd.join(file))?))?,
        None => write(&engine, args.format, io::stdout().lock())?,
    };
    drop(progress);
    if let Some(head) = head {
        context.console.say(&format!(
            "fumehood: the head is {head}: keep it where nobody who can write the record can reach it"
        ));
    }
    Ok(Exit::Success)
}

fn new_file(path: &Path) -> Result<File, CliError> {
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    new.map_err(CliError::file("make", path))
}

/// Writes all records, and returns the head of what can be verified.
fn write(engine: &Engine, format: ExportFormat, mut out: impl Write) -> Result<Option<Head>, CliError> {
    let (records, log) = (engine.log().records(1), engine.store().log());
    if format == ExportFormat::Record {
        return Ok(Some(audit::export(records, log, out)?));
    }
    for record in records {
        let event = audit::ocsf::event(&record.map_err(unreadable)?, log);
        writeln!(out, "{}", event.map_err(|error| unreadable(error.into()))?).map_err(AuditError::Output)?;
    }
    out.flush().map_err(AuditError::Output)?;
    Ok(None)
}

/// Signs the head of the record, and writes it.
pub(super) fn checkpoint(context: &Context<'_>, args: &AuditCheckpointArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let key = engine.store().public_key()?;
    let older = args.since.as_ref().map(|file| heads_in(&context.cwd.join(file), &key)).transpose()?;
    let (signed, failure) = engine.sign_head()?;
    let older = older.and_then(|heads| heads.into_iter().max_by_key(|head| head.head().seq));
    let proof = older.map(|older| prove(&engine, &older, &signed)).transpose()?;
    let text = proof.as_ref().map_or_else(|| signed.to_string(), ToString::to_string);
    if let Some(file) = &args.file {
        let path = context.cwd.join(file);
        let written = new_file(&path)?.write_all(text.as_bytes());
        written.map_err(CliError::file("write", &path))?;
    }
    let document = CheckpointDocument::of(&signed, &key, proof.as_ref(), failure.clone());
    let to_file = args.file.is_some();
    context.console.answer(&document, |_| if to_file { String::new() } else { text });
    Ok(Exit::answer(failure.is_none()))
}

fn prove(engine: &Engine, older: &Checkpoint, signed: &Checkpoint) -> Result<Proof, CliError> {
    let digests: Result<Vec<_>, _> =
        engine.log().records(1).map(|record| record.map(|record| record.digest)).collect();
    Proof::new(older, signed.clone(), digests.map_err(unreadable)?)
        .map_err(|error| CliError::Cannot(error.to_string()))
}

/// Writes the public key.
pub(super) fn key(context: &Context<'_>) -> Result<Exit, CliError> {
    let key = context.engine()?.store().public_key()?;
    context.console.answer(&KeyDocument::of(&key), |_| format!("{key}\n"));
    Ok(Exit::Success)
}
