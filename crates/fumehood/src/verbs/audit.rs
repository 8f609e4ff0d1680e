//! `audit`: the record for people, its check, and the record as a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;

use audit::{Head, Record, Verification, view};
use engine::Engine;

use super::context::Context;
use crate::args::{AuditExportArgs, AuditShowArgs, AuditVerifyArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Console;

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

/// Checks the record.
pub(super) fn verify(context: &Context<'_>, args: &AuditVerifyArgs) -> Result<Exit, CliError> {
    let progress = context.console.progress("checking the record");
    let found = match &args.file {
        Some(file) => {
            let path = context.cwd.join(file);
            let file = File::open(&path).map_err(CliError::file("read", &path))?;
            audit::verify_export(BufReader::new(file), args.head.as_ref())?
        }
        None => context.engine()?.log().verify(args.head.as_ref())?,
    };
    drop(progress);
    context.console.answer(&found, |paint| {
        let text = format!("{found}\n");
        if found.end().is_some() { paint.good(text) } else { paint.bad(text) }
    });
    Ok(Exit::answer(!matches!(found, Verification::Broken(_))))
}

/// Writes the record as JSON lines.
pub(super) fn export(context: &Context<'_>, args: &AuditExportArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let progress = context.console.progress("writing the record");
    let head = match &args.file {
        Some(file) => {
            let path = context.cwd.join(file);
            let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            write(&engine, BufWriter::new(new.map_err(CliError::file("make", &path))?))?
        }
        None => write(&engine, io::stdout().lock())?,
    };
    drop(progress);
    context.console.say(&format!(
        "fumehood: the head is {head}: keep it where nobody who can write the record can reach it"
    ));
    Ok(Exit::Success)
}

fn write(engine: &Engine, out: impl Write) -> Result<Head, CliError> {
    Ok(audit::export(engine.log().records(1), engine.store().log(), out)?)
}
