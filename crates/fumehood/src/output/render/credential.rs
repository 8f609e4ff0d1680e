//! Credentials, for people.

use std::time::Duration;

use model::text::escape;
use model::units::display_duration;

use super::super::shape::{
    CredentialChangeDocument, CredentialDocument, CredentialRow, CredentialsDocument, LeaseRow,
};
use super::super::style::Paint;
use super::table::{Cell, Page, table};
use super::{counted, moment};

/// Lists credentials.
pub fn credentials(document: &CredentialsDocument, paint: Paint) -> String {
    if document.credentials.is_empty() {
        return "your settings have no `[credential.NAME]`\n".to_owned();
    }
    let rows = document.credentials.iter().map(|credential| {
        vec![
            Cell::painted(&credential.name, |p, t| p.name(t)),
            Cell::plain(credential.kind),
            Cell::plain(&credential.owner),
            Cell::plain(state(credential)),
            Cell::plain(credential.rules.join(", ")),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

fn state(credential: &CredentialRow) -> String {
    match (&credential.revoked, credential.in_use) {
        (Some(_), _) => "taken back".to_owned(),
        (None, 0) => "not in use".to_owned(),
        (None, in_use) => format!("in use by {}", counted(in_use, "action")),
    }
}

/// Shows one credential.
pub fn credential(document: &CredentialDocument, paint: Paint) -> String {
    let row = &document.credential;
    let all = |texts: &[String]| escape(&texts.join(", ")).into_owned();
    let mut page = Page::new(paint);
    page.heading(&format!("{}  {}", paint.name(escape(&row.name)), paint.bold(row.kind)));
    page.line("owner", &escape(&row.owner));
    page.line("state", &state(row));
    if let Some(revoked) = &row.revoked {
        let (by, reason) = (escape(&revoked.by), escape(&revoked.reason));
        page.line("taken back", &format!("{} by {by}: {reason}", moment(revoked.since)));
    }
    page.line("for", &all(&row.rules));
    page.line("where", &all(&row.repositories));
    if let Some(tasks) = &row.tasks {
        page.line("tasks", &all(tasks));
    }
    page.line("put in as", &escape(&row.placement));
    if let Some(variable) = &row.stand_in {
        page.line("stand-in", &format!("in {}", escape(variable)));
    }
    page.line("lifetime", &display_duration(Duration::from_secs(row.lifetime_seconds)));
    page.line("value", &format!("in {}", escape(&row.provider)));
    let mut text = page.finish();
    for (title, leases) in [("now", &document.leases), ("before", &document.ended)] {
        if !leases.is_empty() {
            text.push_str(&format!("\n{}\n{}", paint.bold(title), table(&rows(leases), paint)));
        }
    }
    text
}

fn rows(leases: &[LeaseRow]) -> Vec<Vec<Cell>> {
    let row = |lease: &LeaseRow| {
        let end = match (&lease.ended, &lease.why) {
            (Some(ended), Some(why)) => format!("until {}: {why}", moment(*ended)),
            _ => format!("until {} at the latest", moment(lease.expires)),
        };
        vec![
            Cell::painted(lease.action.as_str(), |p, t| p.name(t)),
            Cell::plain(lease.task.as_str()),
            Cell::plain(moment(lease.began)),
            Cell::plain(end),
        ]
    };
    leases.iter().map(row).collect()
}

/// Says what became of a credential.
pub fn credential_changed(document: &CredentialChangeDocument, paint: Paint) -> String {
    let name = paint.name(escape(&document.credential));
    let ended = counted(document.ended.len() as u64, "action");
    match document.change {
        "revoked" => format!("{name} is taken back; {ended} lost it\n"),
        _ => format!("{name} is used with its new value from now on; {ended} lost the old one\n"),
    }
}
