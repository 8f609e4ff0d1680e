//! The bad inputs: what is wrong, which verbs it concerns, and what the answer must say.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::bench::{Answer, Bench, TRANSCRIPT, os, set_mode};
use super::verbs::Verb;

/// One bad input.
pub(crate) struct Input {
    pub(crate) name: &'static str,
    /// Whether a verb can meet it.
    pub(crate) concerns: fn(&Verb) -> bool,
    /// Brings it about, and returns the answer.
    pub(crate) meet: fn(&Bench, &Verb) -> Answer,
    /// What the answer must say.
    pub(crate) says: &'static [&'static str],
}

pub(crate) const INPUTS: &[Input] = &[
    Input {
        name: "an unknown option",
        concerns: |verb| verb.name != "bwrap",
        meet: |bench, verb| bench.run(&verb.line_with(&["--no-such-option"])),
        says: &["--no-such-option"],
    },
    Input {
        name: "an unknown option of bubblewrap",
        concerns: |verb| verb.name == "bwrap",
        meet: |bench, _| bench.run(&["bwrap", "--no-such-option", "true"]),
        says: &["fumehood: fatal", "--no-such-option"],
    },
    Input {
        name: "bytes that are no text, as an option",
        concerns: |verb| verb.name != "bwrap",
        meet: |bench, verb| {
            let mut words = os(&verb.words_of_name());
            words.push(OsString::from_vec(b"--\xff\x1b".to_vec()));
            bench.run(&words)
        },
        says: &["\u{fffd}"],
    },
    Input {
        name: "bytes that are no text, as a directory",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| {
            in_workspace(bench, verb, OsStr::new(&OsString::from_vec(b"no\xffwhere\x1b[2J".to_vec())))
        },
        says: &["does not exist", "\\u{1b}[2J"],
    },
    Input {
        name: "a setting in the environment that does not exist",
        concerns: |verb| verb.settings,
        meet: |bench, verb| bench.run_with(&verb.line(), &[("FUMEHOOD_PROFIL", OsStr::new("strict"))]),
        says: &["FUMEHOOD_PROFIL", "FUMEHOOD_PROFILE"],
    },
    Input {
        name: "a setting in the environment that is no text",
        concerns: |verb| verb.settings,
        meet: |bench, verb| {
            bench.run_with(&verb.line(), &[("FUMEHOOD_MODEL", &OsString::from_vec(b"m\xff".to_vec()))])
        },
        says: &["FUMEHOOD_MODEL", "UTF-8"],
    },
    Input {
        name: "a settings file with an unknown key",
        concerns: |verb| verb.settings,
        meet: |bench, verb| with_settings(bench, verb, "[ceiling]\nmemroy = \"1GiB\"\n"),
        says: &["fumehood.toml:2:1", "`ceiling.memroy`", "did you mean `memory`"],
    },
    Input {
        name: "a settings file that is no TOML",
        concerns: |verb| verb.settings,
        meet: |bench, verb| with_settings(bench, verb, "[model\n"),
        says: &["fumehood.toml:1:"],
    },
    Input {
        name: "a settings file that everybody can write",
        concerns: |verb| verb.settings,
        meet: |bench, verb| {
            let path = settings(bench, "");
            set_mode(&path, 0o666);
            bench.run(&verb.line())
        },
        says: &["chmod o-w"],
    },
    Input {
        name: "a default profile that does not exist",
        concerns: |verb| verb.settings,
        meet: |bench, verb| with_settings(bench, verb, "default_profile = \"strikt\"\n"),
        says: &["`strikt`", "did you mean `strict`"],
    },
    Input {
        name: "a profile that does not exist",
        concerns: |verb| verb.profile,
        meet: |bench, verb| bench.run(&verb.line_with(&["--profile", "strikt"])),
        says: &["`strikt`", "did you mean `strict`"],
    },
    Input {
        name: "a current directory that is gone",
        concerns: |verb| verb.settings,
        meet: |bench, verb| {
            bench.run_by_shell("mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$@\"", &verb.line())
        },
        says: &["current directory"],
    },
    Input {
        name: "a state directory that is a file",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            fs::write(bench.state(), "mine").expect("writes");
            let mut answer = bench.run(&verb.line());
            answer.untouched = same(fs::read(bench.state()).expect("is there") == b"mine");
            answer
        },
        says: &["is not a directory"],
    },
    Input {
        name: "a state directory that is a link",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            fs::create_dir(bench.path("elsewhere")).expect("makes a directory");
            symlink(bench.path("elsewhere"), bench.state()).expect("links");
            bench.run(&verb.line())
        },
        says: &["symbolic link"],
    },
    Input {
        name: "a state directory that others can write",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            fs::create_dir(bench.state()).expect("makes a directory");
            set_mode(&bench.state(), 0o777);
            bench.run(&verb.line())
        },
        says: &["can be written by others", "chmod go-w"],
    },
    Input {
        name: "a state directory in a place that cannot be made",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            bench.run_with(&verb.line(), &[("FUMEHOOD_STATE_DIR", OsStr::new("/proc/fumehood"))])
        },
        says: &["cannot make the state directory", "/proc/fumehood"],
    },
    Input {
        name: "a state directory that is relative",
        concerns: |verb| verb.settings,
        meet: |bench, verb| bench.run_with(&verb.line(), &[("FUMEHOOD_STATE_DIR", OsStr::new("state"))]),
        says: &["FUMEHOOD_STATE_DIR", "absolute path"],
    },
    Input {
        name: "a state database that is damaged",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            bench.used_state();
            fs::write(bench.state().join("fumehood.db"), b"SQLite format 3\0 and then something else")
                .expect("writes");
            let before = bench.snapshot();
            let mut answer = bench.run(&verb.line());
            let database = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
                files.into_iter().find(|(path, _)| path.ends_with("fumehood.db"))
            };
            answer.untouched = same(database(before) == database(bench.snapshot()));
            answer
        },
        says: &["damaged"],
    },
    Input {
        name: "a state database without its key",
        concerns: |verb| verb.state,
        meet: |bench, verb| {
            bench.used_state();
            fs::remove_file(bench.state().join("key")).expect("was there");
            let before = bench.snapshot();
            let mut answer = bench.run(&verb.line());
            answer.untouched = same(before == bench.snapshot());
            answer
        },
        says: &["the key file"],
    },
    Input {
        name: "a task or an action that is not there",
        concerns: |verb| !verb.names.is_empty(),
        meet: |bench, verb| bench.run(&verb.line_of_nothing()),
        says: &["there is no"],
    },
    Input {
        name: "a name that no task or action can have",
        concerns: |verb| !verb.names.is_empty(),
        meet: |bench, verb| {
            let line = verb.line_of_nothing();
            let wrong = |word: &str| {
                if word.ends_with("-aaaaaaaaaaaaaaaa") {
                    "../../etc\u{1b}".to_owned()
                } else {
                    word.to_owned()
                }
            };
            bench.run(&line.into_iter().map(wrong).collect::<Vec<_>>())
        },
        says: &["../../etc"],
    },
    Input {
        name: "a workspace that is missing",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| in_workspace(bench, verb, OsStr::new("nowhere")),
        says: &["nowhere", "does not exist"],
    },
    Input {
        name: "a workspace that is the whole host",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| in_workspace(bench, verb, OsStr::new("/")),
        says: &["/ cannot be a workspace"],
    },
    Input {
        name: "a workspace that is home",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| in_workspace(bench, verb, bench.path("home").as_os_str()),
        says: &["cannot be a workspace", "your home"],
    },
    Input {
        name: "a workspace that holds home",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| in_workspace(bench, verb, bench.path("").as_os_str()),
        says: &["cannot be a workspace"],
    },
    Input {
        name: "a workspace that is a file",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| in_workspace(bench, verb, OsStr::new("README")),
        says: &["README", "not a directory"],
    },
    Input {
        name: "a workspace that is a link to home",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| {
            symlink(bench.path("home"), bench.path("ws/link")).expect("links");
            in_workspace(bench, verb, OsStr::new("link"))
        },
        says: &["cannot be a workspace", "your home"],
    },
    Input {
        name: "a workspace that is a link to nothing",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| {
            symlink("nothing", bench.path("ws/link")).expect("links");
            in_workspace(bench, verb, OsStr::new("link"))
        },
        says: &["does not exist"],
    },
    Input {
        name: "a workspace that is the state directory",
        concerns: |verb| verb.workspace.is_some(),
        meet: |bench, verb| {
            bench.used_state();
            in_workspace(bench, verb, bench.state().as_os_str())
        },
        says: &["cannot be a workspace", "state directory"],
    },
    Input {
        name: "a workspace of somebody else",
        // Root runs as the owner.
        concerns: |verb| verb.workspace.is_some() && !rustix::process::geteuid().is_root(),
        meet: |bench, verb| in_workspace(bench, verb, OsStr::new("/usr/share")),
        says: &["cannot be a workspace", "another user"],
    },
    Input {
        name: "a workspace without a task",
        concerns: |verb| {
            matches!(
                verb.name,
                "task show" | "task stop" | "diff" | "apply" | "discard" | "undo" | "fork" | "log"
            )
        },
        meet: |bench, verb| bench.run(&verb.line()),
        says: &["no open task", "task list --all"],
    },
    Input {
        name: "a workspace in which nothing was run",
        concerns: |verb| matches!(verb.name, "show" | "why"),
        meet: |bench, verb| bench.run(&verb.line()),
        says: &["nothing was run", "fumehood run"],
    },
    Input {
        name: "a transcript that is cut in the middle",
        concerns: |verb| verb.name == "agent",
        meet: |bench, verb| {
            fs::write(bench.path("ws/session.jsonl"), &TRANSCRIPT[..TRANSCRIPT.len() / 2]).expect("writes");
            bench.run(&verb.line())
        },
        says: &["session.jsonl", "cut"],
    },
    Input {
        name: "a secret in an argument for the environment",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| {
            let secret = OsStr::new("correct-horse-battery");
            let mut answer = bench
                .run_with(&verb.line_with(&["--env", "NAME=correct-horse-battery"]), &[("MY_TOKEN", secret)]);
            let leaked =
                |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_encoded_bytes());
            let written = bench.snapshot().iter().any(|(_, bytes)| leaked(bytes));
            answer.untouched = same(!written && !leaked(&answer.stderr));
            answer
        },
        says: &["`NAME`", "secret"],
    },
    Input {
        name: "a variable to pass on that is not set",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--env", "NOT_SET_ANYWHERE"])),
        says: &["NOT_SET_ANYWHERE", "not set"],
    },
    Input {
        name: "an input that is missing",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--input", "data=/no/such/place"])),
        says: &["cannot find", "/no/such/place"],
    },
    Input {
        name: "a directory outside the workspace to start in",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--cwd", "../.."])),
        says: &["climbs"],
    },
    Input {
        name: "an action to join that is not there",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| {
            let mut answer = bench.run(&verb.line_with(&["--join", "act-aaaaaaaaaaaaaaaa"]));
            let tasks = bench.run(&["task", "list", "--json"]).stdout;
            answer.untouched = same(!String::from_utf8_lossy(&tasks).contains("task-"));
            answer
        },
        says: &["there is no action", "act-aaaaaaaaaaaaaaaa"],
    },
    Input {
        name: "a name that no action to join can have",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--join", "task-aaaaaaaaaaaaaaaa"])),
        says: &["--join", "not the id of an action"],
    },
    Input {
        name: "a network to join from a new task",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--join", "act-aaaaaaaaaaaaaaaa", "--new-task"])),
        says: &["--join", "--new-task"],
    },
    Input {
        name: "a pathspec with unknown magic",
        concerns: |verb| matches!(verb.name, "run" | "shell"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--hide", ":(attr:x)a"])),
        says: &["attr:x"],
    },
    Input {
        name: "limits that are none",
        concerns: |verb| matches!(verb.name, "run" | "shell" | "agent"),
        meet: |bench, verb| bench.run(&verb.line_with(&["--memory", "0"])),
        says: &["--memory", "nothing at all"],
    },
    Input {
        name: "a descriptor of bubblewrap that is not open",
        concerns: |verb| verb.name == "bwrap",
        meet: |bench, _| bench.run(&["bwrap", "--args", "77", "--", "true"]),
        says: &["fumehood: fatal", "`77`"],
    },
];

fn same(yes: bool) -> Result<(), String> {
    if yes { Ok(()) } else { Err("something was lost or changed".to_owned()) }
}

fn settings(bench: &Bench, text: &str) -> std::path::PathBuf {
    let path = bench.path("home/.config/fumehood/fumehood.toml");
    fs::write(&path, text).expect("writes");
    path
}

fn with_settings(bench: &Bench, verb: &Verb, text: &str) -> Answer {
    settings(bench, text);
    bench.run(&verb.line())
}

/// Names a workspace to a verb.
fn in_workspace(bench: &Bench, verb: &Verb, directory: &OsStr) -> Answer {
    let mut words = os(&verb.words_of_name());
    words.push(verb.workspace.unwrap_or_default().into());
    words.push(bench.path("ws").join(Path::new(directory)).into_os_string());
    words.extend(os(verb.words));
    bench.run(&words)
}
