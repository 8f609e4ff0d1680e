//! Answers from other accounts: `approvals export` writes requests down, `approvals sign` shows and answers them.
//!
//! Guarantees: what is answered was shown whole, and says so by its digest; the file that it is read from is hostile, so
//! nothing in it drives the terminal. What an agent started signs nothing. Nothing of who asked is opened by who signs.
//! Leaves to others: whether an answer is taken (`engine`), which looks at everything again.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use engine::store::{ClientProcess, StoredApproval};
use engine::{ANSWER_FORMAT, AnswersDirectory, Engine, EngineError, Moment, SignedAnswer};
use model::approval::Answered;
use model::text::{escape, escape_lines};
use model::{ApprovalState, Digest};

use super::ancestry::not_a_person;
use super::approvals::{dossier, profile, texts};
use super::context::Context;
use crate::args::{ApprovalsExportArgs, ApprovalsSignArgs, SignedChoice};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{AgentsPart, ExportDocument, ExportedPart, SignedDocument, SignedRow};
use crate::settings::Accounts;

/// The form of what is written down, with its version.
const FORMAT: &str = "fumehood-requests-1";
/// More than the requests of anybody who wants them read.
const LARGEST: u64 = 16 << 20;

/// Takes the answers to a request that came from other accounts, and says which were not taken.
pub(super) fn take_answers(
    context: &Context<'_>,
    engine: &Engine,
    approval: &StoredApproval,
) -> Result<(), CliError> {
    // Where nobody else can answer, nothing has to be looked up.
    if engine.config().answers.is_none() || approval.state == ApprovalState::Trying {
        return Ok(());
    }
    let accounts = Accounts::read();
    let name = |account| accounts.name(account).map_or_else(|| format!("uid-{account}"), str::to_owned);
    let new = match engine.new_answers(approval, &name) {
        Ok(new) if new.is_empty() => return Ok(()),
        Ok(new) => new,
        // None of them counts then, and everything else can still be looked at.
        Err(error @ (EngineError::Nothing(_) | EngineError::File { .. })) => {
            context.console.say_always(&format!("fumehood: {}", CliError::from(error).line()));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let profile = profile(context, engine, approval)?;
    for answer in &new {
        match engine.take_answer(approval, answer, &profile) {
            Ok(()) => {}
            // It is on the record; where it was not refused for good, it is looked at again.
            Err(EngineError::Approval { why, .. } | EngineError::Nothing(why)) => {
                let (name, file) = (&answer.by().name, answer.by().file.as_deref().unwrap_or_default());
                let said = format!("the answer of {name} in {file} is not taken: {why}");
                context.console.say_always(&format!("fumehood: {}", escape(&said)));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes requests down for people of other accounts.
pub(super) fn export(context: &Context<'_>, args: &ApprovalsExportArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    if engine.config().answers.is_none() {
        return Err(no_place());
    }
    let mut stored: Vec<StoredApproval> = Vec::new();
    for name in &args.approvals {
        let request = engine.store().read(|reader| reader.find_approval(name.as_str()))?;
        if stored.iter().all(|known| known.id != request.id) {
            stored.push(request);
        }
    }
    let document = exported(&engine, &stored)?;
    for (request, part) in stored.iter().zip(&document.requests) {
        engine.export_request(request, Digest::of(part.text.as_bytes()))?;
    }
    let Some(to) = &args.to else {
        context.console.print_json(&document);
        return Ok(Exit::Success);
    };
    write(to, &document)?;
    context.console.answer(&document, |_| render::exported(&document, &to.to_string_lossy()));
    Ok(Exit::Success)
}

fn exported(engine: &Engine, stored: &[StoredApproval]) -> Result<ExportDocument, CliError> {
    let now = Moment::now()?;
    let part = |request: &StoredApproval| {
        Ok(ExportedPart {
            approval: request.id.clone(),
            action: request.digest,
            expires: request.deadline.wall,
            missing: texts(engine.missing(request, &now)),
            text: render::exported_dossier(&dossier(engine, request)?),
        })
    };
    let clients = engine.clients()?;
    let process = |client: &ClientProcess| (client.pid, client.start, client.namespace);
    Ok(ExportDocument {
        format: FORMAT.to_owned(),
        store: engine.store().log().as_str().to_owned(),
        owners: stored.iter().flat_map(|request| engine.owners_of(request)).collect(),
        agents: AgentsPart { boot: now.boot.clone(), processes: clients.iter().map(process).collect() },
        requests: stored.iter().map(part).collect::<Result<_, CliError>>()?,
    })
}

fn write(to: &Path, document: &ExportDocument) -> Result<(), CliError> {
    let file = OpenOptions::new().write(true).create_new(true).open(to);
    let text = crate::output::json_line(document);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(CliError::file("write", to))
}

/// Answers requests that somebody else wrote down.
pub(super) fn sign(context: &Context<'_>, args: &ApprovalsSignArgs) -> Result<Exit, CliError> {
    let Some(place) = &context.settings.answers else { return Err(no_place()) };
    let directory = AnswersDirectory::open(&place.value)?;
    let document = read(&args.file)?;
    check(context, &document)?;
    if !agrees(context, args, &document)? {
        return Ok(Exit::Negative);
    }
    let leave = |request: &ExportedPart| leave(context, &directory, args, &document.store, request);
    let answers = document.requests.iter().map(leave).collect::<Result<_, CliError>>()?;
    let document = SignedDocument { answers };
    context.console.answer(&document, |paint| render::signed(&document, paint));
    Ok(Exit::Success)
}

fn no_place() -> CliError {
    CliError::Cannot(
        "nobody answers from another account on this machine: name a directory for answers in \
         /etc/fumehood/fumehood.toml (`[approvals]`, `answers = \"/var/lib/fumehood/answers\"`), root's and with mode 1777"
            .to_owned(),
    )
}

/// Reads what was written down. It comes from another account.
fn read(path: &Path) -> Result<ExportDocument, CliError> {
    let failed = || CliError::file("read", path);
    // A FIFO would keep us waiting for somebody to write.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(failed())?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed())?;
    let parsed =
        serde_json::from_str(&text).ok().filter(|document: &ExportDocument| document.format == FORMAT);
    let usable = parsed.filter(|document| !document.requests.is_empty() && text.len() as u64 <= LARGEST);
    usable.ok_or_else(|| {
        CliError::Cannot(format!(
            "`{}` is nothing that this version of `fumehood approvals export` wrote",
            escape(&path.to_string_lossy())
        ))
    })
}

/// Refuses what would not be taken, or was made to mislead.
fn check(context: &Context<'_>, document: &ExportDocument) -> Result<(), CliError> {
    let now = Moment::now()?;
    if let Some(request) = document.requests.iter().find(|request| request.expires <= now.wall) {
        return Err(CliError::Cannot(format!(
            "{} has expired: it has to be asked for again",
            request.approval
        )));
    }
    let drives = |request: &&ExportedPart| escape_lines(&request.text) != request.text;
    if let Some(request) = document.requests.iter().find(drives) {
        return Err(CliError::Cannot(format!(
            "the text of {} holds characters that are not seen or drive a terminal: it was changed, so nothing is signed",
            request.approval
        )));
    }
    if let Some(account) = document.owners.intersection(&context.user.accounts()).next() {
        return Err(CliError::Cannot(format!(
            "the account {account} owns what is asked for, and you are it or came through it: log in as somebody else, and \
             the owner answers with `fumehood approvals approve`"
        )));
    }
    match not_a_person(&clients(context, document, &now)?) {
        Some(why) => Err(CliError::Cannot(format!("nothing is signed: it {why}"))),
        None => Ok(()),
    }
}

/// Returns the processes through which agents came: to whoever asked, and to us where we have a state of our own.
fn clients(
    context: &Context<'_>,
    document: &ExportDocument,
    now: &Moment,
) -> Result<BTreeSet<ClientProcess>, CliError> {
    let mut clients = BTreeSet::new();
    if document.agents.boot == now.boot {
        let client = |(pid, start, namespace): &(u32, u64, u64)| ClientProcess {
            pid: *pid,
            start: *start,
            namespace: *namespace,
        };
        clients.extend(document.agents.processes.iter().map(client));
    }
    if context.settings.state_dir.value.join("fumehood.db").exists() {
        clients.extend(context.engine()?.clients()?);
    }
    Ok(clients)
}

/// Shows every request whole, and asks.
fn agrees(
    context: &Context<'_>,
    args: &ApprovalsSignArgs,
    document: &ExportDocument,
) -> Result<bool, CliError> {
    if !args.yes && !context.console.can_ask() {
        return Err(CliError::Cannot(
            "there is no terminal to ask at: read what it shows, and answer with `--yes`".to_owned(),
        ));
    }
    for request in &document.requests {
        context.console.say_always(&request.text);
        context.console.say_always(&format!("{}  action {}\n", request.approval, request.action));
    }
    let number = document.requests.len();
    let question = match args.answer {
        SignedChoice::Approve => format!("Say yes to exactly these {number}?"),
        SignedChoice::Deny => format!("Say no to these {number}?"),
    };
    Ok(args.yes || context.console.ask(&question))
}

fn leave(
    context: &Context<'_>,
    directory: &AnswersDirectory,
    args: &ApprovalsSignArgs,
    store: &str,
    request: &ExportedPart,
) -> Result<SignedRow, CliError> {
    let (approval, shown) = (request.approval.clone(), Digest::of(request.text.as_bytes()));
    let answer = match args.answer {
        SignedChoice::Approve => Answered::Yes,
        SignedChoice::Deny => Answered::No,
    };
    let name = directory.write(SignedAnswer {
        format: ANSWER_FORMAT.to_owned(),
        name: String::new(),
        store: store.to_owned(),
        approval: approval.clone(),
        action: request.action,
        shown,
        expires: request.expires,
        answer,
        reason: args.reason.clone(),
        through: context.user.through.clone(),
    })?;
    let file = directory.path().join(name).to_string_lossy().into_owned();
    Ok(SignedRow { approval, answer, file, shown })
}
