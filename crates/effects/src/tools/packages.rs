//! Package managers: what they fetch, what they publish, and the code that they run on the way.

use model::Effect;

use crate::account::Account;
use crate::arg::Arg;

/// A package manager, with the words for what it can do. A word that stands in no list is code of the project.
struct Manager {
    names: &'static [&'static str],
    installs: &'static [&'static str],
    publishes: &'static [&'static str],
}

const MANAGERS: &[Manager] = &[
    Manager {
        names: &["npm", "pnpm", "yarn", "cnpm"],
        installs: &[
            "install",
            "i",
            "in",
            "add",
            "ci",
            "clean-install",
            "install-test",
            "it",
            "update",
            "up",
            "upgrade",
            "link",
            "dedupe",
            "rebuild",
        ],
        publishes: &["publish", "unpublish", "deprecate", "dist-tag", "owner", "access"],
    },
    Manager {
        names: &[
            "pip",
            "pip3",
            "uv",
            "poetry",
            "pipenv",
            "pdm",
            "conda",
            "mamba",
            "hatch",
            "twine",
            "easy_install",
        ],
        installs: &["install", "add", "sync", "update", "upgrade", "create", "lock", "download", "wheel"],
        publishes: &["publish", "upload"],
    },
    Manager {
        names: &["cargo"],
        installs: &["install", "add", "update", "fetch", "vendor"],
        publishes: &["publish", "yank", "owner"],
    },
    Manager { names: &["go"], installs: &["get", "install"], publishes: &[] },
    Manager {
        names: &["gem", "bundle", "bundler"],
        installs: &["install", "update", "add"],
        publishes: &["push", "yank", "owner"],
    },
    Manager { names: &["composer"], installs: &["install", "require", "update"], publishes: &[] },
    Manager { names: &["dotnet", "nuget"], installs: &["restore", "install", "add"], publishes: &["push"] },
    Manager {
        names: &[
            "apt", "apt-get", "aptitude", "dnf", "yum", "apk", "pacman", "zypper", "brew", "snap", "flatpak",
            "nix-env",
        ],
        installs: &[
            "install",
            "add",
            "upgrade",
            "update",
            "dist-upgrade",
            "full-upgrade",
            "-S",
            "-Syu",
            "-i",
        ],
        publishes: &[],
    },
    Manager { names: &["dpkg", "rpm"], installs: &["-i", "--install", "-U"], publishes: &[] },
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    let Some(manager) = MANAGERS.iter().find(|manager| manager.names.contains(&name)) else { return false };
    let words: Vec<&str> = args.iter().map(|arg| arg.exact().unwrap_or("*")).collect();
    let is_action =
        |word: &&&str| [manager.installs, manager.publishes].iter().any(|list| list.contains(word));
    // `uv pip install`, `cargo +nightly add`, `npm --prefix x add`: the word that acts need not be the first.
    let may_act = words.iter().filter(|word| !word.starts_with('-') || is_action(word));
    let action = may_act.take(3).find(is_action).copied();
    // Behind these stands a program with words of its own.
    let starts =
        args.first().is_some_and(|first| matches!(first.exact(), Some("exec" | "run" | "x" | "dlx")));
    let action = action.filter(|_| !starts);
    match action {
        Some(action) if manager.installs.contains(&action) => installs(account, name, action, &words),
        None if name == "yarn" && words.is_empty() => installs(account, name, "install", &words),
        Some(action) if manager.publishes.contains(&action) => {
            account.add(Effect::Publish { what: name.to_owned() });
            account.add(Effect::UseCredential { credential: name.to_owned() });
            account.connect(None);
            account.unknown(format!("{name} runs the scripts of the project when it publishes"));
        }
        // Even those that list something load plugins and files of the project.
        _ => {
            account.unknown(format!("{name} runs code of the project"));
            if starts {
                started(account, &args[1..]);
            }
        }
    }
    true
}

/// Reads the program that a manager starts for somebody: one of the project, which most often has the name of another.
pub(crate) fn started(account: &mut Account<'_>, args: &[Arg]) {
    let from = args.iter().position(|arg| !arg.may_be_option());
    if let Some(argv) = from.map(|at| &args[at..]) {
        account.deeper(|account| account.command(argv));
    }
}

fn installs(account: &mut Account<'_>, name: &str, action: &str, words: &[&str]) {
    // These install exactly what the lock file names: other words are the values of options.
    let takes_names = !["ci", "clean-install"].contains(&action);
    let names = words.iter().copied().filter(|word| *word != action && !word.starts_with(['-', '+']));
    let named: Vec<&str> = names.filter(|_| takes_names).collect();
    for package in &named {
        account.add(Effect::Install { manager: name.to_owned(), package: (*package).to_owned() });
    }
    if named.is_empty() {
        account.add(Effect::Install { manager: name.to_owned(), package: "*".to_owned() });
    }
    account.connect(None);
    account.write(&Arg::exactly("."));
    if words.iter().any(|word| {
        word.contains("index")
            || word.contains("registry")
            || word.contains("--git")
            || word.contains("source")
    }) {
        account.control(format!("{name} is told to fetch from somewhere else"));
    }
    account.unknown(format!("packages that {name} installs can run scripts"));
}
