//! Effects: what an action does to something, whichever command does it.
//!
//! An effect that was *declared* was read from the request, before anything ran; one that was *observed* was seen
//! while something ran. This type says neither: who holds it says which.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::os_text::OsText;
use crate::path::WorkspacePath;
use crate::text::escape;

/// One thing that an action does to one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Reads what is at a place, or below it.
    Read {
        /// Where.
        place: Place,
    },
    /// Makes or changes what is at a place.
    Write {
        /// Where.
        place: Place,
    },
    /// Removes what is at a place, or below it.
    Delete {
        /// Where.
        place: Place,
    },
    /// Starts a program.
    Run {
        /// The program, as it was written.
        program: String,
    },
    /// Gets a package of somebody else and puts it where it can be used.
    Install {
        /// The program that gets it, for example `npm`.
        manager: String,
        /// The package as it was named; `*` is all that a manifest or a lock file names.
        package: String,
    },
    /// Talks to another machine.
    Connect {
        /// Its name or address, with the port where one is named; `*` when it is known only at run time.
        host: String,
    },
    /// Uses a secret that proves who somebody is.
    UseCredential {
        /// Which one, by the name that the command has for it.
        credential: String,
    },
    /// Moves a branch or a tag of a repository, here or elsewhere.
    ChangeRef {
        /// The repository: `.` is the one of the workspace, else the name or the address of a remote.
        repository: String,
        /// The branch or tag; `*` when it is known only at run time.
        reference: String,
        /// Whether what it pointed to may be lost.
        forced: bool,
    },
    /// Gives something to everybody, for example a package to a registry.
    Publish {
        /// What, or by which program.
        what: String,
    },
    /// Changes what runs in an environment.
    Deploy {
        /// Which one, or by which program.
        target: String,
    },
    /// Changes the shape of stored data.
    Migrate {
        /// Which data, or by which program.
        target: String,
    },
    /// Says something to people.
    Message {
        /// To whom, or by which program.
        to: String,
    },
    /// Changes what later decides, runs by itself, or holds somebody back: hooks, checks, settings of tools.
    ChangeControl {
        /// Which control.
        control: String,
    },
    /// Asks a database for something.
    QueryDatabase {
        /// How far it goes.
        access: DatabaseAccess,
        /// The database, as it was named.
        database: String,
    },
    /// Shows a dataset.
    ShowDataset {
        /// The dataset.
        dataset: String,
    },
    /// Does something that cannot be told from the request.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "place", content = "path", rename_all = "kebab-case")]
pub enum Place {
    /// The workspace as a whole.
    Workspace,
    /// A path in the workspace.
    Path(WorkspacePath),
    /// A path outside the workspace, from the root.
    Outside(OsText),
    /// A path that is known only at run time.
    Anywhere,
}

/// How far a query of a database goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseAccess {
    /// Rows are read.
    Read,
    /// Rows are added or changed.
    Write,
    /// Tables are made or changed.
    Schema,
    /// Rows or tables are removed.
    Destroy,
}

impl DatabaseAccess {
    /// Returns the name by which policy knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Schema => "schema",
            Self::Destroy => "destroy",
        }
    }
}

impl Effect {
    /// The classes of effects, by the names that policy has for them, in the order of the variants.
    pub const CLASSES: [&str; 16] = [
        "read-path",
        "write-path",
        "delete-path",
        "run-program",
        "install-package",
        "connect",
        "use-credential",
        "change-ref",
        "publish",
        "deploy",
        "migrate",
        "message",
        "change-control",
        "query-database",
        "show-dataset",
        "unknown-effect",
    ];

