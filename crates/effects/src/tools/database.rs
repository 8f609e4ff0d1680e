//! Programs that ask databases.

use model::{DatabaseAccess, Effect};

use crate::account::Account;
use crate::arg::Arg;

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if ![
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "mongosh",
        "mongo",
        "redis-cli",
        "clickhouse-client",
        "duckdb",
        "sqlcmd",
    ]
    .contains(&name)
    {
        return false;
    }
    let words: Vec<&str> = args.iter().filter_map(Arg::exact).collect();
    let statements: Vec<&str> =
        words.iter().map(|word| value_of(word, &STATEMENT)).filter(|text| has_statement(text)).collect();
    let is_name = |word: &&str| !word.is_empty() && !word.starts_with('-') && !has_statement(word);
    let database = words.iter().map(|word| value_of(word, &DATABASE)).find(is_name).unwrap_or("*");
    for statement in &statements {
        for part in statement.split(';').filter(|part| !part.trim().is_empty()) {
            match access_of(part) {
                Some(access) => account.add(Effect::QueryDatabase { access, database: database.to_owned() }),
                None => {
                    account.unknown(format!("what `{}` does to a database is not known here", part.trim()))
                }
            }
        }
    }
    if name == "sqlite3" || name == "duckdb" {
        account.write(&Arg::exactly(database));
    } else {
        account.connect(None);
        account.add(Effect::UseCredential { credential: name.to_owned() });
    }
    // These programs have commands that write files and start a shell, and read more from their input.
    if statements.is_empty()
        || args.iter().any(|arg| arg.text.contains(['\\', '!']) || arg.text.trim_start().starts_with('.'))
    {
        account.unknown(format!("what {name} is told to do is not known here"));
    }
    true
}

/// What a statement, or the name of a database, may stand behind in one word.
const STATEMENT: [&str; 5] = ["--command=", "--execute=", "--eval=", "-c", "-e"];
const DATABASE: [&str; 2] = ["--dbname=", "--database="];

/// Returns a word without the option that it may begin with.
fn value_of<'a>(word: &'a str, options: &[&str]) -> &'a str {
    options.iter().find_map(|option| word.strip_prefix(option)).unwrap_or(word)
}

fn has_statement(text: &str) -> bool {
    text.split(';').any(|part| access_of(part).is_some())
}

/// Returns how far a statement goes, by its first word; nothing when that is no word of SQL that we know.
fn access_of(statement: &str) -> Option<DatabaseAccess> {
    let first = statement
        .trim_start_matches(|c: char| c.is_whitespace() || c == '(')
        .split(|c: char| !c.is_ascii_alphabetic())
        .next()?;
    match first.to_ascii_lowercase().as_str() {
        // A `with` can have a statement in it that changes rows.
        "select" | "show" | "describe" if !writes(statement) => Some(DatabaseAccess::Read),
        "select" | "insert" | "update" | "merge" | "replace" | "copy" | "call" | "do" => {
            Some(DatabaseAccess::Write)
        }
        "create" | "alter" | "grant" | "revoke" | "comment" | "rename" => Some(DatabaseAccess::Schema),
        "drop" | "truncate" | "delete" => Some(DatabaseAccess::Destroy),
        _ => None,
    }
}

/// Tells whether a query may have functions or clauses that change something.
fn writes(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    [" into ", "for update", "pg_", "lo_", "dblink", "nextval", "setval", "load_extension", "writefile"]
        .iter()
        .any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_as_far_reaching_as_its_first_word() {
        assert_eq!(access_of(" select 1"), Some(DatabaseAccess::Read));
        assert_eq!(access_of("DROP TABLE x"), Some(DatabaseAccess::Destroy));
        assert_eq!(access_of("DeLeTe from x"), Some(DatabaseAccess::Destroy));
        assert_eq!(access_of("alter table x add y int"), Some(DatabaseAccess::Schema));
        assert_eq!(access_of("select * into outfile '/x' from y"), Some(DatabaseAccess::Write));
        assert_eq!(access_of("shop"), None);
    }
}
