//! Tasks, actions, settings, artifacts and what was removed, for people.

use std::time::Duration;

use model::Bytes;
use model::action::Principal;
use model::event::Verdict;
use model::text::escape;

use super::super::shape::{
    ArtifactsDocument, ConfigDocument, DepsDocument, GcDocument, IntakePart, LegalHoldsDocument, LogRow,
    ProblemsDocument, PruneDocument, Ran, StopDocument, TaskDocument, TaskNewDocument, TaskRow,
    TasksDocument, UndoDocument,
};
use super::super::style::Paint;
use super::table::{Cell, Page, table};
use super::{counted, moment, span};

/// Lists tasks.
pub fn tasks(document: &TasksDocument, paint: Paint) -> String {
    if document.tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let rows = document.tasks.iter().map(|task| {
        vec![
            Cell::painted(task.task.as_str(), |p, t| p.name(t)),
            Cell::plain(task.state.to_string()),
            Cell::plain(moment(task.opened)),
            Cell::plain(counted(task.actions, "action")),
            Cell::plain(String::from_utf8_lossy(task.workspace.as_bytes())),
            Cell::plain(task.title.as_deref().unwrap_or_default()),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Lists what is stopped, after what was ended for it.
pub fn stopped(document: &StopDocument, paint: Paint) -> String {
    let mut text = String::new();
    for task in &document.ended {
        text.push_str(&format!("ended what ran in {}\n", paint.name(task)));
    }
    if document.holds.is_empty() {
        return text + "nothing is stopped\n";
    }
    let rows = document.holds.iter().map(|hold| {
        let what = match (&hold.user, &hold.directory) {
            (Some(user), _) => format!("what {user} works on"),
            (_, Some(directory)) => String::from_utf8_lossy(directory.as_bytes()).into_owned(),
            (None, None) => "everything".to_owned(),
        };
        vec![
            Cell::painted(hold.hold.as_str(), |p, t| p.name(t)),
            Cell::plain(moment(hold.since)),
            Cell::plain(&hold.by),
            Cell::plain(what),
            Cell::plain(&hold.reason),
        ]
    });
    text + &table(&rows.collect::<Vec<_>>(), paint)
}

/// Says what was taken out of the record.
pub fn pruned(document: &PruneDocument, paint: Paint) -> String {
    let rows = document.classes.iter().map(|row| {
        vec![
            Cell::painted(row.class.name(), |p, t| p.name(t)),
            Cell::plain(row.number.to_string()),
            Cell::plain(Bytes::new(row.bytes).to_string()),
        ]
    });
    let mut text = table(&rows.collect::<Vec<_>>(), paint);
    let number: u64 = document.classes.iter().map(|row| row.number).sum();
    let done = if document.dry_run { "would be pruned" } else { "pruned" };
    text += &format!("{} {done}\n", counted(number, "event"));
    for (number, why) in [
        (document.held, "stay for a legal hold (`fumehood hold list`)"),
        (document.incidents, "stay because of what they are about (`retention.incidents`)"),
        (document.whole, "stay: an older build recorded them, with their text in the digest"),
    ] {
        if number > 0 {
            text += &format!("{number} more {why}\n");
        }
    }
    if let Some(why) = &document.left {
        text += &format!("copies may still stand in free space of the database: {}\n", escape(why));
    }
    text
}

/// Says what is kept whatever its retention.
pub fn legal_holds(document: &LegalHoldsDocument, paint: Paint) -> String {
    if document.holds.is_empty() {
        return "there is no legal hold\n".to_owned();
    }
    let rows = document.holds.iter().map(|hold| {
        let what = match (&hold.action, &hold.task, &hold.directory) {
            (Some(action), ..) => format!("{action} and what came before it"),
            (_, Some(task), _) => task.to_string(),
            (.., directory) => directory
                .as_ref()
                .map(|directory| String::from_utf8_lossy(directory.as_bytes()).into_owned())
                .unwrap_or_default(),
        };
        vec![
            Cell::painted(hold.hold.as_str(), |p, t| p.name(t)),
            Cell::plain(moment(hold.since)),
            Cell::plain(&hold.by),
            Cell::plain(what),
            Cell::plain(&hold.reason),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Shows one task with its actions.
pub fn task(document: &TaskDocument, paint: Paint) -> String {
    let TaskRow { task, state, workspace, commit, owner, title, opened, actions } = &document.task;
    let mut page = Page::new(paint);
    page.heading(
        format!("{}  {}", paint.name(task), paint.bold(escape(title.as_deref().unwrap_or_default())))
            .trim_end(),
    );
    let owner = match owner {
        Principal::User(name) | Principal::Agent(name) => escape(name).into_owned(),
        Principal::Engine => "the engine".to_owned(),
    };
    page.line("state", &format!("{state}, opened {} by {owner}", moment(*opened)));
    let base = commit
        .as_ref()
        .map_or_else(|| "as it stood".to_owned(), |commit| format!("commit {}", escape(commit)));
    page.line("workspace", &format!("{workspace} {base}"));
    page.line(
        "used",
        &format!("{}, {} of processor", counted(*actions, "action"), span(document.cpu_time_ms)),
    );
    let (hit, miss, out) =
        (document.prompt_cache_hit_tokens, document.prompt_cache_miss_tokens, document.completion_tokens);
    if hit + miss + out > 0 {
        page.line("tokens", &format!("{} in ({hit} from the cache), {out} out", hit + miss));
    }
    if let Some(intake) = &document.intake {
        wanted(&mut page, intake);
    }
    if let Some(stage) = &document.stage {
        let empty: Vec<String> = stage.without_work.iter().map(ToString::to_string).collect();
        let empty =
            if empty.is_empty() { String::new() } else { format!("; nothing done in {}", empty.join(", ")) };
        page.line("stage", &format!("{}, round {}{empty}", stage.stage, stage.round));
    }
    page.finish() + "\n" + &log(&document.log, paint)
}

/// Says why a request for a task was refused.
pub fn task_refused(document: &TaskNewDocument, _: Paint) -> String {
    let lines = document.lacks.iter().map(|lacks| format!("refused: {}\n", escape(lacks)));
    lines.collect()
}

/// Shows what was wanted of a task.
fn wanted(page: &mut Page, intake: &IntakePart) {
    let joined = |words: &[String]| words.iter().map(|word| escape(word)).collect::<Vec<_>>().join(", ");
    page.line("claim", &escape(intake.claimed_outcome.as_deref().unwrap_or("nothing said")));
    let writes = if intake.writes { "" } else { ", read only" };
    let network = if intake.network { "network as policy lets it" } else { "no network" };
    page.line(
        "ceiling",
        &format!("level {}{writes}, {network}, on what is {}", intake.level, intake.sensitivity),
    );
    for (label, word) in [("agent", &intake.agent), ("branch", &intake.branch)] {
        word.iter().for_each(|word| page.line(label, &escape(word)));
    }
    intake.deadline.iter().for_each(|deadline| page.line("deadline", &moment(*deadline)));
    let budget = [
        intake.max_actions.map(|most| counted(most, "action")),
        intake.max_processor_time_ms.map(|most| format!("{} of processor", span(most))),
        intake.max_tokens.map(|most| counted(most, "token")),
    ];
    let budget: Vec<String> = budget.into_iter().flatten().collect();
    if !budget.is_empty() {
        page.line("budget", &budget.join(", "));
    }
    let tests: Vec<String> = intake.tests.iter().filter_map(|test| test.last().cloned()).collect();
    let lists = [
        ("may change", &intake.paths),
        ("kinds", &intake.kinds),
        ("to green", &tests),
        ("artifacts", &intake.artifacts),
    ];
    for (label, words) in lists.into_iter().filter(|(_, words)| !words.is_empty()) {
        page.line(label, &joined(words));
    }
}

/// Lists actions.
pub fn log(rows: &[LogRow], paint: Paint) -> String {
    if rows.is_empty() {
        return "no actions\n".to_owned();
    }
    let rows = rows.iter().map(|row| {
        let changes = if row.changes == 0 { String::new() } else { counted(row.changes, "change") };
        let time = if row.wall_time_ms == Duration::ZERO { String::new() } else { span(row.wall_time_ms) };
        vec![
            Cell::painted(row.action.as_str(), |p, t| p.name(t)),
            Cell::plain(row.at.map(moment).unwrap_or_default()),
            ending(row),
            Cell::plain(time),
            Cell::plain(changes),
            // The command is escaped already, and escaping it once more would double its backslashes.
            Cell::escaped(row.command.clone()),
            Cell::painted(if row.undone { "(undone)" } else { "" }, |p, t| p.dim(t)),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

fn ending(row: &LogRow) -> Cell {
    let denied = matches!(row.verdict, Some(Verdict::Deny | Verdict::RequireApproval));
    let text = row.ending.clone();
    match (row.exit_code, row.ran) {
        (Some(0), _) => Cell::painted(text, |p, t| p.good(t)),
        (None, _) => Cell::painted(text, |p, t| p.caution(t)),
        (_, Ran::No) if !denied => Cell::painted(text, |p, t| p.bad(t)),
        _ => Cell::painted(text, |p, t| p.bad(t)),
    }
}

/// Lists settings with where they came from.
pub fn config(document: &ConfigDocument, paint: Paint) -> String {
    let rows = document.settings.iter().map(|row| {
        vec![
            Cell::painted(&row.key, |p, t| p.name(t)),
            Cell::plain(&row.value),
            Cell::painted(&row.origin, |p, t| p.dim(t)),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Lists what is wrong in settings files, or says that nothing is.
pub fn problems(document: &ProblemsDocument, paint: Paint) -> String {
    if document.problems.is_empty() {
        let files =
            document.files.iter().map(|file| escape(file).into_owned()).collect::<Vec<_>>().join(", ");
        let files = if files.is_empty() { "there are no settings files".to_owned() } else { files };
        return format!("{}: {files}\n", paint.good("nothing is wrong"));
    }
    let lines =
        document.problems.iter().map(|row| format!("{}: {}\n", paint.bad(escape(&row.place)), row.message));
    lines.collect()
}

/// Lists artifacts.
pub fn artifacts(document: &ArtifactsDocument, paint: Paint) -> String {
    if document.artifacts.is_empty() {
        return "no artifacts\n".to_owned();
    }
    let rows = document.artifacts.iter().map(|row| {
        vec![
            Cell::painted(row.action.as_str(), |p, t| p.name(t)),
            Cell::plain(Bytes::new(row.size).to_string()),
            Cell::plain(String::from_utf8_lossy(row.name.as_bytes())),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Lists packages that came.
pub fn deps(document: &DepsDocument, paint: Paint) -> String {
    if document.packages.is_empty() {
        return "no packages came\n".to_owned();
    }
    let rows = document.packages.iter().map(|row| {
        vec![
            Cell::painted(row.action.as_str(), |p, t| p.name(t)),
            Cell::plain(row.kind.clone()),
            Cell::plain(format!("{} {}", row.name, row.version)),
            Cell::plain(if row.locked { "locked" } else { "" }),
            Cell::plain(row.digest.clone()),
        ]
    });
    table(&rows.collect::<Vec<_>>(), paint)
}

/// Says which layers were taken off.
pub fn undo(document: &UndoDocument, paint: Paint) -> String {
    document.layers.iter().map(|layer| format!("{} undone\n", paint.name(layer))).collect()
}

/// Says what was removed.
pub fn gc(document: &GcDocument, paint: Paint) -> String {
    let rows = document.classes.iter().map(|row| {
        vec![
            Cell::painted(row.class.name(), |p, t| p.name(t)),
            Cell::plain(row.number.to_string()),
            Cell::plain(Bytes::new(row.bytes).to_string()),
        ]
    });
    let mut text = table(&rows.collect::<Vec<_>>(), paint);
    let number: u64 = document.classes.iter().map(|row| row.number).sum();
    let done = if document.dry_run { "would be removed" } else { "removed" };
    text += &format!("{} with {} {done}\n", counted(number, "thing"), Bytes::new(document.freed));
    if document.held > 0 {
        text += &format!("{} more stay for a legal hold (`fumehood hold list`)\n", document.held);
    }
    if document.incidents > 0 {
        let why =
            "stay because they failed, were denied or tried what is not allowed (`retention.incidents`)";
        text += &format!("{} more {why}\n", document.incidents);
    }
    text
}