    /// Returns the name of the class, one of [`Self::CLASSES`].
    pub fn class(&self) -> &'static str {
        let [read, write, delete, run, install, connect, credential, reference, rest @ ..] = Self::CLASSES;
        let [publish, deploy, migrate, message, control, database, dataset, unknown] = rest;
        match self {
            Self::Read { .. } => read,
            Self::Write { .. } => write,
            Self::Delete { .. } => delete,
            Self::Run { .. } => run,
            Self::Install { .. } => install,
            Self::Connect { .. } => connect,
            Self::UseCredential { .. } => credential,
            Self::ChangeRef { .. } => reference,
            Self::Publish { .. } => publish,
            Self::Deploy { .. } => deploy,
            Self::Migrate { .. } => migrate,
            Self::Message { .. } => message,
            Self::ChangeControl { .. } => control,
            Self::QueryDatabase { .. } => database,
            Self::ShowDataset { .. } => dataset,
            Self::Unknown { .. } => unknown,
        }
    }

    /// Returns the place of files that it is about, if it is about files.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Read { place } | Self::Write { place } | Self::Delete { place } => Some(place),
            _ => None,
        }
    }

    /// Tells whether whoever has this effect has also that one, whatever words it was asked for in: the same operation on
    /// the same object, or on a file below a denied directory. Another remote of the same branch is the same object, and
    /// so is another door to the same registry.
    pub fn does(&self, other: &Self) -> bool {
        let below = |place: &Place, other: &Place| match (place, other) {
            (_, Place::Anywhere) => false,
            (Place::Path(path), Place::Path(top)) => path.as_path().starts_with(top.as_path()),
            (Place::Outside(path), Place::Outside(top)) => path.as_path().starts_with(top.as_path()),
            (place, other) => place == other,
        };
        match (self, other) {
            (Self::Read { place: a }, Self::Read { place: b })
            | (Self::Write { place: a }, Self::Write { place: b })
            | (Self::Delete { place: a }, Self::Delete { place: b }) => below(a, b),
            (Self::Run { program: a }, Self::Run { program: b }) => file_name(a) == file_name(b),
            // Which host that is, or which branch, nobody could tell.
            (_, Self::Connect { host: unknown }) | (_, Self::ChangeRef { reference: unknown, .. })
                if unknown == "*" =>
            {
                false
            }
            (Self::Connect { host: a }, Self::Connect { host: b }) => reaches(a, b),
            (
                Self::ChangeRef { repository: ours, reference: a, forced },
                Self::ChangeRef { repository: theirs, reference: b, forced: only_forced },
            ) => a == b && (*forced || !only_forced) && ((ours == ".") == (theirs == ".")),
            (Self::Install { manager: ours, package: a }, Self::Install { manager: theirs, package: b }) => {
                registry(ours) == registry(theirs) && (a == b || without_version(a) == b)
            }
            (Self::Publish { what: a }, Self::Publish { what: b }) => registry(a) == registry(b),
            (Self::Message { to: a }, Self::Message { to: b }) => a.eq_ignore_ascii_case(b),
            // What nobody could tell is like nothing else.
            (Self::Unknown { .. }, _) | (_, Self::Unknown { .. }) => false,
            (ours, theirs) => ours == theirs,
        }
    }

    /// Returns the path of the workspace that it makes, changes or removes, if it does.
    pub fn changes(&self) -> Option<&WorkspacePath> {
        match self {
            Self::Write { place: Place::Path(path) } | Self::Delete { place: Place::Path(path) } => {
                Some(path)
            }
            _ => None,
        }
    }
}

/// Tells whether a host is the denied one: with any port, when none was named. An IPv4 address may be written as IPv6.
fn reaches(host: &str, denied: &str) -> bool {
    let plain = |text: &str| text.to_ascii_lowercase().replace("[::ffff:", "").replace(']', "");
    let (host, denied) = (plain(host), plain(denied));
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && is_number(port) => (name, Some(port)),
        _ => (host.as_str(), None),
    };
    // A name may end in a dot.
    let name = name.strip_suffix('.').unwrap_or(name);
    let named = port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    named == denied || name == denied
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns where a package manager gets packages from: several of them are doors to the same place.
fn registry(manager: &str) -> &str {
    match manager {
        "pnpm" | "yarn" | "cnpm" | "bun" => "npm",
        "pip3" | "uv" | "poetry" | "pipenv" | "pdm" | "hatch" | "twine" | "easy_install" => "pip",
        "bundle" | "bundler" => "gem",
        "apt-get" | "aptitude" => "apt",
        other => other,
    }
}

/// Returns the name of a package without the version behind it, as in `name@1.0`, `name==1.0` and `name>=1.0`. A name of
/// npm may begin with the sign.
fn without_version(package: &str) -> &str {
    let sign = package.char_indices().skip(1).find(|(_, c)| "@=<>~!".contains(*c));
    sign.map_or(package, |(at, _)| &package[..at])
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

impl fmt::Display for Effect {
    /// Says what is done, to follow after "may this".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &str| escape(text).into_owned();
        match self {
            Self::Read { place } => write!(f, "read {place}"),
            Self::Write { place } => write!(f, "write {place}"),
            Self::Delete { place } => write!(f, "delete {place}"),
            Self::Run { program } => write!(f, "run `{}`", text(program)),
            Self::Install { manager, package } if package == "*" => {
                write!(f, "install with {} whatever the project names", text(manager))
            }
            Self::Install { manager, package } => {
                write!(f, "install `{}` with {}", text(package), text(manager))
            }
            Self::Connect { host } if host == "*" => f.write_str("connect to other machines"),
            Self::Connect { host } => write!(f, "connect to `{}`", text(host)),
            Self::UseCredential { credential } => write!(f, "use the credential `{}`", text(credential)),
            Self::ChangeRef { repository, reference, forced } => write!(
                f,
                "{} `{}` of the repository `{}`",
                if *forced { "overwrite" } else { "move" },
                text(reference),
                text(repository)
            ),
            Self::Publish { what } => write!(f, "publish `{}`", text(what)),
            Self::Deploy { target } => write!(f, "deploy `{}`", text(target)),
            Self::Migrate { target } => write!(f, "migrate `{}`", text(target)),
            Self::Message { to } => write!(f, "send a message to `{}`", text(to)),
            Self::ChangeControl { control } => write!(f, "change a control ({})", text(control)),
            Self::QueryDatabase { access, database } => {
                let access = match access {
                    DatabaseAccess::Read => "read from",
                    DatabaseAccess::Write => "write to",
                    DatabaseAccess::Schema => "change the tables of",
                    DatabaseAccess::Destroy => "destroy data of",
                };
                write!(f, "{access} the database `{}`", text(database))
            }
            Self::ShowDataset { dataset } => write!(f, "show the dataset `{}`", text(dataset)),
            Self::Unknown { why } => write!(f, "do what cannot be told beforehand: {}", text(why)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("the workspace"),
            Self::Path(path) => write!(f, "`{path}`"),
            Self::Outside(path) => write!(f, "`{path}`"),
            Self::Anywhere => f.write_str("a path that is known only at run time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_is_shown_escaped() {
        let effect = Effect::Run { program: "a\x1b[2Jb".to_owned() };
        assert_eq!(effect.to_string(), "run `a\\u{1b}[2Jb`");
        let outside = Place::Outside(OsText::literal("/etc/\u{202e}x"));
        assert_eq!(Effect::Delete { place: outside }.to_string(), "delete `/etc/\\u{202e}x`");
    }

    #[test]
    fn another_way_to_the_same_effect_is_told_from_its_neighbours() {
        let at = |path: &str| Place::Path(WorkspacePath::parse(path).expect("inside"));
        let push = |repository: &str, reference: &str, forced| Effect::ChangeRef {
            repository: repository.to_owned(),
            reference: reference.to_owned(),
            forced,
        };
        let run = |program: &str| Effect::Run { program: program.to_owned() };
        let connect = |host: &str| Effect::Connect { host: host.to_owned() };
        let install = |manager: &str, package: &str| Effect::Install {
            manager: manager.to_owned(),
            package: package.to_owned(),
        };
        let publish = |what: &str| Effect::Publish { what: what.to_owned() };
        let message = |to: &str| Effect::Message { to: to.to_owned() };
        let read = |path: &'static str| Effect::Read { place: Place::Outside(OsText::literal(path)) };
        let unknown = || Effect::Unknown { why: "x".to_owned() };
        for (effect, denied, same) in [
            (push("origin", "main", false), push("ssh://h/r", "main", false), true),
            (push("origin", "main", true), push("origin", "main", false), true),
            (push("origin", "main", false), push("origin", "main", true), false),
            (push("origin", "topic", false), push("origin", "main", false), false),
            (push(".", "main", false), push("origin", "main", false), false),
            (run("/usr/bin/curl"), run("curl"), true),
            (run("curly"), run("curl"), false),
            (connect("API.example"), connect("api.example"), true),
            (connect("api.example:8080"), connect("api.example"), true),
            (connect("[::ffff:192.0.2.1]:80"), connect("192.0.2.1:80"), true),
            (connect("192.0.2.1:80"), connect("192.0.2.1:81"), false),
            (connect("api.example.org"), connect("api.example"), false),
            (connect("api.example."), connect("api.example"), true),
            (connect("api.example.:80"), connect("api.example:80"), true),
            (connect("api.example:81"), connect("api.example:80"), false),
            (install("yarn", "left@1.0"), install("npm", "left"), true),
            (install("npm", "@x/left@1.0"), install("npm", "@x/left"), true),
            (install("uv", "left==1.0"), install("pip", "left"), true),
            (install("npm", "left"), install("npm", "left@1.0"), false),
            (install("npm", "leftover"), install("npm", "left"), false),
            (install("pip", "left"), install("npm", "left"), false),
            (publish("pnpm"), publish("npm"), true),
            (publish("cargo"), publish("npm"), false),
            (message("Team@example.org"), message("team@example.org"), true),
            (message("other@example.org"), message("team@example.org"), false),
            (read("~/.aws/config"), read("~/.aws"), true),
            (read("~/.awsome"), read("~/.aws"), false),
            (connect("*"), connect("*"), false),
            (push("origin", "*", true), push("origin", "*", false), false),
            (Effect::Delete { place: at("docs/a") }, Effect::Delete { place: at("docs") }, true),
            (Effect::Delete { place: at("docs2") }, Effect::Delete { place: at("docs") }, false),
            (Effect::Delete { place: at("docs") }, Effect::Delete { place: at("docs/a") }, false),
            (Effect::Write { place: at("docs") }, Effect::Delete { place: at("docs") }, false),
            (unknown(), unknown(), false),
        ] {
            assert_eq!(effect.does(&denied), same, "{effect} / {denied}");
        }
    }

    #[test]
    fn an_effect_reads_back_as_it_was_written() {
        let path = WorkspacePath::parse("src/main.rs").expect("inside");
        for effect in [
            Effect::Write { place: Place::Path(path) },
            Effect::Read { place: Place::Workspace },
            Effect::QueryDatabase { access: DatabaseAccess::Destroy, database: "shop".to_owned() },
        ] {
            let text = serde_json::to_string(&effect).expect("is written");
            assert_eq!(serde_json::from_str::<Effect>(&text).expect("is read"), effect, "{text}");
        }
    }
}
